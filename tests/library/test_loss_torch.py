"""What torch may ask of any loss: derivatives of which order, which transforms, whose weights."""

import numpy as np
import pytest
import torch

import revealed as rv
from revealed.losses import LOSSES, make_loss

every_loss = pytest.mark.parametrize("name", sorted(LOSSES))


@pytest.fixture
def samples():
    """A small problem, decisions taken under true costs, and those costs."""
    problem = rv.problems.knapsack(np.array([3.0, 5, 4, 7, 6]), 12.0)
    truth = -1 - np.random.default_rng(0).random((4, 5))
    return problem, problem.solve(truth).x, truth


def asked(name, samples, costs, decisions=None, loss=None, **options):
    problem, observed, truth = samples
    loss = make_loss(name, problem, **options) if loss is None else loss
    rest = {"true_costs": truth[: len(costs)]} if loss.needs_true_costs else {}
    return loss(costs, observed[: len(costs)] if decisions is None else decisions, **rest)


@every_loss
def test_second_derivatives_are_refused_and_not_0(name, samples):
    costs = torch.from_numpy(samples[2] - 1).requires_grad_()
    scale = torch.tensor(3.0, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(scale * asked(name, samples, costs), costs, create_graph=True)
    (by_scale,) = torch.autograd.grad(gradient.sum(), scale, retain_graph=True)
    torch.testing.assert_close(3 * by_scale, gradient.detach().sum())
    with pytest.raises(rv.InputError, match="no second derivatives"):
        gradient.sum().backward()


@every_loss
def test_tensors_without_numbers_meet_a_sentence(name, samples):
    costs, loss = torch.from_numpy(samples[2] - 1), make_loss(name, samples[0])
    for ask in (
        lambda: torch.func.grad(lambda c: asked(name, samples, c, loss=loss))(costs),
        lambda: torch.func.vmap(lambda c: asked(name, samples, c[None], loss=loss))(costs),
        lambda: asked(name, samples, costs.to("meta"), loss=loss),
    ):
        with pytest.raises(rv.InputError, match="must be a tensor that holds numbers"):
            ask()


@every_loss
def test_samples_count_as_much_as_their_sets_say(name, samples):
    problem, observed, _ = samples
    margin = {"smoothed": 0.5}.get(name, 1.0)
    sets = rv.OptimalitySet(problem, observed, margin)
    costs = torch.from_numpy(samples[2] - 1)
    sets = sets.replaced(weights=np.array([1.0, 0.25, 0.0, 0.5]))
    options = {"reduction": "none"}
    one = asked(name, samples, costs, **options)
    torch.testing.assert_close(
        asked(name, samples, costs, sets, **options), one * torch.from_numpy(sets.weights)
    )


def test_a_margin_of_no_number_meets_a_sentence(samples):
    for name in ("smoothed", "mom"):
        others = () if name == "smoothed" else (None,)  # which takes the margin of the sets
        for margin in (*others, "1", np.nan, -1.0):
            with pytest.raises(rv.InputError, match="`margin` must be a finite number"):
                make_loss(name, samples[0], margin=margin)
