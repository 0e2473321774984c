"""What every loss shares: a value and a known gradient for each sample -> one differentiable loss.

Letters: B samples, n cost entries.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .._arrays import to_float64
from ..errors import InputError, ShapeError

REDUCTIONS = ("mean", "sum", "none")


def check_reduction(reduction: Any) -> None:
    """Refuse anything but the three words."""
    if reduction not in REDUCTIONS:
        raise InputError(f"`reduction` must be one of {', '.join(REDUCTIONS)}; got {reduction!r}.")


def reduce_with_gradient(
    costs: Tensor, value: Any, gradient: Any, *, reduction: str, weights: Any
) -> Tensor:
    """The weighted mean, sum or list of `value` (B,), with `gradient` (B, n) as its derivative.

    Both come in float64, as numpy arrays or tensors, and are reduced where they are; only results
    travel to the device of `costs`. Half-precision costs get a float32 loss: three digits would
    hide its progress.
    """
    if weights is None:
        # Nothing to average: the mean of nothing is 0 here, so an odd batch cannot end a training.
        share = 1.0 / max(1, len(value)) if reduction == "mean" else 1.0
        value, gradient = share * value, share * gradient
    else:
        share = _shares(weights, len(value), reduction)
        if isinstance(value, Tensor):
            share = torch.from_numpy(share).to(value.device)
        value, gradient = share * value, share[:, None] * gradient
    if reduction != "none":
        value = value.sum()
    work = costs.dtype if costs.dtype in (torch.float32, torch.float64) else torch.float32
    return _WithGradient.apply(
        costs, (_tensor(value, work, costs.device), _tensor(gradient, work, costs.device))
    )


def _tensor(values: Any, dtype: torch.dtype, device: torch.device) -> Tensor:
    """A tensor of these values; numpy converts small arrays to another dtype faster than torch."""
    if isinstance(values, np.ndarray):
        values = torch.from_numpy(values.astype(_NUMPY[dtype], copy=False))
    elif not isinstance(values, Tensor):
        return torch.tensor(float(values), dtype=dtype, device=device)
    return values.to(device, dtype)


_NUMPY = {torch.float32: np.float32, torch.float64: np.float64}


def _shares(weights: Any, size: int, reduction: str) -> np.ndarray:
    """(B,): what each sample's loss is multiplied by before the sum."""
    share = _weights(weights, size)
    if reduction != "mean":
        return share
    total = share.sum()
    return share / total if total > 0 else np.zeros_like(share)


def _weights(weights: Any, size: int) -> np.ndarray:
    if isinstance(weights, Tensor) and weights.requires_grad:
        raise InputError(
            "`weights` must be constants, but they require a gradient. Detach them, or use "
            "reduction='none' and weigh the losses yourself."
        )
    array = to_float64(weights, "weights")
    if array.shape != (size,):
        raise ShapeError(
            f"`weights` must have one number for each of the {size} rows of `costs`; "
            f"got shape {array.shape}."
        )
    bad = np.flatnonzero(~(np.isfinite(array) & (array >= 0)))
    if bad.size:
        raise InputError(
            f"`weights` must be finite and at least 0; got {array[bad[0]]} at entry {bad[0]}."
        )
    return array


class _WithGradient(torch.autograd.Function):
    """Hands a value on and answers with a gradient that is already known."""

    @staticmethod
    def forward(ctx: Any, costs: Tensor, known: tuple[Tensor, Tensor]) -> Tensor:
        value, ctx.gradient = known
        ctx.dtype = costs.dtype
        return value

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        upstream = grad_output[:, None] if grad_output.ndim else grad_output
        return (upstream * ctx.gradient).to(ctx.dtype), None
