"""Costs and decisions from elsewhere, in the order of our edges.

A vector of edge costs does not say which edge each number belongs to, so the same vector in another
order is taken without a word. These functions give the permutation, and refuse lists of edges that
are not those of the problem.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._common.checks import positive_int
from ...errors import InputError, ShapeError
from .paths import grid_shortest_path


def edge_order(problem: Any, edges: Any) -> np.ndarray:
    """(E,) positions in `edges`, a list of (tail, head), of the edges of a path problem.

        order = rv.problems.edge_order(problem, their_edges)
        ours = theirs[:, order]                       # costs or decisions, (B, E)

    Parameters
    ----------
    problem : LinearProgram
        A path problem, whose columns are edges.
    edges : (E, 2) array
        The same edges, (tail, head), in another order.

    Returns
    -------
    (E,) int64 array

    Raises
    ------
    InputError
        If `problem` has no edges, or an edge of it is missing from `edges` or occurs twice.
    ShapeError
        If `edges` are not as many as those of the problem.
    """
    tails = getattr(problem.structure, "tails", None)
    if tails is None:
        raise InputError(
            f"`problem` must be a path problem, whose columns are edges; got {problem!r}."
        )
    own = np.stack([np.asarray(tails), np.asarray(problem.structure.heads)], axis=1)
    given = np.asarray(edges)
    if given.shape != own.shape:
        raise ShapeError(
            f"`edges` must list the {len(own)} edges of the problem as (tail, head); got shape "
            f"{given.shape}."
        )
    place = {(int(a), int(b)): k for k, (a, b) in enumerate(given)}
    missing = [(int(a), int(b)) for a, b in own if (int(a), int(b)) not in place]
    if missing or len(place) < len(given):
        what = f"edge {missing[0]} is not in `edges`" if missing else "an edge occurs twice"
        raise InputError(f"`edges` must be the edges of the problem, each once: {what}.")
    return np.array([place[int(a), int(b)] for a, b in own], np.int64)


def pyepo_edges(rows: int, cols: int) -> np.ndarray:
    """(E, 2): the edges of PyEPO's `shortestPathModel((rows, cols))` in its order: row by row,
    first those to the right, then those down.

    Parameters
    ----------
    rows, cols : int
        Size of the grid.

    Returns
    -------
    (E, 2) int64 array
        (tail, head) of each edge.
    """
    rows, cols = positive_int(rows, "rows"), positive_int(cols, "cols")
    found = []
    for r in range(rows):
        first = r * cols
        found += [(first + c, first + c + 1) for c in range(cols - 1)]
        if r < rows - 1:
            found += [(first + c, first + c + cols) for c in range(cols)]
    return np.array(found, np.int64).reshape(-1, 2)


def pyepo_edge_order(rows: int, cols: int) -> np.ndarray:
    """(E,) the permutation from PyEPO's grid edges to those of
    `grid_shortest_path(rows, cols, directed="right-down")`.

        order = rv.problems.pyepo_edge_order(5, 5)
        ours = theirs[:, order]                       # costs or decisions, (B, 40)
        theirs = ours[:, np.argsort(order)]

    Parameters
    ----------
    rows, cols : int
        Size of the grid.

    Returns
    -------
    (E,) int64 array
    """
    return edge_order(
        grid_shortest_path(rows, cols, directed="right-down"), pyepo_edges(rows, cols)
    )


def in_pyepo_order(problem: Any, decisions: np.ndarray) -> bool:
    """Whether decisions (B, E) break the constraints of a grid path as they are, and obey them once
    they are taken from PyEPO's order."""
    shape = getattr(problem.structure, "grid_shape", None)
    if shape is None or len(pyepo_edges(*shape)) != problem.n_variables or not len(decisions):
        return False
    try:
        order = edge_order(problem, pyepo_edges(*shape))
    except InputError:  # a grid with other edges
        return False
    there = np.asarray(problem.constraint_violation(decisions))
    moved = np.asarray(problem.constraint_violation(decisions[:, order]))
    return bool(there.max() > 1e-3 and moved.max() <= 1e-6)
