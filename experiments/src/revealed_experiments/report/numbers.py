"""Figures as text: as many digits as they can support, and a dash where there is none."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

NONE = "–"


def number(value: Any) -> float:
    """A number from JSON; NaN for null, for text, for anything that is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    return float(value)


def short(value: float, digits: int = 3) -> str:
    """Three digits, never in scientific notation between 0.001 and a million."""
    if not math.isfinite(value):
        return NONE
    if value == 0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    if size < -3 or size > 5:
        return f"{value:.{digits - 1}e}"
    return f"{value:,.{max(0, digits - 1 - size)}f}".replace("-", "−")


def fixed(value: float, places: int = 2) -> str:
    """So many places after the point, for columns that are read downwards."""
    if not math.isfinite(value):
        return NONE
    return f"{round(value, places) + 0.0:,.{places}f}".replace("-", "−")


def signed(value: float, places: int = 2) -> str:
    """A difference, with its sign."""
    if not math.isfinite(value):
        return NONE
    return f"{round(value, places) + 0.0:+.{places}f}".replace("-", "−")


def duration(seconds: float) -> str:
    """Seconds in the unit that suits them."""
    if not math.isfinite(seconds):
        return NONE
    if seconds < 1e-3:
        return f"{short(seconds * 1e6)} µs"
    if seconds < 1:
        return f"{short(seconds * 1e3)} ms"
    if seconds < 120:
        return f"{short(seconds)} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def places_for(values: np.ndarray) -> int:
    """Places after the point that show three digits of the median of a column."""
    seen = np.abs(values[np.isfinite(values) & (values != 0)])
    if seen.size == 0:
        return 2
    return int(np.clip(2 - math.floor(math.log10(np.median(seen))), 0, 4))


def mean(values: np.ndarray) -> float:
    """Mean over seeds; NaN if any is missing, so that no average hides a gap."""
    return float(values.mean()) if values.size else math.nan


def sd(values: np.ndarray) -> float:
    """Standard deviation over seeds; NaN for one seed, which has no spread to show."""
    return float(values.std(ddof=1)) if values.size > 1 else math.nan


def standard_error(values: np.ndarray) -> float:
    """Standard error of the mean over seeds."""
    return sd(values) / math.sqrt(values.size) if values.size > 1 else math.nan


def with_error(differences: np.ndarray, places: int) -> str:
    """A mean difference with its sign, and its standard error where there is more than one seed."""
    error = standard_error(differences)
    told = signed(mean(differences), places)
    return f"{told} ± {fixed(error, places)}" if math.isfinite(error) else told


def listed(names: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
