"""The last digits of an interior-point answer: guess what binds, then solve for exactly that.

For a program without curved cones, the rows whose multiplier exceeds their slack are taken to hold
with equality and the others to be absent. What is left is one linear system. It is often singular
(rows that repeat each other), so it is factored with a small shift and refined against itself
without it. Whether the guess was right, the residual says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from .conic import Cone, ConicAnswer

SHIFT = 1e-9
REFINEMENTS = 12
BALANCING = 5
_STRAIGHT = ("zero", "nonnegative")


def polished(
    P: Any, q: np.ndarray, A: Any, b: np.ndarray, cones: Sequence[Cone], answer: ConicAnswer
) -> ConicAnswer | None:
    """The answer to min 1/2 x^T P x + q x with b - A x in the cones, given a nearby one; None where
    this way does not apply."""
    if any(kind not in _STRAIGHT for kind, _ in cones):
        return None
    equal = np.concatenate([np.full(size, kind == "zero") for kind, size in cones])
    slack = b - A @ answer.x
    binds = np.flatnonzero(equal | (answer.z > slack))
    rows = sparse.csr_array(A)[binds]
    n, m = len(q), len(binds)
    exact, even = _balanced(sparse.bmat([[P, rows.T], [rows, None]], format="csc"))
    shift = sparse.diags_array(np.concatenate([np.full(n, SHIFT), np.full(m, -SHIFT)]))
    rhs = even * np.concatenate([-q, b[binds]])
    try:
        factor = splu(sparse.csc_matrix(exact + shift))
    except RuntimeError:  # singular all the same
        return None
    t = np.concatenate([answer.x, answer.z[binds]]) / even
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(REFINEMENTS):
            t = t + factor.solve(rhs - exact @ t)
        t = even * t
    if not np.isfinite(t).all():
        return None
    z = np.zeros(len(b))
    z[binds] = t[n:]
    return answer._replace(x=t[:n], z=z)


def _balanced(matrix: Any) -> tuple[Any, np.ndarray]:
    """D M D of a symmetric csc_array with rows of size 1, as nearly as a few rounds get there, and
    the diagonal D."""
    n = matrix.shape[0]
    result, even = matrix.copy(), np.ones(n)
    column = np.repeat(np.arange(n), np.diff(matrix.indptr))
    for _ in range(BALANCING):
        largest = np.zeros(n)
        np.maximum.at(largest, result.indices, np.abs(result.data))
        factor = 1.0 / np.sqrt(np.where(largest > 0, largest, 1.0))
        result.data *= factor[result.indices] * factor[column]
        even *= factor
    return result, even
