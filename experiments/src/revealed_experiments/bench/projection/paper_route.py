"""The paper's route: one CVXPY problem with parameters, solved instance by instance.

min |c - q|^2   s.t.  c = A_eq^T v - A_ub^T mu + s+ - s-,   s+, s- at least the margin where an
entry is at its bound and 0 where it is not. The predicted cost and the masks are parameters, so
CVXPY compiles the problem once (it is DPP) and only fills numbers in afterwards. On problems in
standard form, the paper's own, there is no mu and no s-: the masks say which entries are basic.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from revealed.optimality.sets import EntryState

from .cases import Case
from .rivals import Rival


class PaperRoute:
    """CVXPY with parameters and ECOS or OSQP behind it."""

    def __init__(self, solver: str, **options: Any) -> None:
        self.name = f"CVXPY + {solver}"
        self._solver, self._options = solver, options
        self.settings = {"solver": solver, **options}

    def prepare(self, case: Case) -> None:
        import cvxpy as cp

        self._case = case
        c, q = cp.Variable(case.n), cp.Parameter(case.n)
        self._parameters = [(q, case.costs)]
        constraints: list = []
        constraints.append(c == self._explained(case, constraints))
        self._point = c
        self._problem = cp.Problem(cp.Minimize(cp.sum_squares(c - q)), constraints)
        self.solve(0)  # compiles

    def solve(self, i: int) -> np.ndarray:
        import cvxpy as cp

        for parameter, values in self._parameters:
            parameter.value = values[i]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # "solution may be inaccurate": measured instead
                self._problem.solve(solver=self._solver, **self._options)
        except cp.SolverError:
            return np.full(self._case.n, np.nan)
        value = self._point.value
        return np.full(self._case.n, np.nan) if value is None else np.array(value)

    def _explained(self, case: Case, constraints: list) -> Any:
        """The cost that the multipliers explain; what bounds them is added to `constraints`."""
        import cvxpy as cp

        state = case.entry_state
        terms = [self._bounded(state, EntryState.AT_LOWER, case, constraints)]
        if np.isin(state, (EntryState.AT_UPPER, EntryState.FIXED)).any():
            terms.append(-self._bounded(state, EntryState.AT_UPPER, case, constraints))
        if case.m_eq:
            terms.append(case.A_eq.T @ cp.Variable(case.m_eq))
        if case.m_ub:
            mu = self._masked(~case.row_active, case.row_active, case, constraints)
            terms.append(-(case.A_ub.T @ mu))
        return sum(terms[1:], terms[0])

    def _bounded(self, state: np.ndarray, side: EntryState, case: Case, constraints: list) -> Any:
        # A fixed entry may have either sign: both parts are free to grow from 0.
        absent = (state != side) & (state != EntryState.FIXED)
        return self._masked(absent, state == side, case, constraints)

    def _masked(self, absent: np.ndarray, held: np.ndarray, case: Case, constraints: list) -> Any:
        """A variable that is 0 where `absent` and at least the margin where `held`."""
        import cvxpy as cp

        size = absent.shape[1]
        part, zero, low = cp.Variable(size), cp.Parameter(size, nonneg=True), cp.Parameter(size)
        constraints += [cp.multiply(zero, part) == 0, part >= low]
        self._parameters += [(zero, absent.astype(float)), (low, case.margin * held)]
        return part


def ecos_as_published(case: Case) -> list[Rival]:
    """ECOS with its default tolerances, as the paper uses it: right to about 1e-4 on grids."""
    return [PaperRoute("ECOS")]


def ecos_candidates(case: Case) -> list[Rival]:
    """ECOS at the tolerance nearest to equal accuracy; tighter, it may stall (5 times as long)."""
    return [PaperRoute("ECOS", abstol=1e-10, reltol=1e-10, feastol=1e-10, max_iters=200)]


def osqp_candidates(case: Case) -> list[Rival]:
    """OSQP at tolerances tight enough to compare."""
    limits = {"max_iter": 20_000, "time_limit": 2.0}
    return [PaperRoute("OSQP", eps_abs=eps, eps_rel=eps, **limits) for eps in (1e-7, 1e-9)]


# Name -> (packages, candidates for a case)
PAPER: dict[str, tuple[tuple[str, ...], Callable[[Case], list[Rival]]]] = {
    "CVXPY + ECOS": (("cvxpy", "ecos"), ecos_candidates),
    "CVXPY + ECOS as published": (("cvxpy", "ecos"), ecos_as_published),
    "CVXPY + OSQP": (("cvxpy", "osqp"), osqp_candidates),
}
