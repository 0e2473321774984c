"""Contexts, costs and decisions by PyEPO's generators: the same numbers from the same seed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import revealed as rv

DEGREE, NOISE = 4, 0.5
CAPACITY = 20.0
ITEMS, BUDGETS, KNAPSACK_FEATURES, TOUR_FEATURES = 32, 2, 5, 10


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


def draw(name: str, seed: int, train: int, test: int) -> Data:
    """`knapsack`, or `tsp-20` with any number of nodes."""
    if name == "knapsack":
        weights, Z, C = _knapsack(train + test, seed)
        problem = rv.problems.binary_knapsack(weights, CAPACITY)
    else:
        nodes = int(name.partition("-")[2])
        Z, C = _tours(train + test, nodes, seed)
        problem = rv.problems.traveling_salesman(nodes)
    found = problem.solve(C)
    if not found.optimal.all():
        raise RuntimeError(f"{name}, seed {seed}: {int((~found.optimal).sum())} labels unproved.")
    parts = [Split(Z[part], C[part], found.x[part]) for part in (slice(train), slice(train, None))]
    return Data(problem, *parts)


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
