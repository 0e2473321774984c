"""How a learning rate falls in the course of a training."""

from __future__ import annotations

from typing import Any

from .._common.checks import check_number
from ..errors import InputError

LINEAR = "linear"


def learning_rate(lr: float, decay: float | str, when: float, total: int) -> float:
    """The rate after `when` of `total` epochs.

    lr / (1 + when)^decay, where 0 keeps it and 0.5 and 1 are the usual ways to decrease it; or with
    "linear" lr (1 - when / total), a straight line that would end at 0.
    """
    if decay == LINEAR:
        return lr * (1 - when / total)
    return lr / (1.0 + when) ** float(decay)


def check_decay(decay: Any) -> None:
    """Refuse what is neither a number of at least 0 nor "linear"."""
    if isinstance(decay, str):
        if decay != LINEAR:
            raise InputError(f'`lr_decay` must be a number or "{LINEAR}"; got {decay!r}.')
        return
    check_number(decay, "lr_decay", f' Or "{LINEAR}".')
