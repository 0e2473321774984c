"""Tables in Parquet files, read batch by batch."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import InputError, MissingDependencyError
from .cells import word
from .table import Table, checked_names, memory_limit, require

BATCH = 65_536
"""Rows decoded at a time: the whole file is never in memory twice."""
NUMBER = 8
"""Bytes."""
ROW_NUMBERS = re.compile(r"__index_level_\d+__")
"""Columns in which pandas keeps the row numbers of a table that was sorted or filtered."""


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
        schema = self._file.schema_arrow
        given = schema.names
        names = checked_names(path, given)
        self._given = dict(zip(names, given, strict=True))
        # Once: every look at the schema goes through all columns, of which there may be thousands.
        self._types: dict[str, Any] = dict(zip(names, schema.types, strict=True))
        self.names = tuple(name for name in names if not ROW_NUMBERS.fullmatch(name))

    def read(self, numbers: Sequence[str], text: Sequence[str] = ()) -> Table:
        require(self.path, self.names, [*numbers, *text])
        for name in numbers:
            self.check_kind(name)
        wanted = [self._given[name] for name in dict.fromkeys([*numbers, *text])]
        values = np.empty((self._expected(len(wanted)), len(numbers)))
        words: dict[str, list[str]] = {name: [] for name in text}
        done = 0
        try:
            for batch in self._file.iter_batches(BATCH, columns=wanted):
                last = done + batch.num_rows
                if last > len(values):  # the file promised fewer rows, or too many to believe
                    values.resize((max(last, 2 * len(values)), len(numbers)), refcheck=False)
                place = {name: k for k, name in enumerate(batch.schema.names)}
                for j, name in enumerate(numbers):
                    column = batch.column(place[self._given[name]])
                    values[done:last, j] = self._numbers(column)
                for name in text:
                    words[name] += map(word, batch.column(place[self._given[name]]).to_pylist())
                done = last
        except (self._arrow.ArrowException, OSError, ValueError) as error:
            raise InputError(f"{self.path.name} cannot be read whole: {_said(error)}") from error
        return Table(self.path.name, values[:done], tuple(numbers), words)

    def _expected(self, columns: int) -> int:
        """Rows to make room for at first: those promised, up to a few batches. More are made room
        for as they come, and no more than memory can hold."""
        rows, most = self._file.metadata.num_rows, memory_limit()
        if rows * max(columns, 1) * NUMBER > most:
            raise InputError(
                f"{self.path.name} has {rows:,} rows; {columns} columns of them take more than the "
                f"{most:,} bytes that are used on this machine. Leave out what is not needed."
            )
        return min(max(rows, 0), 16 * BATCH)

    def is_text(self, name: str) -> bool:
        if name not in self._types:
            require(self.path, self.names, [name])
        kind, types = self._kind(name), self._arrow.types
        texts = (types.is_string, types.is_large_string, types.is_string_view, types.is_temporal)
        return any(is_kind(kind) for is_kind in texts)

    def _kind(self, name: str) -> Any:
        """The type of a column's values, however they are kept."""
        kind = self._types[name]
        return kind.value_type if self._arrow.types.is_dictionary(kind) else kind

    @property
    def rows(self) -> int:
        """As the file promises."""
        return self._file.metadata.num_rows

    def check_kind(self, name: str) -> None:
        """Refuse a column that holds no numbers."""
        kind, types = self._kind(name), self._arrow.types
        known = (types.is_floating, types.is_integer, types.is_boolean, types.is_decimal)
        if not (any(is_kind(kind) for is_kind in known) or types.is_null(kind)):
            raise InputError(
                f"{self.path.name}, column {name!r}: expected numbers, got values of type {kind}."
            )

    def _numbers(self, column: Any) -> np.ndarray:
        if self._arrow.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        cast = column.cast(self._arrow.float64(), safe=False)
        return cast.to_numpy(zero_copy_only=False)


def _said(error: Exception) -> str:
    lines = str(error).splitlines() or [type(error).__name__]
    return lines[0].rstrip(".") + "."
