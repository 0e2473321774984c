"""What a person sees of a fit to partitions: how far it is, how fast, and about how long still.

    L-BFGS 7   ━━━━━━━╸━━  about 3 min left, h 3.296, gap about 2e-03, proved 1e-02 (asked 1e-04)
    Pass 12    ━━━━╸━━━━━  9 s left, 412,000 of 1,000,000 samples, 63,000 a second, 853 MB

Bars where rich is installed and stderr is a terminal, else a line for each step of the solver.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from ..solvers import LBFGS, POCS
from .executors import Arrived

RECENT = 6
"""Steps of the solver from which the time left is estimated."""
PROOF = 3
"""Times as long as a step that a proof takes, about."""
BAR = 16


class Watch:
    """Shows nothing; what is shown follows from `watching`."""

    memory = 0
    """Bytes: the most that a process is known to have had."""

    def begin(self, what: str, sizes: dict[int, int]) -> Arrived:
        """A pass over shares of these `sizes` begins; call the result when one of them is done."""
        return lambda k: None

    def step(self, row: dict[str, Any]) -> None:
        """The solver has made a step; `row` is that of its history."""

    def say(self, text: str) -> None:
        """A line for good."""


@contextmanager
def watching(solver: LBFGS | POCS, *, verbose: bool) -> Iterator[Watch]:
    """What to tell the progress of a fit by this solver to."""
    if not verbose:
        yield Watch()
        return
    if isinstance(solver, LBFGS):
        outlook = Outlook("L-BFGS", solver.max_iter, solver.tol)
    else:
        outlook = Outlook("POCS", solver.max_iter)
    lines = _Lines(outlook)
    if not sys.stderr.isatty():
        yield lines
        return
    try:
        bars = _Bars(outlook)
    except ImportError:
        yield lines
        return
    with bars.shown():
        yield bars


class Outlook:
    """How far a minimization of at most so many steps is, and how long it may still take, by its
    steps so far; to a relative gap of `tol`, or 0 where nothing is said of gaps."""

    def __init__(self, title: str, most: int, tol: float = 0.0) -> None:
        self.title, self.most, self.tol = title, most, tol
        self.share, self.words = 0.0, ""
        self._began: float | None = None
        self._seen: list[tuple[float, float]] = []
        """Of steps the time, and the gap in units of that at which a proof is tried."""

    def add(self, row: dict[str, Any], now: float) -> None:
        """A step of the solver."""
        step = row["iteration"]
        said = [f"h {row['h']:.4g}", *self._gaps(row)]
        self.share = max(self.share, step / max(self.most, 1))
        if self.tol and row.get("expected_gap", 0.0) > 0:
            self._seen.append((now, row["expected_gap"] / row["proof_at"]))
            self.share = max(self.share, self._way_made())
        self._began = now if self._began is None else self._began
        left = self._left(step)
        if left is not None:
            said.insert(0, f"about {duration(left)} left")
        elif step and not self.tol:
            each = (now - self._began) / step
            said.insert(0, f"at most {duration(each * (self.most - step))} left")
        self.words, self.title = ", ".join(said), f"{self.title.split()[0]} {step}"

    def _gaps(self, row: dict[str, Any]) -> list[str]:
        """How far the minimum is by what is known of the curvature, and what is proved."""
        words = {"expected_gap": "about ", "gap": "proved "}
        said = [word + f"{row[name]:.0e}" for name, word in words.items() if row.get(name, 0.0) > 0]
        asked = f" (asked {self.tol:.0e})" if self.tol else ""
        return [f"gap {', '.join(said)}{asked}"] if said else []

    def _way_made(self) -> float:
        """The share of the way to a proof, in orders of magnitude."""
        first, gap = self._seen[0][1], self._seen[-1][1]
        return min(1.0, math.log(first / gap) / math.log(first)) if first > 1 else 1.0

    def _left(self, step: int) -> float | None:
        """Seconds, if gaps go on to shrink as they did; None where they have not."""
        recent = self._seen[-RECENT:]
        if len(recent) < 2:
            return None
        (began, first), (now, gap) = recent[0], recent[-1]
        each = (now - began) / (len(recent) - 1)
        if gap <= 1.0:
            return PROOF * each
        if not gap < first:
            return None
        steps = (len(recent) - 1) * math.log(gap) / math.log(first / gap)
        return each * (PROOF + min(steps, max(self.most - step, 1)))


class _Lines(Watch):
    """A line for each step of the solver."""

    def __init__(self, outlook: Outlook) -> None:
        self._outlook = outlook

    def step(self, row: dict[str, Any]) -> None:
        self._outlook.add(row, time.monotonic())
        pace = [f"{row['samples_per_second']:,.0f} samples a second, "] * bool(
            row.get("samples_per_second")
        )
        memory = f"{self.memory / 1e6:,.0f} MB"
        self.say(f"{self._outlook.title}: {self._outlook.words}; {''.join(pace)}{memory}")

    def say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)


class _Bars(Watch):
    """A bar for the way to the minimum, and one for the pass over the samples."""

    def __init__(self, outlook: Outlook) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        named, said = TextColumn("{task.description}"), TextColumn("{task.fields[words]}")
        console = Console(stderr=True)
        self._progress = Progress(named, BarColumn(BAR), said, console=console, expand=False)
        self._outlook, self._lock, self._passes = outlook, threading.Lock(), 0
        self._way = self._progress.add_task(outlook.title, total=1.0, words="", visible=False)
        self._pass = self._progress.add_task("Reading", total=1.0, words="", visible=False)

    def shown(self) -> AbstractContextManager[Any]:
        return self._progress

    def begin(self, what: str, sizes: dict[int, int]) -> Arrived:
        began, total, done = time.monotonic(), sum(sizes.values()), set[int]()
        show = self._progress.update
        self._passes = number = self._passes + 1
        words = f"{total:,} samples"
        show(self._pass, description=what, total=total, completed=0, words=words, visible=True)

        def arrived(k: int) -> None:
            with self._lock:
                if number != self._passes:  # a late word of an earlier pass
                    return
                done.add(k)
                some = sum(sizes[k] for k in done)
                rate = some / max(time.monotonic() - began, 1e-9)
                left = f"{duration((total - some) / rate)} left, " if some < total else ""
                words = f"{some:,} of {total:,} samples, {rate:,.0f} a second"
                memory = f", {self.memory / 1e6:,.0f} MB" if self.memory else ""
                show(self._pass, completed=some, words=f"{left}{words}{memory}")

        return arrived

    def step(self, row: dict[str, Any]) -> None:
        outlook = self._outlook
        outlook.add(row, time.monotonic())
        self._progress.update(
            self._way,
            description=outlook.title,
            completed=outlook.share,
            words=outlook.words,
            visible=True,
        )

    def say(self, text: str) -> None:
        self._progress.console.print(text, highlight=False, soft_wrap=True)


def duration(seconds: float) -> str:
    """`40 s`, `12 min`, `3 h 20 min`."""
    if seconds < 90:
        return f"{max(math.ceil(seconds), 1)} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min"
