"""Tables as text: the delimiter is found out, and every complaint names a line and a column."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from ..errors import InputError
from .cells import TRUTH, has_decimal_comma, is_missing, number
from .dialect import SAVE_ANEW, dialect_of
from .names import plain_name
from .table import Table, checked_names, place, require

BLOCK = 20_000
"""Rows turned into numbers at a time."""
LONGEST = 10_000_000
"""Characters of one cell; the standard library's own limit is for sheets, not for machines."""


class CsvFile:
    """Comma, semicolon, tab or bar separated values with a line of names."""

    def __init__(self, path: Path) -> None:
        self.path = path
        csv.field_size_limit(LONGEST)
        self._dialect = dialect_of(path)
        (_, header), *first = [*itertools.islice(self._records(), 2)] or [(0, [])]
        while len(header) > 1 and not header[-1].strip():
            header.pop()  # columns without a name at the end, as spreadsheets leave them
        self.names = checked_names(path, header)
        for line, row in first:
            self._check_length(line, row)
        self._there = frozenset(self.names)
        self._words: frozenset[str] | None = None

    def read(self, numbers: Sequence[str], text: Sequence[str] = ()) -> Table:
        require(self.path, self.names, [*numbers, *text])
        place = {name: k for k, name in enumerate(self.names)}
        at, at_text = [place[name] for name in numbers], [place[name] for name in text]
        decimal = self._decimal(at)
        blocks, lines = [np.zeros((0, len(at)))], []
        words: dict[str, list[str]] = {name: [] for name in text}
        for first, rows in self._blocks():
            blocks.append(self._numbers(rows, first, at, decimal))
            lines += first
            for name, k in zip(text, at_text, strict=True):
                words[name] += [plain_name(row[k]) for row in rows]
        return Table(
            self.path.name, np.concatenate(blocks), tuple(numbers), words, np.array(lines, int)
        )

    def is_text(self, name: str) -> bool:
        if name not in self._there:
            require(self.path, self.names, [name])
        if self._words is None:
            self._words = self._find_words()
        return name in self._words

    def _find_words(self) -> frozenset[str]:
        """Columns of words, all in one pass: a table may have thousands of columns."""
        undecided, worded = set(range(len(self.names))), set()
        for _, rows in self._blocks():
            for k in list(undecided):
                cells = [row[k] for row in rows if not is_missing(row[k])]
                cells = [cell for cell in cells if cell.strip().lower() not in TRUTH]
                if any(number(cell, mark) is not None for cell in cells for mark in ".,"):
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
            self._check_length(line, row)
            lines.append(line)
            rows.append(row)
            if len(rows) == BLOCK:
                yield lines, rows
                lines, rows = [], []
        if rows:
            yield lines, rows

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """(line, cells) of every line that is not blank; lines of empty cells count as blank at the
        end, where spreadsheets leave them."""
        empty: list[tuple[int, list[str]]] = []
        for line, row in self._lines():
            if not any(map(str.strip, row)):
                empty += [(line, row)] if len(row) > 1 else []
                continue
            yield from empty
            yield line, row
            empty = []

    def _lines(self) -> Iterator[tuple[int, list[str]]]:
        with open(self.path, newline="", encoding=self._dialect.encoding) as file:
            for _ in range(self._dialect.skipped):
                file.readline()
            reader = csv.reader(file, delimiter=self._dialect.delimiter, strict=True)
            before = 1 + self._dialect.skipped
            line = before
            try:
                for row in reader:
                    yield line, row
                    line = reader.line_num + before
            except csv.Error as error:
                raise InputError(f"{self.path.name}, line {line}: {error}.") from error
            except UnicodeDecodeError as error:
                raise InputError(
                    f"{self.path.name}, at or after line {line}: byte {error.object[error.start]} "
                    f"is not UTF-8. {SAVE_ANEW}"
                ) from error

    def _decimal(self, at: list[int]) -> str:
        """A comma where some number of these columns has one for its point; else a point."""
        mark = self._dialect.delimiter
        if mark == "," or not self._has_commas():
            return "."
        rows = (row for count, (_, row) in enumerate(self._records()) if count)
        found = any(has_decimal_comma(cell, mark) for row in rows for cell in _cells(row, at))
        return "," if found else "."

    def _has_commas(self) -> bool:
        """Whether any line but the first has a comma: a quick look that often spares a long one."""
        with open(self.path, newline="", encoding=self._dialect.encoding, errors="replace") as file:
            return any("," in line for line in itertools.islice(file, 1, None))

    def _numbers(
        self, rows: list[list[str]], lines: list[int], at: list[int], decimal: str
    ) -> np.ndarray:
        values = np.empty((len(rows), len(at)))
        for j, k in enumerate(at):
            cells = [row[k] for row in rows]
            try:
                if decimal == "," and any("." in cell for cell in cells):
                    raise ValueError("a point that is no decimal point")
                values[:, j] = np.array(cells, dtype=np.float64)
            except ValueError:
                values[:, j] = self._slowly(cells, lines, self.names[k], decimal)
        return values

    def _slowly(self, cells: list[str], lines: list[int], column: str, decimal: str) -> list[float]:
        """Numbers as people write them, NaN for gaps; a cell that is neither is refused."""
        found = []
        for row, cell in enumerate(cells):
            value = float("nan") if is_missing(cell) else number(cell, decimal)
            if value is None:
                at = place(self.path.name, row, column, np.array(lines))
                raise InputError(
                    f"{at}: expected a number, got {_short(cell)}.{_hint(cell, decimal)}"
                )
            found.append(value)
        return found

    def _check_length(self, line: int, row: list[str]) -> None:
        """Refuse a row that has not a cell for every name; more may be there if they are empty."""
        size = len(self.names)
        if len(row) >= size and not any(map(str.strip, row[size:])):
            return
        many = "more" if len(row) > size else "fewer"
        columns = "1 column" if size == 1 else f"{size} columns"
        told = (
            f"{self.path.name}, line {line}: {len(row)} cells, {many} than the {columns} of the "
            "first line."
        )
        if size == 1:
            told += " Does the first line name the columns?"
        elif self._dialect.delimiter == "," and len(row) > size:
            told += " A decimal comma, or text with a comma that is not in quotes?"
        raise InputError(told)


def _cells(row: list[str], at: list[int]) -> Iterator[str]:
    return (row[k] for k in at if k < len(row))


def _hint(cell: str, decimal: str) -> str:
    """What may be wrong with a cell of figures that is no number."""
    if not all(letter in "0123456789.,+- " for letter in cell):
        return ""
    if decimal == ",":
        return " Other numbers of this file have a decimal comma: use one or the other."
    if "," in cell:
        return " Is that a decimal comma, or does it set off thousands? Write neither."
    return ""


def _short(cell: str) -> str:
    return repr(cell if len(cell) <= 40 else cell[:37] + "...")
