"""Decisions that break their constraints: refused, repaired, or repaired and weighed down."""

from __future__ import annotations

import numpy as np

from ..errors import InputError
from ..problems.protocol import Problem

POLICIES = ("refuse", "repair", "weigh")
HALF = 0.01
"""A decision moved by this share of 1 + its length counts half under "weigh"."""


def settle(
    problem: Problem, X: np.ndarray, tol: float, policy: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Decisions (B, n) that obey the constraints as far as the policy sees to it, how far each was
    moved (B,), and what it is to count (B,)."""
    if policy not in POLICIES:
        raise InputError(f"`infeasible` must be one of {', '.join(POLICIES)}; got {policy!r}.")
    moved, weights = np.zeros(len(X)), np.ones(len(X))
    if policy == "refuse":
        return X, moved, weights
    bad = np.flatnonzero(~(np.asarray(problem.constraint_violation(X)) <= tol))
    if not bad.size:
        return X, moved, weights
    nearest = problem[bad].repair(X[bad])
    hopeless = bad[~np.isfinite(nearest).all(axis=1)]
    if hopeless.size:
        raise InputError(
            f"No decision that obeys the constraints of instance {hopeless[0]} was found, so there "
            "is nothing to repair it to. Look at its rows and bounds."
        )
    moved[bad] = np.linalg.norm(nearest - X[bad], axis=1)
    length = 1.0 + np.linalg.norm(X, axis=1)
    if policy == "weigh":
        weights = 1.0 / (1.0 + moved / (HALF * length))
    X = X.copy()
    X[bad] = nearest
    return X, moved, weights
