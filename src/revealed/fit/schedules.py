"""How a learning rate falls in the course of a training."""

from __future__ import annotations

from typing import Any

from .._common.checks import check_number
from ..errors import InputError

CONSTANT, LINEAR = "constant", "linear"


def learning_rate(lr: float, schedule: float | str, when: float, total: int) -> float:
    """The rate after `when` of `total` epochs.

    "constant" keeps it. "linear" is lr (1 - when / total), a straight line that would end at 0. A
    number p is lr / (1 + when)^p; 0.5 and 1 are usual.
    """
    if schedule == CONSTANT:
        return lr
    if schedule == LINEAR:
        return lr * (1 - when / total)
    return lr / (1.0 + when) ** float(schedule)


def check_schedule(schedule: Any) -> None:
    """Refuse what is neither a number of at least 0 nor "constant" nor "linear"."""
    known = f'"{CONSTANT}" or "{LINEAR}"'
    if not isinstance(schedule, str):
        check_number(schedule, "schedule", f" Or {known}.")
    elif schedule not in (CONSTANT, LINEAR):
        raise InputError(f"`schedule` must be a number or {known}; got {schedule!r}.")
