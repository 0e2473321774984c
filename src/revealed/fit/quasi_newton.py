"""Steps of L-BFGS: a direction from past steps, and how far to try along it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

MEMORY = 20
"""Past steps remembered."""

Metric = Callable[[np.ndarray], np.ndarray]
"""Gradient -> the inverse curvature times it."""


def next_trial(low: tuple[float, float], high: tuple[float, float] | None, t: float) -> float:
    """Where the slope would be 0 if it changed evenly, within limits; slopes are those at the ends.

    The loss is piecewise quadratic, so its slope along a line is made of straight pieces.
    """
    if high is None:
        return 4.0 * t
    (a, da), (b, db) = low, high
    width = b - a
    guess = a - da * width / (db - da) if db > da else a + 0.5 * width
    return min(max(guess, a + 0.1 * width), b - 0.1 * width)


def two_loops(gradient: np.ndarray, pairs: Any, metric: Metric | None) -> np.ndarray:
    """The negative gradient through the inverse curvature that the last steps have shown; `metric`
    is what was known of it before."""
    q, shares = gradient.copy(), []
    for step, turn in reversed(pairs):
        share = (step @ q) / (step @ turn)
        q -= share * turn
        shares.append(share)
    if metric is not None:
        q = metric(q)
    elif pairs:
        step, turn = pairs[-1]
        q *= (step @ turn) / (turn @ turn)
    for (step, turn), share in zip(pairs, reversed(shares), strict=True):
        q += (share - (turn @ q) / (step @ turn)) * step
    return -q
