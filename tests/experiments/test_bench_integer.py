"""`bench integer` runs end to end, goes on where it stopped, and says what it measured."""

import argparse
import json

import numpy as np
import pytest

from revealed_experiments.bench.integer import command, data, learners, names, page

pytest.importorskip("rich")
METHODS = f"0,1,{list(learners.LEARNERS).index(names.LOOP)}"


def _run(folder, *words):
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    own = ["--out", folder / "a.json", "--page", folder / "a.md", "--labels", folder / "labels"]
    size = ["--train", 40, "--test", 20, "--epochs", 2, "--seeds", 1, "--methods", METHODS]
    return command.run(parser.parse_args([str(word) for word in [*own, *size, *words]]))


def test_a_run_that_is_repeated_repeats_nothing(tmp_path, monkeypatch):
    _run(tmp_path, "--problems", "knapsack,tsp-6,cvrp-6")
    first = json.loads((tmp_path / "a.json").read_text("utf-8"))
    assert len(first["results"]) == 9
    assert all(row["regret"] >= 0 <= row["regret_averaged"] for row in first["results"])
    monkeypatch.setattr(learners, "LEARNERS", dict.fromkeys(learners.LEARNERS))
    _run(tmp_path, "--problems", "knapsack,tsp-6,cvrp-6")
    again = json.loads((tmp_path / "a.json").read_text("utf-8"))
    assert again["results"] == first["results"]
    assert (tmp_path / "a.md").read_text("utf-8") == page.make_page(again).markdown(again)


def test_labels_are_read_again_only_for_the_costs_that_they_belong_to(tmp_path):
    drawn = data.draw("knapsack", 1, 10, 5, tmp_path)
    kept = next(tmp_path.glob("*.npz"))
    read = data.draw("knapsack", 1, 10, 5, tmp_path)
    np.testing.assert_array_equal(read.train.decisions, drawn.train.decisions)
    other = kept.with_name(kept.name.replace("-1-", "-2-"))
    other.write_bytes(kept.read_bytes())
    mine = data.draw("knapsack", 2, 10, 5, tmp_path)
    assert mine.problem.solve(mine.test.costs).x == pytest.approx(mine.test.decisions)


def test_knapsacks_learned_without_an_oracle_are_better_than_by_rows_alone():
    drawn, settings = data.draw("knapsack", 3, 100, 100), learners.settings_of("knapsack")
    both = (names.TIGHT, names.CAVE)
    regret = [
        command._scores(drawn, learners.LEARNERS[name](drawn, 0, 5, settings)["costs"], "")[
            "regret"
        ]
        for name in both
    ]
    assert regret[0] < regret[1]
