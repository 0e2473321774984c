"""The last digits of an interior-point answer: guess what binds, then solve for exactly that.

For a program without curved cones, the rows whose multiplier exceeds their slack are taken to hold
with equality and the others to be absent. What is left is one linear system. It is often singular
(rows that repeat each other), so it is factored with a small shift and refined against itself
without it. Whether the guess was right, the residual says.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from .._conic import Cone, ConicAnswer

SHIFT = 1e-9
REFINEMENTS = 12
_STRAIGHT = ("zero", "nonnegative")


def polished(
    weight: np.ndarray,
    target: np.ndarray,
    A: Any,
    right: np.ndarray,
    cones: list[Cone],
    answer: ConicAnswer,
) -> ConicAnswer | None:
    """The answer to min 1/2 sum weight (x - target)^2 with right - A x in the cones, given a nearby
    one; None where this way does not apply."""
    if any(kind not in _STRAIGHT for kind, _ in cones):
        return None
    equal = np.concatenate([np.full(size, kind == "zero") for kind, size in cones])
    slack = right - A @ answer.x
    binds = np.flatnonzero(equal | (answer.z > slack))
    rows = sparse.csr_array(A)[binds]
    n, m = len(weight), len(binds)
    exact = sparse.bmat([[sparse.diags_array(weight), rows.T], [rows, None]], format="csc")
    shift = sparse.diags_array(np.concatenate([np.full(n, SHIFT), np.full(m, -SHIFT)]))
    rhs = np.concatenate([weight * target, right[binds]])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # a factor that is singular all the same
            factor = splu(sparse.csc_matrix(exact + shift))
    except (RuntimeError, Warning):
        return None
    t = np.concatenate([answer.x, answer.z[binds]])
    for _ in range(REFINEMENTS):
        t = t + factor.solve(rhs - exact @ t)
    if not np.isfinite(t).all():
        return None
    z = np.zeros(len(right))
    z[binds] = t[n:]
    return answer._replace(x=t[:n], z=z)
