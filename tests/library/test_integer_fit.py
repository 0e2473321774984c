"""Learning from whole decisions: losses, the solver over cuts, metrics."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

import revealed as rv
from revealed import losses
from revealed.fit.checkpoint import Checkpoint
from revealed.fit.evaluation import DistanceLoss, Evaluator
from revealed.fit.kept_cuts import cuts_as_tensors, take_cuts
from revealed.fit.lbfgs import lbfgs
from revealed.fit.models import LinearModel

SAMPLES, FEATURES, ITEMS = 40, 3, 8


def _problem():
    rng = np.random.default_rng(0)
    return rv.problems.binary_knapsack(rng.uniform(2, 6, (2, ITEMS)), 12.0)


def _data(seed=0, noise=0.3):
    rng, problem = np.random.default_rng(seed), _problem()
    Z = rng.normal(size=(SAMPLES, FEATURES))
    C = -np.exp(Z @ rng.normal(size=(FEATURES, ITEMS)) * 0.4)
    C *= rng.uniform(1 - noise, 1 + noise, C.shape)
    return problem, Z, C, problem.solve(C).x


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_the_fit_reaches_the_minimum_of_the_exact_loss(noise):
    problem, Z, _, X = _data()
    loss = DistanceLoss(power=2, noise=noise, draws=4, seed=1)
    model = LinearModel(ridge=1e-2)
    history = lbfgs(model, Z, rv.OptimalitySet(problem, X), loss=loss, tol=1e-4)
    told = history.certificate
    assert told.converged
    assert 0 < told.lower_bound <= told.value
    assert told.relative_gap <= 1e-4

    # The same loss by exact projections in every evaluation, minimized by scipy.
    fresh = rv.OptimalitySet(_problem(), X)
    other = LinearModel(ridge=1e-2)
    features = other.prepare(Z, ITEMS)
    evaluator = Evaluator(fresh, loss)

    def value_and_gradient(x):
        other.move_to(x)
        done = evaluator(other, features)
        slope, _ = other.gradient()
        return done.h + other.penalty(), slope

    best = minimize(value_and_gradient, np.zeros_like(other.point), jac=True, method="L-BFGS-B")
    assert told.value == pytest.approx(best.fun, rel=2e-4)
    assert told.lower_bound <= best.fun * (1 + 1e-9)


def test_the_estimator_decides_in_whole_numbers_and_better_than_by_the_relaxation():
    problem, Z, C, X = _data(noise=0.0)
    whole = rv.InverseRegressor(problem, noise=0.5, ridge=1e-3, random_state=0).fit(Z, X)
    relaxed = rv.InverseRegressor(problem.relaxation, random_state=0).fit(Z, X)
    decided = whole.predict(Z)
    assert (decided == np.round(decided)).all()
    assert (problem.constraint_violation(decided) == 0).all()
    given = {"true_costs": C, "decisions": X}
    ours = rv.metrics.relative_regret(problem, costs=whole.predict_cost(Z), **given)
    theirs = rv.metrics.relative_regret(problem, costs=relaxed.predict_cost(Z), **given)
    assert ours < theirs
    assert "calls" in whole.history_.rows[-1]


def test_tightened_rows_teach_more_than_the_relaxation_without_an_oracle():
    problem, Z, C, X = _data(noise=0.0)
    program = problem.tightened(X)
    slack = program.b_ub - X @ program.A_ub.T
    assert (program.constraint_violation(X) <= 1e-12).all()
    assert (slack < 1e-12).any(axis=1).all()  # an item that is left out does not fit in some budget
    given = {"true_costs": C, "decisions": X}
    regret = []
    for some in (program, problem.relaxation):
        costs = rv.InverseRegressor(some, random_state=0).fit(Z, X).predict_cost(Z)
        regret.append(rv.metrics.relative_regret(problem, costs=costs, **given))
    assert regret[0] < regret[1]


def test_the_loss_is_that_of_the_projection_and_its_gradient_the_residual():
    problem, _, C, X = _data()
    sets = rv.OptimalitySet(problem, X)
    costs = torch.tensor(C + 0.2, requires_grad=True)
    value = losses.ProjectionLoss(problem)(costs, sets)
    value.backward()
    near = rv.project(C + 0.2, sets)
    assert near.solved.all()
    assert value.item() == pytest.approx(0.5 * (near.distance**2).mean(), rel=1e-7)
    np.testing.assert_allclose(costs.grad * SAMPLES, C + 0.2 - near.point, atol=1e-7)


def test_a_budget_of_one_question_gives_a_loss_from_below_that_grows_to_the_exact_one():
    problem, _, C, X = _data()
    q = torch.tensor(C + np.random.default_rng(5).normal(size=C.shape))
    exact = losses.ProjectionLoss(_problem())(q, X).item()
    cheap = losses.ProjectionLoss(problem, max_calls=1)
    sets = rv.OptimalitySet(problem, X)
    found = [cheap(q, sets).item() for _ in range(30)]
    assert (np.diff(found) >= -1e-9).all()
    assert found[0] < exact
    assert found[-1] == pytest.approx(exact, rel=1e-7)
    assert cheap.unsolved > 0


def test_calls_between_questions_make_do_with_known_alternatives():
    problem, _, C, X = _data()
    q = torch.tensor(C + np.random.default_rng(5).normal(size=C.shape))
    exact = losses.ProjectionLoss(_problem())(q, X).item()
    lazy = losses.ProjectionLoss(problem, max_calls=1, ask_every=3)
    sets, found, asked = rv.OptimalitySet(problem, X), [], []
    for _ in range(90):
        found.append(lazy(q, sets).item())
        asked.append(int(lazy.projection.calls.sum()))
    assert (np.diff(found) >= -1e-9).all()
    assert found[-1] == pytest.approx(exact, rel=1e-7)
    assert all(asked[::3])
    assert not any(asked[1::3] + asked[2::3])
    for name in (losses.ProjectionLoss, losses.SmoothedProjectionLoss):
        with pytest.raises(rv.InputError, match="`max_calls` too"):
            name(problem, ask_every=2)


@pytest.mark.parametrize("name", ["spo+", "pfyl", "bb", "st", "smoothed"])
def test_losses_that_only_ask_for_decisions_take_whole_ones(name):
    problem, _, C, X = _data()
    loss_fn = losses.make_loss(name, problem)
    costs = torch.tensor(C + 0.1, requires_grad=True)
    truth = {"true_costs": C} if loss_fn.needs_true_costs else {}
    loss_fn(costs, X, **truth).backward()
    assert torch.isfinite(costs.grad).all()


@pytest.mark.parametrize("name", ["intopt", "qptl", "mom"])
def test_losses_that_read_rows_say_so(name):
    with pytest.raises(rv.InputError, match="must be a LinearProgram; got IntegerProgram"):
        losses.make_loss(name, _problem())


def test_metrics_take_whole_decisions():
    problem, _, C, X = _data()
    assert rv.metrics.relative_regret(problem, costs=C, decisions=X, true_costs=C) == 0
    assert rv.metrics.accuracy(problem, costs=C, decisions=X).min() == 1
    assert rv.metrics.decision_loss(problem, costs=2 * C, decisions=X).max() == 0


def test_an_oracle_is_learned_from_like_the_problem_it_solves():
    problem, Z, _, X = _data()
    own = rv.OracleProblem(lambda c: problem.solve(c[None]).x[0], ITEMS)
    settings = {"noise": 0.5, "ridge": 1e-2, "solver": rv.fit.LBFGS(tol=1e-4), "random_state": 0}
    first = rv.InverseRegressor(problem, **settings).fit(Z, X)
    second = rv.InverseRegressor(own, **settings).fit(Z, X)
    assert second.certificate_.converged
    assert second.certificate_.value == pytest.approx(first.certificate_.value, rel=1e-3)


def _trained(folder, epochs, asked):
    """Some epochs with a budget of one question for each step, in a problem that knows nothing."""
    problem, Z, _, X = _data()
    fresh = rv.OracleProblem(lambda c: (asked.append(1), problem.solve(c[None]).x[0])[1], ITEMS)
    sets, loss_fn = rv.OptimalitySet(fresh, X), losses.ProjectionLoss(fresh, max_calls=1)
    model, settings = LinearModel(), {"optimizer": "adam", "lr": 0.1, "batch_size": 10}
    history = rv.fit.erm(
        model, Z, sets, loss=loss_fn, max_epochs=epochs, checkpoint=folder, checkpoint_every=2,
        **settings,
    )  # fmt: skip
    return model, history, sets


def test_a_resumed_run_goes_on_with_the_cuts_of_its_checkpoint(tmp_path):
    whole, _, sets = _trained(tmp_path / "whole", 4, [])
    _trained(tmp_path / "parts", 2, [])
    asked = []
    again, _, found = _trained(tmp_path / "parts", 4, asked)
    np.testing.assert_array_equal(again.point, whole.point)
    mine, theirs = (part.kind.alternatives for part in (found, sets))
    assert mine.n_cuts == theirs.n_cuts
    assert len(mine.points[0]) == len(theirs.points[0])


def test_cuts_by_decisions_that_are_not_feasible_are_refused(tmp_path):
    problem, _, _, X = _data()
    sets = rv.OptimalitySet(problem, X)
    rv.project(np.random.default_rng(0).normal(size=X.shape), sets)
    tensors = {f"optimizer.{k}": t for k, t in cuts_as_tensors(sets).items()}
    fresh = rv.OptimalitySet(_problem(), X)
    take_cuts(fresh, Checkpoint(tensors, {}))
    assert fresh.kind.alternatives.n_cuts == sets.kind.alternatives.n_cuts > 0
    tensors["optimizer.cuts.points"][-1] = 1.0
    with pytest.raises(rv.InputError, match="hold a decision that is not feasible"):
        take_cuts(rv.OptimalitySet(_problem(), X), Checkpoint(tensors, {}))
    del tensors["optimizer.cuts.cuts"]
    with pytest.raises(rv.InputError, match="are not all there"):
        take_cuts(rv.OptimalitySet(_problem(), X), Checkpoint(tensors, {}))
