"""Pairs of costs and limits that explain a decision: the definition, and the nearest of them."""

from itertools import product

import numpy as np
import pytest

import revealed as rv
from revealed.optimality.limit_sets import UnknownLimitSet
from revealed.projection.cpu.reference import reference_projection


def random_case(rng, K=None):
    """A random problem with unknown rows and bounds, a decision of it, and pairs to project."""
    n, m = int(rng.integers(3, 7)), int(rng.integers(2, 8))
    A = rng.standard_normal((m, n)) * rng.choice([0.1, 1.0, 10.0], (m, 1))
    inside = rng.random(n)
    b = A @ inside + rng.random(m) * np.abs(A).sum(axis=1) * 0.1
    problem = rv.LinearProgram(A_ub=A, b_ub=b, lb=0.0, ub=1.0)
    x = problem.solve(rng.standard_normal((1, n))).x
    K = int(rng.integers(1, 7)) if K is None else K
    chosen = rng.permutation(m + 2 * n)[:K]
    unknown = {
        "ub": [int(k) for k in chosen if k < m],
        "lower": [int(k - m) for k in chosen if m <= k < m + n],
        "upper": [int(k - m - n) for k in chosen if k >= m + n],
    }
    margin = float(rng.choice([0.0, 0.1, 1.0]))
    sets = UnknownLimitSet(problem, x, unknown, margin, weight=float(rng.choice([0.2, 1.0, 5.0])))
    pair = np.hstack([rng.standard_normal((1, n)), sets.values + rng.standard_normal((1, K))])
    return problem, sets, pair, margin


def brute_force(problem, sets, pair, margin):
    """The least distance over all guesses, each a problem with known limits of its own,
    projected by the slow reference."""
    n, K = problem.n_variables, len(sets.unknown)
    q, g = pair[0, :n], pair[0, n:]
    r, w, sense = sets.values[0], sets.weights_of_limits[0], sets.unknown.sense
    best = np.inf
    for active in product([False, True], repeat=K):
        active = np.array(active)
        limits = np.where(active, r, np.inf * sense)
        one = sets.unknown.closed(problem, limits[None])
        own = rv.OptimalitySet(one, sets.decisions, margin)
        point = reference_projection(own, q, 0)[0]
        move = np.where(active, r - g, np.maximum(sense * (r - g), 0.0))
        best = min(best, ((point - q) ** 2).sum() + ((w * move) ** 2).sum())
    return np.sqrt(best)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("method", ["enumerate", "branch"])
def test_nearest_pair_is_that_of_the_best_guess(seed, method):
    case = random_case(np.random.default_rng(seed))
    _, sets, pair, _ = case
    near = rv.project(pair, sets, method=method)
    expected = brute_force(*case)
    assert near.solved.all()
    assert near.distance[0] == pytest.approx(expected, abs=1e-6 * max(1, np.linalg.norm(pair)))


@pytest.mark.parametrize("seed", range(10))
def test_point_explains_the_decision_and_stays(seed):
    _, sets, pair, _ = random_case(np.random.default_rng(100 + seed))
    near = rv.project(pair, sets)
    again = rv.project(near.point, sets)
    assert again.distance[0] <= 1e-6 * max(1, np.linalg.norm(pair))
    answer = sets.solve(near.point)
    costs, _ = sets.split(near.point)
    assert answer.objective[0] == pytest.approx((costs * sets.decisions).sum(), abs=1e-6)


def test_batch_equals_loop_with_matrices_of_each_instance():
    rng = np.random.default_rng(3)
    A, X = rng.random((5, 2, 4)), np.tile([1.0, 1.0, 0.3, 0.0], (5, 1))
    problem = rv.LinearProgram(A_ub=A, b_ub=np.full((5, 2), 9.0), lb=0.0, ub=1.0)
    sets = UnknownLimitSet(problem, X, {"ub": [0, 1], "upper": [2]})
    pairs = rng.standard_normal((5, 7))
    for method in ("enumerate", "branch"):
        near = rv.project(pairs, sets, method=method)
        alone = [rv.project(pairs[b : b + 1], sets[b : b + 1], method=method) for b in range(5)]
        assert near.solved.all()
        np.testing.assert_allclose(near.point, np.vstack([p.point for p in alone]), atol=1e-9)


def test_a_search_that_stops_early_has_a_bound_that_holds():
    rng = np.random.default_rng(5)
    stopped = 0
    for _ in range(20):
        _, sets, pair, _ = random_case(rng, K=6)
        exact = rv.project(pair, sets, method="enumerate").distance[0]
        early = rv.project(pair, sets, method="branch", max_iter=1)
        assert early.lower_bound[0] <= exact + 1e-7 <= early.distance[0] + 2e-7
        stopped += not early.solved[0]
    assert stopped  # else nothing was tested


def test_units_of_a_row_change_nothing():
    rng = np.random.default_rng(7)
    A, x = rng.random((2, 4)), np.array([[1.0, 0.4, 0.2, 0.0]])
    q, g = rng.standard_normal((1, 4)), np.array([[1.3, 0.8]])
    found = []
    for unit in (1.0, 1000.0):
        scale = np.array([[unit], [1.0]])
        problem = rv.LinearProgram(A_ub=scale * A, b_ub=[9.0 * unit, 9.0], lb=0.0, ub=1.0)
        sets = UnknownLimitSet(problem, x, {"ub": [0, 1]}, 0.0)
        found.append(rv.project(np.hstack([q, g * scale.T]), sets))
    assert found[0].distance[0] == pytest.approx(found[1].distance[0])


@pytest.mark.parametrize(
    "unknown, words",
    [
        ({"ub": [3]}, "names 3, but the problem has 1 rows"),
        ({"ub": [0], "lower": [0, 1], "upper": [0, 1]}, "Every row and bound"),
        ({"rows": [0]}, "must name rows as"),
        ({"ub": []}, "names no row"),
        ({"ub": [0, 0]}, "twice"),
        ({"ub": ["a"]}, "whole numbers"),
    ],
)
def test_unknown_limits_that_cannot_be_are_named(unknown, words):
    problem = rv.LinearProgram(A_ub=[[1.0, 1.0]], b_ub=[1.0], lb=0.0, ub=1.0)
    with pytest.raises(rv.InputError, match=words):
        UnknownLimitSet(problem, np.zeros((1, 2)), unknown)
