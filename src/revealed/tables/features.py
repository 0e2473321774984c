"""From columns of contexts to the numbers a model learns from, and the same again for new ones.

A column of numbers is centred and scaled; a column of words becomes one column of 0 and 1 for each
word but the first. What was learnt about the columns is plain data, kept with the model.

Letters: B rows, d features.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InputError
from .table import Table, TableFile, in_all, require

MOST_LEVELS = 50
"""Different words of one column; more are names, not categories."""
DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}\b.*|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})\b.*")
"""2026-03-02, 2.3.2026, 03/02/26 08:30: a new one comes every day, so none is ever met again."""


@dataclass(frozen=True)
class Feature:
    """One column of a table of contexts."""

    name: str
    mean: float = 0.0
    scale: float = 1.0
    levels: tuple[str, ...] = ()
    """Words of a category, the reference first; empty for a number."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of what the model sees of it."""
        return tuple(f"{self.name}={level}" for level in self.levels[1:]) or (self.name,)

    def encode(self, numbers: np.ndarray | None, words: Sequence[str], table: Table) -> np.ndarray:
        """(B, columns) numbers of order one."""
        if not self.levels:
            assert numbers is not None
            return ((numbers - self.mean) / self.scale)[:, None]
        place = {level: k for k, level in enumerate(self.levels)}
        for row, word in enumerate(words):
            if word not in place:
                raise InputError(
                    f"{table.where(row, self.name)}: the model has learnt from "
                    f"{', '.join(map(repr, self.levels))}; got {word!r}."
                )
        if len(self.levels) == 1:
            return np.zeros((len(words), 1))  # the same word everywhere: a column that says nothing
        chosen = np.array([place[word] for word in words], int)
        return (chosen[:, None] == np.arange(1, len(self.levels))).astype(float)


@dataclass(frozen=True)
class FeatureMap:
    """All columns that a model looks at, in order."""

    features: tuple[Feature, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """(d,) names of the numbers that the model sees."""
        return tuple(name for feature in self.features for name in feature.columns)

    def read(self, file: TableFile, key: str | None = None) -> tuple[np.ndarray, Table]:
        """(B, d) features of a table, and the table; gaps are refused with their place."""
        words = [feature.name for feature in self.features if feature.levels]
        numbers = [feature.name for feature in self.features if not feature.levels]
        require(file.path, file.names, [*numbers, *words])
        table = file.read(numbers, [*words, *([key] if key and key not in words else [])])
        refuse_gaps(table)
        return self.encode(table), table

    def encode(self, table: Table) -> np.ndarray:
        """(B, d) features of a table that was read."""
        place = {name: j for j, name in enumerate(table.columns)}
        parts = [np.zeros((len(table), 0))]
        for feature in self.features:
            column = table.numbers[:, place[feature.name]] if not feature.levels else None
            parts.append(feature.encode(column, table.text.get(feature.name, ()), table))
        return np.ascontiguousarray(np.hstack(parts))

    def unscaled(self, table: Table, encoded: np.ndarray) -> np.ndarray:
        """(B, d) encoded features of a table with its numbers as they came."""
        place = {name: j for j, name in enumerate(table.columns)}
        numbers = [(k, place[name]) for k, name in enumerate(self._sources) if name is not None]
        values = encoded.copy()
        for k, j in numbers:
            values[:, k] = table.numbers[:, j]
        return values

    @property
    def _sources(self) -> list[str | None]:
        """Of every feature the column of numbers that it is; None for a word."""
        return [None if f.levels else f.name for f in self.features for _ in f.columns]

    def plain(self) -> list[dict[str, Any]]:
        """What JSON can hold of it."""
        return [
            {"name": f.name, "levels": list(f.levels)}
            if f.levels
            else {"name": f.name, "mean": f.mean, "scale": f.scale}
            for f in self.features
        ]


def learn_features(
    file: TableFile,
    *,
    key: str | None = None,
    ignore: Sequence[str] = (),
    apart: Iterable[str] = (),
) -> tuple[FeatureMap, np.ndarray, Table]:
    """Look at a table of contexts for the first time: its features, (B, d) numbers, the table.
    Columns to `ignore` and columns `apart`, which are limits of the plan, are no features."""
    require(file.path, file.names, ignore)
    left_out = {key, *ignore, *apart}
    chosen = [name for name in file.names if name not in left_out]
    if not chosen:
        raise InputError(
            f"{file.path.name} has no column left to learn from. If costs are always the same, add "
            "one that is 1 in every row."
        )
    words = [name for name in chosen if file.is_text(name)]
    worded = set(words)
    numbers = [name for name in chosen if name not in worded]
    table = file.read(numbers, [*words, *([key] if key else [])])
    if len(table) == 0:
        raise InputError(f"{file.path.name} has column names but no rows.")
    refuse_gaps(table)
    place = {name: j for j, name in enumerate(numbers)}
    features = tuple(
        _category(name, table) if name in worded else _number(name, table.numbers[:, place[name]])
        for name in chosen
    )
    learnt = FeatureMap(features)
    return learnt, learnt.encode(table), table


def refuse_gaps(table: Table) -> None:
    """Refuse a context that is not a number in every column."""
    gaps = np.argwhere(~np.isfinite(table.numbers))
    if gaps.size:
        row, column = gaps[0]
        got = "is empty" if np.isnan(table.numbers[row, column]) else "is not finite"
        raise InputError(
            f"{table.where(int(row), table.columns[column])} {got}{in_all(len(gaps))}. Fill it in, "
            "leave the row out, or leave the column out with --ignore."
        )
    for name, words in table.text.items():
        if "" in words:
            raise InputError(
                f"{table.where(words.index(''), name)} is empty. Fill it in, or leave the column "
                "out with --ignore."
            )


def _number(name: str, column: np.ndarray) -> Feature:
    size = float(np.abs(column).max()) or 1.0
    unit = column / size  # so that no square is too large or too small for a number
    scale = float(unit.std())
    if not scale > 1e-12:  # the same everywhere
        return Feature(name, float(unit.mean()) * size)
    return Feature(name, float(unit.mean()) * size, scale * size)


def _category(name: str, table: Table) -> Feature:
    levels = tuple(sorted(set(table.text[name])))
    if all(DATE.fullmatch(level) for level in levels):
        raise InputError(
            f"{table.name}, column {name!r} holds dates such as {levels[0]!r}, which no new row "
            f"will repeat. Leave it out with --ignore {name}, or name it with --id where it says "
            "which row is which; what matters about a date, such as the weekday or the month, "
            "needs a column of its own."
        )
    if len(levels) > MOST_LEVELS:
        raise InputError(
            f"{table.name}, column {name!r} holds {len(levels)} different words; that is no "
            f"category to learn from. Leave it out with --ignore {name}, or name it with --id "
            "where it says which row is which."
        )
    return Feature(name, levels=levels)
