"""Rivals that ask an oracle, each against its own formula.

The formulas are computed here from the list of all decisions, with no oracle and no torch.
"""

import itertools
import math

import numpy as np
import pytest
import torch
from rivals import (
    CONVEX,
    RIVALS,
    SIGMA,
    K,
    knapsack_samples,
    label_of,
    path_samples,
    samples_of,
    value_and_gradient,
)

import revealed as rv
from helpers import catalogue
from revealed.losses.rivals.contrastive import ContrastiveLoss
from revealed.losses.rivals.fenchel_young import FenchelYoungLoss
from revealed.losses.rivals.perturbed import PerturbedLoss

CASES = catalogue()


@pytest.fixture
def paths():
    return path_samples()


@pytest.fixture
def knapsacks():
    return knapsack_samples()


def every_decision(problem):
    """(S, n): all vectors of 0s and 1s that obey the equalities."""
    A, n = problem.A_eq.toarray(), problem.n_variables
    X = np.array(list(itertools.product([0.0, 1.0], repeat=n)))
    return X[(X @ A.T == problem.b_eq).all(1)]


def cheapest(choices, costs):
    """(..., n): the cheapest of all decisions under costs (..., n)."""
    return choices[np.argmin(costs @ choices.T, axis=-1)]


def slope_by_differences(function, c, step=1e-6):
    """(B, n): central differences of a function of costs that gives one number for each row."""
    slopes = [function(c + step * e) - function(c - step * e) for e in np.eye(c.shape[1])]
    return np.stack(slopes, 1) / (2 * step)


# --- decisions differentiated, and bounds of their worth -----------------------------------------


def test_straight_through_is_the_negative_slope(paths):
    chosen = cheapest(every_decision(paths.problem), paths.costs.numpy())
    gap = chosen - paths.decisions
    assert gap.any()
    value, gradient = paths.ask(RIVALS["st"], reduction="none")
    np.testing.assert_allclose(value, (gap**2).sum(1) / 2)
    np.testing.assert_allclose(gradient, -gap)
    value, gradient = paths.ask(RIVALS["st, regret"], reduction="none")
    np.testing.assert_allclose(value, (paths.truth * gap).sum(1))
    np.testing.assert_allclose(gradient, -paths.truth)


@pytest.mark.parametrize("criterion", ["decision", "regret"])
@pytest.mark.parametrize("name", ["mean", "norm", "std"])
def test_straight_through_a_projection(paths, name, criterion):
    def project(c):
        c = c - c.mean(1, keepdim=True) if name != "norm" else c
        return c / c.norm(dim=1, keepdim=True) if name != "mean" else c

    plain, slope = paths.ask(RIVALS["st"], reduction="none", criterion=criterion)
    value, gradient = paths.ask(RIVALS["st"], reduction="none", criterion=criterion, normalize=name)
    assert torch.equal(value, plain)
    c = paths.costs.clone().requires_grad_()
    np.testing.assert_allclose(gradient, torch.autograd.grad(project(c), c, slope)[0], atol=1e-14)
    zero = paths.ask(RIVALS["st"], costs=torch.zeros(7, 12, dtype=torch.float64), normalize=name)[1]
    assert torch.isfinite(zero).all()


@pytest.mark.parametrize("criterion", ["decision", "regret"])
@pytest.mark.parametrize("lam", [0.01, 1.0, 30.0])
def test_blackbox_is_a_difference_of_decisions(paths, criterion, lam):
    choices, c = every_decision(paths.problem), paths.costs.numpy()
    chosen = cheapest(choices, c)
    slope = chosen - paths.decisions if criterion == "decision" else paths.truth
    shifted = cheapest(choices, c + lam * slope)
    value, gradient = paths.ask(RIVALS["bb"], reduction="none", criterion=criterion, lam=lam)
    np.testing.assert_allclose(gradient, (shifted - chosen) / lam)
    plain, _ = paths.ask(RIVALS["st"], reduction="none", criterion=criterion)
    assert torch.equal(value, plain)


def test_blackbox_descends_what_it_says_it_does(paths):
    choices, lam = every_decision(paths.problem), 2.0

    def smoothed(c):
        lowest = [((c + shift) @ choices.T).min(1) for shift in (lam * paths.truth, 0.0)]
        return (lowest[0] - lowest[1]) / lam

    c = paths.costs.numpy()
    _, gradient = paths.ask(RIVALS["bb, regret"], reduction="none", lam=lam)
    np.testing.assert_allclose(gradient, slope_by_differences(smoothed, c), atol=1e-6)


def test_spo_plus_is_the_published_maximum(paths):
    choices, truth, x = every_decision(paths.problem), paths.truth, paths.decisions

    def published(c):
        worst = ((truth - 2 * c) @ choices.T).max(1)
        return worst + 2 * (c * x).sum(1) - (truth * x).sum(1)

    c = paths.costs.numpy()
    value, gradient = paths.ask(RIVALS["spo+"], reduction="none")
    np.testing.assert_allclose(value, published(c), atol=1e-12)
    np.testing.assert_allclose(gradient, slope_by_differences(published, c), atol=1e-6)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_spo_plus_bounds_the_regret_and_ends_at_the_truth(case):
    s = samples_of(case.problem, case.costs)
    truth = torch.from_numpy(s.truth)
    near = truth + 0.2 * (s.costs - truth)  # so that 2c - c* keeps its sign
    value, _ = s.ask(RIVALS["spo+"], costs=near, reduction="none")
    regret = rv.metrics.estimate_loss(
        s.problem, costs=near.numpy(), decisions=s.decisions, true_costs=s.truth
    )
    assert (value.numpy() >= regret - 1e-9).all()
    at_truth, gradient = s.ask(RIVALS["spo+"], costs=truth, reduction="none")
    np.testing.assert_allclose(at_truth, 0, atol=1e-9)
    np.testing.assert_allclose(gradient, 0, atol=1e-9)


@pytest.mark.parametrize("rival", CONVEX, ids=label_of)
def test_convex_along_segments(paths, rival):
    rng = np.random.default_rng(3)
    a, b = (torch.from_numpy(rng.uniform(-2, 2, (7, 12))) for _ in range(2))
    ends = [paths.ask(rival, costs=c, reduction="none")[0] for c in (a, b)]
    for share in (0.1, 0.5, 0.9):
        between, slope = paths.ask(rival, costs=a + share * (b - a), reduction="none")
        assert (between <= (1 - share) * ends[0] + share * ends[1] + 1e-12).all()
        assert (between >= 0).all()
        tangent = between + (1 - share) * (slope * (b - a)).sum(1)
        assert (ends[1] >= tangent - 1e-12).all()


@pytest.mark.parametrize("rival", CONVEX, ids=label_of)
def test_gradients_by_finite_differences(paths, rival):
    loss = rival(paths.problem, noise=paths.noise, reduction="none")
    q = paths.costs.clone().requires_grad_()
    assert torch.autograd.gradcheck(
        lambda c: loss(c, paths.decisions, true_costs=paths.truth), (q,), atol=1e-6
    )


@pytest.mark.parametrize("criterion", ["decision", "regret"])
def test_perturbed_is_the_published_estimator(paths, criterion):
    choices, c = every_decision(paths.problem), paths.costs.numpy()
    chosen = cheapest(choices, c + SIGMA * paths.noise)
    gap = chosen.mean(0) - paths.decisions
    slope = gap if criterion == "decision" else paths.truth
    value, gradient = paths.ask(RIVALS["dpo"], reduction="none", criterion=criterion)
    np.testing.assert_allclose(value, (gap * slope).sum(1) / (1 + (criterion == "decision")))
    worth = np.einsum("kbn,bn->kb", chosen, slope)
    expected = np.einsum("kbn,kb->bn", paths.noise, worth) / (K * SIGMA)
    np.testing.assert_allclose(gradient, expected, atol=1e-12)
    others = np.stack([np.delete(worth, k, 0).mean(0) for k in range(K)])
    expected = np.einsum("kbn,kb->bn", paths.noise, worth - others) / (K * SIGMA)
    _, gradient = paths.ask(RIVALS["dpo, baseline"], reduction="none", criterion=criterion)
    np.testing.assert_allclose(gradient, expected, atol=1e-12)


def test_fenchel_young_is_the_published_loss_and_never_negative(paths):
    choices, c, x = every_decision(paths.problem), paths.costs.numpy(), paths.decisions
    chosen = cheapest(choices, c + SIGMA * paths.noise)
    lowest = ((c + SIGMA * paths.noise) * chosen).sum(2).mean(0)
    value, gradient = paths.ask(RIVALS["pfyl"], reduction="none")
    # PyEPO's value is the published one; ours differs by a term of mean 0 that has no c in it.
    drift = SIGMA * (paths.noise.mean(0) * x).sum(1)
    np.testing.assert_allclose(value.numpy() - drift, (c * x).sum(1) - lowest, atol=1e-12)
    np.testing.assert_allclose(gradient, x - chosen.mean(0), atol=1e-12)
    sure, flat = paths.ask(RIVALS["pfyl"], costs=torch.from_numpy(1e4 * paths.truth))
    assert sure == 0
    assert not flat.any()


def test_sampling_losses_tend_to_the_expectation():
    """Two ways, direct or over a stop: the chance of each under noise is known."""
    problem = rv.problems.shortest_path([(0, 1), (1, 2), (0, 2)], source=0, target=2)
    direct, stop = np.array([0.0, 0, 1]), np.array([1.0, 1, 0])
    c, sigma, draws = np.array([0.7, 0.8, 1.2]), 0.5, 400_000
    spread = sigma * math.sqrt(3)  # of the difference of the two costs
    lead = ((stop - direct) @ c) / spread
    chance = 0.5 * math.erfc(-lead / math.sqrt(2))  # of going direct
    density = math.exp(-0.5 * lead**2) / math.sqrt(2 * math.pi)
    mean = chance * direct + (1 - chance) * stop
    jacobian = density / spread * np.outer(direct - stop, stop - direct)  # of the mean decision
    lowest = mean @ c - spread * density
    truth, q = np.array([[0.3, 0.2, 2.0]]), torch.from_numpy(c[None])

    options = {"n_samples": draws, "sigma": sigma, "seed": 5}
    loss = FenchelYoungLoss(problem, **options)
    value, gradient = value_and_gradient(loss, q, stop[None])
    assert value.item() == pytest.approx(stop @ c - lowest, abs=5 / math.sqrt(draws))
    np.testing.assert_allclose(gradient[0], stop - mean, atol=5 / math.sqrt(draws))

    for baseline in (False, True):
        loss = PerturbedLoss(problem, criterion="regret", baseline=baseline, **options)
        value, gradient = value_and_gradient(loss, q, stop[None], true_costs=truth)
        assert value.item() == pytest.approx(truth[0] @ (mean - stop), abs=15 / math.sqrt(draws))
        np.testing.assert_allclose(gradient[0], jacobian.T @ truth[0], atol=25 / math.sqrt(draws))
        loss = PerturbedLoss(problem, baseline=baseline, **options)
        value, gradient = value_and_gradient(loss, q, stop[None])
        gap = mean - stop
        assert value.item() == pytest.approx(0.5 * gap @ gap, abs=15 / math.sqrt(draws))
        np.testing.assert_allclose(gradient[0], jacobian.T @ gap, atol=25 / math.sqrt(draws))


def test_regression_is_half_the_squared_distance(paths):
    value, gradient = paths.ask(RIVALS["two-stage"])
    plain = torch.nn.functional.mse_loss(paths.costs, torch.from_numpy(paths.truth))
    assert value.item() == pytest.approx(plain.item() * 12 / 2)
    np.testing.assert_allclose(gradient, (paths.costs.numpy() - paths.truth) / 7)


# --- the pool ------------------------------------------------------------------------------------


def test_contrastive_holds_every_decision_against_every_other(paths):
    c, x = paths.costs.numpy(), paths.decisions
    pool = np.unique(np.vstack([x, cheapest(every_decision(paths.problem), c)]), axis=0)
    value, gradient = paths.ask(RIVALS["nce"], reduction="none")
    np.testing.assert_allclose(value, (c * x).sum(1) - (c @ pool.T).mean(1), atol=1e-12)
    np.testing.assert_allclose(gradient, x - pool.mean(0), atol=1e-12)


def test_the_pool_grows_and_is_forgotten(paths):
    choices = every_decision(paths.problem)
    start = np.vstack([choices[:2], choices[:1]])
    loss = ContrastiveLoss(paths.problem, pool=start, solve_ratio=0.0)
    assert len(loss.pool) == 2
    twice = np.vstack([choices[[1, 3, 3]], choices[[2, 3, 2, 0]] - 1e-9])
    loss(paths.costs, twice)
    same = torch.cdist(loss.pool, torch.from_numpy(choices)) < 1e-6
    assert same.sum(0).tolist() == [1, 1, 1, 1, 0, 0]
    all_of_them = ContrastiveLoss(paths.problem, pool=rv.OptimalitySet(paths.problem, choices))
    all_of_them(paths.costs, paths.decisions)
    assert len(all_of_them.pool) == len(choices)
    loss.forget()
    assert len(loss.pool) == 2
    assert "pool of 3 at the start" in repr(loss)


def test_a_share_of_the_calls_is_solved(paths, monkeypatch):
    asked, solve = [], rv.LinearProgram.solve
    monkeypatch.setattr(rv.LinearProgram, "solve", lambda p, c: asked.append(1) or solve(p, c))

    def count(**options):
        asked.clear()
        loss = ContrastiveLoss(paths.problem, **options)
        for _ in range(200):
            loss(paths.costs, paths.decisions)
        return len(asked)

    assert count(solve_ratio=0.0) == 0
    assert count(solve_ratio=1.0) == 200
    assert 20 < count(solve_ratio=0.25, seed=3) == count(solve_ratio=0.25, seed=3) < 80


def test_a_sample_is_held_against_what_it_could_have_done(knapsacks):
    s = knapsacks
    weights, capacity = np.array([3.0, 5, 4, 7]), np.array([6.0, 9, 11, 14, 7])
    pool = np.unique(np.vstack([s.decisions, s.problem.solve(s.costs.numpy()).x]), axis=0)
    value, gradient = s.ask(RIVALS["nce"], reduction="none")
    for i in range(5):
        others = pool[pool @ weights <= capacity[i] + 1e-6]
        assert len(others) < len(pool) or capacity[i] == 14
        gap = s.decisions[i] - others.mean(0)
        np.testing.assert_allclose(gradient[i], gap, atol=1e-12)
        assert value[i].item() == pytest.approx(gap @ s.costs[i].numpy())
    with pytest.raises(rv.InfeasibleDecisionError, match="sample 0 breaks its own"):
        ContrastiveLoss(s.problem[2], solve_ratio=0)(s.costs[[2]], np.full((1, 4), 2.0))
