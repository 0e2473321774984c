"""Maps mirrored and turned: other pictures of the same decision, with no need to draw them.

A map whose path runs from corner to corner can be mirrored along that diagonal, where start and
goal stay, or turned by half, where they change places and the path is walked the other way. An
edge costs what the cell it enters costs, so a turned path is dearer or cheaper by its ends alone,
which it shares with all others: what was optimal stays so.

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

from ..errors import InputError
from ..optimality import OptimalitySet
from ..problem import LinearProgram
from ..problems.structures import PathStructure
from .inputs import DeviceSplit

VIEWS = ("mirrored", "all")
"""Which views may be asked for: those that leave start and goal where they are, or also those in
which they change places."""

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

    def places(self, shape: tuple[int, int]) -> np.ndarray:
        """(P,) the place of each pixel, or cell, in the original of that shape."""
        moved = _moved(np.arange(shape[0] * shape[1]).reshape(shape), self.move)
        if moved.shape != shape:
            raise InputError(f"Only square pictures can be mirrored; got {shape[0]} x {shape[1]}.")
        return moved.ravel()


def views_of(problem: LinearProgram, kind: str = "all") -> list[View]:
    """The views of a problem on a grid, the unchanged one first; `kind` is one of `VIEWS`."""
    if kind not in VIEWS:
        raise InputError(f"`views` must be one of {', '.join(VIEWS)}; got {kind!r}.")
    graph = problem.structure
    if not isinstance(graph, PathStructure) or graph.grid_shape is None or graph.n_instances:
        raise InputError(
            "Only maps with paths from one place to another have views: a digit that is mirrored "
            f"or turned is no digit, or another one. Leave `views` out for {problem!r}."
        )
    either = (False, True)
    found = (_view(graph, move, kind == "all") for move in product(either, either, either))
    return [view for view in found if view is not None]


def _view(graph: PathStructure, move: Move, turned: bool) -> View | None:
    """The view in which cells move so, or None if the problem is then another one."""
    assert graph.grid_shape is not None  # as `views_of` has made sure
    moved = _moved(np.arange(graph.n_nodes).reshape(graph.grid_shape), move)
    if moved.shape != graph.grid_shape:
        return None
    origin = moved.ravel()
    ends = [int(graph.source), int(graph.target)]
    came = origin[ends].tolist()
    if came != ends and not (turned and came == ends[::-1]):
        return None
    tails, heads = origin[graph.tails], origin[graph.heads]
    costs = _edges(graph, tails, heads)
    decisions = costs if came == ends else _edges(graph, heads, tails)
    return None if costs is None or decisions is None else View(move, decisions, costs)


def _moved(grid: np.ndarray, move: Move) -> np.ndarray:
    transposed, upside_down, reversed_ = move
    grid = grid.T if transposed else grid
    return grid[:: -1 if upside_down else 1, :: -1 if reversed_ else 1]


def _edges(graph: PathStructure, tails: np.ndarray, heads: np.ndarray) -> np.ndarray | None:
    """The numbers of the edges between these cells, or None if some do not exist."""
    names = graph.tails * graph.n_nodes + graph.heads
    order = np.argsort(names)
    wanted = tails * graph.n_nodes + heads
    found = order[np.searchsorted(names, wanted, sorter=order).clip(max=len(order) - 1)]
    return found if np.array_equal(names[found], wanted) else None


def decisions_in(views: list[View], decisions: np.ndarray) -> np.ndarray:
    """(K N, n): decisions (N, n) in every view, line by line."""
    return np.ascontiguousarray(np.concatenate([decisions[:, view.decisions] for view in views]))


def sets_in(views: list[View], sets: OptimalitySet) -> OptimalitySet:
    """The sets of N decisions in every view, K N of them: what was read off a decision moves along
    with its edges."""
    result = sets[np.tile(np.arange(len(sets)), len(views))]
    result.decisions = decisions_in(views, sets.decisions)
    result.entry_state = decisions_in(views, sets.entry_state)
    return result


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
        _refuse_other_costs(split.costs, problem.structure)
        self.views, self.device = views, split.device
        self.n_samples = len(split)
        self.images = Pictures(split.images, views)
        self.decisions = Lines(split.decisions, [view.decisions for view in views])
        self.costs = Lines(split.costs, [view.costs for view in views])

    def __len__(self) -> int:
        return len(self.views) * self.n_samples


def _refuse_other_costs(costs: Tensor, graph: Any) -> None:
    """Costs must be those of entering cells, or a turned path would not be optimal."""
    entering = np.zeros(graph.n_nodes, np.int64)
    entering[graph.heads] = np.arange(len(graph.heads))
    other = costs[:, torch.from_numpy(entering[graph.heads]).to(costs.device)]
    if not torch.equal(costs, other):
        raise InputError(
            "Maps can be seen from other sides only if an edge costs what the cell it enters does; "
            "some cells here are entered at different costs. Leave `views` out."
        )
