"""How much costs may change before a decision changes.

A decision x is optimal under c exactly if c lies in the set C(x). Its sensitivity is how far c is
from leaving that set: along one entry (a sensitivity range), or along all entries at once (the
largest margin with which c explains x).

Letters: n variables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...metrics.sameness import alike
from ...optimality.sets import EntryState, OptimalitySet
from ...problems.integer import IntegerProgram
from ...problems.linear import LinearProgram
from ...problems.solution import SolveStatus
from ..plans import Plan
from .moving import farthest


class SensitivityRange(NamedTuple):
    """The range of one variable's cost within which the decision stays optimal."""

    variable: str
    taken: float
    """The decision's entry."""
    cost: float
    low: float
    """-inf where the cost may fall without limit; `high` likewise."""
    high: float


class Needed(NamedTuple):
    """A cost of a decision that it does not explain, and what it would have to be."""

    variable: str
    taken: float
    """The decision's entry."""
    cost: float
    nearest: float
    """In the nearest costs, all entries together, that explain the decision."""


def needed(plan: Plan, cost: np.ndarray, decision: np.ndarray, nearest: np.ndarray) -> list[Needed]:
    """Cost and nearest cost (n,) of every variable where they differ, by most first."""
    order = np.argsort(-np.abs(nearest - cost), kind="stable")
    order = order[~alike(nearest, cost)[order]]
    return [
        Needed(plan.variables[j], float(decision[j]), float(cost[j]), float(nearest[j]))
        for j in order
    ]


def stable_changes(plan: Plan, costs: np.ndarray, decisions: np.ndarray) -> np.ndarray:
    """(B,): how much all costs may change at once before the decision does: the largest margin
    with which they explain it, negative if they do not.

    NaN for decisions that are between bounds in an entry that is whole: there the change that hurts
    most depends on the alternative.
    """
    problem: Any = plan.problem
    if isinstance(problem, IntegerProgram):
        return _whole_changes(problem, costs, decisions)
    return np.asarray(OptimalitySet(plan.problem, decisions, 0.0).max_margin(costs))


def _whole_changes(problem: IntegerProgram, costs: np.ndarray, decisions: np.ndarray) -> np.ndarray:
    """(B,) as `stable_changes`: where all entries are at a bound, |x - x*|_1 is linear in x, and
    moving every cost against the decision is the same as asking for a margin."""
    lb, ub = (np.broadcast_to(bound, decisions.shape) for bound in (problem.lb, problem.ub))
    low, high = (alike(decisions, bound) & np.isfinite(bound) for bound in (lb, ub))
    there = np.flatnonzero((low | high).all(axis=1))
    changes = np.full(len(decisions), np.nan)
    away = np.where(high[there], 1.0, -1.0) * ~(low & high)[there]
    own = problem[there] if problem.n_instances is not None else problem
    changes[there] = farthest(own, costs[there], decisions[there], away)
    return changes


def cost_ranges(
    plan: Plan,
    cost: np.ndarray,
    decision: np.ndarray,
    step: Callable[[int], None] = lambda k: None,
) -> list[SensitivityRange]:
    """For each variable, the range of its cost, the others unchanged, in which the decision stays
    optimal. Two small linear programs for each variable, or a few questions to the solver of whole
    decisions; `step` is called after each."""
    if plan.is_whole:
        return _whole_ranges(plan, cost, decision, step)
    sets = OptimalitySet(plan.problem, decision[None], 0.0)
    ranges = []
    for j, name in enumerate(plan.variables):
        low, high = (_farthest(sets, cost, j, way) for way in (-1.0, 1.0))
        own = float(cost[j])
        ranges.append(SensitivityRange(name, float(decision[j]), own, own - low, own + high))
        step(j + 1)
    return ranges


def _whole_ranges(
    plan: Plan, cost: np.ndarray, decision: np.ndarray, step: Callable[[int], None]
) -> list[SensitivityRange]:
    problem: Any = plan.problem
    two = problem if problem.n_instances is None else problem[np.zeros(2, int)]
    ranges = []
    for j, name in enumerate(plan.variables):
        moves = np.zeros((2, len(cost)))
        moves[0, j], moves[1, j] = -1.0, 1.0
        costs, decisions = (np.repeat(part[None], 2, axis=0) for part in (cost, decision))
        low, high = farthest(two, costs, decisions, moves).tolist()
        own = float(cost[j])
        ranges.append(SensitivityRange(name, float(decision[j]), own, own - low, own + high))
        step(j + 1)
    return ranges


def _farthest(sets: OptimalitySet, cost: np.ndarray, j: int, way: float) -> float:
    """max t  s.t.  cost + way t e_j = A_eq^T v - A_ub^T mu + s, s and mu on their side; t >= 0."""
    problem, active = sets.rows, sets.row_active[0]
    eq = problem.eq_rows.matrix(0).toarray()
    ub = problem.ub_rows.matrix(0).toarray()[active]
    size = max(float(np.abs(cost).max(initial=0.0)), 1e-300)
    move = np.zeros((len(cost), 1))
    move[j] = -way
    explain = np.hstack([eq.T, -ub.T, move])  # (n, v + mu + t)
    state = sets.entry_state[0]
    free, lower, upper = (
        state == kind for kind in (EntryState.FREE, EntryState.AT_LOWER, EntryState.AT_UPPER)
    )
    below = np.concatenate([np.full(len(eq), -np.inf), np.zeros(len(ub) + 1)])
    program = LinearProgram(
        A_eq=explain[free],
        b_eq=cost[free] / size,
        A_ub=np.vstack([explain[lower], -explain[upper]]),
        b_ub=np.concatenate([cost[lower], -cost[upper]]) / size,
        lb=below,
        ub=None,
    )
    objective = np.zeros((1, explain.shape[1]))
    objective[0, -1] = -1.0
    answer = program.solve(objective)
    status = SolveStatus(int(answer.status[0]))
    if status is SolveStatus.OPTIMAL:
        return float(answer.x[0, -1] * size)
    return np.inf if status is SolveStatus.UNBOUNDED else 0.0
