"""Where the nodes of a plan stand in a drawing."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...problems.structures import MatchingStructure, PathStructure

NAMED = 40
"""Nodes up to which their numbers are written into them."""
WIDEST = 400
"""Edges up to which two sides of a matching are drawn; beyond that a drawing is unreadable."""


def drawing_of(graph: Any) -> dict[str, Any] | None:
    """A grid, a graph or two sides to draw decisions on; None where a plan has none of these."""
    tails, heads = getattr(graph, "tails", None), getattr(graph, "heads", None)
    if tails is not None and heads is not None:
        grid = getattr(graph, "grid_shape", None)
        n_nodes = int(max(tails.max(), heads.max())) + 1
        places = _cells(grid) if grid is not None else _circle(n_nodes)
        names = [str(k) for k in range(n_nodes)] if grid is None and n_nodes <= NAMED else None
    elif isinstance(graph, MatchingStructure) and len(graph.left) <= WIDEST:
        tails, heads = graph.left, graph.right + graph.n_left
        places = _two_sides(graph.n_left, graph.n_right)
        names = [str(k + 1) for side in (graph.n_left, graph.n_right) for k in range(side)]
    else:
        return None
    path = isinstance(graph, PathStructure)
    return {
        "tails": tails.tolist(),
        "heads": heads.tolist(),
        "directed": path,
        "places": places,
        "ends": [int(graph.source), int(graph.target)] if path else [],
        "names": names,
    }


def _cells(grid: tuple[int, int]) -> list[list[float]]:
    return [[k % grid[1], k // grid[1]] for k in range(grid[0] * grid[1])]


def _circle(n_nodes: int) -> list[list[float]]:
    turn = 2 * np.pi * np.arange(n_nodes) / max(n_nodes, 1)
    radius = max(n_nodes / 6, 1.0)
    return np.round(np.column_stack([np.cos(turn), np.sin(turn)]) * radius, 3).tolist()


def _two_sides(left: int, right: int) -> list[list[float]]:
    high = max(left, right) - 1
    return [
        [x, round(high * (k + 0.5) / size, 3)]
        for x, size in ((0.0, left), (0.8 * max(high, 2), right))
        for k in range(size)
    ]
