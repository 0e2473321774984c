"""Pictures on a device: kept as bytes, made numbers a batch at a time.

Letters: B pictures, (H, W) pixels, C color channels, n cost entries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from revealed.datasets.dataset import Split
from revealed.errors import ShapeError


def as_contexts(
    images: Any, device: torch.device | str | None = None, dtype: torch.dtype = torch.float32
) -> Tensor:
    """(B, C, H, W) numbers from -1 to 1 of pictures (B, H, W, C) uint8, numpy or torch.

    Bytes travel to the device, numbers are made there. In memory the channels of a pixel stay
    together (torch's channels_last), which is how convolutions are fastest.
    """
    if isinstance(images, np.ndarray):
        images = torch.from_numpy(images if images.flags.writeable else images.copy())
    if images.ndim != 4 or images.dtype != torch.uint8:
        raise ShapeError(
            f"Pictures must be (B, H, W, C) uint8; got {tuple(images.shape)} {images.dtype}."
        )
    return images.to(device).permute(0, 3, 1, 2).to(dtype) * (1 / 127.5) - 1


@dataclass(frozen=True, eq=False)
class DeviceSplit:
    """A split of pictures whose arrays live on one device, ready for indexing by batch."""

    images: Tensor
    """(B, H, W, C) uint8; the models of `revealed_experiments.vision` take them as they are."""
    decisions: Tensor
    """(B, n)"""
    costs: Tensor
    """(B, n) the true ones, for judging a model."""

    @classmethod
    def of(
        cls, split: Split, device: torch.device | str, dtype: torch.dtype = torch.float32
    ) -> DeviceSplit:
        """Copy a split to a device; decisions and costs take the floating type `dtype`."""
        images, decisions, costs = (
            # Arrays that are mapped from a file cannot be written to, which torch insists on.
            torch.from_numpy(np.require(array, requirements=["C", "W"]))
            for array in (split.contexts, split.decisions, split.costs)
        )
        return cls(images.to(device), decisions.to(device, dtype), costs.to(device, dtype))

    @property
    def device(self) -> torch.device:
        return self.images.device

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: Any) -> DeviceSplit:
        """The samples at these places."""
        return DeviceSplit(self.images[index], self.decisions[index], self.costs[index])
