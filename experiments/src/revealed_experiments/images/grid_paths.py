"""Paths as cells of a grid and as edges of its graph: from one to the other and back.

The convention throughout: an edge costs what it costs to enter the cell it leads to. The start
cell is never entered, so its own weight is in no path's cost; it is the same for all paths and
changes no decision. Figures published for cells (start and end both counted) are larger by it.

Letters: B maps, (r, c) rows and columns of cells, E edges.
"""

from __future__ import annotations

import numpy as np

from revealed.errors import InputError
from revealed.problems.linear import LinearProgram


def edge_costs(problem: LinearProgram, weights: np.ndarray) -> np.ndarray:
    """(B, E): the weight of the cell each edge enters, from the weights (B, r, c) of cells."""
    graph = problem.structure
    return weights.reshape(-1, graph.n_nodes)[:, graph.heads]


def cells_of_paths(problem: LinearProgram, decisions: np.ndarray) -> np.ndarray:
    """(B, r, c) uint8: 1 on the cells of each path, both ends included."""
    graph = problem.structure
    cells = np.zeros((len(decisions), graph.n_nodes), np.uint8)
    cells[:, graph.source] = 1
    sample, edge = np.nonzero(decisions)
    cells[sample, graph.heads[edge]] = 1
    return cells.reshape(-1, *graph.grid_shape)


def paths_of_cells(problem: LinearProgram, cells: np.ndarray, name: str = "paths") -> np.ndarray:
    """(B, E) 0/1 decisions whose paths go through exactly these cells (B, r, c).

    A shortest path never comes near itself: if it touched a cell it had passed, a step across
    would be shorter. So its next cell is always the only one left beside it, and the order of the
    cells is no matter of choice. Cells of any other kind are refused, with the map's number.
    """
    graph = problem.structure
    left = cells.reshape(-1, graph.n_nodes).astype(bool)
    _refuse(~(left[:, graph.source] & left[:, graph.target]), name, "lacks an end of the path")
    neighbor, edge = _neighbors(problem)
    decisions = np.zeros((len(cells), len(graph.heads)))
    at = np.full(len(cells), graph.source)
    line = np.arange(len(cells))
    left[:, graph.source] = False
    while (walking := line[at != graph.target]).size:
        beside = neighbor[at[walking]]
        # The extra node at the end stands for a neighbor that does not exist.
        choices = np.pad(left[walking], ((0, 0), (0, 1)))[np.arange(len(walking))[:, None], beside]
        _refuse_at(walking[choices.sum(axis=1) == 0], name, "breaks off before the end")
        _refuse_at(walking[choices.sum(axis=1) > 1], name, "touches itself, so is no shortest path")
        step = choices.argmax(axis=1)
        decisions[walking, edge[at[walking], step]] = 1.0
        at[walking] = beside[np.arange(len(walking)), step]
        left[walking, at[walking]] = False
    _refuse(np.any(left, axis=1), name, "has cells beside the path")
    return decisions


def _neighbors(problem: LinearProgram) -> tuple[np.ndarray, np.ndarray]:
    """(nodes, 8) where each edge of a cell leads, n_nodes where there is none, and that edge."""
    graph = problem.structure
    order = np.argsort(graph.tails, kind="stable")
    tails = graph.tails[order]
    place = np.arange(len(tails)) - np.searchsorted(tails, tails)
    neighbor = np.full((graph.n_nodes, place.max() + 1), graph.n_nodes)
    edge = np.zeros_like(neighbor)
    neighbor[tails, place], edge[tails, place] = graph.heads[order], order
    return neighbor, edge


def _refuse(bad: np.ndarray, name: str, fault: str) -> None:
    _refuse_at(np.flatnonzero(bad), name, fault)


def _refuse_at(bad: np.ndarray, name: str, fault: str) -> None:
    if bad.size:
        raise InputError(
            f"Each map of `{name}` must mark the cells of one path from the top left to the bottom "
            f"right; map {bad[0]} {fault} ({bad.size} such maps)."
        )
