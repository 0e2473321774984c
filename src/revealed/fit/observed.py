"""Observed decisions as they come: rounded, or breaking their constraints.

Letters: B samples.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError
from ..optimality.infeasible import POLICIES
from ..optimality.protocol import CostSet as Sets
from ..optimality.rounding import checked_decision_tol, read_rounded
from ..optimality.sets import OptimalitySet
from ..problems.linear import LinearProgram
from .contexts import check_length
from .decisions import joined, numbers

TOLERANCE = 1e-5
"""Relative, as in `OptimalitySet`."""


class RoundedDecisionsWarning(UserWarning):
    """Decisions were taken as rounded, and moved to the vertices that they stand for."""


class Observed(NamedTuple):
    """Sets of the decisions that are used."""

    sets: Any
    kept: np.ndarray | None
    """Rows that are used; None for all."""
    report: str
    """What was assumed, in words; empty where nothing was."""


def observed(
    problem: Any,
    X: Any,
    size: int,
    *,
    infeasible: str,
    decision_tol: Any,
    vertices: bool = True,
    **options: Any,
) -> Observed:
    """Decisions `X` of `size` samples as an OptimalitySet, which takes the `options`; sets are
    taken as they are. Without `vertices`, decisions need not be any (see `read_rounded`)."""
    if infeasible not in (*POLICIES, "skip"):
        known = ", ".join((*POLICIES, "skip"))
        raise InputError(f"`infeasible` must be one of {known}; got {infeasible!r}.")
    X = joined(X)
    if isinstance(X, OptimalitySet) and X.observed is not None:
        raise InputError(
            "Decisions seen in part are learned from in turns, which InverseRegressor.fit does: "
            "choose settings on whole decisions, and fit with these to all."
        )
    if X is None or isinstance(X, Sets):
        return Observed(X, None, "")
    X = numbers(X)
    check_length(size, len(X) if X.ndim else 1)
    fits = X.ndim == 2 and X.shape[1] == problem.n_variables and bool(np.isfinite(X).all())
    if not fits or (problem.n_instances not in (None, len(X))):
        return Observed(X, None, "")  # refused where sets are built, with the reason
    X, notes = _unrounded(problem, X, decision_tol, vertices)
    kept = None
    if infeasible == "skip":
        good = np.asarray(problem.constraint_violation(X)) <= TOLERANCE
        if not good.any():
            raise InputError("Every decision breaks its constraints, so that none is left.")
        if not good.all():
            kept = np.flatnonzero(good)
            notes.append(
                f"{len(X) - len(kept):,} decisions break their constraints and are skipped"
            )
            X, problem = X[kept], problem[kept]
            form = options.get("form")
            options["form"] = None if form is None else form[kept]
    policy = "refuse" if infeasible == "skip" else infeasible
    sets = OptimalitySet(problem, X, infeasible=policy, **options)
    moved = np.flatnonzero(sets.repaired)
    if moved.size:
        notes.append(
            f"{len(moved):,} decisions broke their constraints and were moved to the nearest that "
            f"obey, by up to {sets.repaired.max():.3g}"
        )
    return Observed(sets, kept, " ".join(f"{part.rstrip('.')}." for part in notes))


def _unrounded(
    problem: Any, X: np.ndarray, decision_tol: Any, vertices: bool
) -> tuple[np.ndarray, list[str]]:
    given = checked_decision_tol(decision_tol, problem.n_variables)
    if not isinstance(problem, LinearProgram):
        if given is not None and given.any():
            raise InputError(
                "`decision_tol` is for decisions of a LinearProgram; leave it out, or give 0."
            )
        return X, []
    reading = read_rounded(problem, X, decision_tol, tol=TOLERANCE, vertices=vertices)
    if not reading.sentence:
        return X, []
    if given is None:
        warnings.warn(
            f"{reading.sentence} Give `decision_tol` to say what you know, or 0 if the decisions "
            "are exact.",
            RoundedDecisionsWarning,
            stacklevel=5,
        )
    return reading.decisions, [reading.sentence]
