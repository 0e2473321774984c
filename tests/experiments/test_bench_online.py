"""The benchmark of streams: what rivals do, small runs, and the page made of them."""

import argparse
import json

import numpy as np
import pytest

from revealed_experiments.bench.online import command, sphere, streams
from revealed_experiments.bench.online.page import FIXED
from revealed_experiments.cli import BENCHES


@pytest.mark.parametrize("name", sphere.LEARNERS)
def test_learners_find_the_objective(name):
    regret, seconds = sphere.play(name, 2, 400, seed=1)
    assert (np.diff(regret) >= -1e-12).all()
    assert regret[-1] < 0.1 * 400 * 2 / np.pi  # a coin would pay 2 / pi in a round
    assert regret[-1] - regret[199] < 0.5 * regret[-1]
    assert seconds > 0


@pytest.mark.parametrize("scale", [0.3, 3.0])
def test_the_nearest_point_of_the_ball(scale):
    """By its optimality conditions: (A + multiplier) c = b, and the multiplier is 0 inside."""
    rng = np.random.default_rng(0)
    root = rng.standard_normal((3, 3))
    A, b = root @ root.T + np.eye(3), scale * rng.standard_normal(3)
    found = sphere.nearest_in_ball(A, b)
    left, inside = b - A @ found, np.linalg.norm(np.linalg.solve(A, b)) <= 1
    multiplier = 0.0 if inside else left @ found
    assert inside == (scale == 0.3)
    assert multiplier >= 0
    assert np.linalg.norm(found) <= 1 + 1e-9
    np.testing.assert_allclose(left, multiplier * found, atol=1e-9)


def test_cutting_planes_never_cut_the_objective_away():
    rng = np.random.default_rng(3)
    (objective,) = sphere.on_sphere(rng, 1, 2)
    learner = sphere.CuttingPlanes(2, 0, rng)
    for x in sphere.on_sphere(rng, 100, 2):
        taken = x if objective @ x > 0 else -x
        learner.learn(taken, x if learner.guess() @ x > 0 else -x)
    assert len(learner.points) < 20_000
    assert np.linalg.norm(learner.points - objective, axis=1).min() < 0.05


def test_costs_drift_as_they_should():
    """How well the first half explains the second: fully, hardly, and in part of the slow one."""
    left = {}
    for kind in streams.DRIFTS:
        stream = streams.drifting(kind, 2000, seed=2)
        design = np.column_stack([stream.Z, np.ones(2000)])
        fitted = np.linalg.lstsq(design[:900], stream.C[:900], rcond=None)[0]
        gap = stream.C[1100:] - design[1100:] @ fitted
        left[kind] = (gap**2).sum() / (stream.C[1100:] ** 2).sum()
    assert left["none"] < left["slow"] < left["abrupt"]
    assert left["abrupt"] > 1.5 * left["none"]


def test_parts_that_are_not_run_again_stay(tmp_path):
    out, page = tmp_path / "online.json", tmp_path / "online.md"
    place = ["--out", str(out), "--page", str(page)]
    small = ["--drift-seeds", "1", "--drift-rounds", "60", "--seeds", "1", "--sizes", "20,40"]
    command.run(_parsed(["--parts", "paths", *small, *place]))
    command.run(_parsed(["--parts", "drift", *small, *place]))
    parts = json.loads(out.read_text())["parts"]
    assert set(parts) == {"paths", "drift"}
    assert {row["learner"] for row in parts["paths"]["rows"]} >= {"fit", "one by one"}
    assert all(len(row["windows"][FIXED]) == streams.WINDOWS for row in parts["drift"]["rows"])
    assert "**Drift.**" in page.read_text()
    assert (tmp_path / "images" / "drift.png").exists()
    assert "online" in BENCHES


def _parsed(words):
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args(words)
