"""Feasible points near a decision at which given constraints hold with equality.

Letters: B decisions, n entries, m_ub inequality rows.
"""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..problems.linear import LinearProgram, row_scale, unit_of

SLIGHT = 1e-9
"""Relative: what rounding in double precision may leave."""
TRIED = 500
"""Sets of candidates that are tried one by one for a decision."""
LARGEST = 4_000_000
"""Entries of the equations that are solved as a dense matrix; larger ones go to the oracle."""


class Candidates(NamedTuple):
    """Constraints that may hold with equality at the decisions that were meant."""

    half_unit: np.ndarray
    """(n,) how far an entry may be off, or (B, n)."""
    at_lower: np.ndarray
    """(B, n) entries that may be at their lower bound; `at_upper` likewise."""
    at_upper: np.ndarray
    rows: np.ndarray
    """(B, m_ub) inequality rows that may be active."""

    def take(self, index: np.ndarray) -> Candidates:
        half = self.half_unit if self.half_unit.ndim == 1 else self.half_unit[index]
        return Candidates(half, self.at_lower[index], self.at_upper[index], self.rows[index])


def find_candidates(problem: LinearProgram, X: np.ndarray, half_unit: np.ndarray) -> Candidates:
    """Bounds and rows of decisions (B, n) that are within what `half_unit` (n,) lets them move."""
    allowed = _entry_reach(X, half_unit)
    with np.errstate(invalid="ignore"):
        below, above = np.abs(X - problem.lb), np.abs(problem.ub - X)
        at_lower, at_upper = below <= allowed, above <= allowed
    both = at_lower & at_upper
    at_lower &= ~both | (below <= above)
    at_upper &= ~both | (above < below)
    rows = problem.ub_rows
    if not rows.shape[0]:
        return Candidates(half_unit, at_lower, at_upper, np.zeros((len(X), 0), bool))
    scale = row_scale(rows, problem.b_ub, X, unit_of(problem, X))
    reach = rows.magnitude.times(allowed) + SLIGHT * scale
    with np.errstate(invalid="ignore"):
        near = np.abs(problem.b_ub - rows.times(X)) <= reach
    return Candidates(half_unit, at_lower, at_upper, near & np.isfinite(problem.b_ub))


def _entry_reach(X: np.ndarray, half_unit: np.ndarray) -> np.ndarray:
    """(B, n) how far each entry may be off, the last bits included."""
    return half_unit * (1.0 + 1e-6) + SLIGHT * np.maximum(np.abs(X), 1.0)


def nearest_at(
    problem: LinearProgram, X: np.ndarray, near: Candidates
) -> tuple[np.ndarray, np.ndarray]:
    """The nearest points at which all candidates hold with equality, NaN where there is none
    within reach, and (B,) whether these are vertices. Distances count in units of `half_unit`."""
    found, vertex = np.full(X.shape, np.nan), np.zeros(len(X), bool)
    pattern = np.hstack([near.at_lower, near.at_upper, near.rows])
    _, first, which = np.unique(pattern, axis=0, return_index=True, return_inverse=True)
    own = problem.eq_rows.per_instance or problem.ub_rows.per_instance
    groups = [np.array([b]) for b in range(len(X))] if own else _groups(which.ravel(), len(first))
    for group in groups:
        found[group], vertex[group] = _nearest(problem[group], X[group], near.take(group))
    return found, vertex


def _groups(which: np.ndarray, size: int) -> list[np.ndarray]:
    order = np.argsort(which, kind="stable")
    return np.split(order, np.searchsorted(which[order], np.arange(1, size)))


def _nearest(problem: LinearProgram, X: np.ndarray, near: Candidates) -> tuple[np.ndarray, bool]:
    """`nearest_at` for decisions with one matrix and the same candidates."""
    held = near.at_lower[0] | near.at_upper[0]
    point = np.where(near.at_lower, problem.lb, np.where(near.at_upper, problem.ub, X))
    free, active = np.flatnonzero(~held), near.rows[0]
    rows: Any = sparse.vstack([problem.eq_rows.matrix(0), problem.ub_rows.matrix(0)[active]], "csr")
    sides = [np.broadcast_to(b, (len(X), b.shape[-1])) for b in (problem.b_eq, problem.b_ub)]
    side = np.hstack([sides[0], sides[1][:, active]])
    if rows.shape[0] * len(free) > LARGEST:
        return np.full(X.shape, np.nan), False
    rank, good = 0, np.ones(len(X), bool)
    if rows.shape[0]:
        largest: Any = abs(rows).max(axis=1)
        size = np.maximum(largest.toarray().ravel(), np.finfo(float).tiny)
        rows, side = sparse.diags_array(1.0 / size) @ rows, side / size
        weight = _weights(np.atleast_2d(near.half_unit)[0])[free]
        matrix = rows[:, free].toarray() * weight
        step, _, rank, _ = np.linalg.lstsq(matrix, (side - (rows @ point.T).T).T, rcond=1e-10)
        point[:, free] += (step * weight[:, None]).T
        scale = np.abs(side) + (abs(rows) @ np.abs(point).T).T + 1.0
        good = (np.abs(side - (rows @ point.T).T) <= SLIGHT * scale).all(axis=1)
    good &= (np.abs(point - X) <= _entry_reach(X, near.half_unit)).all(axis=1)
    return np.where(good[:, None], point, np.nan), bool(rank >= len(free))


def _weights(half_unit: np.ndarray) -> np.ndarray:
    """(n,) what a step of one is in each entry; an exact entry hardly moves."""
    largest = half_unit.max(initial=0.0) or 1.0
    return np.maximum(half_unit / largest, 1e-6)


def by_enumeration(
    problem: LinearProgram, X: np.ndarray, near: Candidates
) -> tuple[np.ndarray, np.ndarray]:
    """Vertices at which all candidates but a few are active, for decisions with more of them than
    a vertex needs: of those within reach the one with the least slack. (B, n), NaN where there is
    none, and (B,) whether there is one."""
    found = np.full(X.shape, np.nan)
    needed = problem.n_variables - equality_rank(problem)
    for group in _alike(problem, X):
        b = group[:1]
        held = np.hstack([near.at_lower[b], near.at_upper[b], near.rows[b]])[0]
        there = np.flatnonzero(held)
        spare = len(there) - needed
        if spare < 1 or comb(len(there), spare) > TRIED:
            continue
        tried = np.array([held] * comb(len(there), spare))
        for k, dropped in enumerate(combinations(there, spare)):
            tried[k, list(dropped)] = False
        found[group] = _best(problem[b], X[b], near.take(b), tried)
    return found, np.asarray(np.isfinite(found).all(axis=1))


def _best(problem: LinearProgram, x: np.ndarray, near: Candidates, tried: np.ndarray) -> np.ndarray:
    """Of the vertices at which one of the sets `tried` (k, 2n + m_ub) is active, that with the
    least slack of all candidates of the decision x (1, n); NaN where none is feasible."""
    n, index = x.shape[1], np.zeros(len(tried), int)
    half = np.atleast_2d(near.half_unit)[0]
    some = Candidates(half, tried[:, :n], tried[:, n : 2 * n], tried[:, 2 * n :])
    points, vertex = nearest_at(problem[index], np.repeat(x, len(tried), axis=0), some)
    good = vertex & np.isfinite(points).all(axis=1)
    good[good] = _feasible(problem[index[good]], points[good])
    if not good.any():
        return np.full(n, np.nan)
    slack = points[good] @ _slack_costs(problem, near)[0]
    return points[good][np.argmin(slack)]


def _feasible(problem: LinearProgram, points: np.ndarray) -> np.ndarray:
    return np.asarray(problem.constraint_violation(points)) <= 10 * SLIGHT


def _alike(problem: LinearProgram, X: np.ndarray) -> list[np.ndarray]:
    """Decisions that are the same and have the same constraints, group by group."""
    if problem.n_instances is not None:
        return [np.array([b]) for b in range(len(X))]
    _, first, which = np.unique(X, axis=0, return_index=True, return_inverse=True)
    return _groups(which.ravel(), len(first))


def equality_rank(problem: LinearProgram) -> int:
    """The rank of the equality rows, or their number where that is too large to compute."""
    m, n = problem.eq_rows.shape
    if not m or problem.eq_rows.per_instance or max(m, n) > 2_000:
        return m

    def rank() -> int:
        return int(np.linalg.matrix_rank(problem.eq_rows.matrix(0).toarray()))

    return problem.cached("equality rank", rank)


def by_linear_program(
    problem: LinearProgram, X: np.ndarray, near: Candidates
) -> tuple[np.ndarray, np.ndarray]:
    """Minimize the sum of the candidates' slacks, each in units of its reach, over the feasible
    points within reach of the decisions. The points (B, n), NaN where there is none, and (B,)
    whether they are vertices."""
    allowed = _entry_reach(X, near.half_unit)
    low, high = np.maximum(problem.lb, X - allowed), np.minimum(problem.ub, X + allowed)
    outside = (low > high).any(axis=1)
    boxed = _boxed(problem, np.minimum(low, high), high)
    answer = boxed.solve(_slack_costs(problem, near))
    there = np.asarray(answer.optimal) & ~outside
    point = np.where(there[:, None], np.asarray(answer.x), np.nan)
    again, vertex = nearest_at(problem, X, _active(problem, point, near))
    keep = there & np.isfinite(again).all(axis=1)
    keep[keep] = _feasible(problem[np.flatnonzero(keep)], again[keep])
    return np.where(keep[:, None], again, point), vertex & keep


def _slack_costs(problem: LinearProgram, near: Candidates) -> np.ndarray:
    """(B, n) costs whose minimum makes the sum of the candidates' slacks smallest."""
    unit = np.maximum(near.half_unit, SLIGHT)
    costs = (near.at_lower.astype(float) - near.at_upper) / unit
    rows = problem.ub_rows
    if rows.shape[0]:
        reach = rows.magnitude.times(np.broadcast_to(unit, costs.shape))
        weights = near.rows / np.where(reach > 0, reach, 1.0)
        for b in np.flatnonzero(near.rows.any(axis=1)):
            costs[b] -= weights[b] @ rows.matrix(int(b) if rows.per_instance else 0)
    return costs * unit.min()


def _boxed(problem: LinearProgram, low: np.ndarray, high: np.ndarray) -> LinearProgram:
    """The same rows with bounds of their own for each decision."""
    eq, ub = problem.eq_rows.shape[0], problem.ub_rows.shape[0]
    return LinearProgram(
        A_eq=problem.A_eq if eq else None,
        b_eq=problem.b_eq if eq else None,
        A_ub=problem.A_ub if ub else None,
        b_ub=problem.b_ub if ub else None,
        lb=low,
        ub=high,
    )


def _active(problem: LinearProgram, point: np.ndarray, near: Candidates) -> Candidates:
    """The candidates that hold with equality at points (B, n)."""
    x = np.where(np.isfinite(point), point, 0.0)
    slight = 10 * SLIGHT * np.maximum(np.abs(x), 1.0)
    with np.errstate(invalid="ignore"):
        at_lower = near.at_lower & (np.abs(x - problem.lb) <= slight)
        at_upper = near.at_upper & (np.abs(problem.ub - x) <= slight)
    rows, active = problem.ub_rows, near.rows
    if rows.shape[0]:
        scale = row_scale(rows, problem.b_ub, x, unit_of(problem, x))
        active = near.rows & (np.abs(problem.b_ub - rows.times(x)) <= 10 * SLIGHT * scale)
    return Candidates(near.half_unit, at_lower, at_upper, active)
