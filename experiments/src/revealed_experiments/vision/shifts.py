"""Pictures moved by a few pixels: what they show stays what it is, and so does the decision.

Letters: B pictures, (H, W) pixels, C color channels.
"""

from __future__ import annotations

import torch
from torch import Tensor


class Shifts:
    """All moves by up to `most` pixels up or down and to either side; number 0 is no move."""

    def __init__(self, most: int, device: torch.device) -> None:
        span = sorted(range(-most, most + 1), key=abs)
        moves = [(down, aside) for down in span for aside in span]
        self._moves = torch.tensor(moves, device=device)

    def __len__(self) -> int:
        return len(self._moves)

    def apply(self, images: Tensor, which: Tensor) -> Tensor:
        """Pictures (B, H, W, C), each by the move of its number (B,); edges are continued."""
        height, width = images.shape[1:3]
        down, aside = self._moves[which].unbind(1)
        rows = _from(down, height)[:, :, None]
        columns = _from(aside, width)[:, None, :]
        each = torch.arange(len(images), device=images.device)[:, None, None]
        return images[each, rows, columns]


def _from(move: Tensor, size: int) -> Tensor:
    """(B, size): from where each line of pixels comes."""
    return (torch.arange(size, device=move.device) - move[:, None]).clamp(0, size - 1)
