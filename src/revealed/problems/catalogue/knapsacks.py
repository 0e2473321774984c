"""Knapsacks: choose items, or fractions of them, at most one of each, within the capacity."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._common.arrays import to_float64
from ..._common.rows import frozen
from ...errors import InputError, ShapeError
from ..integer import IntegerProgram
from ..linear import LinearProgram
from ..structures import BinaryKnapsackStructure, KnapsackStructure, StandardKnapsackStructure


def knapsack(weights: Any, capacity: Any) -> LinearProgram:
    """Fractional knapsack: minimize <c, x> with weights x <= capacity, 0 <= x <= 1.

    Costs are minimized, so an item of value v has cost -v.

    Parameters
    ----------
    weights : (n,) or (k, n) array
        At least 0; one row for each of k resources.
    capacity : float or array
        (B,), one for each instance; with k resources a number, (k,), or (B, k). Infinity is no
        limit.

    Returns
    -------
    LinearProgram

    Examples
    --------
    >>> import numpy as np
    >>> import revealed as rv
    >>> problem = rv.problems.knapsack([1.0, 2.0], capacity=2.0)
    >>> problem.solve(np.array([[-3.0, -4.0]])).x
    array([[1. , 0.5]])
    """
    weights = _checked_weights(weights)
    b_ub = _right_hand_side(capacity, weights)
    structure = None
    if weights.ndim == 1 or len(weights) == 1:
        one = b_ub[..., 0] if b_ub.ndim else b_ub
        structure = KnapsackStructure(frozen(weights.ravel().copy()), frozen(np.array(one)))
    return LinearProgram(
        A_ub=np.atleast_2d(weights), b_ub=b_ub, lb=0.0, ub=1.0, structure=structure
    )


def standard_form_knapsack(weights: Any, capacity: Any) -> LinearProgram:
    """Fractional knapsack as A x = b, x >= 0: minimize <c, x> over 2n + 1 columns.

    Columns are the n items, what is left of the capacity, and 1 - x of each item; the first row is
    the budget, the others are x_i + t_i = 1. This is the form in which the paper learns: slacks are
    predicted like items, and count in the decision loss, the first in units of weight. For use,
    prefer `knapsack`, which has no slack to predict.

    Parameters
    ----------
    weights : (n,) array
        At least 0.
    capacity : float
        At least 0 and finite.

    Returns
    -------
    LinearProgram
    """
    weights = _checked_weights(weights)
    room = to_float64(capacity, "capacity")
    if weights.ndim != 1 or room.ndim:
        raise ShapeError(
            "`weights` must be (n,) and `capacity` one number in standard form; got shapes "
            f"{weights.shape} and {room.shape}."
        )
    if not (np.isfinite(room) and room >= 0):
        raise InputError(f"`capacity` must be finite and not negative; got {room}.")
    n = len(weights)
    A = np.zeros((n + 1, 2 * n + 1))
    A[0, :n], A[0, n] = weights, 1.0
    A[1:, :n] = A[1:, n + 1 :] = np.eye(n)
    structure = StandardKnapsackStructure(frozen(weights.copy()), frozen(np.array(room)))
    return LinearProgram(A_eq=A, b_eq=np.r_[room, np.ones(n)], lb=0.0, structure=structure)


def binary_knapsack(weights: Any, capacities: Any) -> IntegerProgram:
    """0/1 knapsack: minimize <c, x> with weights x <= capacities, each item whole or left out.

    Costs are minimized, so an item of value v has cost -v. Solved by branch and bound.

    Parameters
    ----------
    weights : (k, n) or (n,) array
        At least 0; one row for each of k budgets.
    capacities : float or array
        At least 0: leaving out everything is feasible. With k budgets a number, (k,), or (B, k)
        for budgets of each instance; with weights (n,) a number or (B,).

    Returns
    -------
    IntegerProgram
    """
    weights = _checked_weights(weights)
    b_ub = _right_hand_side(capacities, weights)
    if (b_ub < 0).any():
        raise InputError(f"`capacities` must be at least 0; got {b_ub.min()}.")
    rows = np.atleast_2d(weights)
    structure = BinaryKnapsackStructure(frozen(rows.copy()), frozen(np.array(b_ub)))
    return IntegerProgram(A_ub=rows, b_ub=b_ub, lb=0.0, ub=1.0, structure=structure)


def _checked_weights(weights: Any) -> np.ndarray:
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
    return weights


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
