"""HiGHS through highspy: one model kept, re-solved for each cost by the simplex method.

The simplex method ends at a vertex. Where only the costs differ, a feasible basis is found once
and every instance starts there, not where the one before it ended: quick, and independent of the
batch. Rows are scaled by powers of two so that HiGHS's absolute tolerances mean the same for each,
and so is x where right-hand sides and bounds are far from 1. Nothing that HiGHS says is believed
here: what would prove it goes along, and `general` checks that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import highspy
import numpy as np

from ..problems.solution import SolveStatus
from .claims import FIRST, Claim, Way, most_steps
from .units import linear_unit, size_in_box

if TYPE_CHECKING:
    from ..problems.linear import LinearProgram
    from .proofs import Polyhedron

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
_NO_LIMIT = 2**31 - 1

_STATUS = {
    _Model.kOptimal: SolveStatus.OPTIMAL,
    _Model.kInfeasible: SolveStatus.INFEASIBLE,
    _Model.kUnbounded: SolveStatus.UNBOUNDED,
    _Model.kUnboundedOrInfeasible: SolveStatus.UNBOUNDED,  # the proofs decide which
    _Model.kTimeLimit: SolveStatus.LIMIT,
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
    """Where every instance begins: at a feasible basis if there is one; or it does not begin."""

    claim: Claim | None
    basis: Any


class HighsSolver:
    """One HiGHS model, kept between calls and holding one instance at a time."""

    def __init__(self) -> None:
        self._highs: Any = highspy.Highs()  # typed loosely: the stubs lack some of its methods
        self._set(_OPTIONS)
        self._model: Any = None
        self._is_loaded = False
        self._unit = 1.0  # of x
        self._scale = np.ones(0)  # of the rows
        self._kept_start: _Start | None = None
        self._is_stopped = False
        self._way: Way | None = None  # whose options are set

    def solve(
        self, problem: LinearProgram, instance: int, cost: np.ndarray, seconds: float
    ) -> Claim:
        """What HiGHS says of one instance; decisions are vertices."""
        self._load(problem, instance)
        start = self._start(problem, seconds)
        if start.claim is not None:
            return start.claim
        return self._claim(self._run(cost, start.basis, FIRST, seconds), FIRST)

    def once(self, at: Polyhedron, cost: np.ndarray, seconds: float, way: Way) -> Claim:
        """What HiGHS says of constraints as they are, from the beginning; what was loaded before
        is lost."""
        self._is_loaded, self._kept_start, self._model, self._way = False, None, None, None
        rows = _StackedRows(at.A.indptr, at.A.indices, at.A.data[None], np.ones((1, len(at.b))))
        model = _empty_model(len(cost), rows)
        no_limit = np.full(len(at.b) - at.n_eq, -np.inf)
        model.row_lower_, model.row_upper_ = np.concatenate([at.b[: at.n_eq], no_limit]), at.b
        model.col_lower_, model.col_upper_ = at.lb, at.ub
        self._unit, self._scale = 1.0, np.ones(len(at.b))
        self._highs.passModel(model)
        return self._claim(self._run(cost, None, way, seconds), way)

    def stop(self) -> None:
        """End a run in another thread: HiGHS looks at its limit at every step."""
        self._is_stopped = True
        self._set({"time_limit": 0.0})

    def _start(self, problem: LinearProgram, seconds: float) -> _Start:
        """A feasible basis when all instances have the same constraints, else the slack basis.

        An instance with constraints of its own cannot begin at another one's basis without
        depending on which others are in the batch. Every solver finds the basis for itself:
        taking over another's leaves the model in a different state, and the last bits differ.
        """
        if problem.n_instances is not None:
            return _Start(None, None)
        if self._kept_start is None:
            status = self._run(np.zeros(problem.n_variables), None, FIRST, seconds)
            if status == SolveStatus.OPTIMAL:
                self._kept_start = _Start(None, self._highs.getBasis())
            elif status == SolveStatus.LIMIT:  # says nothing about the problem, so is not kept
                return _Start(Claim(status), None)
            elif status == SolveStatus.INFEASIBLE:
                self._kept_start = _Start(self._claim(status, FIRST), None)
            else:  # in trouble even without costs; let each instance try from the beginning
                self._kept_start = _Start(None, None)
        return self._kept_start

    def _run(self, cost: np.ndarray, basis: Any, way: Way, seconds: float) -> SolveStatus:
        if self._is_stopped:
            return SolveStatus.LIMIT
        highs = self._highs
        # The clock of a HiGHS model runs on from one solve to the next.
        self._set({"time_limit": highs.getRunTime() + seconds})
        if way != self._way:
            self._set(_options(way, highs))
            self._way = way
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

    def _claim(self, status: SolveStatus, way: Way) -> Claim:
        """With what would prove it; after presolve there are no rays."""
        highs = self._highs
        if status == SolveStatus.OPTIMAL:
            found = highs.getSolution()
            y = self._scale * np.array(found.row_dual)
            return Claim(status, self._unit * np.array(found.col_value), y)
        if status == SolveStatus.INFEASIBLE and not way.presolve:
            _, there, w = highs.getDualRay()
            return Claim(status, y=self._scale * np.array(w) if there else None)
        if status == SolveStatus.UNBOUNDED and not way.presolve:
            _, there, r = highs.getPrimalRay()
            return Claim(status, ray=np.array(r) if there else None)
        return Claim(status)

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
            size = size_in_box(high[: len(b_eq)], high[len(b_eq) :], lb, ub)
            self._unit, self._scale = linear_unit(size), rows.scale[own]
            model.row_lower_, model.row_upper_ = low / self._unit, high / self._unit
            model.col_lower_, model.col_upper_ = lb / self._unit, ub / self._unit
        self._highs.passModel(model)
        self._is_loaded = True

    def _set(self, options: dict[str, Any]) -> None:
        for name, value in options.items():
            self._highs.setOptionValue(name, value)


def _options(way: Way, highs: Any) -> dict[str, Any]:
    steps = most_steps(highs.getNumRow(), highs.getNumCol()) if way.capped else _NO_LIMIT
    return {
        "primal_feasibility_tolerance": way.tol,
        "dual_feasibility_tolerance": way.tol,
        "presolve": "on" if way.presolve else "off",
        # 0: primal from a feasible basis, dual otherwise; 1: dual; 4: primal
        "simplex_strategy": 1 if way.dual else 4 if way.presolve else 0,
        "simplex_iteration_limit": steps,
    }


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
