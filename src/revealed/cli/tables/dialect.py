"""How a text file writes its table: letters, what stands between cells, the decimal mark."""

from __future__ import annotations

import csv
import itertools
import re
from pathlib import Path
from typing import NamedTuple

from ...errors import InputError
from .cells import is_missing, quantity

DELIMITERS = (",", ";", "\t", "|")
LOOKED_AT = 20
"""Lines that are looked at to find the delimiter."""
_SAYS_SO = re.compile(r"sep=(.)\s*", re.IGNORECASE)
"""A first line that names the delimiter, as Excel reads and writes it."""
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
SAVE_ANEW = "Save it as UTF-8; in Excel the kind is called 'CSV UTF-8'."


class Dialect(NamedTuple):
    encoding: str
    delimiter: str
    skipped: int
    """Lines before the one with the names."""


def dialect_of(path: Path) -> Dialect:
    """The dialect of a text file, from its first lines."""
    encoding = _encoding_of(path)
    with open(path, newline="", encoding=encoding) as file:
        try:
            lines = list(itertools.islice((line for line in file if line.strip()), LOOKED_AT))
        except UnicodeDecodeError as error:
            raise InputError(
                f"{path.name} is not a text file in UTF-8 (byte {error.object[error.start]} at "
                f"position {error.start}). {SAVE_ANEW}"
            ) from error
    if not lines:
        raise InputError(f"{path.name} is empty: there is no line of column names.")
    if "\x00" in lines[0]:
        raise InputError(f"{path.name} is not a text file; a CSV file was expected.")
    said = _SAYS_SO.fullmatch(lines[0])
    if said:
        return Dialect(encoding, said[1], 1)
    if path.suffix.lower() == ".tsv":
        return Dialect(encoding, "\t", 0)
    return Dialect(encoding, _delimiter(lines), 0)


def _encoding_of(path: Path) -> str:
    """UTF-8 unless the file's first bytes say UTF-16, as some spreadsheets write."""
    with open(path, "rb") as file:
        start = file.read(2)
    return "utf-16" if start in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"


def _delimiter(lines: list[str]) -> str:
    """The one that cuts every line into as many cells as the first, and if several do, cells that
    hold numbers; failing that, the one that the first line has most of outside quotes."""
    cut = {mark: rows for mark in DELIMITERS if (rows := _agreed(lines, mark))}
    if cut:
        return max(cut, key=lambda mark: (_numbers(cut[mark]), len(cut[mark][0])))
    return max(DELIMITERS, key=_QUOTED.sub("", lines[0]).count)


def _agreed(lines: list[str], mark: str) -> list[list[str]]:
    """The cells of every line; nothing where lines differ, or have but one."""
    try:
        rows = [row for row in csv.reader(lines, delimiter=mark, strict=True) if row]
    except csv.Error:
        return []
    sizes = {len(row) for row in rows}
    return rows if len(sizes) == 1 and max(sizes) > 1 else []


def _numbers(rows: list[list[str]]) -> float:
    """The share of cells below the first line that hold a number, or nothing."""
    cells = [cell for row in rows[1:] for cell in row]
    numeric = [is_missing(c) or bool(quantity(c) or quantity(c, ",")) for c in cells]
    return sum(numeric) / max(len(numeric), 1)
