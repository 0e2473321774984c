"""When two decisions are the same, and when one is as good as another: the only tolerances for it.

Letters: B instances, n variables.
"""

from __future__ import annotations

from typing import Any

SAME = 1e-5
"""Relative difference up to which two entries of a decision are the same.

Decisions come from solvers and carry their rounding: vertices of exact oracles are right to 1e-9,
those of interior-point methods to 1e-6. `OptimalitySet` reads with this tolerance which bounds a
decision has reached, so what is taken as at a bound when costs are learned also counts as repeated
when they are judged. It is relative, 1e-5 (1 + |x|), because plans hold entries of any size: for
0/1 decisions any tolerance below 1/2 would do, for tonnes and euros an absolute one would not.
"""
TIE = 1e-6
"""Relative to the sum of |c_j x_j|: a decision that costs this much above the optimum is as
good."""


def alike(one: Any, other: Any, tol: float = SAME) -> Any:
    """Which entries are the same, `other` being the measure; NaN is like nothing.

    Parameters
    ----------
    one, other : arrays or tensors
        Of shapes that broadcast.
    tol : float
        Entries may differ by `tol` (1 + |other|).

    Returns
    -------
    bool array or tensor
    """
    return abs(one - other) <= tol * (1.0 + abs(other))


def same_decision(one: Any, other: Any, tol: float = SAME) -> Any:
    """(B,) bool: which decisions are the same in every entry.

    Parameters
    ----------
    one, other : (B, n) arrays or tensors
        The difference is measured against `other`.
    tol : float
        Entries may differ by `tol` (1 + |other|).

    Returns
    -------
    (B,) bool array or tensor
    """
    return alike(one, other, tol).all(1)
