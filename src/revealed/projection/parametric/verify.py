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
from ..cpu.group import SHORT
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


class Doubt(NamedTuple):
    """By how much the errors of a batch may exceed residuals."""

    factor: np.ndarray
    """(B,), at least 1."""

    def hides(self, residual: np.ndarray, tol: float) -> np.ndarray:
        """(B,): whether an answer with this residual may be off by more than tolerances allow."""
        return (self.factor > HOPELESS) | (residual * self.factor > HARMLESS * tol)


def doubt_of(matrix: Rows, give: np.ndarray, n_parameters: int, size: int) -> Doubt:
    """The factors of all instances. A quick bound, the square of the range of all entries, is
    enough where it is harmless; that spares batches in which each instance has a matrix."""
    entries = np.abs(matrix.data)
    soft = np.sqrt(give[give > 0])
    with np.errstate(divide="ignore", over="ignore"):
        known = np.where(entries > 0, entries, np.inf).min(axis=1, initial=np.inf)
        low = np.minimum(known, soft.min(initial=np.inf))
        high = np.maximum(entries.max(axis=1, initial=0.0), soft.max(initial=0.0))
        factor = np.where(high > 0, (high / low) ** 2, 1.0)
    for b in np.flatnonzero(factor > HARMLESS):
        factor[b] = _spread(matrix, b, give, n_parameters)
    return Doubt(np.broadcast_to(np.maximum(factor, 1.0), size))


def _spread(matrix: Rows, b: int, give: np.ndarray, p: int) -> float:
    """By how much an error of parameters may exceed the largest miss, of conditions or of what
    forces leave over.

    In units of conditions and multipliers in which all entries are about 1 errors are like misses,
    but for what no units even out. So the factor is the largest of these units, in those of the
    parameters, times that unevenness. Columns by which soft conditions are missed count as
    parameters, as they are measured too.
    """
    k, n = matrix.shape
    row = np.repeat(np.arange(k), np.diff(matrix.indptr))
    soft = np.flatnonzero(give > 0)
    value = np.concatenate([np.abs(matrix.data[b]), np.sqrt(give[soft])])
    row = np.concatenate([row, soft])
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
    G = own.matrix.matrix(0)
    h = G @ x + own.offset[0]
    terms = abs(G) @ np.abs(x) + np.abs(own.offset[0])
    asked = own.state[0] != EntryState.FIXED
    tight = asked & ((own.state[0] == EntryState.FREE) | (np.abs(h) <= 1e-7 * terms))
    tight |= asked & (own.give > 0) & (own._met(h[None])[0] != h)
    size = max(float(np.linalg.norm(q)), own.size[0])
    yard = max(float(np.linalg.norm(point - q)), SHORT * size, NOTHING)
    free = np.ones(len(x), bool)
    spare = x[p + m_eq :]
    free[p + m_eq :] = own.active[0] & (spare > 1e-9 * np.abs(x).max())
    solved = _system(G, own, q, tight, free)
    if solved is None:
        return np.inf
    found, forces, last = solved
    if last > SETTLED * tol * yard:
        return np.inf
    judged = own.residual(q[None], found[None], forces[None])
    return max(float(judged.residual[0]), float(np.linalg.norm(found[:p] - point)) / yard)


def _system(
    G: Any, own: Conditions, q: np.ndarray, tight: np.ndarray, free: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float] | None:
    """x and forces with tight conditions equal, other forces 0 and multipliers that are not free 0;
    and the length of the last correction of the parameters. None where that cannot be solved."""
    p, columns, rows = own.n_parameters, np.flatnonzero(free), np.flatnonzero(tight)
    part = sparse.csc_array(G[rows][:, columns])
    weight = (columns < p).astype(float)
    give = -own.give[rows]
    K: Any = sparse.bmat(
        [[sparse.diags_array(weight), -part.T], [-part, sparse.diags_array(give)]], format="csc"
    )
    even = _even(K)
    E = sparse.diags_array(even)
    exact = sparse.csc_array(E @ K @ E)
    shift = np.concatenate([np.full(len(columns), SHIFT), np.full(len(rows), -SHIFT)])
    right = even * np.concatenate(
        [np.where(columns < p, np.append(q, 0.0)[np.minimum(columns, p)], 0.0), own.offset[0, rows]]
    )
    try:
        factor = splu(sparse.csc_matrix(exact + sparse.diags_array(shift)))
    except RuntimeError:
        return None
    t, change = np.zeros(len(right)), np.zeros(len(right))
    coordinates = sparse.coo_array(exact)
    entries = coordinates.data.astype(np.longdouble)
    with np.errstate(over="ignore", invalid="ignore"):
        t = t.astype(np.longdouble)
        for _ in range(REFINEMENTS):
            left = right.astype(np.longdouble)
            np.subtract.at(left, coordinates.coords[0], entries * t[coordinates.coords[1]])
            change = factor.solve(left.astype(float))
            t = t + change
    t, change = np.asarray(even * t, float), even * change
    if not (np.isfinite(t).all() and np.isfinite(change).all()):
        return None
    x, forces = np.zeros(len(free)), np.zeros(own.offset.shape[1])
    x[columns], forces[rows] = t[: len(columns)], t[len(columns) :]
    return x, forces, float(np.linalg.norm(change[: len(columns)][columns < p]))


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
