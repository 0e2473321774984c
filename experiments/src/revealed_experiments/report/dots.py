"""One number for each method: a dot for the mean, a line for the spread, specks for the seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .curves import LOG_FROM, plain_log_ticks
from .drawing import Panel, series, tidy
from .numbers import mean, sd, standard_error
from .palette import INK, NEUTRAL, PAPER, SOFT
from .study import Entry

# Inches: of a method's row, of title and axis together, of a letter in a label.
ROW_HEIGHT, ROOM, LETTER = 0.21, 0.85, 0.07


# Of the values of all seeds: where the dot is, and from where to where the line reaches.
Summary = Callable[[np.ndarray], tuple[float, float, float]]


def mean_and_sd(values: np.ndarray) -> tuple[float, float, float]:
    """One standard deviation to either side of the mean."""
    middle, wide = mean(values), sd(values)
    return middle, middle - wide, middle + wide


def mean_and_errors(values: np.ndarray) -> tuple[float, float, float]:
    """Two standard errors: what a mean difference must exceed to be significant."""
    middle, wide = mean(values), 2 * standard_error(values)
    return middle, middle - wide, middle + wide


def median_and_range(values: np.ndarray) -> tuple[float, float, float]:
    """From the least to the largest, for times."""
    return float(np.median(values)), float(values.min()), float(values.max())


def dots_panel(
    title: str,
    entries: Sequence[Entry],
    values: Callable[[Entry], np.ndarray],
    axis_label: str,
    *,
    summary: Summary = mean_and_sd,
    zero_line: bool = False,
    log: bool | None = None,
    width: float = 4.8,
) -> Panel:
    """A row for each entry, in the order given from the top; `log` None lets the values decide."""
    found = [(entry, values(entry)) for entry in entries]
    found = [(entry, v[np.isfinite(v)]) for entry, v in found]
    found = [(entry, v) for entry, v in found if v.size]
    if log is None:
        log = not zero_line and _spans_decades([mean(v) for _, v in found])

    def draw(axis: Any) -> None:
        if log:
            axis.set_xscale("log")
        for row, (entry, v) in enumerate(found):
            _draw_row(axis, row, entry, v, summary(v))
        if zero_line:
            axis.axvline(0, color=NEUTRAL, lw=1.2, zorder=2)
        if log:
            plain_log_ticks(axis, "x")
        elif not zero_line:
            axis.set_xlim(0, axis.get_xlim()[1] if any(v.any() for _, v in found) else 1)
        axis.set_ylim(len(found) - 0.4, -0.6)
        axis.set_yticks(range(len(found)), [tidy(entry.label) for entry, _ in found])
        for tick, (entry, _) in zip(axis.get_yticklabels(), found, strict=True):
            tick.set_color(entry.style.color if entry.style.ours else INK)
            tick.set_fontweight("bold" if entry.style.ours else "normal")
        axis.set_xlabel(f"{axis_label} (logarithmic)" if log else axis_label, color=SOFT)
        axis.spines["left"].set_visible(False)

    longest = max((len(tidy(entry.label)) for entry, _ in found), default=0)
    height = ROOM + ROW_HEIGHT * max(len(found), 2)
    return Panel(draw, title, width, height, 0.2 + LETTER * longest)


def _spans_decades(means: list[float]) -> bool:
    positive = [m for m in means if m > 0]
    return len(positive) == len(means) > 0 and max(positive) / min(positive) > LOG_FROM


def _draw_row(
    axis: Any, row: int, entry: Entry, values: np.ndarray, summary: tuple[float, float, float]
) -> None:
    style, (middle, low, high) = entry.style, summary
    if len(values) > 1:
        axis.plot(
            values, np.full(len(values), row), ls="", marker="|", ms=5, mew=0.8, alpha=0.55,
            color=style.color, zorder=3,
        )  # fmt: skip
        if axis.get_xscale() == "log":
            low = max(low, 0.5 * values.min())
        axis.plot([low, high], [row, row], color=style.color, lw=1.6, zorder=4)
    axis.plot(
        middle, row, marker="o", ms=6.5 if style.ours else 5.5, color=style.color, mew=1.4, ls="",
        mfc=PAPER if style.needs_true_costs else style.color, zorder=5, gid=series(style, "dot"),
    )  # fmt: skip
