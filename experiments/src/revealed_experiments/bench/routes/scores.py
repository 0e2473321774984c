"""How well costs predict drivers' routes: the cheapest route beside the one that was driven.

Letters: B routes, M moves, L links.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from revealed.datasets.routes import Routes

FLOOR = 0.01
"""The least cost of a move, in the units of its features: one meter. A driver cannot gain by
driving in circles, and the shortest-path oracle stays with Dijkstra."""
MEASURES = ("links", "found", "exact")
DRAWS = 2000
LEVEL = 0.95


@dataclass(frozen=True)
class Score:
    """For each route, what share of its links was predicted, and whether the whole route was."""

    links: np.ndarray
    """(B,) links on both routes over links on either (Jaccard), first and last link left out:
    they are given."""
    found: np.ndarray
    """(B,) share of the driver's links that are on the predicted route, again without the ends."""
    exact: np.ndarray
    """(B,) whether the routes are one and the same."""

    def means(self) -> dict[str, float]:
        """Over routes."""
        return {name: float(getattr(self, name).mean()) for name in MEASURES}


class Judge:
    """Predicts the routes of a table from costs; routes with the same ends are solved once."""

    def __init__(self, routes: Routes) -> None:
        ends = np.column_stack([routes.origin, routes.destination])
        self.ends, first, inverse = np.unique(ends, axis=0, return_index=True, return_inverse=True)
        self.trip = inverse.ravel()
        """(B,) which pair of ends each route has."""
        self._problem = routes[first].problem()
        self._entered = routes.network.moves[:, 1]
        self._shape = (len(routes), routes.network.n_links)
        self._decisions = routes.decisions()
        self._taken = self.visited(self._decisions)

    def visited(self, decisions: np.ndarray) -> np.ndarray:
        """(B, L) bool: links entered by decisions (B, M), the last one left out."""
        visited = np.zeros(self._shape, dtype=bool)
        row, move = np.nonzero(decisions)
        visited[row, self._entered[move]] = True
        visited[np.arange(len(visited)), self.ends[self.trip, 1]] = False
        return visited

    def cheapest(self, costs: np.ndarray) -> np.ndarray:
        """(trips, M) bool: the cheapest route of each trip; costs (M,) or (trips, M)."""
        shape = (len(self.ends), self._problem.n_variables)
        return self._problem.solve(np.array(np.broadcast_to(costs, shape))).x > 0.5

    def score(self, costs: np.ndarray) -> Score:
        """Of the cheapest routes under costs (M,)."""
        return self.compare(self.cheapest(np.maximum(costs, FLOOR))[self.trip])

    def compare(self, decisions: np.ndarray) -> Score:
        """Of predicted decisions (B, M)."""
        predicted, taken = self.visited(decisions), self._taken
        both, either = (predicted & taken).sum(1), (predicted | taken).sum(1)
        return Score(
            links=np.where(either, both / np.maximum(either, 1), 1.0),
            found=np.where(taken.any(1), both / np.maximum(taken.sum(1), 1), 1.0),
            exact=(decisions == self._decisions).all(1),
        )


def with_interval(score: Score, seed: int = 0) -> dict[str, Any]:
    """Means with bootstrap intervals over routes."""
    return {name: _interval(getattr(score, name), seed) for name in MEASURES}


def gains(score: Score, other: Score, seed: int = 0) -> dict[str, Any]:
    """How far `score` is ahead of `other` on the same routes: means with paired intervals."""
    return {
        name: _interval(getattr(score, name).astype(float) - getattr(other, name), seed)
        for name in MEASURES
    }


def _interval(values: np.ndarray, seed: int) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    size = len(values)
    means = [np.mean(values[rng.integers(size, size=size)]) for _ in range(DRAWS)]
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return {"mean": float(np.mean(values)), "low": float(low), "high": float(high)}
