"""Maps mirrored and turned, boards rearranged: other pictures of the same decision, with no need
to draw them.

A map whose path runs from corner to corner can be mirrored along that diagonal, where start and
goal stay, or turned by half, where they change places and the path is walked the other way. An
edge costs what the cell it enters costs, so a turned path costs more or less by its ends alone,
which it shares with all others: what was optimal stays so.

On a board rows can become columns, each digit upright as it was: what was read from left to right
is then read from top to bottom. Any other rearrangement would read some numbers backwards.

Which views a problem has is read off its graph. Line k N + i of a split is its sample i in view k;
view 0 is the picture as it is.

Letters: N samples, K views, B lines of a batch, P pixels of a picture, n cost entries (edges).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor

from revealed.errors import InputError
from revealed.optimality.sets import OptimalitySet
from revealed.problems.linear import LinearProgram
from revealed.problems.structures import MatchingStructure, PathStructure

from .heads import VertexToEdge
from .inputs import DeviceSplit

VIEWS = ("mirrored", "all")
"""Which views may be asked for: those that leave start and goal where they are, or also those in
which they change places. On boards there is no difference."""

SAME = 1e-5
"""Costs that differ by no more, relative to the largest, are equal: those of pictures may be kept
in float32."""

Move = tuple[bool, bool, bool]
"""Whether rows become columns; then whether up becomes down, and left right."""


@dataclass(frozen=True, eq=False)
class View:
    """A symmetry of a grid with its path: from where in the original each thing comes."""

    move: Move
    decisions: np.ndarray
    """(n,) the edge that is walked when this one is."""
    costs: np.ndarray
    """(n,) the edge whose cost this one has: between the same cells, and entering the same one."""
    upright: tuple[int, int] | None = None
    """Cells of a grid that are moved without being turned themselves; None turns the picture."""

    def places(self, shape: tuple[int, int]) -> np.ndarray:
        """(P,) the place of each pixel in the original of that shape."""
        pixels = np.arange(shape[0] * shape[1]).reshape(shape)
        if self.upright is None:
            moved = _moved(pixels, self.move)
        else:
            moved = _with_cells_moved(pixels, self.upright, self.move)
        if moved.shape != shape:
            raise InputError(f"Only square pictures can be mirrored; got {shape[0]} x {shape[1]}.")
        return moved.ravel()


def views_of(problem: LinearProgram, kind: str = "all") -> list[View]:
    """The views of a problem on a grid, the unchanged one first; `kind` is one of `VIEWS`."""
    if kind not in VIEWS:
        raise InputError(f"`views` must be one of {', '.join(VIEWS)}; got {kind!r}.")
    graph, either = problem.structure, (False, True)
    if getattr(graph, "grid_shape", None) is None or graph.n_instances:
        raise InputError(
            "Only grids have views: maps with paths from one place to another, and boards. Leave "
            f"`views` out for {problem!r}."
        )
    moves = product(either, either, either)
    if isinstance(graph, MatchingStructure):
        found = (_view_of_board(graph, move) for move in moves)
    else:
        found = (_view_of_map(graph, move, kind == "all") for move in moves)
    return [view for view in found if view is not None]


def _view_of_map(graph: PathStructure, move: Move, turned: bool) -> View | None:
    """The view in which cells move so, or None if the problem is then another one."""
    origin = _origin(graph, move)
    if origin is None:
        return None
    ends = [int(graph.source), int(graph.target)]
    came = origin[ends].tolist()
    if came != ends and not (turned and came == ends[::-1]):
        return None
    tails, heads = origin[graph.tails], origin[graph.heads]
    costs = _edges(graph, tails, heads)
    decisions = costs if came == ends else _edges(graph, heads, tails)
    return None if costs is None or decisions is None else View(move, decisions, costs)


def _view_of_board(graph: MatchingStructure, move: Move) -> View | None:
    """The same of a board; where an edge would be read backwards there is none."""
    origin = _origin(graph, move)
    edges = None if origin is None else _edges(graph, origin[graph.tails], origin[graph.heads])
    return None if edges is None else View(move, edges, edges, upright=graph.grid_shape)


def _origin(graph: Any, move: Move) -> np.ndarray | None:
    """(V,) where each cell comes from, or None if the grid is then another one."""
    rows, cols = graph.grid_shape
    moved = _moved(np.arange(rows * cols).reshape(rows, cols), move)
    return moved.ravel() if moved.shape == graph.grid_shape else None


def _moved(grid: np.ndarray, move: Move) -> np.ndarray:
    transposed, upside_down, reversed_ = move
    grid = grid.swapaxes(0, 1) if transposed else grid
    return grid[:: -1 if upside_down else 1, :: -1 if reversed_ else 1]


def _with_cells_moved(grid: np.ndarray, cells: tuple[int, int], move: Move) -> np.ndarray:
    rows, cols = cells
    height, width = grid.shape[0] // rows, grid.shape[1] // cols
    if grid.shape != (height * rows, width * cols):
        raise InputError(
            f"A picture of {rows} x {cols} cells must be whole cells high and wide to be "
            f"rearranged; got {grid.shape[0]} x {grid.shape[1]} pixels."
        )
    inside = grid.reshape(rows, height, cols, width).swapaxes(1, 2)
    moved = _moved(inside, move)
    return moved.swapaxes(1, 2).reshape(moved.shape[0] * height, moved.shape[1] * width)


def _edges(graph: Any, tails: np.ndarray, heads: np.ndarray) -> np.ndarray | None:
    """The numbers of the edges between these cells, or None if some do not exist."""
    rows, cols = graph.grid_shape
    names = graph.tails * rows * cols + graph.heads
    order = np.argsort(names)
    wanted = tails * rows * cols + heads
    found = order[np.searchsorted(names, wanted, sorter=order).clip(max=len(order) - 1)]
    return found if np.array_equal(names[found], wanted) else None


def decisions_in(views: list[View], decisions: np.ndarray) -> np.ndarray:
    """(K N, n): decisions (N, n) in every view, line by line."""
    return np.ascontiguousarray(np.concatenate([decisions[:, view.decisions] for view in views]))


def sets_in(views: list[View], sets: OptimalitySet) -> OptimalitySet:
    """The sets of N decisions in every view, K N of them: what was read off a decision moves along
    with its edges."""
    result = sets[np.tile(np.arange(len(sets)), len(views))]
    states = decisions_in(views, sets.entry_state)
    return result.as_plain(result.rows, decisions_in(views, sets.decisions), states)


# --- on a device ---------------------------------------------------------------------------------


class Lines:
    """A table (N, P, ...) in every view; the lines that are asked for are gathered, no others."""

    def __init__(self, table: Tensor, places: list[np.ndarray]) -> None:
        self._table = table
        self._places = torch.from_numpy(np.stack(places)).to(table.device)

    def __getitem__(self, index: Tensor) -> Tensor:
        """(B, P, ...) the lines of these numbers (B,), which stay on their device."""
        size = len(self._table)
        view, sample = index.div(size, rounding_mode="floor"), index.remainder(size)
        return self._table[sample[:, None], self._places[view]]


class Pictures(Lines):
    """Pictures (N, H, W, C) in every view."""

    def __init__(self, images: Tensor, views: list[View]) -> None:
        self._shape = images.shape[1:]
        shape = int(self._shape[0]), int(self._shape[1])
        super().__init__(images.flatten(1, 2), [view.places(shape) for view in views])

    def __getitem__(self, index: Tensor) -> Tensor:
        return super().__getitem__(index).reshape(len(index), *self._shape)


class ViewedSplit:
    """A split in every view, as `DeviceSplit` is without; nothing is copied."""

    def __init__(self, split: DeviceSplit, problem: LinearProgram, kind: str = "all") -> None:
        views = views_of(problem, kind)
        _refuse_other_costs(split.costs, problem)
        self.views, self.device = views, split.device
        self.n_samples = len(split)
        self.images = Pictures(split.images, views)
        self.decisions = Lines(split.decisions, [view.decisions for view in views])
        self.costs = Lines(split.costs, [view.costs for view in views])

    def __len__(self) -> int:
        return len(self.views) * self.n_samples


def _refuse_other_costs(costs: Tensor, problem: LinearProgram) -> None:
    """Costs must follow from cells by one rule for all edges, or the optimum may not stay one."""
    graph, costs = problem.structure, costs.double()
    if isinstance(graph, MatchingStructure):
        explained, what = _read_along_edges(costs, problem), "are no numbers read along them"
    else:
        entering = np.zeros(graph.n_nodes, np.int64)
        entering[graph.heads] = np.arange(len(graph.heads))
        explained = costs[:, torch.from_numpy(entering[graph.heads]).to(costs.device)]
        what = "are not those of the cells that they enter"
    if not torch.allclose(explained, costs, rtol=0.0, atol=SAME * float(costs.abs().amax())):
        raise InputError(
            "Pictures can be rearranged only if costs of edges follow from cells; some here "
            f"{what}. Leave `views` out."
        )


def _read_along_edges(costs: Tensor, problem: LinearProgram) -> Tensor:
    """The nearest costs that are 10 times a value of one cell plus that of the next."""
    spread = VertexToEdge(problem).to(costs.device)
    values = torch.eye(len(spread.leaving), dtype=costs.dtype, device=costs.device)
    rule = spread(values)  # (V, n): what each cell adds to each edge
    return costs @ torch.linalg.pinv(rule) @ rule
