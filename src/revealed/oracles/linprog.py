"""Without highspy: the copy of HiGHS inside scipy, one call for each instance.

Slower, as nothing is kept between calls, but also at vertices. It gives multipliers and no rays:
`fallback` finds those by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import linprog

from ..problems.solution import SolveStatus
from .claims import FIRST, Claim, Way, most_steps
from .proofs import Polyhedron
from .units import linear_unit, size_in_box

if TYPE_CHECKING:
    from ..problems.linear import LinearProgram

# What scipy's result codes mean; 1 is a limit, of time or steps, and 4 numerical trouble.
_STATUS = {
    0: SolveStatus.OPTIMAL,
    2: SolveStatus.INFEASIBLE,
    3: SolveStatus.UNBOUNDED,
}


class LinprogSolver:
    """Solves one instance with `scipy.optimize.linprog`, by the dual simplex method."""

    def solve(
        self, problem: LinearProgram, instance: int, cost: np.ndarray, seconds: float
    ) -> Claim:
        """What scipy says of one instance; decisions are vertices."""
        at = Polyhedron.of(problem, instance)
        unit = linear_unit(size_in_box(at.b[: at.n_eq], at.b[at.n_eq :], at.lb, at.ub))
        scaled = at._replace(b=at.b / unit, lb=at.lb / unit, ub=at.ub / unit)
        claim = self.once(scaled, cost, seconds, FIRST._replace(presolve=True))
        return claim if claim.x is None else claim._replace(x=unit * claim.x)

    def once(self, at: Polyhedron, cost: np.ndarray, seconds: float, way: Way) -> Claim:
        """What scipy says of constraints as they are."""
        binds = np.isfinite(at.b)  # scipy refuses the infinite ones
        binds[: at.n_eq] = False
        options = {
            "primal_feasibility_tolerance": way.tol,
            "dual_feasibility_tolerance": way.tol,
            "presolve": way.presolve,
            "time_limit": seconds if np.isfinite(seconds) else None,
        }
        if way.capped:
            options["maxiter"] = most_steps(*at.A.shape)
        result = linprog(
            cost,
            A_ub=at.A[binds],
            b_ub=at.b[binds],
            A_eq=at.A[: at.n_eq],
            b_eq=at.b[: at.n_eq],
            bounds=np.column_stack([at.lb, at.ub]),
            method="highs-ds",
            options=options,
        )
        if result.status == 1:  # time or steps
            late = result.message.startswith("Time")
            return Claim(SolveStatus.LIMIT if late else SolveStatus.FAILED)
        status = _STATUS.get(result.status, SolveStatus.FAILED)
        if status != SolveStatus.OPTIMAL:
            return Claim(status)
        y = np.zeros(len(at.b))
        y[: at.n_eq], y[binds] = result.eqlin.marginals, result.ineqlin.marginals
        return Claim(status, np.asarray(result.x), y)

    def stop(self) -> None:
        """Nothing can be done about a call of scipy's; it ends by itself."""
