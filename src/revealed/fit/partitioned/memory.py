"""How much memory a fit to partitions may take, and takes."""

from __future__ import annotations

import resource
from typing import Any

from ...errors import InputError

RESERVE = 1.5e8
"""Bytes for what a fit needs besides samples: Parquet's buffers, results, the driver's sample."""
EACH = 16
"""Arrays of a chunk of costs that a thread has at a time, about."""
BARE = 4.5e8
"""Bytes of a process with everything imported, where it is not this one."""
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


def bytes_of(memory: Any) -> float | None:
    """Bytes from a number, or a text such as "2GB"; None stays what it is."""
    if memory is None:
        return None
    text = str(memory).strip().upper()
    number = text.rstrip("KMGTIB ")
    try:
        value = float(number) * _UNITS[text[len(number) :].strip()]
    except (KeyError, ValueError):
        value = -1.0
    if not 0 < value < float("inf"):
        raise InputError(f"`memory` must be like '2GB' or a number of bytes; got {memory!r}.")
    return value


def samples_room(memory: float, *, taken: float | None, threads: int, chunk: int) -> float:
    """Bytes of samples that a process may hold; refused where `memory` is too little without any.

    `taken` is what the process has already (None: one that is still to be started), `chunk` the
    numbers of costs that each of its threads looks at together.
    """
    work = 8.0 * chunk * threads * EACH
    left = memory - (BARE if taken is None else taken) - RESERVE - work
    if left < 0:
        raise InputError(
            f"`memory` is {memory / 1e6:,.0f} MB, which is too little: a process needs about "
            f"{(memory - left) / 1e6:,.0f} MB before it holds a sample."
        )
    return left


def peak_bytes() -> int:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def current_bytes() -> int:
    """The memory that this process has now; the most it has had where the system does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except OSError:
        return peak_bytes()
