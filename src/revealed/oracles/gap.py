"""Whether multipliers prove that decisions of linear programs are the cheapest, for a whole batch.

With multipliers y of the rows (at most 0 for inequalities), d = c - A^T y and bounds taken where
d x is least, y b + d x(bounds) is a lower bound on the cost of every decision. A decision that
costs no more is optimal. A d_j that is small beside c_j counts as 0: the decision is then optimal
for costs that differ by so much. Letters: B instances, n variables, m rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import sparse

if TYPE_CHECKING:
    from .._common.rows import Rows
    from ..problems.linear import LinearProgram

SMALL = 1e-7
"""Of a cost, or of the terms that make up the gap: nothing."""
ROUNDING = 1e-12
"""Of the terms that d_j is made of: nothing."""
DUST = 1e-9
"""Of the largest cost: what a solver's tolerance leaves. Nothing, if no ray profits by it."""


class Gap(NamedTuple):
    """What is left of the proof, for each decision."""

    closed: np.ndarray
    """(B,): the decision costs no more than the lower bound."""
    d: np.ndarray
    """(B, n): reduced costs, 0 where they are rounding."""
    unsupported: np.ndarray
    """(B, n): whether d_j is not 0 and the bound that it needs is missing."""


def duality_gap(problem: LinearProgram, C: np.ndarray, X: np.ndarray, Y: np.ndarray) -> Gap:
    """Costs, decisions (B, n), multipliers (B, m), equalities first."""
    m_eq = problem.eq_rows.shape[0]
    Y = np.hstack([Y[:, :m_eq], np.minimum(Y[:, m_eq:], 0.0)])
    with np.errstate(over="ignore", invalid="ignore"):
        d, terms = C.copy(), np.abs(C)
        for rows, y in ((problem.eq_rows, Y[:, :m_eq]), (problem.ub_rows, Y[:, m_eq:])):
            d -= transposed_times(rows, y)
            terms = terms + transposed_times(rows.magnitude, np.abs(y))
        d[np.abs(d) <= SMALL * np.abs(C) + ROUNDING * terms] = 0.0
        bound = np.where(d > 0, problem.lb, np.where(d < 0, problem.ub, 0.0))
        missing = np.isinf(bound)
        sides = np.where(Y != 0, Y * _sides(problem), 0.0)
        held = np.where(missing | (d == 0), 0.0, d * np.where(missing, 0.0, bound))
        price = C * X
        gap = price.sum(axis=1) - sides.sum(axis=1) - held.sum(axis=1)
        scale = sum(np.abs(part).sum(axis=1) for part in (price, sides, held))
        largest = np.abs(C).max(axis=1, initial=0.0) * np.abs(X).max(axis=1, initial=0.0)
        closed = np.abs(gap) <= SMALL * scale + DUST * largest  # NaN is not
    return Gap(closed, d, missing)


def transposed_times(rows: Rows, Y: np.ndarray) -> np.ndarray:
    """(B, n): each instance's matrix, transposed, times its own row of `Y` (B, m)."""
    if not rows.per_instance:
        return np.ascontiguousarray((rows.matrix().T @ Y.T).T)
    owner = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    nnz = len(rows.indices)
    sums = sparse.csr_array((np.ones(nnz), (rows.indices, np.arange(nnz))), (rows.shape[1], nnz))
    return np.ascontiguousarray((sums @ (rows.data * Y[:, owner]).T).T)


def _sides(problem: LinearProgram) -> np.ndarray:
    """(1 or B, m) right-hand sides, equalities first."""
    b_eq, b_ub = np.atleast_2d(problem.b_eq), np.atleast_2d(problem.b_ub)
    count = max(len(b_eq), len(b_ub))
    return np.hstack([np.broadcast_to(b, (count, b.shape[1])) for b in (b_eq, b_ub)])
