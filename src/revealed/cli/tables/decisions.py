"""Decisions by name: a column for each variable, or a line for each entry that is not 0.

    wide    day, route_a, route_b, ...          one row per decision
    long    day, variable, value                one row per entry; what is not listed is 0

Letters: B decisions, n variables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ...errors import InputError
from .gaps import Bad, found_gaps
from .names import did_you_mean, listed
from .table import Table, TableFile, in_all

LONG = ("variable", "value")


@dataclass(frozen=True, eq=False)
class DecisionTable:
    """Decisions in the order of the model's variables."""

    values: np.ndarray
    """(B, n)"""
    keys: list[str] | None
    """What each decision is called, where the table has such a column."""
    table: Table
    starts: np.ndarray
    """(B,) row of the table in which each decision begins."""
    faults: dict[int, int] = field(default_factory=dict)
    """Row of the table that makes a decision unreadable, where it lists entries one by one."""

    def __len__(self) -> int:
        return len(self.values)

    def where(self, decision: int, variable: str | None = None) -> str:
        """The place of a decision in its file."""
        named = variable if variable in self.table.columns else None
        return self.table.where(int(self.starts[decision]), named)

    def where_bad(self, decision: int) -> str:
        """The place of what makes a decision unreadable."""
        return self.table.where(self.faults.get(decision, int(self.starts[decision])))


def is_long(file: TableFile) -> bool:
    """Whether a table lists entries one by one."""
    return all(name in file.names for name in LONG)


def read_decisions(
    file: TableFile,
    variables: Sequence[str],
    key: str | None,
    bad: Bad | None = None,
    *,
    gaps: bool = False,
) -> DecisionTable:
    """The decisions of a table for the model's `variables`; `key` names the column that
    identifies decisions. Unreadable decisions are refused, or entered in `bad` and left NaN. With
    `gaps`, empty cells are NaN too, unless there is a `bad` to enter them in."""
    check_names(file, variables, key)
    if is_long(file):
        return _read_long(file, variables, key, bad, gaps)
    table = file.read(variables, [key] if key else [])
    _refuse_missing(table, bad, key, gaps)
    keys = None
    if key:
        keys = table.text[key]
        _refuse_repeated(table, keys, key, bad)
    return DecisionTable(table.numbers, keys, table, np.arange(len(table)))


def check_names(file: TableFile, variables: Sequence[str], key: str | None) -> None:
    """Refuse a table whose columns are not the model's variables. Others may be there too where
    all variables are and a `key` says which row is which: without one, such a column may be it."""
    if is_long(file):
        return
    unknown, missing = unused(file, variables, key), set(variables) - {*file.names}
    if unknown and (missing or key is None):
        message = _unknown(file, unknown, variables, "column")
        same = "" if missing else " If it says which row is which, call it so in both tables."
        raise InputError(f"{file.path.name}: {message}{same}")
    if missing:
        missing = [name for name in variables if name in missing]
        raise InputError(
            f"{file.path.name} has no column for {len(missing)} of the model's {len(variables)} "
            f"variables: {listed(missing)}. Add them, or list entries one by one in columns "
            "'variable' and 'value', where what is not listed is 0."
        )


def unused(file: TableFile, variables: Sequence[str], key: str | None) -> list[str]:
    """Columns that nothing is read from."""
    known = {*(LONG if is_long(file) else variables), key}
    return [name for name in file.names if name not in known]


def _read_long(
    file: TableFile, variables: Sequence[str], key: str | None, bad: Bad | None, gaps: bool
) -> DecisionTable:
    if key is None:
        others = [name for name in file.names if name not in LONG]
        if len(others) != 1:
            raise InputError(
                f"{file.path.name} lists entries one by one, so one more column must say which "
                f"decision an entry belongs to; besides 'variable' and 'value' there are "
                f"{listed(others) if others else 'none'}. Name it with --id."
            )
        key = others[0]
    table = file.read(["value"], [key, "variable"])
    lines: Bad | None = None if bad is None else {}
    if lines is not None or not gaps or np.isinf(table.numbers).any():
        _refuse_missing(table, lines, key)
    place = {name: j for j, name in enumerate(variables)}
    numbers: dict[str, int] = {}
    rows = np.array([numbers.setdefault(word, len(numbers)) for word in table.text[key]], int)
    for line, name in enumerate(table.text["variable"]):
        if name not in place:
            said = _unknown(file, [name], variables, "variable")
            if lines is None:
                raise InputError(f"{table.where(line, 'variable')}: {said}")
            lines.setdefault(line, said)
    good = np.setdiff1d(np.arange(len(table)), [*lines]) if lines else np.arange(len(table))
    columns = np.array([place[table.text["variable"][k]] for k in good], int)
    values = np.zeros((len(numbers), len(variables)))
    _refuse_twice(table, good, rows[good] * len(variables) + columns, lines)
    values[rows[good], columns] = table.numbers[good, 0]
    starts = np.unique(rows, return_index=True)[1] if len(rows) else np.zeros(0, int)
    faults: dict[int, int] = {}
    for line, said in (lines or {}).items():
        values[rows[line]] = np.nan
        if bad is not None and faults.setdefault(int(rows[line]), line) == line:
            bad.setdefault(int(rows[line]), said)
    return DecisionTable(values, list(numbers), table, starts, faults)


def _refuse_twice(table: Table, lines: np.ndarray, entry: np.ndarray, bad: Bad | None) -> None:
    order = np.argsort(entry, kind="stable")
    twice = np.flatnonzero(np.diff(entry[order]) == 0)
    for k in twice:
        first, second = (int(lines[order[at]]) for at in (k, k + 1))
        said = (
            f"the same entry of the same decision is given before, at {table.where(first)}. Keep "
            "one."
        )
        if bad is None:
            raise InputError(f"{table.where(second)}: {said}")
        bad.setdefault(second, said)


def _refuse_missing(table: Table, bad: Bad | None, key: str | None, gaps: bool = False) -> None:
    """Refuse cells without a number, or enter them in `bad`; with `gaps` a row may have some that
    are empty, but not all."""
    if bad is not None:
        found_gaps(table, key, bad)
        return
    cells = ~np.isfinite(table.numbers)
    if gaps:
        empty = np.isnan(table.numbers)
        cells &= ~empty | empty.all(axis=1, keepdims=True)
    missing = np.argwhere(cells)
    if missing.size:
        row, column = missing[0]
        got = "is not finite"
        if np.isnan(table.numbers[row, column]):
            got = "is empty, like every other number of the row" if gaps else "is empty"
        needed = "some variable" if gaps else "every variable"
        raise InputError(
            f"{table.where(int(row), table.columns[column])} {got}; a decision needs a number for "
            f"{needed}{in_all(len(missing))}. Fill it in, or leave such rows out with --skip-bad."
        )


def _refuse_repeated(table: Table, keys: list[str], key: str, bad: Bad | None) -> None:
    seen: dict[str, int] = {}
    for row, word in enumerate(keys):
        if word in seen and not (bad and row in bad):
            said = f"{word!r} is there before, at {table.where(seen[word], key)}."
            if bad is None:
                raise InputError(
                    f"{table.where(row, key)}: {said} Every decision needs a {key} of its own."
                )
            bad[row] = said
        seen.setdefault(word, row)


def _unknown(file: TableFile, unknown: list[str], variables: Sequence[str], what: str) -> str:
    name = unknown[0]
    message = f"the {what} {name!r} is no variable of the model"
    message += did_you_mean(name, [*variables, *(LONG if what == "column" else ())])
    if len(unknown) > 1:
        others = len(unknown) - 1
        message += (
            f", nor {'is 1 other column' if others == 1 else f'are {others:,} other columns'}"
        )
    if len(file.names) == 1 and any(mark in file.names[0] for mark in " ,;|:"):
        message += (
            ". The whole first line was read as one name: is the file separated by something "
        )
        return message + "else than comma, semicolon, tab or bar?"
    return message + f". The model's variables are {listed(variables)}."
