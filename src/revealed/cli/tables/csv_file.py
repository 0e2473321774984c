"""Tables as text: the delimiter is found out, and every complaint names a line and a column."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from ...errors import InputError
from .cells import TRUTH, has_clear_point, has_decimal_comma, is_missing
from .columns import Column, WordSearch, notes_of
from .dialect import SAVE_ANEW, dialect_of
from .names import listed, plain_name
from .table import Table, checked_names, place, require

BLOCK = 20_000
"""Rows turned into numbers at a time."""
LONGEST = 10_000_000
"""Characters of one cell; the standard library's own limit is for sheets, not for machines."""


class CsvFile:
    """Comma, semicolon, tab or bar separated values with a line of names.

    A `lenient` file refuses no row: what cannot be read is left empty, and the table says so.
    """

    def __init__(self, path: Path, *, lenient: bool = False) -> None:
        self.path, self._lenient = path, lenient
        self._broken: dict[int, str] = {}
        self._comma, self._points = "", False
        csv.field_size_limit(LONGEST)
        self._dialect = dialect_of(path)
        (_, header), *first = [*itertools.islice(self._records(), 2)] or [(0, [])]
        while len(header) > 1 and not header[-1].strip():
            header.pop()  # columns without a name at the end, as spreadsheets leave them
        self.names = checked_names(path, header)
        for line, row in first:
            self._checked(line, row)
        self._there = frozenset(self.names)
        self._words: frozenset[str] | None = None

    def read(self, numbers: Sequence[str], text: Sequence[str] = ()) -> Table:
        require(self.path, self.names, [*numbers, *text])
        place = {name: k for k, name in enumerate(self.names)}
        at, at_text = [place[name] for name in numbers], [place[name] for name in text]
        columns = [
            Column(name, mark) for name, mark in zip(numbers, self._decimal(at), strict=True)
        ]
        blocks, lines = [np.zeros((0, len(at)))], []
        words: dict[str, list[str]] = {name: [] for name in text}
        for first, rows in self._blocks():
            read = [c.add([row[k] for row in rows]) for c, k in zip(columns, at, strict=True)]
            blocks.append(np.column_stack(read) if read else np.zeros((len(rows), 0)))
            lines += first
            for name, k in zip(text, at_text, strict=True):
                words[name] += [plain_name(row[k]) for row in rows]
        values = np.concatenate(blocks)
        self._points |= any(column.points for column in columns)
        for j, column in enumerate(columns):
            column.finish(values[:, j], self._points)
        place_of = np.array(lines, int)
        return Table(
            self.path.name,
            values,
            tuple(numbers),
            words,
            place_of,
            self._faults(columns, place_of),
            tuple(self._notes(columns)),
            {column.name: column.unit for column in columns if column.unit},
        )

    def _faults(self, columns: list[Column], lines: np.ndarray) -> dict[int, str]:
        """What is wrong, by row; the first fault is raised unless the file is read leniently."""
        broken = {
            int(row): self._broken[line] for row, line in enumerate(lines) if line in self._broken
        }
        found: dict[int, str] = dict(broken)
        for column in columns:
            for row, said in column.faults.items():
                found.setdefault(row, f"column {column.name!r}: {said}")
        if found and not self._lenient:
            row, rows = min(found), len(found)
            more = "" if rows == 1 else f" ({rows:,} rows with such cells in all)"
            raise InputError(
                f"{place(self.path.name, row, None, lines)}, {found[row]}{more} Correct it, or "
                "leave such rows out with --skip-bad."
            )
        return found

    def _notes(self, columns: list[Column]) -> list[str]:
        """What was assumed about how numbers are written."""
        notes = notes_of(columns)
        if self._comma:
            pointed = [column.name for column in columns if column.decimal == "."]
            but = f"; in {listed(pointed)} a point is" if pointed else ""
            notes.insert(0, f"a comma is the decimal mark, as in {self._comma!r}{but}")
        return [f"{self.path.name}: {note}." for note in notes]

    def is_text(self, name: str) -> bool:
        if name not in self._there:
            require(self.path, self.names, [name])
        if self._words is None:
            self._words = self._find_words()
        return name in self._words

    def _find_words(self) -> frozenset[str]:
        """Columns of words, all in one pass: a table may have thousands of columns."""
        undecided = {k: WordSearch() for k in range(len(self.names))}
        for _, rows in self._blocks():
            for k, search in list(undecided.items()):
                cells = [row[k] for row in rows if not is_missing(row[k])]
                if search.add([cell for cell in cells if cell.strip().lower() not in TRUTH]):
                    del undecided[k]
            if not undecided:
                break
        return frozenset(self.names[k] for k, search in undecided.items() if search.is_text)

    def _blocks(self) -> Iterator[tuple[list[int], list[list[str]]]]:
        """Line numbers and rows, a block at a time, each row as long as the header."""
        lines, rows = [], []
        for count, (line, row) in enumerate(self._records()):
            if count == 0:
                continue
            lines.append(line)
            rows.append(self._checked(line, row))
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
            line, mark = 1 + self._dialect.skipped, self._dialect.delimiter
            source = _Source(file)
            try:
                while True:
                    try:
                        for row in csv.reader(source, delimiter=mark, strict=True):
                            yield line, row
                            line += source.forget()
                        return
                    except csv.Error as error:
                        self._quotes_fail(line, error)
                        yield line, [source.first_alone()]
                        line += 1
            except UnicodeDecodeError as error:
                raise InputError(
                    f"{self.path.name}, at or after line {line}: byte {error.object[error.start]} "
                    f"is not UTF-8. {SAVE_ANEW}"
                ) from error

    def _quotes_fail(self, line: int, error: csv.Error) -> None:
        """Note that a row's quotation marks make no sense, or refuse it."""
        said = f"its quotation marks do not pair up ({error})."
        if not self._lenient or line == 1 + self._dialect.skipped:
            raise InputError(
                f"{self.path.name}, line {line}: {said} Correct it, or leave such rows out with "
                "--skip-bad."
            ) from error
        self._broken[line] = said

    def _decimal(self, at: list[int]) -> list[str]:
        """The decimal mark of each of these columns: a comma where some number of it has one for
        its point, or one of another column, of these or those read before, and it has none that
        can only have a point."""
        mark = self._dialect.delimiter
        if not self._has_commas('"' if mark == "," else ","):
            return ["."] * len(at)
        commas: dict[int, str] = {}
        points: set[int] = set()
        for row in itertools.islice((row for _, row in self._records()), 1, None):
            for k in [k for k in at if k < len(row) and k not in commas]:
                if has_decimal_comma(row[k], mark):
                    commas[k] = row[k].strip()
                elif has_clear_point(row[k]):
                    points.add(k)
            if len(commas) == len(at):
                break
        self._comma = self._comma or next((commas[k] for k in at if k in commas), "")
        return ["," if k in commas or (self._comma and k not in points) else "." for k in at]

    def _has_commas(self, mark: str) -> bool:
        """Whether any line but the first has a mark without which no number has a comma: a quick
        look that often spares a long one."""
        with open(self.path, newline="", encoding=self._dialect.encoding, errors="replace") as file:
            return any(mark in line for line in itertools.islice(file, 1, None))

    def _checked(self, line: int, row: list[str]) -> list[str]:
        """A row with a cell for every name, more only if they are empty. Another is refused, or
        read as empty where the file is read leniently."""
        size = len(self.names)
        if len(row) >= size and not any(map(str.strip, row[size:])):
            return row
        many = "more" if len(row) > size else "fewer"
        columns = "1 column" if size == 1 else f"{size} columns"
        fault = f"{len(row)} cells, {many} than the {columns} of the first line."
        if size == 1:
            fault += " Does the first line name the columns?"
        elif self._dialect.delimiter == "," and len(row) > size:
            fault += " A decimal comma, or text with a comma that is not in quotes?"
        if not self._lenient:
            raise InputError(f"{self.path.name}, line {line}: {fault}")
        self._broken.setdefault(line, fault)
        return [""] * size


class _Source:
    """The lines of a file, those of the row that is being read kept, so that what follows an open
    quotation mark can be read again."""

    def __init__(self, file: Iterable[str]) -> None:
        self._file, self._again = iter(file), list[str]()
        self._read: list[str] = []

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._again.pop() if self._again else next(self._file)
        self._read.append(line)
        return line

    def forget(self) -> int:
        """The row is complete; how many lines it had."""
        size = len(self._read)
        self._read.clear()
        return size

    def first_alone(self) -> str:
        """The line with which the row began; the others will be read again."""
        first, *others = self._read
        self._again += reversed(others)
        self._read.clear()
        return first
