"""What every loss shares: a value and a known gradient for each sample -> one differentiable loss.

Letters: B samples, n cost entries.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor

from .._common.arrays import to_float64
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
    travel to the device of `costs`.
    """
    share = share_of_each(value, weights, reduction)
    over_entries = share if weights is None else share[:, None]
    return with_known_gradient(costs, share * value, over_entries * gradient, reduction)


def share_of_each(value: Any, weights: Any, reduction: str) -> Any:
    """What the losses (B,) are multiplied by before they are added up: one number where there are
    no weights, else (B,) of the kind of `value`."""
    if weights is not None:
        return _shares(weights, value, reduction)
    # Nothing to average: the mean of nothing is 0 here, so an odd batch cannot end a training.
    return 1.0 / max(1, len(value)) if reduction == "mean" else 1.0


def with_known_gradient(costs: Tensor, value: Any, gradient: Any, reduction: str) -> Tensor:
    """`value` (B,), added up unless there is no reduction, with a derivative that is known.

    Half-precision costs get a float32 loss: three digits would hide its progress.
    """
    if reduction != "none":
        value = value.sum()
    work = working_dtype(costs)
    return _WithGradient.apply(
        costs, (_tensor(value, work, costs.device), _tensor(gradient, work, costs.device))
    )


def working_dtype(costs: Tensor) -> torch.dtype:
    """The dtype of the loss of these costs and of its gradient."""
    return costs.dtype if costs.dtype in (torch.float32, torch.float64) else torch.float32


def _tensor(values: Any, dtype: torch.dtype, device: torch.device) -> Tensor:
    """A tensor of these values; numpy converts small arrays to another dtype faster than torch."""
    if isinstance(values, np.ndarray):
        values = torch.from_numpy(values.astype(_NUMPY[dtype], copy=False))
    elif not isinstance(values, Tensor):
        return torch.tensor(float(values), dtype=dtype, device=device)
    return values.to(device, dtype)


_NUMPY = {torch.float32: np.float32, torch.float64: np.float64}


def _shares(weights: Any, value: Any, reduction: str) -> Any:
    """(B,), of the kind of `value`: what each sample's loss is multiplied by before the sum."""
    _refuse_trained(weights)
    if isinstance(weights, Tensor) and weights.is_cuda and isinstance(value, Tensor):
        # Checking values would mean waiting for the device.
        share = check_weights_shape(weights, len(value)).to(value)
        return share if reduction != "mean" else share / share.sum().clamp_min(TINY)
    share = _weights(weights, len(value))
    if reduction == "mean":
        share = share / max(share.sum(), TINY)
    return torch.from_numpy(share).to(value.device) if isinstance(value, Tensor) else share


TINY = np.finfo(np.float64).tiny
"""Stands for a sum of weights of 0, so that the mean of nothing is 0."""


def _refuse_trained(weights: Any) -> None:
    """Weights are constants."""
    if isinstance(weights, Tensor) and weights.requires_grad:
        raise InputError(
            "`weights` must be constants, but they require a gradient. Detach them, or use "
            "reduction='none' and weigh the losses yourself."
        )


def with_own_weights(weights: Any, sets: Any) -> Any:
    """(B,) weights times those of the sets; None where all are 1."""
    if (sets.weights == 1.0).all():
        return weights
    if weights is None:
        return sets.weights
    return check_weights_shape(to_float64(weights, "weights"), len(sets.weights)) * sets.weights


def check_weights_shape(weights: Any, size: int) -> Any:
    """The weights, refused unless there is one for each of `size` samples."""
    if tuple(weights.shape) != (size,):
        raise ShapeError(
            f"`weights` must have one number for each of the {size} rows of `costs`; "
            f"got shape {tuple(weights.shape)}."
        )
    return weights


def _weights(weights: Any, size: int) -> np.ndarray:
    array = check_weights_shape(to_float64(weights, "weights"), size)
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
        ctx.save_for_backward(costs)
        return value

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, None]:
        (upstream,), gradient = grad_outputs, ctx.gradient
        if torch.is_grad_enabled():  # create_graph=True: someone may ask for the next derivative
            gradient = _LastDerivative.apply(*ctx.saved_tensors, gradient)
        upstream = upstream[:, None] if upstream.ndim else upstream
        return (upstream * gradient).to(ctx.dtype), None


class _LastDerivative(torch.autograd.Function):
    """Hands a gradient on, and refuses to be differentiated: a silent 0 would be wrong."""

    @staticmethod
    def forward(ctx: Any, costs: Tensor, gradient: Tensor) -> Tensor:
        return gradient.clone()

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> NoReturn:
        raise InputError(
            "These losses know their gradient, not how it changes with the costs: there are no "
            "second derivatives (create_graph=True, a Hessian, a penalty on the gradient). Detach "
            "the gradient to take it as a constant."
        )
