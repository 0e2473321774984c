"""A column of cells, block by block, as numbers; what was assumed, and which cells are none.

Letters: B rows.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from ..._common.words import count
from .cells import MISSING, has_decimal_point, quantity
from .names import listed

SHOWN = 1_000
"""Cells with a unit, or with marks between thousands, that are kept to be shown."""
TWO_WAYS = " Is that a decimal comma, or does it set off thousands? Write neither."
MOST_WORDS = 50
"""Different cells with units of their own up to which a column is a category, not a mistake."""


class Column:
    """One column of numbers, read in blocks and judged as a whole."""

    def __init__(self, name: str, decimal: str) -> None:
        self.name, self.decimal = name, decimal
        self.faults: dict[int, str] = {}
        """What is wrong, by row."""
        self._rows = self._filled = 0
        self._units: dict[str, list[int]] = {}
        self._grouped: list[int] = []
        self._cells: dict[int, str] = {}
        self._lone: dict[int, str] = {}
        self.points = False
        """Whether some number has a decimal point."""

    def add(self, cells: list[str]) -> np.ndarray:
        """(B,) numbers of the next cells, NaN for gaps and for what is none."""
        values = self._quickly(cells)
        if values is None:
            values = np.array([self._one(self._rows + k, cell) for k, cell in enumerate(cells)])
        else:
            self._filled += len(cells)
            self.points |= any(map(has_decimal_point, cells[:100]))
        self._rows += len(cells)
        return values

    def _quickly(self, cells: list[str]) -> np.ndarray | None:
        """All cells at once, where `float` reads them as people do: no underscores, no digits of
        other scripts, no `nan` or `infinity`."""
        joined = "".join(cells)
        if not joined.isascii() or any(mark in joined for mark in "_nN"):
            return None
        if self.decimal == "," and "." in joined:
            return None
        try:
            values = np.array(cells, dtype=np.float64)
        except ValueError:
            return None
        return values if np.isfinite(values).all() else None  # 1e400 is infinite for `float`

    def _one(self, row: int, cell: str) -> float:
        if cell.strip().lower() in MISSING:
            return float("nan")
        found = quantity(cell, self.decimal)
        self._filled += 1
        if found is None:
            self.faults[row] = f"expected a number, got {short(cell)}.{_hint(cell, self.decimal)}"
            return float("nan")
        if found.unit:
            rows = self._units.setdefault(found.unit, [])
            rows.append(row)
            if len(rows) <= SHOWN:
                self._cells[row] = cell
        if found.grouped:
            self._grouped.append(row)
            if len(self._grouped) <= SHOWN:
                self._cells[row] = cell
        if found.lone:
            self._lone[row] = cell
        elif found.grouped and "," in cell:
            self.points |= self.decimal == "."  # as in 1,234.5
        self.points |= has_decimal_point(cell)
        return found.value

    def finish(self, values: np.ndarray, points: bool) -> None:
        """Judge the units and marks of the whole column; cells of no use become NaN. `points` says
        that its file writes decimal points, so that a comma can only set off thousands."""
        self._judge_units()
        if not points:
            for row, cell in self._lone.items():
                self.faults[row] = f"expected a number, got {short(cell)}.{TWO_WAYS}"
        self._count_groups(values)
        if self.faults:
            values[list(self.faults)] = np.nan

    def _count_groups(self, values: np.ndarray) -> None:
        """How many of the cells that are used have marks between thousands, and one of them."""
        used = [row for row in self._grouped if row not in self.faults]
        self.grouped = len(used)
        row = next((row for row in used if row in self._cells), None)
        if row is not None:
            self.example = f": {self._cells[row].strip()!r} is {values[row]:.12g}"

    def _judge_units(self) -> None:
        """The unit that most cells have is that of the column; another is a fault."""
        if not self._units:
            return
        usual = max(self._units, key=lambda unit: len(self._units[unit]))
        with_unit = sum(map(len, self._units.values()))
        rare = 2 * len(self._units[usual]) < self._filled
        self.bare = 0 if rare else self._filled - with_unit - len(self.faults)
        for unit, rows in self._units.items():
            if not rare and unit == usual:
                continue
            why = f"its unit is {unit}, that of most numbers of the column is {usual}."
            if rare:
                why = "most numbers of the column have no unit."
            elif unit.casefold() == usual.casefold():
                why += " Write it in one way."
            for row in rows:
                shown = short(self._cells.get(row, unit))
                self.faults[row] = f"expected a number, got {shown}: {why}"
        if "%" in usual and not rare and self.bare > 0:
            self.faults |= dict.fromkeys(
                self._units[usual],
                f"some numbers of the column have {usual} and {self.bare:,} have none: does 0.5 "
                f"mean one half, or half a percent? Write the unit in every cell or in none.",
            )
        self.unit = "" if rare else usual

    unit = ""
    """The one that was left out of every cell."""
    bare = 0
    """Cells that had none of it."""
    grouped = 0
    """Cells that are used and have marks between thousands."""
    example = ""
    """One of them with its value, as a note shows it."""


def notes_of(columns: list[Column]) -> list[str]:
    """What was assumed about columns, those that are alike in one sentence."""
    notes = []
    for unit in dict.fromkeys(column.unit for column in columns if column.unit):
        same = [column for column in columns if column.unit == unit]
        bare = sum(column.bare for column in same)
        said = f"{listed([c.name for c in same])} {_is(same)} in {unit}, which is left out"
        if bare:
            said += f"; {count(bare, 'cell')} without a unit {'is' if bare == 1 else 'are'} taken "
            said += "to be in it too"
        notes.append(said)
    grouped = [column for column in columns if column.grouped]
    if grouped:
        cells = sum(column.grouped for column in grouped)
        notes.append(
            f"{count(cells, 'cell')} of {listed([c.name for c in grouped])} "
            f"{'has' if cells == 1 else 'have'} marks that set off thousands{grouped[0].example}"
        )
    return notes


def _is(columns: list[Column]) -> str:
    return "is" if len(columns) == 1 else "are"


class WordSearch:
    """Whether a column is one of words. It is one of numbers if any cell is a number; or if all are
    numbers with the same unit; or if most are and there are too many for a category."""

    def __init__(self) -> None:
        self._units: Counter[str | None] = Counter()
        self._different: set[str] = set()

    def add(self, cells: list[str]) -> bool:
        """Look at more cells that are not missing; True once it is known to hold numbers."""
        for cell in cells:
            found = quantity(cell) or quantity(cell, ",")
            if found is not None and not found.unit:
                return True
            self._units[found.unit if found else None] += 1
            if len(self._different) <= MOST_WORDS:
                self._different.add(cell)
        return False

    @property
    def is_text(self) -> bool:
        usual = max((n for unit, n in self._units.items() if unit), default=0)
        if not self._units:
            return False  # nothing but gaps
        alike = len(self._units) == 1 or len(self._different) > MOST_WORDS
        return not (alike and 2 * usual >= self._units.total())


def _hint(cell: str, decimal: str) -> str:
    """What may be wrong with a cell of figures that is no number."""
    if "_" in cell and all(letter in "0123456789.,+-_ eE" for letter in cell):
        return " Write numbers without underscores."
    if any(letter.isdigit() and not letter.isascii() for letter in cell):
        return " Write it in the digits 0 to 9."
    if not all(letter in "0123456789.,+- " for letter in cell):
        return ""
    if decimal == "," and "." in cell:
        return " Other numbers of this column have a decimal comma: use one or the other."
    if "," in cell:
        return TWO_WAYS
    return ""


def short(cell: str) -> str:
    """A cell as a message shows it."""
    return repr(cell if len(cell) <= 40 else cell[:37] + "...")
