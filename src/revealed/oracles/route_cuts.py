"""Cheapest routes of vehicles by HiGHS: rounded capacity cuts for whatever is not a set of routes.

The rows say how many edges each node has. Customers S that a decision joins in a circle without the
depot, or in a route that no vehicle can carry, must be entered and left at least as often as they
need vehicles: two edges across the cut for each. Such cuts are kept for the next costs.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from ..problems.integer import IntegerProgram
from ..problems.solution import SolveStatus
from ..problems.structures import RoutingStructure, connected


def solve_by_cuts(
    problem: IntegerProgram, cost: np.ndarray, deadline: float, start: Any
) -> tuple[np.ndarray | float, int, float]:
    """A cheapest decision (E,) or NaN, its status and a lower bound."""
    from .mip import MipSolver

    shape, rows = problem.structure, problem.relaxation
    depot: Any = rows.A_ub
    cuts: dict[bytes, np.ndarray] = problem.cached("route-cuts", dict)
    best: Any = np.nan if start is None else start
    bound = -np.inf
    while True:
        seconds = deadline - time.monotonic()
        if seconds <= 0:
            return best, SolveStatus.LIMIT, bound
        crossing, least = _as_rows(shape, list(cuts.values()))
        program = IntegerProgram(
            rows.A_eq,
            rows.b_eq,
            np.vstack([depot.toarray(), -crossing]),
            np.concatenate([rows.b_ub, -least]),
            lb=0.0,
            ub=1.0,
        )
        x, status, below = MipSolver().solve(program, 0, cost, seconds, start)
        bound = max(bound, below)
        if status == SolveStatus.INFEASIBLE:
            return np.nan, status, np.inf
        if status != SolveStatus.OPTIMAL:
            return best, SolveStatus.LIMIT, bound
        x = np.round(x)
        if shape.violation(x[None])[0] == 0:
            return x, SolveStatus.OPTIMAL, float(cost @ x)
        new = [side for side in _violated(shape, x) if side.tobytes() not in cuts]
        if not new:
            return best, SolveStatus.FAILED, bound
        cuts.update((side.tobytes(), side) for side in new)


def _violated(shape: RoutingStructure, x: np.ndarray) -> list[np.ndarray]:
    """Customers, as a mask (n_nodes,), of each part that is no route."""
    away = np.where(shape.tails > 0, x, 0.0)
    _, label = connected(away[None], shape.tails, shape.heads, shape.n_nodes)
    sides = [label[0] == part for part in np.unique(label[0, 1:])]
    crossing, least = _as_rows(shape, sides)
    return [side for side, row, need in zip(sides, crossing, least, strict=True) if row @ x < need]


def _as_rows(shape: RoutingStructure, sides: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """(C, E) the edges across each cut, and (C,) how many of them routes use at least."""
    if not sides:
        return np.zeros((0, len(shape.tails))), np.zeros(0)
    inside = np.array(sides)
    crossing = inside[:, shape.tails] != inside[:, shape.heads]
    load = inside[:, 1:] @ shape.demands
    trips = np.maximum(np.ceil(load / shape.most), 1.0)
    return crossing.astype(float), 2.0 * trips
