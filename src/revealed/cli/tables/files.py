"""One way in for all kinds of table: the ending of the file name decides."""

from __future__ import annotations

import os
from pathlib import Path

from ...errors import InputError
from .csv_file import CsvFile
from .npz_file import NpzFile
from .parquet_file import ParquetFile
from .table import TableFile

KINDS = {
    ".csv": CsvFile,
    ".tsv": CsvFile,
    ".txt": CsvFile,
    ".parquet": ParquetFile,
    ".pq": ParquetFile,
    ".npz": NpzFile,
}


def open_table(path: str | os.PathLike[str], *, lenient: bool = False) -> TableFile:
    """The table in a CSV, Parquet or npz file, its columns named but not yet read; of a `lenient`
    one, cells that cannot be read are left empty and named in `Table.faults`."""
    path = Path(path)
    if path.suffix.lower() not in KINDS:
        raise InputError(
            f"{path.name}: tables must be CSV (.csv, .tsv), Parquet (.parquet) or npz files; got "
            f"the ending {path.suffix!r}. Spreadsheets save tables as 'CSV UTF-8'."
        )
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise InputError(
            f"{os.fspath(path)} {what}; a table of contexts or decisions was expected."
        )
    if path.stat().st_size == 0:
        raise InputError(f"{path.name} is empty: not even a line of column names is there.")
    kind = KINDS[path.suffix.lower()]
    return CsvFile(path, lenient=lenient) if kind is CsvFile else kind(path)
