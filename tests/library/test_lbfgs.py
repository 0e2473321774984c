"""L-BFGS: the minimum of one large conic program, a bound that is below it, the right gradient."""

import numpy as np
import one_program
import pytest
from fit_cases import LOSSES, contexts, entries
from one_program import EXACT, least_loss
from sklearn.exceptions import ConvergenceWarning

import revealed as rv
from revealed.fit import (
    LBFGS,
    POCS,
    Huber,
    InverseRegressor,
    KernelModel,
    LinearModel,
    SharedModel,
    StopReason,
    pocs,
)
from revealed.fit.bound import lower_bound
from revealed.fit.evaluation import DistanceLoss, Evaluator
from revealed.fit.feature_models import QuadraticModel
from revealed.fit.lbfgs import lbfgs

AGREE = 1e-6
PROJECTED = 1e-7
"""What a bound is exact to: projections are to 1e-8 of a cost, some times as long as a distance."""
GAMMA = 0.5
NOISE = 0.7
RIDGE = 0.1
DRAWS = {"solver": LBFGS(n_draws=2), "random_state": 3}
KINDS = {
    "linear": {},
    "no intercept": {"model": LinearModel(fit_intercept=False)},
    "quadratic": {"model": "quadratic"},
    "shared": {"model": "shared"},
    "kernel": {"model": KernelModel(gamma=GAMMA)},
    "nystroem": {"model": KernelModel(gamma=GAMMA, n_components=3)},
}


def case(kind, name, B=16, form=None):
    """A problem, contexts for a kind of model, decisions that it cannot explain."""
    if kind != "shared":
        return contexts(name, B)
    return entries(name, B, n=None if form is None else form.n_parameters)


def design_of(kind, Z, marks, weights=None):
    """The same kind of model for the conic program; `marks` are the landmarks of a kernel."""
    if kind in ("kernel", "nystroem"):
        return one_program.kernel(Z, marks, GAMMA, weights)
    makers = {
        "linear": one_program.linear,
        "no intercept": one_program.without_intercept,
        "quadratic": one_program.quadratic,
        "shared": one_program.Shared,
    }
    return makers[kind](Z, weights=weights)


def model_of(kind, ridge=RIDGE):
    """The same as the estimator makes it."""
    rule = {"ridge": ridge, "standardize": True}
    makers = {
        "linear": lambda: LinearModel(**rule),
        "no intercept": lambda: LinearModel(**rule, fit_intercept=False),
        "quadratic": lambda: QuadraticModel(ridge=ridge),
        "shared": lambda: SharedModel(**rule),
        "kernel": lambda: KernelModel(gamma=GAMMA, **rule),
        "nystroem": lambda: KernelModel(gamma=GAMMA, n_components=3, seed=3, **rule),
    }
    return makers[kind]()


def compare(est, kind, Z, sets, weights=None):
    """The fit is at the minimum of the conic program, and what it says of itself is true."""
    design = design_of(kind, Z, getattr(est.model_, "landmarks", None), weights)
    best = least_loss(design, sets, est.loss_, ridge=est.ridge_, weights=weights)
    told = est.certificate_
    assert best > 1e-3, "a case that tells nothing"
    assert told.value == pytest.approx(best, rel=AGREE)
    assert told.lower_bound <= min(told.value, best * (1 + EXACT))
    assert told.relative_gap <= LBFGS().tol if est.ridge_ and told.converged else True
    assert est.ridge_ or told.lower_bound == 0.0


# --- the minimum ---------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [0.0, NOISE])
@pytest.mark.parametrize("power", [2, "huber"])
@pytest.mark.parametrize(
    "kind, name, ridge",
    # The others, without a ridge, have enough weights to explain these decisions.
    [(kind, "knapsack", RIDGE) for kind in KINDS]
    + [(kind, "paths", RIDGE) for kind in KINDS if kind != "shared"]
    + [(kind, "knapsack", 0.0) for kind in ("linear", "no intercept", "shared")]
    + [(kind, "paths", 0.0) for kind in ("linear", "no intercept", "shared")]
    + [("shared", "streets", 0.0)],
)
def test_the_minimum_is_that_of_one_program(kind, name, ridge, power, noise):
    problem, Z, X = case(kind, name)
    loss = Huber(delta=0.8) if power == "huber" else "squared"
    est = InverseRegressor(problem, ridge=ridge, loss=loss, noise=noise, **DRAWS, **KINDS[kind])
    compare(est.fit(Z, X), kind, Z, rv.OptimalitySet(problem, X))


# Kinks at the minimum can leave the proof of the last digits open; then a fit says so.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("noise", [0.0, NOISE])
@pytest.mark.parametrize(
    "kind, ridge",
    [(k, RIDGE) for k in ("linear", "shared", "kernel", "nystroem")] + [("shared", 0.0)],
)
def test_the_minimum_of_the_plain_distance_is_that_of_one_program(kind, ridge, noise):
    problem, Z, X = case(kind, "knapsack")
    est = InverseRegressor(
        problem, ridge=ridge, loss="distance", noise=noise, **DRAWS, **KINDS[kind]
    )
    compare(est.fit(Z, X), kind, Z, rv.OptimalitySet(problem, X))


@pytest.mark.parametrize(
    "kind, name",
    [(k, "knapsack") for k in ("linear", "quadratic", "shared", "kernel", "nystroem")]
    + [(k, "paths") for k in ("linear", "nystroem")],
)
def test_the_minimum_with_what_is_chosen_by_default(kind, name):
    problem, Z, X = case(kind, name)
    est = InverseRegressor(problem, random_state=3, **KINDS[kind]).fit(Z, X)
    sets = rv.OptimalitySet(problem, X)
    smallest = rv.project(np.zeros_like(X), sets).distance / np.sqrt(X.shape[1])
    assert est.loss_.noise == pytest.approx(5.0 * np.median(smallest))
    assert (est.loss_.power, est.loss_.delta) == ("huber", est.loss_.noise)
    assert est.ridge_ == pytest.approx(0.15 / len(Z))
    compare(est, kind, Z, sets)


@pytest.mark.parametrize("factor", [1e-3, 1.0, 1e4])
def test_the_unit_of_a_row_does_not_spoil_what_is_chosen_by_default(factor):
    """A limit in grams instead of kilograms asks for other costs, not for a worse model."""
    rng = np.random.default_rng(5)
    n, rows = 8, rng.uniform(1.0, 5.0, (3, 8))
    plain = rv.LinearProgram(A_ub=rows, b_ub=rows @ np.full(n, 0.5), lb=0.0, ub=1.0)
    units = np.array([[factor], [1.0], [factor]])
    other = rv.LinearProgram(A_ub=units * rows, b_ub=units[:, 0] * plain.b_ub, lb=0.0, ub=1.0)
    Z = rng.standard_normal((300, 3))
    C = -(2.0 + 0.5 * Z @ rng.standard_normal((3, n)) + rng.random(n))
    X = np.asarray(plain.solve(C).x)
    repeated = [
        rv.metrics.accuracy(plain, costs=est.predict_cost(Z[150:]), decisions=X[150:]).mean()
        for est in (
            InverseRegressor(problem, random_state=0).fit(Z[:150], X[:150])
            for problem in (plain, other)
        )
    ]
    assert repeated[1] > repeated[0] - 0.05


@pytest.mark.parametrize("noise", [0.0, NOISE])
@pytest.mark.parametrize("power", [2, "huber"])
@pytest.mark.parametrize("kind, ridge", [(k, RIDGE) for k in KINDS] + [("linear", 0.0)])
def test_the_minimum_counts_samples_by_their_weights(kind, ridge, power, noise):
    problem, Z, X = case(kind, "knapsack")
    weights = np.random.default_rng(1).uniform(0.2, 5.0, len(Z))
    chosen = {"ridge": ridge, "loss": LOSSES[power], "noise": noise}
    est = InverseRegressor(problem, **chosen, **DRAWS, **KINDS[kind])
    est.fit(Z, X, sample_weight=weights)
    compare(est, kind, Z, rv.OptimalitySet(problem, X), weights)


N = contexts("paths")[0].n_variables
KNOWN = np.where(np.arange(N) % 3 == 0, 10.0, np.nan)
FORMS = {
    "known": rv.CostForm.known(KNOWN),
    "tied": rv.CostForm.tied(np.arange(N) % 7),
    "not below 0": rv.CostForm.identity(N, lower=0.0),
    "features": rv.CostForm.features(np.eye(N)[:, :8] + 0.3, offset=np.arange(N) % 5),
}


def sets_of_a_form(form, B=12):
    """Decisions under costs of the form, those that some such cost explains with the margin."""
    problem, rng = contexts("paths")[0], np.random.default_rng(6)
    X = problem.solve(form.costs(rng.uniform(1.0, 20.0, (60, form.n_parameters)))).x
    sets = rv.OptimalitySet(problem, X, form=form)
    explained = rv.project(np.ones((60, form.n_parameters)), sets).solved
    return problem, sets[np.flatnonzero(explained)[:B]]


@pytest.mark.parametrize("noise", [0.0, NOISE])
@pytest.mark.parametrize(
    "form, kind, ridge",
    [(form, "linear", ridge) for form in FORMS for ridge in (0.0, RIDGE)]
    + [("known", "shared", RIDGE), ("features", "shared", 0.0), ("known", "kernel", RIDGE)],
)
def test_the_minimum_over_parameters_of_a_form(form, kind, ridge, noise):
    problem, sets = sets_of_a_form(FORMS[form])
    _, Z, _ = case(kind, "paths", len(sets), FORMS[form])
    est = InverseRegressor(problem, ridge=ridge, noise=noise, **DRAWS, **KINDS[kind]).fit(Z, sets)
    compare(est, kind, Z, sets)


@pytest.mark.parametrize("kind", ["linear", "shared", "nystroem"])
@pytest.mark.parametrize("power, noise", [(2, 0.0), (2, NOISE), ("huber", NOISE)])
def test_pocs_goes_to_the_same_minimum_and_bounds_it_too(kind, power, noise):
    problem, Z, X = case(kind, "knapsack")
    loss = DistanceLoss(power=power, delta=3.0, noise=noise, draws=2)
    sets = rv.OptimalitySet(problem, X)
    model = model_of(kind, ridge=1.0)
    told = pocs(model, Z, sets, loss=loss, max_iter=500, tol=1e-10).certificate
    marks = getattr(model, "landmarks", None)
    best = least_loss(design_of(kind, Z, marks), sets, loss, ridge=1.0)
    assert told.value == pytest.approx(best, rel=AGREE)
    assert 0 <= told.lower_bound <= best * (1 + EXACT)


# --- the bound -----------------------------------------------------------------------------------


def prepared(kind, name="knapsack", weighted=True, **loss):
    """A model on data whose samples count differently, and what evaluates it."""
    problem, Z, X = case(kind, name)
    sets = rv.OptimalitySet(problem, X)
    if weighted:
        sets = sets.replaced(weights=np.random.default_rng(2).uniform(0.1, 1.0, len(X)))
    model = model_of(kind)
    features = model.prepare(Z, sets.n_parameters, weights=sets.weights)
    return Z, sets, model, features, Evaluator(sets, DistanceLoss(**loss))


def look(model, features, evaluator, point):
    """Loss, gradient and slope at a point."""
    model.move_to(point)
    done = evaluator(model, features)
    return done.h + model.penalty(), *model.gradient()


@pytest.mark.parametrize("noise", [0.0, NOISE])
@pytest.mark.parametrize("power", [2, "huber", 1])
@pytest.mark.parametrize("kind", KINDS)
def test_the_bound_is_never_above_the_minimum(kind, power, noise):
    Z, sets, model, features, evaluator = prepared(kind, power=power, noise=noise, draws=2)
    marks = getattr(model, "landmarks", None)
    best = least_loss(
        design_of(kind, Z, marks, sets.weights),
        sets,
        evaluator.loss,
        ridge=RIDGE,
        weights=sets.weights,
    )
    lbfgs(model, Z, sets, loss=evaluator.loss, tol=1e-8, max_iter=200, features=features)
    least, rng, bounds = model.point.copy(), np.random.default_rng(0), []
    for size in 10.0 ** np.arange(-8, 2):
        for way in rng.standard_normal((2, len(least))):
            value, *slopes = look(model, features, evaluator, least + size * way)
            bounds.append(lower_bound(model, features, evaluator, value, *slopes)[0])
            assert value >= best * (1 - EXACT)
            assert bounds[-1] <= min(value, best) * (1 + PROJECTED)
    assert power == 1 or max(bounds) >= best * (1 - AGREE)  # and at the minimum it is the minimum


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # stopped on the way
@pytest.mark.parametrize("power", [2, "huber", 1])
@pytest.mark.parametrize("kind", ["linear", "shared", "kernel"])
def test_the_bound_holds_wherever_a_fit_stops(kind, power):
    problem, Z, X = case(kind, "knapsack")
    chosen = {"loss": LOSSES[power], "ridge": 0.02, "noise": NOISE}
    est = InverseRegressor(
        problem, **chosen, **(DRAWS | {"solver": LBFGS(n_draws=2)}), **KINDS[kind]
    )
    told = [
        est.set_params(solver__max_iter=stop).fit(Z, X).certificate_ for stop in range(0, 40, 3)
    ]
    design = design_of(kind, Z, getattr(est.model_, "landmarks", None))
    best = least_loss(design, rv.OptimalitySet(problem, X), est.loss_, ridge=0.02)
    for one in told:
        assert 0 <= one.lower_bound <= min(one.value, best * (1 + EXACT))
        assert one.gap == one.value - one.lower_bound
        assert one.value >= best * (1 - EXACT)
    values = np.array([one.value for one in told])
    if power != 1:  # whose kink is rounded on the way
        assert (np.diff(values) <= 1e-9 * values[:-1]).all()


def test_a_fit_that_has_not_converged_says_so():
    problem, Z, X = case("linear", "knapsack")
    with pytest.warns(ConvergenceWarning, match="Not converged: .* Allow more with `max_iter`"):
        est = InverseRegressor(problem, solver=LBFGS(max_iter=3), random_state=0).fit(Z, X)
    told = est.certificate_
    assert (told.converged, told.reason) == (False, StopReason.CAP)
    assert told.convergence.evaluations <= 4
    assert "Not converged" in str(told)
    assert InverseRegressor(problem, random_state=0).fit(Z, X).certificate_.converged
    with pytest.warns(ConvergenceWarning, match="Not converged"):
        InverseRegressor(problem, solver=POCS(max_iter=3)).fit(Z, X)


# --- the gradient --------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [0.0, NOISE])
@pytest.mark.parametrize("power", [2, 1, "huber", "welsch"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_gradient_is_that_of_the_loss(kind, power, noise):
    _, _, model, features, evaluator = prepared(kind, power=power, noise=noise, draws=2)
    rng, step = np.random.default_rng(5), 1e-5
    here = rng.standard_normal(len(model.point))
    _, gradient, _ = look(model, features, evaluator, here)
    for way in rng.standard_normal((4, len(here))):
        ends = [look(model, features, evaluator, here + s * step * way)[0] for s in (1, -1)]
        assert gradient @ way == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_points_are_where_a_model_was_moved_and_steps_of_1_are_safe(kind):
    _, _, model, features, evaluator = prepared(kind, weighted=False)
    rng = np.random.default_rng(6)
    for size in (0.1, 1.0, 10.0):
        here = size * rng.standard_normal(len(model.point))
        value, gradient, _ = look(model, features, evaluator, here)
        np.testing.assert_allclose(model.point, here, rtol=1e-9, atol=1e-9 * size)
        after, *_ = look(model, features, evaluator, here - gradient)
        assert after <= value - 0.5 * gradient @ gradient + 1e-9 * value  # a curvature of at most 1
