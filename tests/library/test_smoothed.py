"""The smoothed distance: its definition, draw by draw, and what follows from it."""

import numpy as np
import pytest
import torch

import revealed as rv
from helpers import catalogue
from revealed.losses import ProjectionLoss, SmoothedProjectionLoss

CASES = {case.name: case for case in catalogue()}
DRAWS = 6
PATH = "grid right-down"


def samples(name, seed=0):
    """A catalogue problem, decisions taken under hidden costs, and other costs."""
    problem, hidden = CASES[name].problem, CASES[name].costs
    noise = np.random.default_rng(seed).uniform(0.5, 1.5, hidden.shape)
    return problem, problem.solve(hidden).x, torch.from_numpy(hidden * noise)


def loss_with(problem, noise, **options):
    loss = SmoothedProjectionLoss(problem, n_samples=len(noise), reduction="none", **options)
    loss.noise = lambda shape, device: noise
    return loss


@pytest.mark.parametrize("name", sorted(CASES))
@pytest.mark.parametrize("power", [2, 1, "huber", "welsch"])
def test_it_is_the_mean_over_the_draws(name, power):
    problem, decisions, costs = samples(name)
    noise = torch.randn((DRAWS, *costs.shape), generator=torch.Generator().manual_seed(1))
    loss = loss_with(problem, noise, margin=0.2, sigma=0.7, power=power, delta=0.3)
    costs.requires_grad_()
    value = loss(costs, decisions)
    value.sum().backward()
    one = ProjectionLoss(problem, 0.2, power=power, delta=0.3, reduction="none")
    expected, slope = torch.zeros(len(costs), dtype=torch.float64), torch.zeros_like(costs)
    for draw in noise:
        shifted = (costs.detach() + 0.7 * draw.double()).requires_grad_()
        each = one(shifted, decisions)
        each.sum().backward()
        expected += each.detach() / DRAWS
        slope += shifted.grad / DRAWS
    torch.testing.assert_close(value.detach(), expected, rtol=1e-6, atol=1e-9)
    torch.testing.assert_close(costs.grad, slope, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("power", [2, 1])
def test_the_gradient_is_that_of_the_value(power):
    problem, decisions, costs = samples(PATH)
    noise = torch.randn((DRAWS, *costs.shape), generator=torch.Generator().manual_seed(2))
    loss = loss_with(problem, noise.double(), margin=0.0, sigma=1.0, power=power)
    costs.requires_grad_()
    loss(costs, decisions).sum().backward()
    rng, step = np.random.default_rng(3), 1e-6
    for _ in range(5):
        way = torch.from_numpy(rng.standard_normal(costs.shape))
        with torch.no_grad():
            ends = [loss(costs + sign * step * way, decisions).sum() for sign in (1, -1)]
        rise = (ends[0] - ends[1]) / (2 * step)
        assert float((costs.grad * way).sum()) == pytest.approx(float(rise), rel=1e-4, abs=1e-6)


def test_no_margin_is_needed_to_keep_zero_out():
    problem, decisions, costs = samples(PATH)
    loss = SmoothedProjectionLoss(problem, 0.0, sigma=0.1, n_samples=DRAWS)
    explaining = rv.project(costs.numpy(), rv.OptimalitySet(problem, decisions, 1.0)).point
    at_zero = loss(torch.zeros_like(costs), decisions)
    inside = loss(torch.from_numpy(explaining), decisions)
    assert float(inside) < 0.05 * float(at_zero)


def test_draws_come_in_opposite_pairs_and_repeat_with_the_seed():
    problem, decisions, costs = samples(PATH)
    loss = SmoothedProjectionLoss(problem, n_samples=5, seed=3)
    first = loss.noise((5, 2, 4), torch.device("cpu"))
    assert first.shape == (5, 2, 4)
    torch.testing.assert_close(first[:2], -first[3:])
    twice = []
    for _ in range(2):
        loss.begin_epoch(7, 1)
        twice.append(float(loss(costs, decisions)))
    assert twice[0] == twice[1]
    loss.begin_epoch(7, 2)
    assert float(loss(costs, decisions)) != twice[0]


def test_sets_of_another_margin_are_refused():
    problem, decisions, costs = samples(PATH)
    sets = rv.OptimalitySet(problem, decisions, 1.0)
    with pytest.raises(rv.InputError, match="margin"):
        SmoothedProjectionLoss(problem, 0.5)(costs, sets)
    for bad in ({"sigma": 0.0}, {"n_samples": 0}, {"power": 3}, {"margin": -1.0}):
        with pytest.raises(rv.InputError):
            SmoothedProjectionLoss(problem, **bad)(costs, decisions)


def test_fixed_draws_are_the_same_in_every_call():
    problem, decisions, costs = samples(PATH)
    fixed, fresh = (SmoothedProjectionLoss(problem, seed=3, fixed=flag) for flag in (True, False))
    assert float(fixed(costs, decisions)) == float(fixed(costs, decisions))
    assert float(fresh(costs, decisions)) != float(fresh(costs, decisions))


def test_without_a_margin_it_takes_that_of_the_sets():
    problem, decisions, costs = samples(PATH)
    own = SmoothedProjectionLoss(problem, fixed=True)
    for margin in (0.2, 0.5, 3.0):
        sets = rv.OptimalitySet(problem, decisions, margin)
        told = SmoothedProjectionLoss(problem, margin, fixed=True)(costs, decisions)
        assert float(own(costs, sets)) == float(told)
    plain = SmoothedProjectionLoss(problem, 0.5, fixed=True)
    assert float(own(costs, decisions)) == float(plain(costs, decisions))
