"""torch's optimizers by name, schedules of their learning rate, and their state for checkpoints."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from .._common.checks import check_number
from ..errors import InputError

OPTIMIZERS: dict[str, type[torch.optim.Optimizer]] = {
    "sgd": torch.optim.SGD,
    "adam": torch.optim.Adam,
    "adagrad": torch.optim.Adagrad,
}


def make_optimizer(
    name: str, module: nn.Module, lr: float, weight_decay: float = 0.0
) -> torch.optim.Optimizer:
    """The optimizer of that name for all parameters of a module."""
    if name not in OPTIMIZERS:
        raise InputError(f"`optimizer` must be one of {', '.join(OPTIMIZERS)}; got {name!r}.")
    parameters = list(module.parameters())
    if not parameters:
        raise InputError(f"The module has no parameters to learn: {type(module).__name__}.")
    return OPTIMIZERS[name](parameters, lr=lr, weight_decay=weight_decay)  # type: ignore[call-arg]


def set_lr(optimizer: torch.optim.Optimizer, lr: float) -> None:
    """Make `lr` the rate from now on. A tensor is filled in place: a CUDA graph reads it there."""
    for group in optimizer.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(lr)
        else:
            group["lr"] = lr


def state_of(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """What the optimizer remembers, by the number of the parameter and a name."""
    kept = optimizer.state_dict()["state"]
    return {f"{i}.{name}": value for i, part in kept.items() for name, value in part.items()}


def load_state(optimizer: torch.optim.Optimizer, state: dict[str, Tensor]) -> None:
    """Put back what `state_of` gave."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    parts: dict[int, dict[str, Tensor]] = {}
    for key, value in state.items():
        i, _, name = key.partition(".")
        like = parameters[int(i)]
        # In the memory order of its parameter: kernels for many tensors walk both alike.
        placed = torch.empty_like(like).copy_(value) if value.shape == like.shape else value
        parts.setdefault(int(i), {})[name] = placed
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": parts, "param_groups": groups})


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
