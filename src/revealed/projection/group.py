"""A group of W instances on its way into and out of lanes.

Letters: W lanes, n columns, m rows in elimination order. Inside a group an entry's residual is
clip(t, low, high) with t = a_j . v - shift_j, which is the four states of DESIGN in one line:
free (-inf, inf), at lower (0, inf), at upper (-inf, 0), fixed (0, 0). The margin is folded into
`shift`. Rows have length 1, and costs are divided by a power of two near their largest entry, so
that the kernels see numbers of order one whatever the caller's units.
"""

from math import frexp, ldexp
from typing import NamedTuple

import numpy as np
from numba import njit

from .factor import KERNEL

ABSENT = 1e30
"""Diagonal given to a row that is not there: its step is then zero to the last bit that matters."""

SHORT = 1e-3
"""Moves shorter than this share of |q| are judged as if they were this long."""


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


class Group(NamedTuple):
    """Lane storage of one group; every array is flat, entry after entry, W numbers each."""

    shift: np.ndarray
    low: np.ndarray
    high: np.ndarray
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


@njit(**KERNEL)
def zeros(entries, width):
    """Lane storage that starts on a cache line, so that no load of eight lanes straddles two."""
    raw = np.zeros(entries * width + 8)
    skip = (-(raw.ctypes.data // 8)) % 8
    return raw[skip : skip + entries * width]


@njit(**KERNEL)
def new_group(n, m, width):
    return Group(
        zeros(n, width),
        zeros(n, width),
        zeros(n, width),
        zeros(m, width),
        zeros(m, width),
        zeros(m, width),
        zeros(m, width),
        zeros(1, width),
        zeros(1, width),
    )


@njit(cache=True, nogil=True, fastmath={"nnan", "ninf", "reassoc", "nsz"})
def _largest(line):
    best = 0.0
    for value in line:
        best = max(best, abs(value))
    return best


@njit(**KERNEL)
def unit_of(line, margin):
    """The power of two just above the largest of |cost| and margin; 1 if all are zero."""
    largest = max(_largest(line), margin)
    if largest == 0.0:
        return 1.0
    _, exponent = frexp(largest)
    return ldexp(1.0, min(max(exponent, -1000), 1000))


@njit(**KERNEL)
def load_group(columns, pattern, job, ids, multipliers, group):
    """Bring instances `ids` (-1: an empty lane) and their multipliers into the lanes."""
    width = len(ids)
    n = len(columns.start) - 1
    unit = np.ones(width)
    offset = np.zeros((4, width))
    for lane in range(width):
        b = max(ids[lane], 0)
        if ids[lane] >= 0:
            unit[lane] = 1.0 / unit_of(job.cost[b], job.margin[b])
        group.scale[lane] = 1.0 / unit[lane]
        offset[1, lane] = job.margin[b] * unit[lane]
        offset[2, lane] = -offset[1, lane]
    low = np.array([-np.inf, 0.0, -np.inf, 0.0])
    high = np.array([np.inf, np.inf, 0.0, 0.0])
    square = np.zeros(width)
    for j in range(n):
        for lane in range(width):
            b = ids[lane]
            at = j * width + lane
            if b >= 0:
                code = job.state[b, j]
                q = job.cost[b, j] * unit[lane]
                square[lane] += q * q
                group.shift[at] = q - offset[code, lane]
                group.low[at] = low[code]
                group.high[at] = high[code]
            else:
                group.shift[at] = 0.0
                group.low[at] = 0.0
                group.high[at] = 0.0
    for lane in range(width):
        group.size[lane] = max(np.sqrt(square[lane]), offset[1, lane])
        _load_rows(columns, pattern, job, ids[lane], lane, unit[lane], multipliers, group)


@njit(**KERNEL)
def _load_rows(columns, pattern, job, b, lane, unit, multipliers, group):
    width = len(group.scale)
    for i in range(columns.norm.shape[1]):
        at = pattern.place[i] * width + lane
        bound = i >= columns.n_equalities
        there = b >= 0 and (not bound or job.active[b, i - columns.n_equalities])
        norm = columns.norm[b if len(columns.norm) > 1 else 0, i]
        group.bounded[at] = 1.0 if bound and there else 0.0
        group.absent[at] = 0.0 if there else 1.0
        group.least[at] = job.margin[b] * unit * norm if bound and there else 0.0
        group.v[at] = multipliers[b, i] * unit * norm if there else 0.0


@njit(**KERNEL)
def store_multipliers(columns, pattern, ids, group, multipliers):
    """Make the lanes' multipliers admissible, and write them back in the caller's rows and
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
                multipliers[b, i] = value / columns.norm[line, i] * group.scale[lane]
