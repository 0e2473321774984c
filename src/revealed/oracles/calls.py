"""How an oracle calls its solver: with a deadline, on several threads, and ended by Ctrl+C; what a
solver of whole decisions answers."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from .._common.checks import positive_int
from ..errors import InputError


class Found(NamedTuple):
    """What a solver says of a batch."""

    X: np.ndarray
    """(B, n) best decisions, NaN where there is none."""
    status: np.ndarray
    """(B,) codes of SolveStatus."""
    bound: np.ndarray
    """(B,) lower bounds on the least cost; -inf where nothing is known."""


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


def share_of(deadline: float, left: int) -> float:
    """Seconds for the next of `left` instances."""
    return np.inf if deadline == np.inf else max(deadline - time.monotonic(), 0.0) / max(left, 1)


def thread_count(threads: Any) -> int:
    """As many as asked for; else as many as there are processors for this process."""
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    return positive_int(threads, "threads")


def wait_for(tasks: Sequence[Callable[[], Any]], stop: Callable[[], None]) -> None:
    """Run the tasks, each in a thread of its own. Where waiting is interrupted, or one of them
    raises, `stop` is called, which should end the others soon.

    Python handles a signal in its main thread, and only between two of its own instructions. A main
    thread inside a solver would not notice Ctrl+C until the solver is done; one that waits for
    other threads does at once.
    """
    with ThreadPoolExecutor(len(tasks)) as pool:
        running: list[Future[Any]] = [pool.submit(task) for task in tasks]
        try:
            for future in running:
                future.result()
        except BaseException:
            stop()
            raise
