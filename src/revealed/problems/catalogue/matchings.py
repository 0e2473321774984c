"""Matchings on bipartite graphs; with x >= 0 alone every vertex is a matching, no x <= 1 needed."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from ..._common.checks import positive_int
from ..._common.rows import frozen
from ...errors import InputError
from ..linear import LinearProgram
from ..structures import MatchingStructure


def grid_matching(rows: int, cols: int) -> LinearProgram:
    """Cheapest perfect matching of a grid's cells with neighbors; one cost for each edge.

    Minimize <c, x> with A x = 1, x >= 0, where A is the incidence of cells and edges. Cell (r, c)
    is row r * cols + c. Edges are ordered by their first cell, right before down, and listed in
    `problem.structure.tails` and `.heads`.

    Parameters
    ----------
    rows, cols : int
        Size of the grid; one of them even.

    Returns
    -------
    LinearProgram
    """
    rows, cols = positive_int(rows, "rows"), positive_int(cols, "cols")
    if rows * cols % 2:
        raise InputError(
            f"A perfect matching needs an even number of cells; {rows} x {cols} has "
            f"{rows * cols}. Make one side even."
        )
    cell = np.arange(rows * cols)
    row, col = np.divmod(cell, cols)
    inside = np.stack([col + 1 < cols, row + 1 < rows], axis=1)  # (cells, right and down)
    tails = np.broadcast_to(cell[:, None], inside.shape)[inside]
    heads = np.stack([cell + 1, cell + cols], axis=1)[inside]
    structure = _checkerboard(tails, heads, rows, cols)
    A = _incidence([tails, heads], rows * cols)
    return LinearProgram(A_eq=A, b_eq=1.0, lb=0.0, structure=structure)


def assignment(n_workers: int, n_tasks: int) -> LinearProgram:
    """Cheapest assignment of a task to every worker; entry w * n_tasks + t pairs w with t.

    Each worker gets exactly one task, each task at most one worker (exactly one when there are as
    many tasks as workers).

    Parameters
    ----------
    n_workers, n_tasks : int
        At most as many workers as tasks.

    Returns
    -------
    LinearProgram

    Examples
    --------
    >>> import numpy as np
    >>> import revealed as rv
    >>> problem = rv.problems.assignment(2, 2)
    >>> problem.solve(np.array([[1.0, 5.0, 5.0, 1.0]])).x
    array([[1., 0., 0., 1.]])
    """
    n_workers, n_tasks = positive_int(n_workers, "n_workers"), positive_int(n_tasks, "n_tasks")
    if n_workers > n_tasks:
        raise InputError(
            f"Every worker needs a task of their own; got {n_workers} workers and {n_tasks} tasks. "
            "Swap the two or add tasks."
        )
    worker, task = np.divmod(np.arange(n_workers * n_tasks), n_tasks)
    structure = MatchingStructure(frozen(worker), frozen(task), n_workers, n_tasks)
    if n_workers == n_tasks:
        A = _incidence([worker, n_workers + task], n_workers + n_tasks)
        return LinearProgram(A_eq=A, b_eq=1.0, lb=0.0, structure=structure)
    return LinearProgram(
        A_eq=_incidence([worker], n_workers),
        b_eq=1.0,
        A_ub=_incidence([task], n_tasks),
        b_ub=1.0,
        lb=0.0,
        structure=structure,
    )


def _checkerboard(tails: np.ndarray, heads: np.ndarray, rows: int, cols: int) -> MatchingStructure:
    """Edges join cells of different color, so the colors are the sides of a bipartite graph."""
    row, col = np.divmod(np.arange(rows * cols), cols)
    dark = (row + col) % 2 == 1
    position = np.where(dark, np.cumsum(dark), np.cumsum(~dark)) - 1  # among cells of its color
    light_end = np.where(dark[tails], heads, tails)
    dark_end = np.where(dark[tails], tails, heads)
    half = rows * cols // 2
    sides = frozen(position[light_end]), frozen(position[dark_end])
    return MatchingStructure(*sides, half, half, frozen(tails), frozen(heads), (rows, cols))


def _incidence(ends: list[np.ndarray], n_rows: int) -> sparse.coo_array:
    edges = np.arange(len(ends[0]))
    shape = (n_rows, len(edges))
    place = (np.concatenate(ends), np.tile(edges, len(ends)))
    return sparse.coo_array((np.ones(len(place[0])), place), shape=shape)
