"""Faults put into a planner's files on purpose: the doctor or the loader must name each one."""

import json
import shutil

import pytest

from planner_files import Files, append, change, column, expect_named, rename
from revealed.cli import main
from revealed.cli.tour import copy_files


@pytest.fixture
def files(tmp_path):
    return Files(tmp_path / "tour")


def swap_names(files):
    rows = files.rows(files.decisions)
    i, j = rows[0].index("north_market"), rows[0].index("south_bridge")
    rows[0][i], rows[0][j] = rows[0][j], rows[0][i]
    files.write(files.decisions, rows)


def thousand_times(files, rows_at=(5, 6, 7)):
    rows = files.rows(files.decisions)
    for row in rows_at:
        rows[row][1:] = [str(1000 * float(cell)) for cell in rows[row][1:]]
    files.write(files.decisions, rows)


def send_nothing(files):
    rows = files.rows(files.decisions)
    rows[9][1:] = ["0"] * len(rows[9][1:])
    files.write(files.decisions, rows)


def repeat_day(files):
    for path in (files.contexts, files.decisions):
        rows = files.rows(path)
        append(files, path, ["2027-01-01", *rows[3][1:]])


def contradict(files):
    contexts, decisions = files.rows(files.contexts), files.rows(files.decisions)
    other = next(row for row in decisions[2:] if row[1:] != decisions[1][1:])
    append(files, files.contexts, ["2027-01-01", *contexts[1][1:]])
    append(files, files.decisions, ["2027-01-01", *other[1:]])


def average_two(files):
    rows = files.rows(files.decisions)
    one = rows[1]
    other = next(row for row in rows[2:] if row[1:] != one[1:])
    mean = [str((float(a) + float(b)) / 2) for a, b in zip(one[1:], other[1:], strict=True)]
    files.write(files.decisions, [rows[0], [one[0], *mean], *rows[2:]])


def same_every_day(files):
    rows = files.rows(files.decisions)
    files.write(files.decisions, [rows[0], *([row[0], *rows[1][1:]] for row in rows[1:])])


# What is spoiled, how, what the report must say, and the exit code.
FAULTS = {
    "swapped columns": (swap_names, ["north_market", "south_bridge", "swapped"], 1),
    "a decision off by a unit": (
        change("decisions", 4, "north_market", lambda old: str(float(old) + 1)),
        ["2026-03-05", "order_market", "off by 1"],
        1,
    ),
    "an infeasible day": (send_nothing, ["2026-03-11", "must be"], 1),
    "mixed units": (thousand_times, ["divided by 1000", "2026-03-06"], 1),
    "a negative amount": (
        change("decisions", 2, "south_hill", "-3"),
        ["2026-03-03", "south_hill"],
        1,
    ),
    "duplicated rows": (repeat_day, ["2026-03-04", "2027-01-01", "repeats another"], 0),
    "a day with two decisions": (contradict, ["2026-03-02", "2027-01-01", "differ"], 0),
    "a NaN in the contexts": (
        change("contexts", 5, "rain_mm", "NaN"),
        ["contexts.csv, line 6, column 'rain_mm'", "empty"],
        2,
    ),
    "a gap in the decisions": (
        change("decisions", 7, "south_mill", ""),
        ["decisions.csv, line 8, column 'south_mill'", "empty"],
        0,
    ),
    "a word for a number": (
        change("decisions", 3, "south_mill", "1O"),
        ["decisions.csv, line 4, column 'south_mill'", "'1O'"],
        2,
    ),
    "a wrong delimiter": (
        lambda files: files.write(files.decisions, files.rows(files.decisions), delimiter=" "),
        ["decisions.csv", "separated by something else"],
        2,
    ),
    "an unknown variable": (
        lambda files: rename(files, files.decisions, "north_park", "north_prak"),
        ["north_prak", "did you mean 'north_park'"],
        2,
    ),
    "a column left out": (
        lambda files: files.write(
            files.decisions, [row[:-1] for row in files.rows(files.decisions)]
        ),
        ["no column for 1 of the model's 24 variables", "harbour_square"],
        2,
    ),
    "an empty file": (
        lambda files: files.contexts.write_text(""),
        ["contexts.csv is empty"],
        2,
    ),
    "names but no rows": (
        lambda files: files.contexts.write_text(files.contexts.read_text().splitlines()[0]),
        ["contexts.csv", "no rows"],
        2,
    ),
    "a row cut short": (
        lambda files: files.decisions.write_text(files.decisions.read_text()[:-12]),
        ["decisions.csv, line 241", "fewer than the 25 columns"],
        2,
    ),
    "a day without a context": (
        lambda files: append(
            files, files.decisions, ["2030-01-01", *files.rows(files.decisions)[1][1:]]
        ),
        ["2030-01-01", "no context"],
        2,
    ),
    "the same day twice": (
        lambda files: append(files, files.contexts, files.rows(files.contexts)[1]),
        ["contexts.csv, line 242", "2026-03-02", "line 2"],
        2,
    ),
    "two columns of one name": (
        lambda files: rename(files, files.contexts, "rain_mm", "fuel_price"),
        ["contexts.csv", "two columns are called 'fuel_price'"],
        2,
    ),
    "a feature that never changes": (
        lambda files: column(files, "country", lambda row: "7"),
        ["country", "same in every row"],
        0,
    ),
    "a feature in two units": (
        lambda files: column(files, "rain_inches", lambda row: str(float(row[3]) / 25.4)),
        ["rain_inches repeats what rain_mm says", "--ignore rain_inches"],
        0,
    ),
    "a slip of the decimal point": (
        change("contexts", 8, "fuel_price", lambda old: str(100 * float(old))),
        ["fuel_price", "2026-03-10", "far from all others"],
        0,
    ),
    "an average of two decisions": (average_two, ["2026-03-02", "between corners"], 0),
    "the same decision every day": (same_every_day, ["All decisions are the same"], 1),
    "a column of names": (
        lambda files: column(files, "driver", lambda row: f"driver of {row[0]}"),
        ["driver", "240 different words", "--ignore driver"],
        2,
    ),
    "a spreadsheet's own file": (
        lambda files: files.contexts.write_bytes(b"PK\x03\x04\x00\x00\xff\xfe\x81binary"),
        ["contexts.csv", "UTF-8"],
        2,
    ),
    "a plan of another company": (
        lambda files: files.plan.write_text(files.plan.read_text().replace("harbour", "airport")),
        ["harbour_market", "no variable of the model"],
        2,
    ),
    "a plan cut short": (
        lambda files: files.plan.write_text(files.plan.read_text()[:600]),
        ["plan.mps"],
        2,
    ),
    "orders that changed": (
        lambda files: files.plan.write_text(
            files.plan.read_text().replace("order_mill  19", "order_mill  20")
        ),
        ["240 decisions break", "order_mill is 19, it must be 20"],
        1,
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_named(files, capsys, fault):
    expect_named(files, capsys, *FAULTS[fault])


def test_files_without_a_fault_are_ready_to_fit(files, capsys):
    assert files.doctor("--json") == 0
    found = json.loads(capsys.readouterr().out)["findings"]
    assert {finding["severity"] for finding in found} == {"note"}


def test_semicolons_and_decimal_commas_are_read(files, capsys):
    rows = files.rows(files.contexts)
    files.write(
        files.contexts,
        [[cell.replace(".", ",") for cell in row] for row in rows],
        delimiter=";",
    )
    assert files.doctor() == 0
    assert "240 samples: 9 features" in capsys.readouterr().out


def test_rows_are_matched_by_their_day_not_by_their_order(files, capsys):
    rows = files.rows(files.decisions)
    files.write(files.decisions, [rows[0], *rows[:0:-1]])
    assert files.doctor("--json") == 0
    assert json.loads(capsys.readouterr().out)["samples"] == 240


def test_the_files_are_what_the_script_makes(tmp_path):
    from revealed.cli.tour.make import main as make

    copy_files(tmp_path / "shipped")
    (tmp_path / "made").mkdir()
    make(tmp_path / "made")
    for path in sorted((tmp_path / "shipped").iterdir()):
        assert (tmp_path / "made" / path.name).read_text() == path.read_text(), path.name


def test_the_tour_overwrites_nothing(tmp_path, capsys):
    assert main(["tour", "--out", str(tmp_path / "a")]) == 0
    assert "revealed fit" in capsys.readouterr().out
    assert main(["tour", "--out", str(tmp_path / "a")]) == 2
    assert "already has plan.mps" in capsys.readouterr().err
    shutil.rmtree(tmp_path / "a")
