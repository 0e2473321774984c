"""Every figure of the paper is one of the committed results."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from revealed_experiments.bench.projection.page import headline

ROOT = Path(__file__).resolve().parents[2]
PAPER = " ".join((ROOT / "paper/paper.md").read_text("utf-8").split())


def load(name):
    return json.loads((ROOT / f"experiments/results/{name}.json").read_text("utf-8"))


def quoted(pattern):
    return [float(x.replace(",", "")) for x in re.search(pattern, PAPER).groups()]


def test_citations_are_in_the_bibliography():
    keys = set(re.findall(r"@(\w+\d{4})", PAPER))
    known = set(re.findall(r"^@\w+\{(\w+),", (ROOT / "paper/paper.bib").read_text("utf-8"), re.M))
    assert keys == known


def test_projection_times_are_those_of_the_benchmark():
    told = headline(load("projection"))
    for part in re.search(
        r"takes (\d+ µs) from.*? ([\d,]+x) faster than the route", PAPER
    ).groups():
        assert part in told


def test_routes_and_noise_are_those_of_the_runs():
    scores, noise = load("routes")["scores"], load("noise")["results"]
    found = quoted(r"repeat ([\d.]+)% of 4,893 .*? repeats ([\d.]+)%")
    kinds = ("ours", "recursive logit")
    assert found == [round(100 * scores[name]["exact"]["mean"], 1) for name in kinds]
    names = ("ours", "PFYL", "SPO+ (true costs)", "least squares (true costs)")
    runs = [r["found"] for r in noise if r["setting"] == "degree 4"]
    expected = [np.mean([run[name]["regret"] for run in runs]) for name in names]
    found = quoted(r"regret is ([\d.]+)% .*? ([\d.]+)%, and .*? ([\d.]+)% and regression ([\d.]+)%")
    assert found == pytest.approx(expected, abs=0.0051)


def test_coverage_is_that_of_the_splits():
    kinds = load("conformal")["kinds"].values()
    shares = [100 * told["0.9"]["coverage"] for told in kinds]
    assert {told["0.9"]["splits"] for told in kinds} == {200}
    assert max(abs(share - 90) for share in shares) < 1.0
    found = quoted(r"level 0.9 cover ([\d.]+)% to ([\d.]+)%")
    assert found == [round(min(shares), 1), round(max(shares), 1)]
    for told in kinds:
        assert abs(told["0.8"]["coverage"] - 0.8) < 0.01


def test_projections_saved_are_those_of_the_page():
    page = " ".join((ROOT / "docs/pocs.md").read_text("utf-8").split())
    part = re.search(r"\d+ to \d+ times fewer projections", PAPER).group()
    assert part in page
