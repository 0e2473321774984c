"""The step benchmark runs end to end on a CPU; nothing asserts a time."""

import argparse
import json

import pytest
import torch

import revealed as rv
from revealed_experiments.bench.steps import command as steps
from revealed_experiments.bench.steps import tasks as steps_tasks


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def run(*words):
    parser = argparse.ArgumentParser()
    steps.add_arguments(parser)
    return steps.run(parser.parse_args([*words, "--device", "cpu", "--threads", "1"]))


def test_a_smoke_test_times_every_regime_and_claims_nothing(tmp_path):
    out = tmp_path / "steps.json"
    assert run("--quick", "--only", "terrain 12x12", "--out", str(out)) == 0
    found = json.loads(out.read_text())
    assert [row["regime"] for row in found["rows"]] == [r.name for r in steps_tasks.REGIMES]
    for row in found["rows"]:
        assert row["unsolved"] == 0
        assert row["ratio"] == pytest.approx(row["ours_ms"] / row["squared_ms"], rel=1e-2)
    assert found["targets"] == []
    assert str(tmp_path) not in out.read_text()
    assert "A training step" in out.with_suffix(".md").read_text()


def test_a_run_that_is_cut_short_leaves_the_rows_it_has(tmp_path, monkeypatch):
    out = tmp_path / "steps.json"
    take_turns, rows = steps_tasks.Entrants.take_turns, []

    def until_the_third(pair, rounds):
        if len(rows) == 2:
            raise KeyboardInterrupt
        rows.append(take_turns(pair, rounds))
        return rows[-1]

    monkeypatch.setattr(steps_tasks.Entrants, "take_turns", until_the_third)
    with pytest.raises(KeyboardInterrupt):
        run("--quick", "--only", "terrain 12x12", "--out", str(out))
    found = json.loads(out.read_text())["rows"]
    assert (
        [row["regime"] for row in found] == [row["regime"] for row in rows] == ["early", "midway"]
    )


def test_a_task_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(rv.InputError, match="matches none"):
        run("--quick", "--only", "nonsense", "--out", str(tmp_path / "steps.json"))


def test_late_costs_keep_their_distance_and_move_by_a_share_of_it():
    task = steps_tasks.Task.draw(steps_tasks.TASKS[0], "cpu", 20, small=True)
    late = next(regime for regime in steps_tasks.REGIMES if regime.name == "late")
    pair = steps_tasks.Entrants(task, late, "small", 10, captured=False)
    length = torch.linalg.vector_norm(task.points, dim=1)
    for _ in range(3):
        before = pair.table.clone()
        pair._draw()
        off = torch.linalg.vector_norm(pair.table - task.points, dim=1) / length
        moved = torch.linalg.vector_norm(pair.table - before, dim=1) / length
    assert 0.5e-3 < off.mean() < 2e-3
    assert 0.1e-3 < moved.mean() < 0.6e-3


def test_midway_costs_are_large_and_move_from_pass_to_pass():
    task = steps_tasks.Task.draw(steps_tasks.TASKS[0], "cpu", 20, small=True)
    midway = next(regime for regime in steps_tasks.REGIMES if regime.name == "midway")
    pair = steps_tasks.Entrants(task, midway, "small", 10, captured=False)
    pair._draw()
    before = pair.table.clone()
    pair._draw()
    length = torch.linalg.vector_norm(before, dim=1)
    moved = torch.linalg.vector_norm(pair.table - before, dim=1) / length
    assert 0.1 < moved.mean() < 0.2
    assert 5.0 < (before / task.data.costs).mean() < 15.0


def test_the_targets_are_those_of_a_captured_step_or_a_cpu():
    row = {"task": "some", "regime": "early", "bound": 1.05}
    found = steps.find_targets(
        [
            row | {"ratio": 1.2, "launches": "eager"},
            row | {"ratio": 1.04, "launches": "graph"},
            row | {"ratio": 1.06, "launches": "CPU"},
        ]
    )
    assert [t["holds"] for t in found] == [True, False]
