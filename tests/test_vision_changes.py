"""Pictures moved by a few pixels or seen in another light, with the same decision behind them."""

import numpy as np
import pytest
import torch

import revealed as rv
from revealed.data import terrain
from revealed.errors import InputError
from revealed.vision import DeviceSplit, build_model, train
from revealed.vision.lights import Lights
from revealed.vision.shifts import Shifts

CPU = torch.device("cpu")


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
    shifts = Shifts(most, CPU)
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


@pytest.mark.parametrize("channels", [1, 3])
def test_every_picture_is_seen_in_its_own_light(channels):
    """Contrast about the picture's mean, then brightness and tint, counted from black at -1."""
    lights = Lights(0.2, channels, CPU)
    images = np.random.default_rng(0).integers(0, 256, (len(lights), 5, 7, channels), np.uint8)
    seen = lights.apply(torch.from_numpy(images), torch.arange(len(lights))).double().numpy()
    assert seen.shape == (len(lights), channels, 5, 7)
    shares = images.transpose(0, 3, 1, 2) / 255
    np.testing.assert_allclose(seen[0], 2 * shares[0] - 1, atol=1e-6)  # number 0 changes nothing
    gains, contrasts = np.empty((len(lights), channels)), np.empty(len(lights))
    for k, (before, after) in enumerate(zip(shares, (seen + 1) / 2, strict=True)):
        mean = before.mean()
        for c in range(channels):
            slope, at_mean = np.polyfit(before[c].ravel() - mean, after[c].ravel(), 1)
            np.testing.assert_allclose(at_mean + slope * (before[c] - mean), after[c], atol=1e-5)
            gains[k, c], contrast = at_mean / mean, slope / (at_mean / mean)
            assert contrast == pytest.approx(contrasts[k] if c else contrast, rel=1e-4)
            contrasts[k] = contrast
    for found, most in ((contrasts, 0.2), (gains, 0.2 * 1.4)):
        assert 0.9 * most < np.log(found).max() < 1.001 * most
        assert 0.9 * most < -np.log(found).min() < 1.001 * most
    tint = np.log(gains.max(axis=1) / gains.min(axis=1)).max()
    assert tint == 0 if channels == 1 else 0.8 * 0.16 < tint < 1.001 * 0.16


def test_an_epoch_sees_every_picture_once_moved_with_its_own_decision(maps):
    order, decided, seen = watched(maps, shift=1)
    assert all(sorted(line) == list(range(12)) for line in order.reshape(20, 12))
    assert np.array_equal(decided, maps.train.decisions[order])
    used = set()
    for line, image in zip(order, seen, strict=True):
        original = maps.train.images[line]
        fits = [move for move in MOVES if np.array_equal(by_hand(original, *move), image)]
        assert fits
        used.update(fits)
    assert used == set(MOVES)


def test_changes_come_together(maps):
    """Every picture is some shift of its own in some light, and many of each are met."""
    order, decided, seen = watched(maps, shift=1, light=0.2)
    assert np.array_equal(decided, maps.train.decisions[order])
    shifts, lights = Shifts(1, CPU), Lights(0.2, 3, CPU)
    every = torch.arange(len(lights))
    used = set()
    for line, image in zip(order[:12], seen[:12], strict=True):
        original = torch.from_numpy(maps.train.images[line]).repeat(len(shifts), 1, 1, 1)
        fits = []
        for move, moved in enumerate(shifts.apply(original, torch.arange(len(shifts)))):
            lit = lights.apply(moved.repeat(len(lights), 1, 1, 1), every).numpy()
            far = np.abs(lit - image).max(axis=(1, 2, 3))
            fits += [(move, int(k)) for k in np.flatnonzero(far < 1e-5)]
        assert fits
        used.add(fits[0])
    assert len({move for move, _ in used}) > 3
    assert len({light for _, light in used}) > 6


MOVES = [(down, aside) for down in (-1, 0, 1) for aside in (-1, 0, 1)]


def watched(maps, **changes):
    """Of 20 epochs: lines of the data, the decisions given with them, and the pictures shown."""

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
    settings = {"batch_size": 6, "step": 1e-3, "checkpoint_every": 30, "seed": 7} | changes
    train(net, split, Watching(maps.problem), epochs=20, **settings)
    return torch.cat(lines).numpy(), np.concatenate(decided), np.concatenate(seen)


@pytest.mark.parametrize("name, wrong", [("shift", -1), ("light", -0.5), ("light", float("nan"))])
def test_a_change_by_less_than_nothing_is_refused(maps, name, wrong):
    split = DeviceSplit.of(maps.train, "cpu", torch.float64)
    net, loss = build_model("small", maps.problem), rv.ProjectionLoss(maps.problem)
    with pytest.raises(InputError, match=f"`{name}` must be at least 0; got {wrong}"):
        train(net, split, loss, epochs=1, **{name: wrong})
