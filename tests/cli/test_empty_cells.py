"""Decisions with empty cells: completed where a model is fitted, left out where one is judged."""

import json

import numpy as np
import pytest
from messy_files import PRODUCTS, clean_files

from revealed.cli import main

FIXED = ["--ridge", "1e-3", "--model", "linear", "--noise", "0"]


def files(place):
    names = {"problem": "plan.mps", "contexts": "contexts.csv", "decisions": "decisions.csv"}
    return [word for name, file in names.items() for word in (f"--{name}", str(place / file))]


def emptied(place, cells):
    """Empty the cells (row, column) of the table of decisions, rows and products from 0."""
    path = place / "decisions.csv"
    rows = [line.split(",") for line in path.read_text().splitlines()]
    for row, column in cells:
        rows[row + 1][column + 1] = ""
    path.write_text("\n".join(map(",".join, rows)) + "\n")


def told(capsys, command, code=0):
    capsys.readouterr()
    assert main([*command, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def words(capsys, command, code=0):
    capsys.readouterr()
    assert main(command) == code
    return " ".join("".join(capsys.readouterr()).split())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("gaps")
    clean_files(place, 3, 200)
    rng = np.random.default_rng(5)
    some = rng.permutation(200)[:60]
    emptied(place, [(b, j) for b in some for j in rng.permutation(len(PRODUCTS))[:2]])
    return place, np.sort(some)


def test_a_fit_completes_decisions_and_judges_whole_ones_alone(folder, capsys):
    place, some = folder
    out = str(place / "model")
    command = ["fit", *files(place), *FIXED, "--out", out]
    facts = told(capsys, command)
    assert facts["in_part"]["decisions"] == len(some)
    assert facts["in_part"]["turns"] >= 1
    held = np.random.default_rng(0).permutation(200)[:40]
    whole = np.setdiff1d(np.arange(200), some)
    assert facts["held"]["samples"] == len(np.setdiff1d(held, some))
    assert facts["seen"]["samples"] == len(np.setdiff1d(whole, held))
    assert facts["samples"] == len(some) + facts["seen"]["samples"]
    assert facts["held"]["repeated_share"] >= 0.8
    said = words(capsys, command)
    assert f"60 of 200 decisions have empty cells (first: decisions.csv, line {some[0] + 2}" in said
    assert "count as not seen, not as 0" in said
    explained = told(capsys, ["explain", out, *files(place)[2:], "--rounds", "0"])
    assert explained["same_tables"]
    assert explained["held"]["samples"] == facts["held"]["samples"]
    assert any("60 decisions with empty cells" in note for note in explained["assumed"])


def test_completed_decisions_teach_more_than_leaving_them_out(tmp_path, capsys):
    """With most rows gappy, the whole ones alone are too few."""
    clean_files(tmp_path, 4, 200)
    rng = np.random.default_rng(1)
    some = np.arange(15, 200)
    emptied(tmp_path, [(b, j) for b in some for j in rng.permutation(len(PRODUCTS))[:1]])
    fresh = tmp_path / "all"
    fresh.mkdir()
    clean_files(fresh, 4, 200)
    shares = []
    for more in ([], ["--skip-bad"]):
        out = str(tmp_path / f"model{len(more)}")
        told(capsys, ["fit", *files(tmp_path), *FIXED, "--holdout", "0", "--out", out, *more])
        judged = told(capsys, ["explain", out, *files(fresh)[2:], "--rounds", "0"])
        shares.append(judged["all"]["repeated_share"])
    assert shares[0] > shares[1]


def test_the_doctor_names_decisions_with_empty_cells(folder, capsys):
    place, some = folder
    facts = told(capsys, ["doctor", *files(place)])
    (found,) = (f for f in facts["findings"] if f["code"] == "empty-cells")
    assert found["severity"] == "warning"
    assert len(found["samples"]) == len(some)
    assert f"line {some[0] + 2}, column" in found["what"]
    skipped = told(capsys, ["doctor", *files(place), "--skip-bad"])
    assert len(skipped["skipped"]) == len(some)
    assert not any(f["code"] == "empty-cells" for f in skipped["findings"])


def test_rounded_decisions_with_empty_cells_are_read_as_the_vertices_they_stand_for(
    tmp_path, capsys
):
    clean_files(tmp_path, 3, 120)
    path = tmp_path / "decisions.csv"
    rows = [line.split(",") for line in path.read_text().splitlines()]
    for row in rows[1:]:
        row[1:] = [f"{float(cell):.2f}" for cell in row[1:]]
    path.write_text("\n".join(map(",".join, rows)) + "\n")
    emptied(tmp_path, [(b, b % 8) for b in range(0, 120, 3)])
    facts = told(capsys, ["fit", *files(tmp_path), *FIXED, "--out", str(tmp_path / "model")])
    assert facts["reading"]["tol"] == 0.005
    assert facts["in_part"]["decisions"] == 40
    assert facts["held"]["repeated_share"] >= 0.7


def test_cells_that_no_decision_agrees_with_are_named(tmp_path, capsys):
    clean_files(tmp_path, 3, 60)
    emptied(tmp_path, [(5, 2)])
    path = tmp_path / "decisions.csv"
    rows = [line.split(",") for line in path.read_text().splitlines()]
    rows[6][1] = "9999"
    path.write_text("\n".join(map(",".join, rows)) + "\n")
    out = ["--out", str(tmp_path / "model")]
    said = words(capsys, ["fit", *files(tmp_path), *FIXED, *out], 2)
    assert "line 7: the decision breaks the plan: no decision that the plan allows agrees" in said
    said = words(capsys, ["fit", *files(tmp_path), *FIXED, *out, "--infeasible", "repair"], 2)
    assert "line 7" in said
    assert "nothing to repair" in said
    facts = told(capsys, ["fit", *files(tmp_path), *FIXED, *out, "--infeasible", "skip"])
    assert len(facts["skipped"]) == 1
    found = told(capsys, ["doctor", *files(tmp_path)], 1)["findings"]
    assert {"empty-cells", "cannot-complete"} <= {f["code"] for f in found}


def test_gaps_that_nothing_can_be_done_about_are_refused(tmp_path, capsys):
    clean_files(tmp_path, 3, 40)
    out = ["--out", str(tmp_path / "model")]
    emptied(tmp_path, [(5, 2)])
    said = words(capsys, ["fit", *files(tmp_path), *out, "--unknown-limit", "machine0"], 2)
    assert "line 7, column 'cake' is empty" in said
    assert "not with --unknown-limit" in said
    emptied(tmp_path, [(8, j) for j in range(8)])
    for command in (["fit", *files(tmp_path), *out], ["doctor", *files(tmp_path)]):
        said = words(capsys, command, 2)
        assert "line 10, column 'bread' is empty, like every other number of the row" in said
    clean_files(tmp_path, 3, 40)
    emptied(tmp_path, [(b, 0) for b in range(40)])
    said = words(capsys, ["fit", *files(tmp_path), *out], 2)
    assert "so is a cell of every other decision" in said


def test_entries_listed_one_by_one_may_have_empty_values(tmp_path, capsys):
    clean_files(tmp_path, 3, 60)
    path = tmp_path / "decisions.csv"
    lines = path.read_text().splitlines()
    long = ["day,variable,value"]
    for k, line in enumerate(lines[1:]):
        day, *cells = line.split(",")
        for j, (name, cell) in enumerate(zip(PRODUCTS, cells, strict=True)):
            long.append(f"{day},{name},{'' if (k, j) == (4, 3) else cell}")
    path.write_text("\n".join(long) + "\n")
    facts = told(capsys, ["fit", *files(tmp_path), *FIXED, "--out", str(tmp_path / "model")])
    assert facts["in_part"]["decisions"] == 1
