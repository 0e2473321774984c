"""Tours: visit every node once and come back."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ..._common.arrays import to_float64
from ..._common.checks import check_whole
from ..._common.rows import frozen
from ...errors import InputError
from ..integer import IntegerProgram
from ..structures import TourStructure


def traveling_salesman(n_nodes: int) -> IntegerProgram:
    """The cheapest tour through all nodes of a complete graph; costs are the same in both
    directions.

    A variable for each pair of nodes i < j, in the order of `np.triu_indices(n_nodes, 1)`: 1 if the
    tour goes from one to the other. The rows say that every node has two edges; that they form one
    tour the structure knows. Solved by branch and bound on 1-trees.

    Parameters
    ----------
    n_nodes : int
        At least 3.

    Returns
    -------
    IntegerProgram
    """
    check_whole(n_nodes, "n_nodes", 3)
    tails, heads = (frozen(part.astype(np.int64)) for part in np.triu_indices(n_nodes, 1))
    edges = np.arange(len(tails))
    ends = (np.concatenate([tails, heads]), np.concatenate([edges, edges]))
    degree = sparse.csr_array((np.ones(2 * len(edges)), ends), shape=(n_nodes, len(edges)))
    return IntegerProgram(
        A_eq=degree, b_eq=2.0, lb=0.0, ub=1.0, structure=TourStructure(n_nodes, tails, heads)
    )


def tour_of(decision: Any) -> np.ndarray:
    """(n_nodes,) the nodes in the order of a tour that begins at node 0 and turns to the smaller of
    its neighbors.

    Parameters
    ----------
    decision : (E,) array
        Of `traveling_salesman`.

    Returns
    -------
    (n_nodes,) int array

    Raises
    ------
    InputError
        If the edges do not pass every node once.
    """
    x = to_float64(decision, "decision").ravel()
    n = round((1 + np.sqrt(1 + 8 * len(x))) / 2)
    if n * (n - 1) // 2 != len(x) or n < 3:
        raise InputError(
            f"A tour of n nodes has n (n - 1) / 2 entries, one for each pair; got {len(x)}."
        )
    near: list[list[int]] = [[] for _ in range(n)]
    for i, j in zip(*(part[x > 0.5] for part in np.triu_indices(n, 1)), strict=True):
        near[i].append(int(j))
        near[j].append(int(i))
    order, last = [0], -1
    while len(order) < n:
        here = order[-1]
        ahead = [k for k in sorted(near[here]) if k != last and k not in order]
        if len(near[here]) != 2 or not ahead:
            raise InputError("`decision` is no tour: its edges do not pass every node once.")
        last = here
        order.append(ahead[0])
    return np.array(order)
