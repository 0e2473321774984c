"""0/1 knapsacks with any number of budgets: depth-first branch and bound in compiled code.

Budgets are merged into one by weights at which the fractional optimum of the merged problem, an
upper bound on the value, is about the least. Items are then tried in the order of value per merged
weight, and a branch ends where the bound of the rest is no better than the best found. Letters: B
instances, k budgets, n items.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from .._common.compiled import kernel
from ..problems.integer import IntegerProgram
from ..problems.solution import SolveStatus
from .calls import Found

_NODES = 50_000_000
"""Branches looked at before an instance is left to HiGHS: some seconds."""


def solve_binary_knapsacks(
    problem: IntegerProgram, costs: np.ndarray, deadline: float, threads: int, start: Any
) -> Found:
    """See `IntegerSolver`; costs are negative values."""
    size, n = costs.shape
    weights = problem.structure.weights
    capacity = np.broadcast_to(problem.relaxation.b_ub, (size, len(weights)))
    X = np.zeros((size, n))
    status = np.full(size, SolveStatus.LIMIT, np.int8)
    for b in range(size):
        if time.monotonic() >= deadline:
            break
        if _solve_one(costs[b], weights, np.ascontiguousarray(capacity[b]), X[b], _NODES):
            status[b] = SolveStatus.OPTIMAL
        else:
            _leave_to_highs(problem, costs, deadline, b, X, status)
    bound = np.where(costs < 0, costs, 0.0).sum(axis=1)
    return Found(X, status, bound)


def _leave_to_highs(
    problem: IntegerProgram, costs: np.ndarray, deadline: float, b: int, X: Any, status: Any
) -> None:
    from .mip import solve_mips

    one = problem if problem.n_instances is None else problem[np.array([b])]
    found = solve_mips(one, costs[b : b + 1], deadline, 1, X[b : b + 1])
    X[b], status[b] = found.X[0], found.status[0]


@kernel
def _solve_one(cost, weights, capacity, best, most):
    """Fill in `best`; whether it is proved optimal."""
    k, n = weights.shape
    count = 0
    items = np.empty(n, np.int64)
    for j in range(n):
        fits = cost[j] < 0.0
        for i in range(k):
            fits = fits and weights[i, j] <= capacity[i]
        if fits:
            items[count] = j
            count += 1
    if count == 0:
        return True
    items = items[:count]
    share = _merging(cost, weights, capacity, items)
    merged = np.zeros(count)
    whole = 0.0
    for i in range(k):
        if capacity[i] < np.inf:
            whole += share[i]
            for a in range(count):
                merged[a] += share[i] * weights[i, items[a]] / max(capacity[i], 1e-300)
    ratio = np.empty(count)
    for a in range(count):
        ratio[a] = cost[items[a]] / merged[a] if merged[a] > 0.0 else -np.inf
    order = np.argsort(ratio, kind="mergesort")
    value = np.empty(count)
    load = np.empty(count)
    weight = np.empty((count, k))
    for a in range(count):
        j = items[order[a]]
        value[a], load[a] = -cost[j], merged[order[a]]
        for i in range(k):
            weight[a, i] = weights[i, j]

    chosen = np.zeros(count, np.bool_)
    top = np.zeros(count, np.bool_)
    used = np.zeros(k)
    slack = np.empty(k)
    for i in range(k):
        slack[i] = capacity[i] * (1.0 + 1e-12)
    gained, record, filled = 0.0, 0.0, 0.0
    at, nodes = 0, 0
    while True:
        # go down: take what fits as long as the rest can still beat the record
        while at < count:
            nodes += 1
            if nodes > most:
                for a in range(count):
                    best[items[order[a]]] = 1.0 if top[a] else 0.0
                return False
            left, hope = whole * (1.0 + 1e-12) - filled, gained
            for a in range(at, count):
                if load[a] <= left:
                    left -= load[a]
                    hope += value[a]
                else:
                    hope += value[a] * left / load[a]
                    break
            if hope <= record * (1.0 + 1e-15):
                break
            fits = True
            for i in range(k):
                fits = fits and used[i] + weight[at, i] <= slack[i]
            if fits:
                chosen[at] = True
                gained += value[at]
                filled += load[at]
                for i in range(k):
                    used[i] += weight[at, i]
            at += 1
        if gained > record:
            record = gained
            top[:] = chosen
        # go back: leave out the last item taken
        at = count - 1 if at == count else at - 1
        while at >= 0 and not chosen[at]:
            at -= 1
        if at < 0:
            break
        for a in range(at, count):
            chosen[a] = False
        # sums anew, so that rounding does not build up
        gained, filled = 0.0, 0.0
        used[:] = 0.0
        for a in range(at):
            if chosen[a]:
                gained += value[a]
                filled += load[a]
                for i in range(k):
                    used[i] += weight[a, i]
        at += 1
    for a in range(count):
        best[items[order[a]]] = 1.0 if top[a] else 0.0
    return True


@kernel
def _merging(cost, weights, capacity, items):
    """(k,) shares of the budgets in the merged one, by a few rounds of improvement one by one."""
    k = len(capacity)
    share = np.ones(k)
    for i in range(k):
        if not capacity[i] < np.inf:
            share[i] = 0.0
    if k == 1:
        return share
    least = _fractional(cost, weights, capacity, items, share)
    step = 4.0
    for _ in range(6):
        for i in range(k):
            for turn in range(2):
                old = share[i]
                share[i] = old * step if turn == 0 else old / step
                found = _fractional(cost, weights, capacity, items, share)
                if found < least:
                    least = found
                else:
                    share[i] = old
        step = np.sqrt(step)
    return share


@kernel
def _fractional(cost, weights, capacity, items, share):
    """The value of the merged problem when items may be split."""
    count = len(items)
    load = np.zeros(count)
    left = 0.0
    for i in range(len(capacity)):
        if share[i] > 0.0:
            left += share[i]
            for a in range(count):
                load[a] += share[i] * weights[i, items[a]] / max(capacity[i], 1e-300)
    ratio = np.empty(count)
    for a in range(count):
        ratio[a] = cost[items[a]] / load[a] if load[a] > 0.0 else -np.inf
    total = 0.0
    for a in np.argsort(ratio):
        if load[a] <= left:
            left -= load[a]
            total -= cost[items[a]]
        else:
            total -= cost[items[a]] * left / load[a]
            break
    return total
