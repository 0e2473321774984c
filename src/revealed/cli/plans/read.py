"""From what a user names, a model file or a call of the catalogue, to a plan."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from ...errors import InputError
from ...problems.linear import LinearProgram
from ..tables.names import plain_name
from .catalogue import NAMES, from_catalogue, is_call
from .plan import Plan

ENDINGS = (".mps", ".mps.gz", ".lp", ".lp.gz")


def read_plan(what: str | os.PathLike[str], *, relax: bool = False) -> Plan:
    """The plan in an MPS or LP file (gz too), or the one that a call of the catalogue describes;
    with its whole variables whole, unless the relaxation is asked for."""
    text = os.fspath(what)
    if is_call(text):
        return from_catalogue(text)
    if not text.lower().endswith(ENDINGS):
        raise InputError(
            f"{text!r} is neither a model file ({' or '.join(ENDINGS)}) nor a problem of the "
            f'catalogue ({", ".join(NAMES)}), such as "grid_shortest_path(5, 5)".'
        )
    if not Path(text).is_file():
        what = "is a folder" if Path(text).is_dir() else "does not exist"
        raise InputError(f"{text} {what}; a model file was expected.")
    plan = _from_file(Path(text))
    return plan.relaxed() if relax else plan


def _from_file(path: Path) -> Plan:
    from ...importers import RelaxationWarning, read_lp, read_mps

    read = read_lp if ".lp" in path.suffixes[-2:] else read_mps

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RelaxationWarning)  # it is not relaxed here
        model = read(path)
    if not isinstance(model.problem, LinearProgram):
        raise InputError(
            f"{path.name} has a quadratic objective; the commands learn linear costs. Leave its "
            "quadratic section out, or learn with `rv.QuadraticProgram` in Python."
        )
    names = _plain(model.variable_names)
    return Plan(
        model.integer_problem if model.integer.any() else model.problem,
        names,
        _plain(model.eq_names),
        _plain(model.ub_names),
        name=path.name,
        maximize=model.maximized,
        integers=tuple(names[j] for j in np.flatnonzero(model.integer)),
        at_least=() if model.at_least is None else tuple(np.flatnonzero(model.at_least).tolist()),
        cost=model.cost,
    )


def _plain(names: Iterable[object]) -> tuple[str, ...]:
    return tuple(plain_name(str(name)) for name in names)
