"""Units for solvers whose tolerances are absolute: powers of two, which move no digit of what is
divided by them."""

from __future__ import annotations

from typing import Any

import numpy as np

PLAIN = 1024.0
"""An x between 1 / this and this is for a linear solver as it is, and a larger one is made this
large: tolerances of 1e-9 then are 1e-12 of it, which leaves smaller numbers beside it room."""


def power_of_two(size: float) -> float:
    """The next above `size`; 1 for what has none."""
    return float(np.ldexp(1.0, int(np.frexp(size)[1]))) if 0 < size < np.inf else 1.0


def row_sizes(A: Any) -> np.ndarray:
    """(m,): the power of two above the largest entry of each row of a csc_array; 1 for an empty
    one."""
    largest = np.zeros(A.shape[0])
    np.maximum.at(largest, A.indices, np.abs(A.data))
    return np.ldexp(1.0, np.frexp(largest)[1])


def with_even_rows(A: Any, b: np.ndarray) -> tuple[Any, np.ndarray]:
    """A x and b with each row divided by its size; A is a csc_array."""
    size = row_sizes(A)
    even = A.copy()
    even.data = A.data / size[A.indices]
    return even, b / size


def least_size(equal: np.ndarray, below: np.ndarray) -> float:
    """A size that every x has which obeys rows of size 1: `equal` are the right-hand sides of
    equalities, `below` those of rows `a x <= b`.

    A row that x = 0 breaks by |b_i| needs entries of x that add up to |b_i|, so the largest such
    row decides: right-hand sides that are rounding never do, nor do loose limits that stand for
    "none". Where x = 0 obeys every row, the largest limit; 0 without any.
    """
    forced = max(np.abs(equal).max(initial=0.0), -below.min(initial=0.0))
    if forced > 0:
        return float(forced)
    return float(below[np.isfinite(below)].max(initial=0.0))


def size_in_box(equal: np.ndarray, below: np.ndarray, lb: np.ndarray, ub: np.ndarray) -> float:
    """`least_size` with bounds as further rows: x <= ub and -x <= -lb."""
    return least_size(equal, np.concatenate([below, ub, -lb]))


def largest_side(*sides: np.ndarray) -> float:
    """The largest right-hand side or bound that is finite; 0 without any."""
    every = np.abs(np.concatenate(sides))
    return float(every[np.isfinite(every)].max(initial=0.0))


def linear_unit(size: float) -> float:
    """What x of a linear program should be measured in, if it has this size."""
    unit = power_of_two(size)
    if unit > PLAIN:
        return unit / PLAIN
    return unit if unit < 1.0 / PLAIN else 1.0
