"""The slow reference: the definition, word for word, solved by non-negative least squares.

The set is a shifted cone, c0 + span(lines) + cone(rays): rows of A_eq and unit vectors of fixed
entries are lines; unit vectors of entries at a bound and the binding inequality rows are rays.
Taking the lines out by an orthonormal basis leaves min |G y - f| over y >= 0, which the classical
active-set method of Lawson and Hanson (scipy's `nnls`) solves exactly. Dense, one instance at a
time, a different method from the kernel's: what the tests trust.
"""

from typing import Any

import numpy as np
from scipy.linalg import lstsq, qr
from scipy.optimize import nnls

from ...optimality.sets import EntryState, OptimalitySet


def reference_projection(
    sets: OptimalitySet, cost: np.ndarray, b: int
) -> tuple[np.ndarray, np.ndarray]:
    """Nearest point of set `b` to `cost` (n,), and its multipliers (m_eq + m_ub,), in plain
    float64."""
    scale = max(np.abs(cost).max(initial=0.0), sets.margins[b]) or 1.0
    q, margin = cost / scale, sets.margins[b] / scale
    problem, state = sets.rows[np.array([b])], sets.entry_state[b]
    eq, ub = (rows.matrix(0).toarray() for rows in (problem.eq_rows, problem.ub_rows))
    lengths = np.linalg.norm(eq, axis=1)
    eq = eq / np.where(lengths > 0, lengths, 1.0)[:, None]
    active = np.flatnonzero(sets.row_active[b])
    unit = np.eye(len(q))
    rays = np.vstack(
        [unit[state == EntryState.AT_LOWER], -unit[state == EntryState.AT_UPPER], -ub[active]]
    ).T
    lines = np.vstack([eq, unit[state == EntryState.FIXED]]).T
    inside, outside = _split(lines)
    base = margin * rays.sum(axis=1)
    reduced = outside.T @ rays
    # A ray that is also a line (an inequality repeating an equality) leaves nothing but rounding.
    reduced[:, np.linalg.norm(reduced, axis=0) <= 1e-12 * np.linalg.norm(rays, axis=0)] = 0.0
    y = _nonnegative_least_squares(reduced, outside.T @ (q - base))
    along = inside @ (inside.T @ (q - base - rays @ y))
    point = base + rays @ y + along
    multipliers = np.zeros(len(eq) + len(ub))
    choice = state != EntryState.FIXED
    if len(eq):
        fit: Any = lstsq(eq[:, choice].T, along[choice], lapack_driver="gelsd")
        multipliers[: len(eq)] = fit[0] / np.where(lengths > 0, lengths, 1.0)
    if len(active):
        multipliers[len(eq) + active] = margin + y[len(y) - len(active) :]
    return point * scale, multipliers * scale


def _split(lines: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Orthonormal bases of the span of the columns and of its complement."""
    if lines.shape[1] == 0:
        return np.zeros((len(lines), 0)), np.eye(len(lines))
    factors: Any = qr(lines, pivoting=True)
    q, diagonal = factors[0], np.abs(np.diag(factors[1]))
    rank = int((diagonal > 1e-12 * max(diagonal.max(initial=0.0), 1e-300)).sum())
    return q[:, :rank], q[:, rank:]


def _nonnegative_least_squares(G: np.ndarray, f: np.ndarray) -> np.ndarray:
    if G.shape[1] == 0 or G.shape[0] == 0:
        return np.zeros(G.shape[1])
    return nnls(G, f, maxiter=30 * G.shape[1])[0]
