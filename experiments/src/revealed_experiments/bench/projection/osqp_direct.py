"""OSQP called directly: an operator-splitting method that keeps its factorization.

Rough figures in the comments: 12x12 grid with 8 neighbors (144 rows, 1012 columns), cold.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from .cases import Case
from .forms import compact_form, dual_form, hessian


class OsqpDirect:
    """OSQP, factorized once; the state of an instance enters by its bounds.

    Without Ruiz scaling, since the matrices of both forms are already of size 1 on the grids, and
    without polishing, which costs 0.4 ms here and brings nothing at these tolerances. Which form
    and step size win changes from case to case by up to 3 times: both are candidates. In the warm
    regime each instance starts from its own previous solution (0.67 ms; keeping a factorized
    solver for every instance gave 0.64 ms at best and needs B times the memory).
    """

    name = "OSQP"

    def __init__(self, form: str, eps: float, rho: float, scaling: int = 0) -> None:
        self.settings = {"form": form, "eps": eps, "rho": rho, "scaling": scaling}

    def prepare(self, case: Case) -> None:
        import osqp

        build = _osqp_dual if self.settings["form"] == "dual" else _osqp_compact
        P, A, self._vectors = build(case, case.costs)
        self._costs, self._starts = case.costs, None
        self._solver, eps = osqp.OSQP(), self.settings["eps"]
        options = {"rho": self.settings["rho"], "scaling": self.settings["scaling"]}
        # Starting from another instance's solution cost the dual form up to twice the iterations.
        options |= {"warm_starting": case.previous is not None}
        options |= {"max_iter": 20_000, "check_termination": 10, "eps_abs": eps, "eps_rel": eps}
        options |= {"time_limit": 1.0}  # hundreds of times what others need: it will not arrive
        q, l, u = (vector[0] for vector in self._vectors)
        self._solver.setup(P, q, A, l, u, verbose=False, **options)
        if case.previous is not None:
            self._starts = self._solve_all(build(case, case.previous)[2])

    def solve(self, i: int) -> np.ndarray:
        q, l, u = self._vectors
        self._solver.update(q=q[i], l=l[i], u=u[i])
        if self._starts is not None:
            self._solver.warm_start(*self._starts[i])
        return self._costs[i] + self._solver.solve(raise_error=False).x[: self._costs.shape[1]]

    def _solve_all(self, vectors) -> list[tuple[np.ndarray, np.ndarray]]:
        """(x, y) of every instance, to start from."""
        starts = []
        for q, l, u in zip(*vectors, strict=True):
            self._solver.update(q=q, l=l, u=u)
            result = self._solver.solve(raise_error=False)
            starts.append((result.x.copy(), result.y.copy()))
        return starts


def _osqp_dual(case: Case, costs: np.ndarray):
    form = dual_form(case, costs)
    A = sparse.csc_matrix(sparse.vstack([case.A_eq, case.A_ub, sparse.eye_array(case.n)]))
    zero = np.zeros((len(costs), case.m_eq))
    l = np.hstack([zero, np.full(form.row_upper.shape, -np.inf), form.lower])
    u = np.hstack([zero, form.row_upper, form.upper])
    return hessian(case.n), A, (form.linear, l, u)


def _osqp_compact(case: Case, costs: np.ndarray):
    form = compact_form(case, costs)
    m_eq, m_ub, n = case.m_eq, case.m_ub, case.n
    bounded = sparse.eye_array(m_ub, n + m_eq + m_ub, k=n + m_eq)  # mu alone has bounds
    A = sparse.csc_matrix(sparse.vstack([form.matrix, bounded]))
    l = np.hstack([form.row_lower, form.w_lower[:, m_eq:]])
    u = np.hstack([form.row_upper, form.w_upper[:, m_eq:]])
    return hessian(n, m_eq + m_ub), A, (np.zeros((len(costs), n + m_eq + m_ub)), l, u)
