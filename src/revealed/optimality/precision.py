"""With how many digits a table of decisions was written.

Letters: B decisions, n entries.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..problems.linear import LinearProgram

FINEST, COARSEST = -7, 6
"""Powers of ten that may be the unit of the last digit; finer ones are below any tolerance."""
STEPS = (5.0, 2.5, 2.0)
"""Other units, times a power of ten: halves, quarters, fifths."""
MOST_DIGITS = 6
"""Significant digits, likewise."""
ON_GRID = 0.95
"""Share of the numbers that must have no more digits."""
FEW, SEVERAL = 5, 20
"""Different numbers in a column before it may have a unit of its own, and before that may be one of
the `STEPS`."""
FINE = 0.02
"""Half a unit over the largest number of a column, above which digits are amounts, not rounding:
whole numbers up to 10 are counted, not rounded."""
SELDOM, MOSTLY = 0.5, 0.6
"""Shares of numbers that use their last digit: of 10 in a row 9 do."""


class Precision(NamedTuple):
    """Half a unit of the last digit, entry by entry, and in words."""

    half_unit: np.ndarray
    """(n,), or (B, n) where it goes with the size of the number."""
    words: str


def precision_of(problem: LinearProgram, X: np.ndarray) -> Precision | None:
    """The precision of decisions (B, n); None where they have as many digits as computers give, or
    so few that they are counts.

    Numbers that are at a bound say nothing: 0 and a capacity of 40 are whole in every table.
    """
    with np.errstate(invalid="ignore"):
        telling = (X != problem.lb) & (X != problem.ub) & (X != 0)
    if not telling.any():
        return None
    values = X[telling]
    table, digits = _unit(values), _digits(values)
    if digits is not None and (table is None or not _used(values, table)):
        return _significant(X, digits)
    if table is None:
        return None
    units = np.full(X.shape[1], table)
    for j in range(X.shape[1]):
        own = np.unique(X[telling[:, j], j])
        unit = _unit(own) if len(own) >= FEW else None
        if unit is not None and (unit > table or _on_grid(own, table).mean() < ON_GRID):
            units[j] = unit
    informative = telling.any(axis=0)
    if np.median(0.5 * units[informative] / np.abs(X[:, informative]).max(axis=0)) > FINE:
        return None
    return Precision(0.5 * units, _words(units))


def _unit(values: np.ndarray) -> float | None:
    """The largest unit that nearly all of these numbers are multiples of."""
    several = len(np.unique(values)) >= SEVERAL
    for power in range(COARSEST, FINEST - 1, -1):
        for step in (*(STEPS if several else ()), 1.0):
            unit = step * 10.0**power if power >= 0 else step / 10.0**-power
            if _on_grid(values, unit).mean() >= ON_GRID:
                return unit
    return None


def _on_grid(values: np.ndarray, unit: float | np.ndarray) -> np.ndarray:
    """Which numbers are multiples of a unit, to the last bits."""
    scaled = values / unit
    return np.abs(scaled - np.rint(scaled)) <= 4 * np.finfo(float).eps * np.abs(scaled)


def _used(values: np.ndarray, unit: float) -> bool:
    """Whether large numbers use their last digit as often as small ones."""
    return bool((~_on_grid(values, 10.0 * unit)).mean() >= SELDOM)


def _digits(values: np.ndarray) -> int | None:
    """The significant digits that nearly all of these numbers do with and most use, where they are
    of different size."""
    for digits in range(2, MOST_DIGITS + 1):
        unit = _last_place(values, digits)
        if _on_grid(values, unit).mean() >= ON_GRID:
            used = float((~_on_grid(values, 10.0 * unit)).mean())
            return digits if used >= MOSTLY and unit.max() > 5 * unit.min() else None
    return None


def _last_place(values: np.ndarray, digits: int) -> np.ndarray:
    """The unit of the last of so many significant digits of each number."""
    power = np.floor(np.log10(np.abs(values))).astype(int) - digits + 1
    return np.where(power >= 0, 10.0 ** np.maximum(power, 0), 1.0 / 10.0 ** np.maximum(-power, 0))


def _significant(X: np.ndarray, digits: int) -> Precision | None:
    if 0.5 * 10.0 ** (1 - digits) > FINE:
        return None
    half = np.zeros(X.shape)
    half[X != 0] = 0.5 * _last_place(X[X != 0], digits)
    return Precision(half, f"{digits} significant digits")


def _words(units: np.ndarray) -> str:
    different = np.unique(units)
    if len(different) > 1:
        return f"{_word(different[0])} at the finest, {_word(different[-1])} at the coarsest"
    return _word(different[0])


def _word(unit: float) -> str:
    decimals = round(-np.log10(unit))
    if not np.isclose(unit, 10.0**-decimals) or decimals < 0:
        return f"multiples of {unit:g}"
    return "1 decimal" if decimals == 1 else f"{decimals} decimals" if decimals else "whole numbers"
