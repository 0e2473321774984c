"""Whether residuals of nearest parameters can be trusted, and what to do where they cannot.

Residuals hold misses against the length of the move. Conditions whose entries have very different
sizes may turn a miss of 1e-12 into parameters that are wrong by half: `spread` is the factor by
which that may happen. Where residual times spread is not small, a small set is solved again in
exact arithmetic (`exact`), which also proves that a set is empty. A larger one is solved again as
the linear system of what binds; it stays solved if its parameters hardly change (`confirm`).

Letters: B instances, k conditions, p parameters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from ...optimality.active_set import EntryState
from ..constants import SHORT
from ..cpu.spread import HARMLESS, HOPELESS
from .conditions import NOTHING, Conditions
from .exact import ExactParameters, exact_parameters

if TYPE_CHECKING:
    from ..._common.rows import Rows

ROUNDS = 20
"""Turns between conditions and columns; the scales need only be right to a factor or two."""
REFINEMENTS = 30
SHIFT = 1e-12
"""What makes the system of rows that repeat each other solvable."""
SETTLED = 1e-2
"""The last correction may change parameters by this share of the tolerance."""
LARGEST_SYSTEM = 3000
BEYOND_FLOATS = 1e14
"""A factor from which not even the system of what binds can be solved to a digit."""
NEAR = 1e-7
"""A condition this near to being tight, relative to its terms, is taken to be at first."""
SIGN = 1e-13
"""What a sum may be on the wrong side of 0, relative to its terms: rounding."""
EQUAL = 1e-12
"""What a sum that must be 0 may be off, relative to its terms."""
CHANGES = 6
"""Times that what binds may be corrected."""


class Doubt(NamedTuple):
    """By how much the errors of a batch may exceed residuals."""

    factor: np.ndarray
    """(1 or B,), at least 1."""

    def over(self, size: int) -> Doubt:
        """The same for a batch of this size."""
        return Doubt(np.broadcast_to(self.factor, size))

    def hides(self, residual: np.ndarray, tol: float) -> np.ndarray:
        """(B,): whether an answer with this residual may be off by more than tolerances allow."""
        return (self.factor > HOPELESS) | (residual * self.factor > HARMLESS * tol)


def doubt_of(matrix: Rows, n_soft: int, give: float, n_parameters: int) -> Doubt:
    """The factors of conditions G (k, N), the first `n_soft` of which yield by `give` to a unit of
    force. A quick bound, the square of the range of all entries, is enough where it is harmless;
    that spares batches in which each instance has a matrix of its own."""
    entries, soft = np.abs(matrix.data), np.full(n_soft if give else 0, np.sqrt(give))
    with np.errstate(divide="ignore", over="ignore"):
        known = np.where(entries > 0, entries, np.inf).min(axis=1, initial=np.inf)
        low = np.minimum(known, soft.min(initial=np.inf))
        high = np.maximum(entries.max(axis=1, initial=0.0), soft.max(initial=0.0))
        factor = np.where(high > 0, (high / low) ** 2, 1.0)
    for b in np.flatnonzero(factor > HARMLESS):
        factor[b] = _spread(matrix, int(b), soft, n_parameters)
    return Doubt(np.maximum(factor, 1.0))


def _spread(matrix: Rows, b: int, soft: np.ndarray, p: int) -> float:
    """By how much an error of parameters may exceed the largest miss, of conditions or of what
    forces leave over.

    In units of conditions and multipliers in which all entries are about 1 errors are like misses,
    but for what no units even out. So the factor is the largest of these units, in those of the
    parameters, times that unevenness. Columns by which soft conditions are missed count as
    parameters, as they are measured too.
    """
    k, n = matrix.shape
    row = np.repeat(np.arange(k), np.diff(matrix.indptr))
    value = np.concatenate([np.abs(matrix.data[b]), soft])
    row = np.concatenate([row, np.arange(len(soft))])
    column = np.concatenate([matrix.indices, n + np.arange(len(soft))])
    there = value > 0
    logs, row, column = np.log(value[there]), row[there], column[there]
    width = n + len(soft)
    in_row, in_column = np.bincount(row, minlength=k), np.bincount(column, minlength=width)
    measured = np.flatnonzero(((np.arange(width) < p) | (np.arange(width) >= n)) & (in_column > 0))
    if not measured.size:
        return 1.0
    by_row, by_column = np.zeros(k), np.zeros(width)
    for _ in range(ROUNDS):
        by_row = np.bincount(row, logs + by_column[column], minlength=k) / -in_row.clip(1)
        by_column = np.bincount(column, logs + by_row[row], minlength=width) / -in_column.clip(1)
    uneven = np.abs(logs + by_row[row] + by_column[column]).max()
    unit = by_column[measured].max()
    conditions, others = by_row[in_row > 0] + unit, by_column[in_column > 0] - unit
    largest = max(conditions.max(), others.max(), 0.0)
    return float(np.exp(min(largest + np.ptp(by_column[measured]) + uneven, 700.0)))


def settle_exactly(own: Conditions, q: np.ndarray) -> ExactParameters | None:
    """The answer for one instance with the multipliers of its rows, margins included."""
    found = exact_parameters(own, q)
    if found is None or found.empty:
        return found
    multipliers = found.multipliers
    multipliers[own.n_equalities :] += own.least[0]
    return found._replace(multipliers=multipliers)


def confirm(
    own: Conditions, q: np.ndarray, point: np.ndarray, multipliers: np.ndarray, tol: float
) -> float:
    """A residual for parameters (p,) of one instance, inf where nothing is confirmed: what they
    change by when the system of what binds there is solved to the last digits, and what is left
    of the conditions then."""
    p, m_eq = own.n_parameters, own.n_equalities
    x = np.concatenate([point, multipliers])
    x[p + m_eq :] -= own.least[0]
    if not np.isfinite(x).all() or len(x) + own.offset.shape[1] > LARGEST_SYSTEM:
        return np.inf
    G, state = own.matrix.matrix(0), own.state[0]
    size = max(float(np.linalg.norm(q)), own.size[0])
    denominator = max(float(np.linalg.norm(point - q)), SHORT * size, NOTHING)
    asked, equal = state != EntryState.FIXED, state == EntryState.FREE
    side = np.where(state == EntryState.AT_UPPER, -1.0, 1.0)
    h, terms = _values(G, x, own.offset[0])
    tight = asked & (equal | (np.abs(h) <= NEAR * terms) | (side * h < 0))
    rows = np.arange(len(x)) >= p + m_eq
    free = ~rows
    free[rows] = own.active[0] & (x[rows] > NEAR * np.abs(x).max())
    for _ in range(CHANGES):
        solved = _system(own, q, tight, free, x)
        if solved is None or solved[2] > SETTLED * tol * denominator:
            return np.inf
        x, forces, _ = solved
        h, terms = _values(G, x, own.offset[0] + own.give * forces)
        pull, pulls = _values(G.T, forces, 0.0)
        broken = asked & ~tight & (side * h < -SIGN * terms)
        loose = tight & ~equal & (side * forces < 0)
        held = rows & ~free & np.append(np.zeros(p + m_eq, bool), own.active[0])
        short = held & (pull > SIGN * pulls)
        below = rows & free & (x < 0)
        if not (broken | loose).any() and not (short | below).any():
            if float(np.linalg.norm(x[:p] - q)) <= SETTLED * tol * denominator:
                forces, pull = np.zeros(len(forces)), np.zeros(len(pull))  # nothing pushes
            pulls = pulls + abs(G).T @ np.full(len(forces), np.abs(forces).max(initial=0.0))
            exact = (np.abs(h) <= EQUAL * terms)[tight & (own.give == 0)].all()
            if not (
                exact and (np.abs(pull) <= EQUAL * pulls)[(np.arange(len(x)) >= p) & free].all()
            ):
                return np.inf
            judged = own.residual(q[None], x[None], forces[None])
            return max(
                float(judged.residual[0]), float(np.linalg.norm(x[:p] - point)) / denominator
            )
        tight, free = (tight | broken) & ~loose, (free | short) & ~below
    return np.inf


def _values(A: Any, x: np.ndarray, offset: Any) -> tuple[np.ndarray, np.ndarray]:
    """A x + offset, and the size of the terms of each sum."""
    return A @ x + offset, abs(A) @ np.abs(x) + np.abs(offset)


def _system(
    own: Conditions, q: np.ndarray, tight: np.ndarray, free: np.ndarray, start: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float] | None:
    """x and forces with tight conditions equal, other forces 0 and multipliers that are not free 0;
    and the length of the last correction of the parameters. None where that cannot be solved.

    Multipliers of rows are often not unique. Corrections of those at the `start` leave them as they
    were in directions that change nothing, so that they still obey what is not tight.
    """
    p, columns, rows = own.n_parameters, np.flatnonzero(free), np.flatnonzero(tight)
    part: Any = sparse.csr_array(own.matrix.matrix(0))[rows][:, columns]
    is_parameter = columns < p
    K: Any = sparse.bmat(
        [
            [sparse.diags_array(is_parameter.astype(float)), -part.T],
            [-part, sparse.diags_array(-own.give[rows])],
        ],
        format="csc",
    )
    even = _even(K)
    scaled: Any = sparse.diags_array(even)
    exact = sparse.csc_array(scaled @ K @ scaled)
    shift = np.concatenate([np.full(len(columns), SHIFT), np.full(len(rows), -SHIFT)])
    wanted = np.zeros(len(columns))
    wanted[is_parameter] = q[columns[is_parameter]]
    right = np.asarray(even * np.concatenate([wanted, own.offset[0, rows]]), np.longdouble)
    try:
        factor = splu(sparse.csc_matrix(exact + sparse.diags_array(shift)))
    except RuntimeError:
        return None
    entries = sparse.coo_array(exact)
    values, (line, place) = entries.data.astype(np.longdouble), entries.coords
    t = np.asarray(np.concatenate([start[columns], np.zeros(len(rows))]) / even, np.longdouble)
    change = np.zeros(len(t))
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(REFINEMENTS):
            left = right.copy()
            np.subtract.at(left, line, values * t[place])
            change = factor.solve(np.asarray(left, float))
            t = t + change
    t, change = np.asarray(even * t, float), even * change
    if not (np.isfinite(t).all() and np.isfinite(change).all()):
        return None
    x, forces = np.zeros(len(free)), np.zeros(own.offset.shape[1])
    x[columns], forces[rows] = t[: len(columns)], t[len(columns) :]
    return x, forces, float(np.linalg.norm(change[: len(columns)][is_parameter]))


def _even(K: Any) -> np.ndarray:
    """(N,) scales that bring the rows of a symmetric matrix near size 1."""
    even, size = np.ones(K.shape[0]), abs(sparse.coo_array(K))
    for _ in range(8):
        largest = np.zeros(K.shape[0])
        np.maximum.at(
            largest,
            size.coords[0],
            size.data * even[size.coords[0]] * even[size.coords[1]],
        )
        even /= np.sqrt(np.where(largest > 0, largest, 1.0))
    return even
