"""Whatever holds the contexts (numpy, torch, pandas, a memory map) becomes a checked array."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._common.arrays import as_index, is_torch, to_float64
from ..errors import InputError, ShapeError
from ..optimality.protocol import CostSet as Sets
from .least_squares import chunks

LARGEST = 1e120
"""Of a number whose square, summed over a data set, is still one."""

_SHAPES = {2: "(B, d), one row of features for each sample", 3: "(B, n, p), features of each entry"}


class Ragged:
    """Features of entries of which each sample has its own number: a list of (n_b, p) arrays."""

    def __init__(self, parts: Any) -> None:
        arrays = [to_float64(part, f"Z[{b}]") for b, part in enumerate(parts)]
        bad = [b for b, part in enumerate(arrays) if part.ndim != 2 or 0 in part.shape]
        bad = bad or [b for b, part in enumerate(arrays) if part.shape[1] != arrays[0].shape[1]]
        if bad:
            raise ShapeError(
                "`Z` must be a list of (n_b, p) arrays, features of each entry, with one p for "
                f"all; `Z[{bad[0]}]` has shape {arrays[bad[0]].shape}."
            )
        self.rows = np.concatenate(arrays)
        """(N, p) the features of all entries of all samples."""
        refuse_bad_numbers(self.rows)
        self.sizes = np.array([len(part) for part in arrays])
        """(B,)"""
        self.width = int(self.sizes.max())
        """Of an array of costs, filled up to the longest."""

    shape = property(lambda self: (len(self.sizes), self.width, self.rows.shape[1]))
    ndim = 3

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, index: Any) -> Ragged:
        chosen = as_index(index, len(self), "samples")
        start = np.concatenate([[0], np.cumsum(self.sizes)])
        result = object.__new__(Ragged)
        places = [np.arange(int(start[b]), int(start[b + 1])) for b in chosen.tolist()]
        result.rows = self.rows[np.concatenate([*places, np.empty(0, np.int64)])]
        result.sizes, result.width = self.sizes[chosen], self.width
        return result

    @property
    def real(self) -> np.ndarray:
        """(B, width) bool: which entries of an array of costs there are."""
        return np.arange(self.width) < self.sizes[:, None]

    def padded(self) -> np.ndarray:
        """(B, width, p), filled up with 0."""
        result = np.zeros(self.shape)
        result[self.real] = self.rows
        return result


class Common:
    """Features (n, p) of each entry that are the same for all of B samples, kept once."""

    ndim = 3

    def __init__(self, rows: np.ndarray, size: int, total: int | None = None) -> None:
        self.rows, self._size = rows, size
        self.total = size if total is None else total
        """Samples of the data set that this is a part of."""

    @property
    def shape(self) -> tuple[int, int, int]:
        return (self._size, *self.rows.shape)

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: Any) -> Common:
        return Common(self.rows, len(as_index(index, self._size, "samples")), self.total)


def is_ragged(Z: Any) -> bool:
    """Whether contexts are a list of matrices rather than an array."""
    if isinstance(Z, Ragged):
        return True
    return isinstance(Z, list | tuple) and any(np.ndim(part) == 2 for part in Z[:1])


def as_contexts(Z: Any, ndim: int = 2) -> Any:
    """A finite float64 array of `ndim` dimensions with the values of `Z`; Ragged for a list of
    matrices.

    A float64 memory map stays on disk: it is read chunk by chunk, here and later.
    """
    if ndim == 3 and is_ragged(Z):
        return Z if isinstance(Z, Ragged) else Ragged(Z)
    if isinstance(Z, Common):
        return Z
    array = to_float64(Z, "Z")
    if array.ndim != ndim:
        hint = {1: " For one feature use `Z[:, None]`.", 3: ' Use model="shared" for these.'}
        raise ShapeError(
            f"`Z` must have shape {_SHAPES[ndim]}; got {array.shape}.{hint.get(array.ndim, '')}"
        )
    if 0 in array.shape:
        raise ShapeError(f"`Z` must hold at least one sample and one feature; got {array.shape}.")
    refuse_bad_numbers(array)
    return np.ascontiguousarray(array)


def refuse_bad_numbers(array: np.ndarray) -> None:
    """Name the first entry that is NaN or infinite, and features too large or small to square."""
    largest = np.zeros(array.shape[-1])
    for part in chunks(len(array)):
        size = np.abs(array[part])
        if not np.isfinite(size).all():
            place = np.argwhere(~np.isfinite(size))[0]
            place[0] += part.start
            got = "NaN" if np.isnan(array[tuple(place)]) else f"{array[tuple(place)]}"
            raise InputError(
                f"`Z` must be finite; got {got} in sample {place[0]}, feature "
                f"{', '.join(str(i) for i in place[1:])}. Fill or drop such samples first."
            )
        largest = np.maximum(largest, size.reshape(-1, len(largest)).max(axis=0, initial=0.0))
    extreme = np.flatnonzero((largest > LARGEST) | ((largest < 1 / LARGEST) & (largest > 0)))
    if extreme.size:
        raise InputError(
            f"The largest entry of feature {extreme[0]} is {largest[extreme[0]]:.3g}, which cannot "
            "be squared and summed safely. Measure the feature in another unit."
        )


def check_data(contexts: int, sets: Sets) -> None:
    """Refuse contexts and decisions of different length, and margins that cannot be squared."""
    check_length(contexts, len(sets))
    extreme = (sets.margins > LARGEST) | ((sets.margins < 1 / LARGEST) & (sets.margins > 0))
    if extreme.any():
        raise InputError(
            f"`margin` is {sets.margins[extreme][0]:.3g}, which cannot be squared and summed "
            "safely. The margin only sets the unit in which costs are measured; 1 is usual."
        )


def check_length(contexts: int, decisions: int) -> None:
    """Refuse contexts and decisions of different length."""
    if contexts != decisions:
        raise ShapeError(
            f"`Z` must have one row for each of the {decisions} decisions; got {contexts}. "
            "Check that contexts and decisions come from the same samples, in the same order."
        )
    if decisions == 0:
        raise ShapeError("There is nothing to learn from: `Z` and the decisions are empty.")


def checked_contexts(estimator: Any, Z: Any, *, reset: bool, as_given: bool = False) -> Any:
    """Z as a finite float64 array, or `as_given` for a torch module; features counted and named.

    With `reset` the estimator takes their number and names down, otherwise it compares.
    """
    from sklearn.utils.validation import validate_data

    if as_given:
        if reset:
            estimator.n_features_in_ = int(np.prod(np.shape(Z)[1:]))
        return Z
    if is_ragged(Z):
        array = as_contexts(Z, ndim=3)
    elif is_torch(Z):
        array = to_float64(Z, "Z")
    else:
        array = _scikit_array(Z)
    if array.ndim < 3:
        validate_data(estimator, Z, reset=reset, skip_check_array=True)
    elif reset:
        estimator.n_features_in_ = array.shape[-1]
    elif array.shape[-1] != estimator.n_features_in_:
        raise ShapeError(
            f"`Z` has {array.shape[-1]} features of each entry; the model has learned from "
            f"{estimator.n_features_in_}."
        )
    if not isinstance(array, Ragged):
        refuse_bad_numbers(array)
    return array


def _scikit_array(Z: Any) -> np.ndarray:
    """What scikit-learn makes of lists, frames and arrays; its words where it cannot."""
    from sklearn.utils import check_array

    options: Any = {"order": "C", "ensure_all_finite": False, "allow_nd": True}
    try:
        return check_array(Z, dtype="float64", input_name="Z", **options)
    except ValueError as error:
        raise InputError(f"`Z` must be an array of numbers. {error}") from error


def like(given: Any, array: np.ndarray) -> Any:
    """`array` itself, or where `given` is a tensor, a tensor of its device and floating dtype."""
    if not is_torch(given):
        return array
    import torch

    dtype = given.dtype if given.is_floating_point() else torch.float64
    return torch.from_numpy(array).to(given.device, dtype)
