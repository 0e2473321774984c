"""A primal-dual interior-point method, for what Newton does not settle in a few steps.

Where most entries are strictly inside their limits, Newton's active set is sparse and changes at
almost every step; an interior point takes about ten steps whatever the problem. An entry at its
lower bound has residual z >= 0 and distance w >= 0 from the bound, with z - w = t and z w = 0 at
the answer; the method keeps z - w = t exactly and drives z w = mu to zero. The Newton system is
A D A^T again, with D = z / (z + w) between 0 and 1. (Mehrotra's predictor and corrector.)

Its answer is good to about half the digits; `newton` takes it from there to the last one.
"""

from typing import NamedTuple

import numpy as np

from ..._common.compiled import kernel
from ..constants import INSIDE, INTERIOR_RIDGE, START
from .factor import factorize, solve
from .group import (
    ABSENT,
    along,
    choose_lanes,
    load_group,
    matrix_of,
    new_group,
    offset_of,
    store_multipliers,
    zeros,
)
from .simd import (
    greater,
    larger_of,
    load,
    load_flags,
    muladd,
    select,
    smaller_of,
    splat,
    square_root,
    store,
)


class Iterate(NamedTuple):
    """Where the method stands and where it is going, in lanes; n columns, m rows."""

    t: np.ndarray
    """(n) offsets A^T v - shift."""
    z: np.ndarray
    """(n) residual of an entry at a bound."""
    inside: np.ndarray
    """(n) and its distance from the bound, w in the text above."""
    y: np.ndarray
    """(m) what a bounded multiplier has above its least."""
    force: np.ndarray
    """(m) multiplier of that bound."""
    d: np.ndarray
    """(m) right-hand side, then step of v."""
    dt: np.ndarray
    dy: np.ndarray
    dforce: np.ndarray


@kernel
def _new_iterate(n, m, width):
    """Storage for a group of `width` instances."""
    return Iterate(
        zeros(n, width),
        zeros(n, width),
        zeros(n, width),
        zeros(m, width),
        zeros(m, width),
        zeros(m, width),
        zeros(n, width),
        zeros(m, width),
        zeros(m, width),
    )


@kernel
def interior(columns, pattern, job, ids, cap, goal, work, stop, w):
    """Improve the multipliers of instances `ids` until mu is below `goal`, relative to the mean
    square move.

    Starts from the multipliers in `work` and overwrites them; `work.steps` is added to; `stop[0]`
    ends it early. Arguments are those of `newton`, `cap` the most steps.
    """
    width = len(w)
    n, m = len(columns.start) - 1, columns.norm.shape[1]
    group = new_group(n, m, width)
    L = zeros(len(pattern.row), width)
    column = zeros(m, width)
    at = _new_iterate(n, m, width)
    lane_ids = np.empty(width, np.int64)
    over = np.empty(width)
    for begin in range(0, len(ids), width):
        choose_lanes(ids, begin, lane_ids)
        for lane in range(width):
            over[lane] = 1.0 if lane_ids[lane] < 0 else 0.0
        load_group(columns, pattern, job, lane_ids, work.multipliers, group, w)
        matrix = matrix_of(columns, pattern, lane_ids[0])
        _enter(matrix, group, at, w)
        for _ in range(cap):
            total, count, square = _assemble(matrix, group, at, L, w)
            size = load(group.size, 0, w)
            denominator = larger_of(square, splat(1e-12, w) * size * size)
            small = greater(denominator * splat(goal, w), total)
            store(over, 0, larger_of(small, load(over, 0, w)))
            running = 0
            for lane in range(width):
                if over[lane] == 0.0:
                    running += 1
                    work.steps[lane_ids[lane]] += 1
            if running == 0 or stop[0]:
                break
            factorize(pattern, L, column, INTERIOR_RIDGE, w)
            solve(pattern, L, at.d, w)
            target = _predict(matrix, group, at, total, count, w)
            _correct(matrix, group, at, target, w)
            solve(pattern, L, at.d, w)
            _advance(matrix, group, at, over, w)
        store_multipliers(columns, pattern, lane_ids, group, work.multipliers)


@kernel
def _sign(group, j, w):
    """+1 at lower, -1 at upper, 0 otherwise; and 1 for a free entry, else 0."""
    lower, upper = load_flags(group.at_lower, j, w), load_flags(group.at_upper, j, w)
    one = splat(1.0, w)
    return lower - upper, (one - lower) * (one - upper)


@kernel
def _enter(matrix, group, at, w):
    """Offsets t for the multipliers at hand, and a first point on z - w = +-t with equal
    products."""
    zero, one = splat(0.0, w), splat(1.0, w)
    total, count = zero, zero
    for j in range(len(matrix.start) - 1):
        tj = offset_of(matrix, group, j, w)
        store(at.t, j, tj)
        sign, _ = _sign(group, j, w)
        total = muladd(larger_of(tj, zero - tj), sign * sign, total)
        count = muladd(sign, sign, count)
    mean = total / larger_of(count, one)
    mean = larger_of(mean, splat(1e-6, w) * load(group.size, 0, w)) * splat(START, w)
    mean = select(mean, mean, one)
    for i in range(matrix.n_rows):
        bounded = load(group.bounded, i, w)
        gap = larger_of(load(group.v, i, w) - load(group.least, i, w), mean)
        store(at.y, i, select(bounded, gap, one))
        store(at.force, i, select(bounded, mean * mean / gap, zero))
    # Lifting a multiplier off its bound moves the offsets of its row.
    _lift(matrix, group, at, w)
    product = mean * mean
    for j in range(len(matrix.start) - 1):
        sign, _ = _sign(group, j, w)
        offset = sign * load(at.t, j, w)
        far = larger_of(offset, zero - offset)
        big = (far + square_root(muladd(offset, offset, product * splat(4.0, w)))) * splat(0.5, w)
        positive = greater(offset, zero)
        limited = sign * sign
        store(at.z, j, select(limited, select(positive, big, product / big), one))
        store(at.inside, j, select(limited, select(positive, product / big, big), one))


@kernel
def _lift(matrix, group, at, w):
    """Bounded multipliers at least + y, and the offsets that follow."""
    for i in range(matrix.n_rows):
        bounded = load(group.bounded, i, w)
        lifted = load(group.least, i, w) + load(at.y, i, w)
        store(group.v, i, select(bounded, lifted, load(group.v, i, w)))
    for j in range(len(matrix.start) - 1):
        store(at.t, j, offset_of(matrix, group, j, w))


@kernel
def _assemble(matrix, group, at, L, w):
    """A D A^T in L and the predictor's right-hand side in d; returns sum z w, its count and the
    squared move."""
    zero, one = splat(0.0, w), splat(1.0, w)
    for p in range(len(L) // len(w)):
        store(L, p, zero)
    for i in range(matrix.n_rows):
        store(at.d, i, zero)
    total, count, square = zero, zero, zero
    pair = 0
    for j in range(len(matrix.start) - 1):
        sign, free = _sign(group, j, w)
        limited = sign * sign
        zj, wj = load(at.z, j, w), load(at.inside, j, w)
        share = zj / (zj + wj)
        weight_j = muladd(limited, share, free)
        tj = load(at.t, j, w)
        r = muladd(sign, zj, free * tj)
        total = muladd(limited * zj, wj, total)
        count = count + limited
        square = muladd(r, r, square)
        aim = muladd(sign * share, zj, free * tj)
        for e in range(matrix.start[j], matrix.start[j + 1]):
            i = matrix.row[e]
            a = splat(matrix.value[e], w)
            store(at.d, i, load(at.d, i, w) - a * aim)
            weight = a * weight_j
            for f in range(matrix.start[j], e + 1):
                slot = matrix.slot[pair]
                store(L, slot, muladd(weight, splat(matrix.value[f], w), load(L, slot, w)))
                pair += 1
    for i in range(matrix.n_rows):
        bounded, absent = load(group.bounded, i, w), load(group.absent, i, w)
        yi, fi = load(at.y, i, w), load(at.force, i, w)
        total = muladd(bounded * yi, fi, total)
        count = count + bounded
        store(at.d, i, load(at.d, i, w) * (one - absent))
        extra = muladd(absent, splat(ABSENT, w), bounded * fi / yi + splat(INTERIOR_RIDGE, w))
        store(L, matrix.diagonal[i], load(L, matrix.diagonal[i], w) + extra)
    return total, count, square


@kernel
def _predict(matrix, group, at, total, count, w):
    """Mehrotra's target for z w, from the step that would take it straight to zero."""
    zero, one = splat(0.0, w), splat(1.0, w)
    rate = one  # the largest relative decrease of any z, w, y or force; the step is its reciprocal
    linear, quadratic = zero, zero
    for j in range(len(matrix.start) - 1):
        move = along(matrix, at.d, j, w)
        store(at.dt, j, move)
        sign, _ = _sign(group, j, w)
        limited = sign * sign
        zj, wj = load(at.z, j, w), load(at.inside, j, w)
        dz = (sign * move - wj) * zj / (zj + wj)
        dw = dz - sign * move
        rate = larger_of(limited * larger_of((zero - dz) / zj, (zero - dw) / wj), rate)
        linear = muladd(limited, muladd(zj, dw, wj * dz), linear)
        quadratic = muladd(limited * dz, dw, quadratic)
    for i in range(matrix.n_rows):
        bounded = load(group.bounded, i, w)
        yi, fi, step = load(at.y, i, w), load(at.force, i, w), load(at.d, i, w)
        df = zero - fi - fi * step / yi
        store(at.dy, i, step)
        store(at.dforce, i, df)
        rate = larger_of(
            bounded * larger_of((zero - step) / yi, (zero - df) / larger_of(fi, splat(1e-300, w))),
            rate,
        )
        linear = muladd(bounded, muladd(yi, df, fi * step), linear)
        quadratic = muladd(bounded * step, df, quadratic)
    alpha = one / rate
    number = larger_of(count, one)
    mu = total / number
    after = mu + alpha * (linear + alpha * quadratic) / number
    ratio = smaller_of(larger_of(after / select(mu, mu, one), zero), one)
    return ratio * ratio * ratio * mu


@kernel
def _correct(matrix, group, at, target, w):
    """Right-hand side of the corrector in d; leaves the second-order products in dt and dforce."""
    zero, one = splat(0.0, w), splat(1.0, w)
    for i in range(matrix.n_rows):
        store(at.d, i, zero)
    for j in range(len(matrix.start) - 1):
        sign, free = _sign(group, j, w)
        zj, wj, move = load(at.z, j, w), load(at.inside, j, w), load(at.dt, j, w)
        dz = (sign * move - wj) * zj / (zj + wj)
        dw = dz - sign * move
        constant = (target - zj * wj - dz * dw) / (zj + wj)
        store(at.dt, j, constant)
        aim = muladd(sign, zj + constant, free * load(at.t, j, w))
        for e in range(matrix.start[j], matrix.start[j + 1]):
            i = matrix.row[e]
            store(at.d, i, load(at.d, i, w) - splat(matrix.value[e], w) * aim)
    for i in range(matrix.n_rows):
        pull = (
            load(group.bounded, i, w)
            * (target - load(at.dy, i, w) * load(at.dforce, i, w))
            / load(at.y, i, w)
        )
        store(at.dforce, i, pull)
        store(at.d, i, (load(at.d, i, w) + pull) * (one - load(group.absent, i, w)))


@kernel
def _advance(matrix, group, at, over, w):
    """The longest step along the corrected direction that keeps everything positive, then the
    step itself."""
    zero, one = splat(0.0, w), splat(1.0, w)
    rate = zero
    for j in range(len(matrix.start) - 1):
        move = along(matrix, at.d, j, w)
        sign, _ = _sign(group, j, w)
        zj, wj = load(at.z, j, w), load(at.inside, j, w)
        dz = muladd(zj / (zj + wj), sign * move, load(at.dt, j, w))
        dw = dz - sign * move
        rate = larger_of(sign * sign * larger_of((zero - dz) / zj, (zero - dw) / wj), rate)
    for i in range(matrix.n_rows):
        yi, fi, step = load(at.y, i, w), load(at.force, i, w), load(at.d, i, w)
        df = load(at.dforce, i, w) - fi - fi * step / yi
        fall = larger_of((zero - step) / yi, (zero - df) / larger_of(fi, splat(1e-300, w)))
        rate = larger_of(load(group.bounded, i, w) * fall, rate)
    alpha = smaller_of(splat(INSIDE, w) / larger_of(rate, splat(1e-30, w)), one)
    alpha = alpha * (one - load(over, 0, w))
    for j in range(len(matrix.start) - 1):
        move = along(matrix, at.d, j, w)
        sign, _ = _sign(group, j, w)
        zj, wj = load(at.z, j, w), load(at.inside, j, w)
        dz = muladd(zj / (zj + wj), sign * move, load(at.dt, j, w)) * sign * sign
        store(at.t, j, muladd(alpha, move, load(at.t, j, w)))
        store(at.z, j, muladd(alpha, dz, zj))
        store(at.inside, j, muladd(alpha, dz - sign * move, wj))
    for i in range(matrix.n_rows):
        bounded = load(group.bounded, i, w)
        yi, fi, step = load(at.y, i, w), load(at.force, i, w), load(at.d, i, w)
        df = load(at.dforce, i, w) - fi - fi * step / yi
        store(group.v, i, muladd(alpha, step, load(group.v, i, w)))
        store(at.y, i, muladd(alpha * bounded, step, yi))
        store(at.force, i, muladd(alpha * bounded, df, fi))
