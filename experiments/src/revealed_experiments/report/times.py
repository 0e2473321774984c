"""Times of training as two sections tell them: the median of an epoch, and its ratio to a base."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from .numbers import NONE, duration
from .study import Entry
from .tables import Cell


def median_seconds(entry: Entry) -> float:
    """Of an epoch, over epochs and seeds; 0 where none was timed."""
    return float(np.median(entry.epoch_seconds()))


def ranked(parts: Mapping[str, Iterable[Entry]]) -> dict[str, list[Entry]]:
    """Entries that were timed, from the fastest on; parts without one are left out."""
    timed = {part: [e for e in found if median_seconds(e) > 0] for part, found in parts.items()}
    return {part: sorted(found, key=median_seconds) for part, found in timed.items() if found}


def fastest(
    timed: Mapping[str, Iterable[Entry]], among: Callable[[Entry], bool]
) -> dict[str, float]:
    """Least seconds in each part among some entries, NaN where there are none of them."""
    return {
        part: min((median_seconds(e) for e in found if among(e)), default=np.nan)
        for part, found in timed.items()
    }


def time_cells(group: Iterable[Entry], base: Mapping[str, float], digits: int) -> list[Cell]:
    """For each part of `base` the seconds of its entry, and how many times the base they are."""
    found = {entry.part: median_seconds(entry) for entry in group}
    cells = []
    for part, unit in base.items():
        seconds = found.get(part, np.nan)
        ratio = seconds / unit
        shown = f"{ratio:.{digits}f}" if np.isfinite(ratio) else NONE
        cells += [Cell(duration(seconds), seconds), Cell(shown, ratio)]
    return cells
