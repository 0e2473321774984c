"""Knapsacks: choose fractions of items, at most one of each, within the capacity."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._common.arrays import to_float64
from ..._common.rows import frozen
from ...errors import InputError, ShapeError
from ..linear import LinearProgram
from ..structures import KnapsackStructure


def knapsack(weights: Any, capacity: Any) -> LinearProgram:
    """Fractional knapsack: minimise <c, x> with weights x <= capacity, 0 <= x <= 1.

    Costs are minimised, so an item of value v has cost -v. `weights` is (n,), or (k, n) for k
    resources. `capacity` is a scalar or (B,), one for each instance; with k resources a scalar,
    (k,), or (B, k).
    """
    weights = to_float64(weights, "weights")
    if weights.ndim not in (1, 2) or weights.size == 0:
        raise ShapeError(
            f"`weights` must be (n,), or (k, n) for k resources, with at least one item; "
            f"got shape {weights.shape}."
        )
    if not (np.isfinite(weights) & (weights >= 0)).all():
        bad = np.argwhere(~(np.isfinite(weights) & (weights >= 0)))[0]
        raise InputError(
            f"`weights` must be finite and not negative; got {weights[tuple(bad)]} at entry "
            f"{tuple(bad.tolist())}."
        )
    b_ub = _right_hand_side(capacity, weights)
    structure = None
    if weights.ndim == 1 or len(weights) == 1:
        one = b_ub[..., 0] if b_ub.ndim else b_ub
        structure = KnapsackStructure(frozen(weights.ravel().copy()), frozen(np.array(one)))
    return LinearProgram(
        A_ub=np.atleast_2d(weights), b_ub=b_ub, lb=0.0, ub=1.0, structure=structure
    )


def _right_hand_side(capacity: Any, weights: np.ndarray) -> np.ndarray:
    """(), (k,) or (B, k): the capacities as the b_ub of k rows."""
    room = to_float64(capacity, "capacity")
    rows = 1 if weights.ndim == 1 else len(weights)
    if weights.ndim == 1 and room.ndim == 1:
        room = room[:, None]
    elif room.ndim > weights.ndim or (room.ndim and room.shape[-1] != rows):
        expected = (
            "a scalar or (B,)" if weights.ndim == 1 else f"a scalar, ({rows},) or (B, {rows})"
        )
        raise ShapeError(
            f"`capacity` must be {expected} for weights of shape {weights.shape}; got {room.shape}."
        )
    bad = np.argwhere(np.isnan(room) | np.isneginf(room))
    if len(bad):
        raise InputError(
            f"`capacity` must be a number or +inf; got {room[tuple(bad[0])]} at entry "
            f"{tuple(bad[0].tolist())}."
        )
    return room
