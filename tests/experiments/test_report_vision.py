"""The page of the experiment on pictures: claims, curves, tables, times and albums."""

import json
import re

import numpy as np
import pytest
from report_page import Page, make_report
from vision_runs import (
    METHODS,
    make_album,
    vision_config,
    vision_run,
    vision_sweep,
    write_album,
    write_vision,
)

from revealed_experiments.report.claims import judge
from revealed_experiments.report.reading import read_folder
from revealed_experiments.report.study import gather
from revealed_experiments.report.verdicts import FAILS, HOLDS, OPEN
from revealed_experiments.report.vision.albums import agreement, extra_cost, read_albums

FEW = ("Ours", "Ours, robust", "PFYL", "SPO+", "two-stage")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two tasks with some of the methods, with figures and all."""
    folder = tmp_path_factory.mktemp("vision")
    runs = vision_sweep(2, ("terrain 6x6", "matching 4x4"), FEW)
    code, markup = make_report(write_vision(folder, runs))
    return folder, code, markup, Page(markup)


def claims_of(folder, runs, **options):
    read = read_folder(write_vision(folder, runs, albums=False, **options))
    return {claim.sentence: claim for claim in judge(gather(read, []))}


def classes_of(page, caption, heading):
    """The classes of a column's cells by method, as marks of the best are."""
    (box,) = page.named("div", **{"role": "region", "aria-label": caption})
    within = [e for e in page.elements if box in e.inside]
    headings = [e.text for e in within if e.attributes.get("scope") == "col"]
    rows = [e for e in within if e.name == "tr" and e.inside[-1].name == "tbody"]
    cells = [[c for c in within if c.inside and c.inside[-1] is row] for row in rows]
    k = headings.index(heading)
    return {row[0].text: set((row[k].attributes.get("class") or "").split()) for row in cells}


# --- the page ------------------------------------------------------------------------------------


def test_every_section_is_there_and_no_other(made):
    headings = [e.text for e in made[3].named("h2")]
    assert headings == [
        "Findings",
        "Claims in detail",
        "Departures from the paper",
        "Seen, predicted, learned",
        "Results by task",
        "Time of training",
        "Choice of steps",
        "What went wrong",
        "Origin",
    ]
    (title,) = made[3].named("h1")
    assert title.text.startswith("Pictures in, decisions out")


def test_nothing_but_what_is_inside_the_page_is_shown(made):
    markup = made[2]
    (policy,) = made[3].named("meta", **{"http-equiv": "Content-Security-Policy"})
    assert "img-src data:;" in policy.attributes["content"]
    sources = re.findall(r'href="([^"]*)"', markup)
    assert any(source.startswith("data:image/png;base64,") for source in sources)
    assert all(source.startswith(("#", "data:image/png;base64,")) for source in sources)


def test_ids_are_unique_and_pictures_used_again_are_there(made):
    ids = [e.attributes["id"] for e in made[3].elements if "id" in e.attributes]
    assert len(ids) == len(set(ids))
    used = {e.attributes["href"][1:] for e in made[3].named("use")}
    assert used
    assert used <= set(ids)


def test_the_same_runs_give_the_same_page(made, tmp_path):
    other = tmp_path / "again.html"
    make_report(made[0], "--out", other)
    (written,) = re.findall(r"revealed bench report [^<]+", other.read_text("utf-8"))[:1]
    assert other.read_text("utf-8").replace(written, "") == made[2].replace(
        re.findall(r"revealed bench report [^<]+", made[2])[0], ""
    )


def test_steps_that_were_given_are_not_called_chosen(tmp_path):
    runs = vision_sweep(1, ("terrain 6x6", "matching 4x4"), FEW[:2])
    folder = write_vision(tmp_path, runs, albums=False)
    path = folder / "sweep.json"
    sweep = json.loads(path.read_text("utf-8"))
    chosen, given = "ach method chose its optimizer", "ptimizers and steps were not tried here"
    for steps, said, unsaid in (
        (("given", "given"), [f"O{given}"], [chosen]),
        (("given", "chosen"), [f"On terrain 6x6: o{given}", f"On matching 4x4: e{chosen}"], []),
        (("chosen", "chosen"), [f"E{chosen}"], [given]),
    ):
        sweep["settings"]["steps"] = dict(zip(("terrain 6x6", "matching 4x4"), steps, strict=True))
        path.write_text(json.dumps(sweep), "utf-8")
        markup = make_report(folder)[1]
        assert all(words in markup for words in said)
        assert not any(words in markup for words in unsaid)


def test_figures_are_files_too(made):
    names = {path.name for path in (made[0] / "figures").iterdir()}
    expected = ["test-decision-loss", "test-estimate-loss", "train-decision-loss"]
    expected += ["train-estimate-loss", "vision-times", "samples-terrain-6x6"]
    expected += ["samples-matching-4x4"]
    assert names == {f"{name}.{kind}" for name in expected for kind in ("png", "svg")}


# --- results -------------------------------------------------------------------------------------


def test_a_panel_for_each_task(made):
    for measure in ("decision", "estimate"):
        (figure,) = made[3].named("figure", id=f"test-{measure}-loss")
        panels = [e for e in made[3].named("svg") if figure in e.inside]
        labels = [e.attributes["aria-label"] for e in panels]
        assert labels == [
            f"Test {measure} loss by epoch: {task}, test {measure} loss"
            for task in ("Terrain 6×6", "Matching 4×4")
        ]


def test_the_table_has_the_means_of_the_runs(made):
    rows = {row["method"]: row for row in made[3].rows("When training ends: terrain 6x6")}
    assert set(rows) == {"Ours", "Ours, robust", "PFYL", *with_badge("SPO+", "two-stage")}
    runs = [vision_run(vision_config("terrain 6x6", "PFYL", seed)) for seed in (0, 1)]
    for column, measure, scale in (
        ("test decision loss", "decision_loss", 1),
        ("test regret, %", "relative_regret", 100),
        ("test optimal, %", "optimal", 100),
    ):
        mean = scale * np.mean([run["final"]["test"][measure] for run in runs])
        assert float(rows["PFYL"][column].split()[0]) == pytest.approx(mean, abs=0.06)


def with_badge(*labels):
    return [f"{label} true costs" for label in labels]


@pytest.mark.parametrize("kind, words", [(None, ""), ("all", "mirrored and turned in training")])
def test_the_table_says_when_maps_were_seen_from_other_sides(tmp_path, kind, words):
    training = {} if kind is None else {"views": kind}
    runs = [vision_run(vision_config("terrain 6x6", "Ours", 0, training=training))]
    html = make_report(write_vision(tmp_path, runs, albums=False))[1]
    assert ("in training." in html) == bool(words)
    assert words in html


@pytest.mark.parametrize("averaged", [False, True])
def test_tables_and_curves_say_from_where_pictures_were_seen(tmp_path, averaged):
    model = {"kind": "truncated"} | ({"averaged": True} if averaged else {})
    config = vision_config("terrain 6x6", "Ours", 0, training={"views": "all"}, model=model)
    html = make_report(write_vision(tmp_path, [vision_run(config)], albums=False))[1]
    assert ("Judged by the mean cost over all of these." in html) == averaged
    assert ("in the tables, where training has ended, from all sides" in html) == averaged


def test_the_best_of_all_and_the_best_without_true_costs_are_marked(tmp_path):
    levels = {"Ours": 1.0, "PFYL": 1.5, "SPO+": 0.5}
    runs = [
        vision_run(vision_config("terrain 6x6", label, 0), level=level)
        for label, level in levels.items()
    ]
    page = Page(make_report(write_vision(tmp_path, runs, albums=False))[1])
    for heading in ("decision loss", "regret, %", "optimal, %"):
        marks = classes_of(page, "When training ends: terrain 6x6", heading)
        assert "best" in marks["Ours"]
        assert "first" not in marks["Ours"]
        assert "first" in marks["SPO+ true costs"]
        assert not marks["PFYL"] & {"best", "first"}


def test_short_trials_with_another_optimiser_are_not_shown(tmp_path):
    runs = [vision_run(vision_config("terrain 6x6", "Ours", seed)) for seed in (0, 1)]
    trial = vision_config("terrain 6x6", "Ours", 0, optimiser="adagrad", epochs=3)
    runs.append(vision_run(trial, level=0.1, epochs=3))
    page = Page(make_report(write_vision(tmp_path, runs, albums=False))[1])
    (row,) = page.rows("When training ends: terrain 6x6")
    assert row["method"] == "Ours"
    assert row["seeds"] == "2"


def test_times_are_told_relative_to_regression(made):
    rows = {row["method"]: row for row in made[3].rows("Training time of an epoch")}
    assert rows["two-stage true costs"]["Terrain 6×6 ×\u00a0regression"] == "1.00"
    ratio = float(rows["PFYL"]["Terrain 6×6 ×\u00a0regression"])
    assert ratio == pytest.approx(METHODS["PFYL"][3] / METHODS["two-stage"][3], rel=0.1)


def test_without_regression_times_are_told_relative_to_ours(tmp_path):
    runs = vision_sweep(1, ("terrain 6x6",), ("Ours", "BB"))
    page = Page(make_report(write_vision(tmp_path, runs, albums=False))[1])
    rows = {row["method"]: row for row in page.rows("Training time of an epoch")}
    assert rows["Ours"]["Terrain 6×6 ×\u00a0ours"] == "1.00"


def test_trials_are_shown_with_what_was_chosen(made):
    caption = "Validation decision loss: trials on terrain 6x6"
    row = next(row for row in made[3].rows(caption) if row["method"] == "Ours")
    assert row["adam 0.01"] == "diverged"
    assert row["adam 0.001"] == "4.25"
    assert "epochs 10 on the first 2000 training samples, seeds 1." in made[2]


def test_finals_are_shown_beside_the_trials(made):
    row = next(
        row
        for row in made[3].rows("Validation decision loss: finals on terrain 6x6")
        if row["method"] == "Ours"
    )
    assert row == {"method": "Ours", "adam 0.001": "2.5", "adagrad 0.01": "2.75"}
    assert "The best of them, 2 of each method, went on to finals" in made[2]
    assert "with seeds 3;" in made[2]


@pytest.mark.parametrize("within", [None, 2])
def test_larger_steps_in_the_finals_are_told(tmp_path, within):
    folder = write_vision(tmp_path, vision_sweep(1, ["terrain 12x12"]), albums=False)
    facts = json.loads((folder / "sweep.json").read_text("utf-8"))
    facts["settings"]["choosing"] |= {} if within is None else {"within": within}
    (folder / "sweep.json").write_text(json.dumps(facts), "utf-8")
    html = make_report(folder)[1]
    assert ("unless its trial was worse than 2 times the best" in html) == (within is not None)


def test_a_sweep_without_finals_says_nothing_of_them(tmp_path):
    runs = vision_sweep(1, ("terrain 6x6",), ("Ours", "BB"))
    folder = write_vision(tmp_path, runs, albums=False)
    facts = json.loads((folder / "sweep.json").read_text("utf-8"))
    del facts["finals"], facts["settings"]["choosing"]["finalists"]
    (folder / "sweep.json").write_text(json.dumps(facts), "utf-8")
    text = make_report(folder)[1]
    assert "Trials on terrain 6x6" in text
    assert "Finals on" not in text
    assert "to finals" not in text


# --- claims --------------------------------------------------------------------------------------


def test_claims_hold_where_ours_is_best(tmp_path):
    claims = claims_of(tmp_path, vision_sweep())
    assert len(claims) == 8
    assert {claim.verdict for claim in claims.values()} == {HOLDS}


@pytest.mark.parametrize(
    "label, failing",
    [("SPO+", ["decision loss"]), ("PFYL", ["decision loss", "estimate loss"])],
)
def test_a_better_rival_breaks_the_claims_that_it_is_part_of(tmp_path, label, failing):
    runs = vision_sweep()
    better = [
        vision_run(vision_config("terrain 18x18", label, seed), level=0.8) for seed in range(5)
    ]
    kept = [
        run
        for run in runs
        if (run["config"]["part"], run["config"]["label"]) != ("terrain 18x18", label)
    ]
    claims = claims_of(tmp_path, kept + better)
    broken = [sentence for sentence, claim in claims.items() if claim.verdict == FAILS]
    assert len(broken) == len(failing)
    assert all("terrain 18x18" in sentence for sentence in broken)
    assert all(any(words in sentence for sentence in broken) for words in failing)


def test_too_few_optimal_paths_are_told_by_how_much(tmp_path):
    runs = [
        vision_run(vision_config("terrain 12x12", label, seed), level=2 + k)
        for k, label in enumerate(METHODS)
        for seed in range(5)
    ]
    claims = claims_of(tmp_path, runs)
    share = next(claim for claim in claims.values() if "% of our test paths" in claim.sentence)
    regret = next(claim for claim in claims.values() if "relative regret" in claim.sentence)
    assert (share.verdict, regret.verdict) == (FAILS, FAILS)
    expected = 100 * np.mean([run["final"]["test"]["optimal"] for run in runs[:5]])
    assert share.against[0].ours == pytest.approx(expected)
    assert share.against[0].gaps.mean() == pytest.approx(expected - 80)


@pytest.mark.parametrize(
    "seeds, options, words",
    [
        (3, {}, "3 of 5 seeds"),
        (5, {"sizes": (2000, 1, 1)}, "2,000 of 10,000 training samples"),
        (5, {"labels": ("Ours", "ST", "MOM", "BB", "SPO+")}, "no eligible run of PFYL"),
        (5, {"labels": ("ST", "PFYL")}, "no finished run of ours"),
    ],
    ids=["seeds", "samples", "rival", "ours"],
)
def test_claims_are_open_while_something_is_missing(tmp_path, seeds, options, words):
    claims = claims_of(tmp_path, vision_sweep(seeds, ("terrain 18x18",), **options))
    assert {claim.verdict for claim in claims.values()} == {OPEN}
    assert any(words in missing for claim in claims.values() for missing in claim.missing)


def test_a_rival_with_fewer_seeds_is_waited_for(tmp_path):
    runs = vision_sweep(5, ("terrain 18x18",))
    kept = [r for r in runs if r["config"]["label"] != "BB" or r["config"]["seed"] < 2]
    claims = claims_of(tmp_path, kept)
    assert {claim.verdict for claim in claims.values()} == {OPEN}
    assert all("fewer than 5 seeds of BB" in claim.missing for claim in claims.values())


def test_a_quick_sweep_supports_no_claim(tmp_path):
    claims = claims_of(tmp_path, vision_sweep(5, ("terrain 12x12",)), quick=True)
    assert {claim.verdict for claim in claims.values()} == {OPEN}


# --- albums --------------------------------------------------------------------------------------


def test_of_every_sample_one_method_is_shown_and_the_others_wait(made):
    page = made[3]
    samples = page.named("li", class_="sample")
    assert len(samples) == 6
    for sample in samples:
        tiles = [e for e in page.elements if e.attributes.get("class") == "tile"]
        tiles = [e for e in tiles if sample in e.inside]
        assert len(tiles) == 2 + 2 * len(FEW)
        assert sum("hidden" not in e.attributes for e in tiles) == 4


def test_each_method_has_a_button_and_the_first_is_pressed(made):
    page = made[3]
    (first, *_) = page.named("div", class_="album")
    picks = [e for e in page.named("button") if first in e.inside and "data-method" in e.attributes]
    assert [e.text for e in picks] == ["Ours", "Ours, robust", "PFYL", "SPO+", "two-stage"]
    assert [e.attributes["aria-pressed"] for e in picks] == ["true"] + ["false"] * 4


def test_the_form_of_ours_that_validation_prefers_is_seen_at_once(tmp_path):
    runs = vision_sweep(1, ("terrain 6x6",), ("Ours", "Ours, robust", "PFYL"))
    for run in runs:
        valid = {"Ours": 2.0, "Ours, robust": 1.5, "PFYL": 1.0}[run["config"]["label"]]
        run["final"]["valid"]["decision_loss"] = valid
    page = Page(make_report(write_vision(tmp_path, runs))[1])
    picks = [e for e in page.named("button") if "pick" in e.attributes.get("class", "")]
    assert [e.text for e in picks] == ["Ours, robust", "Ours", "PFYL"]
    assert [e.attributes["aria-pressed"] for e in picks] == ["true", "false", "false"]


def test_extra_cost_of_a_path_counts_the_cells_entered(tmp_path):
    album = small_album([[0, 0], [1, 1]], [[0, 0], [0, 1], [1, 1]])
    sample = read_one(tmp_path, album).samples[0]
    assert extra_cost(sample, sample.observed) == 0
    assert extra_cost(sample, sample.guesses[0].predicted) == pytest.approx(2 / 4)


def test_extra_cost_of_pairs_reads_numbers(tmp_path):
    upright = [[[0, 0], [1, 0]], [[0, 1], [1, 1]]]
    level = [[[0, 1], [0, 0]], [[1, 0], [1, 1]]]
    album = small_album(upright, level, part="matching 2x2")
    sample = read_one(tmp_path, album).samples[0]
    assert extra_cost(sample, sample.guesses[0].predicted) == pytest.approx(46 / 37 - 1)


def small_album(observed, predicted, part="terrain 2x2"):
    album = make_album("terrain 6x6", ["Ours"], 1)
    sample = album["samples"][0] | {"true_cells": [[1, 2], [3, 4]], "observed": observed}
    sample["methods"] = [{"label": "Ours", "cells": None, "predicted": predicted}]
    return {"part": part, "grid": [2, 2], "samples": [sample]}


def read_one(folder, album):
    write_album(folder, album)
    (read,) = read_albums(folder, [])
    return read


def test_agreement_is_the_correlation_of_ranks(tmp_path):
    album = make_album("terrain 6x6", ["Ours"], 1)
    cells = np.array(album["samples"][0]["true_cells"])
    learned = {"same": 3 * cells + 1, "opposite": -(cells**3), "flat": 0 * cells}
    predicted = album["samples"][0]["observed"]
    album["samples"][0]["methods"] = [
        {"label": name, "cells": grid.tolist(), "predicted": predicted}
        for name, grid in learned.items()
    ]
    sample = read_one(tmp_path, album).samples[0]
    found = [agreement(sample, guess) for guess in sample.guesses]
    np.testing.assert_allclose(found, [1, -1, np.nan], atol=1e-12)


def test_digits_are_ink_on_paper(tmp_path):
    album = make_album("matching 4x4", ["Ours"], 1)
    assert read_one(tmp_path, album).samples[0].picture.mean() > 128


def spoiled(**changes):
    def spoil(album):
        album["samples"][0] |= changes

    return spoil


BAD = {
    "no grid": (lambda album: album.pop("grid"), "grid"),
    "no samples": (lambda album: album["samples"].clear(), "no samples"),
    "not a picture": (spoiled(image="AAAA"), "cannot identify image"),
    "not base64": (spoiled(image="<script>"), "base64"),
    "cells of another size": (spoiled(true_cells=[[1.0]]), "must be 6 x 6 numbers"),
    "text for costs": (spoiled(true_cells=[["a"] * 6] * 6), "could not convert"),
    "a cell outside": (spoiled(observed=[[0, 0], [9, 9]]), "no cell 9, 9"),
    "no methods": (spoiled(methods=None), "not iterable"),
}


@pytest.mark.parametrize("spoil, words", BAD.values(), ids=list(BAD))
def test_a_bad_album_is_named_and_left_out(tmp_path, spoil, words):
    folder = write_vision(tmp_path, vision_sweep(1, ("terrain 6x6",), ("Ours",)), samples=1)
    path = folder / "gallery" / "terrain-6x6.json"
    album = json.loads(path.read_text("utf-8"))
    spoil(album)
    path.write_text(json.dumps(album), "utf-8")
    read = read_folder(folder)
    assert read.albums == []
    (notice,) = read.notices
    assert notice.startswith("gallery/terrain-6x6.json was left out")
    assert words in notice


def test_labels_in_albums_stay_words(tmp_path):
    hostile = "<img src=x onerror=alert(1)>"
    runs = vision_sweep(1, ("terrain 6x6",), ("Ours",))
    album = make_album("terrain 6x6", ["Ours"], 1)
    album["samples"][0]["methods"].append(album["samples"][0]["methods"][0] | {"label": hostile})
    folder = write_vision(tmp_path, runs, albums=False)
    write_album(folder, album)
    markup = make_report(folder)[1]
    assert "<img" not in markup
    assert "&lt;img src=x" in markup
