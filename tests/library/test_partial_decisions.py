"""Decisions seen in part: completed by the cheapest that agrees, learned from in turn."""

import numpy as np
import pytest

import revealed as rv
from revealed.fit import PartialDecisions
from revealed.optimality.completion import Completion


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
    found = Completion(problem, seen).complete(other)
    for b in range(len(X)):
        there = ~np.isnan(seen[b])
        agree = every[(every[:, there] == seen[b, there]).all(axis=1)]
        assert other[b] @ found[b] == pytest.approx((agree @ other[b]).min(), abs=1e-8)


def test_totals_are_met_and_entries_are_a_special_case_of_them():
    problem, _, costs, X, rng = paths(0, B=30)
    M = np.vstack([np.ones(X.shape[1]), rng.random((2, X.shape[1]))])
    found = Completion(problem, X @ M.T, totals=M).complete(costs)
    np.testing.assert_allclose(found @ M.T, X @ M.T, atol=1e-7)
    seen = np.where(rng.random(X.shape) < 0.3, X, np.nan)
    by_entry = Completion(problem, seen).complete(costs)
    by_total = Completion(problem, seen, np.eye(X.shape[1]))
    np.testing.assert_allclose((by_total.complete(costs) * costs).sum(1), (by_entry * costs).sum(1))


def test_the_gap_falls_with_every_turn_and_routes_are_found():
    problem, Z, _, X, rng = paths(1, B=200)
    seen = np.where(rng.random(X.shape) < 0.25, X, np.nan)
    seen[:40] = X[:40]
    est = rv.InverseRegressor(problem).fit(Z, PartialDecisions(seen))
    assert (np.diff(est.gaps_) < 0).all()
    first = Completion(problem, seen).complete(np.ones(X.shape))
    wrong = [(np.abs(x - X) > 1e-6).any(axis=1).mean() for x in (first, est.completed_)]
    assert wrong[1] < 0.5 * wrong[0]


def test_decisions_seen_whole_are_learned_from_as_they_are():
    problem, Z, _, X, _ = paths(2, B=60)
    est = rv.InverseRegressor(problem).fit(Z, PartialDecisions(X))
    np.testing.assert_allclose(est.coef_, rv.InverseRegressor(problem).fit(Z, X).coef_)
    np.testing.assert_allclose(est.completed_, X, atol=1e-9)


def test_what_cannot_be_completed_is_named():
    problem, Z, _, X, _ = paths(2, B=10)
    seen = X.copy()
    seen[4] = 0.0  # no path at all
    with pytest.raises(rv.InputError, match=r"Row 4 cannot be completed .* agrees"):
        rv.InverseRegressor(problem).fit(Z, PartialDecisions(seen))
    with pytest.raises(rv.ShapeError, match="must have shape"):
        rv.InverseRegressor(problem).fit(Z, PartialDecisions(seen[:, :3]))
    seen[4] = X[4]
    seen[7, 2] = -3.0
    with pytest.raises(rv.InputError, match="Row 7: entry 2 was seen as -3"):
        rv.InverseRegressor(problem).fit(Z, PartialDecisions(seen))
    with pytest.raises(rv.InputError, match="do not go with"):
        rv.InverseRegressor(problem).fit(Z, PartialDecisions(X), true_costs=X)
    seen[7] = np.nan
    with pytest.raises(rv.InputError, match="Row 7 has nothing that was seen"):
        rv.InverseRegressor(problem).fit(Z, PartialDecisions(seen))


def test_sets_of_decisions_seen_in_part_complete_them_under_any_costs():
    problem, _, costs, X, rng = paths(3, B=40)
    mask = rng.random(X.shape) < 0.4
    sets = rv.OptimalitySet(problem, np.where(mask, X, np.nan), observed=mask)
    np.testing.assert_array_equal(sets.decisions[mask], X[mask])
    true = sets.completed(costs)
    np.testing.assert_allclose(true.decisions, X, atol=1e-9)  # they were optimal under these
    assert true[5:9].observed.shape == (4, X.shape[1])
    np.testing.assert_allclose(true[5:9].completed(costs[5:9]).decisions, X[5:9], atol=1e-9)
    whole = rv.OptimalitySet(problem, X)
    np.testing.assert_array_equal(rv.project(costs, true).point, rv.project(costs, whole).point)
    assert whole.completed(costs) is whole


@pytest.mark.parametrize("seed", range(3))
def test_costs_explain_what_was_seen_exactly_if_the_cheapest_completion_costs_the_least(seed):
    problem, _, costs, X, rng = paths(seed, B=40)
    every = all_paths(problem)
    mask = rng.random(X.shape) < 0.2
    others = rng.exponential(size=costs.shape)
    sets = rv.OptimalitySet(problem, X, observed=mask, margin=0.0).completed(others)
    for b, c in enumerate(others):
        best = every[np.isclose(every @ c, (every @ c).min())]
        explained = (best[:, mask[b]] == X[b, mask[b]]).all(axis=1).any()
        assert sets[[b]].contains(c[None])[0] == explained


def test_an_estimator_learns_from_such_sets_as_from_partial_decisions():
    problem, Z, _, X, rng = paths(1, B=80)
    mask = rng.random(X.shape) < 0.25
    mask[:20] = True
    sets = rv.OptimalitySet(problem, X, observed=mask)
    by_sets = rv.InverseRegressor(problem).fit(Z, sets)
    by_part = rv.InverseRegressor(problem).fit(Z, PartialDecisions(np.where(mask, X, np.nan)))
    np.testing.assert_allclose(by_sets.coef_, by_part.coef_)
    np.testing.assert_allclose(by_sets.completed_, by_part.completed_)
    with pytest.raises(rv.InputError, match="learned from in turns"):
        rv.InverseRegressorCV(problem).fit(Z, sets)


def test_drawn_completions_teach_more_where_most_is_hidden_and_people_err():
    gains = []
    for seed in range(3):
        problem, Z, _, _, rng = paths(seed, B=400)
        costs = 4.0 + Z @ rng.standard_normal((3, problem.n_variables))
        costs = np.maximum(costs, 0.1)
        X = problem.solve(costs[:200] * np.exp(0.4 * rng.standard_normal((200, len(costs[0]))))).x
        seen = np.where(rng.random(X.shape) < 0.2, X, np.nan)
        seen[np.isnan(seen).all(axis=1), 0] = X[np.isnan(seen).all(axis=1), 0]
        score = []
        for draws in (1, 4):
            est = rv.InverseRegressor(problem)
            est.fit(Z[:200], PartialDecisions(seen, draws=draws, spread=0.3))
            there = ~np.isnan(seen)
            np.testing.assert_allclose(est.completed_[there], seen[there], atol=1e-7)
            found = est.predict(Z[200:])
            best = problem.solve(costs[200:]).objective
            score.append(((found * costs[200:]).sum(axis=1) / best).mean())
        gains.append(score[0] - score[1])
    assert np.mean(gains) > 0


def test_draws_of_decisions_seen_whole_teach_the_same():
    problem, Z, _, X, _ = paths(2, B=60)
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(Z, columns=["a", "b", "c"])
    once = rv.InverseRegressor(problem, ridge=1e-2, noise=0.0).fit(frame, PartialDecisions(X))
    drawn = rv.InverseRegressor(problem, ridge=1e-2, noise=0.0).fit(
        frame, PartialDecisions(X, draws=3)
    )
    np.testing.assert_allclose(drawn.coef_, once.coef_, atol=1e-3)
    with pytest.raises(rv.InputError, match="`draws` must be a whole number"):
        rv.InverseRegressor(problem).fit(Z, PartialDecisions(X, draws=0))


def test_draws_of_problems_that_differ_by_instance():
    rng = np.random.default_rng(0)
    room = rng.uniform(1.0, 2.0, (80, 1))
    problem = rv.LinearProgram(A_ub=np.ones((1, 4)), b_ub=room, lb=0.0, ub=1.0)
    Z = rng.standard_normal((80, 2))
    X = problem.solve(-2.0 + Z @ rng.standard_normal((2, 4))).x
    seen = np.where(rng.random(X.shape) < 0.6, X, np.nan)
    seen[:, 0] = X[:, 0]
    est = rv.InverseRegressor(problem).fit(Z, PartialDecisions(seen, draws=2))
    assert (est.completed_.sum(axis=1) <= room[:, 0] + 1e-6).all()


def test_masks_that_do_not_fit_are_refused():
    problem, _, _, X, _ = paths(2, B=10)
    mask = np.ones(X.shape, bool)
    with pytest.raises(rv.ShapeError, match=r"boolean mask .* \(10, 24\).*got bool of shape \(9, "):
        rv.OptimalitySet(problem, X, observed=mask[:9])
    with pytest.raises(rv.ShapeError, match="got float64"):
        rv.OptimalitySet(problem, X, observed=np.ones(X.shape))
    gone = X.copy()
    gone[3, 5] = np.nan
    with pytest.raises(rv.InputError, match="entry 5 of row 3 was seen, but it is NaN"):
        rv.OptimalitySet(problem, gone, observed=mask)
    with pytest.raises(rv.InputError, match=r"row 3, column 5 .* say so with `observed`"):
        rv.OptimalitySet(problem, gone)
    mask[6] = False
    with pytest.raises(rv.InputError, match="Row 6 has nothing that was seen"):
        rv.OptimalitySet(problem, X, observed=mask)
    mask[6, 1:] = True
    with pytest.raises(rv.InputError, match=r"Row 6 cannot be completed .* agrees"):
        rv.OptimalitySet(problem, np.where(np.arange(10)[:, None] == 6, 0.0, X), observed=mask)
    whole = rv.problems.binary_knapsack(np.ones((1, 3)), [2.0])
    with pytest.raises(rv.InputError, match="seen in part are those of a LinearProgram"):
        rv.OptimalitySet(whole, np.ones((1, 3)), observed=np.eye(1, 3, dtype=bool))
