"""What data sets that are read part by part are made of: sources, and runs of their rows."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..errors import InputError


class Piece(NamedTuple):
    """A run of rows of one source."""

    source: int
    start: int
    stop: int


@dataclass(frozen=True)
class Samples:
    """A run of samples as they were read."""

    Z: np.ndarray
    """(b, d) contexts in their own precision."""
    X: np.ndarray | None
    """(b, n) decisions; None where none are there."""
    weights: np.ndarray | None
    """(b,) what each counts; None for 1."""
    ids: Sequence[Any] | None
    """(b,) names of the samples, where they have some."""
    problem: Any
    """Their constraints."""
    where: str
    """Which rows of what these are, for messages."""
    numbers: np.ndarray | None = None
    """(b,) of the rows in their file, where they are of one."""
    left_out: int = 0
    """Rows beside these that cannot be used."""

    def take(self, index: np.ndarray) -> Samples:
        """The chosen samples, by increasing numbers; the others are left out."""
        parts = {name: getattr(self, name) for name in ("Z", "X", "weights", "numbers")}
        chosen = {name: part[index] for name, part in parts.items() if part is not None}
        return replace(
            self,
            **chosen,
            ids=None if self.ids is None else [self.ids[k] for k in index],
            problem=self.problem if self.problem.n_instances is None else self.problem[index],
            left_out=self.left_out + len(self.Z) - len(index),
        )


class Encoder(Protocol):
    """Makes features of columns that are not all numbers; processes must be able to import it."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of contexts that it reads."""
        ...

    @property
    def names(self) -> tuple[str, ...]:
        """(d,) of the features that it makes."""
        ...

    def __call__(self, table: Any, path: str, first: int) -> tuple[np.ndarray, np.ndarray | None]:
        """(b, d) features of an Arrow table, whose rows are those from `first` on of the file
        `path`; and the rows that can be used, None for all."""
        ...


class Source(Protocol):
    """One file, or arrays."""

    @property
    def rows(self) -> int: ...

    @property
    def fingerprint(self) -> str:
        """What tells it from other data, without reading all of it."""
        ...

    def cuts(self) -> list[int]:
        """Rows at which reading may begin without reading what is before them."""
        ...

    def narrowed(self, pieces: list[Piece]) -> tuple[Source, list[Piece]]:
        """What is needed to read these pieces, and which they are there."""
        ...

    def read(self, problem: Any, start: int, stop: int, size: int) -> Iterator[Samples]:
        """Samples `start` to `stop`, at most `size` at a time."""
        ...


def files_of(paths: Any, name: str) -> list[str]:
    """Files that a path, a glob, a folder or a list of these stands for, in the order of names."""
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    found: list[str] = []
    for one in map(os.fspath, given):
        if os.path.isdir(one):
            here = sorted(glob.glob(os.path.join(one, "**", "*.parquet"), recursive=True))
        elif glob.has_magic(one):
            here = sorted(glob.glob(one, recursive=True))
        else:
            here = [one]
        if not here:
            raise InputError(f"`{name}`: no Parquet file is at {one!r}.")
        found += here
    return found
