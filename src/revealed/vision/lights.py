"""Pictures in another light: what they show stays what it is, and so does the decision.

Letters: B pictures, (H, W) pixels, C colour channels, L lights.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from .inputs import as_contexts

COUNT = 1024
"""Lights to draw from: more than a picture meets in a training."""
TINT = 0.4
"""Share of the change by which colours differ among themselves."""


class Lights:
    """Changes of contrast and brightness by factors of up to exp(`most`) or down to exp(-`most`),
    and of the colours among themselves by a part of it; number 0 is no change.

    Always the same ones: numbers tell which a picture is seen in, on every device.
    """

    def __init__(self, most: float, channels: int, device: torch.device) -> None:
        change = np.random.default_rng(0).uniform(-most, most, (COUNT, 2 + channels))
        change[0] = 0.0
        contrast, brightness, tint = change[:, :1], change[:, 1:2], TINT * change[:, 2:]
        self._contrast, self._gain = (  # (L, 1, 1, 1) and (L, C, 1, 1)
            torch.from_numpy(np.exp(part)[:, :, None, None].astype(np.float32)).to(device)
            for part in (contrast, brightness + tint)
        )

    def __len__(self) -> int:
        return COUNT

    def apply(self, images: Tensor, which: Tensor) -> Tensor:
        """Pictures (B, H, W, C) uint8, each in the light of its number (B,), as numbers (B, C, H,
        W) like those of `as_contexts`.

        They may leave -1 .. 1: bytes would cut off what is too bright, and with it what a snowy map
        shows.
        """
        seen = as_contexts(images)
        mean = seen.mean(dim=(1, 2, 3), keepdim=True)
        return self._gain[which] * (self._contrast[which] * (seen - mean) + mean + 1) - 1
