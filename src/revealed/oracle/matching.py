"""Bipartite matchings that cover the left side, by the Hungarian method of scipy.

The linear program's vertices are the matchings, so the best matching is its exact optimum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import linear_sum_assignment

from ..problems.structures import MatchingStructure
from .solution import SolveStatus

if TYPE_CHECKING:
    from ..problem import LinearProgram


def solve_matchings(problem: LinearProgram, costs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Decisions (B, E) and statuses (B,)."""
    graph: MatchingStructure = problem.structure
    edge_at = problem.cached("matching-edges", lambda: _edge_table(graph))
    X = np.zeros(costs.shape)
    status = np.full(len(costs), SolveStatus.OPTIMAL, dtype=np.int8)
    price = np.full((graph.n_left, graph.n_right), np.inf)  # inf: no such edge
    for i, cost in enumerate(costs):
        price[graph.left, graph.right] = cost
        try:
            left, right = linear_sum_assignment(price)
        except ValueError:  # scipy's word for "no matching covers the left side"
            status[i] = SolveStatus.INFEASIBLE
        else:
            X[i, edge_at[left, right]] = 1.0
    return X, status


def _edge_table(graph: MatchingStructure) -> np.ndarray:
    table = np.full((graph.n_left, graph.n_right), -1, dtype=np.int64)
    table[graph.left, graph.right] = np.arange(len(graph.left))
    return table
