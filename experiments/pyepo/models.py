"""PyEPO's models of the forward problems that both sides know, in PyEPO's own environment."""

from __future__ import annotations

from importlib import metadata
from typing import Any

import numpy as np
from pyepo import dsl
from pyepo.model.grb import knapsackModel, shortestPathModel

PACKAGES = ("pyepo", "torch", "gurobipy", "ortools", "clarabel", "numpy")


def versions() -> dict[str, str]:
    return {name: metadata.version(name) for name in PACKAGES}


def path_5x5() -> Any:
    """PyEPO's own: edges from cell to cell, row by row those to the right, then those down."""
    return shortestPathModel((5, 5))


def fractional_knapsack(weights: np.ndarray, capacity: float) -> Any:
    """PyEPO's own, relaxed; it maximizes values, where `revealed` minimizes their negatives."""
    return knapsackModel(np.atleast_2d(weights), np.atleast_1d(capacity)).relax()


def linear_program(
    A_eq: np.ndarray,
    b_eq: np.ndarray,
    A_ub: np.ndarray,
    b_ub: np.ndarray,
    lb: np.ndarray,
    ub: np.ndarray,
) -> Any:
    """min <c, x> with A_eq x = b_eq, A_ub x <= b_ub, lb <= x <= ub, in PyEPO's own language."""
    n = A_eq.shape[1]
    x, c = dsl.Variable(n, lb=lb, ub=ub), dsl.Parameter(n)
    rows = []
    if len(A_eq):
        rows.append(A_eq @ x == b_eq)
    if len(A_ub):
        rows.append(A_ub @ x <= b_ub)
    return dsl.Problem(dsl.Minimize(c @ x), rows).compile("gurobi")


def assignment(size: int) -> Any:
    """A task for each of `size` workers; entry w * size + t pairs worker w with task t."""
    worker, task = np.divmod(np.arange(size * size), size)
    A = np.vstack([worker == k for k in range(size)] + [task == k for k in range(size)])
    n = size * size
    none = np.zeros((0, n)), np.zeros(0)
    return linear_program(A.astype(float), np.ones(2 * size), *none, np.zeros(n), np.ones(n))
