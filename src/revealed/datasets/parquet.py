"""Samples in Parquet files: contexts in one, decisions beside them or in another.

A file is read by runs of rows, and what cannot be read is named by file and row group. Letters: b
rows, n variables.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from .._common.optional import require
from ..errors import InputError, PartitionError
from ..problems.catalogue.paths import between
from ..problems.linear import LinearProgram
from ..problems.structures import PathStructure
from .pieces import Encoder, Piece, Samples, files_of

LIMITS = ("b_eq", "b_ub", "lb", "ub")


@dataclass(frozen=True)
class Columns:
    """Which columns are what; see `Partitions.from_parquet`."""

    features: tuple[str, ...] | None = None
    variables: tuple[str, ...] | None = None
    weights: str | None = None
    ids: str | None = None
    long: tuple[str, str, str] | None = None
    limits: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    constraints: Callable[[Any, dict[str, np.ndarray]], Any] | None = None
    constraint_columns: tuple[str, ...] = ()
    ends: tuple[str, str] | None = None
    encoder: Encoder | None = None
    """Makes the features of its columns, where they are not all numbers."""

    @property
    def sources(self) -> tuple[str, ...]:
        """Columns that features are made of."""
        return (self.features or ()) if self.encoder is None else self.encoder.columns

    @property
    def besides(self) -> tuple[str, ...]:
        """Columns of contexts that are no features."""
        more = [name for name in (self.weights, self.ids) if name is not None]
        for names in self.limits.values():
            more += names
        return tuple(dict.fromkeys([*more, *self.constraint_columns, *(self.ends or ())]))


def open_files(
    problem: Any, contexts: Any, decisions: Any, columns: Columns, bad: str
) -> tuple[list[ParquetPair], Columns, list[str]]:
    """The files as sources, the columns with what they leave open filled in, and what was
    skipped."""
    _check(problem, columns)
    first = files_of(contexts, "contexts")
    second = [None] * len(first) if decisions is None else files_of(decisions, "decisions")
    if len(first) != len(second):
        raise InputError(
            f"The k-th file of decisions belongs to the k-th of contexts; got {len(first)} files "
            f"of contexts and {len(second)} of decisions."
        )
    pairs, skipped = [], []
    for own, other in zip(first, second, strict=True):
        pair = ParquetPair(own, other, columns)
        try:
            if not pairs:
                columns = _completed(problem, pair, columns)
                pair = replace(pair, columns=columns)
            pair.check()
            if pair.rows:
                pairs.append(pair)
        except PartitionError as error:
            if bad == "refuse":
                raise
            skipped.append(str(error))
    if not pairs:
        raise InputError("No file can be read." + (f" The first: {skipped[0]}" if skipped else ""))
    return pairs, columns, skipped


def _check(problem: Any, columns: Columns) -> None:
    unknown = set(columns.limits) - set(LIMITS)
    if unknown:
        raise InputError(f"`limits` are of {', '.join(LIMITS)}; got {', '.join(sorted(unknown))}.")
    if columns.limits and not isinstance(problem, LinearProgram):
        raise InputError("`limits` are for a LinearProgram; give `constraints` for others.")
    if columns.ends is not None and not isinstance(problem.structure, PathStructure):
        raise InputError("`ends` are those of paths: give a problem of `shortest_path`.")
    if columns.long is not None and columns.ids is None:
        raise InputError("`long` decisions are found by name: give `ids`, a column of contexts.")


def _completed(problem: Any, pair: ParquetPair, columns: Columns) -> Columns:
    """The columns with features and variables named."""
    from pyarrow import types

    same = pair.decisions == pair.contexts
    variables = columns.variables
    if variables is None and columns.long is None and pair.decisions is not None:
        if same:
            raise InputError(
                "Contexts and decisions are in the same files: give `variables`, the columns of "
                "decisions."
            )
        schema = _file(pair.decisions).schema_arrow
        variables = tuple(name for name in schema.names if name != columns.ids)
    n = problem.n_variables
    if variables is not None and len(variables) != n:
        raise InputError(
            f"There must be a column of decisions for each of the {n} variables; got "
            f"{len(variables)}."
        )
    features = columns.features
    if columns.encoder is not None:
        features = columns.encoder.names
    if features is None:
        schema, other = _file(pair.contexts).schema_arrow, {*columns.besides}
        other |= {*(variables or ())} if same else set()
        features = tuple(
            part.name
            for part in schema
            if part.name not in other
            and (
                types.is_floating(part.type)
                or types.is_integer(part.type)
                or types.is_boolean(part.type)
            )
        )
    if not features:
        raise InputError(f"{pair.contexts}: no column of numbers is left to be a feature.")
    return replace(columns, features=features, variables=variables)


@dataclass(frozen=True)
class ParquetPair:
    """A file of contexts and the file of their decisions, which may be the same."""

    contexts: str
    decisions: str | None
    columns: Columns

    @cached_property
    def _bounds(self) -> list[int]:
        """Where row groups of the contexts begin, and the number of rows."""
        return _row_bounds(_file(self.contexts))

    @property
    def rows(self) -> int:
        return self._bounds[-1]

    def __getstate__(self) -> dict[str, Any]:
        return {k: self.__dict__[k] for k in ("contexts", "decisions", "columns")}

    @property
    def fingerprint(self) -> str:
        told = []
        for path in (self.contexts, self.decisions):
            if path is not None:
                told.append(f"{os.path.basename(path)} {os.path.getsize(path)}")
        return f"{told} {self.rows} {self.columns.features} {self.columns.variables}"

    def cuts(self) -> list[int]:
        return self._bounds[:-1]

    def narrowed(self, pieces: list[Piece]) -> tuple[ParquetPair, list[Piece]]:
        return self, pieces

    def check(self) -> None:
        """Refuse files without the columns, and pairs of different length."""
        c = self.columns
        _require(self.contexts, (*c.sources, *c.besides))
        if self.decisions is None:
            return
        _require(self.decisions, c.long if c.long else (c.variables or ()))
        if c.long is None and self.decisions != self.contexts:
            there = _row_bounds(_file(self.decisions))[-1]
            if there != self.rows:
                raise InputError(
                    f"{self.decisions}: {there:,} rows of decisions, where {self.contexts} has "
                    f"{self.rows:,} of contexts. They must be of the same samples in one order."
                )

    def read(self, problem: Any, start: int, stop: int, size: int) -> Iterator[Samples]:
        c = self.columns
        long = None
        if c.long is not None and self.decisions is not None:
            long = _LongDecisions(self, problem.n_variables, start, stop)
        for first, where, table, beside in self._tables(start, stop, size):
            Z, kept = self._features(table, first, where)
            ids = table.column(c.ids).to_pylist() if c.ids else None
            X = None if long is None else long.of(ids)
            if beside is not None:
                X = self._decisions(beside, ids)
            weights = None
            if c.weights is not None:
                weights = _numbers(table, (c.weights,), where)[:, 0].astype(np.float64)
            own = self._problem(problem, table, where)
            numbers = np.arange(first, first + len(table))
            some = Samples(Z, X, weights, ids, own, where, numbers)
            yield some if kept is None else some.take(kept)

    def _tables(
        self, start: int, stop: int, size: int
    ) -> Iterator[tuple[int, str, Any, tuple[str, Any] | None]]:
        """Runs of rows: the number of the first, words for which these are, the table of contexts,
        and words and table of wide decisions."""
        c = self.columns
        own = c.variables if c.long is None and self.decisions is not None else None
        names = [*c.sources, *c.besides]
        if own is None or self.decisions == self.contexts:
            columns = dict.fromkeys([*names, *(own or ())])
            for first, where, table in rows(self.contexts, start, stop, columns, size):
                yield first, where, table, None if own is None else (where, table)
            return
        assert self.decisions is not None
        there = column_names(self.decisions)
        beside = dict.fromkeys([*own, *([c.ids] if c.ids in there else [])])
        for (first, where, table), (_, other, decisions) in zip(
            rows(self.contexts, start, stop, dict.fromkeys(names), size),
            rows(self.decisions, start, stop, beside, size),
            strict=True,
        ):
            yield first, where, table, (other, decisions)

    def _features(self, table: Any, first: int, where: str) -> tuple[np.ndarray, np.ndarray | None]:
        c = self.columns
        if c.encoder is not None:
            return c.encoder(table, self.contexts, first)
        return _numbers(table, c.features, where), None

    def _decisions(self, beside: tuple[str, Any], ids: list[Any] | None) -> np.ndarray:
        """(b, n) wide decisions; refused where they are of other samples than the contexts."""
        c, (where, table) = self.columns, beside
        apart = self.decisions != self.contexts
        if ids is not None and apart and c.ids in table.column_names:
            theirs = table.column(c.ids).to_pylist()
            other = next((k for k, id in enumerate(ids) if id != theirs[k]), None)
            if other is not None:
                raise InputError(
                    f"{where}: the decision of {theirs[other]!r} is where the contexts have "
                    f"{ids[other]!r}. Files of decisions must be in the order of the contexts."
                )
        return _numbers(table, c.variables, where).astype(np.float64, copy=False)

    def _problem(self, problem: Any, table: Any, where: str) -> Any:
        c = self.columns
        if c.limits:
            parts = {name: getattr(problem, name) for name in LIMITS}
            for name, columns in c.limits.items():
                parts[name] = _numbers(table, columns, where).astype(np.float64)
            problem = LinearProgram(
                problem.eq_rows, parts["b_eq"], problem.ub_rows, parts["b_ub"], parts["lb"],
                parts["ub"],
            )  # fmt: skip
        if c.ends is not None:
            source, target = (table.column(name).to_numpy() for name in c.ends)
            problem = between(problem, source, target)
        if c.constraints is not None:
            there = {name: table.column(name).to_numpy() for name in c.constraint_columns}
            try:
                problem = c.constraints(problem, there)
            except InputError as error:
                raise type(error)(f"{where}: {error}") from error
        return problem


class _LongDecisions:
    """Decisions of a line for each entry that is not 0, of samples of one run."""

    def __init__(self, pair: ParquetPair, n: int, start: int, stop: int) -> None:
        self._n, self._path = n, pair.decisions
        c = pair.columns
        assert c.long is not None
        assert c.ids is not None
        assert self._path is not None
        names = np.concatenate(
            [t.column(c.ids).to_numpy() for _, _, t in rows(pair.contexts, start, stop, [c.ids])]
        )
        key, entry, value = c.long
        try:
            table = _parquet().read_table(
                self._path,
                columns=[key, entry, value],
                filters=[(key, ">=", names.min()), (key, "<=", names.max())],
            )
        except Exception as error:
            raise _unreadable(self._path, None, error) from error
        self._keys, places = np.unique(names, return_inverse=True)
        if len(self._keys) != len(names):
            twice = self._keys[np.bincount(places) > 1][0]
            raise InputError(f"{pair.contexts}: the sample {twice!r} is there twice.")
        found = table.column(key).to_numpy()
        at = np.searchsorted(self._keys, found)
        real = (at < len(self._keys)) & (self._keys[np.minimum(at, len(self._keys) - 1)] == found)
        self._at = at[real]
        self._entries = self._numbers_of(table.column(entry).to_numpy()[real], c.variables)
        self._values = table.column(value).to_numpy()[real].astype(np.float64)
        order = np.argsort(self._at, kind="stable")
        self._at, self._entries = self._at[order], self._entries[order]
        self._values = self._values[order]

    def _numbers_of(self, entries: np.ndarray, variables: tuple[str, ...] | None) -> np.ndarray:
        if variables is None:
            numbers = entries.astype(np.int64)
            if numbers.size and (numbers.min() < 0 or numbers.max() >= self._n):
                raise InputError(
                    f"{self._path}: variables are numbers from 0 to {self._n - 1}; got "
                    f"{numbers.min()} to {numbers.max()}."
                )
            return numbers
        known = {name: k for k, name in enumerate(variables)}
        try:
            return np.array([known[name] for name in entries.tolist()], np.int64)
        except KeyError as error:
            raise InputError(f"{self._path}: {error} is no variable of the problem.") from error

    def of(self, ids: Any) -> np.ndarray:
        """(b, n) of named samples."""
        X = np.zeros((len(ids), self._n))
        numbers = np.searchsorted(self._keys, np.asarray(ids))
        low, high = (np.searchsorted(self._at, numbers, side=side) for side in ("left", "right"))
        for row, (a, b) in enumerate(zip(low, high, strict=True)):
            np.add.at(X[row], self._entries[a:b], self._values[a:b])
        return X


# --- reading --------------------------------------------------------------------------------------


def rows(
    path: str, start: int, stop: int, columns: Any, size: int = 65_536
) -> Iterator[tuple[int, str, Any]]:
    """Rows `start` to `stop` as tables of `size` rows: the number of the first, words for which
    these are, and the table."""
    import pyarrow

    file = _file(path)
    bounds, names = _row_bounds(file), list(columns)
    kept: list[Any] = []
    held, where = 0, ""
    at = start
    for group in range(len(bounds) - 1):
        first, last = bounds[group], bounds[group + 1]
        if last <= start or first >= stop:
            continue
        where = f"{path}, row group {group}"
        try:
            row = first
            for batch in file.iter_batches(batch_size=size, row_groups=[group], columns=names):
                a, b = max(start - row, 0), min(stop - row, len(batch))
                row += len(batch)
                if a < b:
                    kept.append(batch.slice(a, b - a))
                    held += b - a
                while held >= size:
                    table = pyarrow.Table.from_batches(kept)
                    yield at, where, table.slice(0, size)
                    rest = table.slice(size)
                    kept, held, at = rest.to_batches(), len(rest), at + size
                if row >= stop:
                    break
        except (OSError, pyarrow.ArrowException) as error:
            raise _unreadable(path, group, error) from error
    if held:
        yield at, where, pyarrow.Table.from_batches(kept)


def _numbers(table: Any, names: Any, where: str) -> np.ndarray:
    """(b, k) the columns as numbers, float32 where all of them are."""
    parts = []
    for name in names:
        column = table.column(name)
        if column.null_count:
            row = next(k for k, value in enumerate(column.to_pylist()) if value is None)
            raise InputError(f"{where}, column {name!r}: row {row} of these is empty.")
        part = column.to_numpy()
        if part.dtype.kind not in "fiub":
            raise InputError(f"{where}, column {name!r}: expected numbers, got {column.type}.")
        parts.append(part)
    dtype = np.float32 if all(part.dtype == np.float32 for part in parts) else np.float64
    result = np.empty((len(table), len(parts)), dtype)
    for k, part in enumerate(parts):
        result[:, k] = part
    return result


def _file(path: str) -> Any:
    """The opened file, without its data."""
    if not os.path.exists(path):
        raise PartitionError(f"{path}: there is no such file.", path=path)
    try:
        return _parquet().ParquetFile(path)
    except Exception as error:
        raise _unreadable(path, None, error) from error


def _row_bounds(file: Any) -> list[int]:
    sizes = [file.metadata.row_group(k).num_rows for k in range(file.metadata.num_row_groups)]
    return [0, *np.cumsum(sizes).tolist()]


def column_names(path: str) -> list[str]:
    """All columns of a file."""
    return list(_file(path).schema_arrow.names)


def _require(path: str, names: Any) -> None:
    there = set(_file(path).schema_arrow.names)
    missing = [name for name in names if name not in there]
    if missing:
        raise InputError(f"{path}: there is no column {missing[0]!r}.")


def _unreadable(path: str, group: int | None, error: Exception) -> PartitionError:
    what = path if group is None else f"{path}, row group {group}"
    return PartitionError(
        f"{what} cannot be read: {str(error).strip().splitlines()[0].rstrip('.')}. Write it anew, "
        "or leave out what cannot be read with bad='skip'.",
        path=path,
        row_group=group,
    )


def _parquet() -> Any:
    require("pyarrow", "Reading Parquet files", "tables")
    import pyarrow.parquet as parquet

    return parquet
