"""The claims on the report's page: judged by the runs, and told whatever comes out."""

import numpy as np
import pytest
from report_page import make_report
from report_runs import METHODS, SWEEP, make_config, make_run, whole_sweep, write_runs

from revealed_experiments.bench.sweeps.choose import chosen
from revealed_experiments.bench.synthetic.tables import targets
from revealed_experiments.report.claims import judge
from revealed_experiments.report.reading import read_folder
from revealed_experiments.report.study import gather
from revealed_experiments.report.verdicts import FAILS, HOLDS, OPEN

RUNS = whole_sweep(paper_seeds=5, cave_seeds=10)
"""Made so that every claim holds."""


@pytest.fixture(autouse=True)
def no_files(monkeypatch):
    """Figures go into the page only: the files take most of the time."""
    monkeypatch.setattr(
        "revealed_experiments.report.drawing.Gallery.save", lambda self, name, drawn: ""
    )


def study_of(folder):
    return gather(read_folder(folder), [])


# --- claims --------------------------------------------------------------------------------------


def verdicts(folder):
    return {claim.sentence: claim.verdict for claim in judge(study_of(folder))}


def test_claims_hold_on_runs_made_to_hold(tmp_path):
    code, markup = make_report(write_runs(tmp_path, RUNS))
    found = verdicts(tmp_path)
    assert set(found.values()) == {HOLDS}
    assert code == 0
    assert markup.count("✓ holds") == len(found) == 8


@pytest.mark.parametrize(
    "part, label, level, words",
    [
        ("paper path", "MOM", 0.5, "lower test estimate loss"),
        ("paper knapsack", "SPO+", 0.5, "comparable with SPO+"),
        ("paper path", "ours, POCS", 1.5, "differ negligibly"),
        ("cave degree 6", "NCE", 0.5, "at or below the best"),
    ],
)
def test_a_claim_that_fails_is_said_to_fail(tmp_path, part, label, level, words):
    runs = [
        make_run(run["config"], level=level)
        if (run["config"]["part"], run["config"]["label"]) == (part, label)
        else run
        for run in RUNS
        if run["config"]["part"] == part
    ]
    code, markup = make_report(write_runs(tmp_path, runs))
    fallen = [sentence for sentence, verdict in verdicts(tmp_path).items() if verdict == FAILS]
    assert len(fallen) == 1
    assert words in fallen[0]
    assert code == 1
    assert "✗ does not hold" in markup


@pytest.mark.parametrize("part", ["paper path", "cave degree 4"])
@pytest.mark.parametrize("lack", ["seeds", "rival", "ours"])
def test_a_claim_is_open_while_runs_are_missing(tmp_path, part, lack):
    dropped = {
        "seeds": lambda config: config["seed"] in (4, 51),
        "rival": lambda config: config["label"] in ("BB", "SPO+"),
        "ours": lambda config: config["label"].startswith("ours"),
    }[lack]
    runs = [r for r in RUNS if r["config"]["part"] == part and not dropped(r["config"])]
    found = verdicts(write_runs(tmp_path, runs))
    expected = {OPEN, HOLDS} if lack == "rival" and part == "paper path" else {OPEN}
    assert set(found.values()) == expected
    assert make_report(tmp_path)[0] == 0


def test_a_quick_sweep_supports_no_claim(tmp_path):
    runs = [run for run in RUNS if run["config"]["part"] == "paper path"]
    folder = write_runs(tmp_path, runs, {**SWEEP, "settings": {"quick": True}})
    assert set(verdicts(folder).values()) == {OPEN}
    assert "A quick sweep: few candidates" in make_report(folder)[1]


@pytest.mark.parametrize("seed", range(6))
def test_claims_and_targets_of_the_benchmark_agree(tmp_path, seed):
    """Two accounts of the same runs, written apart, must not tell two stories."""
    rng = np.random.default_rng(seed)
    runs = [
        make_run(config, level=rng.uniform(0.9, 1.2) * (1 + 0.05 * rng.standard_normal()))
        for part, seeds in (("paper path", range(5)), ("cave degree 4", range(42, 52)))
        for label in METHODS
        for config in (make_config(part, label, s) for s in seeds)
    ]
    claims = judge(study_of(write_runs(tmp_path, runs)))
    held = [each.passes for claim in claims for each in claim.against]
    assert sorted(held) == sorted(t["holds"] for t in targets(chosen(runs)))
