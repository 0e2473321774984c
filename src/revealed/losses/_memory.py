"""Multipliers of each sample's last projection, kept from one epoch to the next."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from .._common.arrays import is_torch
from ..errors import InputError, ShapeError

LARGEST = 1 << 24
"""Sample numbers below this are places in a table; others are looked up one by one."""
MOST_LINES = 1 << 17
"""Most lines of a DeviceMemory that grows with the sample numbers it is given."""


class Memory:
    """Rows of numbers by sample number: any integers, so a hash of a sample will do."""

    def __init__(self) -> None:
        self._place = np.empty(0, np.int64)  # sample number -> row, -1 where there is none
        self._odd: dict[int, int] = {}  # the same for numbers that no table could hold
        self._count = 0
        self._rows = np.empty((0, 0))

    def __len__(self) -> int:
        return self._count

    def places(self, keys: np.ndarray) -> np.ndarray:
        """(B,) where the rows of these samples are, -1 for a sample that has none."""
        low, high = (keys.min(), keys.max()) if len(keys) else (0, -1)
        if self._odd or low < 0 or high >= LARGEST:
            known = self._odd or {key: p for key, p in enumerate(self._place.tolist()) if p >= 0}
            return np.array([known.get(key, -1) for key in keys.tolist()], np.int64)
        if high >= len(self._place):
            longer = np.full(2 * int(high) + 1, -1, np.int64)
            longer[: len(self._place)] = self._place
            self._place = longer
        return self._place[keys]

    def recall(self, places: np.ndarray) -> np.ndarray | None:
        """(B, m) rows at these places, or None unless every one of the samples is known.

        A start for only a part of a batch would split it into two calls of the kernel.
        """
        return self._rows[places] if len(places) and places.min() >= 0 else None

    def keep(self, keys: np.ndarray, places: np.ndarray, values: np.ndarray) -> None:
        """Remember `values` (B, m); of a sample that comes twice, the later row."""
        if not len(keys):
            return
        if places.min() < 0:
            self._make_room(np.unique(keys[places < 0]), values.shape[1])
            places = self.places(keys)
        self._rows[places] = values

    def _make_room(self, fresh: np.ndarray, width: int) -> None:
        places = np.arange(self._count, self._count + len(fresh))
        if self._odd or fresh.min() < 0 or fresh.max() >= LARGEST:
            if not self._odd:  # the first odd number: from now on all are looked up
                known = np.flatnonzero(self._place >= 0)
                self._odd = dict(zip(known.tolist(), self._place[known].tolist(), strict=True))
            self._odd.update(zip(fresh.tolist(), places.tolist(), strict=True))
        else:
            self._place[fresh] = places
        self._count += len(fresh)
        if self._count > len(self._rows):
            grown = np.zeros((2 * self._count, width))
            grown[: len(self._rows)] = self._rows.reshape(len(self._rows), width)
            self._rows = grown


class DeviceMemory:
    """Rows of numbers by sample number on a device, read and written without asking the host.

    There is a fixed number of lines, and a sample's is what its number leaves on division by it:
    any integers will do, and samples that share a line only start farther from their answer. A line
    that was never written is not finite.
    """

    def __init__(self) -> None:
        self.rows: Tensor | None = None

    def places(self, index: Any, size: int) -> Tensor:
        """(B,) lines of these samples, of which `size` are expected."""
        assert self.rows is not None  # `reserve` comes first
        index = torch.as_tensor(index)
        if tuple(index.shape) != (size,) or index.is_floating_point():
            index = torch.as_tensor(as_keys(index, size))  # which says what is wrong
        index = index.to(self.rows.device, torch.int64, non_blocking=True)
        return index.remainder(len(self.rows))

    def reserve(self, lines: int, width: int, device: torch.device) -> Tensor:
        """The lines, at least `lines` of them; those already written are kept."""
        old = self.rows
        if old is not None and old.device == device and len(old) >= lines:
            return old
        rows = torch.full((max(lines, 1), width), torch.nan, dtype=torch.float64, device=device)
        if old is not None and old.device == device:
            rows[: len(old)] = old
        self.rows = rows
        return rows

    def keep(self, places: Tensor, values: Tensor) -> None:
        """Remember `values` (B, m); which one of a sample that comes twice is not said."""
        assert self.rows is not None
        self.rows.index_copy_(0, places, values)

    def forget(self) -> None:
        """Drop what was kept, in place, for a captured graph knows where it is."""
        if self.rows is not None:
            self.rows.fill_(torch.nan)


def as_keys(index: Any, size: int) -> np.ndarray:
    """(B,) sample numbers, one for each row of the batch."""
    array = np.asarray(index.detach().cpu() if is_torch(index) else index)
    if array.shape != (size,):
        raise ShapeError(
            f"`index` must hold one sample number for each of the {size} rows of `costs`; "
            f"got shape {array.shape}."
        )
    if array.size and array.dtype.kind not in "iu":
        raise InputError(f"`index` must hold whole numbers; got dtype {array.dtype}.")
    return array.astype(np.int64, copy=False)
