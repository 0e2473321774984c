"""Integer problems: check and scale the costs, choose the solver, believe no answer unchecked.

A special solver where the structure has one, HiGHS's branch and bound for the rest. A decision is
reported only if it obeys every constraint; OPTIMAL means that the solver went to its end with no
gap left. Its search tree is no certificate that could be checked here, so this, INFEASIBLE and
bounds are as exact as the solver (HiGHS: 1e-6 of the largest cost).
Letters: B instances, n variables.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .._common.arrays import as_costs
from .._common.checks import check_number
from .._common.registry import Registry
from ..problems.integer import INTEGRAL, IntegerProgram
from ..problems.solution import IntegerSolution, SolveStatus
from .calls import Found, deadline_after, thread_count
from .mip import solve_mips

IntegerSolver = Callable[[IntegerProgram, np.ndarray, float, int, Any], Found]
"""(problem, scaled costs (B, n), deadline, threads, decisions (B, n) to start from or None)"""

INTEGER_SOLVERS: Registry[IntegerSolver] = Registry("solver", home="revealed.oracles")
"""By the class of the structure."""


def solve_integer(
    problem: IntegerProgram,
    costs: Any,
    *,
    time_limit: float | None = None,
    gap: float = 0.0,
    threads: int | None = None,
    start: np.ndarray | None = None,
) -> IntegerSolution:
    """Decisions of least cost for each row of `costs` (B, n).

    `time_limit` is in seconds for the whole call: what is left of it is shared out evenly over the
    instances that are left. `start` (B, n) are feasible decisions that solvers may begin from.
    """
    C, restore = as_costs(costs, problem.n_variables)
    problem.check_batch(len(C), "costs")
    check_number(gap, "gap")
    deadline, threads = deadline_after(time_limit), thread_count(threads)
    _, exponent = np.frexp(np.abs(C).max(axis=1, initial=0.0))
    scaled = np.ldexp(C, -exponent[:, None])
    found = solver_of(problem, gap)(problem, scaled, deadline, threads, start)
    X, status = checked(problem, found)
    bound = np.where(status == SolveStatus.OPTIMAL, (scaled * X).sum(axis=1), found.bound)
    return packed(X, status, np.ldexp(bound, exponent), C, restore)


def solver_of(problem: IntegerProgram, gap: float) -> IntegerSolver:
    """The special solver of the problem's structure, or the general one, which may leave a gap."""
    special = INTEGER_SOLVERS.find(type(problem.structure))
    if special is not None:
        return special
    return partial(solve_mips, gap=gap)


def checked(problem: IntegerProgram, found: Found) -> tuple[np.ndarray, np.ndarray]:
    """Decisions that obey the constraints, and statuses without the claims of those that do not."""
    X, status = problem.rounded(found.X), found.status.copy()
    there = np.flatnonzero(np.isfinite(found.X).all(axis=1))
    violation = np.full(len(X), np.inf)
    if there.size:
        whole = problem.fraction(found.X[there]) <= INTEGRAL
        own = problem[there] if problem.n_instances is not None else problem
        violation[there] = np.where(whole, own.constraint_violation(X[there]), np.inf)
    good = violation <= INTEGRAL
    status[~good & (status == SolveStatus.OPTIMAL)] = SolveStatus.FAILED
    X[~good] = np.nan
    return X, status


def packed(
    X: np.ndarray, status: np.ndarray, bound: np.ndarray, C: np.ndarray, restore: Any
) -> IntegerSolution:
    """A solution in the caller's own kind."""
    optimal = status == SolveStatus.OPTIMAL
    best = np.where(optimal[:, None], X, np.nan)
    return IntegerSolution(
        x=restore(best),
        objective=restore((C * best).sum(axis=1)),
        status=restore(status.astype(np.int8)),
        incumbent=restore(X),
        bound=restore(bound),
    )
