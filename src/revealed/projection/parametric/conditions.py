"""What parameters must obey to explain a decision, for a whole batch, as signs of affine functions.

    h = G x + d,   x = (w, v, mu - margin)      h_j = 0 FREE, >= 0 AT_LOWER, <= 0 AT_UPPER,
                                                anything FIXED,   and the last entries of x >= 0

The first n conditions are those on s = S w + c0 - A_eq^T v + A_ub^T mu, with the margin in d; then
come the limits on parameters and on costs. Conditions of a soft set may be missed at a price.
Letters: B instances, n entries, k conditions, p parameters, N entries of x.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..._common.affine import AffineMap, scaled_identity
from ..._common.rows import Rows, frozen
from ...optimality.active_set import EntryState
from ...optimality.sets import OptimalitySet
from ..constants import SHORT

NOTHING = 1e-100
"""A move this short is 0, where nothing else has a size that it could be compared with."""
EMPTY_PROOF = 1e-7
"""How far multipliers may be from proving that no parameters explain a decision."""


class Limit(NamedTuple):
    """Bounds on some entries of an affine function of w."""

    map: AffineMap
    picked: np.ndarray
    """(c,) the entries that are bounded in any instance."""
    bound: np.ndarray
    """(1 or B, c)"""
    state: EntryState
    """AT_LOWER for lower bounds, AT_UPPER for upper ones."""


@dataclass(frozen=True, eq=False)
class Conditions:
    """The conditions of a batch of sets of rows, signs and boxes."""

    n_parameters: int
    n_equalities: int
    matrix: Rows
    """G, (k, N), from `matrix_of`."""
    active: np.ndarray
    """(B, m_ub) which inequalities are active."""
    least: np.ndarray
    """(B, m_ub): the least multipliers of inequalities."""
    offset: np.ndarray
    """(B, k): d."""
    state: np.ndarray
    """(B, k) EntryState codes."""
    give: np.ndarray
    """(k,): by how much a condition yields to a unit of force, 1 / soft; 0 for hard ones."""
    size: np.ndarray
    """(B,): what moves are short against, where parameters are not larger."""

    @classmethod
    def of(cls, sets: OptimalitySet, matrix: Rows) -> Conditions:
        """The conditions of `sets`, with G from `matrix_of`."""
        gradient, n = _gradient(sets), sets.rows.n_variables
        pull = sets.margins[:, None]
        low, high = (sets.entry_state == s for s in (EntryState.AT_LOWER, EntryState.AT_UPPER))
        least = pull * sets.row_active
        lifted = _transposed_times(sets.rows.ub_rows, least)
        own = gradient.offset + lifted - pull * (low.astype(float) - high)
        parts = [_of_limit(limit, len(sets)) for limit in _limits(sets)]
        offset = np.hstack([own, *(offset for offset, _ in parts)])
        give = np.zeros(offset.shape[1])
        if sets.soft is not None:
            give[:n] = 1.0 / sets.soft
        known = np.abs(np.atleast_2d(gradient.offset)).max(axis=1, initial=0.0)
        return cls(
            n_parameters=sets.n_parameters,
            n_equalities=sets.rows.eq_rows.shape[0],
            matrix=matrix,
            active=sets.row_active,
            least=least,
            offset=offset,
            state=np.hstack([sets.entry_state, *(state for _, state in parts)]),
            give=give,
            size=np.maximum(sets.margins, known),
        )

    def times(self, x: np.ndarray) -> np.ndarray:
        """(B, k): G x + d."""
        return self.matrix.times(x) + self.offset

    def residual(self, q: np.ndarray, x: np.ndarray, forces: np.ndarray) -> Judged:
        """How far x (B, N) and forces (B, k) of the conditions are from the answer for q (B, p).

        The same misses as in `conic.residual_of`: conditions unmet, gradient left over and the
        smaller of slack and force, against the length of the move; the products of slacks and
        forces against its square. A move that is nothing leaves nothing to gain, whatever the last
        three say.
        """
        p = self.n_parameters
        y = self.allowed(forces)
        slack = self.times(x) + self.give * y
        inside = self._met(slack)
        spare = x[:, p + self.n_equalities :]
        unmet = np.maximum(_largest(slack - inside), _largest(spare.clip(max=0)))
        pull = self._pull(y)
        hold = (-pull[:, p + self.n_equalities :]).clip(min=0)
        move = x[:, :p] - q
        pull[:, :p] -= move
        pull[:, p + self.n_equalities :] += hold
        gap = np.abs((inside * y).sum(axis=1) + (spare.clip(min=0) * hold).sum(axis=1))
        both = _largest(np.minimum(np.abs(inside), np.abs(y)))
        moved = np.sqrt((move**2).sum(axis=1) + (self.give * y**2).sum(axis=1))
        size = np.maximum(np.linalg.norm(q, axis=1), self.size)
        denominator = np.maximum(np.maximum(moved, SHORT * size), NOTHING)
        missed = np.maximum(np.maximum(_largest(pull), both) / denominator, gap / denominator**2)
        to_gain = np.minimum(missed, moved / denominator)
        return Judged(np.maximum(unmet / denominator, to_gain), moved)

    def prove_empty(self, q: np.ndarray, forces: np.ndarray) -> np.ndarray:
        """(B,): whether forces (B, k) show that nothing obeys hard conditions: they leave every x
        where it is, and still push d the wrong way."""
        y = self.allowed(forces) * (self.give == 0)
        pull = self._pull(y)
        start = self.n_parameters + self.n_equalities
        pull[:, start:] = pull[:, start:].clip(min=0)
        size = np.maximum(np.abs(q).max(axis=1, initial=0.0), self.size)
        below = -(self.offset * y).sum(axis=1) / np.where(size > 0, size, 1.0)
        return (below > 0) & (_largest(pull) <= EMPTY_PROOF * below)

    def take(self, index: np.ndarray) -> Conditions:
        """Those of the chosen instances."""
        names = ("active", "least", "offset", "state", "size")
        parts = {name: getattr(self, name)[index] for name in names}
        return replace(self, matrix=self.matrix.take(index), **parts)

    def allowed(self, forces: np.ndarray) -> np.ndarray:
        """(B, k): forces with the signs that the states leave them; FIXED none, FREE any."""
        low = np.where(self.state & EntryState.AT_LOWER, 0.0, -np.inf)
        return np.clip(forces, low, np.where(self.state & EntryState.AT_UPPER, 0.0, np.inf))

    def _met(self, values: np.ndarray) -> np.ndarray:
        """(B, k): the nearest values that meet the conditions; FIXED any, FREE 0."""
        low = np.where(self.state & EntryState.AT_UPPER, -np.inf, 0.0)
        return np.clip(values, low, np.where(self.state & EntryState.AT_LOWER, np.inf, 0.0))

    def _pull(self, y: np.ndarray) -> np.ndarray:
        """(B, N): G^T y, 0 for rows that do not bind."""
        pull = _transposed_times(self.matrix, y)
        pull[:, self.n_parameters + self.n_equalities :] *= self.active
        return pull


class Judged(NamedTuple):
    """What `Conditions.residual` finds."""

    residual: np.ndarray
    """(B,)"""
    distance: np.ndarray
    """(B,)"""


def matrix_of(sets: OptimalitySet) -> Rows:
    """G, (k, N): shared, or one for each instance."""
    rows, p, m = sets.rows, sets.n_parameters, sets.rows.eq_rows.shape[0]
    eq, ub = _triplets(rows.eq_rows), _triplets(rows.ub_rows)
    blocks = [_triplets(_gradient(sets).rows), (eq[1], p + eq[0], -eq[2])]
    blocks.append((ub[1], p + m + ub[0], ub[2]))
    start = rows.n_variables
    for limit in _limits(sets):
        row, column, data = _triplets(limit.map.rows)
        place = np.full(limit.map.rows.shape[0], -1)
        place[limit.picked] = start + np.arange(len(limit.picked))
        kept = place[row] >= 0
        blocks.append((place[row[kept]], column[kept], data[:, kept]))
        start += len(limit.picked)
    return rows_from(blocks, (start, p + m + rows.ub_rows.shape[0]))


def is_shared(sets: OptimalitySet) -> bool:
    """Whether all instances have one matrix."""
    parts = [sets.rows.eq_rows, sets.rows.ub_rows, _gradient(sets).rows]
    parts += [] if sets.form is None else [sets.form.map.rows]
    return not any(part.per_instance for part in parts)


Triplets = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Row and column of each entry, and (1 or B, nnz) values."""


def rows_from(blocks: list[Triplets], shape: tuple[int, int]) -> Rows:
    """Rows from entries in any order, none of them twice."""
    row, column = (np.concatenate([block[i] for block in blocks]) for i in (0, 1))
    lines = max(len(block[2]) for block in blocks)
    data = np.hstack([np.broadcast_to(d, (lines, d.shape[1])) for _, _, d in blocks])
    order = np.lexsort((column, row))
    indptr = np.searchsorted(row[order], np.arange(shape[0] + 1))
    return Rows(
        shape,
        frozen(indptr.astype(np.int64)),
        frozen(column[order].astype(np.int64)),
        frozen(np.ascontiguousarray(data[:, order])),
        lines > 1,
    )


def _triplets(rows: Rows) -> Triplets:
    owner = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    return owner, rows.indices, rows.data


def _transposed_times(rows: Rows, y: np.ndarray) -> np.ndarray:
    """(B, n): each instance's matrix, transposed, times its own row of y (B, m)."""
    if not rows.per_instance:
        return np.ascontiguousarray((rows.matrix().T @ y.T).T)
    return AffineMap(rows, np.zeros(rows.shape[0])).adjoint(y)


def _gradient(sets: OptimalitySet) -> AffineMap:
    n = sets.rows.n_variables
    return sets.gradient or scaled_identity(n, 1.0, np.zeros(n))


def _limits(sets: OptimalitySet) -> list[Limit]:
    form = sets.form
    if form is None or not form.is_limited:
        return []
    plain = scaled_identity(form.n_parameters, 1.0, np.zeros(form.n_parameters))
    lower, upper = EntryState.AT_LOWER, EntryState.AT_UPPER
    kinds = ((plain, lower), (plain, upper), (form.map, lower), (form.map, upper))
    found = []
    for (own, state), bound, finite in zip(kinds, form.bounds, form.is_finite, strict=True):
        picked = np.flatnonzero(finite)
        if picked.size:
            found.append(Limit(own, picked, np.atleast_2d(bound)[:, picked], state))
    return found


def _of_limit(limit: Limit, size: int) -> tuple[np.ndarray, np.ndarray]:
    """(B, c) offsets and states."""
    there = np.isfinite(limit.bound)
    base = np.atleast_2d(limit.map.offset)[:, limit.picked]
    offset = np.where(there, base - np.where(there, limit.bound, 0.0), 0.0)
    state = np.where(there, limit.state, EntryState.FIXED).astype(np.int8)
    shape = (size, len(limit.picked))
    return np.broadcast_to(offset, shape), np.broadcast_to(state, shape)


def _largest(values: np.ndarray) -> np.ndarray:
    return np.abs(values).max(axis=1, initial=0.0)
