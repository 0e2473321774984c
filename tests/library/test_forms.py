"""Structured costs c = S w + c0 with limits, soft sets, decisions that break their constraints, and
batches of instances of different sizes."""

import cvxpy as cp
import numpy as np
import pytest
import torch
from second_opinion import Explained
from sklearn.exceptions import ConvergenceWarning

import revealed as rv
from revealed import CostForm, InputError, OptimalitySet, ProjectionStatus, ShapeError
from revealed.fit import POCS, LinearModel, SharedModel
from revealed.fit.solvers import SOLVERS

AGREE = 1e-6
EXACT = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}
EMPTY = ProjectionStatus.EMPTY
RNG = np.random.default_rng(11)
GRID = rv.problems.grid_shortest_path(3, 4)
N = GRID.n_variables
FEATURES = RNG.random((N, 4)) + 0.1
LABELS = RNG.integers(0, 6, N)
KNOWN = np.where(RNG.random(N) < 0.4, 1.0, np.nan)
OWN = RNG.random((5, N, 3)) + 0.1

FORMS = {
    "not below 0": CostForm.identity(N, lower=0.0),
    "in a box": CostForm.identity(N, lower=0.2, upper=1.5),
    "known": CostForm.known(KNOWN),
    "known, not below 0": CostForm.known(KNOWN, lower=0.0),
    "tied": CostForm.tied(LABELS),
    "vertices": CostForm.vertices(GRID),
    "vertices, costs not below 0.1": CostForm.vertices(GRID, at="both", cost_lower=0.1),
    "features": CostForm.features(FEATURES, offset=0.05, lower=0.0),
    "own features": CostForm.features(OWN, cost_lower=0.0),
}


def decisions(form, rng, B=5):
    """Paths that costs of this form explain, and parameters to project."""
    w = rng.random((B, form.n_parameters)) * 1.2 + 0.25
    X = GRID.solve(np.maximum(form.costs(w), 0.01)).x
    return X, rng.normal(size=w.shape)


def opinion(form, x, b, q, margin):
    """The second opinion on a path x, which is free where it goes and at lower elsewhere."""
    one = form[np.array([b])] if form.n_instances else form
    S, c0 = one.map.rows.matrix(0).toarray(), np.atleast_2d(one.map.offset)[0]
    w = cp.Variable(form.n_parameters)
    told = Explained(w, S @ w + c0, margin)
    for row in GRID.A_eq.toarray():
        told.equality(row)
    told.bounds(x, np.zeros(N), np.full(N, np.inf))
    rules = []
    for value, low, high in (
        (w, one.lower, one.upper),
        (S @ w + c0, one.cost_lower, one.cost_upper),
    ):
        low, high = np.atleast_2d(low)[0], np.atleast_2d(high)[0]
        rules += [value[j] >= low[j] for j in np.flatnonzero(np.isfinite(low))]
        rules += [value[j] <= high[j] for j in np.flatnonzero(np.isfinite(high))]
    return told.nearest(q, *rules)


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("margin", [0.0, 0.05])
def test_projection_agrees_with_cvxpy(name, margin):
    form = FORMS[name]
    X, q = decisions(form, np.random.default_rng(3))
    near = rv.project(q, OptimalitySet(GRID, X, margin, form=form))
    for b, x in enumerate(X):
        trusted = opinion(form, x, b, q[b], margin)
        if trusted is None:
            assert near.status[b] == EMPTY, "CVXPY finds the set empty"
        else:
            assert near.solved[b]
            assert np.abs(near.point[b] - trusted).max() <= AGREE
    explained = near.solved
    assert explained.any()
    if margin:
        own = form[explained] if form.n_instances else form
        again = GRID.solve(own.costs(near.point[explained])).x
        assert np.array_equal(again, X[explained])


@pytest.mark.parametrize("name", FORMS)
def test_projection_is_idempotent_and_a_slice_gives_the_same(name):
    form = FORMS[name]
    X, q = decisions(form, np.random.default_rng(4))
    sets = OptimalitySet(GRID, X, 0.0, form=form)
    near = rv.project(q, sets)
    kept = near.solved
    assert kept.any()
    again = rv.project(near.point[kept], sets[kept])
    assert np.abs(again.point - near.point[kept]).max() <= AGREE
    part = rv.project(q[[3, 0]], sets[[3, 0]])
    assert np.allclose(part.point, near.point[[3, 0]], atol=AGREE, equal_nan=True)


@pytest.mark.parametrize("name", ["not below 0", "tied", "vertices", "own features"])
def test_without_a_margin_nothing_predicted_explains_everything(name):
    """All is 0, so there is no size to measure rounding against."""
    form = FORMS[name]
    X, _ = decisions(form, np.random.default_rng(2))
    nothing = np.zeros((len(X), form.n_parameters))
    near = rv.project(nothing, OptimalitySet(GRID, X, 0.0, form=form))
    assert near.solved.all()
    assert np.abs(near.point).max() <= 1e-12


def test_both_ways_to_obey_limits_agree():
    X, q = decisions(FORMS["in a box"], np.random.default_rng(5), B=12)
    sets = OptimalitySet(GRID, X, 0.1, form=FORMS["in a box"])
    kernel, conic = (rv.project(q, sets, method=name) for name in ("kernel", "clarabel"))
    both = kernel.solved & conic.solved
    assert both.sum() >= 8
    assert np.abs(kernel.point - conic.point)[both].max() <= AGREE
    assert ((kernel.point >= 0.2 - 1e-8) & (kernel.point <= 1.5 + 1e-8))[both].all()


def test_a_set_that_is_empty_says_so_and_is_never_called_solved():
    # Two entries tied to one cost; the decision takes one of them and not the other, which with a
    # margin no common cost explains.
    pick = rv.LinearProgram(A_eq=np.ones((1, 2)), b_eq=[1.0])
    sets = OptimalitySet(pick, np.array([[1.0, 0.0]]), 1.0, form=CostForm.tied([0, 0]))
    near = rv.project(np.array([[3.0]]), sets)
    assert near.status[0] == EMPTY
    assert not near.solved[0]
    assert np.isnan(near.point).all()
    assert "No parameters" in EMPTY.sentence
    loss_fn = rv.ProjectionLoss(pick, margin=1.0)
    with pytest.raises(InputError, match=r"Sample 0 .* No parameters"):
        loss_fn(torch.ones(1, 1, dtype=torch.float64), sets)
    with pytest.raises(InputError, match="No parameters"):
        rv.InverseRegressor(pick).fit(np.ones((1, 1)), sets)


@pytest.mark.parametrize("name", ["tied", "features", "in a box", "vertices"])
def test_a_soft_set_counts_the_miss(name):
    form, price = FORMS[name], 50.0
    rng = np.random.default_rng(6)
    X, q = decisions(form, rng)
    X = X[rng.permutation(len(X))]
    sets = OptimalitySet(GRID, X, 1.0, form=form, soft=price)
    near = rv.project(q, sets)
    assert near.solved.all()
    for b, x in enumerate(X):
        S, c0 = form.map.rows.matrix(0).toarray(), form.map.offset
        w, e = cp.Variable(form.n_parameters), cp.Variable(N)
        told = Explained(cp.hstack([w, np.sqrt(price) * e]), S @ w + c0 + e, 1.0)
        for row in GRID.A_eq.toarray():
            told.equality(row)
        told.bounds(x, np.zeros(N), np.full(N, np.inf))
        limits = [w >= 0.2, w <= 1.5] if name == "in a box" else []
        limits += [w >= 0] if name == "features" else []
        trusted = _nearest_soft(told, w, e, price, q[b], limits)
        assert np.abs(near.point[b] - trusted).max() <= AGREE
        total = np.sum((trusted - q[b]) ** 2) + price * np.sum(e.value**2)
        assert near.distance[b] == pytest.approx(np.sqrt(total), abs=AGREE)


def _nearest_soft(told, w, e, price, q, limits):
    goal = cp.Minimize(cp.sum_squares(w - q) + price * cp.sum_squares(e))
    cp.Problem(goal, [*told.rules, *limits]).solve(solver="CLARABEL", **EXACT)
    return w.value


def test_the_gradient_of_the_loss_is_that_of_the_distance():
    form = FORMS["in a box"]
    X, q = decisions(form, np.random.default_rng(7))
    sets = OptimalitySet(GRID, X, 0.1, form=form, soft=20.0)
    loss_fn = rv.ProjectionLoss(GRID, margin=0.1, reduction="sum")
    w = torch.tensor(q, requires_grad=True)
    loss_fn(w, sets).backward()
    direction = np.random.default_rng(8).normal(size=q.shape)
    h = 1e-5
    ahead, behind = (float(loss_fn(torch.tensor(q + s * h * direction), sets)) for s in (1, -1))
    assert (w.grad.numpy() * direction).sum() == pytest.approx((ahead - behind) / (2 * h), rel=1e-5)


# --- the constructors ---------------------------------------------------------------------------


def test_constructors_mean_what_they_say():
    w = RNG.random((2, 12))
    costs = CostForm.vertices(GRID).costs(w)
    assert np.allclose(costs, w[:, GRID.structure.heads])
    both = CostForm.vertices(np.array([[0, 1], [1, 2]]), at="both").costs(np.array([[1.0, 3, 7]]))
    assert np.allclose(both, [[2.0, 5.0]])
    tied = CostForm.tied(["b", "a", "b"]).costs(np.array([[1.0, 2.0]]))
    assert np.allclose(tied, [[2.0, 1.0, 2.0]])
    known = CostForm.known([np.nan, 5.0, np.nan]).costs(np.array([[1.0, 2.0]]))
    assert np.allclose(known, [[1.0, 5.0, 2.0]])
    shared = CostForm.features(FEATURES, offset=1.0).costs(w[:, :4])
    assert np.allclose(shared, w[:, :4] @ FEATURES.T + 1.0)
    own = CostForm.features(OWN)
    assert np.allclose(own.costs(w[:1, :3].repeat(5, axis=0)), OWN @ w[0, :3])
    assert np.allclose(own[[2]].costs(w[:1, :3])[0], OWN[2] @ w[0, :3])


def test_costs_of_tensors_can_be_differentiated():
    w = torch.rand(5, 3, dtype=torch.float64, requires_grad=True)
    form = FORMS["own features"]
    assert torch.autograd.gradcheck(form.costs, w)
    assert np.allclose(form.costs(w).detach().numpy(), form.costs(w.detach().numpy()))


def test_bad_forms_meet_a_sentence():
    with pytest.raises(InputError, match="must not exceed"):
        CostForm.identity(3, lower=1.0, upper=0.0)
    with pytest.raises(ShapeError, match="agree"):
        CostForm.features(OWN, offset=np.zeros((4, N)))
    with pytest.raises(InputError, match="NaN where"):
        CostForm.known([1.0, 2.0])
    with pytest.raises(InputError, match="built from edges"):
        CostForm.vertices(rv.problems.knapsack([1.0, 2.0], 2.0))
    with pytest.raises(ShapeError, match="parameters of the problem"):
        OptimalitySet(GRID, np.zeros((0, N)), form=CostForm.identity(N - 1))
    with pytest.raises(InputError, match="CostForm"):
        OptimalitySet(GRID, np.zeros((0, N)), form=FEATURES)
    with pytest.raises(InputError, match="soft"):
        OptimalitySet(GRID, np.zeros((0, N)), soft=0.0)


# --- through the fits ---------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # a dozen steps only
@pytest.mark.parametrize("solver", ["lbfgs", "pocs", "armijo"])
@pytest.mark.parametrize("name", ["vertices", "known", "not below 0"])
def test_the_estimator_learns_parameters_of_a_form(solver, name):
    form, rng = FORMS[name], np.random.default_rng(9)
    Z = np.abs(rng.normal(size=(25, 2)))
    X = GRID.solve(form.costs(Z @ rng.random((2, form.n_parameters)) + 0.1)).x
    est = rv.InverseRegressor(
        GRID, cost_map=form, solver=SOLVERS[solver](max_iter=12), margin=0.01, threads=1
    ).fit(Z, X)
    first, last = est.history_.rows[0]["h"], est.history_.rows[-1]["h"]
    assert last <= 0.2 * first
    assert est.predict_parameters(Z).shape == (25, form.n_parameters)
    w = form.within(est.predict_parameters(Z))
    assert (w >= form.lower).all()
    assert np.allclose(est.predict_cost(Z), form.costs(w))
    positive = (est.predict_cost(Z) > 0).all(axis=1)  # with others a path may go in circles
    assert positive.any()
    predicted = est.predict(Z[positive])
    assert np.array_equal(predicted, GRID.solve(est.predict_cost(Z[positive])).x)


# --- decisions that break their constraints -----------------------------------------------------


def broken(rng):
    pick = rv.LinearProgram(A_eq=np.ones((1, 4)), b_eq=[1.0], A_ub=[[1.0, 1, 0, 0]], b_ub=[0.7])
    X = np.array([[0.7, 0.0, 0.3, 0.0], [0.9, 0.1, 0.2, 0.0], [-0.1, 0.3, 0.8, 0.0]])
    return pick, X


def test_infeasible_decisions_are_refused_repaired_or_weighed():
    pick, X = broken(RNG)
    with pytest.raises(rv.InfeasibleDecisionError, match="Decision 1"):
        OptimalitySet(pick, X)
    sets = OptimalitySet(pick, X, infeasible="repair")
    for b, x in enumerate(X[1:], start=1):
        y = cp.Variable(4)
        rules = [cp.sum(y) == 1, y[0] + y[1] <= 0.7, y >= 0]
        goal = cp.Minimize(cp.sum_squares(y - x))
        cp.Problem(goal, rules).solve(solver="CLARABEL", **EXACT)
        assert np.allclose(sets.decisions[b], y.value, atol=1e-6)
        assert sets.repaired[b] == pytest.approx(np.linalg.norm(y.value - x), abs=1e-6)
    assert sets.repaired[0] == 0
    assert (sets.weights == 1).all()
    assert "2 decisions (first: 1)" in sets.report()
    weighed = OptimalitySet(pick, X, infeasible="weigh")
    assert weighed.weights[0] == 1
    assert (weighed.weights[1:] < 1).all()
    assert (weighed[[2]].weights == weighed.weights[2]).all()
    with pytest.raises(InputError, match="infeasible"):
        OptimalitySet(pick, X, infeasible="ignore")
    nobody = rv.LinearProgram(A_eq=np.ones((1, 2)), b_eq=[-1.0])
    with pytest.raises(InputError, match="No decision that obeys"):
        OptimalitySet(nobody, np.zeros((1, 2)), infeasible="repair")


def test_weights_reach_the_loss_and_pocs():
    pick, X = broken(RNG)
    sets = OptimalitySet(pick, X, infeasible="weigh")
    q = np.random.default_rng(0).normal(size=(3, 4))
    near = rv.project(q, sets)
    loss = rv.ProjectionLoss(pick)(torch.tensor(q), sets)
    expected = np.average(0.5 * near.distance**2, weights=sets.weights)
    assert float(loss) == pytest.approx(expected)
    Z = np.ones((3, 1))
    model, solver = LinearModel(fit_intercept=False), POCS(max_iter=2000, tol=0.0)
    with pytest.warns(ConvergenceWarning):  # a `tol` of 0 is never reached
        est = rv.InverseRegressor(pick, model=model, solver=solver).fit(Z, sets)
    c = np.repeat(est.coef_.T, 3, axis=0)
    push = sets.weights[:, None] * (c - rv.project(c, sets).point)
    assert np.abs(push.sum(axis=0)).max() <= 1e-5, "not where the weighted mean is least"


# --- different sizes in one batch ---------------------------------------------------------------


def mixture(rng):
    """Sets of a grid, another grid, a knapsack and a quadratic program, and costs for each."""
    problems = [
        rv.problems.grid_shortest_path(3, 3),
        rv.problems.grid_shortest_path(2, 4),
        rv.problems.knapsack([3.0, 4.0, 5.0, 6.0], 9.0),
        rv.QuadraticProgram(1.0, np.eye(3), A_eq=np.ones((1, 3)), b_eq=[1.0]),
    ]
    parts, costs = [], []
    for k, problem in enumerate(problems):
        sign = -1.0 if k == 2 else 1.0
        C = sign * (rng.random((4, problem.n_parameters)) + 0.1)
        parts.append(OptimalitySet(problem, problem.solve(C).x, 0.05 * (k + 1)))
        costs += list(rng.normal(size=C.shape))
    return parts, costs


def test_each_instance_of_a_mixture_gets_the_answer_it_gets_alone():
    rng = np.random.default_rng(12)
    parts, costs = mixture(rng)
    order = rng.permutation(16)
    sets = OptimalitySet.concatenate(parts)[order]
    mixed = [costs[i] for i in order]
    near = rv.project(mixed, sets)
    assert near.solved.all()
    width = max(len(c) for c in costs)
    filled = np.full((16, width), 9.0)
    for line, c in zip(filled, mixed, strict=True):
        line[: len(c)] = c
    again = rv.project(filled, sets)
    for i, b in enumerate(order):
        alone = rv.project(costs[b][None], parts[b // 4][[b % 4]])
        assert np.abs(alone.point[0] - near.point[i]).max() <= 1e-9
        assert np.abs(alone.point[0] - again.point[i, : len(costs[b])]).max() <= 1e-9
        assert alone.distance[0] == pytest.approx(near.distance[i], abs=1e-9)
        assert near.status[i] == alone.status[0]
    assert (again.point == 9.0).any(), "what is beyond an instance's length is left alone"
    assert np.allclose(sets.margins, np.repeat([0.05, 0.1, 0.15, 0.2], 4)[order])


def test_the_loss_of_a_mixture_is_the_mean_of_the_losses():
    rng = np.random.default_rng(13)
    parts, costs = mixture(rng)
    sets = OptimalitySet.concatenate(parts)
    filled = np.zeros((16, sets.n_parameters))
    for line, c in zip(filled, costs, strict=True):
        line[: len(c)] = c
    w = torch.tensor(filled, requires_grad=True)
    loss = rv.ProjectionLoss(parts[0].problem, margin=None)(w, sets, index=np.arange(16))
    loss.backward()
    near = rv.project(costs, sets)
    assert float(loss.detach()) == pytest.approx(0.5 * np.mean(near.distance**2))
    for b, c in enumerate(costs):
        own = (c - near.point[b]) / 16
        assert np.allclose(w.grad[b, : len(c)].numpy(), own, atol=1e-9)
        assert not w.grad[b, len(c) :].any()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # POCS is slow here
@pytest.mark.parametrize("solver", ["lbfgs", "pocs", "armijo"])
def test_shared_coefficients_are_learned_across_sizes(solver):
    rng, truth = np.random.default_rng(14), np.array([1.0, 0.4])
    grids = [rv.problems.grid_shortest_path(3, 3), rv.problems.grid_shortest_path(4, 3)]
    Z, parts = [], []
    for grid in grids:
        phi = rng.random((15, grid.n_variables, 2)) + 0.05
        parts.append(OptimalitySet(grid, grid.solve(phi @ truth).x, 0.01))
        Z += list(phi)
    sets = OptimalitySet.concatenate(parts)
    order = rng.permutation(30)
    est = rv.InverseRegressor(
        grids[0],
        model=SharedModel(fit_intercept=False),
        solver=SOLVERS[solver](max_iter=400),
        margin=0.01,
        threads=1,
    ).fit([Z[i] for i in order], sets[order])
    assert est.coef_[0] / est.coef_[1] == pytest.approx(2.5, rel=0.3)
    assert est.score(Z, sets) >= -0.5
    answers = est.predict(Z, problem=sets)
    assert [len(x) for x in answers] == [len(phi) for phi in Z]


def test_a_mixture_of_nothing_is_empty():
    parts, _ = mixture(np.random.default_rng(15))
    for order in (parts, parts[::-1]):
        sets = OptimalitySet.concatenate(order)[:0]
        near = rv.project([], sets)
        assert near.point == []
        assert near.solved.dtype == bool
        assert rv.project(np.zeros((0, sets.n_parameters)), sets).point.shape[0] == 0


def test_bad_mixtures_meet_a_sentence():
    parts, costs = mixture(np.random.default_rng(15))
    sets = OptimalitySet.concatenate(parts)
    with pytest.raises(InputError, match="OptimalitySet"):
        OptimalitySet.concatenate([parts[0], "grid"])
    with pytest.raises(ShapeError, match=r"costs\[0\]"):
        rv.project(costs[::-1], sets)
    with pytest.raises(ShapeError, match="16 vectors"):
        rv.project(costs[:3], sets)
    with pytest.raises(ShapeError, match="`warm_start`"):
        rv.project(costs, sets, warm_start=np.zeros((1, 1)))
    with pytest.raises(InputError, match="`soft`"):
        OptimalitySet(parts[0].problem, parts[0].decisions, soft=np.inf)
    with pytest.raises(ShapeError, match="one p for"):
        rv.InverseRegressor(parts[0].problem).fit([np.ones((3, 2)), np.ones((3, 1))], sets[:2])
