"""Tables in Excel workbooks: the first sheet, read and written with openpyxl.

A sheet is read as the comma-separated text that a spreadsheet would save, so that numbers, dates,
units and complaints are those of text files: line 5 of the table is row 5 of the sheet.
"""

from __future__ import annotations

import csv
import shutil
import weakref
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date, datetime, time
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from xml.etree.ElementTree import ParseError

import numpy as np

from ..._common.optional import require
from ...errors import InputError
from .csv_file import CsvFile
from .table import Table


class XlsxFile:
    """The first sheet of a workbook; formulas count as the values that were saved with them."""

    def __init__(self, path: Path, *, lenient: bool = False) -> None:
        require("openpyxl", "An XLSX file", "tables")
        self.path = path
        folder = mkdtemp(prefix="revealed-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        text = Path(folder) / path.name
        self._notes = _as_text(path, text)
        self._csv = CsvFile(text, lenient=lenient)
        self.names = self._csv.names

    def read(self, numbers: Sequence[str], text: Sequence[str] = ()) -> Table:
        table = self._csv.read(numbers, text)
        return replace(table, notes=(*self._notes, *table.notes))

    def is_text(self, name: str) -> bool:
        return self._csv.is_text(name)


def _as_text(path: Path, out: Path) -> tuple[str, ...]:
    """Write the first sheet as text; what was assumed."""
    import openpyxl
    from openpyxl.utils.exceptions import InvalidFileException

    try:
        book: Any = openpyxl.load_workbook(path, read_only=True, data_only=True)
        try:
            sheets = book.worksheets
            if not sheets:
                raise InputError(f"{path.name} has no sheet with cells.")
            with open(out, "w", newline="", encoding="utf-8") as file:
                _write_rows(file, sheets[0].iter_rows(values_only=True))
        finally:
            book.close()
    except InputError:
        raise
    except (
        *(InvalidFileException, zipfile.BadZipFile, ParseError),
        *(KeyError, ValueError, TypeError, OSError),
    ) as error:
        raise InputError(f"{path.name} is not a readable XLSX workbook: {error}.") from error
    if out.stat().st_size == 0:
        raise InputError(f"{path.name} is empty: not even a row of column names is there.")
    if len(sheets) == 1:
        return ()
    return (f"{path.name} has {len(sheets)} sheets; the first, {sheets[0].title!r}, is read.",)


def _write_rows(file: Any, rows: Iterable[Sequence[Any]]) -> None:
    """Rows as wide as the first, without empty columns after the last name and rows at the end."""
    writer = csv.writer(file, lineterminator="\n")
    width, empty = 0, 0
    for row in rows:
        cells = [_cell(value) for value in row]
        width = width or max((k + 1 for k, cell in enumerate(cells) if cell), default=0)
        if not any(cells):
            empty += 1
            continue
        writer.writerows([[""] * width] * empty if width else [])
        empty = 0
        writer.writerow([*cells[:width], *[cell for cell in cells[width:] if cell]])


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        midnight = value.time() == time.min
        return value.date().isoformat() if midnight else value.isoformat(sep=" ")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return repr(value) if isinstance(value, float) else str(value)


def write_xlsx(
    path: Path, names: list[str], values: np.ndarray, key: tuple[str, Sequence[str]] | None
) -> None:
    """A workbook of one sheet: a row of names, then the rows of `values`, empty where NaN."""
    import openpyxl

    book: Any = openpyxl.Workbook(write_only=True)
    sheet: Any = book.create_sheet("decisions")
    sheet.append([*([key[0]] if key else []), *names])
    for row, line in enumerate(values.tolist()):
        cells = [value if value == value else None for value in line]
        sheet.append([*([key[1][row]] if key else []), *cells])
    book.save(path)
