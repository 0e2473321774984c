"""What the commands print: short lines with a heading each, or one JSON object for machines."""

from __future__ import annotations

import json
import math
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

WIDTH = 100
"""Columns that are used at most, and wherever the output is not a terminal."""
NARROWEST = 50
HEADING = 12
"""Columns that headings take."""
LONGEST_NAME = 32
"""Characters of a name in a table."""
SLIMMEST = 24
"""Columns that the last column of a table has at least."""


def tell(heading: str, text: str) -> None:
    """One paragraph behind its heading, wrapped."""
    lines = textwrap.wrap(text, width() - HEADING, break_on_hyphens=False) or [""]
    print(f"{heading:<{HEADING}}{lines[0]}")
    for line in lines[1:]:
        print(" " * HEADING + line)


def width() -> int:
    """Columns to write in: those of the terminal, within reason."""
    if not sys.stdout.isatty():
        return WIDTH
    return min(WIDTH, max(NARROWEST, shutil.get_terminal_size().columns))


@contextmanager
def waiting(what: str, total: int, *, quiet: bool) -> Iterator[Callable[[int], None]]:
    """A progress bar on a terminal; call the function with how much is done."""
    from ...fit.progress import progress

    with progress(what, total, verbose=not quiet and sys.stderr.isatty()) as step:
        yield lambda k: step({"iteration": k, "h": math.nan})


def tell_json(facts: dict[str, Any]) -> None:
    """Strict JSON: what it has no number for becomes null."""
    json.dump(_plain(facts), sys.stdout, allow_nan=False, indent=1, ensure_ascii=False)
    print()


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], indent: int = 2) -> str:
    """Columns aligned, words to the left and numbers to the right; where the lines are too long,
    the last column is wrapped."""
    lines = [list(map(str, headings)), *[_shortened(row) for row in rows]]
    widths = [max(len(line[k]) for line in lines) for k in range(len(headings))]
    numeric = [bool(rows) and all(_is_number(row[k]) for row in rows) for k in range(len(headings))]
    printed = []
    for line in lines:
        cells = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, numeric, strict=True)
        ]
        start = " " * indent + "  ".join([*cells[:-1], ""])
        room = max(width() - len(start), SLIMMEST)
        parts = textwrap.wrap(cells[-1].rstrip(), room, break_on_hyphens=False) or [""]
        if numeric[-1]:
            parts = [cells[-1]]
        printed += [(start + parts[0]).rstrip(), *(" " * len(start) + part for part in parts[1:])]
    return "\n".join(printed)


def _shortened(row: Sequence[str]) -> list[str]:
    """A row with its long names cut in the middle: names differ at their ends."""
    half = LONGEST_NAME // 2
    cells = [c if len(c) <= LONGEST_NAME else f"{c[: half - 1]}…{c[-half:]}" for c in row[:-1]]
    return [*cells, str(row[-1])]


def percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.0f}%"


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace(",", "").removesuffix("%") or "0")
    except ValueError:
        return cell in ("-", "", "no limit", "not known")
    return True


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
