"""Costs less the part that no decision depends on.

All feasible decisions agree on `A_eq x` and on entries whose bounds leave no choice. So adding a
combination of equality rows and of such entries to a cost changes the cost of every decision by
the same amount. What is left after removing that part is the shortest of all costs that decide
alike. Letters: B instances, n entries, m rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import qr

from ..errors import InputError
from ..problems.linear import LinearProgram

LARGEST = 4_000
"""Entries up to which the row space is computed, as a dense matrix."""
RANK = 1e-10
"""Share of the largest row below which a row follows from others."""


def without_lines(problem: LinearProgram, costs: np.ndarray) -> np.ndarray:
    """(B, n) costs, or decisions, less their part along the equality rows and along entries whose
    bounds leave no choice."""
    if problem.n_variables > LARGEST:
        raise InputError(
            f"The row space of A_eq is computed for up to {LARGEST:,} variables; the problem has "
            f"{problem.n_variables:,}."
        )
    fixed = np.broadcast_to(problem.lb == problem.ub, costs.shape)
    result = np.where(fixed, 0.0, costs)
    if problem.eq_rows.n_instances is None and (problem.lb == problem.ub).ndim == 1:
        moving = ~(problem.lb == problem.ub)
        # Slices share the matrices, but their bounds may fix other entries.
        key = f"lines {np.packbits(moving).tobytes().hex()}"
        basis = problem.cached(key, lambda: _row_space(problem, 0, moving))
        result[:, moving] -= (result[:, moving] @ basis) @ basis.T
        return result
    for b, moving in enumerate(~fixed):
        basis = _row_space(problem, b, moving)
        result[b, moving] -= basis @ (basis.T @ result[b, moving])
    return result


def _row_space(problem: LinearProgram, b: int, moving: np.ndarray) -> np.ndarray:
    """(k, r) an orthonormal basis of one instance's equality rows, in the entries that move."""
    rows = problem.eq_rows.matrix(b if problem.eq_rows.n_instances else 0)
    columns = rows.tocsc()[:, np.flatnonzero(moving)].toarray().T
    if 0 in columns.shape:
        return np.zeros((len(columns), 0))
    factors: Any = qr(columns, mode="economic", pivoting=True)
    q, r, _ = factors
    size = np.abs(np.diag(r))
    return q[:, size > RANK * size.max(initial=0.0)]
