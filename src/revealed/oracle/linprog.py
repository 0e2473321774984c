"""Without highspy: the copy of HiGHS inside scipy, one call for each instance.

Slower, as nothing is kept between calls, but with the same statuses and also at vertices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import linprog

from .solution import SolveStatus
from .units import linear_unit

if TYPE_CHECKING:
    from ..problem import LinearProgram

# What scipy's result codes mean; 4 is numerical trouble.
_STATUS = {
    0: SolveStatus.OPTIMAL,
    1: SolveStatus.LIMIT,
    2: SolveStatus.INFEASIBLE,
    3: SolveStatus.UNBOUNDED,
}


class LinprogSolver:
    """Solves one instance with `scipy.optimize.linprog`, by the dual simplex method."""

    def solve(
        self, problem: LinearProgram, instance: int, cost: np.ndarray, seconds: float
    ) -> tuple[SolveStatus, np.ndarray | None]:
        """Status of one instance and its vertex; x is None unless OPTIMAL."""
        status, x = _run(problem, instance, cost, seconds)
        if status in (SolveStatus.UNBOUNDED, SolveStatus.FAILED):
            # HiGHS may stop at "unbounded or infeasible"; without costs only one is possible.
            feasible, _ = _run(problem, instance, np.zeros_like(cost), seconds)
            if feasible == SolveStatus.INFEASIBLE:
                return feasible, None
        return status, x


def _run(
    problem: LinearProgram, instance: int, cost: np.ndarray, seconds: float
) -> tuple[SolveStatus, np.ndarray | None]:
    lower, upper, b_eq, b_ub = (
        array[instance] if array.ndim == 2 else array
        for array in (problem.lb, problem.ub, problem.b_eq, problem.b_ub)
    )
    binds = np.isfinite(b_ub)  # scipy refuses the infinite ones
    unit = linear_unit(b_eq, b_ub, lower, upper)
    result = linprog(
        cost,
        A_ub=problem.ub_rows.matrix(instance)[binds],
        b_ub=b_ub[binds] / unit,
        A_eq=problem.eq_rows.matrix(instance),
        b_eq=b_eq / unit,
        bounds=np.column_stack([lower, upper]) / unit,
        method="highs-ds",
        options={
            "primal_feasibility_tolerance": 1e-9,
            "dual_feasibility_tolerance": 1e-9,
            "time_limit": seconds if np.isfinite(seconds) else None,
        },
    )
    status = _STATUS.get(result.status, SolveStatus.FAILED)
    return status, unit * result.x if status == SolveStatus.OPTIMAL else None
