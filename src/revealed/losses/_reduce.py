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
    costs: Tensor, value: Tensor, gradient: Tensor, *, reduction: str, weights: Any
) -> Tensor:
    """The weighted mean, sum or list of `value` (B,), with `gradient` (B, n) as its derivative.

    Both come in float64 on the CPU and are reduced there; only results travel to the device of
    `costs`. Half-precision costs get a float32 loss: three digits would hide its progress.
    """
    share = _shares(weights, len(value), reduction)
    value, gradient = share * value, share[:, None] * gradient
    if reduction != "none":
        value = value.sum()
    work = costs.dtype if costs.dtype in (torch.float32, torch.float64) else torch.float32
    place = {"device": costs.device, "dtype": work}
    return _WithGradient.apply(costs, value.to(**place), gradient.to(**place))


def _shares(weights: Any, size: int, reduction: str) -> Tensor:
    """(B,): what each sample's loss is multiplied by before the sum."""
    share = torch.ones(size, dtype=torch.float64) if weights is None else _weights(weights, size)
    if reduction != "mean":
        return share
    total = share.sum()
    # Nothing to average: the mean of nothing is 0 here, so that an odd batch cannot end a training.
    return share / total if total > 0 else torch.zeros_like(share)


def _weights(weights: Any, size: int) -> Tensor:
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
    return torch.from_numpy(array.copy())


class _WithGradient(torch.autograd.Function):
    """Hands a value on and answers with a gradient that is already known."""

    @staticmethod
    def forward(ctx: Any, costs: Tensor, value: Tensor, gradient: Tensor) -> Tensor:
        ctx.save_for_backward(gradient)
        ctx.dtype = costs.dtype
        return value.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None, None]:
        (gradient,) = ctx.saved_tensors
        upstream = grad_output[:, None] if grad_output.ndim else grad_output
        return (upstream * gradient).to(ctx.dtype), None, None
