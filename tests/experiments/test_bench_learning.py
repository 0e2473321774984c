"""The learning benchmarks run end to end and write what they measured; nothing asserts a time."""

import argparse
import json
from dataclasses import replace

import numpy as np
import pytest

import revealed as rv
from revealed.datasets import paper_paths
from revealed.datasets.paper import PAPER_NAMES
from revealed_experiments.bench import tables
from revealed_experiments.bench.learning import command as learning
from revealed_experiments.bench.learning import margins
from revealed_experiments.bench.minimum import cases
from revealed_experiments.bench.minimum import command as minimum
from revealed_experiments.bench.noise import command as noise
from revealed_experiments.bench.noise import names, settings
from revealed_experiments.bench.pages import Page

pytest.importorskip("rich")


def run_command(module, *words):
    parser = argparse.ArgumentParser()
    module.add_arguments(parser)
    return module.run(parser.parse_args([str(word) for word in words]))


@pytest.fixture(scope="module")
def paper_folder(tmp_path_factory):
    """Small files under the paper's names: our own paths, in the layout of theirs."""
    folder = tmp_path_factory.mktemp("paper_synthetic")
    for seed, name in enumerate(PAPER_NAMES):
        data = paper_paths((12, 4, 6), side=3, seed=seed)
        arrays = {"A": data.problem.A_eq.toarray()[:-1], "b": data.problem.b_eq[:-1]}
        for split in ("train", "valid", "test"):
            part = getattr(data, split)
            arrays[f"{split}_z"], arrays[f"{split}_c"] = part.contexts, part.costs
            arrays[f"{split}_sol"] = part.decisions
        np.savez(folder / f"{name}.npz", **arrays)
    return folder


def read(path, folder):
    """The JSON of a benchmark, which must be strict and hold no path of this machine."""
    text = path.read_text("utf-8")
    assert str(folder) not in text
    content = json.loads(text)
    assert {"command", "settings", "hardware", "versions", "targets"} <= set(content)
    return content


def test_margins_command(paper_folder, tmp_path, capsys):
    out, page = tmp_path / "deep" / "margins.json", tmp_path / "docs" / "margins.md"
    words = ("--data", paper_folder, "--quick", "--out", out, "--page", page)
    assert run_command(margins, *words) == 0
    content = read(out, paper_folder)
    assert len(content["rows"]) == 4 * len(PAPER_NAMES)
    for row in content["rows"]:
        assert row["unsolved"] == 0
        assert set(row["ours"]) == set(row["reference"]) == set(margins.MEASURES)
    text = page.read_text("utf-8")
    assert "| sp_seed0 | 10 |" in text
    assert "Do not edit" in text
    assert str(paper_folder) not in text
    assert "Where it starts" in capsys.readouterr().out


def test_from_zero_the_margin_is_only_a_unit(paper_folder, tmp_path, capsys):
    out = tmp_path / "margins.json"
    words = ("--data", paper_folder, "--quick", "--only", "sp_seed1", "--out", out)
    run_command(margins, *words, "--page", tmp_path / "page.md")
    rows = json.loads(out.read_text("utf-8"))["rows"]
    assert all(row["ours"] == rows[0]["ours"] for row in rows)
    for row in rows:
        assert row["h"] == pytest.approx(rows[0]["h"] * (row["margin"] / rows[0]["margin"]) ** 2)


def test_margins_command_needs_its_files(tmp_path):
    with pytest.raises(rv.InputError, match="must hold sp_seed0"):
        run_command(margins, "--data", tmp_path, "--quick")
    with pytest.raises(rv.InputError, match="matches none"):
        run_command(margins, "--data", tmp_path, "--only", "nothing")


def test_margin_targets_allow_better_but_not_worse():
    def row(shift):
        figures = dict.fromkeys(margins.MEASURES, 1.0)
        ours = {name: value + shift for name, value in figures.items()}
        facts = {"data": "sp_seed0", "margin": 1.0, "armijo_over_pocs": 1.0, "unsolved": 0}
        return facts | {"ours": ours, "reference": figures}

    for shift, holds in ((-5.0, True), (0.2, True), (0.3, False)):
        found = margins._targets([row(shift)])
        assert all(t["holds"] for t in found) is holds


def test_learning_command(tmp_path, capsys):
    for package in ("cvxpy", "ecos"):
        pytest.importorskip(package)
    out = tmp_path / "learning.json"
    assert run_command(learning, "--quick", "--out", out) == 0
    content = read(out, tmp_path)
    assert content["usual_loop"]["relative_gap_in_h"] < 1e-3  # the same iterates on both sides
    assert [row["samples"] for row in content["growth"]["rows"]] == [50, 100]
    assert all(row["unsolved"] == 0 for row in content["growth"]["rows"])
    assert [row["inner_steps"] for row in content["inner_steps"]] == [1, 2]
    out = capsys.readouterr().out
    for words in ("CVXPY + ECOS", "peak MiB", "Warm starts", "Updates for each projection"):
        assert words in out


def test_noise_command(tmp_path, capsys):
    out, page = tmp_path / "noise.json", tmp_path / "noise.md"
    assert run_command(noise, "--quick", "--jobs", "1", "--out", out, "--page", page) == 0
    content = read(out, tmp_path)
    assert {row["kind"] for row in content["results"]} == {"noisy", "paths"}
    for row in content["results"]:
        found = row["found"]
        assert {names.OURS, names.PFYL} <= set(found)
        assert all(0 <= one["regret"] < 200 for one in found.values())
        if row["kind"] == "noisy":  # nobody beats the expected cost by much, on 20 samples
            assert found[names.FLOOR]["regret"] < found[names.OURS]["regret"] + 5
    assert "model that is chosen" in page.read_text("utf-8")
    assert "Ours and PFYL" in capsys.readouterr().out


def test_decisions_are_spoiled_as_the_setting_says():
    plain = settings.Setting("x", "noisy", noise=0.5, samples=60)
    whole = settings.draw(plain, 7, 10)
    other = settings.draw(replace(plain, random=0.25), 7, 10)
    costs, best = whole.train.costs, (whole.train.costs * whole.train.decisions).sum(axis=1)
    changed = (other.train.decisions != whole.train.decisions).any(axis=1)
    assert 0 < changed.sum() <= 15  # some random costs lead to the same path
    np.testing.assert_array_equal(other.test.decisions, whole.test.decisions)
    worse = settings.draw(replace(plain, suboptimal=0.05), 7, 10).train.decisions
    extra = (costs * worse).sum(axis=1) / best - 1
    assert (extra > 1e-6).any()
    assert extra.max() <= 0.05 + 1e-9
    expected = settings.mean_costs(plain, 7, 10)
    assert np.abs(whole.test.costs / expected - 1).max() <= 0.5 + 1e-9


def test_minimum_command(tmp_path, capsys):
    out, page = tmp_path / "minimum.json", tmp_path / "pocs.md"
    assert run_command(minimum, "--quick", "--out", out, "--page", page) == 0
    content = read(out, tmp_path)
    for row in content["results"]:
        assert row["converged"]
        assert row["relative_gap"] <= 1e-6
        ours, pocs = row["curves"]["L-BFGS"], row["curves"]["POCS"]
        assert ours["gap"][0] == pytest.approx(pocs["gap"][0], rel=1e-3)  # from the same start
        assert min(ours["gap"]) < 1e-5 < min(pocs["gap"])
        assert np.all(np.diff(ours["projections"]) > 0)
        assert row["at_the_end"]["times_fewer"] > 1
    assert [line["samples"] for line in content["large"]] == [200, 400]
    assert (tmp_path / "images" / "pocs.png").stat().st_size > 10_000
    assert "Compared with POCS" in capsys.readouterr().out


def test_plans_of_the_minimum_mix_units():
    for case in (cases.feed(20, 20), cases.factory(20, 20)):
        A = np.abs(np.asarray(case.problem.A_ub))
        assert A.max() / A[A > 0].min() > 100
        assert len(np.unique(case.decisions.round(6), axis=0)) > 3


def test_a_page_shows_the_table_and_where_it_comes_from():
    table = tables.Table("Title", ["name", "figure"], [["a", "1.0"]], note="A note.")
    content = {
        "command": "revealed bench x",
        "when": "2025-01-02T03:04:05",
        "hardware": {"processor": "some", "cores": 2},
        "versions": {"python": "3.11"},
    }
    words = "First " + "word " * 40 + "\n\n- one\n- two"
    text = Page("Page", words, [table]).markdown(content)
    assert "| name | figure |\n| --- | ---: |\n| a | 1.0 |\n\nA note." in text
    assert "`revealed bench x`" in text
    assert "\n- one\n- two\n" in text
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize("value, holds", [(0.9, True), (1.0, True), (1.1, False)])
def test_targets(value, holds):
    assert tables.target("name", value, 1.0)["holds"] is holds
    assert tables.target("name", -value, -1.0, at_least=True)["holds"] is holds
