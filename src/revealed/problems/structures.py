"""What a special oracle, or a drawing, needs to know of a problem beyond its matrices.

Each kind is a small frozen record. `n_instances` says whether it differs by instance, and
`take(index)` chooses instances, as `problem[index]` does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from .._common.arrays import Choice

WITHIN = 1e-9
"""Of a vehicle's capacity: by how much rounding may let a load exceed it."""


@dataclass(frozen=True, eq=False)
class PathStructure:
    """Shortest path: variable e is the flow on the edge from node tails[e] to node heads[e]."""

    tails: np.ndarray
    """(E,) int64."""
    heads: np.ndarray
    """(E,) int64."""
    n_nodes: int
    source: np.ndarray
    """() int64, or (B,) when it differs by instance; `target` likewise."""
    target: np.ndarray
    order: np.ndarray | None = None
    """(n_nodes,) topological order of the nodes, None when the graph has a cycle."""
    grid_shape: tuple[int, int] | None = None
    """(rows, cols) when node r * cols + c is cell (r, c) of a grid."""

    @property
    def n_instances(self) -> int | None:
        counts = [len(ends) for ends in (self.source, self.target) if ends.ndim]
        return counts[0] if counts else None

    def take(self, index: Choice) -> PathStructure:
        chosen = {
            name: ends[index]
            for name, ends in (("source", self.source), ("target", self.target))
            if ends.ndim
        }
        return replace(self, **chosen)


@dataclass(frozen=True, eq=False)
class KnapsackStructure:
    """Fractional knapsack with one row: weights x <= capacity, 0 <= x <= 1."""

    weights: np.ndarray
    """(n,) float64, not negative."""
    capacity: np.ndarray
    """() float64, or (B,) when it differs by instance."""

    @property
    def n_instances(self) -> int | None:
        return len(self.capacity) if self.capacity.ndim else None

    def take(self, index: Choice) -> KnapsackStructure:
        return replace(self, capacity=self.capacity[index]) if self.capacity.ndim else self


@dataclass(frozen=True, eq=False)
class StandardKnapsackStructure:
    """The same in standard form, A x = b, x >= 0: n items, the slack of the budget, and the slack
    of each item's limit of 1."""

    weights: np.ndarray
    """(n,) float64, not negative."""
    capacity: np.ndarray
    """() float64."""

    @property
    def n_instances(self) -> int | None:
        return None

    def take(self, index: Choice) -> StandardKnapsackStructure:
        return self


@dataclass(frozen=True, eq=False)
class MatchingStructure:
    """Bipartite matching that covers the left side: variable e joins left[e] with right[e].

    No two edges join the same pair. The right side may be larger than the left, not smaller.
    """

    left: np.ndarray
    """(E,) int64 positions on the left side."""
    right: np.ndarray
    """(E,) int64 positions on the right side."""
    n_left: int
    n_right: int
    tails: np.ndarray | None = None
    """(E,) int64 nodes r * cols + c of a grid; each edge goes from `tails` right or down."""
    heads: np.ndarray | None = None
    grid_shape: tuple[int, int] | None = None

    @property
    def n_instances(self) -> int | None:
        return None

    def take(self, index: Choice) -> MatchingStructure:
        return self


@dataclass(frozen=True, eq=False)
class BinaryKnapsackStructure:
    """Choose items, each whole or not at all, within every budget: weights x <= capacities."""

    weights: np.ndarray
    """(k, n) float64, not negative."""
    capacities: np.ndarray
    """(k,) float64, or (B, k) when they differ by instance; not negative."""

    @property
    def n_instances(self) -> int | None:
        return None  # the capacities are those of the rows, and chosen with them

    def take(self, index: Choice) -> BinaryKnapsackStructure:
        return self

    def violation(self, X: np.ndarray) -> np.ndarray:
        """The rows say it all."""
        return np.zeros(len(X))

    def tight(self, x: np.ndarray) -> np.ndarray:
        """Those that follow from any 0/1 row are known without it."""
        return np.zeros((0, len(x)))


@dataclass(frozen=True, eq=False)
class TourStructure:
    """One tour through all nodes: variable e is whether the tour uses the edge between nodes
    tails[e] < heads[e] of the complete graph, in the order of `np.triu_indices(n_nodes, 1)`."""

    n_nodes: int
    tails: np.ndarray
    """(E,) int64; `heads` likewise."""
    heads: np.ndarray

    @property
    def n_instances(self) -> int | None:
        return None

    def take(self, index: Choice) -> TourStructure:
        return self

    def violation(self, X: np.ndarray) -> np.ndarray:
        """(B,): 1 where the chosen edges are several tours instead of one."""
        parts, _ = connected(X, self.tails, self.heads, self.n_nodes)
        return (parts > 1).astype(float)

    def tight(self, x: np.ndarray) -> np.ndarray:
        """Two edges at least leave each part of the tour: pieces of it that are left by two."""
        path = trails(x, self.tails, self.heads, self.n_nodes)[0]
        return -crossings([path], self.n_nodes - 2, self.tails, self.heads)


@dataclass(frozen=True, eq=False)
class RoutingStructure:
    """Routes from node 0 through all others, each within the capacity: variable e is whether a
    vehicle uses the edge between nodes tails[e] < heads[e] of the complete graph, in the order of
    `np.triu_indices(len(demands) + 1, 1)`."""

    demands: np.ndarray
    """(n_nodes - 1,) float64, of nodes 1, 2, ...; not negative."""
    capacity: float
    n_vehicles: int
    tails: np.ndarray
    """(E,) int64; `heads` likewise."""
    heads: np.ndarray

    @property
    def n_nodes(self) -> int:
        return len(self.demands) + 1

    @property
    def most(self) -> float:
        """The largest load of a route, rounding allowed for."""
        return self.capacity + WITHIN * max(self.capacity, 1.0)

    @property
    def n_instances(self) -> int | None:
        return None

    def take(self, index: Choice) -> RoutingStructure:
        return self

    def violation(self, X: np.ndarray) -> np.ndarray:
        """(B,): 1 where chosen edges do not lead back to the depot; the excess of the largest load,
        relative to the capacity, where they do."""
        away = (self.tails > 0) & (X > 0.5)  # without the depot, every route is a part of its own
        _, label = connected(np.where(away, X, 0.0), self.tails, self.heads, self.n_nodes)
        size = (len(X), self.n_nodes)
        load, ends = np.zeros(size), np.zeros(size)
        rows = np.arange(len(X))[:, None]
        np.add.at(load, (rows, label[:, 1:]), self.demands)
        b, e = np.nonzero((self.tails == 0) & (X > 0.5))
        np.add.at(ends, (b, label[b, self.heads[e]]), 1.0)
        there = np.zeros(size, bool)
        there[rows, label[:, 1:]] = True
        excess = np.maximum(load.max(axis=1) - self.most, 0.0) / max(self.capacity, 1.0)
        return np.where((there & (ends != 2)).any(axis=1), 1.0, excess)

    def tight(self, x: np.ndarray) -> np.ndarray:
        """Two edges at least leave each set of customers: pieces of routes that are left by two."""
        paths = trails(x, self.tails, self.heads, self.n_nodes)
        return -crossings(paths, self.n_nodes - 1, self.tails, self.heads)


def trails(x: np.ndarray, tails: np.ndarray, heads: np.ndarray, n_nodes: int) -> list[list[int]]:
    """The nodes of each way from node 0 back to it, without node 0."""
    near: list[list[int]] = [[] for _ in range(n_nodes)]
    for e in np.flatnonzero(x > 0.5):
        near[tails[e]].append(int(heads[e]))
        near[heads[e]].append(int(tails[e]))
    paths, done = [], {0}
    for first in near[0]:
        path, last, here = [], 0, first
        while here not in done:
            done.add(here)
            path.append(here)
            ahead = [k for k in near[here] if k != last]
            last, here = here, ahead[0] if ahead else 0
        paths += [path] if path else []
    return paths


def crossings(
    paths: list[list[int]], longest: int, tails: np.ndarray, heads: np.ndarray
) -> np.ndarray:
    """(k, E) the edges that leave each piece of 2 to `longest` nodes of a path."""
    sides = []
    for path in paths:
        for first in range(len(path) - 1):
            for end in range(first + 2, min(len(path), first + longest) + 1):
                inside = np.zeros(heads.max() + 1, bool)
                inside[path[first:end]] = True
                sides.append(inside)
    if not sides:
        return np.zeros((0, len(tails)))
    inside = np.array(sides)
    return (inside[:, tails] != inside[:, heads]).astype(float)


def connected(
    X: np.ndarray, tails: np.ndarray, heads: np.ndarray, n_nodes: int
) -> tuple[np.ndarray, np.ndarray]:
    """(B,) numbers of connected parts of the chosen edges, and (B, n_nodes) the part of a node."""
    b, e = np.nonzero(X > 0.5)
    size = len(X) * n_nodes  # one graph of all instances
    ends = (b * n_nodes + tails[e], b * n_nodes + heads[e])
    graph = sparse.coo_array((np.ones(len(b)), ends), shape=(size, size))
    _, label = csgraph.connected_components(graph, directed=False)
    own = label.reshape(len(X), n_nodes)
    own = own - own[:, :1]  # parts are numbered in the order of their first nodes
    return own.max(axis=1) + 1, own
