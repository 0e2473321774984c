"""Options that several losses share: what they mean, and the sentences that refuse others.

Letters: B samples, n cost entries.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

from torch import Tensor

from ..errors import InputError
from .base import Batch

CRITERIA = ("decision", "regret")


def check_criterion(criterion: Any) -> bool:
    """Refuse anything but the two words; whether the criterion needs true costs."""
    if criterion not in CRITERIA:
        raise InputError(
            f"`criterion` must be 'decision', the distance from the observed decision, or "
            f"'regret', which needs true costs; got {criterion!r}."
        )
    return criterion == "regret"


def judge(criterion: str, chosen: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
    """What decisions x^ (B, n) are worth, (B,), and the gradient of that in x^, (B, n).

    "decision"    1/2 |x^ - x*|^2      x^ - x*
    "regret"      <c*, x^ - x*>        c*
    """
    gap = chosen - batch.decisions
    if criterion == "decision":
        return 0.5 * gap.square().sum(1), gap
    assert batch.true_costs is not None  # a loss that judges by regret has asked for them
    return (batch.true_costs * gap).sum(1), batch.true_costs


def raised(costs: Tensor, floor: float | None) -> Tensor:
    """Costs of at least `floor`, if there is one."""
    return costs if floor is None else costs.clamp(min=floor)


def check_floor(floor: Any) -> float | None:
    """None, or a finite number."""
    if floor is None:
        return None
    if not _is_number(floor):
        raise InputError(f"`floor` must be None or a finite number; got {floor!r}.")
    return float(floor)


def check_positive(value: Any, name: str) -> float:
    """A finite number above 0."""
    if not _is_number(value) or not value > 0:
        raise InputError(f"`{name}` must be a finite number above 0; got {value!r}.")
    return float(value)


def check_margin(margin: Any) -> float:
    """A finite number of at least 0."""
    if not _is_number(margin) or margin < 0:
        raise InputError(f"`margin` must be a finite number of at least 0; got {margin!r}.")
    return float(margin)


def check_share(value: Any, name: str) -> float:
    """A number from 0 to 1."""
    if not _is_number(value) or not 0 <= value <= 1:
        raise InputError(f"`{name}` must be a number from 0 to 1; got {value!r}.")
    return float(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
