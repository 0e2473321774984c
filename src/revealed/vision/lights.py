"""Pictures in another light: what they show stays what it is, and so does the decision.

Letters: B pictures, (H, W) pixels, C colour channels, L lights.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

COUNT = 1024
"""Lights to draw from: more than a picture meets in a training."""
TINT = 0.4
"""Share of the change by which colours differ among themselves."""
GREY = 127.5


class Lights:
    """Changes of contrast and brightness by factors of up to exp(`most`) or down to exp(-`most`),
    and of the colours among themselves by a part of it; number 0 is no change.

    Always the same ones: numbers tell which a picture is seen in, on every device.
    """

    def __init__(self, most: float, channels: int, device: torch.device) -> None:
        change = np.random.default_rng(0).uniform(-most, most, (COUNT, 2 + channels))
        change[0] = 0.0
        contrast, brightness, tint = change[:, :1], change[:, 1:2], TINT * change[:, 2:]
        gain = np.exp(brightness + tint)
        factor, offset = gain * np.exp(contrast), gain * GREY * (1 - np.exp(contrast))
        table = np.stack([factor, offset])[:, :, None, None, :].astype(np.float32)
        self._factor, self._offset = torch.from_numpy(table).to(device)  # (L, 1, 1, C) each

    def __len__(self) -> int:
        return COUNT

    def apply(self, images: Tensor, which: Tensor) -> Tensor:
        """Pictures (B, H, W, C) uint8, each in the light of its number (B,), as bytes again: what
        is too bright or too dark for them is cut off."""
        seen = images.float() * self._factor[which] + self._offset[which]
        return seen.round_().clamp_(0, 255).to(torch.uint8)
