"""A text file, plain or gzipped, as numbered lines, whatever it turns out to hold.

A file that is cut short, is no text, or grows beyond measure when it is unpacked is refused with a
sentence before it fills the memory.
"""

from __future__ import annotations

import gzip
import zlib
from codecs import BOM_UTF8 as BOM
from collections.abc import Generator
from pathlib import Path
from typing import IO

from ..errors import InputError

LONGEST_LINE = 65_536
"""Bytes; no format read here comes near it."""
LARGEST_TEXT = 2**30
"""Bytes after unpacking, unless the caller allows more."""
FREE_TEXT = 8 * 2**20
"""Bytes that a file of any size may unpack to."""
DENSEST = 50
"""Times its size that a larger one may unpack to; NETLIB's reach 15, a bomb of comments 1000."""
SHORTEST_LINE = 32
"""Bytes that a line counts for at least, since an empty one takes time to read too."""


def numbered_lines(
    path: Path, max_bytes: int | None = None
) -> Generator[tuple[int, str], None, None]:
    """(line number, line without its end) of every line, read as it is asked for.

    `max_bytes` is the most text that there may be; None allows 1 GiB, and of a gzipped file no more
    than a model of its size can hold.
    """
    if not path.is_file():
        raise InputError(f"A file was expected at {path}; there is none.")
    number, seen, cost = 0, 0, 0
    with path.open("rb") as raw:
        stream = _unpacked(raw)
        most = LARGEST_TEXT if max_bytes is None else max_bytes
        packed = stream is not raw and max_bytes is None
        allowed = max(FREE_TEXT, DENSEST * path.stat().st_size) if packed else None
        while line := _next_line(stream, path, number + 1):
            number, seen = number + 1, seen + len(line)
            cost += max(len(line), SHORTEST_LINE)
            if seen > most or (allowed is not None and cost > allowed):
                raise _too_much(path, number, seen, most)
            yield number, _text(line, path, number)


def _too_much(path: Path, lines: int, seen: int, most: int) -> InputError:
    if seen > most:
        return InputError(
            f"{path.name} holds more than {most:,} bytes of text. If it is as large as that, allow "
            "more with `max_bytes`."
        )
    return InputError(
        f"{path.name} unpacks to more than {lines:,} lines, far more than a model of its size "
        "holds. If it is sound, unpack it first, or allow so much text with `max_bytes`."
    )


def _unpacked(raw: IO[bytes]) -> IO[bytes]:
    # By its first bytes, not its name: files are often renamed after packing.
    packed = raw.read(2) == b"\x1f\x8b"
    raw.seek(0)
    return gzip.open(raw) if packed else raw  # type: ignore[return-value]


def _next_line(stream: IO[bytes], path: Path, number: int) -> bytes:
    try:
        line = stream.readline(LONGEST_LINE + 1)
    except EOFError:
        raise InputError(
            f"{path.name} ends in the middle of its gzip data, after line {number - 1}; "
            "copy the file again."
        ) from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise InputError(
            f"{path.name} begins as a gzip file but is damaged after line {number - 1} ({error}); "
            "copy the file again."
        ) from None
    if len(line) > LONGEST_LINE:
        raise InputError(
            f"{path.name}, line {number}: lines of text were expected; this one is longer than "
            f"{LONGEST_LINE:,} bytes."
        )
    return line


def _text(line: bytes, path: Path, number: int) -> str:
    if b"\0" in line:
        raise InputError(
            f"{path.name}, line {number}: text was expected; got bytes of 0, as in a binary file."
        )
    line = line.removeprefix(BOM) if number == 1 else line
    try:
        return line.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError:  # older files name things in some eight-bit alphabet
        return line.decode("latin-1").rstrip("\r\n")
