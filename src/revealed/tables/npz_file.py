"""Tables in npz files: one array for each column, or one matrix `values` with its `names`."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.lib import format as npy

from ..errors import InputError
from .cells import word
from .table import Table, checked_names, require

LARGEST = 16 * 2**30
"""Bytes that one array may unpack to: a small file must not be able to fill the memory."""


class NpzFile:
    """Arrays by name, none of them of Python objects."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with zipfile.ZipFile(path) as archive:
                self._shapes = {
                    _stem(name): _shape(archive, name, path) for name in archive.namelist()
                }
        except (zipfile.BadZipFile, OSError, zlib.error) as error:
            raise InputError(f"{path.name} is not a readable npz file: {error}.") from error
        self._given: dict[str, str] = {}
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
            self._given = dict(zip(self.names, self._shapes, strict=True))

    def read(self, numbers: Sequence[str], text: Sequence[str] = ()) -> Table:
        require(self.path, self.names, [*numbers, *text])
        if self._matrix:
            values = self._array("values")
            chosen = values[:, [self.names.index(name) for name in numbers]]
            given = {name: values[:, self.names.index(name)] for name in text}
        else:
            size = next(iter(self._shapes.values()))[0]
            columns = [self._array(name) for name in numbers]
            for name, column in zip(numbers, columns, strict=True):
                self._refuse_words(name, column)
            chosen = np.column_stack(columns) if columns else np.zeros((size, 0))
            given = {name: self._array(name) for name in text}
        self._refuse_words("values", chosen)
        words = {name: [word(value.item()) for value in column] for name, column in given.items()}
        return Table(self.path.name, chosen.astype(np.float64), tuple(numbers), words)

    def is_text(self, name: str) -> bool:
        require(self.path, self.names, [name])
        return not self._matrix and self._array(name).dtype.kind in "USM"

    def _array(self, name: str) -> np.ndarray:
        try:
            with np.load(self.path, allow_pickle=False) as file:
                array = file[self._given.get(name, name)]
        except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            raise InputError(
                f"{self.path.name}, array {name!r} cannot be read: {error}. Arrays of numbers or "
                "text are expected, none of Python objects."
            ) from error
        return array.astype("datetime64[s]") if array.dtype.kind == "M" else array

    def _check_columns(self) -> None:
        lengths = {name: shape for name, shape in self._shapes.items() if len(shape) != 1}
        if lengths:
            name, shape = next(iter(lengths.items()))
            raise InputError(
                f"{self.path.name}: array {name!r} has shape {shape}. Give one array of one "
                "dimension for each column, or a matrix `values` with its column `names`."
            )
        if len({shape[0] for shape in self._shapes.values()}) > 1:
            told = ", ".join(f"{name!r} has {shape[0]}" for name, shape in self._shapes.items())
            raise InputError(f"{self.path.name}: columns must be equally long; {told}.")

    def _refuse_words(self, name: str, array: np.ndarray) -> None:
        if array.dtype.kind not in "fiub":
            raise InputError(
                f"{self.path.name}, column {name!r}: expected numbers, got dtype {array.dtype}."
            )


def _stem(name: str) -> str:
    return name.removesuffix(".npy")


def _shape(archive: zipfile.ZipFile, name: str, path: Path) -> tuple[int, ...]:
    """The shape of an array, from its header alone."""
    try:
        with archive.open(name) as file:
            version = npy.read_magic(file)
            read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
            shape, _, dtype = read[version](file)
    except (ValueError, KeyError, EOFError, NotImplementedError, RuntimeError) as error:
        raise InputError(f"{path.name}, array {_stem(name)!r} is not readable: {error}.") from error
    if dtype.hasobject or int(np.prod(shape, dtype=object)) * dtype.itemsize > LARGEST:
        raise InputError(
            f"{path.name}, array {_stem(name)!r}: shape {shape} of {dtype} is refused. Plain "
            f"numbers or text of at most {LARGEST // 2**30} GiB are expected."
        )
    return shape
