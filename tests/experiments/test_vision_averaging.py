"""A network that looks at a picture from all sides: every side counts, and lands on its edges."""

import numpy as np
import pytest
import torch
from torch import nn

import revealed as rv
from revealed.errors import InputError
from revealed_experiments.images import digit_boards, terrain
from revealed_experiments.vision import (
    Averaged,
    DeviceSplit,
    as_contexts,
    build_model,
    judge,
    predict,
)
from revealed_experiments.vision.views import ViewedSplit


@pytest.fixture(scope="module")
def tasks():
    return {
        "maps": terrain((8, 0, 4), side=4, seed=3, unique=True),
        "boards": digit_boards((8, 0, 4), side=4, pixels=6, seed=1, unique=True),
    }


class Knowing(nn.Module):
    """Gives each known picture its true costs, times a factor of the view it is seen in."""

    def __init__(self, split, factors):
        super().__init__()
        lines = torch.arange(len(split))
        self.costs = {
            picture.numpy().tobytes(): factors[line // split.n_samples] * costs
            for line, picture, costs in zip(
                lines.tolist(), split.images[lines], split.costs[lines], strict=True
            )
        }

    def forward(self, images):
        return torch.stack([self.costs[image.numpy().tobytes()] for image in images])


@pytest.mark.parametrize("kind, views", [("maps", 4), ("boards", 2)])
def test_costs_of_all_views_come_back_to_their_edges(tasks, kind, views):
    data = tasks[kind]
    split = DeviceSplit.of(data.train, "cpu", torch.float64)
    viewed = ViewedSplit(split, data.problem, "all")
    factors = [float(k + 1) for k in range(views)]
    seen = Averaged(Knowing(viewed, factors), data.problem, "all")(split.images)
    torch.testing.assert_close(seen, np.mean(factors) * split.costs, rtol=1e-12, atol=0)


def test_a_picture_is_seen_in_every_place():
    images = np.random.default_rng(0).integers(0, 256, (3, 4, 5, 1), np.uint8)
    wide = np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)), mode="edge").astype(np.float64)
    by_hand = np.mean(
        [wide[:, d : d + 4, a : a + 5] ** 2 for d in range(3) for a in range(3)], axis=0
    )

    class Squares(nn.Module):
        def forward(self, images):
            return images.double().flatten(1) ** 2

    problem = rv.problems.grid_shortest_path(3, 3)
    seen = Averaged(Squares(), problem, shift=1)(torch.from_numpy(images))
    np.testing.assert_allclose(seen.numpy(), by_hand.reshape(3, -1), rtol=1e-12)


@pytest.mark.parametrize("kind", ["maps", "boards"])
def test_a_network_is_averaged_over_views_and_places(tasks, kind):
    """The mean over the views of what it sees in one is the same view of the whole."""
    data = tasks[kind]
    split = DeviceSplit.of(data.train, "cpu")
    net = build_model("small", data.problem, channels=data.train.images.shape[3])
    seen = Averaged(net, data.problem, "all", shift=1)
    viewed = ViewedSplit(split, data.problem, "all")
    whole = predict(seen, split.images)
    for k, view in enumerate(viewed.views):
        lines = torch.arange(len(split)) + k * len(split)
        turned = predict(seen, viewed.images[lines])
        # A board that is moved aside and then rearranged is not one rearranged and moved aside.
        if kind == "maps":
            torch.testing.assert_close(turned, whole[:, torch.from_numpy(view.costs)])
        assert not torch.allclose(predict(net, viewed.images[lines]), turned)
    torch.testing.assert_close(predict(seen, as_contexts(split.images)), whole)
    figures = judge(seen, data.problem, split)
    assert figures["decision_loss"] == pytest.approx(
        np.square(data.problem.solve(whole.double().numpy()).x - data.train.decisions).sum(1).mean()
    )


def test_without_views_and_shifts_it_is_the_network(tasks):
    data = tasks["maps"]
    split = DeviceSplit.of(data.train, "cpu")
    net = build_model("small", data.problem, channels=3)
    assert torch.equal(
        predict(Averaged(net, data.problem), split.images), predict(net, split.images)
    )


def test_what_has_no_views_is_refused(tasks):
    net, problem = nn.Identity(), tasks["maps"].problem
    with pytest.raises(InputError, match="`views` must be one of"):
        Averaged(net, problem, "upside down")
    with pytest.raises(InputError, match="`shift` must be at least 0; got -1"):
        Averaged(net, problem, shift=-1)
    with pytest.raises(InputError, match="Only grids have views"):
        Averaged(net, rv.problems.knapsack(np.ones((1, 4)), np.array([2.0])), "all")
