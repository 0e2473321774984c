"""Samples in few bytes: what a fit needs of a decision is where it stands, two bits for each entry.

A 5x5 path with five features takes 50 bytes instead of the 400 of its decision and its contexts in
float64. Blocks beyond a budget go to files that are mapped into memory while they are looked at.
Letters: b samples, n entries, m_ub inequality rows, d features.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import InputError
from ...optimality.active_set import ActiveSet
from ...optimality.kinds import PlainCosts
from ...optimality.sets import OptimalitySet
from ...problems.linear import LinearProgram
from ..observed import TOLERANCE
from .messages import Orders, Whole

ROWS = 65_536
"""Samples of a block, at most."""
_NAMES = ("states", "active", "Z", "weights")


@dataclass(frozen=True)
class Block:
    """A run of samples."""

    size: int
    states: np.ndarray
    """(b, n / 4) uint8, four codes of EntryState each."""
    active: np.ndarray
    """(b, m_ub / 8) uint8, bits: whether each inequality binds."""
    Z: np.ndarray
    """(b, d) contexts in their own precision."""
    weights: np.ndarray
    """(b,), or (0,) where each counts 1."""

    @classmethod
    def of(cls, sets: OptimalitySet, Z: np.ndarray, weights: np.ndarray | None) -> Block:
        active = np.packbits(sets.row_active, axis=1)
        own = np.asarray(sets.weights)
        weights = own if weights is None else own * weights
        if (weights == 1.0).all():
            weights = np.zeros(0)
        return cls(len(Z), pack(sets.entry_state), active, np.ascontiguousarray(Z), weights)

    @classmethod
    def joined(cls, blocks: list[Block]) -> Block:
        """Several blocks as one."""
        if len(blocks) == 1:
            return blocks[0]
        size = sum(block.size for block in blocks)
        counted = any(len(block.weights) for block in blocks)
        weights = [block.counts() for block in blocks] if counted else [np.zeros(0)]
        states, active, Z = (
            np.concatenate([getattr(block, name) for block in blocks]) for name in _NAMES[:3]
        )
        return cls(size, states, active, Z, np.concatenate(weights))

    @property
    def nbytes(self) -> int:
        return sum(getattr(self, name).nbytes for name in _NAMES)

    def counts(self) -> np.ndarray:
        """(b,) what each sample counts."""
        return self.weights if len(self.weights) else np.ones(self.size)

    def take(self, some: np.ndarray | slice) -> Block:
        """The chosen samples."""
        weights = self.weights[some] if len(self.weights) else self.weights
        states, active, Z = (np.asarray(getattr(self, name)[some]) for name in _NAMES[:3])
        return Block(len(Z), states, active, Z, np.asarray(weights))


@dataclass(frozen=True)
class Frame:
    """What the samples of a whole data set have in common."""

    problem: Any
    """One problem, without what differs from sample to sample: sets of plain costs need only its
    matrices."""
    margin: float
    tol: float
    row_used: np.ndarray
    """(m_ub,) whether each inequality binds anywhere."""
    heaviest: float
    """The largest weight: weights are counted in units of it."""

    def sets(self, block: Block) -> OptimalitySet:
        """The sets of a block."""
        b, problem = block.size, self.problem
        m_ub = problem.ub_rows.shape[0]
        active = ActiveSet(
            unpack(block.states, problem.n_variables),
            np.unpackbits(block.active, axis=1, count=m_ub).astype(bool),
            np.zeros(b),
            np.full(b, np.inf),
        )
        empty = _template(problem)
        kind = PlainCosts(problem, active, self.row_used, problem.n_variables)
        return empty.replaced(
            problem=problem,
            decisions=np.broadcast_to(np.nan, (b, problem.n_variables)),  # not kept
            margins=np.full(b, self.margin),
            tol=self.tol,
            repaired=np.zeros(b),
            weights=block.counts() / self.heaviest,
            _kind=kind,
        )


def _template(problem: Any) -> OptimalitySet:
    return problem.cached(
        "partitioned.template",
        lambda: OptimalitySet(problem, np.zeros((0, problem.n_variables))),
    )


_KNOWN: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
"""Problems by the token of their fit: what is computed of one serves all shares of a process."""


@dataclass(frozen=True)
class Terms:
    """What makes sets of compact samples, but for what only the whole data set tells."""

    problem: Any
    """Without what differs from sample to sample."""
    margin: float
    tol: float
    token: str

    @classmethod
    def of(cls, orders: Orders) -> Terms:
        problem = _KNOWN.setdefault(orders.token, alike(orders.data.problem))
        return cls(problem, orders.margin, TOLERANCE, orders.token)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__dict__["problem"] = _KNOWN.setdefault(self.token, state["problem"])

    def frame(self, whole: Whole) -> Frame:
        """What blocks need to become sets."""
        return Frame(self.problem, self.margin, self.tol, whole.row_used, whole.heaviest)


def alike(problem: Any) -> Any:
    """One problem with the matrices of `problem`, which all its instances must share: sets of plain
    costs need nothing else of it."""
    if not isinstance(problem, LinearProgram):
        raise InputError(
            f"Partitions are for decisions of a LinearProgram; got {type(problem).__name__}. Fit "
            "others in memory."
        )
    if problem.eq_rows.per_instance or problem.ub_rows.per_instance:
        raise InputError(
            "Partitions are for problems whose matrices are the same in every instance."
        )
    if problem.n_instances is None:
        return problem
    parts = {name: getattr(problem, name) for name in ("b_eq", "b_ub", "lb", "ub")}
    one = {name: part[0] if part.ndim == 2 else part for name, part in parts.items()}
    return LinearProgram(
        problem.eq_rows, one["b_eq"], problem.ub_rows, one["b_ub"], one["lb"], one["ub"]
    )


def pack(states: np.ndarray) -> np.ndarray:
    """(b, n) codes from 0 to 3 -> (b, n / 4) bytes."""
    b, n = states.shape
    full = np.zeros((b, -(-n // 4), 4), np.uint8)
    full.reshape(b, -1)[:, :n] = states
    return full[:, :, 0] | full[:, :, 1] << 2 | full[:, :, 2] << 4 | full[:, :, 3] << 6


def unpack(packed: np.ndarray, n: int) -> np.ndarray:
    """What `pack` was given, as int8."""
    shifts = np.array([0, 2, 4, 6], np.uint8)
    codes = (packed[:, :, None] >> shifts) & 3
    return np.ascontiguousarray(codes.reshape(len(packed), -1)[:, :n]).astype(np.int8)


class Shelf:
    """Keeps blocks: in memory up to `budget` bytes, beyond in files under `folder`.

    A folder of its own is made in `folder` (None: where the system keeps such files) when it is
    first needed, and removed with the shelf.
    """

    def __init__(self, budget: float, folder: str | os.PathLike[str] | None) -> None:
        self._left, self._parent = budget, folder
        self._folder: Path | None = None
        self._blocks: list[Any] = []
        self.in_memory = self.on_disk = 0

    def __len__(self) -> int:
        return len(self._blocks)

    def __getstate__(self) -> dict[str, Any]:
        """Blocks travel as they are; where they arrive they are in memory."""
        return {"blocks": [self[k] for k in range(len(self))]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(np.inf, None)
        for block in state["blocks"]:
            self.add(block)

    def add(self, block: Block) -> None:
        """Keep another block."""
        if block.nbytes <= self._left:
            self._left -= block.nbytes
            self.in_memory += block.nbytes
            self._blocks.append(block)
            return
        self.on_disk += block.nbytes
        self._blocks.append(self._write(block))

    @property
    def sizes(self) -> list[int]:
        """Samples of each block."""
        return [block.size for block in self._blocks]

    def __getitem__(self, k: int) -> Block:
        kept = self._blocks[k]
        return kept if isinstance(kept, Block) else kept()

    def _write(self, block: Block) -> _Mapped:
        try:
            if self._folder is None:
                self._folder = Path(tempfile.mkdtemp(prefix="revealed-", dir=self._parent))
                weakref.finalize(self, shutil.rmtree, str(self._folder), ignore_errors=True)
            path = self._folder / f"{len(self._blocks)}"
            with open(path, "wb") as file:
                for name in _NAMES:
                    file.write(np.ascontiguousarray(getattr(block, name)).data)
        except OSError as error:
            where = self._folder or self._parent or tempfile.gettempdir()
            raise InputError(
                f"{block.nbytes:,} bytes of samples cannot be written to {os.fspath(where)!r}: "
                f"{error.strerror or error}. Make room there, choose another folder with "
                "`scratch`, or allow more `memory`."
            ) from error
        forms = tuple((getattr(block, n).dtype, getattr(block, n).shape) for n in _NAMES)
        return _Mapped(path, block.size, forms)


@dataclass(frozen=True)
class _Mapped:
    """A block in a file, mapped into memory for as long as it is looked at."""

    path: Path
    size: int
    forms: tuple[tuple[np.dtype, tuple[int, ...]], ...]

    def __call__(self) -> Block:
        whole = np.memmap(self.path, np.uint8, "r")
        arrays, start = [], 0
        for dtype, shape in self.forms:
            stop = start + dtype.itemsize * int(np.prod(shape))
            arrays.append(whole[start:stop].view(dtype).reshape(shape))
            start = stop
        return Block(self.size, *arrays)
