"""Units for solvers whose tolerances are absolute: powers of two, which move no digit of what is
divided by them."""

from __future__ import annotations

from typing import Any

import numpy as np

PLAIN = 1024.0
"""An x between 1 / this and this is for a linear solver as it is, and a larger one is made this
large: tolerances of 1e-9 then are 1e-12 of it, which leaves smaller numbers beside it room."""
PASSES = 6
FARTHEST = 500
"""Exponents of two of a scale, at most."""


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
    "none". 0 where x = 0 obeys every row.
    """
    return max(float(np.abs(equal).max(initial=0.0)), -float(below.min(initial=0.0)))


def limit_size(below: np.ndarray) -> float:
    """A size that limits `a x <= b` with b above 0 allow, for rows of size 1: the largest of those
    that are neither dust nor stand for "none", or else the middle one; 0 without any."""
    limits = below[np.isfinite(below) & (below > 0)]
    usual = limits[(limits >= 1.0 / PLAIN) & (limits <= PLAIN**2)]
    if usual.size:
        return float(usual.max())
    return float(np.median(limits)) if limits.size else 0.0


def size_in_box(equal: np.ndarray, below: np.ndarray, lb: np.ndarray, ub: np.ndarray) -> float:
    """The size that x has at least, or else that it may have; bounds are further rows, x <= ub and
    -x <= -lb."""
    every = np.concatenate([below, ub, -lb])
    return least_size(equal, every) or limit_size(every)


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


def even_columns(A: Any) -> np.ndarray:
    """(n,) powers of two that bring the entries of A (csr_array), with rows of any size, near 1: in
    turn, rows and columns are divided by the geometric mean of their largest and smallest entry."""
    m, n = A.shape
    row = np.repeat(np.arange(m), np.diff(A.indptr))
    size = np.log2(np.abs(A.data))
    across = np.zeros(n)
    for _ in range(PASSES):
        up = -_middle(size + across[A.indices], row, m)
        across = -_middle(size + up[row], A.indices, n)
    return np.ldexp(1.0, np.clip(np.rint(across), -FARTHEST, FARTHEST).astype(int))


def _middle(values: np.ndarray, group: np.ndarray, size: int) -> np.ndarray:
    """Halfway between the largest and the smallest value of each group; 0 where it is empty."""
    high, low = np.full(size, -np.inf), np.full(size, np.inf)
    np.maximum.at(high, group, values)
    np.minimum.at(low, group, values)
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(high), 0.5 * (high + low), 0.0)
