"""Decisions -> a basis of the simplex method for each, and what its reduced costs must be.

In standard form every row has a variable of its own, its logical: a slack of cost 0 where the row
is an inequality, a variable fixed at 0 where it is an equality. A basis is m of the n + m columns
[A, I] that span all of them. With y = A_B^-T c_B the reduced costs are c - A^T y, and -y for the
logicals.

Letters: B samples, n entries, m rows (equalities first, then inequalities).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..._common.compiled import kernel
from ...optimality.sets import EntryState, OptimalitySet
from ...problems.linear import LinearProgram
from .standard_form import dense_rows

MOST_KEPT = 1 << 27
"""Numbers of inverses that are kept, 1 GiB; bases beyond that are found anew each time."""

NONE, LOWER, UPPER, BOTH = 0, 1, -1, 2
_FREE, _FIXED = int(EntryState.FREE), int(EntryState.FIXED)
ARTIFICIAL = 4
"""State of an equality's logical, which becomes basic only where the row depends on others."""
NOTHING = 1e-9
"""A pivot of at most this, in rows scaled to 1, is rounding."""


class Bases(NamedTuple):
    """One basis for each sample."""

    columns: Tensor
    """(B, m) int64: basic columns; n + i is the logical of row i."""
    inverse: Tensor
    """(B, m, m): the inverse of the basic columns; its row k belongs to columns[:, k]."""
    side: Tensor
    """(B, n + m) int8, of each reduced cost: LOWER for at least 0, UPPER for at most 0, BOTH for
    exactly 0, NONE where nothing is asked (basic, or without a choice)."""


class BasisBook:
    """Bases by what they depend on, so that each is found once."""

    def __init__(self) -> None:
        self._slot: dict[bytes, int] = {}
        self._kept: Bases | None = None  # with room for more at the end

    def recall(self, keys: list[bytes], device: torch.device) -> Bases | None:
        """The bases under these keys, or None unless all are there."""
        slots = [self._slot.get(key, -1) for key in keys]
        if self._kept is None or min(slots, default=-1) < 0:
            return None
        if self._kept.columns.device != device:
            self._kept = Bases(*(part.to(device) for part in self._kept))
        chosen = torch.tensor(slots, device=device)
        return Bases(*(part[chosen] for part in self._kept))

    def keep(self, keys: list[bytes], bases: Bases) -> None:
        """Remember those that are new, as long as there is room."""
        first = {key: row for row, key in reversed(list(enumerate(keys))) if key not in self._slot}
        count = len(self._slot)
        room = MOST_KEPT // max(1, bases.inverse[0].numel()) - count
        new = list(first.items())[: max(0, room)]
        if not new:
            return
        self._slot |= {key: count + k for k, (key, _) in enumerate(new)}
        self._kept = _with_room(self._kept, bases, count, len(self._slot))
        rows = [row for _, row in new]
        for part, given in zip(self._kept, bases, strict=True):
            part[count : len(self._slot)] = given[rows]


def _with_room(kept: Bases | None, like: Bases, count: int, size: int) -> Bases:
    """`kept` with space for `size` bases, twice that where it has to grow."""
    if kept is not None and len(kept.columns) >= size:
        return kept
    grown = Bases(*(part.new_empty(2 * size, *part.shape[1:]) for part in like))
    if kept is not None:
        for part, old in zip(grown, kept, strict=True):
            part[:count] = old[:count]
    return grown


def keys_of(parts: list[np.ndarray]) -> list[bytes]:
    """For each sample the bytes of its row in all `parts`, (B, .) each."""
    flat = [np.ascontiguousarray(part).view(np.int8).reshape(len(part), -1) for part in parts]
    joined = np.ascontiguousarray(np.hstack(flat))
    return joined.view(f"V{joined.shape[1]}").ravel().tolist()


def own_matrices(problem: LinearProgram) -> list[np.ndarray]:
    """What distinguishes the matrices of the instances; nothing where they share one."""
    return [rows.data for rows in (problem.eq_rows, problem.ub_rows) if rows.per_instance]


def bases_of(sets: OptimalitySet, reduced: np.ndarray | None, device: torch.device) -> Bases:
    """A basis that holds the free columns of each decision, completed where it is degenerate.

    Rows are taken in turn; each gets the column with the largest entry in it once the columns
    chosen before are eliminated, and of equal ones the first: a free one if there is any, else
    one at a bound, else a fixed one. Given reduced costs (B, n + m) that prove the decision
    optimal, the columns at a bound are chosen so that those of the basis prove it too.
    """
    problem = sets.rows
    rows = dense_rows(problem, torch.device("cpu")).numpy()
    m, n = rows.shape[1:]
    state = _states(sets, n, m)
    follow = reduced is not None
    start = np.array(reduced) if reduced is not None else np.ones(state.shape)
    columns = np.empty((len(sets), m), np.int64)
    inverse = np.empty((len(sets), m, m))
    _complete(np.ascontiguousarray(rows), state, start, follow, columns, inverse)
    side = _sides(state, columns)
    return Bases(*(torch.from_numpy(part).to(device) for part in (columns, inverse, side)))


def _states(sets: OptimalitySet, n: int, m: int) -> np.ndarray:
    """(B, n + m): the state of every column; a slack is at its lower bound where its row binds."""
    state = np.full((len(sets), n + m), ARTIFICIAL, np.int8)
    state[:, :n] = sets.entry_state
    n_equalities = m - sets.row_active.shape[1]
    state[:, n + n_equalities :] = np.where(sets.row_active, EntryState.AT_LOWER, EntryState.FREE)
    return state


def _sides(state: np.ndarray, columns: np.ndarray) -> np.ndarray:
    side = np.zeros(state.shape, np.int8)
    side[state == EntryState.AT_LOWER] = LOWER
    side[state == EntryState.AT_UPPER] = UPPER
    side[state == EntryState.FREE] = BOTH  # left out of a basis: the decision is not a vertex
    np.put_along_axis(side, columns, NONE, axis=1)
    return side


@kernel
def _complete(rows, state, reduced, follow, columns, inverse):
    """Gauss-Jordan elimination of each sample's [A, I]; what becomes of I is the inverse."""
    m, n = rows.shape[1:]
    for b in range(len(state)):
        matrix = rows[b if len(rows) > 1 else 0]
        table = np.zeros((m, n + m))
        for i in range(m):
            size = np.abs(matrix[i]).max()
            size = 1.0 / size if size > 0 else 1.0
            table[i, :n] = matrix[i] * size
            table[i, n + i] = size
        for i in range(m):
            j = _pivot(table[i], state[b], reduced[b], n + i)
            columns[b, i] = j
            if follow:  # go along the row until the reduced cost of j is 0
                reduced[b] -= reduced[b, j] / table[i, j] * table[i]
            table[i] /= table[i, j]
            for k in range(m):
                if k != i and table[k, j] != 0.0:
                    table[k] -= table[k, j] * table[i]
        inverse[b] = table[:, n:]


@kernel
def _pivot(row, state, reduced, logical):
    """The column whose reduced cost is the first to reach 0 along the row; free ones before all."""
    best, least, rank = logical, np.inf, 3
    for j in range(len(row)):
        if state[j] == ARTIFICIAL or abs(row[j]) <= NOTHING:
            continue
        own = 0 if state[j] == _FREE else (2 if state[j] == _FIXED else 1)
        ratio = abs(reduced[j] / row[j]) if own == 1 else 1.0 / abs(row[j])
        if own < rank or (own == rank and ratio < least):
            best, least, rank = j, ratio, own
    return best
