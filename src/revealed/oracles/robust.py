"""The decision whose worst cost over a cone of costs is least.

The cone has the axis `a` and the half-angle t. At the scale of its axis it holds the costs
a + r u, r = tan(t) |a|, with |u| <= 1 and u orthogonal to `a` and to what no decision depends on.
The worst of their costs for a decision x is

    a x + r |P x|

with P the orthogonal projector on these u. Minimizing it over a polyhedron is a second-order cone
program: |P x| is the least |x - A_eq^T y - s a| over y and s, so that P itself is never formed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from .._common.conic import (
    Cone,
    ConicAnswer,
    conditions_left,
    in_threads,
    load_clarabel,
    solve_best,
)
from ..problems.linear import LinearProgram
from ..problems.solution import Solution, SolveStatus
from .calls import thread_count
from .quadratic import polyhedron_rows

WHAT = "A robust decision"
EXACT = 1e-7
"""What may be left of the first-order conditions, at an axis of length 1 and relative to the size
of the decision."""
GOAL = 1e-10


def robust_decisions(
    problem: LinearProgram, axes: np.ndarray, angle: float, *, threads: int | None = None
) -> Solution:
    """Decisions of least worst cost over cones around `axes` (B, n), and these worst costs.

    `axes` have no part along the equality rows and fixed entries (`optimality.lines`); `angle` is
    between 0 and a right angle.
    """
    load_clarabel(WHAT)
    X = np.full(axes.shape, np.nan)
    value = np.full(len(axes), np.nan)
    status = np.full(len(axes), SolveStatus.FAILED, np.int8)

    def work(b: int) -> None:
        size = float(np.linalg.norm(axes[b]))
        if size > 0:
            one = problem[np.array([b])] if problem.n_instances else problem
            status[b], X[b], worst = _solve(one, axes[b] / size, np.tan(angle))
            value[b] = size * worst

    in_threads(work, len(axes), thread_count(threads))
    if (status != SolveStatus.OPTIMAL).any():  # claims of infeasibility need a proof
        status[problem.solve(axes).status == SolveStatus.INFEASIBLE] = SolveStatus.INFEASIBLE
    return Solution(X, value, status)


def _solve(
    problem: LinearProgram, axis: np.ndarray, slope: float
) -> tuple[SolveStatus, np.ndarray, float]:
    """One instance, at an axis of length 1."""
    n = problem.n_variables
    nothing = np.full(n, np.nan)
    q, A, b, cones = _program(problem, axis, slope)
    P = sparse.csc_matrix((len(q), len(q)))

    def judge(found: ConicAnswer) -> tuple[ConicAnswer, float]:
        broken, left, gap = conditions_left(P, q, A, b, cones, found)
        unit = 1.0 + float(np.abs(found.x[:n]).max(initial=0.0))
        return found, max(broken / unit, left, gap / unit)

    found, residual = solve_best(P, q, A, b, cones, what=WHAT, judge=judge, goal=GOAL)
    if not residual <= EXACT:
        return SolveStatus.FAILED, nothing, np.nan
    lb, ub = np.atleast_2d(problem.lb)[0], np.atleast_2d(problem.ub)[0]
    return SolveStatus.OPTIMAL, np.clip(found.x[:n], lb, ub), float(q @ found.x)


def _program(
    problem: LinearProgram, axis: np.ndarray, slope: float
) -> tuple[np.ndarray, sparse.csc_matrix, np.ndarray, list[Cone]]:
    """min q z with A z + s = b, s in the cones; z = (x, y, s, t)."""
    n = problem.n_variables
    rows = polyhedron_rows(problem)
    lb, ub = np.atleast_2d(problem.lb)[0], np.atleast_2d(problem.ub)[0]
    moving = np.flatnonzero(lb != ub)
    eye = sparse.csr_array(sparse.eye_array(n))[moving]
    equal = sparse.csr_array(problem.eq_rows.matrix(0))
    across = sparse.csr_array(sparse.csr_array(equal.T)[moving])
    m = problem.eq_rows.shape[0]
    along = sparse.csr_array(axis[moving][:, None])
    blocks: list[list[Any]] = [
        [rows.A, sparse.csr_array((len(rows.b), m + 2))],
        [sparse.csr_array((1, n + m + 1)), np.array([[-1.0]])],
        [-eye, across, along, sparse.csr_array((len(moving), 1))],
    ]
    inside = sparse.vstack([sparse.hstack(row) for row in blocks])
    q = np.concatenate([axis, np.zeros(m + 1), [slope]])
    b = np.concatenate([rows.b, np.zeros(1 + len(moving))])
    cones: list[Cone] = [
        ("zero", rows.n_zero),
        ("nonnegative", len(rows.b) - rows.n_zero),
        ("second-order", 1 + len(moving)),
    ]
    return q, sparse.csc_matrix(inside), b, cones
