"""HiGHS through highspy: one model kept, re-solved for each cost by the simplex method.

The simplex method ends at a vertex. Where only the costs differ, a feasible basis is found once
and every instance starts there, not where the one before it ended: quick, and independent of the
batch. Rows are scaled by powers of two so that HiGHS's absolute tolerances mean the same for each,
and so is x where right-hand sides and bounds are far from 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import highspy
import numpy as np

from .solution import SolveStatus
from .units import linear_unit

if TYPE_CHECKING:
    from ..problem import LinearProgram

_Model = highspy.HighsModelStatus

_OPTIONS = {
    "output_flag": False,
    "threads": 1,
    "parallel": "off",
    # HiGHS takes 1e20 for infinite, drops entries below 1e-9 and refuses those above 1e15; what
    # the problem says is what is meant.
    "infinite_bound": 1e308,
    "small_matrix_value": 1e-12,
    "large_matrix_value": 1e300,
}
_FIRST = {
    "primal_feasibility_tolerance": 1e-9,
    "dual_feasibility_tolerance": 1e-9,
    "presolve": "off",
    "simplex_strategy": 0,  # primal from a feasible basis, dual otherwise
}
# The primal method takes a basis met again for a cycle, even if entries went from bound to bound in
# between and the cost fell, and gives up short of the optimum (status unknown). The dual goes on.
_DUAL = {**_FIRST, "simplex_strategy": 1}
_SECOND = {
    "primal_feasibility_tolerance": 1e-7,
    "dual_feasibility_tolerance": 1e-7,
    "presolve": "on",
    # Primal: it proves NETLIB's klein1 and klein3 infeasible, where the dual method gives up.
    "simplex_strategy": 4,
}

_STATUS = {
    _Model.kOptimal: SolveStatus.OPTIMAL,
    _Model.kInfeasible: SolveStatus.INFEASIBLE,
    _Model.kUnbounded: SolveStatus.UNBOUNDED,
    _Model.kUnboundedOrInfeasible: SolveStatus.UNBOUNDED,  # told apart afterwards
    _Model.kTimeLimit: SolveStatus.LIMIT,
    _Model.kIterationLimit: SolveStatus.LIMIT,
}


@dataclass(frozen=True)
class _StackedRows:
    """Equalities above inequalities, as HiGHS takes them."""

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray  # (1 or B, nnz), each row times its scale
    scale: np.ndarray  # (1 or B, m) powers of two


@dataclass(frozen=True)
class _Start:
    """Where every instance begins: a feasible basis, or the news that there is none."""

    status: SolveStatus
    basis: Any


class HighsSolver:
    """One HiGHS model, kept between calls and holding one instance at a time."""

    def __init__(self) -> None:
        self._highs: Any = highspy.Highs()  # typed loosely: the stubs lack some of its methods
        self._set(_OPTIONS)
        self._model: Any = None
        self._is_loaded = False
        self._unit = 1.0  # of x
        self._kept_start: _Start | None = None

    def solve(
        self, problem: LinearProgram, instance: int, cost: np.ndarray, seconds: float
    ) -> tuple[SolveStatus, np.ndarray | None]:
        """Status of one instance and its vertex; x is None unless OPTIMAL."""
        # The clock of a HiGHS model runs on from one solve to the next.
        self._set({"time_limit": self._highs.getRunTime() + seconds})
        self._load(problem, instance)
        start = self._start(problem)
        if start.status != SolveStatus.OPTIMAL:
            return start.status, None
        status, strayed = self._attempt(cost, start.basis)
        if strayed:  # leave no trace of it in the instances that follow
            self._is_loaded, self._kept_start = False, None
        if status == SolveStatus.INFEASIBLE and start.basis is not None:
            status = SolveStatus.FAILED  # a feasible basis is at hand, so this is wrong
        if status == SolveStatus.UNBOUNDED and start.basis is None:
            feasible, _ = self._attempt(np.zeros_like(cost), None)
            status = status if feasible == SolveStatus.OPTIMAL else feasible
        if status != SolveStatus.OPTIMAL:
            return status, None
        return status, self._unit * np.array(self._highs.getSolution().col_value)

    def _start(self, problem: LinearProgram) -> _Start:
        """A feasible basis when all instances have the same constraints, else the slack basis.

        An instance with constraints of its own cannot begin at another one's basis without
        depending on which others are in the batch. Every solver finds the basis for itself:
        taking over another's leaves the model in a different state, and the last bits differ.
        """
        if problem.n_instances is not None:
            return _Start(SolveStatus.OPTIMAL, None)
        if self._kept_start is None:
            status, _ = self._attempt(np.zeros(problem.n_variables), None)
            if status == SolveStatus.OPTIMAL:
                self._kept_start = _Start(status, self._highs.getBasis())
            elif status == SolveStatus.LIMIT:  # says nothing about the problem, so is not kept
                return _Start(status, None)
            elif status == SolveStatus.INFEASIBLE:
                self._kept_start = _Start(status, None)
            else:  # in trouble even without costs; let each instance try from the beginning
                self._kept_start = _Start(SolveStatus.OPTIMAL, None)
        return self._kept_start

    def _attempt(self, cost: np.ndarray, basis: Any) -> tuple[SolveStatus, bool]:
        """Tight tolerances first; HiGHS's own, with presolve, where those lead nowhere.

        Right-hand sides rounded in the ninth digit may have no solution to 1e-9, but one to 1e-7.
        The second value says whether any way but the first was taken.
        """
        troubles = (SolveStatus.FAILED, SolveStatus.INFEASIBLE)
        status = self._run(cost, basis, _FIRST)
        if status not in troubles:
            return status, False
        if status == SolveStatus.FAILED:
            status = self._run(cost, None, _DUAL)
        return (self._run(cost, None, _SECOND) if status in troubles else status), True

    def _run(self, cost: np.ndarray, basis: Any, options: dict[str, Any]) -> SolveStatus:
        highs = self._highs
        self._set(options)
        # Without this, factors and random numbers left by the last instance choose among ties.
        highs.clearSolver()
        highs.changeColsCost(len(cost), np.arange(len(cost), dtype=np.int32), cost)
        if basis is not None:
            highs.setBasis(basis)
        if highs.run() == highspy.HighsStatus.kError:
            # Another user of HiGHS in this process has fixed a different number of threads;
            # 0 accepts theirs, and the simplex method used here is serial all the same.
            self._set({"threads": 0})
            highs.run()
        return _STATUS.get(highs.getModelStatus(), SolveStatus.FAILED)

    def _load(self, problem: LinearProgram, instance: int) -> None:
        """Put the constraints of one instance into HiGHS, unless all have the same.

        The whole model is passed anew: HiGHS can change bounds in place, but then keeps scaling
        factors from the instance before, and the last bits depend on the order.
        """
        if self._is_loaded and problem.n_instances is None:
            return
        rows = problem.cached("highs-rows", lambda: _stack_rows(problem))
        if self._model is None:
            self._model = _empty_model(problem.n_variables, rows)
        own = instance if _rows_differ(problem) else 0
        model = self._model
        if _rows_differ(problem):
            model.a_matrix_.value_ = rows.data[own]
        lb, ub, b_eq, b_ub = (
            _of(part, instance) for part in (problem.lb, problem.ub, problem.b_eq, problem.b_ub)
        )
        no_limit = np.full(len(b_ub), -np.inf)
        with np.errstate(over="ignore"):  # an infinite equality makes HiGHS refuse: FAILED
            low = np.concatenate([b_eq, no_limit]) * rows.scale[own]
            high = np.concatenate([b_eq, b_ub]) * rows.scale[own]
            self._unit = linear_unit(high, lb, ub)
            model.row_lower_, model.row_upper_ = low / self._unit, high / self._unit
            model.col_lower_, model.col_upper_ = lb / self._unit, ub / self._unit
        self._highs.passModel(model)
        self._is_loaded = True

    def _set(self, options: dict[str, Any]) -> None:
        for name, value in options.items():
            self._highs.setOptionValue(name, value)


def _stack_rows(problem: LinearProgram) -> _StackedRows:
    parts = (problem.eq_rows, problem.ub_rows)
    count = max(len(rows.data) for rows in parts)
    largest = np.hstack([np.broadcast_to(r.largest, (count, r.shape[0])) for r in parts])
    data = np.hstack([np.broadcast_to(r.data, (count, len(r.indices))) for r in parts])
    indptr = np.concatenate([parts[0].indptr, parts[0].indptr[-1] + parts[1].indptr[1:]])
    exponent = np.frexp(np.where(largest > 0, largest, 1.0))[1]
    scale = np.ldexp(1.0, np.clip(1 - exponent, -1000, 1000))
    return _StackedRows(
        indptr.astype(np.int32),
        np.concatenate([r.indices for r in parts]).astype(np.int32),
        data * np.repeat(scale, np.diff(indptr), axis=1),
        scale,
    )


def _empty_model(n: int, rows: _StackedRows) -> Any:
    """A model with the rows of the first instance, still without bounds."""
    model: Any = highspy.HighsLp()
    model.num_col_, model.num_row_ = n, len(rows.indptr) - 1
    model.col_cost_ = np.zeros(n)
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_, model.a_matrix_.index_ = rows.indptr, rows.indices
    model.a_matrix_.value_ = rows.data[0]
    return model


def _rows_differ(problem: LinearProgram) -> bool:
    return problem.eq_rows.per_instance or problem.ub_rows.per_instance


def _of(array: np.ndarray, instance: int) -> np.ndarray:
    """The vector of one instance, whether it has its own or shares one."""
    return array[instance] if array.ndim == 2 else array
