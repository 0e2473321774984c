"""The benchmark of unknown limits: small runs of its parts, and the page made of them."""

import json

import numpy as np
import pytest
from scipy.optimize import minimize

from revealed_experiments.bench.limits import command, flows, programs
from revealed_experiments.bench.limits.data import TASKS, observe
from revealed_experiments.bench.limits.exactness import compare
from revealed_experiments.bench.limits.gradient import SMOOTH, Layer
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


@pytest.mark.parametrize("shape", [(2, 4, 5, 0), (10, 20, 12, 2)])
def test_random_programs_are_solved(shape):
    one = programs._instance(np.random.default_rng(0), *shape)
    assert programs._judged(one, programs._ours)["seen"] <= programs.SOLVED
    if one.A_eq is not None:
        np.testing.assert_allclose(one.X @ one.A_eq.T, 0.0, atol=1e-7)


@pytest.mark.parametrize("equalities", [0, 2])
def test_the_gradient_of_the_rival_is_that_of_its_decisions(equalities):
    rng, n = np.random.default_rng(2), 5
    A, c, b = rng.standard_normal((15, n)), rng.standard_normal((8, n)), rng.uniform(1, 2, (8, 15))
    A_eq = rng.standard_normal((2, n)) if equalities else None
    layer = Layer(A, A_eq, None if A_eq is None else np.zeros(2))
    X, kept = layer.solve(c, b)
    for x, cost, room in zip(X, c, b, strict=True):
        rows = [{"type": "ineq", "fun": lambda x, room=room: room - A @ x}]
        rows += [{"type": "eq", "fun": lambda x: A_eq @ x}] if equalities else []

        def price(x, cost=cost):
            return cost @ x + 0.5 * SMOOTH * x @ x

        assert (A @ x <= room + 1e-9).all()
        assert price(x) <= minimize(price, np.zeros(n), constraints=rows).fun + 1e-6
    along = rng.standard_normal(X.shape)
    in_costs, in_limits = layer.pull_back(along, kept)
    dc, db, h = rng.standard_normal(c.shape), rng.standard_normal(b.shape), 1e-6
    ends = [layer.solve(c + s * h * dc, b + s * h * db)[0] for s in (1.0, -1.0)]
    found = (along * (ends[0] - ends[1])).sum(axis=1) / (2.0 * h)
    told = (in_costs * dc).sum(axis=1) + (in_limits * db).sum(axis=1)
    np.testing.assert_allclose(told, found, rtol=1e-4, atol=1e-4)


def test_flows_obey_capacities_and_are_learned():
    one = flows.network(np.random.default_rng([7001, 4]))
    capacity = 1.0 + one.w[5] + one.w[6] * one.length
    assert (flows._totals(one.X) <= capacity + 1e-7).all()
    found = flows.judged(one, flows.ours)
    assert found["seen"] <= programs.SOLVED
    assert found["limits"] <= programs.RIGHT
    assert flows.judged(one, lambda one: one.w)["unseen"] == 1.0


def test_parts_that_are_not_run_again_stay(tmp_path):
    out, page = tmp_path / "limits.json", tmp_path / "limits.md"
    place = ["--out", str(out), "--page", str(page), "--problems", "2"]
    args = _parsed(["--parts", "exactness", *place])
    assert command.run(args) == 0
    args = _parsed(
        ["--parts", "coverage", "--tasks", "production", "--runs", "2", "--learned", "1", *place]
    )
    command.run(args)
    assert set(json.loads(out.read_text())["parts"]) == {"exactness", "coverage"}
    assert "**Exactness.**" in page.read_text()
    assert "limits" in BENCHES


def _parsed(words):
    import argparse

    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args(words)
