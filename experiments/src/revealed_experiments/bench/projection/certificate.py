"""A second opinion on a projection: its residual from the definition, in plain numpy and scipy.

Written apart from the library's own certificate on purpose, and sharing no code with it: a claim
of the library is checked here, and points of other solvers are put on the same footing.

For multipliers (v, mu) with mu at least the margin on active rows, the nearest point that they
explain is p = q + r, with r moving each entry only as far as its state demands. It is the
projection exactly if A_eq r = 0 and, on active rows, A_ub r <= 0 with equality where mu exceeds
the margin.
"""

from __future__ import annotations

import numpy as np

from .cases import Case
from .forms import reduced_cost_bounds

SHORT = 1e-3
"""A move shorter than this share of |q| is judged as if it were that long."""


def explained_point(case: Case, i: int, v: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """(n,): the point nearest to instance i's cost that (v, mu), made admissible, explain.

    It is exactly feasible, so half its squared distance is a true upper bound of the optimum,
    whatever solver found the multipliers.
    """
    explained = case.A_eq.T @ v - case.A_ub.T @ _admissible(case, i, mu)
    low, high = reduced_cost_bounds(case.entry_state[i], case.margin)
    return explained + np.clip(case.costs[i] - explained, low, high)


def objective(case: Case, i: int, v: np.ndarray, mu: np.ndarray) -> float:
    """Half the squared distance from the cost to the point that (v, mu) explain."""
    move = explained_point(case, i, v, mu) - case.costs[i]
    return 0.5 * float(move @ move)


def residual(case: Case, i: int, point: np.ndarray, v: np.ndarray, mu: np.ndarray) -> float:
    """0 at the projection, relative otherwise; inf for anything that is not a number.

    The largest of: how far `point` is from the one its multipliers explain, the cosine between
    the move and a row it must be orthogonal to (or must not lean on), and the duality gap.
    """
    if not all(np.isfinite(array).all() for array in (point, v, mu)):
        return np.inf
    mu_used = _admissible(case, i, mu)
    move = point - case.costs[i]
    denominator = (
        max(float(np.linalg.norm(move)), SHORT * float(np.linalg.norm(case.costs[i]))) or 1.0
    )
    off_point = float(np.linalg.norm(point - explained_point(case, i, v, mu))) / denominator
    lean_eq, lean_ub = case.A_eq @ move, case.A_ub @ move  # 0, and <= 0 where active
    excess = mu_used - np.where(case.row_active[i], case.margin, 0.0)
    gap = abs(float(v @ lean_eq - excess @ lean_ub)) / denominator**2
    size = _row_lengths(case.A_ub)
    # An active row may be leaned on from inside, but then its multiplier stays at the margin.
    slack = np.minimum(np.maximum(-lean_ub / size, 0.0), excess * size)
    slant_ub = np.where(case.row_active[i], np.maximum(lean_ub / size, slack), 0.0)
    slant_eq = np.abs(lean_eq) / _row_lengths(case.A_eq)
    row_gradient = max(slant_eq.max(initial=0.0), slant_ub.max(initial=0.0)) / denominator
    return max(off_point, float(row_gradient), gap, _inadmissible(case, i, mu, size) / denominator)


def _admissible(case: Case, i: int, mu: np.ndarray) -> np.ndarray:
    return np.where(case.row_active[i], np.maximum(mu, case.margin), 0.0)


def _inadmissible(case: Case, i: int, mu: np.ndarray, size: np.ndarray) -> float:
    return float(np.max(np.abs(mu - _admissible(case, i, mu)) * size, initial=0.0))


def _row_lengths(A) -> np.ndarray:
    lengths = np.sqrt(np.asarray(A.multiply(A).sum(axis=1), dtype=float).ravel())
    return np.where(lengths > 0, lengths, 1.0)
