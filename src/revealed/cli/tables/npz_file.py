"""Tables in npz files: one array for each column, or one matrix `values` with its `names`."""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.lib import format as npy

from ...errors import InputError
from .cells import word
from .table import Table, checked_names, memory_limit, require

NUMBER, WORD = 8, 64
"""Bytes that an entry takes at least once it is read."""
DENSEST = 1040
"""Bytes that one byte of deflated data can become at most (zlib: 1032)."""


class NpzFile:
    """Arrays by name, none of them of Python objects."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with zipfile.ZipFile(path) as archive:
                headers = _headers(archive, path)
        except (zipfile.BadZipFile, OSError, zlib.error, NotImplementedError) as error:
            raise InputError(f"{path.name} is not a readable npz file: {error}.") from error
        self._shapes = {name: header.shape for name, header in headers.items()}
        self._members = {name: header.member for name, header in headers.items()}
        self._texts: frozenset[str] = frozenset()
        self._matrix = set(self._shapes) == {"values", "names"}
        if self._matrix:
            self.names = checked_names(path, [str(name) for name in self._array("names").ravel()])
            if len(self._shapes["values"]) != 2 or self._shapes["values"][1] != len(self.names):
                raise InputError(
                    f"{path.name}: `values` must have one column for each of the "
                    f"{len(self.names)} `names`; got shape {self._shapes['values']}."
                )
        else:
            self._check_columns()
            self.names = checked_names(path, list(self._shapes))
            given = list(zip(self.names, headers.values(), strict=True))
            self._members = {name: header.member for name, header in given}
            self._texts = frozenset(name for name, header in given if header.kind in TEXTS)
        self._there = frozenset(self.names)

    def read(self, numbers: Sequence[str], text: Sequence[str] = ()) -> Table:
        require(self.path, self.names, [*numbers, *text])
        if self._matrix:
            values, place = self._array("values"), {name: k for k, name in enumerate(self.names)}
            chosen = values[:, [place[name] for name in numbers]]
            given = {name: values[:, place[name]] for name in text}
        else:
            size = next(iter(self._shapes.values()))[0]
            arrays = self._arrays({*numbers, *text})
            for name in numbers:
                self._refuse_words(name, arrays[name])
            columns = [arrays[name] for name in numbers]
            chosen = np.column_stack(columns) if columns else np.zeros((size, 0))
            given = {name: arrays[name] for name in text}
        self._refuse_words("values", chosen)
        words = {name: [word(value.item()) for value in column] for name, column in given.items()}
        return Table(self.path.name, chosen.astype(np.float64, copy=False), tuple(numbers), words)

    def is_text(self, name: str) -> bool:
        if name not in self._there:
            require(self.path, self.names, [name])
        return name in self._texts

    def _array(self, name: str) -> np.ndarray:
        return self._arrays([name])[name]

    def _arrays(self, names: Iterable[str]) -> dict[str, np.ndarray]:
        """Arrays by name; the list of contents is read once for all."""
        arrays, name = {}, ""
        try:
            with zipfile.ZipFile(self.path) as archive:
                for name in names:
                    with archive.open(self._members[name]) as file:
                        arrays[name] = npy.read_array(file, allow_pickle=False)
        except (
            ValueError,
            OSError,
            EOFError,
            MemoryError,
            zipfile.BadZipFile,
            zlib.error,
        ) as error:
            raise InputError(
                f"{self.path.name}, array {name!r} cannot be read: {error}. Arrays of numbers or "
                "text are expected, none of Python objects."
            ) from error
        for name, array in arrays.items():
            if array.dtype.kind == "M":
                arrays[name] = array.astype("datetime64[s]")
        return arrays

    def _check_columns(self) -> None:
        lengths = {name: shape for name, shape in self._shapes.items() if len(shape) != 1}
        if lengths:
            name, shape = next(iter(lengths.items()))
            raise InputError(
                f"{self.path.name}: array {name!r} has shape {shape}. Give one array of one "
                "dimension for each column, or a matrix `values` with its column `names`."
            )
        if len({shape[0] for shape in self._shapes.values()}) > 1:
            uneven = ", ".join(f"{name!r} has {shape[0]}" for name, shape in self._shapes.items())
            raise InputError(f"{self.path.name}: columns must be equally long; {uneven}.")

    def _refuse_words(self, name: str, array: np.ndarray) -> None:
        if array.dtype.kind not in "fiub":
            raise InputError(
                f"{self.path.name}, column {name!r}: expected numbers, got dtype {array.dtype}."
            )


def _stem(name: str) -> str:
    return name.removesuffix(".npy")


TEXTS = "USM"
"""Kinds of array whose entries are words, dates among them."""


class Header(NamedTuple):
    """What is known of an array before it is read."""

    member: str
    """Its name in the archive."""
    shape: tuple[int, ...]
    kind: str
    bytes: int
    """That it takes once it is read."""


def _headers(archive: zipfile.ZipFile, path: Path) -> dict[str, Header]:
    """The headers of all arrays, none of which may promise more than the file holds."""
    entries = archive.infolist()
    headers = {_stem(entry.filename): _header(archive, entry, path) for entry in entries}
    if len(headers) < len(entries):
        raise InputError(f"{path.name}: two arrays have the same name. Rename one of them.")
    if sum(entry.compress_size for entry in entries) > path.stat().st_size:
        raise InputError(f"{path.name}: its arrays overlap, which is not how numpy saves them.")
    total, most = sum(header.bytes for header in headers.values()), memory_limit()
    if total > most:
        raise InputError(
            f"{path.name} would take {total:,} bytes of memory; at most {most:,} are used on this "
            "machine. Leave out columns or rows that are not needed."
        )
    return headers


def _header(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, path: Path) -> Header:
    """What the header of an array says, refused where the file does not hold as much."""
    where = f"{path.name}, array {_stem(entry.filename)!r}"
    try:
        with archive.open(entry) as file:
            version = npy.read_magic(file)
            read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
            shape, _, dtype = read[version](file)
            start = file.tell()
    except (ValueError, KeyError, EOFError, NotImplementedError, RuntimeError) as error:
        raise InputError(f"{where} is not readable: {error}.") from error
    if dtype.hasobject or not dtype.itemsize:
        raise InputError(
            f"{where}: shape {shape} of {dtype} is refused. Plain numbers or text are expected."
        )
    count, stored = math.prod(shape), entry.compress_type == zipfile.ZIP_STORED
    most = entry.compress_size * (1 if stored else DENSEST)
    if count * dtype.itemsize != entry.file_size - start or entry.file_size > most:
        raise InputError(
            f"{where}: its header promises shape {shape} of {dtype}, and the file does not hold "
            "that. Save it anew."
        )
    least = WORD if dtype.kind in TEXTS else NUMBER
    return Header(entry.filename, shape, dtype.kind, count * max(dtype.itemsize, least))
