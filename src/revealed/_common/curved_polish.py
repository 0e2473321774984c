"""The last digits of an interior-point answer where cones are curved: Newton's method for

    P x + q + A^T z = 0,        s - proj(s - z) = 0,    s = b - A x,

whose second part says that s is in the cones, z in their duals, and both at right angles. The
projection onto a cone has a slope almost everywhere, so a few steps from a nearby answer reach
rounding. The last step estimates the error of the answer, which residuals do not: a product s z of
1e-8 leaves room for an error of 1e-4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from .conic import Cone, ConicAnswer, onto_cones, rows_of, smat, svec, triangle

MOST_UNKNOWNS = 800
"""Entries of x and z up to which the steps are computed: by dense least squares, since multipliers
are often not unique."""
STEPS = 6
SINGULAR = 1e-14


def polished_curved(
    P: Any, q: np.ndarray, A: Any, b: np.ndarray, cones: Sequence[Cone], answer: ConicAnswer
) -> tuple[ConicAnswer, np.ndarray] | None:
    """The answer to min 1/2 x^T P x + q x with b - A x in the cones, given a nearby one, and the
    last step of x; None where the program is too large or steps lead nowhere."""
    n, m = len(q), len(b)
    if n + m > MOST_UNKNOWNS:
        return None
    P, A = sparse.csr_array(P).toarray(), sparse.csr_array(A).toarray()
    x, z = answer.x, answer.z
    step = np.zeros(n)
    for _ in range(STEPS):
        s = b - A @ x
        D = slope_onto_cones(s - z, cones)
        J = np.block([[P, A.T], [-(np.eye(m) - D) @ A, D]])
        F = np.concatenate([P @ x + q + A.T @ z, s - onto_cones(s - z, cones)])
        found = _least_squares(J, -F)
        if found is None:
            return None
        step = found[:n]
        x, z = x + step, z + found[n:]
    return answer._replace(x=x, z=z), step


def _least_squares(J: np.ndarray, F: np.ndarray) -> np.ndarray | None:
    """The shortest t with J t = F as nearly as may be, in rows and columns of size 1."""
    if not (np.isfinite(J).all() and np.isfinite(F).all()):
        return None
    rows = np.abs(J).max(axis=1, initial=0.0)
    rows = 1.0 / np.where(rows > 0, rows, 1.0)
    J = rows[:, None] * J
    columns = np.abs(J).max(axis=0, initial=0.0)
    columns = 1.0 / np.where(columns > 0, columns, 1.0)
    try:
        t = columns * np.linalg.lstsq(J * columns, rows * F, rcond=SINGULAR)[0]
    except np.linalg.LinAlgError:
        return None
    return t if np.isfinite(t).all() else None


def slope_onto_cones(v: np.ndarray, cones: Sequence[Cone]) -> np.ndarray:
    """(m, m): an element of the generalized derivative of `onto_cones` at v (m,)."""
    result, start = np.zeros((len(v), len(v))), 0
    for cone in cones:
        stop = start + rows_of(cone)
        result[start:stop, start:stop] = _slope(v[start:stop], cone)
        start = stop
    return result


def _slope(v: np.ndarray, cone: Cone) -> np.ndarray:
    kind, order = cone
    if kind == "zero" or not len(v):
        return np.zeros((len(v), len(v)))
    if kind == "nonnegative":
        return np.diag((v > 0).astype(float))
    return _slope_second_order(v) if kind == "second-order" else _slope_semidefinite(v, order)


def _slope_second_order(v: np.ndarray) -> np.ndarray:
    t, length = v[0], float(np.linalg.norm(v[1:]))
    if length <= abs(t):
        return np.eye(len(v)) * (t > 0)
    u = v[1:] / length
    jacobian = np.empty((len(v), len(v)))
    jacobian[0, 0], jacobian[0, 1:], jacobian[1:, 0] = 1.0, u, u
    jacobian[1:, 1:] = (1.0 + t / length) * np.eye(len(u)) - (t / length) * np.outer(u, u)
    return 0.5 * jacobian


def _slope_semidefinite(v: np.ndarray, order: int) -> np.ndarray:
    values, V = np.linalg.eigh(smat(v))
    kept = np.maximum(values, 0.0)
    apart = values[:, None] - values
    same = (values[:, None] > 0) & (values > 0)
    share = np.where(apart != 0, (kept[:, None] - kept) / np.where(apart != 0, apart, 1.0), same)
    row, column, factor = triangle(order)
    units = np.zeros((len(v), order, order))
    k = np.arange(len(v))
    units[k, row, column] = 1.0 / factor
    units[k, column, row] = 1.0 / factor
    return svec(V @ (share * (V.T @ units @ V)) @ V.T).T
