"""Features of rows of Parquet files, read part by part.

Letters: B rows, d features.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ...datasets.parquet import rows
from ...datasets.pieces import files_of
from ...errors import InputError, PartitionError
from .cells import word
from .features import Feature, FeatureMap
from .gaps import Bad
from .learning import MOST_LEVELS, features_of_words
from .parquet_file import ParquetFile
from .table import Table, require

MOST_DATES = 100_000
"""Different dates of one column; more have their times with them."""


def learn_parts(
    contexts: Path,
    apart: set[str | None],
    *,
    ignore: Sequence[str],
    dates: Sequence[str],
    skip: bool,
) -> tuple[FeatureMap, tuple[str, ...]]:
    """The features of contexts, numbers as they are, and what was assumed. A first pass collects
    the words of categories; columns `apart` are none."""
    files = files_of(os.fspath(contexts), "contexts")
    first = ParquetFile(Path(files[0]))
    require(first.path, first.names, [*ignore, *dates])
    left_out = {*apart, *ignore} - {*dates}
    chosen = [name for name in first.names if name not in left_out]
    if not chosen:
        raise InputError(f"{first.path.name} has no column left to learn from.")
    worded = [name for name in chosen if name in dates or first.is_text(name)]
    words = _different_words(files, worded, dates, skip)
    features: list[Feature] = []
    notes: list[str] = []
    for name in chosen:
        if name in words:
            features += features_of_words(os.fspath(contexts), name, words[name], dates, notes)
        else:
            first.check_kind(name)
            features.append(Feature(name))
    return FeatureMap(tuple(features)), tuple(notes)


def _different_words(
    files: Sequence[str], names: Sequence[str], dates: Sequence[str], skip: bool
) -> dict[str, set[str]]:
    """The words of columns; of those that have too many, one more than that."""
    found: dict[str, set[str]] = {name: set() for name in names}
    most = {name: MOST_DATES if name in dates else MOST_LEVELS for name in names}
    for file in files if names else ():
        try:
            for _, _, table in rows(file, 0, ParquetFile(Path(file)).rows, names):
                for name in names:
                    if len(found[name]) <= most[name]:
                        here = table.column(name).unique().to_pylist()
                        found[name] |= {word(value) for value in here[: most[name] + 2]} - {""}
        except PartitionError:
            if not skip:
                raise
    for name in names:
        if name in dates and len(found[name]) > MOST_DATES:
            raise InputError(
                f"Column {name!r} holds more than {MOST_DATES:,} different dates: write them "
                "without times, or leave the column out with --ignore."
            )
    return found


@dataclass(frozen=True)
class RowEncoder:
    """Makes the features of a model from rows of Parquet files; an `Encoder`."""

    features: FeatureMap
    skip: bool
    """Whether rows that cannot be used are left out, not refused."""
    narrow: bool
    """Whether numbers that are all float32 stay so."""

    @property
    def names(self) -> tuple[str, ...]:
        return self.features.names

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(feature.source for feature in self.features.features))

    @cached_property
    def _numbers(self) -> tuple[str, ...]:
        return tuple(feature.name for feature in self.features.features if not feature.levels)

    def __call__(self, table: Any, path: str, first: int) -> tuple[np.ndarray, np.ndarray | None]:
        bad: Bad | None = {} if self.skip else None
        try:
            Z, _ = self.features.of(self._table(table, path, first), None, bad)
        except InputError as error:
            raise InputError(_without_impute(str(error))) from error
        types = {str(table.column(name).type) for name in self._numbers}
        if self.narrow and types <= {"float"}:
            Z = Z.astype(np.float32)
        return Z, np.setdiff1d(np.arange(len(Z)), [*bad]) if bad else None

    def _table(self, table: Any, path: str, first: int) -> Table:
        numbers = np.empty((len(table), len(self._numbers)))
        for j, name in enumerate(self._numbers):
            numbers[:, j] = _as_numbers(table.column(name), path, name)
        text = {
            name: _as_words(table.column(name))
            for name in self.columns
            if name not in self._numbers
        }
        lines = np.arange(first + 1, first + len(table) + 1)
        name = os.path.basename(path)
        return Table(name, numbers, self._numbers, text, lines, by_row=True)


def _as_numbers(column: Any, path: str, name: str) -> np.ndarray:
    import pyarrow

    try:
        return column.cast(pyarrow.float64(), safe=False).to_numpy()
    except pyarrow.ArrowException as error:
        raise InputError(
            f"{path}, column {name!r}: expected numbers, got values of type {column.type}."
        ) from error


def _as_words(column: Any) -> list[str]:
    """The words of a column, each different one read once."""
    coded = column.combine_chunks().dictionary_encode()
    known = np.array([*map(word, coded.dictionary.to_pylist()), ""], dtype=object)
    index = coded.indices.fill_null(len(known) - 1).to_numpy(zero_copy_only=False)
    return known[index].tolist()


def _without_impute(said: str) -> str:
    """What helps where a table is refused, as far as many files have it."""
    return said.replace("fill all such cells with --impute median (or mean), ", "")


def standardized(features: FeatureMap, mean: np.ndarray, spread: np.ndarray) -> FeatureMap:
    """The features with numbers of mean 0 and standard deviation 1, by what was seen of encoded
    contexts, (d,) each; words stay."""
    found, at = [], 0
    for feature in features.features:
        if not feature.levels:
            scale = float(spread[at]) or 1.0
            feature = Feature(feature.name, float(mean[at]), scale)
        at += len(feature.columns)
        found.append(feature)
    return FeatureMap(tuple(found))


def scales_of(features: FeatureMap) -> tuple[np.ndarray, np.ndarray]:
    """(d,) what is taken from encoded contexts, and what they are divided by."""
    pairs = [
        (f.mean, f.scale) if not f.levels else (0.0, 1.0)
        for f in features.features
        for _ in f.columns
    ]
    mean, scale = np.array(pairs).T
    return mean, scale
