"""What every table offers, whatever kind of file it came from.

A file is opened for its column names first; columns are read when it is known what they are for,
numbers or text. Letters: B rows.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import numpy as np

from ...errors import InputError
from .names import did_you_mean, listed, plain_name


@dataclass(frozen=True, eq=False)
class Table:
    """Columns that were read; `where` says in which line of the file an entry stands."""

    name: str
    """Of the file, as it is shown to people."""
    numbers: np.ndarray
    """(B, k) float64, NaN where a cell is empty."""
    columns: tuple[str, ...]
    """The names of the k columns of numbers."""
    text: dict[str, list[str]]
    """Columns that were asked for as text."""
    lines: np.ndarray | None = None
    """(B,) line of the file in which each row begins; None where a file has no lines."""
    faults: dict[int, str] = field(default_factory=dict)
    """What could not be read, by row, where a file is read leniently."""
    notes: tuple[str, ...] = ()
    """What was assumed about how numbers are written."""
    units: dict[str, str] = field(default_factory=dict)
    """Units that were left out, by column."""
    filled_cells: dict[str, int] = field(default_factory=dict)
    """Empty cells that were filled, by column."""
    by_row: bool = False
    """Whether `lines` are numbers of rows, for the file has no lines."""

    def __len__(self) -> int:
        return len(self.numbers)

    def where(self, row: int, column: str | None = None) -> str:
        """`contexts.csv, line 7, column 'load'`; rows are counted from 1 where there are no
        lines."""
        where = place(self.name, row, column, self.lines)
        return where.replace(", line ", ", row ", 1) if self.by_row else where

    def with_numbers(self, numbers: np.ndarray) -> Table:
        """The same table with other numbers."""
        return replace(self, numbers=numbers)

    def filled(self, fill: Mapping[str, float | str]) -> Table:
        """The table with its empty cells filled, by column; rows with faults stay as they are."""
        if not fill:
            return self
        numbers, whole, cells = self.numbers.copy(), np.ones(len(self), bool), {}
        whole[list(self.faults)] = False
        for j, name in enumerate(self.columns):
            if name in fill:
                gaps = np.isnan(numbers[:, j]) & whole
                numbers[gaps, j] = fill[name]
                cells[name] = int(gaps.sum())
        text = {
            name: [
                str(fill[name]) if not word and whole[row] else word
                for row, word in enumerate(words)
            ]
            if name in fill
            else words
            for name, words in self.text.items()
        }
        for name in text.keys() & fill.keys():
            cells[name] = sum(not word and whole[row] for row, word in enumerate(self.text[name]))
        return replace(self, numbers=numbers, text=text, filled_cells=cells)

    def take(self, rows: np.ndarray) -> Table:
        """Some of its rows, whose places in the file stay what they are."""
        lines = np.arange(1, len(self) + 1) if self.lines is None else self.lines
        text = {name: [words[row] for row in rows] for name, words in self.text.items()}
        place = {int(row): k for k, row in enumerate(rows)}
        faults = {place[row]: said for row, said in self.faults.items() if row in place}
        return replace(
            self,
            faults=faults,
            numbers=self.numbers[rows],
            text=text,
            lines=lines[rows],
            by_row=self.by_row or self.lines is None,
        )


def place(name: str, row: int, column: str | None, lines: np.ndarray | None) -> str:
    at = f"row {row + 1}" if lines is None else f"line {lines[row]}"
    return f"{name}, {at}" + ("" if column is None else f", column {column!r}")


def in_all(cells: int) -> str:
    """How many cells a complaint about one of them stands for."""
    return "" if cells == 1 else f" ({cells:,} such cells in all)"


class TableFile(Protocol):
    """A table on disk whose columns can be read by name."""

    path: Path
    names: tuple[str, ...]

    def read(self, numbers: Sequence[str], text: Sequence[str] = ()) -> Table:
        """The named columns; a cell among `numbers` that is none is refused with its place."""
        ...

    def is_text(self, name: str) -> bool:
        """Whether no cell of a column can be read as a number."""
        ...


def checked_names(path: Path, names: Sequence[str]) -> tuple[str, ...]:
    """The column names of a file, none of them empty or there twice."""
    names = [plain_name(str(name)) for name in names]
    if not names:
        raise InputError(f"{path.name} has no columns.")
    seen: dict[str, int] = {}
    for k, name in enumerate(names):
        if not name:
            raise InputError(
                f"{path.name}: column {k + 1} has no name. The first line must name every column; "
                "row numbers that pandas puts before a table are left out by index=False."
            )
        if name in seen:
            raise InputError(
                f"{path.name}: two columns are called {name!r} (columns {seen[name] + 1} "
                f"and {k + 1}). Rename or remove one of them."
            )
        seen[name] = k
    return tuple(names)


def require(path: Path, names: Sequence[str], wanted: Sequence[str]) -> None:
    """Refuse a table that lacks a column."""
    there = set(names)
    missing = [name for name in wanted if name not in there]
    if missing:
        raise InputError(
            f"{path.name} has no column {missing[0]!r}{did_you_mean(missing[0], names)}"
            + (f", nor {listed(missing[1:], 3)}" if len(missing) > 1 else "")
            + f"; its columns are {listed(names)}."
        )


LARGEST = 16 * 2**30
SHARE = 3
"""Part of the machine's memory that a table may fill: reading needs it twice."""


def memory_limit() -> int:
    """Bytes that one table may take on this machine."""
    try:
        physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # a system that does not say
        return LARGEST
    return min(LARGEST, physical // SHARE)
