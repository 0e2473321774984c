"""Projections onto pairs of costs and limits, against trying every guess by the reference."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

import revealed as rv
from revealed.projection.cpu.reference import reference_projection

METHODS = ("enumerate", "branch")


def compare(count: int, seed: int) -> dict[str, Any]:
    """The largest relative difference over random problems, and how many projections each method
    took."""
    worst, looked = dict.fromkeys(METHODS, 0.0), dict.fromkeys(METHODS, 0)
    unsolved, largest = 0, 0
    for k in range(count):
        problem, sets, pair, margin = _random_case(np.random.default_rng([seed, k]))
        expected = _least(problem, sets, pair, margin)
        largest = max(largest, len(sets.unknown))
        for method in METHODS:
            near = rv.project(pair, sets, method=method)
            unsolved += int(not near.solved[0])
            looked[method] += int(near.iterations[0])
            gap = abs(near.distance[0] - expected) / max(1.0, float(np.linalg.norm(pair)))
            worst[method] = max(worst[method], float(gap))
    return {
        "problems": count,
        "most_unknown": largest,
        "worst": worst,
        "projections": looked,
        "unsolved": unsolved,
    }


def _random_case(rng: np.random.Generator) -> tuple[Any, Any, np.ndarray, float]:
    n, m = int(rng.integers(3, 7)), int(rng.integers(2, 8))
    A = rng.standard_normal((m, n)) * rng.choice([0.1, 1.0, 10.0], (m, 1))
    b = A @ rng.random(n) + rng.random(m) * np.abs(A).sum(axis=1) * 0.1
    problem = rv.LinearProgram(A_ub=A, b_ub=b, lb=0.0, ub=1.0)
    x, K = problem.solve(rng.standard_normal((1, n))).x, int(rng.integers(1, 7))
    chosen = rng.permutation(m + 2 * n)[:K]
    unknown = {
        "ub": [int(k) for k in chosen if k < m],
        "lower": [int(k - m) for k in chosen if m <= k < m + n],
        "upper": [int(k - m - n) for k in chosen if k >= m + n],
    }
    margin, weight = float(rng.choice([0.0, 0.1, 1.0])), float(rng.choice([0.2, 1.0, 5.0]))
    sets = rv.UnknownLimitSet(problem, x, unknown, margin, weight=weight)
    pair = np.hstack([rng.standard_normal((1, n)), sets.values + rng.standard_normal((1, K))])
    return problem, sets, pair, margin


def _least(problem: Any, sets: Any, pair: np.ndarray, margin: float) -> float:
    q, g = pair[0, : problem.n_variables], pair[0, problem.n_variables :]
    r, w, sense = sets.values[0], sets.weights_of_limits[0], sets.unknown.sense
    best = np.inf
    for guess in product([False, True], repeat=len(g)):
        active = np.array(guess)
        limits = np.where(active, r, np.inf * sense)
        one = rv.OptimalitySet(sets.unknown.closed(problem, limits[None]), sets.decisions, margin)
        point = reference_projection(one, q, 0)[0]
        move = np.where(active, r - g, np.maximum(sense * (r - g), 0.0))
        best = min(best, ((point - q) ** 2).sum() + ((w * move) ** 2).sum())
    return float(np.sqrt(best))
