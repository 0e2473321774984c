"""`revealed report`: one self-contained page that says what the model does and does not know."""

import json
import re

import numpy as np
import pytest

from browser import FOUND, MISSING, Browser
from revealed.cli import main
from revealed.cli.plans.catalogue import from_catalogue
from revealed.cli.report import gather, render
from revealed.cli.store import load_model
from revealed.cli.tables import write_table

CALL = "grid_shortest_path(3, 3, directed='right-down')"
HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model of noisy decisions, with a feature whose name is a script."""
    folder = tmp_path_factory.mktemp("report")
    rng, plan = np.random.default_rng(4), from_catalogue(CALL)
    Z = rng.standard_normal((120, 2))
    costs = 4 + Z @ rng.standard_normal((2, plan.problem.n_variables))
    X = plan.problem.solve(costs * rng.uniform(0.7, 1.3, costs.shape)).x
    write_table(folder / "c.csv", ["rain", HOSTILE], Z)
    write_table(folder / "d.csv", plan.variables, np.asarray(X))
    tables = ["--contexts", str(folder / "c.csv"), "--decisions", str(folder / "d.csv")]
    for out, keep in (("model", "500"), ("empty", "0")):
        chosen = ["--model", "linear", "--ridge", "0.1", "--keep", keep, "--out", str(folder / out)]
        assert main(["fit", "--problem", CALL, *tables, *chosen]) == 0
    return folder


@pytest.fixture(scope="module")
def page(folder):
    assert main(["report", str(folder / "model"), "--out", str(folder / "report.html")]) == 0
    return (folder / "report.html").read_text("utf-8")


def test_the_page_loads_nothing_and_runs_nothing(page):
    assert "<script" not in page
    assert not re.search(r'(src|href)="(?!#)', page)
    assert "url(" not in page
    assert "&lt;script&gt;" in page


def test_figures_are_those_of_the_model(folder, page):
    training = load_model(folder / "model").training
    share = f"{round(100 * training['held']['repeated_share'])}%"
    assert f"<b>{share}</b><span>of new decisions repeated exactly" in page
    assert "Always the most frequent decision" in page
    assert "With probability at least 0.8" in page or "Vacuous" in page


def test_every_miss_has_a_reason(folder):
    model = load_model(folder / "model")
    content = gather(model, model.samples)
    assert content.misses
    for miss in content.misses:
        assert "would be the best decision if" in miss.why
        assert miss.saving > 0
    wrong = sum(int((~part.as_good).sum()) for part in (content.seen, content.held))
    assert content.n_missed == wrong
    assert render(content).count("<tr>") == 1 + len(content.misses)


def test_effects_leave_out_what_no_decision_tells(folder):
    model = load_model(folder / "model")
    content = gather(model, model.samples)
    assert {effect.name for effect in content.effects} == {"rain", HOSTILE}
    shifted = model.coef + model.plan.problem.eq_rows.matrix().sum(axis=0)[:, None]
    vars(model)["coef"] = shifted
    again = gather(model, model.samples)
    sizes = [[effect.size for effect in each.effects] for each in (content, again)]
    assert sizes[0] == pytest.approx(sizes[1])


def test_entries_that_never_change_are_named_rightly(folder):
    model = load_model(folder / "model")
    content = gather(model, model.samples)
    taken = model.samples.decisions
    still = {model.plan.variables[j] for j in np.flatnonzero(np.ptp(taken, axis=0) == 0)}
    named = {model.plan.variables[int(j)] for j in content.known.still}
    assert named <= still
    assert all(name in render(content) for name in named)


def test_other_tables_may_be_reported_on(folder, capsys):
    tables = ["--contexts", str(folder / "c.csv"), "--decisions", str(folder / "d.csv")]
    out = ["--out", str(folder / "other.html"), "--json"]
    capsys.readouterr()
    assert main(["report", str(folder / "empty"), *tables, *out]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["samples"] == 120
    assert told["seen"] is None


def test_what_cannot_be_reported_is_said(folder, capsys):
    assert main(["report", str(folder / "empty")]) == 2
    assert "holds no samples" in capsys.readouterr().err
    assert main(["report", str(folder / "model"), "--out", "report.pdf"]) == 2
    assert "--out must end in .html" in capsys.readouterr().err


@pytest.mark.skipif(FOUND is None, reason=MISSING)
@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_wider_than_the_window(folder, page, width):
    with Browser() as browser:
        browser.open(folder / "report.html", width=width, height=900)
        assert browser.run("document.documentElement.scrollWidth") <= width
        assert browser.complaints() == []
