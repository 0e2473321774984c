"""What a caller may ask of an oracle besides decisions: an end in time, and so many threads."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np

from .._common.checks import positive_int
from ..errors import InputError


def deadline_after(time_limit: Any) -> float:
    """On the monotonic clock; inf where there is no limit."""
    if time_limit is None:
        return np.inf
    if not isinstance(time_limit, int | float | np.number) or not time_limit >= 0:
        raise InputError(f"`time_limit` must be None or seconds, at least 0; got {time_limit!r}.")
    return time.monotonic() + float(time_limit)


def seconds_until(deadline: float) -> float | None:
    """What is left of a time limit; None where there is none."""
    return max(deadline - time.monotonic(), 0.0) if np.isfinite(deadline) else None


def thread_count(threads: Any) -> int:
    """As many as asked for; else as many as there are processors for this process."""
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    return positive_int(threads, "threads")
