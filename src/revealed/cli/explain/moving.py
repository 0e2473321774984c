"""How far costs may be moved before a whole decision stops being the best: by asking the solver.

    max t >= 0  such that  <c + t v, x - x*> >= 0 for every feasible x

The least of <c + t v, x - x*> over x is concave in t and piecewise linear. The first question, with
costs v alone, finds the decision that moving hurts most; from where that one ties with x*, Newton's
method goes down, a question a step, until nothing is better than x*. Letters: R moves, n variables.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...problems.integer import IntegerProgram
from ...problems.linear import LinearProgram
from ...problems.solution import SolveStatus

MOST = 50
"""Questions for one move; a handful is usual."""
TIED = 1e-7
"""Of the sum of |c_j (x_j - x*_j)|: a decision cheaper by less ties, as exact as solvers are."""


def farthest(
    problem: IntegerProgram, cost: np.ndarray, decision: np.ndarray, moves: np.ndarray
) -> np.ndarray:
    """(R,) how far costs (R, n) may go along `moves` (R, n) while decisions (R, n), the best under
    these costs, stay so; NaN where the solver did not say. `problem` is that of the R rows."""
    far = np.full(len(moves), np.inf)
    left = np.arange(len(moves))
    asked = moves
    for turn in range(MOST):
        x, answered = _asked(problem, asked, left)
        if turn == 0 and not answered.all():
            far[:], asked = _until_unbounded(problem, cost, moves)
            x, answered = _asked(problem, asked, left)
        far[left[~answered]] = np.nan
        step = x - decision[left]
        slope = np.einsum("ij,ij->i", moves[left], step)
        value = np.einsum("ij,ij->i", cost[left], step)
        size = np.abs(cost[left] * step).sum(axis=1) + np.abs(moves[left] * step).sum(axis=1)
        now = value + np.where(np.isfinite(far[left]), far[left], 0.0) * slope
        first = np.isinf(far[left])  # asked about the move alone
        better = np.where(first, slope < -TIED * size, now < -TIED * size) & (slope < 0) & answered
        left, value, slope = left[better], value[better], slope[better]
        if not left.size:
            return far
        far[left] = np.maximum(-value / slope, 0.0)
        asked = cost[left] + far[left][:, None] * moves[left]
    far[left] = np.nan
    return far


def _until_unbounded(
    problem: Any, cost: np.ndarray, moves: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(R,) how far costs may go before some total falls without limit, inf if never, and (R, n)
    costs to begin with: just before that, or the move alone."""
    rows = problem.relaxation
    far = np.array([_bounded_until(rows[[r]], cost[r], moves[r]) for r in range(len(moves))])
    far *= 1.0 - 1e-9
    ends = np.isfinite(far)[:, None]
    return far, np.where(ends, cost + np.where(ends, far[:, None], 0.0) * moves, moves)


def _bounded_until(rows: LinearProgram, cost: np.ndarray, move: np.ndarray) -> float:
    """max t  s.t.  cost + t move = A_eq^T v - A_ub^T mu + s - r with mu, s, r >= 0, s and r only
    where there is a lower and an upper bound: no ray of the plan then lowers the total."""
    eq, ub = (part.matrix(0).toarray() for part in (rows.eq_rows, rows.ub_rows))
    lower, upper = (np.isfinite(np.atleast_2d(bound)[0]) for bound in (rows.lb, rows.ub))
    unit, size = np.eye(len(cost)), max(float(np.abs(cost).max(initial=0.0)), 1e-300)
    columns = np.hstack([eq.T, -ub.T, unit[:, lower], -unit[:, upper], -move[:, None]])
    least = np.zeros(columns.shape[1])
    least[: len(eq)] = -np.inf
    goal = np.zeros((1, columns.shape[1]))
    goal[0, -1] = -1.0
    answer = LinearProgram(columns, cost / size, lb=least, ub=None).solve(goal)
    status = SolveStatus(int(answer.status[0]))
    if status is SolveStatus.OPTIMAL:
        return float(answer.x[0, -1]) * size
    return np.inf if status is SolveStatus.UNBOUNDED else 0.0


def _asked(problem: Any, costs: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(R, n) the best decisions under costs, and (R,) whether the solver has proved them so."""
    own = problem[rows] if problem.n_instances is not None else problem
    answer = own.solve(costs)
    proved = np.asarray(answer.status) == SolveStatus.OPTIMAL
    return np.where(proved[:, None], np.asarray(answer.x), 0.0), proved
