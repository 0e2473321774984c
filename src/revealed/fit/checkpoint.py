"""Checkpoints on disk: safetensors for the tensors, JSON for the rest, complete or not there.

The JSON file names the tensor file that belongs to it and is put in place last, in one move. A
process killed at any moment leaves either the old pair or the new one.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from ..errors import InputError, MissingDependencyError
from ..mixed import MixedSets, Sets
from ..optimality import OptimalitySet
from ..problem import LinearProgram
from ..quadratic import QuadraticProgram
from ..rows import Rows
from .contexts import Ragged
from .least_squares import chunks

INDEX = "checkpoint.json"
_SHOWN = 16
"""Digits of a checksum that are written down: enough that no two differ by chance."""


@dataclass(frozen=True)
class Checkpoint:
    """Where a run stood: its tensors, and the facts that JSON can hold."""

    tensors: dict[str, Tensor]
    facts: dict[str, Any]

    def part(self, name: str) -> dict[str, Tensor]:
        """The tensors called `name.*`, without that prefix."""
        prefix = f"{name}."
        found = self.tensors.items()
        return {key[len(prefix) :]: value for key, value in found if key.startswith(prefix)}


def save(folder: str | os.PathLike[str], checkpoint: Checkpoint) -> None:
    """Replace the checkpoint in `folder`, which is made if need be."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    name = f"epoch_{checkpoint.facts['epoch']:06d}.safetensors"
    whole = {key: value.detach().cpu().contiguous() for key, value in checkpoint.tensors.items()}
    _replace(place / name, _safetensors().save(whole))
    index = json.dumps(checkpoint.facts | {"tensors": name}, allow_nan=False, indent=1)
    _replace(place / INDEX, index.encode())
    for old in place.glob("epoch_*.safetensors"):
        if old.name != name:
            old.unlink(missing_ok=True)


def load(folder: str | os.PathLike[str], belongs_to: dict[str, Any]) -> Checkpoint | None:
    """The checkpoint in `folder`, or None; refused if it is of another run than `belongs_to`."""
    place = Path(folder)
    if place.exists() and not place.is_dir():
        raise InputError(f"`checkpoint` must be a folder; {os.fspath(folder)!r} is a file.")
    if not (place / INDEX).exists():
        return None
    found = _read(place)
    run = found.facts["run"]
    differing = sorted(key for key in belongs_to if run.get(key) != belongs_to[key])
    if differing:
        told = {key: run.get(key, "not told") for key in differing}
        listing = ", ".join(f"{key} ({told[key]}, now {belongs_to[key]})" for key in differing)
        raise InputError(
            f"The checkpoint in {os.fspath(folder)!r} is of another run; these differ: {listing}. "
            "Choose another folder, or remove this one to start afresh."
        )
    return found


def _read(place: Path) -> Checkpoint:
    safetensors = _safetensors()
    from safetensors import SafetensorError

    try:
        facts = json.loads((place / INDEX).read_text("utf-8"))
        tensors = safetensors.load((place / facts["tensors"]).read_bytes())
        return Checkpoint(tensors, facts | {name: facts[name] for name in ("run", "rows")})
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        raise InputError(
            f"The checkpoint in {os.fspath(place)!r} cannot be read ({error!r}). Choose another "
            "folder, or remove this one to start afresh."
        ) from error


def fingerprint(sets: Sets, *beside: Any) -> str:
    """A checksum of decisions, margins and weights, and of whatever else goes with each sample."""
    total = hashlib.sha256()
    for here, own in _groups(sets):
        _add(total, here, own.decisions, own.margins, own.weights)
    _add(total, *beside)
    return f"{len(sets)} samples, {total.hexdigest()[:_SHOWN]}"


def constraints(sets: Sets) -> str:
    """A checksum of all that, with the samples, makes the sets what they are."""
    total, size = hashlib.sha256(), ""
    for here, own in _groups(sets):
        _add(total, here, *_conditions(own))
        eq, ub = own.problem.eq_rows.shape[0], own.problem.ub_rows.shape[0]
        size = f"{own.problem.n_variables} variables, {eq} equalities, {ub} inequalities"
    if isinstance(sets, MixedSets):
        size = f"{len(sets.parts)} problems"
    return f"{size}, {total.hexdigest()[:_SHOWN]}"


def _groups(sets: Sets) -> Iterable[tuple[Any, OptimalitySet]]:
    return sets.groups() if isinstance(sets, MixedSets) else [(None, sets)]


def _conditions(sets: OptimalitySet) -> Iterator[Any]:
    """Rows, bounds and what binds; the form; the objective as given, else its gradient."""
    problem, rows, form = sets.problem, sets.rows, sets.form
    yield from (type(problem).__name__, sets.soft, problem.semidefinite_block)
    yield from (rows.eq_rows, rows.ub_rows, rows.b_eq, rows.b_ub, rows.lb, rows.ub)
    yield from (sets.entry_state, sets.row_active)
    if form is not None:
        yield from (form.map.rows, form.map.offset, *form.bounds)
    if isinstance(problem, QuadraticProgram):
        yield from (problem.gamma, problem.Q, problem.sense)
    elif not isinstance(problem, LinearProgram):
        # Functions have no bytes to compare: what they say at the decisions stands for them.
        if sets.gradient is not None:
            yield from (sets.gradient.rows, sets.gradient.offset)
        for cone in getattr(problem, "cones", ()):
            yield from cone.conic()


def _add(total: Any, *parts: Any) -> None:
    """Take parts into a checksum, arrays with their types and shapes and a chunk at a time."""
    for part in parts:
        if isinstance(part, Rows):
            _add(total, part.shape, part.indptr, part.indices, part.data)
        elif isinstance(part, Ragged):
            _add(total, part.sizes, part.rows)
        elif isinstance(part, np.ndarray | Tensor):
            kind = str(part.dtype).removeprefix("torch.")
            total.update(f"{kind} {tuple(part.shape)};".encode())
            for some in chunks(len(part)):
                piece = part[some]
                array = piece.numpy(force=True) if isinstance(piece, Tensor) else piece
                total.update(np.ascontiguousarray(array))
        else:
            total.update(f"{part!r};".encode())


def _replace(path: Path, content: bytes) -> None:
    """Write a file so that it appears whole or not at all."""
    temporary = path.with_name(path.name + ".new")
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def _safetensors() -> Any:
    try:
        from safetensors import torch as safetensors
    except ImportError as error:
        raise MissingDependencyError(
            "Checkpoints are written with safetensors, which is not installed: "
            "`pip install safetensors`."
        ) from error
    return safetensors
