"""How far a sweep is, and how long it will take: a live line in a terminal, else now and then one.

The time left goes by the kind of the runs that are left: each is expected to take what others of
its part and method have taken so far.
"""

from __future__ import annotations

import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .runs import DIVERGED, FAILED, Run, RunConfig

LINE_EVERY_S = 10.0
"""Seconds between two plain lines."""


class Progress:
    """Counts of runs and an estimate of the time left; shows nothing itself."""

    def __init__(self, before: Sequence[Run], todo: Sequence[RunConfig], workers: int) -> None:
        self.workers = workers
        self.total, self.done = len(before) + len(todo), len(before)
        self.status = Counter(run["status"] for run in before)
        self._left = Counter(_kind(config.part, config.label) for config in todo)
        self._taken: dict[Any, list[float]] = defaultdict(list)
        for run in before:
            self._note(run)
        self._began = time.perf_counter()

    def add(self, run: Run) -> None:
        """Count a run that has just come in."""
        self.done += 1
        self.status[run["status"]] += 1
        self._left[self._note(run)] -= 1

    def _note(self, run: Run) -> Any:
        kind = _kind(run["config"]["part"], run["config"]["label"])
        self._taken[kind].append(run["seconds"])
        return kind

    @property
    def running(self) -> int:
        return min(self.workers, self.total - self.done)

    def seconds_gone(self) -> float:
        return time.perf_counter() - self._began

    def seconds_left(self) -> float | None:
        """None before anything is known."""
        known = {kind: sum(taken) / len(taken) for kind, taken in self._taken.items()}
        if not known:
            return None
        usual = sum(known.values()) / len(known)
        work = sum(count * known.get(kind, usual) for kind, count in self._left.items())
        return work / max(1, self.workers)

    def words(self) -> list[str]:
        """How many are running and how many went wrong."""
        told = [f"{self.running} running"] if self.running else []
        return told + [f"{self.status[s]} {s}" for s in (DIVERGED, FAILED) if self.status[s]]

    def left_in_words(self) -> str:
        left = self.seconds_left()
        return "" if left is None or not self.running else f", about {clock(left)} left"

    def start(self) -> None:
        """Called before the first run."""

    def stop(self) -> None:
        """Called after the last, whatever ended it."""


@contextmanager
def progress(before: Sequence[Run], todo: Sequence[RunConfig], workers: int) -> Iterator[Progress]:
    """Show on stderr how far the runs of `todo` are; `before` were there already."""
    kind = Progress if not todo else _Live if sys.stderr.isatty() else _Lines
    shown = kind(before, todo, workers)
    try:
        shown.start()
        yield shown
    finally:
        shown.stop()


class _Lines(Progress):
    """A plain line now and then."""

    def start(self) -> None:
        if self.done:
            _print(f"going on: {self.done} of {self.total} runs are there already")
        self._said = self.seconds_gone()

    def add(self, run: Run) -> None:
        super().add(run)
        if self.seconds_gone() - self._said >= LINE_EVERY_S:
            self.stop()

    def stop(self) -> None:
        self._said = self.seconds_gone()
        told = [f"{self.done} of {self.total} runs", *self.words()]
        _print(f"{', '.join(told)}; {clock(self._said)} gone{self.left_in_words()}")


class _Live(Progress):
    """A line that changes in its place."""

    def start(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        columns = [TextColumn("runs"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()]
        told = TextColumn("{task.description}")
        self._bar = Bar(*columns, told, console=Console(stderr=True), refresh_per_second=4)
        self._task = self._bar.add_task("", total=self.total, completed=self.done)
        self._bar.start()
        self._tell()

    def add(self, run: Run) -> None:
        super().add(run)
        self._tell()

    def _tell(self) -> None:
        words = ", ".join(self.words()) + self.left_in_words()
        self._bar.update(self._task, completed=self.done, description=words.removeprefix(", "))

    def stop(self) -> None:
        self._bar.stop()


def clock(seconds: float) -> str:
    """1:05 or 2:03:04."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def _kind(part: str, label: str) -> tuple[str, str]:
    return part, label


def _print(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)
