"""When two numbers, two decisions or two totals count as the same, and how they are told apart.

Decisions come from solvers and carry their rounding. What is counted as at a bound when costs are
learnt must count as repeated when they are judged, so the tolerance is that of `OptimalitySet`.

Letters: n variables.
"""

from __future__ import annotations

import numpy as np

SAME = 1e-5
"""Relative difference up to which two numbers are the same."""


def alike(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Which entries are the same, `other` being the measure; NaN is like nothing."""
    return np.abs(one - other) <= SAME * (1.0 + np.abs(other))


def apart(one: float, other: float) -> tuple[str, str]:
    """Two numbers in words, with as many figures as it takes to tell them apart."""
    for figures in (6, 9, 12, 17):
        words = _words(one, figures), _words(other, figures)
        if words[0] != words[1]:
            break
    return words


def _words(value: float, figures: int) -> str:
    whole = abs(value) < 1e15 and value == int(value)
    return str(int(value)) if whole else f"{value:.{figures}g}"
