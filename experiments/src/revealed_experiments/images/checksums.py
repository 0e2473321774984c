"""Checksums of data files, in the format of `sha256sum` and `md5sum`, which can check them too."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from revealed.errors import InputError

SUMS = "SHA256SUMS"
_KINDS = {32: "md5", 64: "sha256"}  # by the number of digits
_LINE = re.compile(r"([0-9a-fA-F]+) [ *](.+)")


def file_sum(path: Path, kind: str = "sha256") -> str:
    """The checksum of a file's bytes in hexadecimal digits."""
    with path.open("rb") as file:
        # Not a matter of security: MD5 is what the sums of old data sets were made with.
        return hashlib.file_digest(
            file, lambda: hashlib.new(kind, usedforsecurity=False)
        ).hexdigest()


def write_sums(folder: Path, names: Iterable[str]) -> None:
    """Write `SHA256SUMS` for files of a folder."""
    lines = [f"{file_sum(folder / name)}  {name}\n" for name in sorted(names)]
    (folder / SUMS).write_text("".join(lines), encoding="utf-8")


def read_sums(path: Path) -> dict[str, str]:
    """Checksums by file name from a file of lines `digits  name`."""
    if not path.is_file():
        raise InputError(
            f"There is no checksum file {str(path)!r}. Bring the one that belongs to the data, or "
            "use `verify=False` to read them unchecked."
        )
    sums = {}
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        match = _LINE.fullmatch(line)
        if match is None or len(match[1]) not in _KINDS:
            raise InputError(
                f"Line {number} of {path.name} must be a SHA-256 or MD5 sum, two blanks and a file "
                f"name; got {line[:80]!r}."
            )
        sums[match[2]] = match[1].lower()
    return sums


def check_sums(folder: Path, names: Iterable[str], sums: Mapping[str, str]) -> None:
    """Refuse files whose checksum is missing from `sums` or differs from it."""
    for name in names:
        if name not in sums:
            raise InputError(
                f"{name} has no line among the checksums for {str(folder)!r}. Use the checksum "
                "file that belongs to this folder, or `verify=False` to read it unchecked."
            )
        expected = sums[name]
        kind = _KINDS[len(expected)]
        found = file_sum(folder / name, kind)
        if found != expected:
            raise InputError(
                f"{name} in {str(folder)!r} must have the {kind.upper()} sum {expected}; it has "
                f"{found}. The file is damaged or of another data set: get it again, or use "
                "`verify=False` to read it as it is."
            )
