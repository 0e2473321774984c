"""A path-size logit (Ben-Akiva and Bierlaire 1999) over generated choice sets.

Between each pair of ends: the shortest route by length, more by raising the lengths of the links
of each route found (link penalty), more by drawing lengths at random (simulation); in training also
every route that was driven. Then a multinomial logit with the features summed along the route and
the logarithm of its path size, which is small where links are shared with other routes of the set.

Letters: K alternatives of all trips together, M moves, p features.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.optimize import minimize

from revealed.datasets.routes import Routes

from .features import MoveFeatures
from .scores import Judge

PENALTY = 1.4
"""What the length of a link is multiplied by for each route found on it."""
SPREAD = 0.6
"""Standard deviation of the logarithm of drawn lengths."""
ROUNDS = 15
"""Of each of the two ways to find routes."""


@dataclass(frozen=True)
class ChoiceSets:
    """Alternatives of all trips, one after another."""

    trip: np.ndarray
    """(K,) in increasing order."""
    moves: sparse.csr_array
    """(K, M) ones and zeros."""
    path_size: np.ndarray
    """(K,)"""
    chosen: np.ndarray
    """(K,) how many drivers took each."""
    generated: np.ndarray
    """(K,) bool: found without looking at drivers."""


def choice_sets(
    judge: Judge, routes: Routes, features: MoveFeatures, *, rounds: int = ROUNDS, seed: int = 0
) -> ChoiceSets:
    """Generate the alternatives of every trip of `routes` and add what was driven."""
    length = features.values[:, 0]
    rng = np.random.default_rng(seed)
    found: list[np.ndarray] = []
    raised = np.tile(length, (len(judge.ends), 1))
    for _ in range(rounds):
        found.append(judge.cheapest(raised))
        raised[found[-1]] *= PENALTY
    for _ in range(rounds):
        found.append(judge.cheapest(length * rng.lognormal(0.0, SPREAD, raised.shape)))
    driven = routes.decisions()
    by_trip = np.argsort(judge.trip, kind="stable")
    bounds = np.searchsorted(judge.trip[by_trip], np.arange(len(judge.ends) + 1))
    parts = []
    for t in range(len(judge.ends)):
        own = driven[by_trip[bounds[t] : bounds[t + 1]]]
        parts.append(_alternatives(t, np.array([x[t] for x in found]), own, length))
    trip, moves, path_size, chosen, generated = zip(*parts, strict=True)
    return ChoiceSets(
        np.concatenate(trip),
        sparse.csr_array(sparse.vstack(moves)),
        np.concatenate(path_size),
        np.concatenate(chosen),
        np.concatenate(generated),
    )


def _alternatives(
    trip: int, found: np.ndarray, driven: np.ndarray, length: np.ndarray
) -> tuple[np.ndarray, sparse.csr_array, np.ndarray, np.ndarray, np.ndarray]:
    """Distinct routes of one trip, in the order of the fields of `ChoiceSets`."""
    every = np.vstack([found, driven])
    _, first, inverse = np.unique(
        np.packbits(every, axis=1), axis=0, return_index=True, return_inverse=True
    )
    moves, inverse = every[first], inverse.ravel()
    chosen = np.bincount(inverse[len(found) :], minlength=len(first))
    generated = np.bincount(inverse[: len(found)], minlength=len(first)) > 0
    shared = np.maximum(moves.sum(axis=0), 1)
    path_size = moves @ (length / shared) / (moves @ length)
    return np.full(len(first), trip), sparse.csr_array(moves * 1.0), path_size, chosen, generated


class PathSizeLogit:
    """Negative mean log-likelihood of the chosen alternatives, with its gradient."""

    def __init__(self, sets: ChoiceSets, features: MoveFeatures, *, ridge: float = 0.0) -> None:
        self._sets = sets
        self._attributes = attributes(sets, features)
        self._ridge = ridge * np.append(features.own, False)
        self._start = np.flatnonzero(np.diff(sets.trip, prepend=-1))
        self._total = np.add.reduceat(sets.chosen, self._start)

    def __call__(self, coef: np.ndarray) -> tuple[float, np.ndarray]:
        sets, size = self._sets, self._sets.chosen.sum()
        utility = -(self._attributes @ coef)
        utility -= np.maximum.reduceat(utility, self._start)[sets.trip]
        weight = np.exp(utility)
        total = np.add.reduceat(weight, self._start)
        value = self._total @ np.log(total) - sets.chosen @ utility
        expected = weight * (self._total / total)[sets.trip]
        penalty = self._ridge * coef
        return (
            value / size + 0.5 * penalty @ coef,
            self._attributes.T @ (sets.chosen - expected) / size + penalty,
        )

    def fit(self, start: np.ndarray, *, max_iter: int = 300) -> np.ndarray:
        """(p + 1,) maximum-likelihood coefficients."""
        done = minimize(
            self, start, jac=True, method="L-BFGS-B", options={"maxiter": max_iter, "ftol": 1e-11}
        )
        return done.x


def attributes(sets: ChoiceSets, features: MoveFeatures) -> sparse.csr_array:
    """(K, p + 1): features summed along the route, and minus the logarithm of the path size."""
    summed = sets.moves @ sparse.csr_array(features.values)
    return sparse.csr_array(sparse.hstack([summed, -np.log(sets.path_size)[:, None]]))


def most_probable(sets: ChoiceSets, features: MoveFeatures, coef: np.ndarray) -> np.ndarray:
    """(trips, M) bool: the generated alternative of the highest probability for each trip."""
    utility = np.where(sets.generated, -(attributes(sets, features) @ coef), -np.inf)
    # The last of each trip in an order by trip, then utility.
    order = np.lexsort((utility, sets.trip))
    last = np.flatnonzero(np.diff(sets.trip[order], append=sets.trip.max() + 1))
    return sets.moves[order[last]].toarray() > 0.5
