"""Progress while a fit runs: a bar where rich is installed, plain lines where not, else nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Show = Callable[[dict[str, Any]], None]

LINES = 10
"""Plain lines written in a whole run."""


@contextmanager
def progress(title: str, total: int, *, verbose: bool, show: Show | None = None) -> Iterator[Show]:
    """A function to call with every row of a history; it writes to stderr if `verbose`. One that is
    there already is `show`."""
    if show is not None:
        yield show
        return
    if not verbose:
        yield lambda row: None
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        from rich.progress import TimeElapsedColumn as Elapsed
    except ImportError:
        yield _plain_lines(title, total)
        return
    columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[h]}"))
    with Progress(*columns, Elapsed(), console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=total, h="")
        yield lambda row: bar.update(task, completed=row["iteration"], h=_words(row))


def _plain_lines(title: str, total: int) -> Show:
    every = max(1, total // LINES)

    def show(row: dict[str, Any]) -> None:
        if row["iteration"] % every == 0 or row["iteration"] == total:
            print(f"{title} {row['iteration']}/{total}  {_words(row)}", file=sys.stderr)

    return show


def _words(row: dict[str, Any]) -> str:
    name = "h" if "h" in row else "loss"  # other losses than ours measure no h
    if row[name] != row[name]:  # a bar for something else than a fit
        return ""
    text = f"{name} {row[name]:.4g}"
    return text + (f", validation {row['validation']:.4g}" if "validation" in row else "")
