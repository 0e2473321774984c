"""A network that looks at a picture from all sides: the mean of the costs that it sees.

    seen = Averaged(net, data.problem, views="all", shift=1)
    costs = seen(images)         # as `net(images)`, of 4 views in 9 places on a map

What a network makes of a cell depends a little on how the picture lies. It has learned from all of
these pictures as from one (`train(..., views="all", shift=1)`), so what is left of the differences
is error, and much of it goes in the mean: as many times the work, and nothing to be trained.

Letters: B pictures, (H, W) pixels, C color channels, n cost entries, K views.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from revealed.errors import InputError
from revealed.problems.linear import LinearProgram

from .shifts import Shifts
from .views import Pictures, views_of


class Averaged(nn.Module):
    """The mean cost of each edge over the views of a picture, each in all of its shifts.

    `views` and `shift` are those of `TrainSettings`; the network should have learned with them.
    """

    def __init__(
        self, model: nn.Module, problem: LinearProgram, views: str | None = None, shift: int = 0
    ) -> None:
        super().__init__()
        if shift < 0:
            raise InputError(f"`shift` must be at least 0; got {shift}.")
        self.model = model
        self._views = [] if views is None else views_of(problem, views)
        self._shift = shift
        # In view k edge j costs what edge costs[j] does as the picture is: back the other way.
        self._back = [torch.from_numpy(np.argsort(view.costs)) for view in self._views]

    def forward(self, images: Tensor) -> Tensor:
        """(B, n) costs of pictures (B, H, W, C) uint8 or (B, C, H, W) floating."""
        if images.ndim == 4 and images.is_floating_point():
            images = images.movedim(1, 3)  # moved and turned as bytes are, and put back below
        if not self._views:
            return self._in_all_places(images)
        pictures = Pictures(images, self._views)
        each = torch.arange(len(images), device=images.device)
        seen = [
            self._in_all_places(pictures[each + k * len(images)])[:, back.to(images.device)]
            for k, back in enumerate(self._back)
        ]
        return torch.stack(seen).mean(dim=0)

    def _in_all_places(self, images: Tensor) -> Tensor:
        shifts, floating = Shifts(self._shift, images.device), images.is_floating_point()
        seen = []
        for k in range(len(shifts)):
            which = torch.full((len(images),), k, device=images.device)
            moved = shifts.apply(images, which)
            seen.append(self.model(moved.movedim(3, 1) if floating else moved))
        return torch.stack(seen).mean(dim=0)

    def extra_repr(self) -> str:
        return f"{max(1, len(self._views))} views, up to {self._shift} pixels aside"
