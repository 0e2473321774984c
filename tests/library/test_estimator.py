"""InverseRegressor: scikit-learn's own checks, its tools, and the sentences of bad input."""

import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import (
    check_regressor_multioutput,
    parametrize_with_checks,
)

import revealed as rv
from revealed.fit import (
    LBFGS,
    POCS,
    Adam,
    Certificate,
    InverseRegressor,
    KernelModel,
    LinearModel,
    SharedModel,
    StopReason,
    TorchModel,
    pocs,
)
from revealed.fit.prediction import UnsolvedDecisionWarning
from revealed.fit.solvers import SOLVERS as KINDS

# Most tests here stop a fit early; that this gives a warning is tested in test_lbfgs.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

PATHS = rv.problems.grid_shortest_path(4, 4, directed="right-down")
SOLVERS = ("lbfgs", "pocs", "armijo")
PLAIN = {"noise": 0.0, "ridge": 0.0}


def lasting(solver, count, **settings):
    """A solver that makes at most so many steps or epochs."""
    kind = KINDS[solver]
    most = "max_iter" if "max_iter" in kind().get_params() else "max_epochs"
    return kind(**{most: count}, **settings)


def routes(B=60, d=3, seed=0):
    """Contexts, decisions and the costs behind them."""
    rng = np.random.default_rng([seed, 5])
    Z = rng.standard_normal((B, d))
    W = np.random.default_rng(2).random((d, PATHS.n_variables))
    C = 0.5 + (1.5 + Z @ W) ** 2
    return Z, PATHS.solve(C).x, C


def network(d=3):
    torch.manual_seed(1)
    return torch.nn.Sequential(
        torch.nn.Linear(d, 16), torch.nn.ReLU(), torch.nn.Linear(16, PATHS.n_variables)
    )


# --- scikit-learn's checks -----------------------------------------------------------------------


def box(*bounds):
    """The only problem that random numbers are decisions of: variables between two bounds."""
    return rv.LinearProgram(lb=[low for low, _ in bounds], ub=[high for _, high in bounds])


ANY = (-1e6, 1e6)
NOT_APPLICABLE = {
    "check_regressor_multioutput": "It fits five targets, decisions of a problem of five "
    "variables, where all other checks fit one; it passes with such a problem, below.",
}


@parametrize_with_checks(
    [InverseRegressor(box(ANY), solver=lasting(s, 10)) for s in SOLVERS],
    expected_failed_checks=lambda estimator: NOT_APPLICABLE,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("solver", SOLVERS)
def test_checks_that_need_a_problem_of_their_own(solver):
    five = InverseRegressor(box(*[ANY] * 5), solver=solver)
    check_regressor_multioutput("InverseRegressor", five)


# --- scikit-learn's tools ------------------------------------------------------------------------


def test_pipeline_and_grid_search_find_the_better_ridge():
    Z, X, _ = routes()
    pipeline = make_pipeline(StandardScaler(), InverseRegressor(PATHS, solver=LBFGS(max_iter=30)))
    search = GridSearchCV(pipeline, {"inverseregressor__ridge": [0.0, 1e6]}, cv=3)
    search.fit(Z * [1.0, 1e3, 1e-3] + 5.0, X)
    assert search.best_params_ == {"inverseregressor__ridge": 0.0}
    assert search.predict(Z).shape == X.shape


def test_cross_validation_takes_sets_as_it_takes_decisions():
    Z, X, _ = routes()
    est = InverseRegressor(PATHS, solver=LBFGS(max_iter=10), margin=0.3, random_state=0)
    sets = rv.OptimalitySet(PATHS, X, margin=0.3)
    scores = [cross_val_score(est, Z, y, cv=3) for y in (X, sets)]
    np.testing.assert_allclose(*scores)


@pytest.mark.parametrize("solver", ["lbfgs", "sgd"])
def test_the_same_data_give_the_same_model_unless_draws_are_asked_for(solver):
    Z, X, _ = routes()
    fits = [InverseRegressor(PATHS, solver=lasting(solver, 5)).fit(Z, X) for _ in range(2)]
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
    anew = InverseRegressor(PATHS, solver=lasting(solver, 5), random_state=None).fit(Z, X)
    assert not np.array_equal(anew.coef_, fits[0].coef_)


def test_clone_and_set_params():
    est = InverseRegressor(PATHS, solver="sgd", ridge=0.1, model=network())
    other = clone(est).set_params(margin=2.0)
    assert other.problem is PATHS
    assert (other.solver, other.ridge, other.margin) == ("sgd", 0.1, 2.0)
    assert other.model is not est.model


def test_settings_of_solver_model_and_loss_are_settings_of_the_estimator():
    est = InverseRegressor(PATHS, solver=LBFGS(max_iter=7), loss=rv.fit.Huber(delta=0.5))
    told = est.get_params()
    assert (told["solver__max_iter"], told["loss__delta"]) == (7, 0.5)
    other = clone(est).set_params(solver__max_iter=9, loss__delta=2.0)
    assert (other.solver.max_iter, est.solver.max_iter) == (9, 7)
    assert (other.loss.delta, est.loss.delta) == (2.0, 0.5)
    assert "solver=LBFGS(max_iter=7)" in repr(est)


def test_a_name_gives_way_to_its_object_when_a_setting_of_it_is_set():
    est = InverseRegressor(PATHS, model="kernel", loss="huber")
    est.set_params(solver__max_iter=5, model__gamma=0.3, loss__delta=0.4)
    assert (est.solver.max_iter, est.model.gamma, est.loss.delta) == (5, 0.3, 0.4)
    assert isinstance(est.solver, LBFGS)
    est.set_params(solver="adam", solver__lr=0.2)
    assert est.solver.lr == 0.2
    assert isinstance(
        InverseRegressor(PATHS, model=network()).set_params(solver__lr=1.0).solver, Adam
    )
    for name in ("solver__depth", "model__depth"):
        with pytest.raises(rv.InputError, match="no setting 'depth'; its settings are"):
            est.set_params(**{name: 3})
    with pytest.raises(rv.InputError, match="which has no settings of its own"):
        InverseRegressor(PATHS).set_params(loss__delta=1.0)


def test_a_grid_search_reaches_into_solver_and_model():
    Z, X, _ = routes()
    est = InverseRegressor(PATHS, model=KernelModel(gamma=0.1), solver=LBFGS(), random_state=0)
    grid = {"model__gamma": [1e-8, 0.1], "solver__max_iter": [0, 20]}
    search = GridSearchCV(est, grid, cv=3).fit(Z, X)
    assert search.best_params_ == {"model__gamma": 0.1, "solver__max_iter": 20}


def test_a_fit_changes_no_setting():
    Z, X, _ = routes()
    model, solver = KernelModel(gamma=0.1), LBFGS(max_iter=5)
    est = InverseRegressor(PATHS, model=model, solver=solver, random_state=0)
    before = repr(est)
    est.fit(Z, X)
    assert (est.model, est.solver, repr(est)) == (model, solver, before)
    assert model.landmarks is None
    assert (model.ridge, model.standardize) == (0.0, False)


def test_both_estimators_share_one_list_of_settings():
    one = InverseRegressor(PATHS).get_params(deep=False)
    chosen = rv.InverseRegressorCV(PATHS, margin=0.3, solver=LBFGS(max_iter=3))
    own = {"ridges", "cv", "scoring", "one_standard_error", "n_jobs"}
    assert set(chosen.get_params(deep=False)) == set(one) - {"ridge"} | own
    assert clone(chosen).get_params()["solver__max_iter"] == 3
    with pytest.raises(TypeError, match="give ridges="):
        rv.InverseRegressorCV(PATHS, ridge=0.1)
    with pytest.raises(TypeError, match="unexpected keyword"):
        rv.InverseRegressorCV(PATHS, max_iter=3)


@pytest.mark.parametrize("kind", ["linear", "kernel", "module"])
def test_pickle_keeps_the_predictions(kind):
    Z, X, _ = routes()
    model = network() if kind == "module" else kind
    solver = lasting("adam" if kind == "module" else "lbfgs", 2)
    est = InverseRegressor(PATHS, model=model, solver=solver, random_state=0).fit(Z, X)
    again = pickle.loads(pickle.dumps(est))
    assert np.array_equal(again.predict_cost(Z), est.predict_cost(Z))


def test_pandas_in_with_the_names_of_features():
    pandas = pytest.importorskip("pandas")
    Z, X, _ = routes()
    frame = pandas.DataFrame(Z, columns=["hour", "rain", "load"])
    est = InverseRegressor(PATHS, solver=LBFGS(max_iter=5), random_state=0)
    plain = clone(est).fit(Z, X)
    est.fit(frame, pandas.DataFrame(X))
    assert list(est.feature_names_in_) == ["hour", "rain", "load"]
    assert np.array_equal(est.coef_, plain.coef_)
    with pytest.raises(ValueError, match="feature names"):
        est.predict(frame[["rain", "hour", "load"]])


# --- what it learns ------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
def test_learns_and_tells(solver):
    Z, X, C = routes()
    est = InverseRegressor(PATHS, solver=lasting(solver, 30), **PLAIN)
    est.fit(Z, X, track_decisions=True)
    assert est.predict(Z).shape == X.shape
    assert est.predict_cost(Z).shape == C.shape
    np.testing.assert_allclose(est.predict_cost(Z), Z @ est.coef_.T + est.intercept_, atol=1e-12)
    assert est.n_features_in_ == 3
    assert est.n_iter_ == len(est.history_) - 1
    assert est.n_iter_ <= 30 if solver == "lbfgs" else est.n_iter_ == 30
    loss = rv.metrics.decision_loss(PATHS, costs=est.predict_cost(Z), decisions=X).mean()
    assert est.score(Z, X) == pytest.approx(-loss)
    assert est.history_["decision_loss"][-1] == pytest.approx(loss)
    assert loss < 0.5 * est.history_["decision_loss"][0]
    assert isinstance(est.certificate_, Certificate)
    assert est.certificate_.h == pytest.approx(est.history_["h"][-1], rel=1e-9)
    assert "of 60 predicted costs explain their decision" in str(est.certificate_)


@pytest.mark.parametrize(
    "kind, solver",
    [(k, s) for k in ("linear", "quadratic", "shared", "kernel") for s in SOLVERS]
    + [("module", s) for s in ("pocs", "armijo", "adam")],
)
def test_every_model_by_every_solver(kind, solver):
    Z, X, _ = routes()
    if kind == "shared":
        Z = np.random.default_rng(0).random((60, PATHS.n_variables, 3))
        X = PATHS.solve(Z @ [1.0, 2.0, 0.5]).x
    model = TorchModel(network(), inner_steps=20) if kind == "module" else kind
    est = InverseRegressor(PATHS, solver=lasting(solver, 15), model=model, random_state=0)
    est.fit(Z, X)
    assert est.history_["h"][-1] < 0.9 * est.history_["h"][0]
    assert hasattr(est, "coef_") == (kind != "module")
    again = clone(est).fit(Z, X)
    assert np.array_equal(again.predict_cost(Z), est.predict_cost(Z))
    assert est.predict(Z).shape == X.shape


def test_features_of_each_entry_make_a_linear_model_shared():
    Z = np.random.default_rng(0).random((30, PATHS.n_variables, 2))
    X = PATHS.solve(Z @ [1.0, 0.5]).x
    linear, shared = (
        InverseRegressor(PATHS, model=m, random_state=0).fit(Z, X) for m in ("linear", "shared")
    )
    assert np.array_equal(linear.coef_, shared.coef_)
    assert (linear.coef_.shape, linear.n_features_in_) == ((2,), 2)
    with pytest.raises(rv.ShapeError, match="3 features of each entry"):
        linear.predict(np.zeros((4, PATHS.n_variables, 3)))


def test_features_that_all_samples_share_are_scored_against_every_decision():
    Z = np.random.default_rng(0).random((PATHS.n_variables, 2))
    X = PATHS.solve(np.random.default_rng(1).random((30, PATHS.n_variables))).x
    est = InverseRegressor(PATHS, model="shared", random_state=0).fit(Z, X)
    one = est.predict(Z)
    assert one.shape == (1, PATHS.n_variables)
    assert est.score(Z, X) == pytest.approx(-((one - X) ** 2).sum(axis=1).mean())
    sets, weights = rv.OptimalitySet(PATHS, X, 1.0), np.arange(30.0)
    assert est.score(Z, sets) == est.score(Z, X)
    weighed = np.average(((one - X) ** 2).sum(axis=1), weights=weights)
    assert est.score(Z, X, sample_weight=weights) == pytest.approx(-weighed)


@pytest.mark.parametrize("solver", ["lbfgs", "armijo"])
def test_decisions_are_tracked_in_the_units_of_the_user(solver):
    Z, X, _ = routes()
    scale = np.linspace(0.5, 3.0, PATHS.n_variables)
    solver = lasting(solver, 10)
    est = InverseRegressor(PATHS, solver=solver, cost_map=scale, random_state=0)
    est.fit(Z, X, track_decisions=True)
    assert est.history_["decision_loss"][-1] == pytest.approx(-est.score(Z, X))
    assert est.score(Z, X) < 0


def test_a_module_given_is_copied_not_trained():
    Z, X, _ = routes()
    given = network()
    before = given[0].weight.detach().clone()
    InverseRegressor(PATHS, model=given, solver=Adam(max_epochs=2)).fit(Z, X)
    assert torch.equal(given[0].weight, before)


def test_true_costs_stand_for_the_decisions_they_lead_to():
    Z, X, C = routes()
    est = InverseRegressor(PATHS, solver=LBFGS(max_iter=10), random_state=0)
    known, seen = clone(est).fit(Z, true_costs=C), clone(est).fit(Z, X)
    assert np.array_equal(known.coef_, seen.coef_)


def test_sets_bring_their_own_margin_and_constraints():
    rng = np.random.default_rng(0)
    Z, room = rng.standard_normal((40, 2)), rng.uniform(1.0, 3.0, 40)
    weights = [1.0, 2.0, 1.5, 0.5]
    own = rv.problems.knapsack(weights, room)
    sets = rv.OptimalitySet(own, own.solve(-rng.random((40, 4))).x, margin=0.2)
    est = InverseRegressor(rv.problems.knapsack(weights, 2.0), solver=POCS(max_iter=20))
    est.fit(Z, sets)
    model = LinearModel()
    pocs(model, Z, sets, max_iter=20)
    assert np.array_equal(est.coef_, model.coef)
    assert np.isfinite(est.score(Z, sets))
    new = rv.problems.knapsack(weights, [0.5, 2.5])
    decisions = est.predict(Z[:2], problem=new)
    np.testing.assert_allclose(decisions @ weights <= [0.5 + 1e-9, 2.5 + 1e-9], True)


def test_torch_in_torch_out():
    Z, X, _ = routes()
    est = InverseRegressor(PATHS, solver=LBFGS(max_iter=5)).fit(torch.tensor(Z), torch.tensor(X))
    tensor = torch.tensor(Z, dtype=torch.float32)
    assert est.predict_cost(tensor).dtype == torch.float32
    assert torch.equal(est.predict(torch.tensor(Z)), torch.tensor(est.predict(Z)))


def test_validation_data_stop_the_training():
    (Z, X, _), (held_Z, held_X, _) = routes(B=10), routes(B=30, seed=1)
    est = InverseRegressor(PATHS, solver=Adam(lr=0.1, patience=5, max_epochs=200), random_state=0)
    est.fit(Z, X, validation=(held_Z, held_X))
    assert est.certificate_.reason is StopReason.VALIDATION


# --- more data later -----------------------------------------------------------------------------


def test_partial_fit_on_all_data_is_one_iteration_of_pocs():
    Z, X, _ = routes()
    once = InverseRegressor(PATHS, solver="pocs").partial_fit(Z, X)
    whole = InverseRegressor(PATHS, solver=POCS(max_iter=1)).fit(Z, X)
    np.testing.assert_allclose(once.coef_, whole.coef_, atol=1e-12)
    assert (once.n_iter_, once.certificate_.reason) == (1, StopReason.ONE_PASS)


def test_partial_fit_of_pocs_is_recursive_least_squares():
    Z, X, _ = routes()
    est, targets = InverseRegressor(PATHS, solver="pocs", **PLAIN), []
    for part in (slice(0, 7), slice(7, 30), slice(30, 60)):
        costs = est.predict_cost(Z[part]) if targets else np.zeros((7, PATHS.n_variables))
        sets = rv.OptimalitySet(PATHS, X[part])
        targets.append(rv.project(costs, sets).point)
        est.partial_fit(Z[part], X[part])
    fitted = LinearModel().fit_targets(Z, np.vstack(targets))
    np.testing.assert_allclose(est.coef_, fitted.coef, atol=1e-9)
    np.testing.assert_allclose(est.intercept_, fitted.intercept, atol=1e-9)
    assert len(est.history_) == est.n_iter_ == 3


@pytest.mark.parametrize(
    "kind, solver",
    [(k, s) for k in ("linear", "quadratic", "kernel") for s in SOLVERS]
    + [("module", "pocs"), ("module", "adam")],
)
def test_passes_over_the_data_help(kind, solver):
    Z, X, _ = routes()
    model = network() if kind == "module" else kind
    est = InverseRegressor(PATHS, solver=solver, model=model, random_state=0)
    for _ in range(6):
        for part in (slice(0, 20), slice(20, 40), slice(40, 60)):
            est.partial_fit(Z[part], X[part])
    assert est.score(Z, X) > clone(est).set_params(solver=lasting(solver, 0)).fit(Z, X).score(Z, X)
    assert np.array_equal(est.history_["iteration"], np.arange(len(est.history_)))


# --- bad input -----------------------------------------------------------------------------------

Z, X, C = routes()
WRONG = [
    ({}, (Z[:-1], X), "one row for each of the 60 decisions; got 59"),
    ({}, (Z, X[:-1]), "one row for each of the 59 decisions; got 60"),
    ({}, (np.where(Z == Z[4, 2], np.nan, Z), X), "NaN in sample 4, feature 2"),
    ({}, (Z, np.where(np.arange(60)[:, None] == 9, np.nan, X)), "`decisions` must be finite"),
    ({}, (Z, np.zeros_like(X)), "Decision 0 breaks equality row 0"),
    ({}, (Z, X[:, :-1]), r"must have shape \(B, 24\)"),
    ({}, (Z[:0], X[:0]), "0 sample"),
    ({}, (Z, None), "fit\\(Z, true_costs=C\\)"),
    ({"margin": -1.0}, (Z, X), "at least 0; got -1"),
    ({"margin": np.inf}, (Z, X), "finite"),
    ({"margin": 1e300}, (Z, X), "only sets the unit"),
    ({"margin": 1e-300}, (Z, X), "only sets the unit"),
    ({}, (Z * [1.0, 1e200, 1.0], X), "feature 1 is .* in another unit"),
    ({"problem": 3}, (Z, X), "must be a LinearProgram; got int"),
    ({"solver": "newton"}, (Z, X), "auto or one of lbfgs, pocs, boosting, armijo"),
    ({"solver": 3}, (Z, X), "an object such as LBFGS"),
    ({"solver": "boosting"}, (Z, X), "does not go with this model"),
    ({"solver": "lbfgs", "model": network()}, (Z, X), "linear in what they learn"),
    ({"model": "tree"}, (Z, X), "linear, quadratic, shared, kernel"),
    ({"model": "shared"}, (Z, X), r"\(B, 24, p\)"),
    ({"solver": "pocs", "loss": "distance"}, (Z, X), "needs solver='lbfgs'"),
    ({"solver": "pocs", "loss": "welsch"}, (Z, X), "needs solver='lbfgs'"),
    ({"loss": "cubic"}, (Z, X), "auto, squared, distance, huber, welsch"),
    ({"model": LinearModel(ridge=0.1)}, (Z, X), r"InverseRegressor\(ridge=...\)"),
    ({"model": KernelModel(seed=1)}, (Z, X), r"InverseRegressor\(random_state=...\)"),
    ({"model": [1, 2]}, (Z, X), "a torch.nn.Module or a scikit-learn regressor"),
    ({"noise": -1.0}, (Z, X), "`noise` must be a finite number"),
    ({"ridge": "much"}, (Z, X), "`ridge` must be a finite number"),
    ({"loss": rv.fit.Huber(delta=0.0)}, (Z, X), "`delta` must be above 0"),
    ({"solver": LBFGS(n_draws=3)}, (Z, X), "`n_draws` must be even"),
    ({"model": SharedModel(given={9: 1.0})}, (Z[:24], X), "some, not all, of the 3 features"),
    ({"cost_map": np.ones(3)}, (Z, X), "each of the 24 cost entries"),
    ({"cost_map": np.zeros(24)}, (Z, X), "a finite number above 0"),
    ({"ridge": -0.1}, (Z, X), "`ridge` must be"),
    ({"solver": LBFGS(max_iter=-2)}, (Z, X), "at least 0"),
    ({"solver": LBFGS(max_iter=1.5)}, (Z, X), "`max_iter` must be a whole number"),
    ({"solver": LBFGS(tol="small")}, (Z, X), "`tol` must be a finite number"),
    ({"model": KernelModel(n_components=2.5)}, (Z, X), "`n_components` must be a whole number"),
    ({"model": KernelModel(gamma=-1.0)}, (Z, X), "`gamma` must be a finite number"),
    ({"random_state": -1}, (Z, X), "`random_state` must be a whole number"),
    ({"model": torch.nn.Linear(7, 24)}, (Z, X), r"contexts of shape \(2, 3\).* it fails"),
    ({"model": torch.nn.GRU(3, 24)}, (Z, X), "one tensor of costs"),
    ({"model": torch.nn.Identity()}, (Z, X), "no parameters to learn"),
    ({}, (np.full((60, 2), "wet"), X), "`Z` must be an array of numbers.*'wet'"),
    (
        {"solver": "pocs", "model": TorchModel(network(), optimizer="lbfgs")},
        (Z, X),
        "sgd, adam, adagrad",
    ),
]


@pytest.mark.parametrize("settings, data, words", WRONG, ids=[words for *_, words in WRONG])
def test_bad_input_meets_a_sentence(settings, data, words):
    with pytest.raises(ValueError, match=words):
        InverseRegressor(**({"problem": PATHS} | settings)).fit(*data)


def test_bad_calls_meet_a_sentence():
    est = InverseRegressor(PATHS, solver=LBFGS(max_iter=1)).fit(Z, X)
    refused = [
        (lambda: est.predict(Z, problem="roads"), "must be a LinearProgram; got str"),
        (lambda: est.score(Z, X, sample_weight=np.ones(3)), "each of the 60 samples"),
        (lambda: est.score(Z, X, sample_weight=np.zeros(60)), "zero for every sample"),
        (lambda: est.fit(Z, X, sample_weight=-np.ones(60)), "got -1.0 at sample 0"),
    ]
    for call, words in refused:
        with pytest.raises(rv.InputError, match=words):
            call()


def test_features_of_other_entries_than_the_problem_has_are_refused():
    rng = np.random.default_rng(0)
    mixed = [rng.random((24, 2)), rng.random((4, 2))]  # the second is of another problem
    est = InverseRegressor(PATHS, solver=LBFGS(max_iter=1)).fit(rng.random((60, 24, 2)), X)
    with pytest.raises(rv.ShapeError, match=r"`Z\[1\]` has features of 4 entries"):
        est.predict(mixed)
    assert est.predict(mixed[:1]).shape == (1, 24)


def test_a_fit_that_fails_leaves_nothing_half_done():
    est = InverseRegressor(PATHS, solver=POCS(max_iter=2))
    with pytest.raises(rv.InfeasibleDecisionError):
        est.fit(Z, 2 * X)
    with pytest.raises(NotFittedError):
        est.predict(Z)
    before = est.partial_fit(Z, X).coef_.copy()
    with pytest.raises(rv.InfeasibleDecisionError):
        est.fit(Z, 2 * X)
    assert np.array_equal(est.model_.coef, before)
    assert est.n_iter_ == 1
    est.fit(Z, X).partial_fit(Z, X)
    assert est.n_iter_ == 3  # two updates and one more


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_sample_that_weighs_more_is_one_that_comes_more_often(solver):
    rng, problem = np.random.default_rng(3), rv.problems.knapsack([3.0, 5, 4, 7], 9.0)
    Z = rng.standard_normal((12, 2))
    X = problem.solve(-1 - rng.random((12, 4))).x  # no model explains them all
    weight = np.where(np.arange(12) < 6, 9.0, 1.0)
    est = InverseRegressor(problem, solver=lasting(solver, 400, tol=0.0), threads=1, **PLAIN)
    weighed = clone(est).fit(Z, X, sample_weight=weight).history_["h"][-1]
    rows = np.repeat(np.arange(12), weight.astype(int))
    repeated = clone(est).fit(Z[rows], X[rows]).history_["h"][-1]
    plain = clone(est).fit(Z, X)
    own = rv.losses.projection_loss(
        plain.predict_cost(Z), rv.OptimalitySet(problem, X), weights=weight
    )
    assert weighed == pytest.approx(repeated, rel=1e-3)
    assert weighed < 0.99 * own


def test_decisions_and_true_costs_at_once_are_refused():
    with pytest.raises(rv.InputError, match="got two"):
        InverseRegressor(PATHS).fit(Z, X, true_costs=C)


def test_true_costs_without_a_decision_are_named():
    costs = np.ones((3, 24))
    costs[1] = -1.0
    cyclic = rv.problems.grid_shortest_path(3, 3)
    with pytest.raises(rv.InputError, match="Sample 1 of `true_costs`"):
        InverseRegressor(cyclic).fit(Z[:3], true_costs=costs)


def test_predictions_without_a_decision_are_nan_with_a_warning():
    cyclic = rv.problems.grid_shortest_path(3, 3)
    est = InverseRegressor(cyclic, solver=LBFGS(max_iter=1)).fit(Z, cyclic.solve(1 + C[:, :24]).x)
    est.intercept_[:] = -1.0  # every circle pays
    with pytest.warns(UnsolvedDecisionWarning, match="3 of 3 predicted costs"):
        assert np.isnan(est.predict(0 * Z[:3])).all()
    with pytest.warns(UnsolvedDecisionWarning):
        assert est.score(0 * Z[:3], np.zeros((3, 24))) == -np.inf


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    "contexts",
    [np.hstack([Z, np.ones((60, 1))]), Z[:, [0, 0, 1]], np.random.default_rng(0).random((60, 90))],
    ids=["constant feature", "repeated feature", "fewer samples than features"],
)
def test_contexts_that_leave_a_choice_get_a_right_answer(contexts, solver):
    est = InverseRegressor(PATHS, solver=lasting(solver, 40), **PLAIN).fit(contexts, X)
    assert np.isfinite(est.coef_).all()
    assert est.history_["h"][-1] < est.history_["h"][0]
    if contexts.shape[1] > 60 and solver != "armijo":
        assert est.certificate_.interpolates
        assert np.array_equal(est.predict(contexts), X)


@pytest.mark.parametrize("margin", [1e-6, 1e6])
def test_the_margin_is_a_unit_of_cost_and_nothing_else(margin):
    one, other = (
        InverseRegressor(PATHS, solver=POCS(max_iter=20), margin=m).fit(Z, X) for m in (1.0, margin)
    )
    np.testing.assert_allclose(other.coef_, margin * one.coef_, rtol=1e-5, atol=1e-7 * margin)
    one, other = (
        InverseRegressor(PATHS, margin=m, random_state=0).fit(Z, X) for m in (1.0, margin)
    )
    value = one.certificate_.value * margin**2
    assert other.certificate_.value == pytest.approx(value, rel=LBFGS().tol)
    assert np.array_equal(other.predict(Z), one.predict(Z))
