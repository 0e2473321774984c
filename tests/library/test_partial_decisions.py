"""Decisions seen in part: completed by the cheapest that agrees, learned from in turn."""

import numpy as np
import pytest

import revealed as rv
from revealed.fit import PartialDecisions
from revealed.fit.partial import Completion


def paths(seed, B=150, side=4):
    rng = np.random.default_rng(seed)
    problem = rv.problems.grid_shortest_path(side, side, directed="right-down")
    Z = rng.standard_normal((B, 3))
    costs = 4.0 + Z @ rng.standard_normal((3, problem.n_variables))
    costs = np.maximum(costs, 0.1)
    return problem, Z, costs, problem.solve(costs).x, rng


def all_paths(problem):
    """Every vertex, from costs drawn at random often enough."""
    rng = np.random.default_rng(0)
    return np.unique(problem.solve(rng.exponential(size=(4000, problem.n_variables))).x, axis=0)


@pytest.mark.parametrize("seed", range(3))
def test_completion_is_the_cheapest_of_all_decisions_that_agree(seed):
    problem, _, costs, X, rng = paths(seed, B=40)
    every = all_paths(problem)
    assert len(every) == 20
    seen = np.where(rng.random(X.shape) < 0.3, X, np.nan)
    other = rng.exponential(size=costs.shape)
    found = Completion(problem, PartialDecisions(seen)).complete(other)
    for b in range(len(X)):
        there = ~np.isnan(seen[b])
        agree = every[(every[:, there] == seen[b, there]).all(axis=1)]
        assert other[b] @ found[b] == pytest.approx((agree @ other[b]).min(), abs=1e-8)


def test_totals_are_met_and_entries_are_a_special_case_of_them():
    problem, _, costs, X, rng = paths(0, B=30)
    M = np.vstack([np.ones(X.shape[1]), rng.random((2, X.shape[1]))])
    found = Completion(problem, PartialDecisions(X @ M.T, totals=M)).complete(costs)
    np.testing.assert_allclose(found @ M.T, X @ M.T, atol=1e-7)
    seen = np.where(rng.random(X.shape) < 0.3, X, np.nan)
    by_entry = Completion(problem, PartialDecisions(seen)).complete(costs)
    by_total = Completion(problem, PartialDecisions(seen, totals=np.eye(X.shape[1])))
    np.testing.assert_allclose((by_total.complete(costs) * costs).sum(1), (by_entry * costs).sum(1))


def test_the_gap_falls_with_every_turn_and_routes_are_found():
    problem, Z, _, X, rng = paths(1, B=200)
    seen = np.where(rng.random(X.shape) < 0.25, X, np.nan)
    seen[:40] = X[:40]
    est = rv.InverseRegressor(problem).fit(Z, PartialDecisions(seen))
    assert (np.diff(est.gaps_) < 0).all()
    first = Completion(problem, PartialDecisions(seen)).complete(np.ones(X.shape))
    wrong = [(np.abs(x - X) > 1e-6).any(axis=1).mean() for x in (first, est.completed_)]
    assert wrong[1] < 0.5 * wrong[0]


def test_decisions_seen_whole_are_learned_from_as_they_are():
    problem, Z, _, X, _ = paths(2, B=60)
    est = rv.InverseRegressor(problem).fit(Z, PartialDecisions(X))
    np.testing.assert_allclose(est.coef_, rv.InverseRegressor(problem).fit(Z, X).coef_)
    np.testing.assert_allclose(est.completed_, X, atol=1e-9)


def test_what_cannot_be_completed_is_named():
    problem, Z, _, X, _ = paths(2, B=10)
    seen = np.full(X.shape, np.nan)
    seen[4] = 0.0  # no path at all
    with pytest.raises(rv.InputError, match=r"Row 4 cannot be completed .* agrees"):
        rv.InverseRegressor(problem).fit(Z, PartialDecisions(seen))
    with pytest.raises(rv.ShapeError, match="must have shape"):
        rv.InverseRegressor(problem).fit(Z, PartialDecisions(seen[:, :3]))
    seen[4] = np.nan
    seen[7, 2] = -3.0
    with pytest.raises(rv.InputError, match="Row 7: entry 2 was seen as -3"):
        rv.InverseRegressor(problem).fit(Z, PartialDecisions(seen))
    with pytest.raises(rv.InputError, match="do not go with"):
        rv.InverseRegressor(problem).fit(Z, PartialDecisions(X), true_costs=X)
