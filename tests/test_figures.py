"""Figures in prose and in tables typed by hand are those of the committed results.

Pages that commands write, and parts made when pages are built, hold no such figures; of the former
it is tested that they belong to the results beside which they lie.
"""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from revealed.bench.epochs import command as epochs
from revealed.bench.epochs import pyepo
from revealed.bench.learning import margins, noise
from revealed.bench.portfolio import command as portfolio
from revealed.bench.projection.page import page
from revealed.bench.routes import page as routes
from revealed.bench.steps import command as steps

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks/results"
BENCHMARKS = (ROOT / "benchmarks/README.md").read_text("utf-8")
WRITTEN = {
    "margins": (margins.make_page, "docs/margins.md"),
    "noise": (noise.make_page, "docs/noise.md"),
    "portfolio": (portfolio.make_page, "docs/portfolio.md"),
    "routes": (routes.make_page, "docs/routes.md"),
    "epochs": (epochs.make_page, "benchmarks/results/epochs.md"),
    "pyepo": (pyepo.make_page, "benchmarks/results/pyepo.md"),
    "steps_cpu": (steps.make_page, "benchmarks/results/steps_cpu.md"),
    "steps_cuda": (steps.make_page, "benchmarks/results/steps_cuda.md"),
}
"""Pages that commands write, each made of the results of its name."""


def load(name):
    return json.loads((RESULTS / f"{name}.json").read_text("utf-8"))


def told(text):
    """A page without its line breaks."""
    return " ".join((ROOT / text).read_text("utf-8").split())


@pytest.mark.parametrize("name", WRITTEN)
def test_pages_are_what_their_commands_make_of_the_results_today(name):
    """A page that someone edited, or that an older command wrote, says something else."""
    make_page, path = WRITTEN[name]
    content = load(name)
    assert (ROOT / path).read_text("utf-8") == make_page(content).markdown(content)


def test_the_page_of_the_projection_is_made_from_its_results():
    assert (RESULTS / "projection.md").read_text("utf-8") == page(load("projection"))


def test_the_table_of_the_gpu_is_that_of_the_run():
    lines = {
        (line["problem"], line["regime"], line["precision"]): line
        for line in load("gpu_projection")["lines"]
    }
    table = BENCHMARKS.partition("## Projection on a GPU")[2].partition("**The floor.**")[0]
    rows = [
        [cell.strip() for cell in row.split("|")[1:-1]] for row in table.splitlines() if "|" in row
    ]
    problem = ""
    for first, regime, per_second, floor, hundred, single in rows[2:]:
        problem = first or problem
        double, short = (lines.pop((problem, regime, p)) for p in ("float64", "float32"))
        assert per_second == f"{round(double['projections_per_second'], -3):,.0f}"
        assert single == f"{round(short['projections_per_second'], -3):,.0f}"
        assert floor == f"{double['times_the_floor']:.0f}"
        assert hundred == f"{double['milliseconds_for_100']:.3f}"
        assert max(double["residual_most"], short["residual_most"]) <= 1e-8
    assert not lines


def test_what_is_said_of_imported_models():
    rows = {row["model"]: row for row in load("imports")["rows"]}
    fallen = sorted(row["h"] / row["h_first"] for row in rows.values())
    assert len(rows) == 15
    assert fallen[-1] <= 0.1
    assert fallen[len(rows) // 2] <= 0.01
    assert [name for name, row in rows.items() if row["test"] >= row["ignoring"]] == ["lotfi"]
    assert not any(row["unsolved"] for row in rows.values())
    without = {name: row["no_decision"] for name, row in rows.items() if row["no_decision"]}
    assert without == {"scorpion": 2, "israel": 3, "capri": 1}
    assert "on `scorpion` (2), `israel` (3) and `capri` (1)" in told("docs/importers.md")


def test_decision_losses_are_as_near_to_the_papers_as_is_said():
    apart = max(
        abs(row["ours"][part] - row["reference"][part])
        for row in load("margins")["rows"]
        for part in ("train decision", "test decision")
        if row["margin"] >= 1
    )
    assert re.search(r"\[within 0\.04\]", told("docs/guide/coming_from.md"))
    assert round(apart, 2) == 0.04


def test_results_in_the_readme_are_those_of_the_runs():
    readme = told("README.md")
    scores, noise = load("routes")["scores"], load("noise")["results"]
    for name, words in {
        "ours": r"learns to repeat ([\d.]+)% of 4,893 others",
        "recursive logit": r"recursive logit with the same features repeats ([\d.]+)%",
        "shortest by length": r"the shortest route ([\d.]+)%",
    }.items():
        quoted = float(re.search(words, readme)[1])
        assert quoted == pytest.approx(100 * scores[name]["exact"]["mean"], abs=0.051)
    for name, words in {
        "power 2": r"a regret of ([\d.]+)% without having seen a cost",
        "least squares (true costs)": r"regression on the true costs one of ([\d.]+)%",
    }.items():
        each = [r["regret"][name] for r in noise if (r["kind"], r["degree"]) == ("noise", 4)]
        assert re.search(words, readme)[1] == f"{100 * sum(each) / len(each):.2f}"


def test_every_missed_target_is_spoken_of():
    words = BENCHMARKS.partition("## Targets that are missed")[2]
    for path in [*RESULTS.glob("*.json"), *RESULTS.glob("*/sweep.json")]:
        told = json.loads(path.read_text("utf-8")).get("targets", ())
        missed = [target["name"] for target in told if not target["holds"]]
        name = path.stem if path.parent == RESULTS else path.parent.name.partition("_")[0]
        assert not missed or f"- **`{name}`" in words, missed


def final_on(part, folder="vision"):
    """(5 seeds, 4) test figures of each method."""
    runs = (RESULTS / folder / "runs.jsonl").read_text("utf-8").splitlines()
    found = {}
    for run in map(json.loads, runs):
        if run["config"]["part"] == part:
            test = run["final"]["test"]
            names = ("decision_loss", "estimate_loss", "relative_regret", "optimal")
            found.setdefault(run["config"]["label"], {})[run["config"]["seed"]] = [
                test[name] for name in names
            ]
    assert all(sorted(seeds) == list(range(5)) for seeds in found.values())
    return {label: np.array([seeds[k] for k in range(5)]) for label, seeds in found.items()}


def rows_of(heading):
    table = BENCHMARKS.partition(f"| test, {heading} |")[2].partition("\n\n")[0]
    return [[cell.strip() for cell in row.split("|")[1:-1]] for row in table.splitlines()[2:]]


@pytest.mark.parametrize("part", ["terrain 12x12", "terrain 18x18", "matching 12x12"])
def test_what_is_said_of_pictures(part):
    runs = final_on(part)
    for label, costs, decision, estimate, regret, optimal, *_ in rows_of(part):
        found = runs.pop(label).mean(axis=0)
        assert costs == ("yes" if label == "SPO+" else "")
        assert [decision, estimate] == [f"{value:.2f}" for value in found[:2]]
        assert [regret, optimal] == [f"{100 * found[2]:.2f}%", f"{100 * found[3]:.1f}%"]
    assert not runs


def test_what_is_said_of_views_and_ties():
    one = final_on("terrain 12x12", "vision_one_view")
    for label, *_, without in rows_of("terrain 12x12"):
        assert without == f"{one[label][:, 0].mean():.2f}"
    assert f"it was {100 * one['Ours, robust'][:, 2].mean():.2f}%" in BENCHMARKS
    ties = final_on("terrain 12x12", "vision_ties")["Ours, robust"].mean(axis=0)
    words = f"{100 * ties[3]:.1f}% of test paths are optimal, at a regret of {100 * ties[2]:.2f}%"
    assert words in BENCHMARKS


def test_what_is_said_of_leads_and_lags():
    large, boards = final_on("terrain 18x18"), final_on("matching 12x12")
    leads = [large[name][:, 0] - large["Ours, robust"][:, 0] for name in ("SPO+", "PFYL")]
    told = [f"{lead.mean():.2f} ± {lead.std(ddof=1) / 5**0.5:.2f}" for lead in leads]
    assert f"the lead is {' and '.join(told)} (standard error)" in BENCHMARKS
    lag = [f"{boards[name][:, 0].mean():.1f}" for name in ("SPO+", "Ours, robust")]
    assert f"({lag[0]}, ours {lag[1]})" in BENCHMARKS


def test_steps_on_the_gpu_cost_what_is_said():
    graphs = {
        (row["task"], row["regime"]): row["ratio"]
        for row in load("steps_cuda")["rows"]
        if row["launches"] == "graph"
    }
    assert graphs["terrain 12x12", "early"] < 1.05 < graphs["terrain 12x12", "late"]
    assert "less than 1.05 times one of regression on 12x12 terrain, as a CUDA graph" in BENCHMARKS
    late = [graphs[f"terrain {side}", "late"] for side in ("12x12", "18x18")]
    assert f"{late[0]:.2f}, and {late[1]:.3f} on 18x18" in BENCHMARKS
    cold = max(ratio for (_, regime), ratio in graphs.items() if regime == "late, cold")
    assert f"up to {cold:.2f}" in BENCHMARKS
