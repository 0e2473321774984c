"""How many digits a table of decisions was written with.

Letters: B decisions, n entries.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .problem import LinearProgram

MOST_DECIMALS = 7
"""Decimals beyond which rounding is finer than any tolerance."""
ON_GRID = 0.95
"""Share of the numbers that must have no more digits."""
FEW = 5
"""Different numbers in a column before it may have fewer decimals than the table."""
FINE = 0.02
"""Half a unit over the largest number of a column, above which digits are amounts, not rounding:
whole numbers up to 10 are counted, not rounded."""


class Precision(NamedTuple):
    """Half a unit of the last digit, entry by entry, and in words."""

    half_unit: np.ndarray
    """(n,)"""
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
    table = _decimals(X[telling])
    if table is None:
        return None
    columns = np.full(X.shape[1], table)
    for j in range(X.shape[1]):
        own = np.unique(X[telling[:, j], j])
        decimals = _decimals(own) if len(own) >= FEW else None
        columns[j] = table if decimals is None else decimals
    half_unit, told = 0.5 * 10.0 ** -columns.astype(float), telling.any(axis=0)
    if np.median(half_unit[told] / np.abs(X[:, told]).max(axis=0)) > FINE:
        return None
    return Precision(half_unit, _words(columns))


def _decimals(values: np.ndarray) -> int | None:
    """The fewest decimals that nearly all of these numbers do with."""
    for k in range(MOST_DECIMALS + 1):
        if _on_grid(values, k).mean() >= ON_GRID:
            return k
    return None


def _on_grid(values: np.ndarray, decimals: int) -> np.ndarray:
    """Which numbers have no more decimals, to the last bits."""
    scaled = values * 10.0**decimals
    return np.abs(scaled - np.rint(scaled)) <= 4 * np.finfo(float).eps * np.abs(scaled)


def _words(columns: np.ndarray) -> str:
    low, high = int(columns.min()), int(columns.max())
    if low == high:
        return "1 decimal" if high == 1 else f"{high} decimals" if high else "whole numbers"
    return f"{low} to {high} decimals, column by column"
