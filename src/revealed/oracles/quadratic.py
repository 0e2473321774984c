"""Quadratic programs over polyhedra, each instance by itself: by Clarabel, or where that is not
installed and Q is positive definite, by non-negative least squares.

What the solver calls optimal is believed only if the decision obeys the constraints and the first-
order conditions, both computed here. Letters: B instances, n variables.

Why Clarabel alone does not do: of 39 programs of Maros and Meszaros its answer meets `EXACT` on 16,
PIQP at its tightest tolerance on 13; with `polished` 32 and 31. The other units and settings tried
here prove all 39 (`experiments/scripts/qp_solvers.py`). So units, certificate and polish stay
whichever solver is inside, and a second one would only add an adapter.
"""

from __future__ import annotations

import time
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from .._common.arrays import as_costs
from .._common.conic import ConicAnswer, has_clarabel, in_threads, load_clarabel, solve_conic
from .._common.polish import polished
from ..problems.linear import LinearProgram
from ..problems.solution import Solution, SolveStatus
from .calls import deadline_after, thread_count
from .curved import Case
from .first_order import SHORT, Program, left_over
from .least_distance import by_least_distance

if TYPE_CHECKING:
    from ..problems.quadratic import QuadraticProgram

EXACT = 1e-10
"""What is not polished further."""
WAYS = ((False, 0), (True, 0), (False, 1), (True, 1), (True, 2), (False, 3))
"""Whether columns are made even, and which settings of the solver, one after the other."""
LOOSE = 1e4
"""Limits so many times larger than x is expected to be are left out where there are any: beside
them the solver's tolerances, which follow the largest number, would hide the others."""
GUESSES = 10
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
            status[b], X[b] = minimize_quadratic(one, curvature, problem.sign * c[b], left)

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
        result[b] = minimize_quadratic(one, np.eye(len(x)), -x)[1]
    return result


def minimize_quadratic(
    problem: LinearProgram, P: np.ndarray, q: np.ndarray, seconds: float = np.inf
) -> tuple[SolveStatus, np.ndarray]:
    """min 1/2 x^T P x + q x over the polyhedron of one instance; NaN unless OPTIMAL."""
    nothing = np.full(problem.n_variables, np.nan)
    rows = polyhedron_rows(problem)
    program = Program.of(P, q, rows.A, rows.b, rows.n_zero)
    case = Case(problem, program, rows.A)
    if not case.is_convex:
        return SolveStatus.FAILED, nothing  # no minimum that first-order conditions could prove
    deadline = time.monotonic() + seconds
    for (even, attempt), loose in product(WAYS, (False, True)):
        left = deadline - time.monotonic()
        if left <= 0:
            return SolveStatus.LIMIT, nothing
        status, x, z = _attempt(case, even, loose, left, attempt)
        if status is SolveStatus.OPTIMAL:
            as_found, x = x, _snapped(problem, x, SHORT * program.unit)
            status = case.optimal(x, z)
            if status is SolveStatus.FAILED:  # lower and upper bounds may both be near
                status, x = case.optimal(as_found, z), as_found
        elif status is SolveStatus.INFEASIBLE:
            status = case.infeasible(z)
        elif status is SolveStatus.UNBOUNDED:
            status = case.unbounded()
        if status is not SolveStatus.FAILED:
            return status, x if status is SolveStatus.OPTIMAL else nothing
    return case.unanswered()


def _attempt(
    case: Case, even: bool, loose: bool, seconds: float, attempt: int
) -> tuple[SolveStatus, np.ndarray, np.ndarray]:
    """What a solver says: x and the multipliers of the rows of `case.program`. Loose limits are
    left out, unless `loose` asks for them; FAILED where it does and there are none."""
    program, columns, rows = case.even if even else (case.program, 1.0, 1.0)
    unit = case.unit_of(program, columns)
    kept = (np.arange(len(program.b)) < program.n_zero) | (program.b <= LOOSE * unit)
    if loose and kept.all():
        return SolveStatus.FAILED, program.q, program.b
    kept |= loose
    scaled, size = program.only(kept).within(unit)
    if has_clarabel():
        status, x, z = _by_clarabel(scaled, seconds, attempt)
    else:
        status, x, z = by_least_distance(*scaled)
    if status is SolveStatus.OPTIMAL:
        x, z = _exact(scaled, x, z)
        case.seen = x = columns * unit * x
    every = np.zeros(len(kept))
    with np.errstate(over="ignore", invalid="ignore"):  # judged by what it proves, if anything
        every[kept] = size * z
        return status, x, rows * every


def _by_clarabel(
    program: Program, seconds: float, attempt: int
) -> tuple[SolveStatus, np.ndarray, np.ndarray]:
    options = {"what": "Solving a QuadraticProgram", "seconds": seconds, "attempt": attempt}
    found = solve_conic(*program.conic, **options)
    status = SolveStatus.OPTIMAL
    if found.late:
        status = SolveStatus.LIMIT
    elif found.infeasible:
        status = SolveStatus.INFEASIBLE
    elif found.unbounded:
        status = SolveStatus.UNBOUNDED
    elif not (np.isfinite(found.x).all() and np.isfinite(found.z).all()):
        status = SolveStatus.FAILED
    return status, found.x, found.z


def _exact(program: Program, x: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The answer with its last digits: one guess of what binds after the other, each from the
    answer of the one before."""
    best, least = (x, z), left_over(program, x, z)
    guess = ConicAnswer(x, z, infeasible=False, unbounded=False, late=False, iterations=0)
    for _ in range(GUESSES):
        if least <= EXACT:
            break
        guess = polished(*program.conic, guess)
        if guess is None:
            break
        left = left_over(program, guess.x, guess.z)
        if left < least:
            best, least = (guess.x, guess.z), left
    return best


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


def _snapped(problem: LinearProgram, x: np.ndarray, least: float) -> np.ndarray:
    """Exactly at a bound where the solver came within rounding of it."""
    size = np.abs(x).max(initial=least)
    for bound in (np.atleast_2d(problem.lb)[0], np.atleast_2d(problem.ub)[0]):
        with np.errstate(invalid="ignore"):
            near = np.abs(x - bound) <= _NEAR_BOUND * (size + np.abs(bound))
        x = np.where(near & np.isfinite(bound), bound, x)
    return x
