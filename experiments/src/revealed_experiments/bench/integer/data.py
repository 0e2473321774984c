"""Contexts, costs and decisions by PyEPO's generators: the same numbers from the same seed.

Problems: `knapsack`, `tsp-20` and `cvrp-20` with any number of nodes or customers. Demands are
those of CaVE's experiments: uniform up to 10 in vehicles that hold 30.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import revealed as rv
from revealed.errors import InputError

DEGREE, NOISE = 4, 0.5
CAPACITY = 20.0
ITEMS, BUDGETS, KNAPSACK_FEATURES, TOUR_FEATURES = 32, 2, 5, 10
DEMAND, VEHICLE, CUSTOMERS_PER_VEHICLE = 10.0, 30.0, 4


class Split(NamedTuple):
    """Samples of one problem; costs are minimized."""

    contexts: np.ndarray
    costs: np.ndarray
    decisions: np.ndarray


class Data(NamedTuple):
    """A problem with samples to train on and samples to judge by."""

    problem: Any
    train: Split
    test: Split


def draw(name: str, seed: int, train: int, test: int, labels: Path | None = None) -> Data:
    """Samples of a problem; their decisions are kept in the folder `labels` and read from there."""
    problem, Z, C = _drawn(name, seed, train + test)
    X = _decided(problem, C, None if labels is None else labels / f"{name}-{seed}-{len(C)}.npz")
    parts = [Split(Z[part], C[part], X[part]) for part in (slice(train), slice(train, None))]
    return Data(problem, *parts)


def build(name: str, seed: int) -> Any:
    """The problem of `draw` without what solving it has taught it."""
    return _drawn(name, seed, 1)[0]


def _drawn(name: str, seed: int, size: int) -> tuple[Any, np.ndarray, np.ndarray]:
    if name == "knapsack":
        weights, Z, C = _knapsack(size, seed)
        return rv.problems.binary_knapsack(weights, CAPACITY), Z, C
    kind, _, count = name.partition("-")
    if kind not in ("tsp", "cvrp") or not count.isdigit():
        raise InputError(f"A problem is knapsack, tsp-N or cvrp-N; got {name!r}.")
    number = int(count)
    if kind == "tsp":
        return rv.problems.traveling_salesman(number), *_tours(size, number, seed)
    demands = np.random.RandomState(seed).uniform(0, DEMAND, number)
    vehicles = -(-number // CUSTOMERS_PER_VEHICLE)
    problem = rv.problems.vehicle_routing(demands, VEHICLE, vehicles)
    return problem, *_tours(size, number + 1, seed)


def _decided(problem: Any, C: np.ndarray, place: Path | None) -> np.ndarray:
    if place is not None and place.is_file():
        with np.load(place) as kept:
            if np.array_equal(kept["costs"], C):
                return np.unpackbits(kept["bits"], axis=1, count=C.shape[1]).astype(np.float64)
    found = problem.solve(C)
    if not found.optimal.all():
        raise RuntimeError(f"{int((~found.optimal).sum())} of {len(C)} labels are unproved.")
    if place is not None:
        place.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(place, costs=C, bits=np.packbits(found.x > 0.5, axis=1))
    return found.x


def _knapsack(size: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.RandomState(seed)
    weights = rng.choice(range(300, 800), size=(BUDGETS, ITEMS)) / 100
    matrix = rng.binomial(1, 0.5, (ITEMS, KNAPSACK_FEATURES))
    Z = rng.normal(0, 1, (size, KNAPSACK_FEATURES))
    value = (Z @ matrix.T / np.sqrt(KNAPSACK_FEATURES) + 3) ** DEGREE + 1
    value *= 5 / 3.5**DEGREE * rng.uniform(1 - NOISE, 1 + NOISE, value.shape)
    return weights, Z, -np.ceil(value)


def _tours(size: int, nodes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.RandomState(seed)
    half = nodes // 2
    places = np.concatenate([rng.uniform(-2, 2, (half, 2)), rng.normal(0, 1, (nodes - half, 2))])
    i, j = np.triu_indices(nodes, 1)
    length = np.linalg.norm(places[i] - places[j], axis=1)
    shape = (len(i), TOUR_FEATURES)
    matrix = rng.binomial(1, 0.5, shape) * rng.uniform(-2, 2, shape)
    Z = rng.normal(0, 1, (size, TOUR_FEATURES))
    part = (Z @ matrix.T / np.sqrt(TOUR_FEATURES) + 3) ** DEGREE / 3 ** (DEGREE - 1)
    return Z, np.around(length + part * rng.uniform(1 - NOISE, 1 + NOISE, part.shape), 4)
