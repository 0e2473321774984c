"""Equalities that say nothing that others do not say: left out of the work, not of the certificate.

Rows that depend on others change neither the row space nor the sets, but a step costs the square of
their number. Where they are many, some rows that span all of them do the work. The certificate
looks at every row, so that leaving one out wrongly could not pass for solved. Letters: B instances,
m equalities of which k are kept, n columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from ..._common.compiled import kernel

if TYPE_CHECKING:
    from .analysis import Columns

FEWEST = 32
"""Equalities below which a step is cheap anyway."""
LOOK = 4
"""Multiply-adds that the look may take, in those of one A A^T: a dense matrix takes 2, that of a
network far more."""
SHARE = 0.75
"""Rows are left out where at most this share of them is kept."""
NOTHING = 1e-12
"""How far a row of length 1 may stick out of the span of others and still depend on them: well
below what the certificate or the factors can see."""
CLEAR = 1e-7
"""How far a row that is kept must stick out. In between, all rows are kept."""
LARGEST_GROWTH = 1e4
"""Most that a row left out may add up of those kept: beyond it, what they miss by would show."""


class Basis(NamedTuple):
    """Equalities that span all of them."""

    kept: np.ndarray
    """(m,) bool."""
    shares: np.ndarray
    """(m - k, k): rows left out = shares @ rows kept, all of length 1."""
    norm: np.ndarray
    """(m,) the length of each row."""
    growth: float
    """How many times as much as the kept rows another one may miss."""

    def fold(self, multipliers: np.ndarray) -> None:
        """Replace multipliers (B, m or more) by those of the kept rows that give the same costs."""
        m = len(self.kept)
        v = multipliers[:, :m] * self.norm
        v[:, self.kept] += v[:, ~self.kept] @ self.shares
        v[:, ~self.kept] = 0.0
        multipliers[:, :m] = v / self.norm


def worth_a_look(columns: Columns) -> bool:
    """Whether finding the rank of the equalities costs little beside one pass over the columns."""
    m, n = columns.n_equalities, len(columns.start) - 1
    if m < FEWEST or len(columns.value) != 1:
        return False
    count = np.bincount(_column_of_entries(columns)[columns.row < m], minlength=n)
    return m * n * min(m, n) <= LOOK * int((count * (count + 1) // 2).sum())


def find_basis(columns: Columns) -> Basis | None:
    """Rows that span all equalities; None where most are needed or the rank is not clear."""
    m, n = columns.n_equalities, len(columns.start) - 1
    own, norm = columns.row < m, columns.norm[0, :m]
    row = columns.row[own]
    unit = np.zeros((m, n))
    unit[row, _column_of_entries(columns)[own]] = columns.value[0, own] / norm[row]
    order, sticks_out, R = _orthogonalize(unit, NOTHING)
    k = len(sticks_out)
    if not 0 < k <= SHARE * m or sticks_out.min() < CLEAR:
        return None
    first, rest = np.argsort(order[:k]), np.argsort(order[k:])
    shares = solve_triangular(R[:, :k], R[:, k:])[np.ix_(first, rest)].T
    growth = float(np.abs(shares).sum(axis=1).max())
    kept = np.zeros(m, bool)
    kept[order[:k]] = True
    return Basis(kept, shares, norm, max(growth, 1.0)) if growth <= LARGEST_GROWTH else None


def _column_of_entries(columns: Columns) -> np.ndarray:
    return np.repeat(np.arange(len(columns.start) - 1), np.diff(columns.start))


@kernel(fastmath={"reassoc", "contract"})
def _orthogonalize(rows, least):
    """Gram-Schmidt that always takes the row which sticks out farthest, while one does by `least`.

    Returns the order of the rows, the k lengths that stuck out, and R (k, m) with
    rows[order] = R^T Q to within `least`. Not LAPACK's: with threads of its own it takes 60 times
    as long on a busy machine, and the order would depend on their number.
    """
    m, n = rows.shape
    order, R = np.arange(m), np.zeros((min(m, n), m))
    lengths = np.empty(min(m, n))
    square = np.empty(m)
    for i in range(m):
        square[i] = np.sum(rows[i] * rows[i])
    k = 0
    while k < min(m, n):
        far = k + np.argmax(square[k:])
        if square[far] <= least * least:
            break
        _swap(rows, order, square, R, k, far)
        q = rows[k]
        for a in range(k):  # once more, for what rounding has left of the earlier ones
            q -= np.sum(q * rows[a]) * rows[a]
        lengths[k] = np.sqrt(np.sum(q * q))
        q /= lengths[k]
        R[k, k] = lengths[k]
        for i in range(k + 1, m):
            R[k, i] = _take_off(rows[i], q)
            square[i] = np.sum(rows[i] * rows[i])
        k += 1
    return order, lengths[:k], R[:k]


@kernel
def _swap(rows, order, square, R, k, far):
    for j in range(rows.shape[1]):
        rows[k, j], rows[far, j] = rows[far, j], rows[k, j]
    for a in range(k):
        R[a, k], R[a, far] = R[a, far], R[a, k]
    order[k], order[far] = order[far], order[k]
    square[k], square[far] = square[far], square[k]


@kernel(fastmath={"reassoc", "contract"})
def _take_off(line, q):
    """Take its part along q off `line`; returns how much that was."""
    share = 0.0
    for j in range(len(q)):
        share += line[j] * q[j]
    for j in range(len(q)):
        line[j] -= share * q[j]
    return share
