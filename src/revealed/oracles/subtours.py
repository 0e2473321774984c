"""Cheapest tours by linear programming, where bounds from 1-trees converge too slowly: ties.

The relaxation has two edges at every node, and at least two across every cut; cuts that are short
of that are found by the minimum cut of Stoer and Wagner (1997) and kept for the next costs. Where
its value reaches that of a tour, the tour is proved. Else HiGHS branches, with cuts added for
whatever it returns that is not one tour. Letters: n nodes, E edges.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy import sparse

from .._common.compiled import kernel
from ..problems.integer import IntegerProgram
from ..problems.solution import SolveStatus

_SHORT = 1e-7
"""By how much less than two edges must cross a cut for it to be added."""
_SAME = 1e-9
"""Of the largest cost times n: bounds this near a tour's cost prove it."""
_MOST_CUTS = 3000
"""Cuts kept; beyond this all but those of the last costs are forgotten."""


class SubtourSolver:
    """The relaxation of one number of nodes, with the cuts found so far."""

    def __init__(self, problem: IntegerProgram) -> None:
        import highspy

        self._api: Any = highspy
        self._problem, self.shape = problem, problem.structure
        self._sides: list[np.ndarray] = []
        self._highs: Any = None

    def solve(
        self, cost: np.ndarray, tour: np.ndarray, deadline: float
    ) -> tuple[np.ndarray, int, float]:
        """A cheapest tour (E,) of costs (E,), begun with a tour (E,); status and lower bound."""
        small = _SAME * float(np.abs(cost).max()) * self.shape.n_nodes
        value = float(cost @ tour)
        if len(self._sides) > _MOST_CUTS:
            self._sides, self._highs = [], None
        bound, x = self._relaxed(cost, value - small, deadline)
        if bound >= value - small:
            return tour, SolveStatus.OPTIMAL, value
        if x is None:
            return tour, SolveStatus.LIMIT, bound
        whole = np.abs(x - np.round(x)).max() < 1e-7
        if whole:  # no cut is short, so it is one tour
            found = np.round(x)
            return found, SolveStatus.OPTIMAL, float(cost @ found)
        return self._branched(cost, tour, deadline, bound)

    def _relaxed(
        self, cost: np.ndarray, enough: float, deadline: float
    ) -> tuple[float, np.ndarray | None]:
        """The value of the relaxation and where it is reached; None where time is up or HiGHS
        fails, and once the value is `enough`."""
        highs, n = self._model(), len(cost)
        highs.changeColsCost(n, np.arange(n, dtype=np.int32), np.ascontiguousarray(cost))
        bound = -np.inf
        while True:
            seconds = deadline - time.monotonic()
            if seconds <= 0:
                return bound, None
            if np.isfinite(seconds):
                highs.setOptionValue("time_limit", highs.getRunTime() + seconds)
            highs.run()
            if highs.getModelStatus() != self._api.HighsModelStatus.kOptimal:
                return bound, None
            bound = highs.getInfo().objective_function_value
            x = np.array(highs.getSolution().col_value)
            if bound >= enough:
                return bound, x
            sides = self._short_cuts(x)
            if not sides:
                return bound, x
            for side in sides:
                self._add(side)

    def _branched(
        self, cost: np.ndarray, tour: np.ndarray, deadline: float, bound: float
    ) -> tuple[np.ndarray, int, float]:
        from .mip import MipSolver

        while True:
            crossing = [self._crossing(side) for side in self._sides]
            cuts = (-np.array(crossing), -2.0) if crossing else (None, None)
            rows = self._problem.relaxation
            whole = IntegerProgram(rows.A_eq, rows.b_eq, *cuts, lb=0.0, ub=1.0)
            seconds = deadline - time.monotonic()
            if seconds <= 0:
                return tour, SolveStatus.LIMIT, bound
            x, status, below = MipSolver().solve(whole, 0, cost, seconds, tour)
            bound = max(bound, below)
            if status != SolveStatus.OPTIMAL:
                return tour, SolveStatus.LIMIT, bound
            x = np.round(x)
            if self.shape.violation(x[None])[0] == 0:
                return x, SolveStatus.OPTIMAL, float(cost @ x)
            for side in self._short_cuts(x):
                self._add(side)

    def _short_cuts(self, x: np.ndarray) -> list[np.ndarray]:
        """Sides (n,) of cuts that less than two edges cross."""
        n = self.shape.n_nodes
        weight = np.zeros((n, n))
        weight[self.shape.tails, self.shape.heads] = x
        weight += weight.T
        graph = sparse.csr_array(weight > 1e-9)
        parts, label = sparse.csgraph.connected_components(graph, directed=False)
        if parts > 1:
            return [label == part for part in range(parts)]
        side = np.zeros(n, np.bool_)
        return [side] if _least_cut(weight, side) < 2.0 - _SHORT else []

    def _crossing(self, side: np.ndarray) -> np.ndarray:
        return (side[self.shape.tails] != side[self.shape.heads]).astype(float)

    def _add(self, side: np.ndarray) -> None:
        self._sides.append(side)
        if self._highs is not None:
            self._enter(self._highs, side)

    def _enter(self, highs: Any, side: np.ndarray) -> None:
        edges = np.flatnonzero(self._crossing(side)).astype(np.int32)
        highs.addRow(2.0, self._api.kHighsInf, len(edges), edges, np.ones(len(edges)))

    def _model(self) -> Any:
        if self._highs is not None:
            return self._highs
        api, rows = self._api, self._problem.relaxation
        highs: Any = api.Highs()
        for name, value in (("output_flag", False), ("threads", 1), ("presolve", "off")):
            highs.setOptionValue(name, value)
        for name in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
            highs.setOptionValue(name, 1e-10)
        A: Any = rows.A_eq
        model: Any = api.HighsLp()
        model.num_col_, model.num_row_ = A.shape[1], A.shape[0]
        model.col_cost_ = np.zeros(A.shape[1])
        model.a_matrix_.format_ = api.MatrixFormat.kRowwise
        model.a_matrix_.start_ = A.indptr.astype(np.int32)
        model.a_matrix_.index_, model.a_matrix_.value_ = A.indices.astype(np.int32), A.data
        model.row_lower_ = model.row_upper_ = np.array(rows.b_eq)
        model.col_lower_, model.col_upper_ = np.zeros(A.shape[1]), np.ones(A.shape[1])
        highs.passModel(model)
        for side in self._sides:
            self._enter(highs, side)
        self._highs = highs
        return highs


@kernel
def _least_cut(weight, side):
    """The weight of a minimum cut of a connected graph; `side` is filled in with one side of it."""
    n = len(weight)
    w = weight.copy()
    merged = np.zeros((n, n), np.bool_)
    for i in range(n):
        merged[i, i] = True
    alive = np.ones(n, np.bool_)
    best = np.inf
    for phase in range(n - 1):
        reach = np.zeros(n)
        added = np.zeros(n, np.bool_)
        before, last = -1, -1
        for _ in range(n - phase):
            chosen = -1
            for j in range(n):
                if alive[j] and not added[j] and (chosen < 0 or reach[j] > reach[chosen]):
                    chosen = j
            added[chosen] = True
            before, last = last, chosen
            for j in range(n):
                if alive[j] and not added[j]:
                    reach[j] += w[chosen, j]
        if reach[last] < best:
            best = reach[last]
            side[:] = merged[last]
        for j in range(n):
            w[before, j] += w[last, j]
            w[j, before] = w[before, j]
            merged[before, j] = merged[before, j] or merged[last, j]
        w[before, before] = 0.0
        alive[last] = False
    return best
