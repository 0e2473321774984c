"""Faults that outsiders' files come with: the doctor or the loader must name each one."""

import json

import numpy as np
import pytest

import revealed as rv
from planner_files import Files, change, column, expect_named, rename
from revealed.cli import main
from revealed.cli.tables import write_table


@pytest.fixture
def files(tmp_path):
    return Files(tmp_path / "tour")


def each(files, name, value):
    """Replace a column of the contexts; `value` is given the number of the row and the old cell."""
    rows = files.rows(files.contexts)
    at = rows[0].index(name)
    for number, row in enumerate(rows[1:]):
        row[at] = value(number, row[at])
    files.write(files.contexts, rows)


def exchange(files):
    files.contexts, files.decisions = files.decisions, files.contexts


def capitals(files):
    rename(files, files.contexts, "day", "Day")


def listed_one_by_one(files, keep=lambda day, name: True):
    rows = files.rows(files.decisions)
    entries = [
        [row[0], name, cell]
        for row in rows[1:]
        for name, cell in zip(rows[0][1:], row[1:], strict=True)
        if float(cell) and keep(row[0], name)
    ]
    files.write(files.decisions, [["day", "variable", "value"], *entries])


def ten_times(files):
    rows = files.rows(files.decisions)
    at = rows[0].index("north_market")
    for row in rows[1:]:
        row[at] = str(10 * float(row[at]))
    files.write(files.decisions, rows)


def leak(files):
    sent = {row[0]: row[1] for row in files.rows(files.decisions)}
    column(files, "sent", lambda row: sent[row[0]])


def count_rows(files):
    numbers = iter(range(1, 999))
    column(files, "nr", lambda row: str(next(numbers)))


def capital_list(files):
    listed_one_by_one(files)
    replace("decisions", "variable", "Variable")(files)


def two_spellings(files):
    each(files, "weekday", lambda k, old: "mon" if old == "Mon" and k % 4 == 0 else old)


def german_dates(files):
    rows = files.rows(files.decisions)
    for row in rows[1:]:
        row[0] = ".".join(reversed(row[0].split("-")))
    files.write(files.decisions, rows)


def replace(path, old, new):
    def spoil(files):
        file = getattr(files, path)
        file.write_text(file.read_text().replace(old, new, 1))

    return spoil


# What is spoiled, how, what the report must say, and the exit code.
FAULTS = {
    "a plan that contradicts itself": (
        replace("plan", "order_mill  19", "order_mill  999"),
        ["plan.mps cannot be satisfied"],
        1,
    ),
    "the two tables exchanged": (exchange, ["exchange --contexts and --decisions"], 2),
    "a name in capitals": (
        lambda files: rename(files, files.decisions, "north_park", "North Park"),
        ["'North Park' is no variable", "did you mean 'north_park'"],
        2,
    ),
    "the column of days in capitals": (
        capitals,
        ["contexts.csv has a column 'Day', decisions.csv has 'day'", "alike"],
        2,
    ),
    "dates written in two ways": (
        german_dates,
        ["contexts.csv, line 2", "no decision for '2026-03-02'", "it has '02.03.2026'"],
        2,
    ),
    "one column in other units": (
        ten_times,
        ["column north_market divided by 10", "become feasible"],
        1,
    ),
    "a decision among the contexts": (
        leak,
        ["sent", "equals north_market in the decisions", "--ignore sent"],
        0,
    ),
    "numbers of rows": (
        count_rows,
        ["nr only counts the rows, from 1 to 240", "--ignore nr"],
        0,
    ),
    "a mark for what is missing": (
        lambda files: each(files, "rain_mm", lambda k, old: "-999" if k % 4 == 0 else old),
        ["60 rows have -999 in the column rain_mm", "2026-03-02"],
        0,
    ),
    "a word spelled in two ways": (two_spellings, ["weekday", "'Mon' and 'mon'"], 0),
    "a word for what is missing": (
        lambda files: each(files, "weekday", lambda k, old: "N/A" if k % 9 == 0 else old),
        ["27 rows have 'N/A' in the column weekday"],
        0,
    ),
    "a word that is hardly there": (
        lambda files: each(files, "weekday", lambda k, old: "Sun" if k == 3 else old),
        ["weekday has 1 word in fewer than 3 rows: Sun"],
        0,
    ),
    "a column of one word": (
        lambda files: column(files, "country", lambda row: "FR"),
        ["1 column of the contexts is the same in every row: country"],
        0,
    ),
    "a comment above the names": (
        lambda files: files.contexts.write_text("# of 2026\n" + files.contexts.read_text()),
        ["contexts.csv, line 2: 6 cells, more than the 1 column", "Does the first line name"],
        2,
    ),
    "a line of sums": (
        lambda files: files.decisions.write_text(files.decisions.read_text() + "sum" + "," * 24),
        ["decisions.csv, line 242, column 'north_market' is empty"],
        2,
    ),
    "a column of sums": (
        lambda files: files.decisions.write_text(
            "\n".join(
                f"{line},{'total' if k == 0 else 170}"
                for k, line in enumerate(files.decisions.read_text().splitlines())
            )
        ),
        ["1 column of decisions.csv is not a variable of the model, and ignored: total"],
        0,
    ),
    "a column of days under another name": (
        lambda files: rename(files, files.decisions, "day", "when"),
        ["the column 'when' is no variable of the model", "call it so in both tables"],
        2,
    ),
    "two exports one below the other": (
        lambda files: files.decisions.write_text(2 * files.decisions.read_text()),
        ["decisions.csv, line 242, column 'north_market'", "'north_market'"],
        2,
    ),
    "a spreadsheet's error": (
        change("contexts", 3, "fuel_price", "#DIV/0!"),
        ["contexts.csv, line 4, column 'fuel_price'", "'#DIV/0!'"],
        2,
    ),
    "a day that sends nothing, left out of a list": (
        lambda files: listed_one_by_one(files, lambda day, name: day != "2026-03-04"),
        ["no decision for '2026-03-04'", "0 throughout needs a line too, with value 0"],
        2,
    ),
    "a name misspelled in a list": (
        lambda files: (
            listed_one_by_one(files),
            replace("decisions", "south_hill", "south_hil")(files),
        ),
        ["column 'variable'", "'south_hil' is no variable", "did you mean 'south_hill'"],
        2,
    ),
    "a list with capitals in its names": (
        lambda files: (
            listed_one_by_one(files),
            replace("decisions", "variable", "Variable")(files),
        ),
        ["'Variable' is no variable", "did you mean 'variable'"],
        2,
    ),
    "two ways to write a decimal": (
        lambda files: files.contexts.write_text(
            files.contexts.read_text().replace(",", ";").replace(".", ",").replace(",", ".", 1)
        ),
        ["contexts.csv, line 2, column 'fuel_price'", "decimal comma"],
        2,
    ),
    "a page of letters that is not UTF-8": (
        lambda files: files.contexts.write_bytes(
            files.contexts.read_text().replace("rain_mm", "flüsse").encode("latin-1")
        ),
        ["contexts.csv is not a text file in UTF-8", "CSV UTF-8"],
        2,
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_named(files, capsys, fault):
    expect_named(files, capsys, *FAULTS[fault])


def test_a_limit_that_changes_from_row_to_row_is_named(tmp_path, capsys):
    """A budget that is a column of the contexts, where the plan has one for all."""
    rng = np.random.default_rng(0)
    weights, budgets = [3, 1, 4, 1, 5], rng.integers(4, 11, 80).astype(float)
    heat = rng.standard_normal(80)
    worth = 5 + np.outer(heat, rng.standard_normal(5))
    X = rv.problems.knapsack(weights, budgets).solve(-worth).x
    write_table(tmp_path / "c.csv", ["budget", "heat"], np.column_stack([budgets, heat]))
    write_table(tmp_path / "d.csv", [f"x{k + 1}" for k in range(5)], np.asarray(X))
    arguments = ["--contexts", str(tmp_path / "c.csv"), "--decisions", str(tmp_path / "d.csv")]
    assert main(["doctor", "--problem", f"knapsack({weights}, 8)", *arguments]) == 1
    told = " ".join(capsys.readouterr().out.split())
    assert "ub1 equals the column budget" in told
    assert "other units" not in told  # whatever is small enough fits a budget


def test_a_row_of_at_least_is_told_as_the_planner_wrote_it(tmp_path, capsys):
    (tmp_path / "plan.mps").write_text(
        "NAME diet\nROWS\n N cost\n G kcal\nCOLUMNS\n oats cost 1 kcal 4\n rice cost 1 kcal 1\n"
        "RHS\n r kcal 20\nENDATA\n"
    )
    (tmp_path / "c.csv").write_text("day,price\na,1\nb,2\nc,3\n")
    (tmp_path / "d.csv").write_text("day,oats,rice\na,5,0\nb,0,20\nc,3,0\n")
    arguments = ["--contexts", str(tmp_path / "c.csv"), "--decisions", str(tmp_path / "d.csv")]
    assert main(["doctor", "--problem", str(tmp_path / "plan.mps"), *arguments]) == 1
    told = " ".join(capsys.readouterr().out.split())
    assert "kcal is 12, it must be at least 20 (off by 8)" in told
    assert "in every decision" not in told  # not in the one that breaks it
    (tmp_path / "d.csv").write_text("day,oats,rice\na,5,0\nb,0,20\nc,5,0\n")
    assert main(["doctor", "--problem", str(tmp_path / "plan.mps"), *arguments]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "1 limit is reached in every decision: kcal" in told


def test_a_thousand_findings_of_one_kind_stay_readable(files, capsys):
    rows = files.rows(files.contexts)
    names = [f"gauge{k}" for k in range(200)]
    for number, row in enumerate(rows[1:]):
        row += [str(1e6 if number == 7 else (number * (k % 10 + 1)) % 11) for k in range(200)]
    files.write(files.contexts, [[*rows[0], *names], *rows[1:]])
    assert files.doctor() == 0
    told = capsys.readouterr().out
    assert told.count("far from all others") == 3
    assert "And 197 findings like the ones above; --json lists all." in told
    assert files.doctor("--json") == 0
    found = json.loads(capsys.readouterr().out)["findings"]
    assert sum(finding["code"] == "far-off" for finding in found) == 200


@pytest.mark.parametrize("size", [1e300, 1e-300, 1e-13])
def test_units_of_any_size_are_looked_at_as_they_are(files, capsys, size):
    each(files, "rain_mm", lambda k, old: repr(float(old) * size))
    assert files.doctor("--json") == 0
    found = json.loads(capsys.readouterr().out)["findings"]
    assert {finding["severity"] for finding in found} == {"note"}


@pytest.mark.parametrize("kind", [np.float64, np.int8])
def test_rows_have_the_same_code_exactly_if_they_are_equal(kind):
    from revealed.cli.doctor.repetition import row_codes

    rows = np.random.default_rng(0).integers(-1, 2, (5000, 7)).astype(kind)
    rows[rows == 0] = -rows[rows == 0]  # -0.0 is 0.0
    _, which = np.unique(rows, axis=0, return_inverse=True)
    _, told = np.unique(row_codes(rows), return_inverse=True)
    assert len(set(zip(which.ravel(), told, strict=True))) == which.max() + 1 == told.max() + 1


@pytest.mark.parametrize("usual", [0, 1])
def test_a_switch_is_no_leak_because_something_is_never_sent(files, capsys, usual):
    """In the rows that are unusual it is 0, as is a variable that is 0 in all."""
    column(files, "quota", lambda row: str(usual if int(row[0][-2:]) % 3 else 1 - usual))
    assert files.doctor("--json") == 0
    codes = {finding["code"] for finding in json.loads(capsys.readouterr().out)["findings"]}
    assert "still" in codes
    assert "leak" not in codes
