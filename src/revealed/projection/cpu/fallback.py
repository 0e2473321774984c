"""Slower solvers for single instances that the kernel cannot finish. They return multipliers;
`certificate` judges.

Each takes (sets, costs, b, tol) and gives (multipliers or None, steps).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from ..._common.conic import PLAIN, has_clarabel, solve_conic
from ...optimality.sets import EntryState, OptimalitySet
from ...problems.linear import LinearProgram
from .reference import reference_projection

Fallback = Callable[[OptimalitySet, np.ndarray, int, float], tuple[np.ndarray | None, int]]
_LIMITED = (EntryState.FREE, EntryState.AT_LOWER, EntryState.AT_UPPER)
REFERENCE_LIMIT = 400
"""The reference is dense and cubic; "auto" leaves it out above this many entries."""


def available_fallbacks(n: int) -> list[str]:
    """Names to try in order, for a problem of n entries, with what is installed."""
    names = ["clarabel"] if has_clarabel() else []
    return [*names, "reference"] if n <= REFERENCE_LIMIT else names


def by_clarabel(
    sets: OptimalitySet, costs: np.ndarray, b: int, tol: float
) -> tuple[np.ndarray | None, int]:
    """min 1/2 |r|^2 over (v, mu, r) as a quadratic program, by Clarabel at tight tolerances."""
    scale = max(np.abs(costs[b]).max(initial=0.0), sets.margins[b]) or 1.0
    problem, active = sets.rows[np.array([b])], np.flatnonzero(sets.row_active[b])
    rows, lengths = _unit_rows(problem, active)
    n_eq, m = problem.eq_rows.shape[0], rows.shape[0]
    A, right, n_free = _quadratic_constraints(
        rows, lengths, n_eq, sets.entry_state[b], costs[b] / scale, sets.margins[b] / scale
    )
    curvature = np.concatenate([np.zeros(m), np.ones(A.shape[1] - m)])
    answer = solve_conic(
        sparse.diags_array(curvature),
        np.zeros(len(curvature)),
        A,
        right,
        [("zero", n_free), ("nonnegative", len(right) - n_free)],
        what="method='clarabel'",
        tol=min(1e-11, tol * 1e-2),
        attempt=PLAIN,
    )
    found = answer.x[:m] / lengths * scale
    multipliers = np.zeros(n_eq + problem.ub_rows.shape[0])
    multipliers[:n_eq] = found[:n_eq]
    multipliers[n_eq + active] = np.maximum(found[n_eq:], sets.margins[b])
    return (multipliers if np.isfinite(multipliers).all() else None), answer.iterations


def _unit_rows(problem: LinearProgram, active: np.ndarray) -> tuple[Any, np.ndarray]:
    """Equalities and binding inequalities (sign turned) as rows of length 1, and their lengths."""
    stacked: Any = sparse.vstack([problem.eq_rows.matrix(0), -problem.ub_rows.matrix(0)[active]])
    lengths = np.sqrt(np.asarray(stacked.multiply(stacked).sum(axis=1)).ravel())
    lengths[lengths == 0] = 1.0
    return sparse.diags_array(1.0 / lengths) @ stacked, lengths


def _quadratic_constraints(
    rows: Any, lengths: np.ndarray, n_eq: int, state: np.ndarray, q: np.ndarray, margin: float
) -> tuple[Any, np.ndarray, int]:
    """A z <= right (the first ones equal) for z = (v, mu, r), and how many are equal.

    With u = rows^T (v, mu): r = u - q for free entries, r >= u + margin - q at lower,
    r <= u - margin - q at upper, and mu >= margin. Fixed entries do not appear.
    """
    groups = [np.flatnonzero(state == kind) for kind in _LIMITED]
    used = np.concatenate(groups)
    sign = np.concatenate(
        [np.full(len(g), s) for g, s in zip(groups, (1.0, 1.0, -1.0), strict=True)]
    )
    offset = margin * np.concatenate(
        [np.full(len(g), s) for g, s in zip(groups, (0.0, 1.0, -1.0), strict=True)]
    )
    m, n_bounds = rows.shape[0], rows.shape[0] - n_eq
    entries = sparse.diags_array(sign) @ sparse.csr_array(rows.T)[used]
    bounds = sparse.hstack([sparse.csr_array((n_bounds, n_eq)), -sparse.eye_array(n_bounds)])
    A = sparse.bmat(
        [[entries, -sparse.diags_array(sign)], [bounds, None]]
        if n_bounds
        else [[entries, -sparse.diags_array(sign)]]
    )
    right = np.concatenate([sign * (q[used] - offset), -margin * lengths[n_eq:m]])
    return A, right, len(groups[0])


def by_reference(
    sets: OptimalitySet, costs: np.ndarray, b: int, tol: float
) -> tuple[np.ndarray | None, int]:
    """The slow reference (see `reference`)."""
    try:
        _, multipliers = reference_projection(sets, costs[b], b)
    except (
        RuntimeError,
        np.linalg.LinAlgError,
    ):  # nnls at its iteration limit; a singular value that did not converge
        return None, 0
    return (multipliers if np.isfinite(multipliers).all() else None), 1


FALLBACKS: dict[str, Fallback] = {"clarabel": by_clarabel, "reference": by_reference}
