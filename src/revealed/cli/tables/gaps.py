"""Rows that cannot be used: refused with their place, or left out and named.

Letters: B rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...errors import InputError
from .table import Table, in_all

Bad = dict[int, str]
"""Rows that cannot be used, and why."""

WAYS_OUT = (
    "Fill it in, fill all such cells with --impute median (or mean), leave such rows out with "
    "--skip-bad, or leave the column out with --ignore."
)


class Skipped(NamedTuple):
    """A row that was left out."""

    place: str
    """In its file."""
    why: str
    sample: str = ""
    """What people call it, where it has a name."""

    def plain(self) -> dict[str, str]:
        return self._asdict()


def refuse_gaps(table: Table) -> None:
    """Refuse a context that is not a number in every column."""
    gaps = np.argwhere(~np.isfinite(table.numbers))
    if gaps.size:
        row, column = gaps[0]
        got = "is empty" if np.isnan(table.numbers[row, column]) else "is not finite"
        raise InputError(
            f"{table.where(int(row), table.columns[column])} {got}{in_all(len(gaps))}. {WAYS_OUT}"
        )
    for name, words in table.text.items():
        if "" in words:
            raise InputError(f"{table.where(words.index(''), name)} is empty. {WAYS_OUT}")


def found_gaps(table: Table, key: str | None, bad: Bad) -> None:
    """Enter into `bad` the rows of a table with faults, gaps, or numbers that are not finite."""
    for row, said in table.faults.items():
        bad.setdefault(row, said)
    for row, column in np.argwhere(~np.isfinite(table.numbers)):
        got = "is empty" if np.isnan(table.numbers[row, column]) else "is not finite"
        bad.setdefault(int(row), f"column {table.columns[column]!r} {got}.")
    for name, words in table.text.items():
        for row in (row for row, word in enumerate(words) if not word):
            what = ", which says which row is which," if name == key else ""
            bad.setdefault(row, f"column {name!r}{what} is empty.")


def blanked(table: Table, bad: Bad, usual: dict[str, float]) -> Table:
    """The table with usual numbers in its bad rows, so that all of it can be encoded."""
    numbers = table.numbers.copy()
    rows = list(bad)
    numbers[rows] = [usual.get(name, 0.0) for name in table.columns]
    return table.with_numbers(numbers)
