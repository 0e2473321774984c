"""A group of W instances on its way into and out of SIMD lanes.

Letters: W lanes, n columns, m rows in elimination order. Inside a group an entry's residual is
clip(t, low, high) with t = a_j . v - shift_j, which covers the four entries of an active set in one
line: free (-inf, inf), at lower (0, inf), at upper (-inf, 0), fixed (0, 0). The margin is folded
into `shift`. Rows have length 1, and costs are divided by a power of two near their largest entry,
so that the kernels see numbers of order one whatever the caller's units.
"""

from math import frexp, ldexp
from typing import NamedTuple

import numpy as np

from ..._common.compiled import kernel
from .simd import larger_of, load, load_flags, muladd, select, splat, square_root, store

ABSENT = 1e30
"""Diagonal given to a row that is not there: its step is then zero to the last bit that matters."""


class Job(NamedTuple):
    """The instances to project: costs and sets, one line for each."""

    cost: np.ndarray
    """(B, n)"""
    state: np.ndarray
    """(B, n) EntryState codes."""
    active: np.ndarray
    """(B, m_ub) whether each inequality binds."""
    margin: np.ndarray
    """(B,)"""


class Matrix(NamedTuple):
    """What the steps need to know of a group's matrix, in one argument instead of five."""

    start: np.ndarray
    """(n + 1,) where each column's entries begin."""
    row: np.ndarray
    """(nnz,) elimination position of each entry's row."""
    value: np.ndarray
    """(nnz,) entries, rows scaled to length 1."""
    slot: np.ndarray
    """(h,) place in L that each pair of entries of a column adds to."""
    diagonal: np.ndarray
    """(m + 1,) where each column of L begins."""
    n_rows: int
    """m; the first `n_equalities` of the problem's own order have no bound."""
    n_equalities: int


class Group(NamedTuple):
    """Storage of one group in lanes; every array is flat, entry after entry, W numbers each."""

    shift: np.ndarray
    at_lower: np.ndarray
    """int8: 1 where the residual must not be negative. A byte, for the columns stream from L2."""
    at_upper: np.ndarray
    """int8: 1 where it must not be positive."""
    v: np.ndarray
    least: np.ndarray
    """(m) smallest admissible multiplier of a bounded row."""
    bounded: np.ndarray
    """(m) 1 for an active inequality, else 0."""
    absent: np.ndarray
    """(m) 1 for an inactive inequality, else 0."""
    scale: np.ndarray
    """(1) power of two by which the costs were divided."""
    size: np.ndarray
    """(1) Euclidean length of the scaled cost, the margin included."""


@kernel
def matrix_of(columns, pattern, b):
    """The matrix of instance b, which a group shares with it."""
    value = pattern.entry_value[b if len(pattern.entry_value) > 1 else 0]
    return Matrix(
        columns.start,
        pattern.entry_row,
        value,
        pattern.pair_slot,
        pattern.start,
        columns.norm.shape[1],
        columns.n_equalities,
    )


@kernel
def choose_lanes(ids, begin, lane_ids):
    """Fill `lane_ids` with the instances of the group that begins there; -1 for an empty lane."""
    for lane in range(len(lane_ids)):
        lane_ids[lane] = ids[begin + lane] if begin + lane < len(ids) else -1


@kernel
def offset_of(matrix, group, j, w):
    """t_j = a_j . v - shift_j."""
    t = splat(0.0, w) - load(group.shift, j, w)
    for e in range(matrix.start[j], matrix.start[j + 1]):
        t = muladd(splat(matrix.value[e], w), load(group.v, matrix.row[e], w), t)
    return t


@kernel
def along(matrix, d, j, w):
    """a_j . d for a vector d over the rows."""
    move = splat(0.0, w)
    for e in range(matrix.start[j], matrix.start[j + 1]):
        move = muladd(splat(matrix.value[e], w), load(d, matrix.row[e], w), move)
    return move


@kernel
def zeros(entries, width):
    """Storage for lanes that starts on a cache line: no load of eight lanes straddles two."""
    raw = np.zeros(entries * width + 8)
    skip = (-(raw.ctypes.data // 8)) % 8
    return raw[skip : skip + entries * width]


@kernel
def new_group(n, m, width):
    """Storage for a group of `width` instances."""
    return Group(
        zeros(n, width),
        np.zeros(n * width, np.int8),
        np.zeros(n * width, np.int8),
        zeros(m, width),
        zeros(m, width),
        zeros(m, width),
        zeros(m, width),
        zeros(1, width),
        zeros(1, width),
    )


@kernel
def _largest(line):
    a, b, c, d = 0.0, 0.0, 0.0, 0.0  # four at a time: a single running maximum waits for itself
    rest = len(line) - len(line) % 4
    for j in range(0, rest, 4):
        a, b = max(a, abs(line[j])), max(b, abs(line[j + 1]))
        c, d = max(c, abs(line[j + 2])), max(d, abs(line[j + 3]))
    for j in range(rest, len(line)):
        a = max(a, abs(line[j]))
    return max(max(a, b), max(c, d))


@kernel
def unit_of(line, margin):
    """The power of two just above the largest of |cost| and margin; 1 if all are zero."""
    largest = max(_largest(line), margin)
    if largest == 0.0:
        return 1.0
    _, exponent = frexp(largest)
    return ldexp(1.0, min(max(exponent, -1000), 1000))


@kernel
def load_group(columns, pattern, job, ids, multipliers, group, w):
    """Bring instances `ids` and their multipliers into the lanes; an empty lane (-1) copies lane 0.

    Loops over lanes run to len(w), which the compiler knows and unrolls.
    """
    line, unit, margin = np.empty(len(w), np.int64), np.empty(len(w)), np.empty(len(w))
    for lane in range(len(w)):
        line[lane] = ids[lane] if ids[lane] >= 0 else ids[0]
        group.scale[lane] = unit_of(job.cost[line[lane]], job.margin[line[lane]])
        unit[lane] = 1.0 / group.scale[lane]
        margin[lane] = job.margin[line[lane]] * unit[lane]
    for j in range(len(columns.start) - 1):
        for lane in range(len(w)):
            code = job.state[line[lane], j]
            at = j * len(w) + lane
            lower, upper = code & 1, code >> 1  # a fixed entry, code 3, is at both
            pull = margin[lane] * (lower - upper)
            group.shift[at] = job.cost[line[lane], j] * unit[lane] - pull
            group.at_lower[at] = lower
            group.at_upper[at] = upper
    _measure(columns, group, margin, w)
    for lane in range(len(w)):
        _load_rows(columns, pattern, job, line[lane], lane, unit[lane], multipliers, group)


@kernel
def limits(group, j, w):
    """What the residual of entry j is clipped to."""
    zero = splat(0.0, w)
    low = select(load_flags(group.at_lower, j, w), zero, splat(-np.inf, w))
    high = select(load_flags(group.at_upper, j, w), zero, splat(np.inf, w))
    return low, high


@kernel
def sides(group, j, w):
    """1 where entry j is at its lower bound alone, -1 at its upper, 0 where it is free or fixed."""
    return load_flags(group.at_lower, j, w) - load_flags(group.at_upper, j, w)


@kernel
def _measure(columns, group, margin, w):
    """The length of each lane's cost, or its margin if that is larger."""
    pull, square = load(margin, 0, w), splat(0.0, w)
    for j in range(len(columns.start) - 1):
        q = muladd(sides(group, j, w), pull, load(group.shift, j, w))
        square = muladd(q, q, square)
    store(group.size, 0, larger_of(square_root(square), pull))


@kernel
def _load_rows(columns, pattern, job, b, lane, unit, multipliers, group):
    width = len(group.scale)
    n_equalities = multipliers.shape[1] - job.active.shape[1]  # those left out counted too
    for i in range(columns.norm.shape[1]):
        at = pattern.place[i] * width + lane
        bound = i >= columns.n_equalities
        there = not bound or job.active[b, columns.source[i] - n_equalities]
        norm = columns.norm[b if len(columns.norm) > 1 else 0, i]
        group.bounded[at] = 1.0 if bound and there else 0.0
        group.absent[at] = 0.0 if there else 1.0
        group.least[at] = job.margin[b] * unit * norm if bound and there else 0.0
        group.v[at] = multipliers[b, columns.source[i]] * unit * norm if there else 0.0


@kernel
def store_multipliers(columns, pattern, ids, group, multipliers):
    """Make the multipliers in the lanes admissible, and write them back in the caller's rows and
    units."""
    width = len(ids)
    for lane in range(width):
        b = ids[lane]
        if b >= 0:
            line = b if len(columns.norm) > 1 else 0
            for i in range(columns.norm.shape[1]):
                at = pattern.place[i] * width + lane
                value = group.v[at]
                if group.bounded[at] > 0:
                    value = max(value, group.least[at])
                elif group.absent[at] > 0:
                    value = 0.0
                group.v[at] = value
                scaled = value / columns.norm[line, i] * group.scale[lane]
                multipliers[b, columns.source[i]] = scaled
