"""Batches that stay on a GPU: what can be checked of them without waiting for it, and what the
device offers.

torch is never imported here: a tensor can only arrive if the caller has imported torch already.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any

from ..errors import InputError, ShapeError
from .arrays import batch_shape_message, is_torch, loaded_torch


def is_cuda(value: object) -> bool:
    """Whether `value` is a tensor on a CUDA device."""
    return is_torch(value) and bool(value.is_cuda)  # pyright: ignore[reportAttributeAccessIssue]


def as_device_costs(costs: Any, n: int, name: str = "costs") -> Any:
    """A (B, n) tensor of a floating dtype, contiguous and without gradient, where it is.

    Entries are not looked at, for that would mean waiting for the device.
    """
    torch = loaded_torch()
    if costs.layout != torch.strided:
        raise InputError(
            f"`{name}` must be a dense tensor; got layout {costs.layout}. Use `{name}.to_dense()`."
        )
    if costs.is_complex():
        raise InputError(f"`{name}` must hold real numbers; got dtype {costs.dtype}.")
    if costs.ndim != 2 or costs.shape[1] != n:
        raise ShapeError(batch_shape_message(tuple(costs.shape), n, name))
    costs = costs.detach()
    return (costs if costs.is_floating_point() else costs.double()).contiguous()


@cache
def has_triton() -> bool:
    """Whether there are kernels to launch."""
    return find_spec("triton") is not None


@cache
def processors(device: Any) -> int:
    """Multiprocessors of a CUDA device; 1 elsewhere."""
    if device.type != "cuda":
        return 1
    return loaded_torch().cuda.get_device_properties(device).multi_processor_count
