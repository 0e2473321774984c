"""Decisions seen in part, completed: the cheapest feasible ones that agree with what was seen.

If any completion is optimal under a cost, the cheapest one is, so costs explain what was seen
exactly if the cheapest decision that agrees costs as little as the cheapest of all. Letters: B
samples, n variables, q totals.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from .._common.rows import frozen
from ..errors import InputError, ShapeError
from ..problems.linear import LinearProgram
from ..problems.protocol import Problem
from ..problems.solution import Solution, SolveStatus

SLIGHT = 1e-6
"""How far beyond its bounds an entry may be seen."""


class Completion:
    """The cheapest decisions that agree with what was seen, under any costs.

    Parameters
    ----------
    problem : LinearProgram
    seen : (B, n) or (B, q) array
        Entries of decisions, or totals; NaN where nothing was seen.
    totals : (q, n) matrix, optional
        Dense or scipy.sparse: row k adds up what `seen[:, k]` is the total of.
    slack : float or (n,) array
        How far a decision may be from entries seen, for they may be rounded.
    """

    def __init__(
        self, problem: Problem, seen: Any, totals: Any = None, *, slack: float | np.ndarray = 0.0
    ) -> None:
        if type(problem) is not LinearProgram:
            raise InputError(
                "Decisions seen in part are those of a LinearProgram; got "
                f"{type(problem).__name__}."
            )
        self.problem, self.n = problem, problem.n_variables
        self.seen = _checked(seen, totals, self.n)
        agreeing = self._with_entries(slack) if totals is None else self._with_totals(totals)
        self._agreeing = agreeing

    def solve(self, costs: np.ndarray) -> tuple[np.ndarray, Solution]:
        """(B, n) decisions, NaN where there is none, and what the solver said."""
        extra = self._agreeing.n_variables - self.n
        padded = np.hstack([costs, np.zeros((len(costs), extra))]) if extra else costs
        answer = self._agreeing.solve(padded)
        found = np.array(answer.x)[:, : self.n]
        found[~np.asarray(answer.optimal)] = np.nan
        return found, answer

    def complete(self, costs: np.ndarray) -> np.ndarray:
        """(B, n); refused where no feasible decision agrees with what was seen."""
        found, answer = self.solve(costs)
        bad = np.flatnonzero(~np.asarray(answer.optimal))
        if bad.size:
            status = SolveStatus(int(answer.status[bad[0]]))
            why = (
                "no feasible decision agrees with what was seen; look at that row"
                if status is SolveStatus.INFEASIBLE
                else status.sentence
            )
            raise InputError(f"Row {bad[0]} cannot be completed ({bad.size} cannot): {why}")
        return found

    def gap(self, costs: np.ndarray, completed: np.ndarray) -> float:
        """By how much decisions that agree cost more than the cheapest, as a share of what the
        latter cost; inf where costs have no cheapest decision."""
        free = self.problem.solve(costs)
        if not np.asarray(free.optimal).all():
            return np.inf
        paid, least = (costs * completed).sum(axis=1), np.asarray(free.objective)
        return float((paid - least).sum() / max(np.abs(least).sum(), 1e-300))

    def _with_entries(self, slack: float | np.ndarray) -> LinearProgram:
        lb, ub, there = self.problem.lb, self.problem.ub, ~np.isnan(self.seen)
        reach = np.maximum(slack, SLIGHT)
        broken = there & ((self.seen < lb - reach) | (self.seen > ub + reach))
        if broken.any():
            b, j = np.argwhere(broken)[0]
            raise InputError(
                f"Row {b}: entry {j} was seen as {self.seen[b, j]:g}, out of its bounds."
            )
        near = np.clip(self.seen, lb, ub) if np.any(slack) else self.seen
        low = np.where(there, np.maximum(near - slack, lb) if np.any(slack) else near, lb)
        high = np.where(there, np.minimum(near + slack, ub) if np.any(slack) else near, ub)
        parts = {"lb": frozen(low), "ub": frozen(high), "n_instances": len(low)}
        return self.problem.replaced(**parts, structure=None)

    def _with_totals(self, totals: Any) -> LinearProgram:
        """Variables (x, t) with M x = t: totals that were seen are bounds of t."""
        M, (B, q) = sparse.csr_array(totals), self.seen.shape
        base, there = self.problem, ~np.isnan(self.seen)
        eq = sparse.block_array([[base.eq_rows.matrix(0), None], [M, -sparse.eye_array(q)]])
        eq = eq if base.eq_rows.shape[0] else sparse.hstack([M, -sparse.eye_array(q)])
        ub: Any = base.ub_rows.matrix(0)
        m_ub = base.ub_rows.shape[0]
        low, high = (np.where(there, self.seen, end) for end in (-np.inf, np.inf))
        own_low, own_high = (np.broadcast_to(v, (B, self.n)) for v in (base.lb, base.ub))
        b_eq = np.broadcast_to(base.b_eq, (B, base.b_eq.shape[-1]))
        return LinearProgram(
            A_eq=eq,
            b_eq=np.hstack([b_eq, np.zeros((B, q))]),
            A_ub=sparse.hstack([ub, sparse.csr_array((m_ub, q))]) if m_ub else None,
            b_ub=base.b_ub if m_ub else None,
            lb=np.hstack([own_low, low]),
            ub=np.hstack([own_high, high]),
        )


def plain_costs(problem: LinearProgram) -> np.ndarray:
    """(n,) costs to complete under before any are known: 1 where a lower bound keeps an entry from
    falling for ever, -1 where only an upper one keeps it from growing, 0 where none does."""
    low, high = (np.isfinite(np.atleast_2d(v)).all(axis=0) for v in (problem.lb, problem.ub))
    return np.where(low, 1.0, np.where(high, -1.0, 0.0))


def _checked(seen: Any, totals: Any, n: int) -> np.ndarray:
    array = np.asarray(seen, dtype=np.float64)
    width = n if totals is None else totals.shape[0]
    if array.ndim != 2 or array.shape[1] != width:
        raise ShapeError(
            f"What was seen must have shape (B, {width}), NaN where nothing was; got {array.shape}."
        )
    if totals is not None and totals.shape[1] != n:
        raise ShapeError(
            f"`totals` must have {n} columns, one for each variable; got {totals.shape[1]}."
        )
    if np.isinf(array).any():
        raise InputError("What was seen must be finite, or NaN where nothing was.")
    empty = np.flatnonzero(np.isnan(array).all(axis=1))
    if empty.size:
        raise InputError(
            f"Row {empty[0]} has nothing that was seen ({empty.size} such rows): any decision "
            "agrees with it, so it teaches nothing. Leave such rows out."
        )
    return array
