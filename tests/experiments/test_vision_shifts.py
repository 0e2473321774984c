"""Pictures moved by a few pixels: each by its own move, and the same decision behind it."""

import numpy as np
import pytest
import torch

import revealed as rv
from revealed.errors import InputError
from revealed_experiments.images import terrain
from revealed_experiments.vision import DeviceSplit, build_model, train
from revealed_experiments.vision.shifts import Shifts


@pytest.fixture(scope="module")
def maps():
    return terrain((12, 0, 4), side=4, seed=3, unique=True)


def by_hand(image, down, aside):
    """One picture (H, W, C) moved, its edges continued."""
    most = max(abs(down), abs(aside))
    wide = np.pad(image, ((most, most), (most, most), (0, 0)), mode="edge")
    height, width = image.shape[:2]
    return wide[most - down : most - down + height, most - aside : most - aside + width]


@pytest.mark.parametrize("most", [1, 2])
def test_every_picture_is_moved_by_its_own_number(most):
    shifts = Shifts(most, torch.device("cpu"))
    assert len(shifts) == (2 * most + 1) ** 2
    images = np.random.default_rng(0).integers(0, 256, (len(shifts), 5, 7, 3), np.uint8)
    moved = shifts.apply(torch.from_numpy(images), torch.arange(len(shifts))).numpy()
    assert moved.dtype == np.uint8
    assert np.array_equal(moved[0], images[0])  # number 0 moves nothing
    span = range(-most, most + 1)
    found = set()
    for image, other in zip(images, moved, strict=True):
        fits = [(d, a) for d in span for a in span if np.array_equal(by_hand(image, d, a), other)]
        assert len(fits) == 1
        found.update(fits)
    assert len(found) == len(shifts)


def test_an_epoch_sees_every_picture_once_moved_with_its_own_decision(maps):
    class Watching(rv.ProjectionLoss):
        def evaluate(self, costs, decisions, **rest):
            decided.append(decisions.decisions)
            lines.append(rest["index"])
            return super().evaluate(costs, decisions, **rest)

    class Seeing(torch.nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def forward(self, images):
            seen.append(images.numpy().copy())
            return self.inner(images)

    decided, lines, seen = [], [], []
    split = DeviceSplit.of(maps.train, "cpu", torch.float64)
    net = Seeing(build_model("small", maps.problem))
    settings = {"shift": 1, "batch_size": 6, "lr": 1e-3, "checkpoint_every": 30, "seed": 7}
    train(net, split, Watching(maps.problem), max_epochs=20, **settings)
    order = torch.cat(lines).numpy()
    assert all(sorted(line) == list(range(12)) for line in order.reshape(20, 12))
    assert np.array_equal(np.concatenate(decided), maps.train.decisions[order])
    moves = [(down, aside) for down in (-1, 0, 1) for aside in (-1, 0, 1)]
    used = set()
    for line, image in zip(order, np.concatenate(seen), strict=True):
        original = maps.train.images[line]
        fits = [move for move in moves if np.array_equal(by_hand(original, *move), image)]
        assert fits
        used.update(fits)
    assert used == set(moves)


def test_a_negative_shift_is_refused(maps):
    split = DeviceSplit.of(maps.train, "cpu", torch.float64)
    net, loss = build_model("small", maps.problem), rv.ProjectionLoss(maps.problem)
    with pytest.raises(InputError, match="`shift` must be at least 0; got -1"):
        train(net, split, loss, shift=-1, max_epochs=1)
