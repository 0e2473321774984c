"""Quadratic programs by scipy alone: the point of least length in a polyhedron.

With P = L L^T and y = L^T x + L^-1 q the objective is 1/2 |y|^2 plus a constant, and the nearest
point of {G y >= h} to 0 follows from one non-negative least-squares problem (Lawson and Hanson,
chapter 23): with u >= 0 that minimizes |(G, h)^T u - (0, 1)| and r what is left over,
y = -r_1..n / r_n+1, and the polyhedron is empty if nothing is. Exact, dense, for one instance.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import cho_factor, solve_triangular
from scipy.optimize import nnls

from ..problems.solution import SolveStatus

EMPTY = 1e-10
"""A rest this small means that the rows contradict each other."""


def by_least_distance(
    P: np.ndarray, q: np.ndarray, A: Any, b: np.ndarray, n_equal: int
) -> tuple[SolveStatus, np.ndarray, np.ndarray]:
    """min 1/2 x^T P x + q x with A x <= b, the first `n_equal` rows equal; P positive definite.

    The answer and the multipliers of the rows, with P x + q + A^T z = 0.
    """
    nothing = np.full(len(q), np.nan), np.full(len(b), np.nan)
    try:
        L = np.tril(cho_factor(P, lower=True)[0])
    except np.linalg.LinAlgError:
        return SolveStatus.FAILED, *nothing
    shift = solve_triangular(L, q, lower=True)
    rows = np.asarray(A.toarray() if hasattr(A, "toarray") else A)
    G = -solve_triangular(L, rows.T, lower=True).T
    h = G @ shift - b
    G, h = np.vstack([G, -G[:n_equal]]), np.concatenate([h, -h[:n_equal]])
    E, f = np.vstack([G.T, h]), np.zeros(len(q) + 1)
    f[-1] = 1.0
    try:
        u = nnls(E, f, maxiter=50 * E.shape[1] + 100)[0]
    except RuntimeError:  # nnls at its limit
        return SolveStatus.FAILED, *nothing
    rest = E @ u - f
    if np.linalg.norm(rest) <= EMPTY:
        return SolveStatus.INFEASIBLE, *nothing
    y, z = -rest[:-1] / rest[-1], -u / rest[-1]
    z = np.concatenate([z[:n_equal] - z[len(b) :], z[n_equal : len(b)]])
    return SolveStatus.OPTIMAL, solve_triangular(L, y - shift, lower=True, trans=1), z
