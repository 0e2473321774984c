"""Long calls of solvers that Ctrl+C ends: they run in other threads, and this one waits for them.

Python handles a signal in its main thread, and only between two of its own instructions. A main
thread inside a solver notices nothing until the solver is done; one that waits for a thread does at
once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


def wait_for(tasks: Sequence[Callable[[], Any]], stop: Callable[[], None]) -> None:
    """Run the tasks, each in a thread of its own. Where waiting is interrupted, or one of them
    raises, `stop` is called, which should end the others soon."""
    with ThreadPoolExecutor(len(tasks)) as pool:
        running: list[Future[Any]] = [pool.submit(task) for task in tasks]
        try:
            for future in running:
                future.result()
        except BaseException:
            stop()
            raise
