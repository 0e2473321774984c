"""Any linear program: HiGHS when highspy is installed, scipy's copy of it when not.

Each instance is solved from the same start, so its decision depends on nothing else in the batch.
What the solver calls optimal is believed only after the constraints have been checked here.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ..problem import relative_violation, unit_of
from .solution import SolveStatus

if TYPE_CHECKING:
    from ..problem import LinearProgram

FEASIBLE = 1e-7
"""Largest `constraint_violation` of a decision that may be called optimal."""

_NEAR_BOUND = 1e-9


class Solver(Protocol):
    """Solves one instance at a time; `seconds` may be inf. x is None unless OPTIMAL."""

    def solve(
        self, problem: LinearProgram, instance: int, cost: np.ndarray, seconds: float
    ) -> tuple[SolveStatus, np.ndarray | None]: ...


def solve_general(
    problem: LinearProgram, costs: np.ndarray, deadline: float, threads: int
) -> tuple[np.ndarray, np.ndarray]:
    """Decisions (B, n) and statuses (B,) for scaled costs (B, n)."""
    X = np.zeros(costs.shape)
    status = np.full(len(costs), SolveStatus.LIMIT, dtype=np.int8)
    # Idle solvers wait here; a thread takes one or makes one, so no two share a model.
    idle: list[Solver] = problem.cached("general-solvers", list)

    def work(rows: range) -> None:
        try:
            solver = idle.pop()
        except IndexError:
            solver = _new_solver()
        for i in rows:
            seconds = deadline - time.monotonic()
            if seconds <= 0:
                break
            status[i], x = solver.solve(problem, i, costs[i], seconds)
            if x is not None:
                X[i] = x
        idle.append(solver)

    threads = min(threads, len(costs))
    if threads <= 1:
        work(range(len(costs)))
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, (range(k, len(costs), threads) for k in range(threads))))
    return _checked(problem, X, status)


def _new_solver() -> Solver:
    try:
        from .highs import HighsSolver
    except ImportError:  # highspy is optional
        from .linprog import LinprogSolver

        return LinprogSolver()
    return HighsSolver()


def _checked(
    problem: LinearProgram, X: np.ndarray, status: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Exact bounds where the solver came within rounding of them, and FAILED where it lied."""
    X = np.nan_to_num(X, nan=np.inf)  # NaN from a solver must count as a violation below
    snapped = _snap(problem, X)
    X = np.where(_stays_feasible(problem, X, snapped)[:, None], snapped, X)
    lied = (status == SolveStatus.OPTIMAL) & ~(relative_violation(problem, X) <= FEASIBLE)
    return X, np.where(lied, SolveStatus.FAILED, status)


def _snap(problem: LinearProgram, X: np.ndarray) -> np.ndarray:
    unit = unit_of(problem, X)
    for bound in (problem.lb, problem.ub):
        with np.errstate(invalid="ignore"):  # inf - inf on missing bounds: NaN, so not near
            near = np.abs(X - bound) <= _NEAR_BOUND * (unit + np.abs(bound))
        X = np.where(near & np.isfinite(bound), bound, X)
    return X


def _stays_feasible(problem: LinearProgram, X: np.ndarray, snapped: np.ndarray) -> np.ndarray:
    """(B,): whether no row's gap grew by more than rounding in the terms it adds up."""
    result = np.ones(len(X), dtype=bool)
    groups = ((problem.eq_rows, problem.b_eq, np.abs), (problem.ub_rows, problem.b_ub, _excess))
    with np.errstate(over="ignore", invalid="ignore"):  # what is not a number is not feasible
        for rows, b, gap in groups:
            terms = np.abs(b) + rows.magnitude.times(np.abs(X))
            allowed = np.maximum(gap(rows.times(X) - b), _NEAR_BOUND * terms)
            result &= (gap(rows.times(snapped) - b) <= allowed).all(axis=1)
    return result


def _excess(difference: np.ndarray) -> np.ndarray:
    return np.maximum(difference, 0.0)
