"""Cheapest routes of vehicles: all routes that a vehicle can take, and the best choice among them.

What a route may be does not depend on costs, so the sets of customers that fit into a vehicle are
listed once. Under given costs the cheapest route through each follows by dynamic programming (Held
and Karp 1962), and the linear program that covers every customer by routes is solved by the simplex
method, begun from its last basis. Its prices prove a bound on every choice; what they leave open,
mostly nothing, a search over the few routes that the bound does not rule out settles. Where there
are too many sets to list, cuts and HiGHS take over (`route_cuts`). Letters: B instances, n
customers, N sets, E = n (n + 1) / 2 edges.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from ..problems.integer import IntegerProgram
from ..problems.solution import SolveStatus
from ..problems.structures import RoutingStructure
from .calls import Found
from .route_cuts import solve_by_cuts
from .route_kernels import beyond_prices, cover, least_costs, order_of, price_out

MOST_SETS = 1_000_000
"""Sets of customers that are listed; beyond this, cuts."""
_FIRST = 2e-3
"""Of the bound: the first gap within which routes are searched; it grows by `_GROW`."""
_GROW = 4.0
_ROUTES = 100_000
"""Routes searched among, at most; beyond this, cuts."""
_STEPS = 5_000_000
"""Of that search."""


class RouteSets(NamedTuple):
    """The sets of customers that fit into a vehicle, smaller numbers before larger ones."""

    masks: np.ndarray
    """(N,) int64, bit i for customer i"""
    begin: np.ndarray
    """(N + 1,) int64, where the members of each set begin"""
    member: np.ndarray
    """(L,) int64"""
    without: np.ndarray
    """(L,) int64, the number of the same set without this member; -1 if that is empty"""


def solve_routes(
    problem: IntegerProgram, costs: np.ndarray, deadline: float, threads: int, start: Any
) -> Found:
    """See `IntegerSolver`."""
    shape, size = problem.structure, len(costs)
    found = Found(
        np.full(costs.shape, np.nan),
        np.full(size, SolveStatus.LIMIT, np.int8),
        np.full(size, -np.inf),
    )
    sets = problem.cached("route-sets", lambda: listed_sets(shape))
    idle = problem.cached("route-solvers", list)
    solver = None if sets is None else idle.pop() if idle else RouteSolver(shape, sets)
    for b in range(size):
        if time.monotonic() >= deadline:
            break
        x = None if solver is None else solver.solve(costs[b])
        if x is None:
            begin = None if start is None else start[b]
            found.X[b], found.status[b], found.bound[b] = solve_by_cuts(
                problem, costs[b], deadline, begin
            )
        else:
            found.X[b], found.status[b] = x, SolveStatus.OPTIMAL
    if solver is not None:
        idle.append(solver)
    return found


def listed_sets(shape: RoutingStructure) -> RouteSets | None:
    """All sets within the capacity; None if there are too many."""
    masks, loads = np.zeros(1, np.int64), np.zeros(1)
    for i, demand in enumerate(shape.demands):
        more = loads + demand
        fits = more <= shape.most
        if len(masks) + fits.sum() > MOST_SETS or i >= 62:
            return None
        masks = np.concatenate([masks, masks[fits] | (1 << i)])
        loads = np.concatenate([loads, more[fits]])
    masks = masks[1:]
    bits = np.arange(len(shape.demands))
    rows, member = np.nonzero((masks[:, None] >> bits) & 1)
    begin = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(masks)))])
    rest = masks[rows] ^ (np.int64(1) << member)
    without = np.where(rest > 0, np.searchsorted(masks, rest), -1)
    return RouteSets(masks, begin, member.astype(np.int64), without)


class RouteSolver:
    """The sets of one problem, with the basis of the last costs; serves one thread."""

    def __init__(self, shape: RoutingStructure, sets: RouteSets) -> None:
        self.shape, self.sets = shape, sets
        n = len(shape.demands)
        self.basis = np.arange(-1, -n - 2, -1)
        """(n + 1,) numbers of sets; -1 - i for the artificial column, or slack, of row i."""
        self.labels = np.empty(len(sets.member))
        self.least, self.paid, self.beyond = np.empty((3, len(sets.masks)))

    def solve(self, cost: np.ndarray) -> np.ndarray | None:
        """A cheapest decision (E,), proved; None where that took too much."""
        shape, sets = self.shape, self.sets
        C = np.zeros((shape.n_nodes, shape.n_nodes))
        C[shape.tails, shape.heads] = C[shape.heads, shape.tails] = cost
        least_costs(C, sets.begin, sets.member, sets.without, self.labels, self.least)
        prices = np.zeros(shape.n_nodes)
        basis = self.basis.copy()
        vehicles = float(shape.n_vehicles)
        price_out(self.least, *sets[1:], basis, prices, vehicles, self.paid, self.beyond)
        self.basis = basis
        return self._searched(C, prices)

    def _searched(self, C: np.ndarray, prices: np.ndarray) -> np.ndarray | None:
        """The best choice: one within a gap of the bound that these prices prove, if there is one,
        is the best of all.

        Any prices do, that of vehicles being at most 0: a choice costs their sum, `base`, plus what
        its routes cost beyond the prices they pay, plus the price of vehicles that it leaves.
        """
        sets, k = self.sets, self.shape.n_vehicles
        prices[-1] = min(prices[-1], 0.0)
        base = float(prices[:-1].sum() + k * prices[-1])
        beyond_prices(self.least, *sets[1:], prices, self.paid, self.beyond)
        beyond = self.beyond
        short = min(float(beyond.min()), 0.0)  # by rounding, or where the simplex method was ended
        gap = _FIRST * float(np.abs(C).max()) * len(prices) ** 0.5 - k * short
        while True:
            some = np.flatnonzero(beyond <= gap - (k - 1) * short)
            if len(some) > _ROUTES:
                return None
            some = some[np.argsort(beyond[some], kind="stable")]
            best, ended = cover(
                sets.masks[some], beyond[some], len(prices) - 1, k, -prices[-1], gap, short, _STEPS
            )
            if not ended:
                return None
            if best[0] >= 0:
                return self._decision(C, some[best[best >= 0]])
            if np.isfinite(self.least).sum() == len(some):
                return None  # nothing covers all customers, or not within the gap: let HiGHS say so
            gap = _GROW * gap + 1e-12 * abs(base)

    def _decision(self, C: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        used = np.zeros(C.shape)
        sets = self.sets
        for s in chosen:
            order = order_of(C, sets.begin, sets.member, sets.without, self.labels, s)
            stops = np.concatenate([[0], order + 1, [0]])
            used[np.minimum(stops[1:], stops[:-1]), np.maximum(stops[1:], stops[:-1])] = 1.0
        return used[self.shape.tails, self.shape.heads]
