"""Tables as people keep them: units, thousands separators, gaps, dates, and texts that only a
computer takes for numbers."""

import numpy as np
import pytest

from revealed.cli.plans import find_limits, read_limits, read_plan
from revealed.cli.tables import learn_contexts, open_table, pair_rows, read_decisions
from revealed.cli.tables.cells import number, quantity
from revealed.cli.tables.dates import parse, style_of
from revealed.errors import InputError


def text(tmp_path, content, name="t.csv"):
    path = tmp_path / name
    path.write_text(content)
    return path


def column(tmp_path, cells, delimiter=";", name="a"):
    """What a column of cells is read as, beside one of words."""
    rows = "".join(f"w{delimiter}{cell}\n" for cell in cells)
    return open_table(text(tmp_path, f"k{delimiter}{name}\n{rows}")).read([name])


# --- what a number is ----------------------------------------------------------------------------

NO_NUMBERS = [
    *(
        "1_6",
        "1_000.5",
        "1e5_0",
        "0x10",
        "0x1p3",
        "0b1",
        "0o7",
        "1e400",
        "1d5",
        "1e",
        "e5",
        "1e+",
        "--1",
        "+-1",
        "1..5",
    ),
    *("infinity", "Infinity", "INF", "+inf", "-nan", "nan(1)", "1.#IND", "\u0661\u0662"),
    *("\uff11\uff12", "\u00bd", "1\u200b6", "12 34", "1 2", "1/2", "10:30", "5-6", "(5)", "1,5,5"),
]


@pytest.mark.parametrize("cell", NO_NUMBERS)
def test_what_only_a_computer_takes_for_a_number_is_refused(tmp_path, cell):
    for decimal in ".,":
        assert number(cell, decimal) is None
    with pytest.raises(InputError, match=r"line 3, column 'a': expected a number, got"):
        column(tmp_path, ["1", cell, "2"])


@pytest.mark.parametrize(
    "cell, value",
    [("1e5", 1e5), ("+5", 5.0), (".5", 0.5), ("5.", 5.0), ("-1.5E-3", -0.0015), ("007", 7.0)],
)
def test_numbers_in_plain_digits_are_read(tmp_path, cell, value):
    assert number(cell) == value
    assert column(tmp_path, [cell, "2"]).numbers[0, 0] == value


def test_an_underscore_is_named_as_the_reason(tmp_path):
    with pytest.raises(InputError, match="without underscores"):
        column(tmp_path, ["1", "1_6"])


@pytest.mark.parametrize("cell", ["1_6", "infinity", "\uff11"])
def test_no_table_takes_them_quickly_either(tmp_path, cell):
    """A block of plain numbers is read at once; such a cell must not slip through."""
    rows = [str(k) for k in range(200)]
    rows[150] = cell
    with pytest.raises(InputError, match="line 152"):
        column(tmp_path, rows)


# --- units and thousands -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cell, decimal, value, unit",
    [
        ("69,6 USD/bbl", ",", 69.6, "USD/bbl"),
        ("69.6USD/bbl", ".", 69.6, "USD/bbl"),
        ("1.234,5 \u20ac", ",", 1234.5, "\u20ac"),
        ("$1,234.50", ".", 1234.5, "$"),
        ("EUR 12,5", ",", 12.5, "EUR"),
        ("1 234,5 kg", ",", 1234.5, "kg"),
        ("-7 \u00b0C", ".", -7.0, "\u00b0C"),
        ("5 m3", ".", 5.0, "m3"),
        ("12%", ".", 12.0, "%"),
    ],
)
def test_a_number_is_told_from_its_unit(cell, decimal, value, unit):
    found = quantity(cell, decimal)
    assert (found.value, found.unit) == (value, unit)


def test_a_unit_is_left_out_and_said(tmp_path):
    table = column(tmp_path, ["69,6 USD/bbl", "70,25 USD/bbl", "71"])
    assert table.numbers.ravel().tolist() == [69.6, 70.25, 71.0]
    told = " ".join(table.notes)
    assert "a is in USD/bbl" in told
    assert "1 cell without a unit is taken" in told
    assert "comma is the decimal mark" in told


def test_a_share_without_its_sign_is_found_beside_another_fault(tmp_path):
    path = text(tmp_path, "k;a\nw;5 %\nw;6 %\nw;7 %\nw;8 kg\nw;0.07\n")
    faults = open_table(path, lenient=True).read(["a"]).faults
    assert "half a percent" in faults[0]
    assert "its unit is kg" in faults[3]


def test_a_column_with_units_is_one_of_numbers(tmp_path):
    file = open_table(text(tmp_path, "a;b;c\n5 kg;north;1st\n7 kg;south;2nd\n"))
    assert [file.is_text(name) for name in "abc"] == [False, True, True]


@pytest.mark.parametrize(
    "cells, message",
    [
        (
            ["5 kg", "6 kg", "7 t"],
            "line 4.*its unit is t, that of most numbers of the column is kg",
        ),
        (["5 kg", "6 kg", "7 KG"], "line 4.*one way"),
        (["5", "6", "1O"], "line 4.*got '1O'.*no unit"),
        (["5 %", "6 %", "0.07"], "line 2.*half a percent"),
        (["5 kg", "6 kg", "many"], "line 4.*got 'many'"),
    ],
)
def test_units_that_differ_are_refused(tmp_path, cells, message):
    with pytest.raises(InputError, match=message):
        column(tmp_path, cells)


@pytest.mark.parametrize(
    "cells, delimiter, values",
    [
        (["1,234.5", "987.5", "1,234"], "\t", [1234.5, 987.5, 1234.0]),
        (["1.234,5", "987,5", "1.234"], ";", [1234.5, 987.5, 1234.0]),
        (["1 234,5", "987,5", "1 234"], ";", [1234.5, 987.5, 1234.0]),
        (['"1,234.5"', "987.5", '"1,234"'], ",", [1234.5, 987.5, 1234.0]),
        (['"1.234,5"', '"987,5"', "1.234"], ",", [1234.5, 987.5, 1234.0]),
        (['"12,5"', '"7,25"', "3"], ",", [12.5, 7.25, 3.0]),
    ],
)
def test_thousands_are_told_by_the_numbers_beside_them(tmp_path, cells, delimiter, values):
    table = column(tmp_path, cells, delimiter)
    assert table.numbers.ravel().tolist() == values
    assert table.notes


@pytest.mark.parametrize("cells", [["1,234", "2,345"], ["1,234 kg", "2,345 kg"]])
def test_what_nothing_beside_it_tells_is_refused(tmp_path, cells):
    with pytest.raises(InputError, match=r"line 2.*decimal comma.*thousands"):
        column(tmp_path, cells, "\t")


@pytest.mark.parametrize("price", ["106.01", "$106.01", "106.01 EUR"])
def test_a_point_in_one_column_tells_what_commas_of_another_are(tmp_path, price):
    """Whole tonnes beside prices: nothing in their own column says that 1,399 is no 1.399."""
    path = text(tmp_path, f'price,volume\n{price},"1,399 t"\n{price},"2,555 t"\n{price},799 t\n')
    table = open_table(path).read(["price", "volume"])
    np.testing.assert_array_equal(table.numbers[:, 1], [1399.0, 2555.0, 799.0])
    assert "2 cells of volume have marks that set off thousands: '1,399 t' is 1399" in str(
        table.notes
    )


@pytest.mark.parametrize(
    "volumes, refused, said",
    [
        (['"1,399"', '"2,555"', "799"], [0, 1], ""),  # thousands, or three decimals
        (['"1,399 t"', '"2,555 t"', "799", "801", "802"], [0, 1], ""),  # most have no unit
        (['"1,399.5 t"', '"2,555.5 kg"', "799 kg", "801 kg"], [0], "1 cell of volume has marks"),
        (['"1 399.5 %"', '"2,555.5 %"', "799"], [0, 1], ""),  # is a number without a sign a share?
        (['"1,399.5 kg"', '"2,555.5 kg"', "799 kg"], [], "2 cells of volume have marks"),
    ],
)
def test_what_is_refused_is_not_said_to_be_understood(tmp_path, volumes, refused, said):
    """A note speaks of the cells that are used; of one that is refused only its fault does."""
    path = text(tmp_path, "volume,n\n" + "".join(f"{cell},7\n" for cell in volumes))
    table = open_table(path, lenient=True).read(["volume", "n"])
    assert sorted(table.faults) == refused
    assert np.flatnonzero(np.isnan(table.numbers[:, 0])).tolist() == refused
    assert ("set off thousands" in str(table.notes)) == bool(said)
    assert said in str(table.notes)


def test_plain_numbers_need_no_note(tmp_path):
    assert column(tmp_path, ["1.5", "2"]).notes == ()


def test_columns_read_later_have_the_same_decimal_mark(tmp_path):
    file = open_table(text(tmp_path, "a;b\n1,5;1.234\n2,5;2.345\n"))
    file.read(["a"])
    assert file.read(["b"]).numbers.ravel().tolist() == [1234.0, 2345.0]


# --- gaps ----------------------------------------------------------------------------------------


def test_rows_that_cannot_be_read_are_named_and_the_others_are_read(tmp_path):
    path = text(tmp_path, "day,a,w\nm,1,x\nt,,y\nw,zwei,x\nt2,4\nf,5,x\n,6,y\n")
    bad = {}
    found = learn_contexts(open_table(path, lenient=True), key="day", bad=bad)
    assert sorted(bad) == [1, 2, 3, 5]
    assert "'a' is empty" in bad[1]
    assert "'zwei'" in bad[2]
    assert "2 cells, fewer" in bad[3]
    assert "which row is which" in bad[5]
    assert np.isfinite(found.contexts).all()
    assert found.features.features[0].mean == 4.0  # of 1, 5 and 6


@pytest.mark.parametrize("how, value", [("mean", 4.0), ("median", 3.0)])
def test_empty_cells_are_filled_as_asked_also_in_new_tables(tmp_path, how, value):
    path = text(tmp_path, "a,w\n1,x\n3,y\n,x\n8,\n")
    found = learn_contexts(open_table(path), impute=how)
    assert found.table.numbers.ravel().tolist() == [1.0, 3.0, value, 8.0]
    assert found.table.text["w"] == ["x", "y", "x", "x"]
    assert len(found.notes) == 2
    assert how in found.notes[0]
    new, _ = found.features.read(open_table(text(tmp_path, "a,w\n,y\n", "n.csv")))
    there, _ = found.features.read(open_table(text(tmp_path, f"a,w\n{value},y\n", "n.csv")))
    assert (new == there).all()


def test_a_cell_that_cannot_be_read_is_no_gap_to_fill(tmp_path):
    path = text(tmp_path, "a\n1\n3\nzwei\n")
    with pytest.raises(InputError, match="zwei"):
        learn_contexts(open_table(path), impute="mean")
    bad = {}
    learn_contexts(open_table(path, lenient=True), impute="mean", bad=bad)
    assert list(bad) == [2]


@pytest.mark.parametrize(
    "content",
    [
        "day,x,y\nm,1,2\nt,1,\nt,5,6\nw,0,1\nz,1,1\n",
        "day,variable,value\nm,x,1\nm,y,2\nt,x,1\nt,y,?\nw,y,1\nz,x,1\nz,y,1\n",
    ],
)
def test_one_without_the_other_is_left_out(tmp_path, content):
    contexts = open_table(text(tmp_path, "day,a\nm,1\nt,2\nw,3\nf,4\nw,5\n"), lenient=True)
    decisions = open_table(text(tmp_path, content, "d.csv"), lenient=True)
    bad = ({}, {})
    table = learn_contexts(contexts, key="day", bad=bad[0]).table
    taken = read_decisions(decisions, ["x", "y"], "day", bad[1])
    pairs = pair_rows(table, taken, "day", bad)
    assert [table.text["day"][k] for k in pairs.contexts] == ["m", "w"]
    assert taken.values[pairs.decisions].tolist() == [[1.0, 2.0], [0.0, 1.0]]
    assert "no decision for 'f'" in bad[0][3]
    assert "before" in bad[0][4]
    assert any("no context for 'z'" in said for said in bad[1].values())


def test_tables_matched_by_order_stay_matched_where_a_row_is_broken(tmp_path):
    contexts = open_table(text(tmp_path, "a,b\n1,1\n2\n3,1\n"), lenient=True)
    decisions = open_table(text(tmp_path, "x\n10\n20\n30\n", "d.csv"), lenient=True)
    bad = ({}, {})
    table = learn_contexts(contexts, bad=bad[0]).table
    pairs = pair_rows(table, read_decisions(decisions, ["x"], None, bad[1]), None, bad)
    assert pairs.contexts.tolist() == pairs.decisions.tolist() == [0, 2]


def test_a_limit_that_cannot_be_read_is_not_taken_for_an_empty_one(tmp_path):
    plan = read_plan("knapsack([[1.0, 2.0]], [2.0])")
    limits = find_limits(plan, ["ub1=c"], ["c"])
    file = open_table(text(tmp_path, "c\n3\n\u2026\n5\n-1e30\n"), lenient=True)
    bad = {}
    assert read_limits(file, plan, limits, bad)[[0, 2]].ravel().tolist() == [3.0, 5.0]
    assert sorted(bad) == [1, 3]


# --- dates ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words, style",
    [
        (["2026-03-02", "2026-3-13T08:30"], "ymd"),
        (["2.3.2026", "3.4.2026"], "dmy"),
        (["2/3/2026", "13/3/2026"], "dmy"),
        (["2/3/2026", "3/13/26"], "mdy"),
    ],
)
def test_dates_are_read_in_the_order_that_they_show(words, style):
    assert style_of(words, "t.csv")[0] == style
    assert parse(words[0], style).isoformat() in ("2026-03-02", "2026-02-03")


@pytest.mark.parametrize(
    "words, message",
    [
        (["2/3/2026", "3/4/2026"], "day or month comes first"),
        (["13/3/2026", "3/13/2026"], "two ways"),
        (["2026-03-02", "soon"], "expected dates"),
    ],
)
def test_dates_that_may_mean_two_days_are_refused(words, message):
    with pytest.raises(InputError, match=message):
        style_of(words, "t.csv, column 'day'")


def test_weekday_and_month_become_features_on_request(tmp_path):
    rows = "".join(f"2026-0{1 + k // 20}-{1 + k % 20:02d},{k}\n" for k in range(40))
    file = open_table(text(tmp_path, f"day,a\n{rows}"))
    found = learn_contexts(file, key="day", dates=["day"])
    assert [f.name for f in found.features.features] == ["day weekday", "day month", "a"]
    names = found.features.names
    assert names[0] == "day weekday=Tuesday"
    assert names[6] == "day month=February"
    assert found.contexts[:, 6].tolist() == [0.0] * 20 + [1.0] * 20
    assert "year, month, day" in found.notes[0]
    new, table = found.features.read(open_table(text(tmp_path, "day,a\n2026-07-06,1\n", "n.csv")))
    assert found.features.unseen_parts(table) == {"July": 1}
    assert new[0, :6].tolist() == [0.0] * 6  # a Monday
    assert new[0, 6] == 0.5  # an average month


def test_a_word_that_is_no_date_is_refused_in_new_tables(tmp_path):
    file = open_table(text(tmp_path, "day,a\n2026-01-01,1\n2026-02-03,2\n"))
    features = learn_contexts(file, dates=["day"]).features
    with pytest.raises(InputError, match="line 2, column 'day': expected a date"):
        features.read(open_table(text(tmp_path, "day,a\n1.2.2026,1\n", "n.csv")))


@pytest.mark.parametrize("at", [1, 2, 3])
@pytest.mark.parametrize("broken", ['b,"1', 'b,"1\n', '"b,2', 'b,"1"2', 'b,"1,2'])
def test_a_row_cut_within_quotes_takes_no_other_with_it(tmp_path, at, broken):
    """A lone quotation mark would make one cell of all that follows."""
    lines = ["day,x", 'a,"1,5"', 'c,"2,5"', 'd,"3,5"']
    lines.insert(at, broken.strip())
    path = tmp_path / "t.csv"
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(InputError, match=f"line {at + 1}: its quotation marks.*--skip-bad"):
        open_table(path).read(["x"])
    table = open_table(path, lenient=True).read(["x"], ["day"])
    assert list(table.faults) == [at - 1]
    assert "quotation marks" in table.faults[at - 1]
    good = np.delete(table.numbers[:, 0], at - 1)
    np.testing.assert_array_equal(good, [1.5, 2.5, 3.5])


def test_a_cell_of_several_lines_stays_one(tmp_path):
    (tmp_path / "t.csv").write_text('day,x\n"a\nb",1\nc,2\nd,"3\n')
    table = open_table(tmp_path / "t.csv", lenient=True).read(["x"], ["day"])
    np.testing.assert_array_equal(table.numbers[:2, 0], [1.0, 2.0])
    assert list(table.faults) == [2]
