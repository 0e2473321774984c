"""Whatever the caller holds (numpy, torch, lists) becomes a checked float64 array, and back.

torch is never imported here: a tensor can only arrive if the caller has imported torch already.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import InputError, ShapeError

Restore = Callable[[np.ndarray], Any]
Choice = slice | np.ndarray
"""Chosen instances: a slice from start to stop, or positions (B,) int64."""


def loaded_torch() -> Any:
    """The torch module, for code that has a tensor at hand and so must find it loaded."""
    return sys.modules["torch"]


def is_torch(value: object) -> bool:
    """Whether `value` is a torch tensor, found out without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_module(value: object) -> bool:
    """Whether `value` is a torch module, found out without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.nn.Module)


def to_float64(value: Any, name: str) -> np.ndarray:
    """A float64 numpy array with the values of `value`, of any shape; finiteness is not checked."""
    if is_torch(value):
        return _tensor_to_float64(value, name)
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise InputError(
            f"`{name}` must hold a number in every entry; got a masked array with "
            f"{int(np.ma.getmaskarray(value).sum())} masked entries. Fill them first."
        )
    if hasattr(value, "tocsr"):
        raise InputError(
            f"`{name}` must be a dense array; got {type(value).__name__}. Use `{name}.toarray()`."
        )
    return _numbers(_plain_array(value, name), name)


def as_costs(costs: Any, n: int, name: str = "costs") -> tuple[np.ndarray, Restore]:
    """A (B, n) batch as finite, C-contiguous float64, and the way back to the caller's own kind.

    `restore(array)` gives numpy for numpy in, and for torch in a tensor on the same device;
    floating results take the tensor's floating dtype, booleans and integers stay what they are.
    """
    # Exactly what the training loops pass; this test alone keeps their overhead to microseconds.
    if type(costs) is np.ndarray and costs.dtype == np.float64 and costs.flags.c_contiguous:
        array, restore = costs, _identity
    else:
        restore = _torch_restorer(costs) if is_torch(costs) else _identity
        array = to_float64(costs, name)
    if array.ndim != 2 or array.shape[1] != n:
        raise ShapeError(batch_shape_message(array.shape, n, name))
    array = np.ascontiguousarray(array)
    if not np.isfinite(array).all():
        raise InputError(_not_finite_message(array, name))
    return array, restore


def as_index(index: Any, size: int, name: str = "instances") -> np.ndarray:
    """Positions 0..size-1 chosen by an integer, a slice, a boolean mask or an integer array."""
    try:
        if isinstance(index, slice):
            return np.arange(size)[index]
        array = np.atleast_1d(np.asarray(index.detach().cpu() if is_torch(index) else index))
    except (TypeError, ValueError) as error:  # slices of fractions, rows of different lengths
        raise InputError(f"An index of {name} must hold integers; got {index!r}.") from error
    # What training loops pass, several times a step.
    is_plain = array.dtype == np.int64 and array.ndim == 1 and array.size
    if is_plain and array.min() >= 0 and array.max() < size:
        return array
    if array.ndim != 1:
        raise ShapeError(f"An index of {name} must be one-dimensional; got shape {array.shape}.")
    if array.dtype == bool:
        if len(array) != size:
            raise ShapeError(f"A mask of {name} must have {size} entries; got {len(array)}.")
        return np.flatnonzero(array)
    if array.size and array.dtype.kind not in "iu":
        raise InputError(f"An index of {name} must hold integers; got dtype {array.dtype}.")
    array = array.astype(np.int64)
    outside = np.flatnonzero((array < -size) | (array >= size))
    if outside.size:
        # An IndexError, not an InputError: Python's own loops over a sequence end on it.
        raise IndexError(f"Index {array[outside[0]]} is outside the {size} {name} there are.")
    return np.where(array < 0, array + size, array)


def as_choice(index: Any, size: int, name: str = "instances") -> Choice:
    """`as_index`, except that a run of neighbors stays a slice: what it chooses is a view."""
    if isinstance(index, slice) and index.step in (None, 1):
        try:
            start, stop, _ = index.indices(size)
        except TypeError as error:
            raise InputError(f"An index of {name} must hold integers; got {index!r}.") from error
        return slice(start, max(start, stop))
    return as_index(index, size, name)


def count_of(choice: Choice) -> int:
    """How many instances a choice from `as_choice` has."""
    return choice.stop - choice.start if isinstance(choice, slice) else len(choice)


def _identity(array: np.ndarray) -> np.ndarray:
    return array


def _plain_array(value: Any, name: str) -> np.ndarray:
    try:
        return np.asarray(value)
    except ValueError as error:  # numpy's word for rows of different lengths
        raise ShapeError(
            f"`{name}` must be a rectangular array of numbers; got rows of different lengths."
        ) from error


def _numbers(array: np.ndarray, name: str) -> np.ndarray:
    if array.dtype.kind not in "fiub":
        raise InputError(
            f"`{name}` must hold real numbers; got dtype {array.dtype}. Convert it to float64."
        )
    with np.errstate(over="ignore"):  # a long double beyond float64 becomes inf, refused later
        return array.astype(np.float64, copy=False)


def _tensor_to_float64(tensor: Any, name: str) -> np.ndarray:
    torch = loaded_torch()
    if tensor.layout != torch.strided:
        raise InputError(
            f"`{name}` must be a dense tensor; got layout {tensor.layout}. Use `{name}.to_dense()`."
        )
    if tensor.is_complex():
        raise InputError(f"`{name}` must hold real numbers; got dtype {tensor.dtype}.")
    if not tensor.is_meta:
        host = tensor.detach().to(device="cpu", dtype=torch.float64).resolve_neg()
        try:
            return host.numpy()
        except RuntimeError:  # it has no storage
            pass
    raise InputError(
        f"`{name}` must be a tensor that holds numbers; this one stands in for others (vmap, grad "
        "or jvp of torch.func, or the meta device). Give the whole batch at once, and take "
        "gradients with backward()."
    )


def _torch_restorer(tensor: Any) -> Restore:
    torch = loaded_torch()
    floating = tensor.dtype if tensor.is_floating_point() else torch.float64

    def restore(array: np.ndarray) -> Any:
        owned = array if array.flags.writeable else array.copy()
        result = torch.from_numpy(np.ascontiguousarray(owned))
        return result.to(device=tensor.device, dtype=floating if owned.dtype.kind == "f" else None)

    return restore


def batch_shape_message(shape: tuple[int, ...], n: int, name: str) -> str:
    """The sentence that refuses a batch of the wrong shape."""
    message = f"`{name}` must have shape (B, {n}), one row for each instance; got {tuple(shape)}."
    if shape == (n,):
        return f"{message} For one instance use `{name}[None]`."
    if len(shape) == 2 and shape[0] == n:
        return f"{message} Transpose it: `{name}.T`."
    return message


def _not_finite_message(array: np.ndarray, name: str) -> str:
    row, column = np.argwhere(~np.isfinite(array))[0]
    return (
        f"`{name}` must be finite; got {array[row, column]} in row {row}, column {column} "
        f"({int((~np.isfinite(array)).sum())} such entries in all). Remove or replace them."
    )
