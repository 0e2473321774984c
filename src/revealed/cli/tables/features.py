"""From columns of contexts to the numbers a model learns from, and the same again for new ones.

A column of numbers is centered and scaled; a column of words becomes one column of 0 and 1 for each
word but the first; a column of dates becomes its weekdays and months, on request. What was learned
about the columns is plain data, kept with the model.

Letters: B rows, d features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..._common.words import count
from ...errors import InputError
from .dates import part_of
from .gaps import Bad, blanked, found_gaps, refuse_gaps
from .table import Table, TableFile, require


@dataclass(frozen=True)
class Feature:
    """One column of a table of contexts."""

    name: str
    mean: float = 0.0
    scale: float = 1.0
    levels: tuple[str, ...] = ()
    """Words of a category, the reference first; empty for a number."""
    fill: float | str | None = None
    """What an empty cell counts as; None where it is refused."""
    column: str = ""
    """Of the dates that it is a part of; empty where it is a column itself."""
    part: str = ""
    """"weekday" or "month" of a date."""
    style: str = ""
    """How the dates are written: "ymd", "dmy" or "mdy"."""

    @property
    def source(self) -> str:
        """The column of the table that it is read from."""
        return self.column or self.name

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of what the model sees of it."""
        return tuple(f"{self.name}={level}" for level in self.levels[1:]) or (self.name,)

    def encode(self, numbers: np.ndarray | None, words: Sequence[str]) -> np.ndarray:
        """(B, columns) numbers of order one. A weekday or month that was never seen counts as an
        average one."""
        if not self.levels:
            assert numbers is not None
            return ((numbers - self.mean) / self.scale)[:, None]
        if len(self.levels) == 1:
            return np.zeros((len(words), 1))  # the same word everywhere: a column that says nothing
        place = {level: k for k, level in enumerate(self.levels)}
        chosen = np.array([place.get(word, -1) for word in words], int)
        coded = (chosen[:, None] == np.arange(1, len(self.levels))).astype(float)
        coded[chosen < 0] = 1.0 / len(self.levels)
        return coded

    def words_of(self, table: Table) -> list[str]:
        """Its words in a table, as far as they can be read."""
        words = table.text.get(self.source, [])
        if not self.part:
            return words
        known = {word: part_of(word, self.part, self.style) or "" for word in set(words)}
        return [known[word] for word in words]


@dataclass(frozen=True)
class FeatureMap:
    """All columns that a model looks at, in order."""

    features: tuple[Feature, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """(d,) names of the numbers that the model sees."""
        return tuple(name for feature in self.features for name in feature.columns)

    def read(
        self, file: TableFile, key: str | None = None, bad: Bad | None = None
    ) -> tuple[np.ndarray, Table]:
        """(B, d) features of a table, and the table. What cannot be read is refused with its
        place, or entered in `bad`, by row; its features are those of an average row then."""
        words = [feature.source for feature in self.features if feature.levels]
        numbers = [feature.name for feature in self.features if not feature.levels]
        words = list(dict.fromkeys(words))
        require(file.path, file.names, [*numbers, *words])
        table = file.read(numbers, [*words, *([key] if key and key not in words else [])])
        Z, table = self.of(table, key, bad)
        return Z, replace(table, notes=(*table.notes, *self._filled(table)))

    def _filled(self, table: Table) -> list[str]:
        """Which empty cells were filled with what the model has kept for them."""
        fill = {f.source: f.fill for f in self.features}
        notes = []
        for name, cells in table.filled_cells.items():
            if cells:
                value = fill[name]
                shown = repr(value) if isinstance(value, str) else f"{value:.6g}"
                notes.append(
                    f"{table.name}: {count(cells, 'empty cell')} of {name} "
                    f"{'is' if cells == 1 else 'are'} filled as in the fit, with {shown}."
                )
        return notes

    def of(self, table: Table, key: str | None, bad: Bad | None) -> tuple[np.ndarray, Table]:
        """The same for a table that was read; the table with its gaps filled."""
        fill = {f.source: f.fill for f in self.features if f.fill is not None and not f.part}
        table = table.filled(fill)
        if bad is None:
            refuse_gaps(table)
        else:
            found_gaps(table, key, bad)
        self._find_unknown(table, bad)
        return self.encode(table if not bad else blanked(table, bad, self._usual)), table

    @property
    def _usual(self) -> dict[str, float]:
        return {f.name: f.mean for f in self.features if not f.levels}

    def _find_unknown(self, table: Table, bad: Bad | None) -> None:
        """Words that the model has not learned from, and dates that are none."""
        for feature in (feature for feature in self.features if feature.levels):
            known = set(feature.levels)
            for row, word in enumerate(feature.words_of(table)):
                if word in known or (feature.part and word) or (bad and row in bad):
                    continue
                got = table.text[feature.source][row]
                said = f"the model has learned from {', '.join(map(repr, feature.levels))}"
                if feature.part:
                    said = "expected a date, written as in the rows learned from"
                if bad is None:
                    place = table.where(row, feature.source)
                    out = "Correct it, or leave such rows out with --skip-bad"
                    more = (
                        "." if feature.part else "; to learn from such rows, fit again with some."
                    )
                    raise InputError(f"{place}: {said}; got {got!r}. {out}{more}")
                bad[row] = f"column {feature.source!r}: {said}; got {got!r}."

    def unseen_parts(self, table: Table) -> dict[str, int]:
        """Weekdays and months that the model has never seen, with the number of rows."""
        found: dict[str, int] = {}
        for feature in (feature for feature in self.features if feature.part):
            for word in feature.words_of(table):
                if word and word not in feature.levels:
                    found[word] = found.get(word, 0) + 1
        return found

    def encode(self, table: Table) -> np.ndarray:
        """(B, d) features of a table that was read."""
        place = {name: j for j, name in enumerate(table.columns)}
        parts = [np.zeros((len(table), 0))]
        for feature in self.features:
            column = table.numbers[:, place[feature.name]] if not feature.levels else None
            parts.append(feature.encode(column, feature.words_of(table)))
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
        return [_plain(feature) for feature in self.features]


def _plain(feature: Feature) -> dict[str, Any]:
    facts: dict[str, Any] = {"name": feature.name}
    if feature.levels:
        facts["levels"] = list(feature.levels)
    else:
        facts |= {"mean": feature.mean, "scale": feature.scale}
    if feature.fill is not None:
        facts["fill"] = feature.fill
    if feature.part:
        facts |= {"column": feature.column, "part": feature.part, "style": feature.style}
    return facts
