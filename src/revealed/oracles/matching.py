"""Bipartite matchings that cover the left side, by shortest augmenting paths.

The linear program's vertices are the matchings, so the best matching is its exact optimum. The
method is Crouse's (*On implementing 2D rectangular assignment algorithms*, 2016), as in scipy's
`linear_sum_assignment`, and ties fall as they do there. It looks at the edges there are instead of
all pairs, and runs without the interpreter's lock, which scipy's does not: that is what lets blocks
of a batch be solved by several threads at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .._common.compiled import kernel
from ..problems.solution import SolveStatus
from ..problems.structures import MatchingStructure

if TYPE_CHECKING:
    from ..problems.linear import LinearProgram

_OPTIMAL, _INFEASIBLE = int(SolveStatus.OPTIMAL), int(SolveStatus.INFEASIBLE)


@dataclass(frozen=True)
class _Sides:
    """Edges grouped by their left end; within one in the order of the variables."""

    start: np.ndarray  # (n_left + 1,)
    edge: np.ndarray  # (E,) variable
    right: np.ndarray  # (E,) right end


def solve_matchings(problem: LinearProgram, costs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Decisions (B, E) and statuses (B,)."""
    graph: MatchingStructure = problem.structure
    sides = problem.cached("matching-sides", lambda: _group_by_left(graph))
    X = np.zeros(costs.shape)
    status = np.empty(len(costs), dtype=np.int8)
    _match_batch(costs, sides.start, sides.edge, sides.right, graph.n_right, X, status)
    return X, status


def _group_by_left(graph: MatchingStructure) -> _Sides:
    edge = np.argsort(graph.left, kind="stable")
    start = np.searchsorted(graph.left[edge], np.arange(graph.n_left + 1))
    return _Sides(start, edge, graph.right[edge])


@kernel
def _match_batch(costs, start, edge, right, n_right, X, status):
    """Each instance: one left node after the other joins the matching."""
    n_left = len(start) - 1
    mate_of_left = np.empty(n_left, dtype=np.int64)  # -1 where there is none
    mate_of_right = np.empty(n_right, dtype=np.int64)
    price_of_left, price_of_right = np.empty(n_left), np.empty(n_right)
    distance = np.empty(n_right)
    came = np.empty(n_right, dtype=np.int64)  # left node before each right one on the path
    waiting = np.empty(n_right, dtype=np.int64)
    place = np.empty(n_right, dtype=np.int64)  # of each right node in `waiting`
    work = distance, came, waiting, place, np.empty(n_right, dtype=np.int64)
    for b in range(len(costs)):
        mate_of_left[:] = mate_of_right[:] = -1
        price_of_left[:] = price_of_right[:] = 0.0
        status[b] = _OPTIMAL
        graph = start, right, costs[b][edge]
        prices = price_of_left, price_of_right
        for left in range(n_left):
            sink, n_waiting = _shortest_path(left, graph, mate_of_right, prices, work)
            if sink < 0:
                status[b] = _INFEASIBLE
                break
            for j in waiting[n_waiting:]:  # the nodes that were settled
                gain = distance[sink] - distance[j]
                price_of_right[j] -= gain
                if mate_of_right[j] >= 0:
                    price_of_left[mate_of_right[j]] += gain
            price_of_left[left] += distance[sink]
            _augment(left, sink, came, mate_of_left, mate_of_right)
        if status[b] == _OPTIMAL:
            for i in range(n_left):
                for k in range(start[i], start[i + 1]):
                    if right[k] == mate_of_left[i]:
                        X[b, edge[k]] = 1.0


@kernel
def _shortest_path(left, graph, mate_of_right, prices, work):
    """From a left node over matched pairs to the nearest right node without a mate.

    Returns that node (-1 if there is none) and how many right nodes were not settled: the others
    stand behind them in `waiting`.
    """
    start, right, cost = graph
    price_of_left, price_of_right = prices
    distance, came, waiting, place, reached = work
    n_waiting, n_reached = len(waiting), 0
    for k in range(n_waiting):  # backwards, so that equal costs match i with i
        waiting[k] = place[k] = n_waiting - 1 - k
    distance[:] = np.inf
    least, i = 0.0, left
    while True:
        for k in range(start[i], start[i + 1]):
            j = right[k]
            reach = least + cost[k] - price_of_left[i] - price_of_right[j]
            if reach < distance[j] and place[j] < n_waiting:
                if distance[j] == np.inf:
                    reached[n_reached] = j
                    n_reached += 1
                distance[j] = reach
                came[j] = i
        if n_reached == 0:
            return -1, n_waiting
        best = 0
        for k in range(1, n_reached):
            if _before(reached[k], reached[best], distance, mate_of_right, place):
                best = k
        j = reached[best]
        n_reached -= 1
        reached[best] = reached[n_reached]
        n_waiting -= 1
        last = waiting[n_waiting]
        waiting[place[j]], place[last] = last, place[j]
        waiting[n_waiting], place[j] = j, n_waiting
        if mate_of_right[j] < 0:
            return j, n_waiting
        least, i = distance[j], mate_of_right[j]


@kernel(inline="always")
def _before(a, b, distance, mate_of_right, place):
    """Nearer first. Of nodes equally near those without a mate, from the last waiting to the first;
    then the others, from the first to the last."""
    if distance[a] != distance[b]:
        return distance[a] < distance[b]
    if (mate_of_right[a] < 0) != (mate_of_right[b] < 0):
        return mate_of_right[a] < 0
    return (place[a] > place[b]) == (mate_of_right[a] < 0)


@kernel
def _augment(left, sink, came, mate_of_left, mate_of_right):
    """Match along the path that ends in `sink`: each pair on it is parted and joined anew."""
    j, i = sink, -1
    while i != left:
        i = came[j]
        mate_of_right[j] = i
        mate_of_left[i], j = j, mate_of_left[i]
