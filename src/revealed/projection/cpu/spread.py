"""How much the certificate's cosines may hide: a number for each matrix, found once.

A cosine of 1e-12 between the move and a row proves nothing where the entries that can move are
1e-12 of the row: brought to the same size, they may be parallel. So rows and columns are scaled
until all entries are about 1. The range of the column scales, times what no scaling evens out, is
the factor by which the error of a point may exceed its residual. Rows that repeat each other but
for dust, such as 0.3 beside 0.1 + 0.2, hide as much, and are looked for where this is cheap.

Letters: m rows, n columns, nnz entries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .analysis import Columns

HARMLESS = 100.0
"""A factor up to which residuals are taken as they are."""
HOPELESS = 1e7
"""A factor from which no residual says anything."""
PRIME = 2**31 - 1
ROUNDS = 20
"""Turns between rows and columns; the scales need only be right to a factor or two."""
DUST = 1e-7
"""Two rows whose entries in two columns are nearly, but not exactly, in proportion."""
MOST_MINORS = 200_000
"""Pairs of rows times pairs of columns up to which dust is looked for."""
MOST_LINES = 64
"""Matrices in one batch up to which it is."""


def spread_of(columns: Columns) -> np.ndarray:
    """(1 or B,): the factor of each matrix; 1 where rows have entries of one size, inf for dust."""
    m, n = columns.norm.shape[1], len(columns.start) - 1
    column = np.repeat(np.arange(n), np.diff(columns.start))
    result = np.ones(len(columns.value))
    if not len(columns.row):
        return result
    known: dict[bytes, float] = {}
    residue = residues_of(columns)
    look = m * (m - 1) * n * (n - 1) <= 4 * MOST_MINORS and len(result) <= MOST_LINES
    for b, value in enumerate(columns.value):
        key = value.tobytes() if len(result) > 1 else b""
        if key not in known:
            known[key] = _spread(value, columns.row, column, m, n)
            if look and _has_dust(value, residue[b], columns.row, column, m, n):
                known[key] = np.inf
        result[b] = known[key]
    return result


def residues_of(columns: Columns) -> np.ndarray:
    """(1 or B, nnz): entries modulo `PRIME`, exactly: floating-point numbers are whole numbers
    times powers of two, which have inverses there."""
    fraction, exponent = np.frexp(columns.value)
    whole = np.ldexp(fraction, 53).astype(np.int64) % PRIME
    powers, place = np.unique(exponent.astype(np.int64) - 53, return_inverse=True)
    factors = np.array([pow(2, int(k), PRIME) for k in powers], np.int64)
    return whole * factors[place.reshape(whole.shape)] % PRIME


def _spread(value: np.ndarray, row: np.ndarray, column: np.ndarray, m: int, n: int) -> float:
    size = np.abs(value)
    there = size > 0
    size, row, column = size[there], row[there], column[there]
    if not len(size):
        return 1.0
    largest = np.zeros(m)
    np.maximum.at(largest, row, size)
    if (size == largest[row]).all():
        return 1.0
    logs = np.log(size)
    in_row, in_column = (np.bincount(at, minlength=k).clip(1) for at, k in ((row, m), (column, n)))
    by_row, by_column = np.zeros(m), np.zeros(n)
    for _ in range(ROUNDS):
        by_row = np.bincount(row, logs + by_column[column], minlength=m) / -in_row
        by_column = np.bincount(column, logs + by_row[row], minlength=n) / -in_column
    uneven = np.abs(logs + by_row[row] + by_column[column]).max()
    used = by_column[np.unique(column)]
    return float(np.exp(min(np.ptp(used) + uneven, 700.0)))


def _has_dust(
    value: np.ndarray, residue: np.ndarray, row: np.ndarray, column: np.ndarray, m: int, n: int
) -> bool:
    """Whether any 2 x 2 minor is nearly, but not exactly, 0."""
    if m < 2 or n < 2:
        return False
    A, modulo = np.zeros((m, n)), np.zeros((m, n), np.int64)
    A[row, column], modulo[row, column] = value, residue
    first, second = np.triu_indices(m, 1)
    left, right = np.triu_indices(n, 1)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        one = A[first][:, left] * A[second][:, right]
        other = A[first][:, right] * A[second][:, left]
        near = np.abs(one - other) <= DUST * (np.abs(one) + np.abs(other))
    one = modulo[first][:, left] * modulo[second][:, right]
    other = modulo[first][:, right] * modulo[second][:, left]
    return bool((near & ((one - other) % PRIME != 0)).any())
