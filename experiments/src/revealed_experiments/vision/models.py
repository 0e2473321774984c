"""Networks from pictures to costs, by name, each built for a problem.

    net = build_model("truncated", data.problem)
    costs = net(images)          # (B, H, W, C) uint8 or (B, C, H, W) floating -> (B, n), above 0

Letters: B pictures, (H, W) pixels, C color channels, n cost entries.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor, nn

from revealed._common.checks import positive_int
from revealed.errors import InputError, ShapeError
from revealed.problems.linear import LinearProgram

from .heads import GridPool, ScoreConv, VertexToEdge, positive
from .inputs import as_contexts
from .resnet import ResNet18, ResNet18Start, initialize

EDGE_UNIT = 1.0
"""What the costs of edges are counted in where they come from cells: a network then starts with
costs of the size of the usual margin, 1, from where it grows as decisions ask for it. Costs that
explain nothing are the nearer to the set the smaller they are, so larger ones would shrink first,
and with a large step end at 0, where nothing is learned."""


class ImageModel(nn.Module):
    """Pictures -> scores -> costs above 0, of edges at once or of cells first.

    `body` maps (B, C, H, W) to scores (B, n), or (B, V) where `spread` maps the costs of cells on
    to those of edges.
    """

    def __init__(
        self,
        body: nn.Module,
        channels: int,
        spread: VertexToEdge | None = None,
        unit: float = 1.0,
    ) -> None:
        super().__init__()
        self.body = body
        self.channels = channels
        self.spread = spread
        self.unit = unit

    def forward(self, images: Tensor) -> Tensor:
        costs = self.cell_costs(images)
        return costs if self.spread is None else self.spread(costs)

    def cell_costs(self, images: Tensor) -> Tensor:
        """What `spread` takes: costs of cells (B, V); without it those of edges (B, n)."""
        x = as_contexts(images, dtype=self.dtype) if images.dtype == torch.uint8 else images
        if x.ndim != 4 or x.shape[1] != self.channels:
            raise ShapeError(
                f"Pictures must be (B, H, W, {self.channels}) uint8 or (B, {self.channels}, H, W) "
                f"floating; got {tuple(images.shape)} {images.dtype}."
            )
        return self.unit * positive(self.body(x))

    @property
    def dtype(self) -> torch.dtype:
        return next(self.parameters()).dtype


def _resnet18(problem: LinearProgram, channels: int) -> ImageModel:
    return ImageModel(ResNet18(problem.n_variables, channels), channels)


def _resnet18_cells(problem: LinearProgram, channels: int) -> ImageModel:
    spread = VertexToEdge(problem)
    rows, cols = spread.grid_shape
    return _with_cells(ResNet18(rows * cols, channels), channels, spread)


def _truncated(problem: LinearProgram, channels: int) -> ImageModel:
    return _by_cells(problem, channels, ResNet18Start(channels), ResNet18Start.width)


def _small(problem: LinearProgram, channels: int) -> ImageModel:
    widths = (channels, 16, 24, 32, 32)
    layers: list[nn.Module] = []
    for k, (before, after) in enumerate(pairwise(widths)):
        kernel, stride = (5, 2) if k == 0 else (3, 2 if k == 2 else 1)
        layers += [
            nn.Conv2d(before, after, kernel, stride, padding=kernel // 2, bias=False),
            nn.BatchNorm2d(after),
            nn.ReLU(inplace=True),
        ]
    features = nn.Sequential(*layers)
    initialize(features)
    return _by_cells(problem, channels, features, widths[-1])


def _by_cells(problem: LinearProgram, channels: int, features: nn.Module, width: int) -> ImageModel:
    """Features -> one score a pixel by a 1 x 1 convolution -> the largest in each cell."""
    spread = VertexToEdge(problem)
    body = nn.Sequential(features, ScoreConv(width, 1, 1), GridPool(spread.grid_shape))
    return _with_cells(body, channels, spread)


def _with_cells(body: nn.Module, channels: int, spread: VertexToEdge) -> ImageModel:
    return ImageModel(body, channels, spread, EDGE_UNIT / sum(spread.shares))


MODELS: dict[str, Callable[[LinearProgram, int], ImageModel]] = {
    "resnet18": _resnet18,
    "resnet18-cells": _resnet18_cells,
    "truncated": _truncated,
    "small": _small,
}
"""The networks by name:

"resnet18"         the paper's: a whole ResNet-18 with one output for each edge
"resnet18-cells"   a whole ResNet-18 with one output for each cell, mapped to edges
"truncated"        ResNet-18 up to its first layer, one score for each cell, mapped to edges
"small"            four convolutions, for quick runs on a CPU, mapped to edges likewise
"""


def build_model(
    name: str, problem: LinearProgram, *, channels: int = 3, seed: int = 0
) -> ImageModel:
    """The network called `name` for a problem, its first weights drawn from `seed`.

    The caller's own random numbers are left undisturbed.
    """
    if name not in MODELS:
        raise InputError(f"`name` must be one of {', '.join(MODELS)}; got {name!r}.")
    channels = positive_int(channels, "channels")
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return MODELS[name](problem, channels)
