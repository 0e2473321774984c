"""Fractional knapsacks by greed: items in order of cost for each unit of weight.

This is the exact optimum of minimize <c, x> with weights x <= capacity, 0 <= x <= 1: only items
of negative cost are worth taking, weightless ones first, and at most one is cut. Items equally
good are taken in order of their index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..problems.solution import SolveStatus
from ..problems.structures import KnapsackStructure, StandardKnapsackStructure

if TYPE_CHECKING:
    from ..problems.linear import LinearProgram

# Sums of weights carry rounding: what is left over of a knapsack filled exactly is this part of
# its capacity or less, and must not put 1e-17 of a further item into the decision.
_ROUNDING = 1e-12


def solve_knapsacks(problem: LinearProgram, costs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Decisions (B, n) and statuses (B,); a negative capacity is infeasible."""
    knapsack: KnapsackStructure = problem.structure
    return _greedy(knapsack.weights, np.broadcast_to(knapsack.capacity, len(costs)), costs)


def solve_standard_knapsacks(
    problem: LinearProgram, costs: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The same in standard form. With s = capacity - <weights, x> and t = 1 - x the slacks' costs
    become costs of the items: <c, x> + c_s s + <c_t, t> = <c - c_s weights - c_t, x> + constant."""
    knapsack: StandardKnapsackStructure = problem.structure
    weights, n = knapsack.weights, len(knapsack.weights)
    folded = costs[:, :n] - costs[:, n : n + 1] * weights - costs[:, n + 1 :]
    capacity = np.broadcast_to(knapsack.capacity, len(costs))
    taken, status = _greedy(weights, capacity, folded)
    rest = capacity - taken @ weights
    # What rounding leaves of a full knapsack is no slack.
    rest = np.where(rest > _ROUNDING * capacity, rest, 0.0)
    return np.hstack([taken, rest[:, None], 1.0 - taken]), status


def _greedy(
    item_weights: np.ndarray, capacity: np.ndarray, costs: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        rate = costs / item_weights  # -inf for an item without weight
    order = np.argsort(np.where(costs < 0, rate, np.inf), axis=1, kind="stable")
    weights = item_weights[order]
    weights[np.take_along_axis(costs, order, axis=1) >= 0] = np.inf  # never worth its room
    taken = _fill(weights, capacity)
    X = np.empty(costs.shape)
    np.put_along_axis(X, order, taken, axis=1)
    status = np.where(capacity < 0, SolveStatus.INFEASIBLE, SolveStatus.OPTIMAL)
    return X, status.astype(np.int8)


def _fill(weights: np.ndarray, capacity: np.ndarray) -> np.ndarray:
    """(B, n) fraction of each item when taken one after the other; infinite weights take none."""
    capacity = capacity[:, None]
    before = np.zeros(weights.shape)
    np.cumsum(weights[:, :-1], axis=1, out=before[:, 1:])
    slack = _ROUNDING * np.where(np.isinf(capacity), 0.0, capacity)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        left = capacity - before
        left = np.where(left > slack, left, 0.0)
        fits = (weights == 0) | ((left > 0) & (weights <= left + slack)) | np.isinf(capacity)
        part = np.where(fits, 1.0, left / weights)
    return np.where(np.isinf(weights), 0.0, part)
