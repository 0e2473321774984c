"""What a fit makes of awkward data, of units, of known weights and of scikit-learn's regressors."""

import numpy as np
import one_program
import pytest
from fit_cases import LOSSES, PROBLEMS, UNITS, contexts, entries
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.validation import check_is_fitted

import revealed as rv
from revealed.fit import LBFGS, Boosting, InverseRegressor, KernelModel, SharedModel, StopReason
from revealed.fit.solvers import SOLVERS

PLAIN = {"noise": 0.0, "ridge": 0.0}
KINDS = {
    "linear": {},
    "quadratic": {"model": "quadratic"},
    "shared": {"model": "shared"},
    "kernel": {"model": KernelModel(gamma=0.5)},
    "nystroem": {"model": KernelModel(gamma=0.5, n_components=4)},
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def case(kind, name="knapsack", **size):
    """A problem, contexts for a kind of model, decisions that it cannot explain."""
    return entries(name, **size) if kind == "shared" else contexts(name, **size)


def estimator(problem, kind, **options):
    return InverseRegressor(problem, **({"random_state": 3} | KINDS[kind] | options))


def same(one, other, Z, Z_other=None, *, rtol=1e-6):
    """Two fits reach the same loss and predict the same costs."""
    values = one.certificate_.value, other.certificate_.value
    assert values[0] == pytest.approx(values[1], rel=rtol)
    costs = one.predict_cost(Z), other.predict_cost(Z if Z_other is None else Z_other)
    np.testing.assert_allclose(*costs, rtol=rtol, atol=rtol * np.abs(costs[0]).max())


# --- awkward data --------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [1e-6, 1e6, [1e-6, 1.0, 1e6]], ids=str)
@every_kind
def test_units_of_features_change_nothing(kind, factor):
    problem, Z, X = case(kind)
    est = estimator(problem, kind)
    same(clone(est).fit(Z, X), clone(est).fit(Z * factor, X), Z, Z * factor)


@every_kind
def test_a_constant_feature_changes_nothing(kind):
    problem, Z, X = case(kind)
    more = np.concatenate([Z, np.full((*Z.shape[:-1], 1), 7.3)], axis=-1)
    one, other = (estimator(problem, kind).fit(z, X) for z in (Z, more))
    same(one, other, Z, more)
    if kind in ("linear", "shared"):
        assert not other.coef_[..., -1].any()


def test_more_features_than_samples():
    problem, _, X = contexts("knapsack")
    Z = np.random.default_rng(0).standard_normal((len(X), 40))
    sets = rv.OptimalitySet(problem, X)
    est = InverseRegressor(problem, solver=LBFGS(n_draws=2), random_state=3).fit(Z, X)
    best = one_program.least_loss(one_program.linear(Z), sets, est.loss_, ridge=est.ridge_)
    assert est.certificate_.value == pytest.approx(best, rel=1e-6)
    plain = InverseRegressor(problem, **PLAIN).fit(Z, X)
    assert plain.certificate_.interpolates
    np.testing.assert_allclose(plain.predict(Z), X, atol=1e-9)


@every_kind
@pytest.mark.parametrize("name", ["paths", "knapsack"])
@pytest.mark.parametrize("options", [{}, PLAIN, {"loss": "distance", "noise": 0.0}], ids=str)
# A loss of 1e-20 may not be told from 0, and without a loss there is no share of it to be within.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_one_sample_is_repeated(kind, name, options):
    if kind == "shared":  # a feature for each entry, so that anything can be learned
        n = PROBLEMS[name].n_variables
        X, Z = contexts(name, B=1)[2], np.eye(n)[None]
    else:
        _, Z, X = contexts(name, B=1)
    est = estimator(PROBLEMS[name], kind, **options).fit(Z, X)
    assert est.certificate_.converged or options != PLAIN
    np.testing.assert_allclose(est.predict(Z), X, atol=1e-9)


@pytest.mark.parametrize("ridge", [0.0, 0.1])
@pytest.mark.parametrize("power", [2, "huber"])
@every_kind
def test_a_sample_that_weighs_more_is_one_that_comes_more_often(kind, power, ridge):
    problem, Z, X = case(kind)
    times = np.random.default_rng(1).integers(1, 9, len(X))
    rows = np.repeat(np.arange(len(X)), times)
    chosen = {"loss": LOSSES[power], "ridge": ridge, "solver": LBFGS(tol=1e-10)}
    est = clone(estimator(problem, kind, noise=0.0, **chosen))
    if kind == "nystroem":
        est.set_params(model__n_components=None)  # draws of landmarks would differ
    weighed = clone(est).fit(Z, X, sample_weight=times)
    repeated = clone(est).fit(Z[rows], X[rows])
    value = repeated.certificate_.value
    assert weighed.certificate_.value == pytest.approx(value, rel=1e-6, abs=1e-9)
    if ridge:  # without one there may be several models with the least loss
        same(weighed, repeated, Z, rtol=1e-4)


@pytest.mark.parametrize("solver", ["lbfgs", "pocs", "armijo", "preconditioned"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_solver_counts_samples_by_their_weights(solver):
    problem, Z, X = case("linear")
    times = np.random.default_rng(1).integers(1, 9, len(X))
    rows, options = np.repeat(np.arange(len(X)), times), {"ridge": 0.1, "noise": 0.0}
    method = SOLVERS[solver](max_iter=3000, tol=1e-12)
    est = InverseRegressor(problem, solver=method, threads=1, **options)
    weighed = clone(est).fit(Z, X, sample_weight=times).predict_cost(Z)
    repeated = clone(est).fit(Z[rows], X[rows]).predict_cost(Z)
    np.testing.assert_allclose(weighed, repeated, atol=1e-3 * np.abs(repeated).max())


@every_kind
@pytest.mark.parametrize("power", [2, "huber"])
def test_data_that_come_twice_are_the_same_data(kind, power):
    problem, Z, X = case(kind)
    rows = np.tile(np.arange(len(X)), 2)
    chosen = {"loss": LOSSES[power], "solver": LBFGS(tol=1e-10)}
    est = clone(estimator(problem, kind, ridge=0.1, noise=0.0, **chosen))
    if kind == "nystroem":
        est.set_params(model__n_components=None)  # draws of landmarks would differ
    # A relative gap g leaves weights undetermined by up to sqrt(2 g loss / ridge), some 1e-4 here.
    same(clone(est).fit(Z, X), clone(est).fit(Z[rows], X[rows]), Z, rtol=1e-4)


@every_kind
@pytest.mark.parametrize("solver", ["lbfgs", "pocs"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # POCS is cut short
def test_a_weight_of_0_is_to_leave_a_sample_out(kind, solver):
    problem, Z, X = case(kind)
    weights = np.where(np.arange(len(X)) % 3 == 0, 0.0, 1.0 + np.arange(len(X)))
    there = weights > 0
    est = estimator(problem, kind, solver=solver)
    one = clone(est).fit(Z, X, sample_weight=weights)
    other = clone(est).fit(Z[there], X[there], sample_weight=weights[there])
    same(one, other, Z, rtol=1e-8)


@every_kind
def test_the_same_seed_gives_the_same_bits_whatever_the_threads(kind):
    problem, Z, X = case(kind)
    one, again, two = (estimator(problem, kind, threads=t).fit(Z, X) for t in (1, 1, 2))
    assert np.array_equal(one.coef_, again.coef_)
    assert np.array_equal(one.intercept_, again.intercept_)
    same(one, two, Z, rtol=1e-9)
    other = estimator(problem, kind, random_state=4).fit(Z, X)
    assert not np.array_equal(one.coef_, other.coef_)


@pytest.mark.parametrize("power", [2, 1, "huber", "welsch"])
@pytest.mark.parametrize("name", ["paths", "knapsack"])
def test_a_loss_of_0_is_reached_where_a_model_explains_everything(name, power):
    problem, rng = PROBLEMS[name], np.random.default_rng(2)
    sign = -1 if name == "knapsack" else 1
    Z = rng.uniform(0.5, 1.5, (30, 3))
    X = problem.solve(sign * Z @ rng.uniform(0.5, 1.5, (3, problem.n_variables))).x
    est = InverseRegressor(problem, margin=0.01, loss=LOSSES[power], **PLAIN).fit(Z, X)
    told = est.certificate_
    assert told.interpolates
    assert told.converged
    assert told.reason in (StopReason.INTERPOLATED, StopReason.CONVERGED)
    np.testing.assert_allclose(est.predict(Z), X, atol=1e-6)
    assert "explains all 30 decisions" in str(told)


def test_no_margin_needs_noise_to_say_anything():
    problem, Z, X = contexts("paths")
    nothing = InverseRegressor(problem, margin=0.0, **PLAIN).fit(Z, X)
    assert not nothing.predict_cost(Z).any()
    assert "which explains anything" in str(nothing.certificate_)
    est = InverseRegressor(problem, margin=0.0, random_state=0).fit(Z, X)
    assert est.loss_.noise == 1.0
    assert est.certificate_.converged
    assert not est.certificate_.trivial
    assert est.score(Z, X) > nothing.score(Z, X)


# --- sets of several problems --------------------------------------------------------------------


def test_parts_of_one_problem_are_that_problem():
    problem, Z, X = entries("knapsack")
    sets = rv.OptimalitySet(problem, X)
    parts = rv.OptimalitySet.concatenate([sets[:5], sets[5:]])
    est = estimator(problem, "shared", solver=LBFGS(tol=1e-9))
    whole, mixed = clone(est).fit(Z, sets), clone(est).fit(list(Z), parts)
    same(whole, mixed, Z, list(Z), rtol=1e-5)


@pytest.mark.parametrize("options", [{}, {"ridge": 0.05, "noise": 0.0}], ids=str)
def test_problems_of_several_sizes_share_their_weights(options):
    (few, Z_few, X_few), (more, Z_more, X_more) = entries("knapsack"), entries("streets")
    sets = [rv.OptimalitySet(few, X_few), rv.OptimalitySet(more, X_more)]
    Z, mixed = [*Z_few, *Z_more], rv.OptimalitySet.concatenate(sets)
    est = InverseRegressor(few, random_state=3, **options).fit(Z, mixed)
    assert est.certificate_.converged
    assert est.certificate_.relative_gap <= LBFGS().tol
    costs = est.predict_cost(Z)
    own = [costs[b, : len(z)] for b, z in enumerate(Z)]
    for z, c in zip(Z, own, strict=True):
        np.testing.assert_allclose(c, z @ est.coef_ + est.intercept_, atol=1e-9)
    halves = [rv.project(np.array(own[:16]), sets[0]), rv.project(np.array(own[16:]), sets[1])]
    h = 0.5 * np.mean(np.concatenate([half.distance for half in halves]) ** 2)
    assert est.certificate_.h == pytest.approx(h, rel=1e-6)


def test_features_that_all_samples_have_in_common():
    problem, Z, X = entries("knapsack")
    common, tiled = Z[0], np.tile(Z[0], (len(X), 1, 1))
    est = estimator(problem, "shared", solver=LBFGS(tol=1e-9))
    one, other = clone(est).fit(common, X), clone(est).fit(tiled, X)
    assert one.certificate_.value == pytest.approx(other.certificate_.value, rel=1e-6)
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-4)
    assert one.predict_cost(common).shape == (1, problem.n_variables)


# --- units, known weights ------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [None, 3.0])
def test_coefficients_of_products_are_in_the_units_of_the_data(scale):
    problem, Z, X = contexts("knapsack")
    unit = None if scale is None else scale ** np.arange(problem.n_variables)
    est = estimator(problem, "quadratic", cost_map=unit).fit(Z + 4.0 * UNITS, X)
    new = np.random.default_rng(3).standard_normal((9, 3)) * UNITS
    i, j = est.model_.products(3).T
    products = np.hstack([new, new[:, i] * new[:, j]])
    by_hand = products @ est.coef_.T + est.intercept_
    np.testing.assert_allclose(est.predict_cost(new), by_hand, rtol=1e-9, atol=1e-9)


@every_kind
def test_scales_of_entries_are_units_of_the_problem(kind):
    problem, Z, X = case(kind)
    unit = np.array([1.0, 10.0, 0.1, 3.0, 0.5])
    by_hand = rv.LinearProgram(A_ub=problem.A_ub.toarray() / unit, b_ub=problem.b_ub, ub=unit)
    one = estimator(problem, kind, cost_map=unit).fit(Z, X)
    Z_unit = Z / unit[:, None] if kind == "shared" else Z
    other = estimator(by_hand, kind).fit(Z_unit, X * unit)
    assert one.certificate_.value == pytest.approx(other.certificate_.value, rel=1e-6)
    costs = one.predict_cost(Z)
    np.testing.assert_allclose(costs, unit * other.predict_cost(Z_unit), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(one.predict(Z), problem.solve(costs).x)
    if kind == "linear":
        np.testing.assert_allclose(costs, linear_costs(one, Z), rtol=1e-9, atol=1e-9)
    if kind == "shared":  # an intercept counts in the unit of its entry
        np.testing.assert_allclose(costs, Z @ one.coef_ + unit * one.intercept_, rtol=1e-9)


def linear_costs(est, Z):
    return Z @ (est.coef_ if Z.ndim == 3 else est.coef_.T) + est.intercept_


@pytest.mark.parametrize("given", [{0: 1.5}, {2: -1.0}, {0: 0.5, 1: 0.1}], ids=str)
@pytest.mark.parametrize("ridge", [0.0, 0.1])
@pytest.mark.parametrize("power", [2, "huber"])
def test_known_weights_stay_as_given(given, ridge, power):
    problem, Z, X = entries("knapsack")
    chosen = {"model": SharedModel(given=given), "loss": LOSSES[power], "solver": LBFGS(tol=1e-8)}
    est = estimator(problem, "shared", ridge=ridge, **chosen)
    est.fit(Z, X)
    assert all(est.coef_[k] == weight for k, weight in given.items())
    sets = rv.OptimalitySet(problem, X)
    best = one_program.least_loss(one_program.Shared(Z, given), sets, est.loss_, ridge=ridge)
    assert est.certificate_.value == pytest.approx(best, rel=1e-6)
    assert est.certificate_.lower_bound <= best * (1 + one_program.EXACT)
    np.testing.assert_allclose(est.predict_cost(Z), linear_costs(est, Z), atol=1e-9)


# --- scikit-learn's regressors -------------------------------------------------------------------

REGRESSORS = {
    "tree": DecisionTreeRegressor(max_depth=4),
    "pipeline": make_pipeline(StandardScaler(), KNeighborsRegressor(8)),
    "forest": RandomForestRegressor(5, max_depth=4),
    "one output": SVR(),
}


def learnable(B, seed):
    """Decisions that depend on their contexts, in no linear way."""
    problem, rng = PROBLEMS["paths"], np.random.default_rng([seed, 9])
    W = np.random.default_rng(5).uniform(0, 1, (2, problem.n_variables))
    Z = rng.uniform(-1, 1, (B, 2))
    return problem, Z, problem.solve(0.3 + (Z @ W) ** 2).x


def loss_on(problem, costs, decisions):
    return 0.5 * np.mean(rv.project(costs, rv.OptimalitySet(problem, decisions)).distance ** 2)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # trees go in jumps
@pytest.mark.parametrize("solver", ["boosting", "pocs"])
@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors_learn_what_they_have_not_seen(name, solver):
    problem, Z, X = learnable(120, seed=0)
    _, Z_new, X_new = learnable(80, seed=1)
    est = InverseRegressor(
        problem, model=REGRESSORS[name], solver=SOLVERS[solver](max_iter=15), random_state=0
    )
    est.fit(Z, X)
    ignoring = InverseRegressor(problem, **PLAIN).fit(np.ones((len(X), 1)), X)
    costs = ignoring.predict_cost(np.ones((80, 1)))
    assert loss_on(problem, est.predict_cost(Z_new), X_new) < 0.9 * loss_on(problem, costs, X_new)
    again = clone(est).fit(Z, X)
    assert np.array_equal(again.predict_cost(Z_new), est.predict_cost(Z_new))
    with pytest.raises(NotFittedError):
        check_is_fitted(REGRESSORS[name])  # a copy was fitted, not this one


def test_boosting_keeps_the_rounds_that_help_on_samples_held_out():
    problem, Z, X = learnable(120, seed=0)
    _, Z_new, X_new = learnable(60, seed=1)
    solver = Boosting(patience=3, max_iter=60)
    est = InverseRegressor(problem, model=REGRESSORS["tree"], solver=solver, random_state=0)
    est.fit(Z, X, validation=(Z_new, X_new))
    held = est.history_["validation"]
    assert held.min() < held[0]
    assert len(est.model_.stages) == held.argmin()
    assert est.certificate_.reason in (StopReason.VALIDATION, StopReason.CAP)
    costs = sum(rate * stage.predict(Z_new) for rate, stage in est.model_.stages)
    np.testing.assert_allclose(est.predict_cost(Z_new), est.model_.constant + costs)
    left = loss_on(problem, est.predict_cost(Z_new), X_new)
    assert held.min() == pytest.approx(left, rel=1e-6)


def test_parameters_of_a_regressor_are_those_of_the_estimator():
    est = InverseRegressor(PROBLEMS["paths"], model=DecisionTreeRegressor(max_depth=4))
    assert est.get_params()["model__max_depth"] == 4
    other = clone(est).set_params(model__max_depth=2)
    assert (other.model.max_depth, est.model.max_depth) == (2, 4)
    assert other.model is not est.model
    with pytest.raises(rv.InputError, match="all data at once"):
        est.partial_fit(*learnable(20, seed=0)[1:])
