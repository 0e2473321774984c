"""Compiled parts of `routes`. Letters: n customers, N sets, L members of all sets, m = n + 1 rows:
one for each customer, and the last for the number of vehicles."""

from __future__ import annotations

import numpy as np

from .._common.compiled import kernel

_CANDIDATES = 200
"""Columns that may enter between two looks at all of them."""
_ENOUGH = 1e-2
"""Of the bound: what the simplex method may still gain when it ends; the search closes such gaps
faster."""
_MOST_LOOKS = 400
_REFRESH = 60
"""Exchanges until the inverse of the basis is computed anew."""


@kernel
def least_costs(c, begin, member, without, label, least):
    """Fill in the cheapest path from the depot through each set to each member, `label` (L,), and
    the cheapest round trip through each set, `least` (N,); inf for sets of one customer."""
    for s in range(len(least)):
        first, size = begin[s], begin[s + 1] - begin[s]
        if size == 1:
            label[first] = c[0, member[first] + 1]
            least[s] = np.inf
            continue
        trip = np.inf
        for r in range(size):
            i = member[first + r] + 1
            at = begin[without[first + r]]
            path = np.inf
            for k in range(size - 1):
                path = min(path, label[at + k] + c[member[at + k] + 1, i])
            label[first + r] = path
            trip = min(trip, path + c[i, 0])
        least[s] = trip


@kernel
def order_of(c, begin, member, without, label, s):
    """The members of a set in the order of its cheapest round trip."""
    size = begin[s + 1] - begin[s]
    order = np.empty(size, np.int64)
    after = 0
    for place in range(size - 1, -1, -1):
        first, best, chosen = begin[s], np.inf, 0
        for k in range(begin[s + 1] - first):
            value = label[first + k] + c[member[first + k] + 1, after]
            if value < best:
                best, chosen = value, k
        order[place] = member[first + chosen]
        after = order[place] + 1
        s = without[first + chosen]
    return order


@kernel
def beyond_prices(least, begin, member, without, prices, paid, beyond):
    """Fill in what the customers of each route and a vehicle pay for it, `paid` (N,), and what it
    costs beyond that, `beyond` (N,)."""
    vehicle = prices[len(prices) - 1]
    for s in range(len(least)):
        first = begin[s]
        before = without[first]
        paid[s] = (vehicle if before < 0 else paid[before]) + prices[member[first]]
        beyond[s] = least[s] - paid[s]


@kernel
def price_out(least, begin, member, without, basis, prices, vehicles, paid, beyond):
    """Solve   min least^T y,  every customer in one set,  at most `vehicles` sets,  y >= 0   by the
    primal simplex method from a feasible `basis`; fill in `prices`, and `beyond` them.

    Nothing rests on how exactly: whatever the prices, the caller proves its bound from them.
    """
    m = len(basis)
    b = np.ones(m)
    b[m - 1] = vehicles
    large = 0.0
    for s in range(len(least)):
        if least[s] < np.inf:
            large = max(large, abs(least[s]))
    small = 1e-11 * large
    large *= 4.0 * m
    inverse, x = _refreshed(basis, begin, member, b)
    _price(inverse, basis, least, large, prices)
    since = 0
    column, step = np.empty(m), np.empty(m)
    for _ in range(_MOST_LOOKS):
        beyond_prices(least, begin, member, without, prices, paid, beyond)
        base = vehicles * prices[m - 1]
        for i in range(m - 1):
            base += prices[i]
        if prices[m - 1] <= small and -beyond.min() * vehicles <= _ENOUGH * abs(base):
            return
        some = _candidates(beyond, begin, member, m - 1, small)
        moved = False
        for _ in range(len(some) + 20):
            worst, chosen = -small, -1
            for s in some:
                value = least[s] - prices[m - 1]
                for k in range(begin[s], begin[s + 1]):
                    value -= prices[member[k]]
                if value < worst:
                    worst, chosen = value, s
            if prices[m - 1] > small and -prices[m - 1] < worst:
                worst, chosen = -prices[m - 1], -m  # the slack of the vehicles
            if worst >= -small:
                break
            _fill(column, chosen, begin, member)
            leaves, ratio, size = -1, np.inf, 0.0
            for i in range(m):
                step[i] = 0.0
                for j in range(m):
                    step[i] += inverse[i, j] * column[j]
                if step[i] > 1e-9:
                    now = max(x[i], 0.0) / step[i]
                    if now < ratio - 1e-12 or (now <= ratio + 1e-12 and step[i] > size):
                        leaves, ratio, size = i, min(now, ratio), step[i]
            if leaves < 0:
                return
            moved = True
            basis[leaves] = chosen
            since += 1
            if since >= _REFRESH:
                inverse, x = _refreshed(basis, begin, member, b)
                _price(inverse, basis, least, large, prices)
                since = 0
                continue
            x[leaves] /= step[leaves]
            for j in range(m):
                inverse[leaves, j] /= step[leaves]
                prices[j] += worst * inverse[leaves, j]
            for i in range(m):
                if i != leaves:
                    x[i] -= step[i] * x[leaves]
                    for j in range(m):
                        inverse[i, j] -= step[i] * inverse[leaves, j]
        if not moved:
            return


@kernel
def _fill(column, s, begin, member):
    """The column of a set, or of an artificial variable or slack."""
    column[:] = 0.0
    if s < 0:
        column[-1 - s] = 1.0
        return
    column[len(column) - 1] = 1.0
    for k in range(begin[s], begin[s + 1]):
        column[member[k]] = 1.0


@kernel
def _refreshed(basis, begin, member, b):
    m = len(basis)
    matrix, column = np.empty((m, m)), np.empty(m)
    for i in range(m):
        _fill(column, basis[i], begin, member)
        matrix[:, i] = column
    inverse = np.linalg.inv(matrix)
    return inverse, inverse @ b


@kernel
def _price(inverse, basis, least, large, prices):
    """prices = costs of the basis times its inverse; artificial columns cost `large`."""
    m = len(basis)
    prices[:] = 0.0
    for i in range(m):
        s = basis[i]
        cost = 0.0 if s == -m else large if s < 0 else least[s]
        for j in range(m):
            prices[j] += cost * inverse[i, j]


@kernel
def _candidates(beyond, begin, member, n, small):
    """Columns that gain much: for each customer a few of those that it is asked for."""
    each = max(2, _CANDIDATES // n)
    best = np.full((n, each), -1, np.int64)
    value = np.full((n, each), -small)
    worst = np.zeros(n, np.int64)
    for s in range(len(beyond)):
        gain = beyond[s]
        if gain >= -small:
            continue
        i = member[begin[s] + s % (begin[s + 1] - begin[s])]  # one of the set, to spread them
        if gain < value[i, worst[i]]:
            value[i, worst[i]], best[i, worst[i]] = gain, s
            for k in range(each):
                if value[i, k] > value[i, worst[i]]:
                    worst[i] = k
    flat = best.ravel()
    return flat[flat >= 0]


@kernel
def cover(masks, beyond, n, vehicles, unused, gap, short, most):
    """The cheapest choice of disjoint sets with all n customers, at most `vehicles` of them, that
    costs no more than `gap` beyond the bound: numbers of sets, -1 if there is none; and whether the
    search came to its end. `beyond` is increasing and at least `short`; a vehicle that is left
    costs `unused`."""
    best = np.full(vehicles, -1, np.int64)
    count = np.zeros(n, np.int64)
    for mask in masks:
        for i in range(n):
            count[i] += (mask >> i) & 1
    if count.min() == 0:
        return best, True
    rank = np.argsort(count)  # customers with few routes first
    home = np.empty(len(masks), np.int64)
    for s in range(len(masks)):
        for i in range(n):
            if (masks[s] >> rank[i]) & 1:
                home[s] = i
                break
    begin = np.zeros(n + 1, np.int64)
    for s in range(len(masks)):
        begin[home[s] + 1] += 1
    begin = np.cumsum(begin)
    place, order = begin[:-1].copy(), np.empty(len(masks), np.int64)
    for s in range(len(masks)):
        order[place[home[s]]] = s
        place[home[s]] += 1
    full = (np.int64(1) << n) - 1
    at = np.zeros(vehicles + 1, np.int64)  # next route to try, by depth
    who = np.zeros(vehicles + 1, np.int64)
    covered = np.zeros(vehicles + 1, np.int64)
    spent = np.zeros(vehicles + 1)
    taken = np.full(vehicles, -1, np.int64)
    depth, steps = 0, 0
    at[0], who[0] = begin[0], 0
    while depth >= 0:
        steps += 1
        if steps > most:
            return best, False
        if at[depth] >= begin[who[depth] + 1] or depth == vehicles:
            depth -= 1
            continue
        s = order[at[depth]]
        now = spent[depth] + beyond[s]
        if now + (vehicles - depth - 1) * short > gap:
            depth -= 1  # the routes after it cost more
            continue
        at[depth] += 1
        if masks[s] & covered[depth]:
            continue
        taken[depth] = s
        together = covered[depth] | masks[s]
        if together == full:
            total = now + unused * (vehicles - depth - 1)
            if total <= gap:
                gap = total
                best[:] = -1
                best[: depth + 1] = taken[: depth + 1]
            continue
        depth += 1
        covered[depth], spent[depth] = together, now
        i = who[depth - 1]
        while (together >> rank[i]) & 1:
            i += 1
        who[depth], at[depth] = i, begin[i]
    return best, True
