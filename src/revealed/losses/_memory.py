"""Multipliers of each sample's last projection, kept from one epoch to the next."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arrays import is_torch
from ..errors import InputError, ShapeError


class Memory:
    """Rows of numbers by sample number: any integers, so a hash of a sample will do."""

    def __init__(self) -> None:
        self._slot: dict[int, int] = {}
        self._rows = np.empty((0, 0))

    def __len__(self) -> int:
        return len(self._slot)

    def recall(self, keys: list[int]) -> np.ndarray | None:
        """(B, m) rows of these samples, or None unless every one of them is known.

        A start for only a part of a batch would split it into two calls of the kernel.
        """
        slots = [self._slot.get(key, -1) for key in keys]
        return None if not slots or min(slots) < 0 else self._rows[slots]

    def keep(self, keys: list[int], rows: np.ndarray) -> None:
        """Remember `rows` (B, m); of a sample that comes twice, the later row."""
        slots = [self._slot.setdefault(key, len(self._slot)) for key in keys]
        if len(self._slot) > len(self._rows):
            grown = np.zeros((2 * len(self._slot), rows.shape[1]))
            grown[: len(self._rows)] = self._rows.reshape(len(self._rows), rows.shape[1])
            self._rows = grown
        self._rows[slots] = rows


def as_keys(index: Any, size: int) -> list[int]:
    """Sample numbers as plain integers, one for each row of the batch."""
    array = np.asarray(index.detach().cpu() if is_torch(index) else index)
    if array.shape != (size,):
        raise ShapeError(
            f"`index` must hold one sample number for each of the {size} rows of `costs`; "
            f"got shape {array.shape}."
        )
    if array.size and array.dtype.kind not in "iu":
        raise InputError(f"`index` must hold whole numbers; got dtype {array.dtype}.")
    return array.tolist()
