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
from revealed_experiments.report.verdicts import FAILS, HOLDS, OPEN, interval, set_beside

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
    assert markup.count("✓ holds") == 2 * len(found) == 16  # in the list and on the card


@pytest.mark.parametrize(
    "part, label, level, words",
    [
        ("paper path", "MOM, true basis", 0.5, "lower test estimate loss"),
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


def test_one_rival_that_is_surely_ahead_settles_a_claim_about_several(tmp_path):
    """Even if others are missing; but a rival with fewer seeds than ours settles nothing."""
    labels = ("ours, ERM", "ST", "MOM, true basis")
    runs = [r for r in RUNS if r["config"]["part"] == "paper path" and r["config"]["step"] == 0.1]
    runs = [r for r in runs if r["config"]["label"] in labels]
    ahead = [
        make_run(r["config"], level=0.5) if r["config"]["label"] == "MOM, true basis" else r
        for r in runs
    ]
    lower = next(iter(verdicts(write_runs(tmp_path / "all", ahead)).items()))
    assert "lower test estimate loss" in lower[0]
    assert lower[1] == FAILS
    fewer = [r for r in ahead if (r["config"]["label"], r["config"]["seed"]) != (labels[2], 4)]
    assert next(iter(verdicts(write_runs(tmp_path / "few", fewer)).values())) == OPEN


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
        for label in METHODS
        for config in (make_config("cave degree 4", label, s) for s in range(42, 52))
    ]
    claims = judge(study_of(write_runs(tmp_path, runs)))
    held = [each.passes for claim in claims for each in claim.against]
    mean_holds = [t["holds"] for t in targets(chosen(runs))]
    for surely, on_average in zip(held, mean_holds, strict=True):
        assert surely is None or surely == on_average


# --- verdicts ------------------------------------------------------------------------------------


def pair(tmp_path, gaps):
    """Two methods whose test losses differ by these, seed by seed."""
    runs = []
    for seed, gap in enumerate(gaps):
        for label, level in (("ours, ERM", 1.0 + gap), ("ST", 1.0)):
            run = make_run(make_config("paper path", label, seed))
            run["final"]["test"] = dict.fromkeys(run["final"]["test"], level)
            runs.append(run)
    study = study_of(write_runs(tmp_path, runs))
    found = {entry.runs[0].label: entry for entry in study.of("paper path")}
    return found["ours, ERM"], found["ST"]


@pytest.mark.parametrize(
    "gaps, share, both_sides, passes",
    [
        ([-0.2, -0.3, -0.1, -0.2], 0.0, False, True),
        ([0.2, 0.3, 0.1, 0.2], 0.0, False, False),
        ([0.2, -0.3, 0.1, -0.2], 0.0, False, None),
        ([0.01, 0.02, 0.03, 0.02], 0.1, False, True),
        ([0.01, 0.02, 0.03, 0.02], 0.1, True, True),
        ([0.2, 0.3, 0.1, 0.2], 0.1, True, None),
        ([0.31, 0.3, 0.29, 0.3], 0.1, True, False),
        ([-0.31, -0.3, -0.29, -0.3], 0.1, True, False),
        ([0.0, 0.0, 0.0], 0.0, False, True),
    ],
)
def test_a_verdict_needs_an_interval_on_one_side(tmp_path, gaps, share, both_sides, passes):
    ours, other = pair(tmp_path, gaps)
    found = set_beside(ours, other, ("test", "estimate_loss"), share, both_sides=both_sides)
    assert found.passes is passes


def test_intervals_cover_the_mean_as_often_as_they_say():
    rng, hits = np.random.default_rng(0), 0
    for _ in range(2000):
        low, high = interval(rng.standard_normal(5) + 3.0)
        hits += low <= 3.0 <= high
    assert hits / 2000 == pytest.approx(0.95, abs=4 * np.sqrt(0.95 * 0.05 / 2000))


def test_many_fresh_seeds_decide_where_there_are_some(tmp_path):
    runs = [run for run in RUNS if run["config"]["part"] == "paper path"]
    more = [
        make_run(make_config("seeds path", label, seed))
        for label in METHODS
        for seed in range(100, 130)
    ]
    claims = judge(study_of(write_runs(tmp_path, [*runs, *more])))
    assert {len(each.gaps) for claim in claims for each in claim.against} == {30}
    assert all("30 fresh seeds" in claim.sentence for claim in claims)
    assert any("On the paper's five seeds" in r for claim in claims for r in claim.remarks)


@pytest.mark.parametrize("aligned", [True, False])
def test_gamma_is_held_against_the_estimate_loss(tmp_path, aligned):
    runs = []
    for k, label in enumerate(METHODS):
        for seed in range(5):
            run = make_run(make_config("paper path", label, seed), level=1.0 + k)
            for name in ("gamma", "gamma_relative"):
                run["final"]["test"][name] = 1.0 + k if aligned else 20.0 - k
            runs.append(run)
    claims = judge(study_of(write_runs(tmp_path, runs)))
    (found,) = [claim for claim in claims if "footnote" in claim.sentence]
    assert found.verdict == (HOLDS if aligned else FAILS)
