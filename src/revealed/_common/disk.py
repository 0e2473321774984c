"""Files that appear whole or not at all, folders with one writer at a time, and strict JSON.

A writer puts a draft beside the file, flushes it to the disk and moves it into place. It holds the
folder meanwhile. A process killed at any moment leaves the old file or the new one, and at most a
draft, which the next writer removes.
"""

from __future__ import annotations

import errno
import json
import math
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..errors import InputError

DRAFT = ".new"
"""How the name of a draft ends."""
LONGEST_INTEGER = 100
"""Digits. Seeds may be long; a number of more digits may not even be a float."""
_WAIT = 0.05
"""Seconds between two attempts to hold a folder."""


def write_draft(path: Path, content: bytes) -> Path:
    """A new file beside `path` with this content, on the disk and not only in the cache."""
    draft = path.with_name(f"{path.name}.{os.getpid()}-{secrets.token_hex(4)}{DRAFT}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o666)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        remove(draft)
        raise
    return draft


def replace_file(path: Path, content: bytes) -> None:
    """Write a file so that it appears whole or not at all."""
    draft = write_draft(path, content)
    try:
        os.replace(draft, path)
    finally:
        remove(draft)
    sync_folder(path.parent)


def remove(path: Path) -> None:
    """Remove a file if it is there and may be removed."""
    with suppress(OSError):
        path.unlink()


def remove_drafts(folder: Path, pattern: str) -> None:
    """Remove what killed writers left of files named like `pattern`; the caller holds the folder,
    so no writer is still at work."""
    for draft in folder.glob(f"{pattern}*{DRAFT}"):
        remove(draft)


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk, where the system can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def held(folder: Path, *, wait: float, busy: str) -> Iterator[bool]:
    """Hold a folder against other writers; False where the system cannot say who holds it.

    The lock is on the folder itself, leaves no file behind, and ends with the process, however it
    ends. After `wait` seconds in which another writer holds it, the sentence `busy` is raised.
    """
    descriptor = _open(folder)
    try:
        yield descriptor is not None and _lock(descriptor, wait, busy)
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _open(folder: Path) -> int | None:
    try:
        return os.open(folder, os.O_RDONLY)
    except OSError:
        return None


def _lock(descriptor: int, wait: float, busy: str) -> bool:
    try:
        import fcntl
    except ImportError:  # not on this system
        return False
    end = time.monotonic() + wait
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES):  # a file system without locks
                return False
        if time.monotonic() >= end:
            raise InputError(busy)
        time.sleep(_WAIT)


# --- JSON ----------------------------------------------------------------------------------------


def strict_json(content: bytes) -> Any:
    """The value in a JSON file; ValueError with the reason where it is not strict JSON.

    Refused too: NaN and infinity, numbers too large for a float, integers of more than a hundred
    digits, and objects that name an entry twice.
    """
    try:
        return json.loads(
            content.decode("utf-8"),
            parse_int=_integer,
            parse_float=_float,
            parse_constant=_refuse_constant,
            object_pairs_hook=_object,
        )
    except RecursionError:
        raise ValueError("brackets are nested too deeply") from None


def _integer(text: str) -> int:
    if len(text) > LONGEST_INTEGER:
        raise ValueError(f"an integer of {len(text):,} digits is too large")
    return int(text)


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text[:40]} is too large")
    return value


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"{text} is not a number that JSON knows")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))
        raise ValueError(f"the entry {twice[:40]!r} is there twice")
    return content


_BINARY = getattr(os, "O_BINARY", 0)
