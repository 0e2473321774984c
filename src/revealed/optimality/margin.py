"""The largest margin with which a cost explains a decision: one linear program for each."""

from __future__ import annotations

import numpy as np

from ..problems.linear import LinearProgram
from ..problems.solution import SolveStatus
from .active_set import EntryState
from .kinds import Conditions


def largest_margins(at: Conditions, costs: np.ndarray) -> np.ndarray:
    """(B,) margins of costs (B, n), gradients of the objective; see `max_margin` of the sets."""
    return np.array([_largest_margin(at, cost, b) for b, cost in enumerate(costs)])


def _largest_margin(at: Conditions, cost: np.ndarray, b: int) -> float:
    """max delta  s.t.  cost = A_eq^T v - A_ub^T mu + s,  s and mu on the right side by delta."""
    one = at.rows[np.array([b])]
    active, state = at.active.row_active[b], at.active.entry_state[b]
    eq, ub = one.eq_rows.matrix(0).toarray(), one.ub_rows.matrix(0).toarray()[active]
    n_v, n_mu = len(eq), len(ub)
    size = max(np.abs(cost).max(initial=0.0), 1e-300)
    explain = np.hstack([eq.T, -ub.T])
    lower, upper = state == EntryState.AT_LOWER, state == EntryState.AT_UPPER
    free = state == EntryState.FREE
    rows = np.vstack(
        [
            np.hstack([explain[lower], np.ones((lower.sum(), 1))]),
            np.hstack([-explain[upper], np.ones((upper.sum(), 1))]),
            np.hstack([np.zeros((n_mu, n_v)), -np.eye(n_mu), np.ones((n_mu, 1))]),
        ]
    )
    limit = np.concatenate([cost[lower], -cost[upper], np.zeros(n_mu)]) / size
    program = LinearProgram(
        A_eq=np.hstack([explain[free], np.zeros((free.sum(), 1))]),
        b_eq=cost[free] / size,
        A_ub=rows,
        b_ub=limit,
        lb=None,
        ub=None,
    )
    objective = np.zeros((1, n_v + n_mu + 1))
    objective[0, -1] = -1.0
    answer = program.solve(objective)
    status = SolveStatus(int(answer.status[0]))
    if status is SolveStatus.OPTIMAL:
        return float(answer.x[0, -1] * size)
    return {SolveStatus.UNBOUNDED: np.inf, SolveStatus.INFEASIBLE: -np.inf}.get(status, np.nan)
