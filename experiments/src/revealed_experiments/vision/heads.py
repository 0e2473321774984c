"""The last steps of a network: from features to costs above 0, one for each edge.

Everything here is computed in float32 at least, also inside autocast: costs are compared with each
other, and half precision has no room for that.

Letters: B pictures, (r, c) cells of the grid, V = r c cells in all, E edges, n = E cost entries.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from revealed.errors import InputError
from revealed.problems.linear import LinearProgram
from revealed.problems.structures import MatchingStructure, PathStructure

FLOOR = 1e-6
"""Least cost; softplus alone ends at 0 where its argument is very negative."""


def positive(scores: Tensor) -> Tensor:
    """Costs above 0: log(1 + exp(score))."""
    scores = scores.float() if scores.dtype in (torch.float16, torch.bfloat16) else scores
    return functional.softplus(scores) + FLOOR


class ScoreConv(nn.Conv2d):
    """A convolution in the precision of its weights, also inside autocast."""

    def forward(self, input: Tensor) -> Tensor:
        with torch.autocast(input.device.type, enabled=False):
            return super().forward(input.to(self.weight.dtype))


class ScoreLinear(nn.Linear):
    """A linear map in the precision of its weights, also inside autocast."""

    def forward(self, input: Tensor) -> Tensor:
        with torch.autocast(input.device.type, enabled=False):
            return super().forward(input.to(self.weight.dtype))


class VertexToEdge(nn.Module):
    """Costs of edges (B, E) from values of cells (B, V): a x[tail] + b x[head].

    By default what the problem's data sets mean: on paths an edge costs what the cell it enters
    does (a = 0, b = 1), on matchings the number read along it (a = 10, b = 1).
    """

    tails: Tensor
    heads: Tensor
    leaving: Tensor
    entering: Tensor

    def __init__(self, problem: LinearProgram, shares: tuple[float, float] | None = None) -> None:
        super().__init__()
        graph = problem.structure
        if getattr(graph, "grid_shape", None) is None:
            raise InputError(
                "Cells can be mapped to edges on a grid only: use `grid_shortest_path` or "
                f"`grid_matching`; got {problem!r}."
            )
        self.grid_shape: tuple[int, int] = graph.grid_shape
        self.shares = _usual_shares(graph) if shares is None else shares
        n_cells = self.grid_shape[0] * self.grid_shape[1]
        for name, other, ends in (
            ("tails", "leaving", graph.tails),
            ("heads", "entering", graph.heads),
        ):
            table = _edges_at(ends, n_cells)
            self.register_buffer(name, torch.from_numpy(ends.copy()), persistent=False)
            self.register_buffer(other, torch.from_numpy(table), persistent=False)

    def forward(self, cells: Tensor) -> Tensor:
        a, b = self.shares
        if a == 0:
            costs = _at_ends(cells, self.heads, self.entering)
            return costs if b == 1 else b * costs
        return a * _at_ends(cells, self.tails, self.leaving) + b * _at_ends(
            cells, self.heads, self.entering
        )

    def extra_repr(self) -> str:
        a, b = self.shares
        return f"{len(self.tails)} edges, {a:g} tail + {b:g} head"


class GridPool(nn.Module):
    """(B, 1, H, W) -> (B, V): the largest value over each cell of a grid."""

    def __init__(self, grid_shape: tuple[int, int]) -> None:
        super().__init__()
        self.grid_shape = grid_shape

    def forward(self, x: Tensor) -> Tensor:
        rows, cols = self.grid_shape
        high, wide = x.shape[2] // rows, x.shape[3] // cols
        if x.shape[2:] == (high * rows, wide * cols):
            # Squares that do not overlap: the same values, and gradients without a race.
            return x.reshape(len(x), rows, high, cols, wide).amax(dim=(2, 4)).flatten(1)
        return functional.adaptive_max_pool2d(x, self.grid_shape).flatten(1)

    def extra_repr(self) -> str:
        return f"{self.grid_shape[0]} x {self.grid_shape[1]}"


def _usual_shares(graph: Any) -> tuple[float, float]:
    if isinstance(graph, PathStructure):
        return 0.0, 1.0
    if isinstance(graph, MatchingStructure):
        return 10.0, 1.0
    raise InputError(f"Give `shares` (tail, head) for edges of a {type(graph).__name__}.")


def _edges_at(ends: np.ndarray, n_cells: int) -> np.ndarray:
    """(V, k) the edges that have each cell for an end; E, one beyond the last, fills the rest."""
    order = np.argsort(ends, kind="stable")
    place = np.arange(len(ends)) - np.searchsorted(ends[order], ends[order])
    table = np.full((n_cells, place.max() + 1), len(ends))
    table[ends[order], place] = order
    return table


def _at_ends(cells: Tensor, ends: Tensor, table: Tensor) -> Tensor:
    return _AtEnds.apply(cells, ends, table)  # type: ignore[return-value]


class _AtEnds(torch.autograd.Function):
    """cells[:, ends], with a gradient that collects instead of scattering.

    Torch's own adds to the cells in an order that a GPU does not fix, so two equal runs would part
    in the last digit. Here each cell sums the few edges it is an end of, always in the same order.
    """

    @staticmethod
    def forward(cells: Tensor, ends: Tensor, table: Tensor) -> Tensor:
        return cells[:, ends]

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        ctx.save_for_backward(inputs[2])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        (table,) = ctx.saved_tensors
        return functional.pad(grads[0], (0, 1))[:, table].sum(dim=2), None, None
