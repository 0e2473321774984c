"""Tables as text: the delimiter is found out, and every complaint names a line and a column."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from ..errors import InputError
from .table import Table, checked_names, place, require

DELIMITERS = (",", ";", "\t", "|")
BLOCK = 20_000
"""Rows turned into numbers at a time."""
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "#n/a"})
"""Cells, in small letters, that stand for a missing number."""
LONGEST = 10_000_000
"""Characters of one cell; the standard library's own limit is for sheets, not for machines."""


class CsvFile:
    """Comma, semicolon, tab or bar separated values with a line of names."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._encoding = _encoding_of(path)
        csv.field_size_limit(LONGEST)
        self._delimiter = "\t" if path.suffix.lower() == ".tsv" else self._find_delimiter()
        self.names = checked_names(path, next(iter(self._records()), (0, []))[1])
        self._words: frozenset[str] | None = None

    def read(self, numbers: Sequence[str], text: Sequence[str] = ()) -> Table:
        require(self.path, self.names, [*numbers, *text])
        place = {name: k for k, name in enumerate(self.names)}
        at, at_text = [place[name] for name in numbers], [place[name] for name in text]
        blocks, lines = [np.zeros((0, len(at)))], []
        words: dict[str, list[str]] = {name: [] for name in text}
        for first, rows in self._blocks():
            blocks.append(self._numbers(rows, first, at))
            lines += first
            for name, k in zip(text, at_text, strict=True):
                words[name] += [row[k].strip() for row in rows]
        return Table(
            self.path.name, np.concatenate(blocks), tuple(numbers), words, np.array(lines, int)
        )

    def is_text(self, name: str) -> bool:
        require(self.path, self.names, [name])
        if self._words is None:
            self._words = self._find_words()
        return name in self._words

    def _find_words(self) -> frozenset[str]:
        """Columns of words, all in one pass: a table may have thousands of columns."""
        undecided, worded = set(range(len(self.names))), set()
        for _, rows in self._blocks():
            for k in list(undecided):
                cells = [row[k] for row in rows if not _is_missing(row[k])]
                if any(_number(cell) is not None for cell in cells):
                    undecided.remove(k)
                elif cells:
                    worded.add(k)
            if not undecided:
                break
        return frozenset(self.names[k] for k in undecided & worded)

    def _blocks(self) -> Iterator[tuple[list[int], list[list[str]]]]:
        """Line numbers and rows, a block at a time, each row as long as the header."""
        lines, rows = [], []
        for count, (line, row) in enumerate(self._records()):
            if count == 0:
                continue
            if len(row) != len(self.names):
                raise InputError(self._ragged(line, row))
            lines.append(line)
            rows.append(row)
            if len(rows) == BLOCK:
                yield lines, rows
                lines, rows = [], []
        if rows:
            yield lines, rows

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """(line, cells) of every line that is not blank."""
        with open(self.path, newline="", encoding=self._encoding) as file:
            reader = csv.reader(file, delimiter=self._delimiter, strict=True)
            line = 1
            try:
                for row in reader:
                    if row and not (len(row) == 1 and not row[0].strip()):
                        yield line, row
                    line = reader.line_num + 1
            except csv.Error as error:
                raise InputError(f"{self.path.name}, line {line}: {error}.") from error
            except UnicodeDecodeError as error:
                raise InputError(
                    f"{self.path.name}, at or after line {line}: byte {error.object[error.start]} "
                    "is not UTF-8. Save the file as UTF-8."
                ) from error

    def _numbers(self, rows: list[list[str]], lines: list[int], at: list[int]) -> np.ndarray:
        values = np.empty((len(rows), len(at)))
        for j, k in enumerate(at):
            cells = [row[k] for row in rows]
            try:
                values[:, j] = np.array(cells, dtype=np.float64)
            except ValueError:
                values[:, j] = [
                    self._cell(cell, lines, i, self.names[k]) for i, cell in enumerate(cells)
                ]
        return values

    def _cell(self, cell: str, lines: list[int], row: int, column: str) -> float:
        if _is_missing(cell):
            return float("nan")
        value = _number(cell, comma=self._delimiter != ",")
        if value is None:
            at = place(self.path.name, row, column, np.array(lines))
            raise InputError(f"{at}: expected a number, got {_short(cell)}.")
        return value

    def _find_delimiter(self) -> str:
        with open(self.path, newline="", encoding=self._encoding) as file:
            try:
                header = next((line for line in file if line.strip()), "")
            except UnicodeDecodeError as error:
                raise InputError(
                    f"{self.path.name} is not a text file in UTF-8 (byte "
                    f"{error.object[error.start]} at position {error.start}). Save it as UTF-8 CSV."
                ) from error
        if not header:
            raise InputError(f"{self.path.name} is empty: there is no line of column names.")
        if "\x00" in header:
            raise InputError(f"{self.path.name} is not a text file; a CSV file was expected.")
        return max(DELIMITERS, key=header.count)

    def _ragged(self, line: int, row: list[str]) -> str:
        many = "more" if len(row) > len(self.names) else "fewer"
        told = (
            f"{self.path.name}, line {line}: {len(row)} cells, {many} than the "
            f"{len(self.names)} columns of the first line."
        )
        if self._delimiter == "," and len(row) > len(self.names):
            told += " A decimal comma, or text with a comma that is not in quotes?"
        return told


def _encoding_of(path: Path) -> str:
    """UTF-8 unless the file's first bytes say UTF-16, as some spreadsheets write."""
    with open(path, "rb") as file:
        start = file.read(2)
    return "utf-16" if start in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"


def _is_missing(cell: str) -> bool:
    return cell.strip().lower() in MISSING


def _number(cell: str, comma: bool = True) -> float | None:
    """The number in a cell, with a decimal point or, if `comma`, a decimal comma; the minus sign
    may be the one of typesetters."""
    text = cell.strip().replace("\N{MINUS SIGN}", "-")
    for candidate in (text, text.replace(",", ".") if comma and text.count(",") == 1 else text):
        try:
            return float(candidate)
        except ValueError:
            continue
    return None


def _short(cell: str) -> str:
    return repr(cell if len(cell) <= 40 else cell[:37] + "...")
