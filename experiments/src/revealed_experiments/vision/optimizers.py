"""Adam and AdaGrad in a form that a CUDA graph can hold: nothing of a step lives on the host."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from revealed.errors import InputError

OPTIMIZERS = ("adam", "adagrad")

_lists: Any = torch  # with the functions that take lists of tensors, which its type stubs hide


def make_optimizer(
    name: str, parameters: Iterable[nn.Parameter], lr: float
) -> torch.optim.Optimizer:
    """The optimizer of that name; its rate is changed with `revealed.fit.optimizers.set_lr` and in
    no other way."""
    chosen = list(parameters)
    if name not in OPTIMIZERS:
        raise InputError(f"`optimizer` must be one of {', '.join(OPTIMIZERS)}; got {name!r}.")
    device = chosen[0].device
    # As a tensor the rate is read when a captured graph runs; a number would be frozen in it.
    rate: Any = torch.tensor(lr, device=device) if device.type == "cuda" else lr
    if name == "adagrad":
        return AdaGrad(chosen, rate)
    if device.type == "cuda":
        return torch.optim.Adam(chosen, lr=rate, capturable=True, fused=True)
    return torch.optim.Adam(chosen, lr=rate)


class AdaGrad(torch.optim.Optimizer):
    """Each entry moves by lr g / (sqrt(sum of its g^2 so far) + eps).

    Torch's own reads its counter on the host in every step, which no graph can hold.
    """

    EPS = 1e-10

    def __init__(self, parameters: Iterable[nn.Parameter], lr: float | Tensor) -> None:
        super().__init__(parameters, {"lr": lr})
        for p in self._all():
            self.state[p]["sum"] = torch.zeros_like(p)

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """One update of all parameters that have a gradient."""
        moved = [p for p in self._all() if p.grad is not None]
        if not moved:
            return
        gradients: list[Tensor] = [p.grad for p in moved if p.grad is not None]
        sums = [self.state[p]["sum"] for p in moved]
        _lists._foreach_addcmul_(sums, gradients, gradients, value=1.0)
        length = _lists._foreach_sqrt(sums)
        _lists._foreach_add_(length, self.EPS)
        moves = _lists._foreach_div(gradients, length)
        _lists._foreach_mul_(moves, self.param_groups[0]["lr"])
        _lists._foreach_sub_(moved, moves)

    def _all(self) -> list[nn.Parameter]:
        return [p for group in self.param_groups for p in group["params"]]


def start_state(optimizer: torch.optim.Optimizer) -> None:
    """Forget everything in place: every sum and counter is 0, as before the first step."""
    for part in optimizer.state.values():
        for value in part.values():
            if isinstance(value, Tensor):
                value.zero_()
