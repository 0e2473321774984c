"""The benchmark of unknown limits: small runs of its parts, and the page made of them."""

import json

import numpy as np
import pytest

from revealed_experiments.bench.limits import command, programs
from revealed_experiments.bench.limits.data import TASKS, observe
from revealed_experiments.bench.limits.exactness import compare
from revealed_experiments.bench.limits.recovery import recoveries
from revealed_experiments.cli import BENCHES


@pytest.mark.parametrize("name", TASKS)
def test_limits_in_force_are_obeyed_and_some_are_active(name):
    task = TASKS[name](np.random.default_rng(0), 60, 2)
    X, limits, active = observe(task, np.random.default_rng(1), "noisy", 60)
    assert (X @ task.A_ub[task.rows].T <= limits + 1e-7).all()
    assert active.any(axis=0).all()


def test_exactness_and_recovery_of_a_small_run():
    found = compare(5, seed=1)
    assert max(found["worst"].values()) < 1e-6
    (row, *_) = recoveries(["production"], [60], range(1))
    assert row["ours"]["same"] == pytest.approx(row["limits known"]["same"], abs=0.02)
    assert row["limit_error"] < 1e-6


def test_random_programs_are_solved():
    one = programs._instance(np.random.default_rng(0), 2, 4, 5)
    assert programs._judged(one, programs._ours)["seen"] <= programs.SOLVED


def test_parts_that_are_not_run_again_stay(tmp_path):
    out, page = tmp_path / "limits.json", tmp_path / "limits.md"
    place = ["--out", str(out), "--page", str(page), "--problems", "2"]
    args = _parsed(["--parts", "exactness", *place])
    assert command.run(args) == 0
    args = _parsed(["--parts", "coverage", "--tasks", "production", "--runs", "2", *place])
    command.run(args)
    assert set(json.loads(out.read_text())["parts"]) == {"exactness", "coverage"}
    assert "**Exactness.**" in page.read_text()
    assert "limits" in BENCHES


def _parsed(words):
    import argparse

    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args(words)
