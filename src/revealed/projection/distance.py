"""From a distance to a loss and its gradient: the four forms that the projection losses share.

    power=2         1/2 dist^2                        gradient  q - P(q)
    power=1         dist                              gradient  (q - P(q)) / dist
    power="huber"   1/2 dist^2 up to `delta`, then delta (dist - delta/2)
    power="welsch"  delta^2 (1 - exp(-dist^2 / 2 delta^2)), not convex: 1/2 dist^2 near the set, and
                    what is many delta away is given up

Plain arithmetic, so that numpy arrays and tensors of any device go through it alike, and torch is
not needed. Letters: B samples, n cost entries.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import InputError
from .result import Projection

POWERS = (1, 2, "huber", "welsch")
ROUNDED = "rounded"
"""Huber's form over delta: the plain distance without its kink, for solvers that approach it."""
BENT = ("huber", "welsch")
"""Those for which `delta` means something."""
INSIDE = 1e-10
"""A distance of at most this share of the cost is rounding: its direction means nothing."""


# Distances (B,) in, each sample's loss and what its residual is multiplied by in the gradient out.


def _squared(distance: Any, outside: Any, delta: float) -> tuple[Any, Any]:
    return 0.5 * distance * distance, None


def _plain(distance: Any, outside: Any, delta: float) -> tuple[Any, Any]:
    # At distance 0 any vector of length at most 1 is a subgradient; 0 leaves a right cost alone.
    return distance, outside / (distance + ~outside)


def _huber(distance: Any, outside: Any, delta: float) -> tuple[Any, Any]:
    near = distance.clip(max=delta)
    return near * (distance - 0.5 * near), near / (distance + (distance == 0))


def _rounded(distance: Any, outside: Any, delta: float) -> tuple[Any, Any]:
    value, factor = _huber(distance, outside, delta)
    return value / delta, factor / delta


def _welsch(distance: Any, outside: Any, delta: float) -> tuple[Any, Any]:
    exponent = -0.5 * (distance / delta) ** 2
    kept, lost = (
        (np.exp(exponent), -np.expm1(exponent))
        if isinstance(exponent, np.ndarray)
        else (exponent.exp(), -exponent.expm1())
    )
    return delta * delta * lost, kept


_FORMS: dict[Any, Callable[[Any, Any, float], tuple[Any, Any]]] = {
    2: _squared,
    1: _plain,
    "huber": _huber,
    "welsch": _welsch,
    ROUNDED: _rounded,
}


def value_and_gradient(
    q: Any, p: Projection, size: Any, power: int | str, delta: float
) -> tuple[Any, Any]:
    """Values (B,) and gradients (B, n) of the samples; `size`, from `length_of`, is for power 1."""
    p = p.relaxed
    outside = p.distance > INSIDE * size if power == 1 else None
    value, factor = _FORMS[power](p.distance, outside, delta)
    residual = q - p.point
    return value, residual if factor is None else factor[:, None] * residual


def length_of(q: Any, margins: Any) -> Any:
    """(B,): |q|, or the margin where that is more: what a distance is small or large against."""
    if isinstance(q, np.ndarray):
        return np.maximum(np.sqrt(np.einsum("ij,ij->i", q, q)), margins)
    return q.double().norm(dim=1).maximum(margins)


def check_power(power: Any) -> None:
    """Refuse anything but the four forms."""
    if isinstance(power, bool) or power not in POWERS:
        raise InputError(f"`power` must be 2, 1, 'huber' or 'welsch'; got {power!r}.")


def check_delta(delta: Any) -> None:
    """Refuse anything but a finite number above 0."""
    if not (isinstance(delta, int | float | np.number) and 0 < delta < np.inf):
        raise InputError(
            f"`delta` must be above 0 and finite, the distance at which the Huber and Welsch "
            f"losses bend; got {delta!r}."
        )
