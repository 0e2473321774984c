"""Cheapest tours: branch and bound on 1-trees in compiled code.

A 1-tree is a spanning tree of all nodes but the first, and the two cheapest edges of that one. With
a price on every node, the cheapest 1-tree less twice the prices is a lower bound on every tour, and
prices that make it large are found by following node degrees (Held and Karp 1971). Where a node of
the best 1-tree has three edges or more, two of them are branched on (Volgenant and Jonker 1982).
Where many tours cost the same this proves little, and linear programming takes over (`subtours`).
Letters: B instances, n nodes, E = n (n - 1) / 2 edges.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from .._common.compiled import kernel
from ..problems.integer import IntegerProgram
from ..problems.solution import SolveStatus
from .calls import Found
from .subtours import SubtourSolver

_NODES = 400
"""Branches looked at before an instance is left to linear programming (`subtours`)."""
_PRUNE = 1e-12
"""Of the largest cost times n: a branch that could gain less is not looked at."""
_FREE, _IN, _OUT = 0, 1, -1


def solve_tours(
    problem: IntegerProgram, costs: np.ndarray, deadline: float, threads: int, start: Any
) -> Found:
    """See `IntegerSolver`. Tours begin to be improved from `start`, or from nearest neighbors."""
    shape = problem.structure
    X, bound = np.zeros(costs.shape), np.full(len(costs), -np.inf)
    status = np.full(len(costs), SolveStatus.LIMIT, np.int8)
    n = shape.n_nodes
    for b, cost in enumerate(costs):
        if time.monotonic() >= deadline:
            X[b] = np.nan
            continue
        matrix = np.zeros((n, n))
        matrix[shape.tails, shape.heads] = matrix[shape.heads, shape.tails] = cost
        tour = _first_tour(matrix, 5 if start is None else 1)
        if start is not None:
            given = _order_of(start[b], shape)
            _improve(matrix, given)
            tour = given if _length(matrix, given) <= _length(matrix, tour) else tour
        proved, bound[b] = _branch(matrix, tour, _NODES)
        X[b] = _edges_of(tour, shape)
        if proved:
            status[b] = SolveStatus.OPTIMAL
            continue
        solver = _taken(problem)
        X[b], status[b], below = solver.solve(cost, X[b], deadline)
        bound[b] = max(bound[b], below)
        problem.cached("subtour-solvers", list).append(solver)
    return Found(X, status, bound)


def _taken(problem: IntegerProgram) -> SubtourSolver:
    """An idle solver with its cuts, or a new one; no two threads share one."""
    idle = problem.cached("subtour-solvers", list)
    return idle.pop() if idle else SubtourSolver(problem)


def _edges_of(tour: np.ndarray, shape: Any) -> np.ndarray:
    """(E,) 1 for the edges of a tour (n,)."""
    after = np.concatenate([tour[1:], tour[:1]])
    low, high = np.minimum(tour, after), np.maximum(tour, after)
    x = np.zeros(len(shape.tails))
    x[low * (2 * shape.n_nodes - low - 1) // 2 + high - low - 1] = 1.0
    return x


def _order_of(x: np.ndarray, shape: Any) -> np.ndarray:
    used = np.flatnonzero(x > 0.5)
    order = np.empty(shape.n_nodes, np.int64)
    _order(np.stack([shape.tails[used], shape.heads[used]], axis=1), order)
    return order


@kernel
def _length(c, tour):
    total = 0.0
    for k in range(len(tour)):
        total += c[tour[k - 1], tour[k]]
    return total


@kernel
def _first_tour(c, tries):
    """The best of some tours by nearest neighbors, improved by turning pieces around and moving
    short ones."""
    n = len(c)
    best = np.arange(n)
    least = np.inf
    for first in range(0, n, max(1, n // tries)):
        tour = np.empty(n, np.int64)
        there = np.zeros(n, np.bool_)
        tour[0] = first
        there[first] = True
        for k in range(1, n):
            near, chosen = np.inf, -1
            for j in range(n):
                if not there[j] and (chosen < 0 or c[tour[k - 1], j] < near):
                    near, chosen = c[tour[k - 1], j], j
            tour[k] = chosen
            there[chosen] = True
        _improve(c, tour)
        length = _length(c, tour)
        if length < least:
            least = length
            best[:] = tour
    return best


@kernel
def _improve(c, tour):
    """2-opt, and pieces of up to three nodes moved elsewhere, until nothing gains."""
    n = len(tour)
    size = 0.0
    for i in range(n):
        for j in range(n):
            size = max(size, abs(c[i, j]))
    small = 1e-12 * size
    gains = True
    while gains:
        gains = False
        for i in range(n - 1):
            for j in range(i + 2, n):
                a, b = tour[i], tour[i + 1]
                d, e = tour[j], tour[(j + 1) % n]
                if a == e:
                    continue
                if c[a, d] + c[b, e] < c[a, b] + c[d, e] - small:
                    low, high = i + 1, j
                    while low < high:
                        tour[low], tour[high] = tour[high], tour[low]
                        low += 1
                        high -= 1
                    gains = True
        for long in range(1, min(4, n - 2)):
            for i in range(n):
                moved = np.empty(n, np.int64)
                for k in range(n):
                    moved[k] = tour[(i + k) % n]
                # the piece is moved[1 : long + 1], between moved[0] and moved[long + 1]
                a, first = moved[0], moved[1]
                last, b = moved[long], moved[(long + 1) % n]
                free = c[a, first] + c[last, b] - c[a, b]
                for k in range(long + 1, n):
                    d, e = moved[k], moved[(k + 1) % n]
                    if e == first:
                        continue
                    straight = c[d, first] + c[last, e] - c[d, e]
                    turned = c[d, last] + c[first, e] - c[d, e]
                    if min(straight, turned) < free - small:
                        place = 1
                        tour[0] = a
                        for m in range(long + 1, k + 1):
                            tour[place] = moved[m]
                            place += 1
                        for m in range(long):
                            tour[place] = moved[1 + m] if straight <= turned else moved[long - m]
                            place += 1
                        for m in range(k + 1, n):
                            tour[place] = moved[m]
                            place += 1
                        gains = True
                        break


@kernel
def _branch(c, tour, most):
    """Make `tour` a cheapest one; whether that is proved, and a lower bound on all tours."""
    n = len(c)
    size = 0.0
    for i in range(n):
        for j in range(n):
            size = max(size, abs(c[i, j]))
    small = _PRUNE * size * n
    record = _length(c, tour)
    depth_most = n * n
    state = np.zeros((64, n, n), np.int8)  # of edges, for each branch that waits
    price = np.zeros((64, n))
    floor = np.full(64, -np.inf)
    waiting = 1
    prices, edges = np.zeros(n), np.empty((n, 2), np.int64)
    degree = np.empty(n, np.int64)
    mine = np.empty((n, n), np.int8)
    root, nodes = -np.inf, 0
    while waiting > 0:
        waiting -= 1
        if floor[waiting] >= record - small:
            continue
        nodes += 1
        if nodes > most:
            least = floor[waiting]
            for w in range(waiting):
                least = min(least, floor[w])
            return False, max(root, least)
        mine[:] = state[waiting]
        prices[:] = price[waiting]
        if not _forced(mine):
            continue
        rounds = 150 if nodes == 1 else 25
        bound, whole = _ascend(c, mine, prices, edges, degree, record, small, rounds)
        if nodes == 1:
            root = bound
        if whole:  # a tour, and the cheapest of this branch
            length = 0.0
            for k in range(n):
                length += c[edges[k, 0], edges[k, 1]]
            if length < record:
                record = length
                _order(edges, tour)
            if bound >= length - small:
                continue
        if bound >= record - small:
            continue
        v, first, second = _where_to_branch(c, mine, prices, edges, degree)
        if v < 0:
            continue
        if waiting + 3 > len(state):
            state = _longer3(state)
            price = _longer2(price)
            floor = _longer1(floor)
        in_use = 0
        for j in range(n):
            in_use += mine[v, j] == 1
        # last in, first looked at: take the edges of the 1-tree before leaving them out
        state[waiting] = mine
        _mark(state[waiting], v, first, -1)
        state[waiting + 1] = mine
        _mark(state[waiting + 1], v, first, 1)
        _mark(state[waiting + 1], v, second, -1)
        added = 2
        if in_use == 0:
            state[waiting + 2] = mine
            _mark(state[waiting + 2], v, first, 1)
            _mark(state[waiting + 2], v, second, 1)
            added = 3
        for w in range(added):
            price[waiting + w] = prices
            floor[waiting + w] = bound
        waiting += added
        if waiting > depth_most * 10:
            return False, root
    return True, record


@kernel
def _mark(state, i, j, value):
    state[i, j] = value
    state[j, i] = value


@kernel
def _longer3(a):
    b = np.zeros((2 * a.shape[0], a.shape[1], a.shape[2]), np.int8)
    b[: a.shape[0]] = a
    return b


@kernel
def _longer2(a):
    b = np.zeros((2 * a.shape[0], a.shape[1]))
    b[: a.shape[0]] = a
    return b


@kernel
def _longer1(a):
    b = np.full(2 * a.shape[0], -np.inf)
    b[: a.shape[0]] = a
    return b


@kernel
def _forced(state):
    """Mark what follows from the edges that are in or out; False where no tour is left."""
    n = len(state)
    changed = True
    while changed:
        changed = False
        for i in range(n):
            taken, left = 0, 0
            for j in range(n):
                if j != i:
                    taken += state[i, j] == 1
                    left += state[i, j] == 0
            if taken > 2 or taken + left < 2:
                return False
            if left > 0 and (taken == 2 or taken + left == 2):
                value = -1 if taken == 2 else 1
                for j in range(n):
                    if j != i and state[i, j] == 0:
                        _mark(state, i, j, value)
                changed = True
        # the ends of a path that is in must not be joined, unless the path has all nodes
        for i in range(n):
            taken = 0
            for j in range(n):
                taken += j != i and state[i, j] == 1
            if taken != 1:
                continue
            last, here, count = -1, i, 1
            while True:
                ahead = -1
                for j in range(n):
                    if j != here and j != last and state[here, j] == 1:
                        ahead = j
                        break
                if ahead < 0 or ahead == i:
                    break
                last, here = here, ahead
                count += 1
                if count > n:  # a node with three edges that are in leads into a circle
                    return False
            if count < n and count > 2 and state[i, here] == 0:
                _mark(state, i, here, -1)
                changed = True
    return _no_small_cycle(state)


@kernel
def _no_small_cycle(state):
    n = len(state)
    seen = np.zeros(n, np.bool_)
    for first in range(n):
        if seen[first]:
            continue
        last, here, count, closed = -1, first, 1, False
        seen[first] = True
        while True:
            ahead = -1
            for j in range(n):
                if j != here and j != last and state[here, j] == 1:
                    ahead = j
                    break
            if ahead < 0:
                break
            if ahead == first:
                closed = True
                break
            if seen[ahead]:
                break
            seen[ahead] = True
            last, here = here, ahead
            count += 1
        if closed and count < n and count > 2:
            return False
    return True


@kernel
def _ascend(c, state, prices, edges, degree, record, small, rounds):
    """Raise prices; the best bound, and whether the last 1-tree is a tour. `prices`, `edges` and
    `degree` end as those of the best bound."""
    n = len(c)
    best, factor, still = -np.inf, 1.0, 0
    now, tree = prices.copy(), np.empty((n, 2), np.int64)
    count, before = np.empty(n, np.int64), np.zeros(n)
    for turn in range(rounds):
        value = _one_tree(c, state, now, tree, count)
        if value > best:
            best, still = value, 0
            prices[:] = now
            edges[:] = tree
            degree[:] = count
        else:
            still += 1
            if still >= 4:
                factor *= 0.6
                still = 0
        if best >= record - small:
            return best, False
        miss = 0.0
        for i in range(n):
            miss += (count[i] - 2) ** 2
        if miss == 0.0:
            edges[:] = tree
            degree[:] = count
            prices[:] = now
            return max(best, value), True
        gap = max(record - value, 1e-6 * abs(record))
        step = factor * gap / miss
        for i in range(n):
            way = 0.7 * (count[i] - 2) + 0.3 * before[i] if turn else float(count[i] - 2)
            before[i] = count[i] - 2
            now[i] += step * way
    return best, False


@kernel
def _one_tree(c, state, prices, tree, count):
    """Fill in the cheapest 1-tree with the edges that are in and without those that are out, and
    its degrees; the bound, inf where there is none."""
    n = len(c)
    count[:] = 0
    far = 1e300
    near = np.full(n, far)  # cost of joining the tree, edges that are in before all others
    rank = np.full(n, 2, np.int8)
    via = np.full(n, -1, np.int64)
    done = np.zeros(n, np.bool_)
    total = 0.0
    place = 0
    here = 1
    done[1] = True
    for _ in range(n - 2):
        for j in range(1, n):
            if done[j] or state[here, j] == -1:
                continue
            cost = c[here, j] + prices[here] + prices[j]
            own = 0 if state[here, j] == 1 else 1
            if own < rank[j] or (own == rank[j] and cost < near[j]):
                near[j], rank[j], via[j] = cost, own, here
        chosen = -1
        for j in range(1, n):
            if done[j] or via[j] < 0:
                continue
            if chosen < 0 or rank[j] < rank[chosen]:
                chosen = j
            elif rank[j] == rank[chosen] and near[j] < near[chosen]:
                chosen = j
        if chosen < 0:
            return np.inf
        done[chosen] = True
        total += near[chosen]
        tree[place, 0], tree[place, 1] = via[chosen], chosen
        place += 1
        count[chosen] += 1
        count[via[chosen]] += 1
        here = chosen
    for _ in range(2):
        chosen, low, own = -1, far, 2
        for j in range(1, n):
            if state[0, j] == -1:
                continue
            if place == n - 1 and tree[n - 2, 1] == j:
                continue
            cost = c[0, j] + prices[0] + prices[j]
            mine = 0 if state[0, j] == 1 else 1
            if mine < own or (mine == own and cost < low):
                chosen, low, own = j, cost, mine
        if chosen < 0:
            return np.inf
        total += low
        tree[place, 0], tree[place, 1] = 0, chosen
        place += 1
        count[0] += 1
        count[chosen] += 1
    for i in range(n):
        total -= 2.0 * prices[i]
    return total


@kernel
def _where_to_branch(c, state, prices, edges, degree):
    """A node with too many edges in the 1-tree, and the two of them, still free, that are the most
    expensive to do without: about those that the tour has."""
    n = len(c)
    v, most = -1, 2
    for i in range(n):
        if degree[i] > most:
            v, most = i, degree[i]
    if v < 0:
        return -1, -1, -1
    first, second = -1, -1
    low, next_low = np.inf, np.inf
    for k in range(n):
        if edges[k, 0] != v and edges[k, 1] != v:
            continue
        j = edges[k, 1] if edges[k, 0] == v else edges[k, 0]
        if state[v, j] != 0:
            continue
        cost = c[v, j] + prices[v] + prices[j]
        if cost < low:
            second, next_low = first, low
            first, low = j, cost
        elif cost < next_low:
            second, next_low = j, cost
    return v, first, second


@kernel
def _order(edges, tour):
    """Fill in the nodes of a tour given by its edges."""
    n = len(edges)
    near = np.full((n, 2), -1, np.int64)
    for k in range(n):
        for side in range(2):
            i, j = edges[k, side], edges[k, 1 - side]
            if near[i, 0] < 0:
                near[i, 0] = j
            else:
                near[i, 1] = j
    last, here = -1, 0
    for k in range(n):
        tour[k] = here
        ahead = near[here, 0] if near[here, 0] != last else near[here, 1]
        last, here = here, ahead
