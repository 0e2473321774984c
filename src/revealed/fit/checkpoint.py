"""Checkpoints on disk: safetensors for the tensors, JSON for the rest, complete or not there.

The JSON file names the tensor file that belongs to it, with its checksum and one of its own, and is
put in place last, in one move. A process killed at any moment leaves either the old pair or the new
one. Reading believes nothing: what has another checksum or another form is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from .._common.disk import held, remove, remove_drafts, replace_file, strict_json
from .._common.rows import Rows
from ..errors import InputError, MissingDependencyError
from ..io.folder import plain, unplain
from ..optimality.integer import IntegerCosts
from ..optimality.mixed import MixedSets
from ..optimality.protocol import CostSet as Sets
from ..optimality.sets import OptimalitySet
from ..problems.convex import ConvexProgram
from ..problems.linear import LinearProgram
from ..problems.protocol import Problem
from ..problems.quadratic import QuadraticProgram
from .contexts import Ragged
from .least_squares import chunks

INDEX = "checkpoint.json"
FORMAT, VERSION = "revealed checkpoint", 2
LARGEST_INDEX = 256 * 2**20
LARGEST_EPOCH = 10**9
WAIT = 1.0
"""Seconds to wait for a run that is just ending."""
_SHOWN = 16
"""Digits of a checksum that are written down: enough that no two differ by chance."""
_FILE = re.compile(rf"epoch_\d{{6,10}}-[0-9a-f]{{{_SHOWN}}}\.safetensors", re.ASCII)


@dataclass(frozen=True)
class Checkpoint:
    """Where a run stood: its tensors, and the facts that JSON can hold."""

    tensors: dict[str, Tensor]
    facts: dict[str, Any]
    """"epoch", "run" (what the run must have in common with one that goes on from here) and
    "rows", the history so far; more may be there."""
    where: str = "the checkpoint"

    def part(self, name: str) -> dict[str, Tensor]:
        """The tensors called `name.*`, without that prefix."""
        prefix = f"{name}."
        found = self.tensors.items()
        return {key[len(prefix) :]: value for key, value in found if key.startswith(prefix)}

    def part_like(self, name: str, like: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The same, refused unless names, shapes and types are those of `like`."""
        part = self.part(name)
        for key in sorted({*part, *like}):
            there, wanted = (_form(tensors.get(key)) for tensors in (part, like))
            if there != wanted:
                raise self.refusal(f"tensor {name}.{key} is {there}, expected {wanted}")
        return part

    def state_like(
        self, name: str, parameters: Sequence[Tensor], *, needed: bool
    ) -> dict[str, Tensor]:
        """The state of an optimizer: of some parameters, by number, the same numbers for each."""
        state, kept = self.part(name), {}
        for key, value in state.items():
            number, _, what = key.partition(".")
            k = int(number) if number.isascii() and number.isdigit() and len(number) < 10 else -1
            if not 0 <= k < len(parameters) or tuple(value.shape) not in (
                (),
                tuple(parameters[k].shape),
            ):
                raise self.refusal(f"tensor {name}.{key} belongs to no parameter of the model")
            kept.setdefault(k, set()).add(what)
        if len({frozenset(names) for names in kept.values()}) > 1 or (needed and not kept):
            raise self.refusal("the state of the optimizer is not complete")
        return state

    def refusal(self, reason: str) -> InputError:
        """The error that says why this checkpoint is not used."""
        return _refusal(self.where, reason)


def _form(tensor: Tensor | None) -> str:
    if tensor is None:
        return "missing"
    return f"{str(tensor.dtype).removeprefix('torch.')} of shape {tuple(tensor.shape)}"


def _refusal(where: str, reason: str) -> InputError:
    return InputError(
        f"The checkpoint in {where!r} cannot be used: {reason}. Choose another folder, or remove "
        "this one to start afresh."
    )


@contextmanager
def claimed(folder: str | os.PathLike[str] | None) -> Iterator[None]:
    """Make `folder` if need be and keep other runs out of it; None needs nothing."""
    if folder is None:
        yield
        return
    place = _folder(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"The folder {str(place)!r} cannot be made: {error.strerror}.") from error
    busy = (
        f"Another run keeps its checkpoints in {str(place)!r} and has not ended. Wait for it, or "
        "choose another folder."
    )
    with held(place, wait=WAIT, busy=busy) as alone:
        if alone:
            remove_drafts(place, INDEX)
            remove_drafts(place, "epoch_")
        yield


def save(folder: str | os.PathLike[str], checkpoint: Checkpoint) -> None:
    """Replace the checkpoint in `folder`, which is made if need be."""
    place, epoch = _folder(folder), checkpoint.facts["epoch"]
    whole = {key: value.detach().cpu().contiguous() for key, value in checkpoint.tensors.items()}
    content = _safetensors().save(whole)
    sha256 = hashlib.sha256(content).hexdigest()
    name = f"epoch_{epoch:06d}-{sha256[:_SHOWN]}.safetensors"
    facts = {"format": FORMAT, "version": VERSION} | plain(checkpoint.facts, "the checkpoint")
    facts["tensors"] = {"file": name, "sha256": sha256}
    facts["sha256"] = _checksum(facts)
    new = not (place / name).exists()
    try:
        place.mkdir(parents=True, exist_ok=True)
        replace_file(place / name, content)
        replace_file(place / INDEX, json.dumps(facts, allow_nan=False, indent=1).encode())
    except OSError as error:
        if new:
            remove(place / name)
        raise InputError(
            f"The checkpoint of epoch {epoch} cannot be written to {str(place)!r}: "
            f"{error.strerror or error}. The last one that was written there is kept; the same "
            "run goes on from it."
        ) from error
    for old in place.glob("epoch_*.safetensors"):
        if old.name != name:
            remove(old)


def load(folder: str | os.PathLike[str], belongs_to: dict[str, Any]) -> Checkpoint | None:
    """The checkpoint in `folder`, or None; refused if it is damaged, or of another run than
    `belongs_to`."""
    place = _folder(folder)
    if not (place / INDEX).exists():
        return None
    try:
        found = _read(place)
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else error
        raise _refusal(str(place), f"{said or error}") from error
    run, own = (plain(facts, "the run") for facts in (found.facts["run"], belongs_to))
    differing = sorted(key for key in own if run.get(key) != own[key])
    if differing:
        recorded = {key: run.get(key, "not recorded") for key in differing}
        listing = ", ".join(
            f"{key} ({_short(recorded[key])}, now {_short(own[key])})" for key in differing
        )
        raise InputError(
            f"The checkpoint in {os.fspath(folder)!r} is of another run; these differ: {listing}. "
            "Choose another folder, or remove this one to start afresh."
        )
    return found


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 200 else f"{text[:197]}..."


def _folder(folder: str | os.PathLike[str]) -> Path:
    place = Path(folder)
    if place.exists() and not place.is_dir():
        raise InputError(f"`checkpoint` must be a folder; {os.fspath(folder)!r} is a file.")
    return place


def _read(place: Path) -> Checkpoint:
    """What is in a folder; ValueError with the reason where it is not what was written there."""
    try:
        facts = strict_json(_bytes(place / INDEX, LARGEST_INDEX))
    except ValueError as error:
        raise ValueError(f"{INDEX} is not JSON that can be used ({error})") from error
    if not isinstance(facts, dict) or "format" not in facts:
        raise ValueError(f"{INDEX} has no checksum: it is older than this version, or damaged")
    if (facts["format"], facts.get("version")) != (FORMAT, VERSION):
        raise ValueError(f"{INDEX} does not say {FORMAT!r}, version {VERSION}")
    if facts.pop("sha256", None) != _checksum(facts):
        raise ValueError(f"{INDEX} is damaged: its checksum differs")
    _check_facts(facts)
    tensors = facts.pop("tensors")
    content = _bytes(place / tensors["file"], None)
    if hashlib.sha256(content).hexdigest() != tensors["sha256"]:
        raise ValueError(f"{tensors['file']} is damaged: its checksum differs")
    try:
        loaded = _safetensors().load(content)
    except Exception as error:  # the library raises exceptions of several kinds
        raise ValueError(f"{tensors['file']} is not a safetensors file: {error}") from error
    del facts["format"], facts["version"]
    return Checkpoint(loaded, unplain(facts), str(place))


def _check_facts(facts: dict[str, Any]) -> None:
    """Refuse an index whose entries are not those that `save` writes."""
    epoch, rows, tensors = facts.get("epoch"), facts.get("rows"), facts.get("tensors")
    if type(epoch) is not int or not 0 <= epoch <= LARGEST_EPOCH:
        raise ValueError("'epoch' must be a whole number of at least 0")
    if not isinstance(facts.get("run"), dict):
        raise ValueError("'run' must be an object")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError("'rows' must be a list of objects")
    if not isinstance(tensors, dict) or not {"file", "sha256"} <= {*tensors}:
        raise ValueError("'tensors' must name a file and its checksum")
    if not isinstance(tensors["file"], str) or not _FILE.fullmatch(tensors["file"]):
        raise ValueError("'tensors' must name a file in the same folder, as a checkpoint does")


def _bytes(path: Path, most: int | None) -> bytes:
    if not path.is_file():
        raise ValueError(f"there is no file {path.name}")
    if most is not None and path.stat().st_size > most:
        raise ValueError(f"it is larger than {most:,} bytes")
    return path.read_bytes()


def _checksum(facts: dict[str, Any]) -> str:
    text = json.dumps(facts, allow_nan=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


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
        eq, ub, _ = own.problem.shape
        size = f"{own.problem.n_variables} variables, {eq} equalities, {ub} inequalities"
    if isinstance(sets, MixedSets):
        size = f"{len(sets.parts)} problems"
    return f"{size}, {total.hexdigest()[:_SHOWN]}"


def checksum(*parts: Any) -> str:
    """A checksum of arrays, tensors and whatever else is given."""
    total = hashlib.sha256()
    _add(total, *parts)
    return total.hexdigest()[:_SHOWN]


def shared_rows(problem: Problem) -> str:
    """A checksum of the matrices, right-hand sides and bounds of a problem."""
    names = ("eq_rows", "ub_rows", "b_eq", "b_ub", "lb", "ub")
    return checksum(type(problem).__name__, *(getattr(problem, name, None) for name in names))


def _groups(sets: Sets) -> Iterable[tuple[Any, OptimalitySet]]:
    return sets.groups() if isinstance(sets, MixedSets) else [(None, sets)]  # pyright: ignore


def _conditions(sets: OptimalitySet) -> Iterator[Any]:
    """Rows, bounds and what binds; the form; the objective as given, else its gradient."""
    problem = sets.problem
    if isinstance(sets.kind, IntegerCosts):
        whole, rows = sets.kind.problem, sets.kind.problem.relaxation
        yield from (type(problem).__name__, whole.integer, whole.distance, sets.kind.direction)
        yield from (rows.eq_rows, rows.ub_rows, rows.b_eq, rows.b_ub, rows.lb, rows.ub)
        return
    rows, form = sets.rows, sets.form
    yield from (type(problem).__name__, sets.soft, sets.semidefinite_block)
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
        if isinstance(problem, ConvexProgram):
            for cone in problem.cones:
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


def _safetensors() -> Any:
    try:
        from safetensors import torch as safetensors
    except ImportError as error:
        raise MissingDependencyError(
            "Checkpoints are written with safetensors, which is not installed: "
            "`pip install safetensors`."
        ) from error
    return safetensors
