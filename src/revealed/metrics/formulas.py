"""The formulas of the measures, on arrays and on tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._common.device import is_cuda
from .batch import Case

BLANK = 1e-8
"""A projected cost below this share of the predicted one has no direction left."""


def squared_difference(X: Any, Y: Any) -> Any:
    return ((X - Y) ** 2).sum(1)


def cost_of(C: Any, X: Any) -> Any:
    return (C * X).sum(1)


def length(C: Any) -> Any:
    return (C * C).sum(1) ** 0.5


def over(value: Any, length: Any) -> Any:
    """value / length, NaN where the length is 0."""
    if is_cuda(value):
        return value / length.where(length > 0, np.nan)
    return np.divide(value, length, out=np.full(len(value), np.nan), where=length > 0)


def gamma_of(case: Case, X: np.ndarray, nearest: np.ndarray) -> np.ndarray:
    length = np.linalg.norm(nearest, axis=1)
    length[length <= BLANK * np.linalg.norm(case.costs, axis=1)] = 0.0
    return over(cost_of(nearest, X - case.decisions), length)
