"""Measures by epoch: the mean over seeds, and a band of one standard deviation around it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from .drawing import Panel, Picture, series
from .palette import Style
from .study import Entry

NAMES = {
    "decision_loss": "decision loss",
    "estimate_loss": "estimate loss",
    "relative_regret": "relative regret, %",
    "optimal": "optimal decisions, %",
}
SCALES = {"relative_regret": 100.0, "optimal": 100.0, "exact": 100.0}
SPLITS = ("train", "test")
LOG_FROM = 8.0
"""Ratio of the largest to the least final value from which a logarithmic axis serves better."""
SHORT_RANGE = 5e3
"""Ratio of the ends of a logarithmic axis up to which 2 and 5 are labeled too."""
MOST_POINTS = 80
MOST_BANDS = 10
"""Methods up to which every curve has its band; of more, only ours have."""
CAPTION = (
    "Mean over seeds; the band is one standard deviation to either side (of ours only, where there "
    "are many methods). Dashed: needs true costs. "
    "Curves that start above a panel are cut off, and panels differ in scale. Press a method to "
    "bring it out."
)


@dataclass(frozen=True)
class Curve:
    """One method's measure by epoch."""

    entry: Entry
    epochs: np.ndarray  # (E,)
    mean: np.ndarray  # (E,)
    sd: np.ndarray  # (E,), 0 for a single seed


def curves_picture(
    name: str, title: str, entries: Sequence[Entry], measures: Sequence[str], caption: str = ""
) -> Picture | None:
    """A panel for each measure on training and on test data; None without data."""
    panels, shown = [], set()
    for measure, split in product(measures, SPLITS):
        words = f"{split.capitalize()} {NAMES.get(measure, measure.replace('_', ' '))}"
        if found := curve_panel(words, entries, split, measure):
            panels.append(found[0])
            shown |= set(found[1])
    if not panels:
        return None
    keys = [entry.style for entry in entries if entry.style in shown]
    return Picture(name, title, caption or CAPTION, panels, keys)


def curve_panel(
    title: str, entries: Sequence[Entry], split: str, measure: str, **size: float
) -> tuple[Panel, list[Style]] | None:
    """One measure of several methods by epoch, and whose curves there are; None without data."""
    curves = _curves(entries, split, measure)
    if not curves:
        return None
    styles = [curve.entry.style for curve in curves]
    return Panel(_drawer(curves, _view(curves)), title, **size), styles


def _curves(entries: Sequence[Entry], split: str, measure: str) -> list[Curve]:
    scale = SCALES.get(measure, 1.0)
    found = []
    for entry in entries:
        epochs, values = entry.curve(split, measure)
        if epochs.size == 0 or not np.isfinite(values).any():
            continue
        # A panel is about 300 points wide; more epochs than this cannot be distinguished.
        keep = np.unique(np.linspace(0, len(epochs) - 1, MOST_POINTS).round().astype(int))
        values = scale * values[:, keep]
        sd = values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros(len(keep))
        found.append(Curve(entry, epochs[keep], values.mean(axis=0), sd))
    return found


@dataclass(frozen=True)
class _View:
    low: float
    high: float
    log: bool


def _view(curves: Sequence[Curve]) -> _View:
    """Limits that show how training ends: a wild start of one method must not flatten the rest."""
    ends = [_settled(curve) for curve in curves]
    top = max((end for end in ends if math.isfinite(end)), default=1.0)
    seen = np.concatenate([curve.mean for curve in curves])
    positive = seen[np.isfinite(seen) & (seen > 0)]
    least = min((end for end in ends if math.isfinite(end) and end > 0), default=top)
    if positive.size and least > 0 and top / least > LOG_FROM:
        return _View(max(positive.min(), least / 10) / 1.3, 2.0 * top, True)
    low = min(0.0, float(np.nanmin(seen))) if np.isfinite(seen).any() else 0.0
    return _View(low, 1.25 * top if top > 0 else 1.0, False)


def _settled(curve: Curve) -> float:
    """The highest value in the second half of training, with its band."""
    half = len(curve.mean) // 2
    return float(np.nanmax((curve.mean + curve.sd)[half:], initial=-math.inf))


def _drawer(curves: Sequence[Curve], view: _View):
    def draw(axis: Any) -> None:
        for curve in curves:
            style = curve.entry.style
            low, high = curve.mean - curve.sd, curve.mean + curve.sd
            if view.log:
                low = np.maximum(low, view.low)
            if curve.sd.any() and (style.ours or len(curves) <= MOST_BANDS):
                axis.fill_between(
                    curve.epochs, low, high, color=style.color, alpha=0.16 if style.ours else 0.06,
                    lw=0, zorder=style.layer - 1, gid=series(style, "band"),
                )  # fmt: skip
            mark = "o" if len(curve.epochs) == 1 else None
            axis.plot(
                curve.epochs, curve.mean, color=style.color, lw=style.width, ls=style.dashes,
                marker=mark, zorder=style.layer, gid=series(style, "line"),
            )  # fmt: skip
        if view.log:
            axis.set_yscale("log")
        axis.set_ylim(view.low, view.high)
        if view.log:
            plain_log_ticks(axis)
        axis.margins(x=0.01)
        axis.set_xlabel("epoch")
        axis.xaxis.get_major_locator().set_params(integer=True)
        axis.grid(axis="x", visible=False)

    return draw


def plain_log_ticks(axis: Any, which: str = "y") -> None:
    """0.1, 1, 10 rather than powers: with 2 and 5 where the range is short, and every second or
    third decade where it is long. Call it when the limits of the axis are set."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    line = axis.yaxis if which == "y" else axis.xaxis
    low, high = sorted(axis.get_ylim() if which == "y" else axis.get_xlim())
    short = high < SHORT_RANGE * low
    line.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if short else (1.0,), numticks=9))
    line.set_major_formatter(FuncFormatter(lambda value, _: _plain(value, short)))
    line.set_minor_formatter(NullFormatter())


def _plain(value: float, short: bool) -> str:
    if short or 1e-3 < value < 1e3:
        return f"{value:g}"
    power = str(round(math.log10(value))).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{power}"
