"""Quadratic programs over polyhedra, each instance by itself: by Clarabel, or where that is not
installed and Q is positive definite, by non-negative least squares.

What the solver calls optimal is believed only if the decision obeys the constraints and the first-
order conditions, both computed here. Letters: B instances, n variables.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from .._arrays import as_costs
from .._conic import ConicAnswer, has_clarabel, in_threads, load_clarabel, solve_conic
from ..problem import LinearProgram, relative_violation
from .least_distance import by_least_distance
from .limits import deadline_after, thread_count
from .solution import Solution, SolveStatus

if TYPE_CHECKING:
    from ..quadratic import QuadraticProgram

FEASIBLE = 1e-7
"""Largest `constraint_violation` of a decision that may be called optimal."""
STATIONARY = 1e-6
"""Largest share of the gradient that the multipliers may leave over."""
_NEAR_BOUND = 1e-9


class _Rows(NamedTuple):
    """A x <= b, the first `n_zero` rows with equality."""

    A: Any
    b: np.ndarray
    n_zero: int


def solve_quadratic(
    problem: QuadraticProgram,
    costs: Any,
    *,
    time_limit: float | None = None,
    threads: int | None = None,
) -> Solution:
    """Best decisions for parameters (B, p); see `QuadraticProgram.solve`."""
    w, restore = as_costs(costs, problem.n_parameters)
    problem.check_batch(len(w), "costs")
    if not has_clarabel() and np.linalg.eigvalsh(problem.unpack(w)[1]).min(initial=1.0) <= 0:
        load_clarabel("Solving a QuadraticProgram whose Q is singular")  # says how to get it
    deadline, workers = deadline_after(time_limit), thread_count(threads)
    c, Q = problem.unpack(w)
    X = np.full(c.shape, np.nan)
    status = np.full(len(c), SolveStatus.LIMIT, np.int8)

    def work(b: int) -> None:
        left = deadline - time.monotonic()
        if left > 0:
            one = problem.constraints[np.array([b])]
            curvature = problem.gamma * Q[b]
            status[b], X[b] = minimise_quadratic(one, curvature, problem.sign * c[b], left)

    in_threads(work, len(c), workers)
    good = status == SolveStatus.OPTIMAL
    value = np.where(good, problem.objective(w, np.where(good[:, None], X, 0.0)), np.nan)
    X[~good] = np.nan
    return Solution(restore(X), restore(value), restore(status))


def nearest_feasible(problem: LinearProgram, X: np.ndarray) -> np.ndarray:
    """(B, n): the nearest decisions that obey the constraints; NaN where there is none."""
    result = np.empty(X.shape)
    for b, x in enumerate(X):
        one = problem[np.array([b])]
        result[b] = minimise_quadratic(one, np.eye(len(x)), -x)[1]
    return result


def minimise_quadratic(
    problem: LinearProgram, P: np.ndarray, q: np.ndarray, seconds: float = np.inf
) -> tuple[SolveStatus, np.ndarray]:
    """min 1/2 x^T P x + q x over the polyhedron of one instance; NaN unless OPTIMAL."""
    nothing = np.full(problem.n_variables, np.nan)
    size = max(np.abs(P).max(initial=0.0), np.abs(q).max(initial=0.0)) or 1.0
    least = float(np.linalg.eigvalsh(P)[0])
    if least < -1e-7 * size:  # no minimum that first-order conditions could tell
        return SolveStatus.FAILED, nothing
    if least < 0.0:
        P = P - least * np.eye(len(P))
    rows, unit = polyhedron_rows(problem), 1.0
    for _ in range(2):
        status, x, z = _attempt(P, q, rows, unit, seconds)
        if status is not SolveStatus.OPTIMAL:
            return status, nothing
        x = _snapped(problem, x)
        if _is_best(problem, P, q, rows, x, z):
            return status, x
        unit = float(np.abs(x).max(initial=0.0)) or 1.0  # once more, with x of size 1
    return SolveStatus.FAILED, nothing


def _attempt(
    P: np.ndarray, q: np.ndarray, rows: _Rows, unit: float, seconds: float
) -> tuple[SolveStatus, np.ndarray, np.ndarray]:
    """What a solver says of the program in x / unit, its objective scaled to 1: x and the
    multipliers of the rows."""
    A, b, n_zero = rows
    P = unit * P
    size = max(np.abs(P).max(initial=0.0), np.abs(q).max(initial=0.0)) or 1.0
    program = (P / size, q / size, A, b / unit, n_zero)
    by_clarabel = has_clarabel()
    found = _by_clarabel(*program, seconds) if by_clarabel else by_least_distance(*program)
    return found[0], unit * found[1], size * found[2]


def _is_best(
    problem: LinearProgram, P: np.ndarray, q: np.ndarray, rows: _Rows, x: np.ndarray, z: np.ndarray
) -> bool:
    """Whether x obeys the constraints, and multipliers of the right sign, on rows that bind, leave
    nothing of the gradient; all relative to the terms that are added."""
    A, b, n_zero = rows
    z = np.concatenate([z[:n_zero], np.maximum(z[n_zero:], 0.0)])
    terms = (P @ x, q, A.T @ z)
    gradient = max(np.abs(term).max(initial=0.0) for term in terms)
    entries = abs(A)
    slack = np.abs(b - A @ x) / (np.abs(b) + entries @ np.abs(x) + entries.max(axis=1).toarray())
    idle = slack[n_zero:] > STATIONARY
    return bool(
        relative_violation(problem, x[None])[0] <= FEASIBLE
        and np.abs(sum(terms)).max(initial=0.0) <= STATIONARY * gradient
        and (z[n_zero:][idle] <= STATIONARY * gradient).all()
    )


def _by_clarabel(
    P: np.ndarray, q: np.ndarray, A: Any, b: np.ndarray, n_zero: int, seconds: float
) -> tuple[SolveStatus, np.ndarray, np.ndarray]:
    cones = [("zero", n_zero), ("nonnegative", len(b) - n_zero)]
    program = (sparse.csc_array(P), q, A, b, cones)
    answer = solve_conic(*program, what="Solving a QuadraticProgram", seconds=seconds)
    status = SolveStatus.OPTIMAL
    if answer.infeasible or answer.unbounded or answer.late:
        status = _failure(answer)
    return status, answer.x, answer.z


def polyhedron_rows(problem: LinearProgram) -> _Rows:
    """A x <= b of one instance, the first rows with equality, and how many those are."""
    eye = sparse.csr_array(sparse.eye_array(problem.n_variables))
    lb, ub, b_eq, b_ub = (
        np.atleast_2d(part)[0] for part in (problem.lb, problem.ub, problem.b_eq, problem.b_ub)
    )
    fixed = lb == ub
    low, high = np.isfinite(lb) & ~fixed, np.isfinite(ub) & ~fixed
    binds = np.isfinite(b_ub)
    blocks = [
        problem.eq_rows.matrix(0),
        eye[fixed],
        problem.ub_rows.matrix(0)[binds],
        -eye[low],
        eye[high],
    ]
    A = sparse.vstack([sparse.csr_array(block) for block in blocks], format="csc")
    b = np.concatenate([b_eq, lb[fixed], b_ub[binds], -lb[low], ub[high]])
    return _Rows(A, b, len(b_eq) + int(fixed.sum()))


def _snapped(problem: LinearProgram, x: np.ndarray) -> np.ndarray:
    """Exactly at a bound where the solver came within rounding of it."""
    for bound in (np.atleast_2d(problem.lb)[0], np.atleast_2d(problem.ub)[0]):
        with np.errstate(invalid="ignore"):
            near = np.abs(x - bound) <= _NEAR_BOUND * (1.0 + np.abs(bound))
        x = np.where(near & np.isfinite(bound), bound, x)
    return x


def _failure(answer: ConicAnswer) -> SolveStatus:
    if answer.late:
        return SolveStatus.LIMIT
    return SolveStatus.INFEASIBLE if answer.infeasible else SolveStatus.UNBOUNDED
