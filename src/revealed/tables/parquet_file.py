"""Tables in Parquet files, read batch by batch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError, MissingDependencyError
from .table import Table, checked_names, require

BATCH = 65_536
"""Rows decoded at a time: the whole file is never in memory twice."""


class ParquetFile:
    """A Parquet file with flat columns of numbers or text."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            import pyarrow
            import pyarrow.parquet as parquet
        except ImportError as error:
            raise MissingDependencyError(
                "Parquet files are read with pyarrow, which is not installed: "
                "`pip install 'revealed[tables]'`."
            ) from error
        self._arrow: Any = pyarrow
        try:
            self._file: Any = parquet.ParquetFile(path)
        except (pyarrow.ArrowException, OSError, ValueError) as error:
            raise InputError(
                f"{path.name} is not a readable Parquet file: {_said(error)}"
            ) from error
        self.names = checked_names(path, self._file.schema_arrow.names)

    def read(self, numbers: Sequence[str], text: Sequence[str] = ()) -> Table:
        require(self.path, self.names, [*numbers, *text])
        for name in numbers:
            self._check_kind(name)
        values = np.empty((self._file.metadata.num_rows, len(numbers)))
        wanted = [*dict.fromkeys([*numbers, *text])]
        words: dict[str, list[str]] = {name: [] for name in text}
        done = 0
        try:
            for batch in self._file.iter_batches(BATCH, columns=wanted):
                part = slice(done, done + batch.num_rows)
                for j, name in enumerate(numbers):
                    values[part, j] = self._numbers(batch.column(name))
                for name in text:
                    words[name] += [_word(value) for value in batch.column(name).to_pylist()]
                done += batch.num_rows
        except (self._arrow.ArrowException, OSError, ValueError) as error:
            raise InputError(f"{self.path.name} cannot be read whole: {_said(error)}") from error
        return Table(self.path.name, values[:done], tuple(numbers), words)

    def is_text(self, name: str) -> bool:
        require(self.path, self.names, [name])
        kind = self._file.schema_arrow.field(name).type
        types = self._arrow.types
        if types.is_dictionary(kind):
            kind = kind.value_type
        return types.is_string(kind) or types.is_large_string(kind)

    def _check_kind(self, name: str) -> None:
        kind = self._file.schema_arrow.field(name).type
        types = self._arrow.types
        known = (types.is_floating, types.is_integer, types.is_boolean, types.is_decimal)
        if not (any(is_kind(kind) for is_kind in known) or types.is_null(kind)):
            raise InputError(
                f"{self.path.name}, column {name!r}: expected numbers, got values of type {kind}."
            )

    def _numbers(self, column: Any) -> np.ndarray:
        cast = column.cast(self._arrow.float64(), safe=False)
        return cast.to_numpy(zero_copy_only=False)


def _word(value: Any) -> str:
    if value is None:
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _said(error: Exception) -> str:
    lines = str(error).splitlines() or [type(error).__name__]
    return lines[0].rstrip(".") + "."
