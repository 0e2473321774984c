"""From a distance to a loss and its gradient: the forms that losses and solvers share.

    power=2         1/2 dist^2                        gradient  q - P(q)
    power=1         dist                              gradient  (q - P(q)) / dist
    power="huber"   1/2 dist^2 up to `delta`, then delta (dist - delta/2)
    power="welsch"  delta^2 (1 - exp(-dist^2 / 2 delta^2)), not convex: 1/2 dist^2 near the set, and
                    what is many delta away is given up

A form is one entry of `FORMS`, with all that solvers need to know about it. Its name, where it has
one, is also a `loss` of the estimator. Plain arithmetic: numpy arrays and tensors of any device go
through it alike, and torch is not needed. Letters: B samples, n cost entries.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError
from .result import Projection

ROUNDED = "rounded"
"""Huber's form over delta: the plain distance without its kink, for solvers that approach it."""
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


class Form(NamedTuple):
    """A function of the distance, and what solvers need to know about it."""

    loss: Callable[[Any, Any, float], tuple[Any, Any]]
    """(distance, whether it is more than rounding, delta) -> value and factor of the residual."""
    is_convex: bool = True
    has_unit_steps: bool = True
    """Whether a step of length 1 along the gradient lowers the loss, as POCS needs."""
    longest_gradient: Callable[[float], float] = lambda delta: np.inf
    """Of a sample in its costs, by delta; the conjugate is infinite beyond."""
    conjugate_square: Callable[[float], float] = lambda delta: 0.5
    """The factor of |y|^2 in the conjugate, by delta."""
    is_straight_beyond_delta: bool = False
    """Whether there is no curvature along the residual beyond delta."""
    curvature: Callable[[Any, Any, float], Any] = lambda weights, distance, delta: weights
    """(weights, distance, delta) -> weights times the factor on the Hessian of 1/2 dist^2."""
    uses_delta: bool = False


FORMS: dict[Any, Form] = {
    1: Form(
        _plain,
        has_unit_steps=False,
        longest_gradient=lambda delta: 1.0,
        conjugate_square=lambda delta: 0.0,
    ),
    2: Form(_squared),
    "huber": Form(
        _huber,
        longest_gradient=lambda delta: delta,
        is_straight_beyond_delta=True,
        uses_delta=True,
    ),
    "welsch": Form(
        _welsch,
        is_convex=False,
        has_unit_steps=False,
        # Without the part along the residual, which may be negative.
        curvature=lambda weights, distance, delta: weights * np.exp(-0.5 * (distance / delta) ** 2),
        uses_delta=True,
    ),
    ROUNDED: Form(
        _rounded,
        longest_gradient=lambda delta: 1.0,
        conjugate_square=lambda delta: 0.5 * delta,
        is_straight_beyond_delta=True,
        curvature=lambda weights, distance, delta: weights / delta,
        uses_delta=True,
    ),
}
POWERS = tuple(power for power in FORMS if power != ROUNDED)
"""What users may ask for."""


def value_and_gradient(
    q: Any, p: Projection, size: Any, power: int | str, delta: float
) -> tuple[Any, Any]:
    """Values (B,) and gradients (B, n) of the samples; `size`, from `length_of`, is for power 1."""
    p = p.relaxed
    outside = p.distance > INSIDE * size if power == 1 else None
    value, factor = FORMS[power].loss(p.distance, outside, delta)
    residual = q - p.point
    return value, residual if factor is None else factor[:, None] * residual


def length_of(q: Any, margins: Any) -> Any:
    """(B,): |q|, or the margin where that is more: what a distance is small or large against."""
    if isinstance(q, np.ndarray):
        return np.maximum(np.sqrt(np.einsum("ij,ij->i", q, q)), margins)
    return q.double().norm(dim=1).maximum(margins)


def check_power(power: Any) -> None:
    """Refuse anything but the known forms."""
    if isinstance(power, bool) or power not in POWERS:
        known = ", ".join(map(repr, POWERS))
        raise InputError(f"`power` must be one of {known}; got {power!r}.")


def check_delta(delta: Any) -> None:
    """Refuse anything but a finite number above 0."""
    if not (isinstance(delta, int | float | np.number) and 0 < delta < np.inf):
        raise InputError(
            f"`delta` must be above 0 and finite, the distance at which the Huber and Welsch "
            f"losses bend; got {delta!r}."
        )
