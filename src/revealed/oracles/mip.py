"""HiGHS's branch and bound: one model for each thread, kept from instance to instance and call to
call, and solved to the end: a gap of 0.

HiGHS searches in a fixed order of its own, so the decision depends on the instance alone.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..errors import MissingDependencyError
from ..problems.integer import IntegerProgram
from ..problems.linear import LinearProgram
from ..problems.solution import SolveStatus
from .calls import Found, share_of, wait_for

_TOLERANCE = 1e-9
"""Of rows, bounds and whole variables; rounding then moves an answer by next to nothing."""
_OPTIONS = {
    "output_flag": False,
    "threads": 1,
    "parallel": "off",
    "mip_rel_gap": 0.0,
    "mip_abs_gap": 1e-9,
    "mip_feasibility_tolerance": _TOLERANCE,
    "primal_feasibility_tolerance": _TOLERANCE,
    "dual_feasibility_tolerance": _TOLERANCE,
}
SMALLEST_SHARE = 0.0
_CLOSED = 1e-6
"""Of a decision's cost: the accuracy to which HiGHS calls a gap closed."""


def solve_mips(
    problem: IntegerProgram,
    costs: np.ndarray,
    deadline: float,
    threads: int,
    start: Any,
    gap: float = 0.0,
) -> Found:
    """See `IntegerSolver`; HiGHS may end within a relative `gap`, which is then no OPTIMAL."""
    size = len(costs)
    found = Found(
        np.full(costs.shape, np.nan),
        np.full(size, SolveStatus.LIMIT, np.int8),
        np.full(size, -np.inf),
    )
    if not size:
        return found
    threads = max(1, min(threads, size))
    solvers = [_taken(problem) for _ in range(threads)]

    def work(k: int) -> None:
        rows = range(k, size, threads)
        for at, b in enumerate(rows):
            seconds = share_of(deadline, len(rows) - at)
            if seconds <= SMALLEST_SHARE:
                return
            begin = None if start is None else start[b]
            found.X[b], found.status[b], found.bound[b] = solvers[k].solve(
                problem, b, costs[b], seconds, begin, gap
            )

    try:
        wait_for([partial(work, k) for k in range(threads)], lambda: _stop(solvers))
    finally:
        idle = problem.cached("mip-solvers", list)
        idle.extend(solver for solver in solvers if not solver.is_stopped)
    return found


def _taken(problem: IntegerProgram) -> MipSolver:
    """An idle solver of this problem, or a new one."""
    idle = problem.cached("mip-solvers", list)
    return idle.pop() if idle else MipSolver()


def _stop(solvers: list[MipSolver]) -> None:
    for solver in solvers:
        solver.stop()


class MipSolver:
    """One HiGHS model, holding one instance at a time."""

    def __init__(self) -> None:
        try:
            import highspy
        except ImportError as error:
            raise MissingDependencyError(
                "Integer programs are solved by HiGHS, which is not installed: pip install highspy."
            ) from error
        self._api: Any = highspy
        self._highs: Any = highspy.Highs()
        for name, value in _OPTIONS.items():
            self._highs.setOptionValue(name, value)
        self._loaded: Any = None
        self.is_stopped = False

    def solve(
        self,
        problem: IntegerProgram,
        b: int,
        cost: np.ndarray,
        seconds: float,
        begin: Any,
        gap: float = 0.0,
    ) -> tuple[np.ndarray | float, int, float]:
        """A decision or NaN, a status and a lower bound for instance b."""
        highs = self._highs
        self._load(problem, b)
        highs.clearSolver()
        n = len(cost)
        highs.changeColsCost(n, np.arange(n, dtype=np.int32), np.ascontiguousarray(cost))
        if begin is not None:
            given = self._api.HighsSolution()
            given.col_value = list(begin)
            highs.setSolution(given)
        # The clock of branch and bound begins with each run, that of the simplex method runs on.
        begun = 0.0 if problem.integer.any() else highs.getRunTime()
        limit = begun + seconds if np.isfinite(seconds) else 1e300
        highs.setOptionValue("mip_rel_gap", gap)
        highs.setOptionValue("time_limit", 0.0 if self.is_stopped else limit)
        if highs.run() == self._api.HighsStatus.kError:
            highs.setOptionValue("threads", 0)  # another user of HiGHS has fixed their number
            highs.run()
        return self._read(problem, b, cost)

    def _read(
        self, problem: IntegerProgram, b: int, cost: np.ndarray
    ) -> tuple[np.ndarray | float, int, float]:
        highs, states = self._highs, self._api.HighsModelStatus
        state, info = highs.getModelStatus(), highs.getInfo()
        has_point = info.primal_solution_status == self._api.SolutionStatus.kSolutionStatusFeasible
        x = np.array(highs.getSolution().col_value) if has_point else np.nan
        if state == states.kOptimal and has_point:
            value, below = float(cost @ x), float(info.mip_dual_bound)
            if problem.integer.any() and value - below > _CLOSED * (1.0 + abs(value)):
                return x, SolveStatus.LIMIT, below  # within the gap that was allowed
            return x, SolveStatus.OPTIMAL, value
        if state == states.kInfeasible:
            return np.nan, SolveStatus.INFEASIBLE, np.inf
        if state in (states.kUnbounded, states.kUnboundedOrInfeasible):
            return np.nan, self._without_end(problem, b, cost), -np.inf
        stopped = state in (states.kTimeLimit, states.kInterrupt, states.kSolutionLimit)
        bound = float(info.mip_dual_bound) if stopped and problem.integer.any() else -np.inf
        if not abs(bound) < 1e20:
            bound = -np.inf
        return x, SolveStatus.LIMIT if stopped else SolveStatus.FAILED, bound

    def _without_end(self, problem: IntegerProgram, b: int, cost: np.ndarray) -> int:
        """Whether the relaxation is proved unbounded, and some whole decision is feasible, from
        where its rational ray leads on."""
        relaxed = _instance(problem.relaxation, b).solve(cost[None], threads=1)
        if relaxed.status[0] == SolveStatus.INFEASIBLE:
            return SolveStatus.INFEASIBLE
        if relaxed.status[0] != SolveStatus.UNBOUNDED:
            return SolveStatus.FAILED
        n = len(cost)
        self._highs.changeColsCost(n, np.arange(n, dtype=np.int32), np.zeros(n))
        self._highs.run()
        state = self._highs.getModelStatus()
        if state == self._api.HighsModelStatus.kInfeasible:
            return SolveStatus.INFEASIBLE
        optimal = state == self._api.HighsModelStatus.kOptimal
        return SolveStatus.UNBOUNDED if optimal else SolveStatus.FAILED

    def _load(self, problem: IntegerProgram, b: int) -> None:
        """Put the constraints of one instance into HiGHS, unless they are there."""
        shared = problem.n_instances is None
        if shared and self._loaded is not None:
            return
        api, rows = self._api, problem.relaxation
        model: Any = api.HighsLp()
        A, low, high = _stacked(rows, b)
        model.num_col_, model.num_row_ = rows.n_variables, len(high)
        model.col_cost_ = np.zeros(rows.n_variables)
        model.a_matrix_.format_ = api.MatrixFormat.kRowwise
        model.a_matrix_.start_, model.a_matrix_.index_ = A.indptr, A.indices
        model.a_matrix_.value_ = A.data
        model.row_lower_, model.row_upper_ = low, high
        model.col_lower_, model.col_upper_ = _of(rows.lb, b), _of(rows.ub, b)
        kinds = api.HighsVarType
        model.integrality_ = [
            kinds.kInteger if whole else kinds.kContinuous for whole in problem.integer
        ]
        self._highs.passModel(model)
        self._loaded = True

    def stop(self) -> None:
        """End a run in another thread, and every one after it."""
        self.is_stopped = True
        self._highs.cancelSolve()


def _stacked(rows: LinearProgram, b: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """Equalities above inequalities, and both sides of each row."""
    from scipy import sparse

    parts = [part.matrix(b if part.per_instance else 0) for part in (rows.eq_rows, rows.ub_rows)]
    A: Any = sparse.csr_array(sparse.vstack(parts))
    A.indptr, A.indices = A.indptr.astype(np.int32), A.indices.astype(np.int32)
    b_eq, b_ub = _of(rows.b_eq, b), _of(rows.b_ub, b)
    low = np.concatenate([b_eq, np.full(len(b_ub), -np.inf)])
    return A, low, np.concatenate([b_eq, b_ub])


def _instance(rows: LinearProgram, b: int) -> LinearProgram:
    return rows if rows.n_instances is None else rows[np.array([b])]


def _of(array: np.ndarray, instance: int) -> np.ndarray:
    return array[instance] if array.ndim == 2 else array
