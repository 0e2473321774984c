"""Shortest paths for a batch of costs: Dijkstra, or one sweep through an acyclic graph.

Both equal the linear program: with no negative cycle its optimum is a simple path (or nothing,
when source and target are one node). Negative costs on a graph with cycles are left to the
general oracle, which knows the unbounded case.

Ties fall the same way every time, and as on a device (`oracles.gpu`). Of the edges by which a node
is best reached, the one is kept whose tail comes first: in the topological order of an acyclic
graph; else the tail nearest to the source, of those equally near the one with fewer costless steps
behind it, of those the one with the smaller number. From one tail it is the first edge.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .._common.compiled import kernel
from ..problems.solution import SolveStatus
from ..problems.structures import PathStructure
from .special import GENERAL

if TYPE_CHECKING:
    from ..problems.linear import LinearProgram

_OPTIMAL, _INFEASIBLE = int(SolveStatus.OPTIMAL), int(SolveStatus.INFEASIBLE)


@dataclass(frozen=True)
class _Adjacency:
    """Edges grouped by the node they leave; within a node in the order of the variables."""

    start: np.ndarray  # (n_nodes + 1,)
    edge: np.ndarray  # (E,) variable
    head: np.ndarray  # (E,) node the edge enters


def solve_paths(problem: LinearProgram, costs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Decisions (B, E) and statuses (B,); GENERAL where a cost is negative on a cyclic graph."""
    graph: PathStructure = problem.structure
    adjacency = problem.cached("path-adjacency", lambda: _group_by_tail(graph))
    X = np.zeros(costs.shape)
    status = np.full(len(costs), GENERAL, dtype=np.int8)
    # Copies: broadcast, sliced and owned arrays are each a type of their own to numba's compiler.
    source = np.broadcast_to(graph.source, len(costs)).copy()
    target = np.broadcast_to(graph.target, len(costs)).copy()
    shared = (adjacency.start, adjacency.edge, adjacency.head, graph.tails)
    if graph.order is not None:
        _sweep_batch(costs, source, target, *shared, graph.order, X, status)
    else:
        _dijkstra_batch(costs, source, target, *shared, X, status)
    return X, status


def _group_by_tail(graph: PathStructure) -> _Adjacency:
    edge = np.argsort(graph.tails, kind="stable")
    start = np.searchsorted(graph.tails[edge], np.arange(graph.n_nodes + 1))
    return _Adjacency(start, edge, graph.heads[edge])


@kernel
def _sweep_batch(costs, source, target, start, edge, head, tails, order, X, status):
    """Each acyclic instance: nodes in topological order, so one look at each edge is enough."""
    n_nodes = len(start) - 1
    distance = np.empty(n_nodes)
    via = np.empty(n_nodes, dtype=np.int64)
    for b in range(len(costs)):
        distance[:] = np.inf
        via[:] = -1
        distance[source[b]] = 0.0
        for node in order:
            if node == target[b]:
                break
            if distance[node] < np.inf:
                for k in range(start[node], start[node + 1]):
                    reach = distance[node] + costs[b, edge[k]]
                    if reach < distance[head[k]]:
                        distance[head[k]] = reach
                        via[head[k]] = edge[k]
        status[b] = _walk_back(source[b], target[b], via, tails, X[b])


@kernel
def _dijkstra_batch(costs, source, target, start, edge, head, tails, X, status):
    """Each instance without negative costs; the others keep their status."""
    n_nodes = len(start) - 1
    distance = np.empty(n_nodes)
    via = np.empty(n_nodes, dtype=np.int64)
    level = np.empty(n_nodes, dtype=np.int64)
    heap = np.empty(n_nodes, dtype=np.int64)
    slot = np.empty(n_nodes, dtype=np.int64)
    for b in range(len(costs)):
        if costs[b].min() >= 0.0:
            ends = source[b], target[b]
            _dijkstra(costs[b], ends, start, edge, head, distance, level, via, heap, slot)
            status[b] = _walk_back(source[b], target[b], via, tails, X[b])


@kernel
def _dijkstra(cost, ends, start, edge, head, distance, level, via, heap, slot):
    """Fill `via`, the edge by which each node is best reached, until the target is settled.

    `level` counts the last steps to a node that cost nothing, so that among nodes equally near
    those with fewer of them are settled first.
    """
    source, target = ends
    distance[:] = np.inf
    level[:] = 0
    via[:] = -1
    slot[:] = -1  # place in the heap, -1 when not in it
    distance[source] = 0.0
    heap[0] = source
    slot[source] = 0
    size = 1
    while size > 0:
        node = heap[0]
        if node == target:
            return
        size -= 1
        slot[node] = -1
        if size > 0:
            last = heap[size]
            heap[0] = last
            slot[last] = 0
            _sift_down(heap, slot, distance, level, size)
        for k in range(start[node], start[node + 1]):
            to = head[k]
            reach = distance[node] + cost[edge[k]]
            if reach < distance[to]:
                if slot[to] < 0:  # first seen: costs are not negative, so nothing settled returns
                    heap[size] = to
                    slot[to] = size
                    size += 1
                level[to] = level[node] + 1 if reach == distance[node] else 0
                distance[to] = reach
                via[to] = edge[k]
                _sift_up(heap, slot, distance, level, slot[to])


@kernel(inline="always")
def _before(a, b, distance, level):
    """Nearer first; of nodes equally near the lower level, then the smaller number."""
    if distance[a] != distance[b]:
        return distance[a] < distance[b]
    return level[a] < level[b] or (level[a] == level[b] and a < b)


@kernel
def _sift_up(heap, slot, distance, level, place):
    node = heap[place]
    while place > 0:
        parent = (place - 1) >> 1
        if not _before(node, heap[parent], distance, level):
            break
        heap[place] = heap[parent]
        slot[heap[place]] = place
        place = parent
    heap[place] = node
    slot[node] = place


@kernel
def _sift_down(heap, slot, distance, level, size):
    node = heap[0]
    place = 0
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size and _before(heap[child + 1], heap[child], distance, level):
            child += 1
        if not _before(heap[child], node, distance, level):
            break
        heap[place] = heap[child]
        slot[heap[place]] = place
        place = child
    heap[place] = node
    slot[node] = place


@kernel
def _walk_back(source, target, via, tails, x):
    """Put 1 on each edge of the path into `x`; the status is whether there is a path."""
    node = target
    while node != source:
        if via[node] < 0:
            return _INFEASIBLE
        x[via[node]] = 1.0
        node = tails[via[node]]
    return _OPTIMAL
