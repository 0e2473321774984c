"""Learning limits along with costs: what is exact, what is monotone, what is refused."""

import numpy as np
import pytest

import revealed as rv
from revealed.fit import learn_limits
from revealed.fit.limits.censored import fit_censored
from revealed.fit.limits.labels import find_guesses
from revealed.fit.limits.learning import LimitLearning
from revealed.optimality.limit_sets import UnknownLimitSet


def knapsacks(seed, K, noise=0.0, B=200, tightness=0.5):
    """Items of unknown worth under a known row and K rows whose limits follow the context."""
    rng = np.random.default_rng(seed)
    n, d = 8, 2
    W, Z = rng.uniform(0.5, 2.0, (K, n)), rng.standard_normal((B, d))
    limits = W.sum(1) * tightness * (1.0 + 0.06 * Z @ rng.standard_normal((d, K)))
    seen = limits * (1.0 + noise * rng.standard_normal(limits.shape))
    worth = 3.0 + 0.3 * Z @ rng.standard_normal((d, n)) + rng.uniform(0, 2, n)
    worth = worth * (1.0 + noise * rng.standard_normal(worth.shape))
    A = np.vstack([rng.uniform(0.5, 1.5, n), W])
    known = 0.6 * A[0].sum()
    b = np.column_stack([np.full(B, known), seen])
    X = rv.LinearProgram(A_ub=A, b_ub=b, lb=0.0, ub=1.0).solve(-worth).x
    base = rv.LinearProgram(A_ub=A, b_ub=np.append(known, np.full(K, 99.0)), lb=0.0, ub=1.0)
    active = np.abs(X @ W.T - seen) < 1e-7
    return base, {"ub": list(range(1, K + 1))}, Z, X, limits, active, -worth


@pytest.mark.parametrize("K", [1, 2, 3])
@pytest.mark.parametrize("seed", [0, 1])
def test_exact_decisions_tell_limits_exactly(seed, K):
    base, unknown, Z, X, limits, active, _ = knapsacks(seed, K)
    model, told = learn_limits(base, unknown, Z, X)
    np.testing.assert_allclose(model.predict(Z), limits, rtol=1e-6)
    np.testing.assert_array_equal(model.active, active.sum(axis=0))
    assert not told.outliers


def test_the_vertex_test_labels_every_decision_where_one_limit_is_unknown():
    base, unknown, _, X, _, active, _ = knapsacks(3, 1, noise=0.1)
    guesses = find_guesses(UnknownLimitSet(base, X, unknown))
    assert guesses.sure.all()
    assert guesses.vertex.all()
    np.testing.assert_array_equal(guesses.active[:, 0], active)


@pytest.mark.parametrize("seed", [0, 1])
def test_every_guess_of_the_vertex_test_makes_a_vertex_and_the_truth_is_among_them(seed):
    base, unknown, _, X, _, active, _ = knapsacks(seed, 3)
    guesses = find_guesses(UnknownLimitSet(base, X, unknown))
    assert (guesses.active == active[:, None]).all(axis=2).any(axis=1).all()
    assert (guesses.active.sum(axis=2) == guesses.missing[:, None]).all()


def test_noise_in_limits_does_not_bias_them():
    """Limits are active where they happen to be small: plain regression would be too low."""
    rng = np.random.default_rng(0)
    F = np.column_stack([np.ones(4000), rng.standard_normal(4000)])
    limit = F @ [5.0, 0.5] + 0.5 * rng.standard_normal(4000)
    wanted = 5.0 + rng.standard_normal(4000)
    values, active = np.minimum(limit, wanted), limit < wanted
    fit = fit_censored(F, values, active.astype(float))
    naive = np.linalg.lstsq(F[active], values[active], rcond=None)[0]
    error = np.abs(fit.theta - [5.0, 0.5])
    assert (error < 4.0 * np.sqrt(np.diag(fit.covariance))).all()
    assert error[0] < 0.2 * abs(naive[0] - 5.0)
    assert fit.scale == pytest.approx(0.5, rel=0.1)


def test_known_costs_tell_labels_that_decisions_leave_open():
    base, unknown, Z, X, _, active, costs = knapsacks(1, 3, noise=0.1)
    with_costs = learn_limits(base, unknown, Z, X, costs=costs)[0]
    assert np.abs(with_costs.active - active.sum(axis=0)).sum() <= 2


def test_turns_of_labels_limits_and_costs_never_raise_the_objective():
    base, unknown, Z, X, *_ = knapsacks(1, 3, noise=0.1)
    est = rv.InverseRegressor(base, unknown_limits=unknown).fit(Z, X)
    objective = est.certificate_.limits.objective
    assert len(objective) > 1
    assert (np.diff(objective) <= 0).all()
    assert "local optimum" in str(est.certificate_)


def test_estimator_predicts_limits_and_decides_under_them(tmp_path):
    base, unknown, Z, X, limits, *_ = knapsacks(0, 2, B=250)
    est = rv.InverseRegressor(base, unknown_limits=unknown).fit(Z[:200], X[:200])
    np.testing.assert_allclose(est.predict_limits(Z[200:]), limits[200:], rtol=1e-6)
    decided = est.predict(Z[200:])
    W = base.A_ub.toarray()[1:]
    assert (decided @ W.T <= limits[200:] + 1e-6).all()
    assert est.certificate_.converged
    assert est.certificate_.limits is not None
    again = rv.load(est.save(tmp_path / "model"))
    np.testing.assert_array_equal(again.predict(Z[200:]), decided)
    np.testing.assert_array_equal(again.predict_limits(Z), est.predict_limits(Z))
    assert str(again.certificate_) == str(est.certificate_)


def test_bounds_of_variables_may_be_unknown():
    rng = np.random.default_rng(2)
    B, n = 300, 5
    Z = rng.standard_normal((B, 2))
    top, low = 0.6 + 0.1 * Z[:, 0], 0.2 - 0.05 * Z[:, 1]
    ub, lb = np.ones((B, n)), np.zeros((B, n))
    ub[:, 1], lb[:, 3] = top, low
    A = np.ones((1, n))
    costs = -1.0 + rng.standard_normal((B, n))
    X = rv.LinearProgram(A_ub=A, b_ub=[2.5], lb=lb, ub=ub).solve(costs).x
    base = rv.LinearProgram(A_ub=A, b_ub=[2.5], lb=0.0, ub=1.0)
    est = rv.InverseRegressor(base, unknown_limits={"lower": [3], "upper": [1]}).fit(Z, X)
    found = est.predict_limits(Z)
    np.testing.assert_allclose(found, np.column_stack([low, top]), atol=1e-5)


def test_a_limit_that_is_never_active_has_one_side_and_no_number():
    base, unknown, Z, X, limits, active, _ = knapsacks(4, 1, tightness=2.0)
    assert not active.any()
    est = rv.InverseRegressor(base, unknown_limits=unknown).fit(Z, X)
    assert np.isposinf(est.predict_limits(Z)).all()
    between = est.limit_intervals(Z[:5])
    assert np.isposinf(between.high).all()
    assert not between.identified.any()
    assert (between.low <= limits[:5]).all()
    assert (between.low[:, 0] >= (X @ base.A_ub.toarray()[1])[:5] - 1e-7).all()
    assert "never active" in str(est.certificate_)


def test_rounded_decisions_are_read_at_their_rounding():
    base, unknown, Z, X, limits, *_ = knapsacks(5, 1)
    with pytest.warns(UserWarning, match="rounded to"):
        est = rv.InverseRegressor(base, unknown_limits=unknown).fit(Z, np.round(X, 3))
    assert np.abs(est.predict_limits(Z) - limits).max() < 0.01
    est = rv.InverseRegressor(base, unknown_limits=unknown, decision_tol=0.0005)
    assert np.abs(est.fit(Z, np.round(X, 3)).predict_limits(Z) - limits).max() < 0.01


def test_contradicting_samples_are_named_and_move_nothing():
    base, unknown, Z, X, limits, *_ = knapsacks(6, 1)
    bad = [11, 50, 120]
    X = X.copy()
    X[bad] = 0.0
    X[bad, 0], X[bad, 1] = 1.0, 0.5  # stops at an item halfway that the limit does not stop at
    model, told = learn_limits(base, unknown, Z, X)
    np.testing.assert_allclose(model.predict(Z), limits, rtol=1e-5)
    assert told.outliers == bad
    assert "3 decisions contradict" in str(told)
    assert "row 11" in str(told)


def test_limits_that_leave_no_decision_are_named():
    problem = rv.LinearProgram(A_eq=[[1.0, 1.0]], b_eq=[1.0], lb=0.0, ub=1.0)
    Z = np.linspace(0.5, 1.5, 40)[:, None]
    limit = 0.4 * Z[:, 0]
    X = np.column_stack([limit, 1.0 - limit])
    est = rv.InverseRegressor(problem, unknown_limits={"upper": [0]}).fit(Z, X)
    with pytest.warns(UserWarning, match=r"row 1.*leave no feasible decision"):
        found = est.predict(np.array([[1.0], [-1.0]]))
    assert np.isfinite(found[0]).all()
    assert np.isnan(found[1]).all()


def test_what_cannot_be_learned_is_refused_in_a_sentence():
    base, unknown, Z, X, _, _, costs = knapsacks(0, 1, B=40)
    with pytest.raises(rv.InputError, match="names 7, but the problem has 2 rows"):
        rv.InverseRegressor(base, unknown_limits={"ub": [7]}).fit(Z, X)
    with pytest.raises(rv.InputError, match="learned from decisions"):
        rv.InverseRegressor(base, unknown_limits=unknown).fit(Z, true_costs=costs)
    with pytest.raises(rv.InputError, match="all data at once"):
        rv.InverseRegressor(base, unknown_limits=unknown).partial_fit(Z, X)
    with pytest.raises(rv.InputError, match="No limits were learned"):
        rv.InverseRegressor(base).fit(Z, X).predict_limits(Z)
    whole = rv.IntegerProgram(A_ub=[[1.0, 1.0]], b_ub=[1.0], lb=0.0, ub=1.0)
    with pytest.raises(rv.InputError, match="of a LinearProgram"):
        rv.InverseRegressor(whole, unknown_limits={"ub": [0]}).fit(np.ones((1, 1)), np.eye(2)[:1])


def test_samples_of_weight_zero_are_as_if_they_were_not_there():
    base, unknown, Z, X, *_ = knapsacks(0, 1, noise=0.05, B=120)
    weights = np.ones(120)
    weights[100:] = 0.0
    a = rv.InverseRegressor(base, unknown_limits=unknown).fit(Z, X, sample_weight=weights)
    b = rv.InverseRegressor(base, unknown_limits=unknown).fit(Z[:100], X[:100])
    np.testing.assert_allclose(a.predict_limits(Z), b.predict_limits(Z), rtol=1e-9)


def test_chosen_model_and_intervals_of_costs_go_with_unknown_limits():
    base, unknown, Z, X, limits, *_ = knapsacks(1, 1, B=80)
    est = rv.InverseRegressorCV(base, unknown_limits=unknown, ridges=[1e-3, 1e-2], model="linear")
    np.testing.assert_allclose(est.fit(Z, X).predict_limits(Z), limits, rtol=1e-6)


def test_learning_starts_from_several_places_and_says_how_many_agree():
    base, unknown, Z, X, *_ = knapsacks(1, 2, noise=0.05)
    learning = LimitLearning(UnknownLimitSet(base, X, unknown), Z, rv.OptimalitySet)
    assert 1 <= learning.mixture.agreeing <= learning.mixture.starts
    assert learning.mixture.starts > 1
