"""Workbooks as tables: what a sheet shows is what is read, and what is written comes back."""

from datetime import date, datetime

import numpy as np
import pytest

from revealed.cli.plans import read_plan
from revealed.cli.tables import open_table, write_table
from revealed.errors import InputError

openpyxl = pytest.importorskip("openpyxl")


def save(path, *sheets):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for k, rows in enumerate(sheets):
        sheet = book.create_sheet(f"sheet {k + 1}")
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_numbers_words_and_dates_are_read(tmp_path):
    rows = [
        ["day", "when", "rain", "note"],
        [date(2026, 1, 5), datetime(2026, 1, 5, 7, 30), 0.1, "a, b"],
        [datetime(2026, 1, 6), None, 3, "=1+1"],
    ]
    table = open_table(save(tmp_path / "t.xlsx", rows))
    assert table.names == ("day", "when", "rain", "note")
    read = table.read(["rain"], ["day", "when"])
    assert read.text["day"] == ["2026-01-05", "2026-01-06"]
    assert read.text["when"] == ["2026-01-05 07:30:00", ""]
    assert read.numbers[:, 0].tolist() == [0.1, 3.0]
    assert read.name == "t.xlsx"


def test_a_complaint_names_the_row_of_the_sheet(tmp_path):
    rows = [["a", "b"], [1, 2], [3, "four"]]
    table = open_table(save(tmp_path / "t.xlsx", rows))
    with pytest.raises(InputError, match=r"t\.xlsx, line 3.*four"):
        table.read(["a", "b"])
    lenient = open_table(tmp_path / "t.xlsx", lenient=True).read(["a", "b"])
    assert list(lenient.faults) == [1]


def test_the_first_of_several_sheets_is_read_and_that_is_said(tmp_path):
    table = open_table(save(tmp_path / "t.xlsx", [["a"], [1]], [["b"], [2]]))
    read = table.read(["a"])
    assert read.notes == ("t.xlsx has 2 sheets; the first, 'sheet 1', is read.",)


def test_what_is_written_comes_back(tmp_path):
    values = np.array([[0.1, 1e-300], [np.nan, 12345678901.5]])
    write_table(tmp_path / "t.xlsx", ["a", "b"], values, key=("day", ["x", "y"]))
    read = open_table(tmp_path / "t.xlsx").read(["a", "b"], ["day"])
    assert np.array_equal(read.numbers, values, equal_nan=True)
    assert read.text["day"] == ["x", "y"]


@pytest.mark.parametrize("content", [b"no workbook at all", b"PK\x03\x04broken"])
def test_what_is_no_workbook_is_refused(tmp_path, content):
    (tmp_path / "t.xlsx").write_bytes(content)
    with pytest.raises(InputError, match=r"t\.xlsx is not a readable XLSX workbook"):
        open_table(tmp_path / "t.xlsx")


def test_an_empty_sheet_is_refused(tmp_path):
    with pytest.raises(InputError, match="is empty"):
        open_table(save(tmp_path / "t.xlsx", []))


def test_a_plan_may_be_an_lp_file(tmp_path):
    text = "Minimize\n c: x + 2 y\nSubject To\n r: x + y >= 1\nEnd\n"
    (tmp_path / "plan.lp").write_text(text, "utf-8")
    plan = read_plan(tmp_path / "plan.lp")
    assert plan.variables == ("x", "y")
    assert plan.name == "plan.lp"
