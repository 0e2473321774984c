"""The nearest point of a cone K = { c : <c, x_k - x*> >= 0 for every cut k }, row by row.

    p = q + G^T lambda,   lambda >= 0,   rows of G the directions x_k - x*

The multipliers solve a small non-negative least-squares problem by the method of Lawson and Hanson
(1974), on the Gram matrix of the cuts in use. Whatever the multipliers, y = G^T lambda bounds the
distance: every c in K has <c, y> >= 0, so |c - q| >= -<q, y> / |y|. Letters: R rows, n entries, N
points.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..._common.compiled import kernel

_VIOLATED = 1e-13
"""Of |q| times the length of a cut: below this a cut counts as obeyed."""
_DEPENDENT = 1e-12
"""Of a cut's squared length: what must be left of it beside the cuts in use."""


FEW = 64
"""Cuts in use that are remembered for the next time."""


class Nearest(NamedTuple):
    """Of R rows."""

    point: np.ndarray
    """(R, n)"""
    bound: np.ndarray
    """(R,) a lower bound on the distance, proved by the multipliers."""
    used: np.ndarray
    """(R, FEW) numbers of the cuts in use, among those of the row; -1 where there are fewer."""


def nearest_in_cones(
    q: np.ndarray,
    observed: np.ndarray,
    points: np.ndarray,
    cuts: list[np.ndarray],
    begin: np.ndarray,
) -> Nearest:
    """Of costs q (R, n), each with cuts of its own among points (N, n); `begin` (R, FEW) are cuts
    that may be in use, as an earlier answer says."""
    ends = np.zeros(len(q) + 1, np.int64)
    np.cumsum([len(cut) for cut in cuts], out=ends[1:])
    places = np.concatenate(cuts) if len(cuts) else np.empty(0, np.int64)
    near = Nearest(np.empty_like(q), np.empty(len(q)), np.array(begin))
    _all_rows(q, observed, points, places, ends, *near)
    return near


@kernel
def _all_rows(q, observed, points, places, ends, point, bound, used):
    for r in range(len(q)):
        own = places[ends[r] : ends[r + 1]]
        bound[r] = _one_row(q[r], observed[r], points, own, point[r], used[r])


@kernel
def _one_row(q, x, points, own, p, known):
    """Fill in p and the cuts in use; the lower bound on the distance."""
    n, count = len(q), len(own)
    p[:] = q
    largest = 0.0
    for j in range(n):
        largest = max(largest, abs(q[j]))
    if count == 0 or largest == 0.0:
        known[:] = -1
        return 0.0
    length = np.empty(count)
    for k in range(count):
        total = 0.0
        for j in range(n):
            step = points[own[k], j] - x[j]
            total += step * step
        length[k] = np.sqrt(total)
    size = 0.0
    for j in range(n):
        size += (q[j] / largest) ** 2
    size = largest * np.sqrt(size)

    most = min(count, n)
    used = np.empty(most, np.int64)
    weight = np.zeros(most)
    gram = np.empty((most, most))
    start = np.empty(most)  # <g_k, q> of the cuts in use
    m = 0
    refused = np.zeros(count, np.bool_)
    for i in range(len(known)):
        if known[i] < 0 or known[i] >= count or m == most:
            break
        used[m] = known[i]
        _enter(points, own, x, q, used, m, gram, start)
        m += 1
    while m > 0:  # those that are still in use under these costs
        target = np.empty(m)
        if not _solve(gram, start, m, target):
            m = 0
            break
        weight[:m] = 1.0
        low = 0
        for i in range(m):
            if target[i] <= 0.0:
                weight[i], low = 0.0, low + 1
        if low == 0:
            weight[:m] = target
            for i in range(m):
                for j in range(n):
                    p[j] += weight[i] * (points[own[used[i]], j] - x[j])
            break
        m = _dropped(gram, start, used, weight, target, m)
    for _ in range(6 * count + 20):
        # the most violated cut
        worst, chosen = -_VIOLATED * size, -1
        for k in range(count):
            if refused[k] or length[k] == 0.0:
                continue
            slack = 0.0
            for j in range(n):
                slack += (points[own[k], j] - x[j]) * p[j]
            if slack / length[k] < worst:
                there = False
                for i in range(m):
                    there = there or used[i] == k
                if not there:
                    worst, chosen = slack / length[k], k
        if chosen < 0 or m == most:
            break
        used[m], weight[m] = chosen, 0.0
        _enter(points, own, x, q, used, m, gram, start)
        m += 1
        fresh = True
        while m > 0:
            target = np.empty(m)
            if not _solve(gram, start, m, target):
                m -= 1  # dependent on those in use: leave it out
                refused[chosen] = True
                break
            if fresh and target[m - 1] <= 0.0:  # rounding: it does not help after all
                m -= 1
                refused[chosen] = True
                break
            fresh = False
            step = 1.0
            for i in range(m):
                if target[i] <= 0.0:
                    step = min(step, weight[i] / (weight[i] - target[i]))
            for i in range(m):
                weight[i] += step * (target[i] - weight[i])
            if step == 1.0:
                break
            m = _dropped(gram, start, used, weight, target, m)
        p[:] = q
        for i in range(m):
            for j in range(n):
                p[j] += weight[i] * (points[own[used[i]], j] - x[j])
    for i in range(len(known)):
        known[i] = used[i] if i < m else -1
    along, squared = 0.0, 0.0
    for j in range(n):
        y = p[j] - q[j]
        along -= q[j] * y
        squared += y * y
    return max(along / np.sqrt(squared), 0.0) if squared > 0.0 else 0.0


@kernel
def _enter(points, own, x, q, used, m, gram, start):
    """Fill in the products of cut number m in use with q and with those before it."""
    start[m] = 0.0
    for j in range(len(x)):
        start[m] += (points[own[used[m]], j] - x[j]) * q[j]
    for i in range(m + 1):
        total = 0.0
        for j in range(len(x)):
            total += (points[own[used[m]], j] - x[j]) * (points[own[used[i]], j] - x[j])
        gram[m, i] = total
        gram[i, m] = total


@kernel
def _dropped(gram, start, used, weight, target, m):
    """Leave out the cuts whose multiplier has come to 0; how many are left."""
    largest = 0.0
    for i in range(m):
        largest = max(largest, weight[i])
    kept = 0
    for i in range(m):
        if target[i] <= 0.0 and weight[i] <= 1e-14 * largest:
            continue
        if kept != i:
            used[kept], weight[kept], start[kept] = used[i], weight[i], start[i]
            for k in range(m):
                gram[kept, k] = gram[i, k]
            for k in range(m):
                gram[k, kept] = gram[k, i]
        kept += 1
    return kept


@kernel
def _solve(gram, start, m, target):
    """target = -(gram)^-1 start by Cholesky; False where a cut depends on the others."""
    lower = np.empty((m, m))
    for i in range(m):
        for k in range(i + 1):
            total = gram[i, k]
            for j in range(k):
                total -= lower[i, j] * lower[k, j]
            if i == k:
                if total <= _DEPENDENT * gram[i, i]:
                    return False
                lower[i, i] = np.sqrt(total)
            else:
                lower[i, k] = total / lower[k, k]
    for i in range(m):
        total = -start[i]
        for j in range(i):
            total -= lower[i, j] * target[j]
        target[i] = total / lower[i, i]
    for i in range(m - 1, -1, -1):
        total = target[i]
        for j in range(i + 1, m):
            total -= lower[j, i] * target[j]
        target[i] = total / lower[i, i]
    return True
