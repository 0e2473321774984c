"""Read and write tables of every kind: the ending of the file name decides which."""

from __future__ import annotations

import csv
import os
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from ..._common.optional import require
from ...errors import InputError, MissingDependencyError
from .csv_file import CsvFile
from .npz_file import NpzFile
from .parquet_file import ParquetFile
from .table import TableFile
from .xlsx_file import XlsxFile, write_xlsx

KINDS = {
    ".csv": CsvFile,
    ".tsv": CsvFile,
    ".txt": CsvFile,
    ".parquet": ParquetFile,
    ".pq": ParquetFile,
    ".npz": NpzFile,
    ".xlsx": XlsxFile,
}


def open_table(path: str | os.PathLike[str], *, lenient: bool = False) -> TableFile:
    """The table in a CSV, Parquet, XLSX or npz file, its columns named but not yet read; of a
    `lenient` one, cells that cannot be read are left empty and named in `Table.faults`."""
    path = Path(path)
    if path.suffix.lower() not in KINDS:
        raise InputError(
            f"{path.name}: tables must be CSV (.csv, .tsv), Parquet (.parquet), XLSX or npz files; "
            f"got the ending {path.suffix!r}. Spreadsheets save tables as 'CSV UTF-8'."
        )
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise InputError(
            f"{os.fspath(path)} {what}; a table of contexts or decisions was expected."
        )
    if path.stat().st_size == 0:
        raise InputError(f"{path.name} is empty: not even a line of column names is there.")
    kind = KINDS[path.suffix.lower()]
    return kind(path, lenient=lenient) if kind in (CsvFile, XlsxFile) else kind(path)


def check_ending(path: str | os.PathLike[str]) -> None:
    """Refuse, before long work, a file that `write_table` cannot write."""
    path = Path(path)
    if path.suffix.lower() not in KINDS:
        raise InputError(f"{path.name}: write to a .csv, .parquet, .xlsx or .npz file.")
    if path.is_dir():
        raise InputError(f"{os.fspath(path)} is a folder; a file to write to was expected.")
    if KINDS[path.suffix.lower()] is ParquetFile:
        _pyarrow()
    if KINDS[path.suffix.lower()] is XlsxFile:
        require("openpyxl", "An XLSX file", "tables")


def write_table(
    path: str | os.PathLike[str],
    names: Sequence[str],
    values: np.ndarray,
    *,
    key: tuple[str, Sequence[str]] | None = None,
) -> None:
    """Write the columns `names` of `values` (B, k), after a column of text `key` if there is one.

    Numbers are written such that reading them gives the same numbers. The file appears whole or not
    at all.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    check_ending(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.new{suffix}")
    kinds = {".npz": _npz, ".parquet": _parquet, ".pq": _parquet, ".xlsx": write_xlsx}
    kind = kinds.get(suffix, _csv)
    try:
        kind(draft, list(names), values, key)
        os.replace(draft, path)
    except OSError as error:
        said = error.strerror or error
        raise InputError(f"{os.fspath(path)} cannot be written: {said}.") from error
    finally:
        draft.unlink(missing_ok=True)


Key = tuple[str, Sequence[str]] | None


def _csv(path: Path, names: list[str], values: np.ndarray, key: Key) -> None:
    delimiter = "\t" if path.suffix == ".tsv" else ","
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        writer.writerow([*([key[0]] if key else []), *names])
        for row, line in enumerate(values.tolist()):
            cells = [_cell(value) for value in line]
            writer.writerow([*([key[1][row]] if key else []), *cells])


def _cell(value: float) -> str:
    if value != value:
        return ""
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def _parquet(path: Path, names: list[str], values: np.ndarray, key: Key) -> None:
    pyarrow, parquet = _pyarrow()
    columns = {key[0]: list(key[1])} if key else {}
    columns |= {name: np.ascontiguousarray(values[:, j]) for j, name in enumerate(names)}
    parquet.write_table(pyarrow.table(columns), path)


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise MissingDependencyError(
            "Parquet files are written with pyarrow, which is not installed: "
            "`pip install 'revealed[tables]'`."
        ) from error
    return pyarrow, parquet


def _npz(path: Path, names: list[str], values: np.ndarray, key: Key) -> None:
    columns = {key[0]: np.array(key[1])} if key else {}
    columns |= {name: values[:, j] for j, name in enumerate(names)}
    # Not np.savez: a column may have the name of one of its arguments.
    with zipfile.ZipFile(path, "w") as archive:
        for name, column in columns.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                npy.write_array(file, np.ascontiguousarray(column), allow_pickle=False)
