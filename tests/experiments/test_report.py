"""`revealed bench report`: what the page says is what the runs say."""

import base64
import hashlib
import json
import re
from itertools import combinations
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
from report_page import Page, make_report
from report_runs import (
    MADE_BY,
    METHODS,
    SWEEP,
    make_config,
    make_run,
    one_part,
    whole_sweep,
    write_runs,
)

from revealed_experiments.bench.published import CAVE_REGRET, PAPER_TABLE
from revealed_experiments.report import palette, sections
from revealed_experiments.report.claims import judge
from revealed_experiments.report.elements import Html, slug, tag
from revealed_experiments.report.reading import read_folder
from revealed_experiments.report.study import gather
from revealed_experiments.report.verdicts import FAILS, HOLDS


def number(text):
    """The first number in a cell."""
    return float(re.search(r"[−+-]?[\d.,]+", text)[0].replace("−", "-").replace(",", ""))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A whole sweep: its runs, its folder, its page."""
    runs = whole_sweep(paper_seeds=5, cave_seeds=10)
    folder = write_runs(tmp_path_factory.mktemp("sweep"), runs)
    code, markup = make_report(folder)
    return SimpleNamespace(runs=runs, folder=folder, code=code, markup=markup, page=Page(markup))


@pytest.fixture
def no_files(monkeypatch):
    """Figures go into the page only: the files take most of the time."""
    monkeypatch.setattr(
        "revealed_experiments.report.drawing.Gallery.save", lambda self, name, drawn: ""
    )


def values_of(runs, part, label, split, measure):
    chosen_step = 0.1
    return np.array(
        [
            run["final"][split][measure]
            for run in runs
            if (run["config"]["part"], run["config"]["label"]) == (part, label)
            and run["config"]["step"] == chosen_step
        ]
    )


# --- the page as a document ----------------------------------------------------------------------


def test_nothing_outside_is_asked_for(made):
    for element in made.page.elements:
        for key, value in element.attributes.items():
            assert key not in ("src", "srcset", "action", "data", "poster")
            if key in ("href", "xlink:href"):
                assert value.startswith("#")
    styles = [e.text for e in made.page.named("style")]
    assert not re.search(r"@import|url\((?!#)", " ".join(styles) + made.markup)


def test_policy_allows_this_script_and_no_other(made):
    (script,) = made.page.named("script")
    (policy,) = made.page.named("meta", **{"http-equiv": "Content-Security-Policy"})
    digest = base64.b64encode(hashlib.sha256(script.text.encode()).digest()).decode()
    assert "default-src 'none'" in policy.attributes["content"]
    assert f"script-src 'sha256-{digest}';" in policy.attributes["content"]


def test_ids_are_unique_and_references_lead_somewhere(made):
    ids = [e.attributes["id"] for e in made.page.elements if "id" in e.attributes]
    assert len(ids) == len(set(ids))
    referred = re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', made.markup)
    assert referred
    assert {a or b for a, b in referred} <= set(ids)


def test_every_figure_is_also_a_file(made):
    figures = made.page.named("figure")
    assert len(figures) == 13
    for figure in figures:
        path = made.folder / "figures" / figure.attributes["id"]
        assert path.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
        ElementTree.fromstring(path.with_suffix(".svg").read_text("utf-8"))


def test_every_figure_and_table_has_its_command(made):
    boxes = [e for e in made.page.named("div") if e.attributes.get("class") == "command"]
    for figure in made.page.named("figure"):
        within = [box.text for box in boxes if figure in box.inside]
        assert len(within) == 1
        assert MADE_BY in within[0]
        assert "revealed bench report" in within[0]
    assert all(box.text.endswith("Copy") for box in boxes)


def test_text_in_figures_is_text(made):
    words = {e.text for e in made.page.named("text")}
    assert {"ours, ERM", "SPO+", "Test estimate loss", "epoch"} <= words


def test_no_path_of_this_machine(made):
    assert str(made.folder.parent) not in made.markup


def test_same_runs_same_bytes(tmp_path):
    folder = write_runs(tmp_path, one_part(seeds=(0, 1)))
    path = folder / "figures" / "paper-path-curves.svg"
    once, drawn = make_report(folder)[1], path.read_bytes()
    assert make_report(folder)[1] == once
    assert path.read_bytes() == drawn


def test_packed_runs_give_the_same_page(tmp_path, no_files):
    runs = one_part(seeds=(0, 1))
    single, packed = write_runs(tmp_path / "a", runs), tmp_path / "b"
    packed.mkdir()
    lines = [json.dumps(run) for run in runs]
    (packed / "runs.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    (packed / "sweep.json").write_bytes((single / "sweep.json").read_bytes())
    expected = make_report(single)[1]
    assert make_report(packed)[1].replace("report b", "report a") == expected


def test_page_goes_where_it_is_told_with_its_figures(tmp_path):
    folder = write_runs(tmp_path / "runs here", one_part())
    out = tmp_path / "pages" / "page.html"
    markup = make_report(folder, "--out", out)[1]
    assert "<figure" in markup
    assert (out.parent / "figures" / "paper-path-ranking.png").is_file()
    assert not (folder / "report.html").exists()


# --- what it says --------------------------------------------------------------------------------


@pytest.mark.parametrize("split", ["train", "test"])
@pytest.mark.parametrize("measure", ["decision_loss", "estimate_loss"])
def test_table_has_mean_and_deviation_of_the_chosen_runs(made, split, measure):
    rows = made.page.rows("The paper's path problem: losses when training ends")
    assert {row["method"] for row in rows} == set(METHODS)
    for row in rows:
        values = values_of(made.runs, "paper path", row["method"], split, measure)
        mean, sd = row[f"{measure.replace('_', ' ')} {split}"].split(" ± ")
        assert number(mean) == pytest.approx(values.mean(), abs=0.006)
        assert number(sd) == pytest.approx(values.std(ddof=1), abs=0.006)
        assert row["needs true costs"] == ("yes" if METHODS[row["method"]][1] else "no")
        assert row["seeds"] == "5"


def test_only_ours_are_marked_as_ours(made):
    marked = {
        e.inside[-1].attributes.get("class") == "ours": e.text.startswith("ours")
        for e in made.page.named("th", scope="row")
        if not e.text.startswith(("margin", "ERM"))
    }
    assert marked[True]


def test_curves_are_those_of_the_runs(made):
    study = gather(read_folder(made.folder), [])
    entry = next(e for e in study.of("paper path") if e.label == "ST")
    epochs, values = entry.curve("test", "decision_loss")
    runs = [r for r in made.runs if r["config"] in [run.config for run in entry.runs]]
    assert epochs.tolist() == [row["epoch"] for row in runs[0]["epochs"]]
    expected = [[row["test"]["decision_loss"] for row in run["epochs"]] for run in runs]
    np.testing.assert_array_equal(values, expected)


def test_margins_stand_beside_the_papers(made):
    for problem, kind in (("path", "sp"), ("knapsack", "knapsack")):
        rows = made.page.rows(f"Margins on the {problem} problem: losses when training ends")
        assert [float(row["margin"]) for row in rows] == [10, 1, 0.1, 0.01]
        for row in rows:
            paper = PAPER_TABLE[kind][float(row["margin"])]
            for split, value in zip(("train", "test"), paper, strict=True):
                assert float(row[f"{split} decision loss paper"]) == pytest.approx(value, abs=0.005)


def test_yardstick_stands_beside_the_published_and_pairs_seeds(made):
    rows = made.page.rows("CaVE's paths, degree 6: relative regret on test data")
    ours = values_of(made.runs, "cave degree 6", "ours, smoothed", "test", "relative_regret")
    for row in rows:
        if row["method"] == "ours, smoothed":
            continue
        other = values_of(made.runs, "cave degree 6", row["method"], "test", "relative_regret")
        gap = 100 * (ours - other)
        assert number(row["ours less this, points"]) == pytest.approx(gap.mean(), abs=0.006)
        assert number(row["s.e."]) == pytest.approx(gap.std(ddof=1) / np.sqrt(10), abs=0.006)
        assert row["seeds ours is lower"] == f"{(gap < 0).sum()} of 10"
    published = {row["method"]: row["published, %"] for row in rows}
    assert float(published["PFYL"]) == CAVE_REGRET[6]["PFYL"]
    assert float(published["SPO+"]) == CAVE_REGRET[6]["SPO+ (true costs)"]
    assert published["ST"] == "–"


def test_candidates_are_counted(made):
    rows = {row["method"]: row for row in made.page.rows("Candidates tried")}
    assert rows["BB"]["paper path"] == "3"  # one of them diverged
    assert rows["BB"]["paper knapsack"] == rows["SPO+"]["cave degree 4"] == "2"
    assert rows["QPTL"]["cave degree 4"] == "–"


def test_runs_that_diverged_are_listed(made):
    (row,) = made.page.rows("Runs that did not finish")
    assert (row["method"], row["steps"], row["status"]) == ("BB", "100", "diverged")
    assert (row["seeds"], row["runs"]) == ("0", "1")
    assert row["what it said"] == "ValueError: costs of 1e301"


def test_runs_that_ended_alike_are_told_together(tmp_path, no_files):
    runs = [
        make_run(make_config("paper path", "BB", k % 3, step=step), status="diverged", message=said)
        for step in (10.0, 100.0)
        for k, said in enumerate(["sample 1", "sample 20", "sample 300", "no memory"])
    ]
    page = Page(make_report(write_runs(tmp_path, runs))[1])
    one, other = page.rows("Runs that did not finish")
    assert (one["steps"], one["seeds"], one["runs"]) == ("100, 10", "0, 1, 2", "6")
    assert one["what it said"] == "sample 1 (and the like)"
    assert (other["what it said"], other["runs"]) == ("no memory", "2")


def test_machine_versions_and_time_are_told(made):
    told = {e.text for e in made.page.elements if e.name in ("dt", "dd")}
    assert {"processor", "Imaginary 9000", "python", "3.11.7"} <= told
    rows = {row["method"]: row for row in made.page.rows("Training time of an epoch")}
    assert rows["ST"]["paper path epoch"] == "5.06 ms"  # 1.5⁴ ms


# --- parts ---------------------------------------------------------------------------------------


def test_a_section_is_one_module_with_title_and_build(tmp_path, no_files, monkeypatch):
    extra = SimpleNamespace(TITLE="Added", build=lambda study, gallery: Html("<p>here</p>"))
    silent = SimpleNamespace(TITLE="Silent", build=lambda study, gallery: None)
    monkeypatch.setattr(
        "revealed_experiments.report.page.SECTIONS", (*sections.SECTIONS, extra, silent)
    )
    page = Page(make_report(write_runs(tmp_path, one_part()))[1])
    titles = [e.text for e in page.named("h2")]
    assert titles[-1] == "Added"
    assert "Silent" not in titles


@pytest.mark.parametrize("experiment, rows", [("synthetic", False), ("vision", True)])
def test_departures_are_a_table_for_pictures_and_none_for_synthetic_data(
    tmp_path, no_files, experiment, rows
):
    folder = write_runs(tmp_path, one_part(), {**SWEEP, "experiment": experiment})
    page = Page(make_report(folder)[1])
    assert "Departures from the paper" in [e.text for e in page.named("h2")]
    markup = (folder / "report.html").read_text("utf-8")
    assert ("ResNet-18, edge costs" in markup) is rows
    if not rows:
        departures = {row["departure"] for row in page.rows("Protocol of appendix C")}
        assert departures == {"none"}


def test_the_board_has_every_verdict_and_the_figures_it_hangs_on(made):
    claims = judge(gather(read_folder(made.folder), []))
    (findings,) = made.page.named("h2", id="findings")
    board = [e for e in made.page.named("td") if "data-problem" in e.attributes]
    assert made.page.elements.index(findings) < made.page.elements.index(board[0])
    assert len(board) == len(claims)
    for claim in claims:
        deciding = claim.deciding
        assert deciding.passes is {HOLDS: True, FAILS: False}.get(claim.verdict)
        assert any(deciding.other in cell.text for cell in board), claim.sentence


def test_paired_differences_are_those_of_the_runs(made):
    caption = "The paper's path problem: paired differences over 5 seeds"
    rows = {row["method"]: row for row in made.page.rows(caption)}
    ours, theirs = (
        values_of(made.runs, "paper path", label, "test", "estimate_loss")
        for label in ("ours, ERM", "ST")
    )
    told = rows["ST"]
    assert number(told["ERM by Armijo less this difference"]) == pytest.approx(
        (ours - theirs).mean(), abs=0.006
    )
    assert told["ERM by Armijo less this ours is"] == "lower"
    assert rows["ours, ERM"]["ERM by Armijo less this ours is"] == "–"


def test_times_on_the_papers_route_are_shown_where_they_were_taken(tmp_path, no_files):
    folder = write_runs(tmp_path, one_part())
    assert "Time on the paper" not in make_report(folder)[1]
    rows = [
        {"n": n, "samples": samples, "ours": 1e-3, "ECOS": 0.5, "OSQP": 0.25}
        for n, samples in ((12, 100), (40, 100), (40, 1000))
    ]
    content = {"command": "python timed.py", "rows": rows}
    (folder / "paper_route.json").write_text(json.dumps(content), "utf-8")
    page = Page(make_report(folder)[1])
    assert "Time on the paper's route" in [e.text for e in page.named("h2")]
    row = page.rows("Time of an epoch")[1]
    assert (row["ours"], row["CVXPY + ECOS"], row["CVXPY + ECOS over ours"]) == (
        "1.00 ms",
        "500 ms",
        "500×",
    )


# Machado, Oliveira and Fernandes (2009), complete red and green blindness, on linear RGB.
EYES = {
    "normal": np.eye(3),
    "red-blind": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "green-blind": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def linear_rgb(color):
    c = np.array([int(color[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def cielab(rgb):
    share = TO_XYZ @ rgb / TO_XYZ.sum(axis=1)
    x, y, z = np.where(share > 0.008856, np.cbrt(share), 7.787 * share + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("eyes", EYES)
def test_methods_can_be_told_apart_by_any_eye(eyes, dark):
    colors = [*palette.OURS.values(), *palette.RIVALS.values()]
    colors = [palette.DARK[color] if dark else color for color in colors]
    seen = [cielab(np.clip(EYES[eyes] @ linear_rgb(color), 0, 1)) for color in colors]
    gaps = [np.linalg.norm(a - b) for a, b in combinations(seen, 2)]
    assert min(gaps) >= 10


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_color_stands_out_from_the_paper(dark):
    def light(color):
        return TO_XYZ[1] @ linear_rgb(palette.DARK[color] if dark else color) + 0.05

    for color in set(palette.DARK) - {palette.PAPER, palette.RULE}:
        pair = sorted([light(color), light(palette.PAPER)])
        assert pair[1] / pair[0] >= 3, color


def test_tag_escapes_all_but_markup():
    assert (
        tag("p", "<b>", Html("<i>x</i>"), title='"&')
        == '<p title="&quot;&amp;">&lt;b&gt;<i>x</i></p>'
    )
    assert tag("p", None, hidden=True, lang=None, class_="a") == '<p hidden class="a"></p>'


@pytest.mark.parametrize(
    "name, expected", [("CaVE+", "cave-plus"), ("a  B/c", "a-b-c"), ("日本", "x")]
)
def test_slug(name, expected):
    assert slug(name) == expected
