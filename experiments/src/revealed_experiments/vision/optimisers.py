"""Adam and AdaGrad in a form that a CUDA graph can hold: nothing of a step lives on the host."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from revealed.errors import InputError

OPTIMISERS = ("adam", "adagrad")

_lists: Any = torch  # with the functions that take lists of tensors, which its type stubs hide


def make_optimiser(
    name: str, parameters: Iterable[nn.Parameter], step: float
) -> torch.optim.Optimizer:
    """The optimiser of that name; its step is changed with `set_step` and in no other way."""
    chosen = list(parameters)
    if name not in OPTIMISERS:
        raise InputError(f"`optimiser` must be one of {', '.join(OPTIMISERS)}; got {name!r}.")
    device = chosen[0].device
    # As a tensor the step is read when a captured graph runs; a number would be frozen in it.
    rate: Any = torch.tensor(step, device=device) if device.type == "cuda" else step
    if name == "adagrad":
        return AdaGrad(chosen, rate)
    if device.type == "cuda":
        return torch.optim.Adam(chosen, lr=rate, capturable=True, fused=True)
    return torch.optim.Adam(chosen, lr=rate)


def set_step(optimiser: torch.optim.Optimizer, step: float) -> None:
    """Make `step` the step from now on, also in a graph that has been captured."""
    for group in optimiser.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(step)
        else:
            group["lr"] = step


class AdaGrad(torch.optim.Optimizer):
    """Each entry moves by step g / (sqrt(sum of its g^2 so far) + eps).

    Torch's own reads its counter on the host in every step, which no graph can hold.
    """

    EPS = 1e-10

    def __init__(self, parameters: Iterable[nn.Parameter], step: float | Tensor) -> None:
        super().__init__(parameters, {"lr": step})
        for p in self._all():
            self.state[p]["sum"] = torch.zeros_like(p)

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """One update of all parameters that have a gradient."""
        moved = [p for p in self._all() if p.grad is not None]
        if not moved:
            return
        slopes: list[Tensor] = [p.grad for p in moved if p.grad is not None]
        sums = [self.state[p]["sum"] for p in moved]
        _lists._foreach_addcmul_(sums, slopes, slopes, value=1.0)
        length = _lists._foreach_sqrt(sums)
        _lists._foreach_add_(length, self.EPS)
        moves = _lists._foreach_div(slopes, length)
        _lists._foreach_mul_(moves, self.param_groups[0]["lr"])
        _lists._foreach_sub_(moved, moves)

    def _all(self) -> list[nn.Parameter]:
        return [p for group in self.param_groups for p in group["params"]]


# --- their state, for checkpoints and for trying a step without consequences ----------------------


def state_of(optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """What the optimiser remembers, by the number of the parameter and a name."""
    kept = optimiser.state_dict()["state"]
    return {f"{i}.{name}": value for i, part in kept.items() for name, value in part.items()}


def load_state(optimiser: torch.optim.Optimizer, state: dict[str, Tensor]) -> None:
    """Put back what `state_of` gave."""
    parameters = [p for group in optimiser.param_groups for p in group["params"]]
    parts: dict[int, dict[str, Tensor]] = {}
    for key, value in state.items():
        i, _, name = key.partition(".")
        like = parameters[int(i)]
        # In the memory order of its parameter: kernels for many tensors walk both alike.
        placed = torch.empty_like(like).copy_(value) if value.shape == like.shape else value
        parts.setdefault(int(i), {})[name] = placed
    groups = optimiser.state_dict()["param_groups"]
    optimiser.load_state_dict({"state": parts, "param_groups": groups})


def start_state(optimiser: torch.optim.Optimizer) -> None:
    """Forget everything in place: every sum and counter is 0, as before the first step."""
    for part in optimiser.state.values():
        for value in part.values():
            if isinstance(value, Tensor):
                value.zero_()
