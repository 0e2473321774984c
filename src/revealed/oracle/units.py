"""Units for solvers whose tolerances are absolute: powers of two, which move no digit of what is
divided by them."""

from __future__ import annotations

from typing import Any

import numpy as np

PLAIN = 1024.0
"""Right-hand sides and bounds between 1 / this and this are for a linear solver as they are."""


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


def usual_size(*sides: np.ndarray) -> float:
    """The middle one of right-hand sides and bounds that are finite and not 0; 0 without any."""
    every = np.abs(np.concatenate(sides))
    told = every[(every > 0) & (every < np.inf)]
    return float(np.median(told)) if told.size else 0.0


def linear_unit(*sides: np.ndarray) -> float:
    """What x of a linear program should be measured in."""
    size = power_of_two(usual_size(*sides))
    return 1.0 if 1.0 / PLAIN <= size <= PLAIN else size
