"""Semismooth Newton with an exact line search, for a list of instances, W at a time.

Minimises over the multipliers v, one for each row,

    1/2 sum_j clip(a_j . v - shift_j, low_j, high_j)^2   subject to  v_i >= least_i  on bounded
    rows.

The gradient is A r and the generalised Hessian A D A^T with a 0/1 diagonal D. A bounded row is
kept by an augmented Lagrangian: a one-sided spring of stiffness `SPRING` whose rest point `zeta`
is moved until the bound holds.

Where many entries are to change sides, the piece at hand says little about that of the answer, and
steps overshoot and are cut short. Soft steps see further: they round the corner of every max(t, 0)
off, to (t + sqrt(t^2 + 4 mu^2)) / 2, and mu falls from step to step.
"""

from typing import NamedTuple

import numpy as np

from ..._common.compiled import kernel
from .certificate import certify_group
from .factor import factorise, solve
from .group import (
    ABSENT,
    SHORT,
    limits,
    load_group,
    new_group,
    sides,
    store_multipliers,
    zeros,
)
from .simd import (
    any_positive,
    greater,
    larger_of,
    load,
    muladd,
    select,
    smaller_of,
    splat,
    square_root,
    store,
)

SPRING = 1e4
"""Stiffness of a bound, against rows of length 1: each move of `zeta` gains about this factor."""
RIDGE = 1e-11
"""Proximal term, against rows of length 1. The gradient lies in the Hessian's range, so it may be
tiny."""
SLOPE = 0.1
"""The line search stops when the slope has fallen to this share of its start."""
SOFT_SLOPE = 0.5
"""The same for soft steps, which need not be exact."""
TRIALS = 30
MOVES = 4
"""Exact steps after which the springs have been moved often enough to hold the bounds."""
EXACT = 1e-7
"""A full step within one piece that leaves more slope than this was not solved exactly."""
GIVEN_UP = 1e9
"""More cuts than there is patience for."""
SOFTENING = 0.3
"""What is left of mu after a soft step; it starts at the root mean square of the residuals."""


class Pace(NamedTuple):
    """How far Newton goes with each instance."""

    cap: int
    """Most steps."""
    soft: int
    """How many of them are soft, at the beginning; these are not judged."""
    patience: int
    """An instance is given up once its full step had to be cut so often: its active set is still
    being guessed."""
    overshoot: float
    """Or once the slope after a full step was so many times the one before."""
    still: float
    """It is left alone once its residual is below this."""


@kernel
def newton(columns, pattern, first, job, ids, pace, fresh, multipliers, *rest):
    """Run steps on each of the instances `ids` at the given `pace`.

    `first` is the factor of A A^T that gives `fresh` instances their least-squares start; others
    start from `multipliers`. The rest is `steps`, added to; the certified `answer`, filled like
    `multipliers`; `stop`, whose first entry ends it early; and the token of the lanes.
    """
    steps, answer, stop, w = rest
    width = len(w)
    n, m = len(columns.start) - 1, columns.norm.shape[1]
    group = new_group(n, m, width)
    L = zeros(len(pattern.row), width)
    t, dt = zeros(n, width), zeros(n, width)
    g, d, work, zeta = zeros(m, width), zeros(m, width), zeros(m, width), zeros(m, width)
    lane_ids = np.empty(width, np.int64)
    settled, cuts, exact, mu = np.empty(width), np.empty(width), np.empty(width), np.empty(width)
    for begin in range(0, len(ids), width):
        for lane in range(width):
            lane_ids[lane] = ids[begin + lane] if begin + lane < len(ids) else -1
            settled[lane] = 1.0 if lane_ids[lane] < 0 else 0.0
            cuts[lane], exact[lane], mu[lane] = 0.0, 0.0, 0.0
        load_group(columns, pattern, job, lane_ids, multipliers, group, w)
        value = pattern.entry_value[lane_ids[0] if len(pattern.entry_value) > 1 else 0]
        if fresh:
            _least_squares_start(columns, pattern, value, first, group, w)
        at = (columns, pattern, value, group, zeta)
        for step in range(pace.cap):
            soft = step < pace.soft
            if soft and step == 0:
                _roughness(columns, pattern, value, group, mu, w)
            # With None in place of mu, another function is compiled: one without the roots.
            if soft:
                _assemble(*at, step == 0, 0.0, mu, t, g, L, settled, w)
            else:
                _assemble(*at, step == 0, pace.still, None, t, g, L, settled, w)
            if stop[0] or _all_positive(settled):
                break
            for i in range(m):
                store(d, i, load(g, i, w) * splat(-1.0, w))
            factorise(pattern, L, work, RIDGE, w)
            solve(pattern, L, d, w)
            for lane in range(width):
                if settled[lane] == 0.0:
                    steps[lane_ids[lane]] += 1
            if soft:
                _line_search(*at, t, dt, g, d, settled, cuts, exact, np.inf, mu, w)
            else:
                _line_search(*at, t, dt, g, d, settled, cuts, exact, pace.overshoot, None, w)
            for lane in range(width):
                mu[lane] *= SOFTENING
                if cuts[lane] >= pace.patience:
                    settled[lane] = 1.0
            if _all_positive(settled):
                break
        store_multipliers(columns, pattern, lane_ids, group, multipliers)
        certify_group(columns, pattern, job, value, lane_ids, group, t, g, answer, w)


@kernel
def _least_squares_start(columns, pattern, value, first, group, w):
    """v as if every entry were free: one solve with a factor that the whole batch shares."""
    m = columns.norm.shape[1]
    for i in range(m):
        store(group.v, i, splat(0.0, w))
    for j in range(len(columns.start) - 1):
        shift = load(group.shift, j, w)
        for e in range(columns.start[j], columns.start[j + 1]):
            i = pattern.entry_row[e]
            store(group.v, i, muladd(splat(value[e], w), shift, load(group.v, i, w)))
    _solve_shared(pattern, first, group.v, w)
    one = splat(1.0, w)
    for i in range(m):
        v = load(group.v, i, w) * (one - load(group.absent, i, w))
        least = larger_of(v, load(group.least, i, w))
        store(group.v, i, select(load(group.bounded, i, w), least, v))


@kernel
def _solve_shared(pattern, L, x, w):
    """`factor.solve` with one scalar factor for all lanes."""
    start, row = pattern.start, pattern.row
    m = len(start) - 1
    for j in range(m):
        here = load(x, j, w) * splat(L[start[j]], w)
        store(x, j, here)
        for p in range(start[j] + 1, start[j + 1]):
            store(x, row[p], muladd(splat(-L[p], w), here, load(x, row[p], w)))
    for j in range(m - 1, -1, -1):
        here = load(x, j, w)
        for p in range(start[j] + 1, start[j + 1]):
            here = muladd(splat(-L[p], w), load(x, row[p], w), here)
        store(x, j, here * splat(L[start[j]], w))


@kernel
def _roughness(columns, pattern, value, group, mu, w):
    """Set mu to the root mean square of the residuals."""
    square, n = splat(0.0, w), len(columns.start) - 1
    for j in range(n):
        tj = _offset(columns, pattern, value, group, j, w)
        r, _ = _residual(group, j, tj, None, w)
        square = muladd(r, r, square)
    store(mu, 0, larger_of(square_root(square / splat(float(n), w)), splat(1e-100, w)))


@kernel
def _offset(columns, pattern, value, group, j, w):
    """t_j = a_j . v - shift_j."""
    t = splat(0.0, w) - load(group.shift, j, w)
    for e in range(columns.start[j], columns.start[j + 1]):
        t = muladd(splat(value[e], w), load(group.v, pattern.entry_row[e], w), t)
    return t


@kernel
def _residual(group, j, t, mu, w):
    """The residual of entry j at offset t and its derivative; rounded off unless `mu` is None."""
    low, high = limits(group, j, w)
    r = smaller_of(larger_of(t, low), high)
    inside = greater(t, low) * greater(high, t)
    if mu is not None:
        half, one, side = splat(0.5, w), splat(1.0, w), sides(group, j, w)
        width = load(mu, 0, w) * splat(2.0, w)
        root = square_root(muladd(t, t, width * width))
        r = select(side * side, half * muladd(side, root, t), r)
        inside = select(side * side, half * (one + side * t / root), inside)
    return r, inside


@kernel
def _assemble(columns, pattern, value, group, zeta, opening, still, mu, t, g, L, settled, w):
    """Offsets t = A^T v - shift, gradient g = A r, and the lower triangle of A D A^T in L."""
    zero = splat(0.0, w)
    square = zero
    for p in range(len(pattern.row)):
        store(L, p, zero)
    for i in range(columns.norm.shape[1]):
        store(g, i, zero)
    pair = 0
    for j in range(len(columns.start) - 1):
        begin, end = columns.start[j], columns.start[j + 1]
        tj = _offset(columns, pattern, value, group, j, w)
        store(t, j, tj)
        r, inside = _residual(group, j, tj, mu, w)
        square = muladd(r, r, square)
        for e in range(begin, end):
            i = pattern.entry_row[e]
            a = splat(value[e], w)
            store(g, i, muladd(a, r, load(g, i, w)))
            weight = a * inside
            for f in range(begin, e + 1):
                slot = pattern.pair_slot[pair]
                store(L, slot, muladd(weight, splat(value[f], w), load(L, slot, w)))
                pair += 1
    _close_rows(columns, pattern, group, zeta, opening, square, still, g, L, settled, w)


@kernel
def _close_rows(columns, pattern, group, zeta, opening, square, still, g, L, settled, w):
    """Add springs, ridge and absent rows to g and L; settle lanes whose residual is small enough.

    The residual is that of `certificate`, so that a warm start which is already right stays.
    """
    zero, one = splat(0.0, w), splat(1.0, w)
    spring, ridge, absent = splat(SPRING, w), splat(RIDGE, w), splat(ABSENT, w)
    slant, gap = zero, zero
    for i in range(columns.norm.shape[1]):
        bounded = load(group.bounded, i, w)
        gi = load(g, i, w) * (one - load(group.absent, i, w))
        excess = load(group.v, i, w) - load(group.least, i, w)
        below = larger_of(zero - excess, zero)
        off = smaller_of(larger_of(gi, zero), larger_of(excess, zero)) + below
        off = select(bounded, off + larger_of(zero - gi, zero), larger_of(gi, zero - gi))
        slant = larger_of(off, slant)
        gap = muladd(excess, gi, gap)
        if opening:  # a bound that starts out tight starts with the force that holds it
            tight = bounded * (one - greater(excess, zero))
            store(zeta, i, tight * larger_of(gi, zero) / spring)
        stretch = excess - load(zeta, i, w)
        taut = bounded * greater(zero, stretch) * spring
        store(g, i, muladd(taut, stretch, gi))
        extra = muladd(load(group.absent, i, w), absent, taut + ridge)
        store(L, pattern.start[i], load(L, pattern.start[i], w) + extra)
    yard = larger_of(square_root(square), splat(SHORT, w) * load(group.size, 0, w))
    gap = larger_of(gap, zero - gap)
    worst = larger_of(slant * yard, gap)
    enough = greater(splat(still, w) * yard * yard, worst)
    store(settled, 0, larger_of(enough, load(settled, 0, w)))


@kernel
def _line_search(
    columns, pattern, value, group, zeta, t, dt, g, d, settled, cuts, exact, overshoot, mu, w
):
    """Move v along d to where the slope has (nearly) vanished, and settle lanes that have nothing
    left to change.

    The slope along d is piecewise linear and increasing: Newton's method on it, kept inside a
    bracket.
    """
    zero, one = splat(0.0, w), splat(1.0, w)
    m = columns.norm.shape[1]
    first = zero
    for i in range(m):
        first = muladd(load(g, i, w), load(d, i, w), first)
    enough = larger_of(first, zero - first) * splat(SLOPE if mu is None else SOFT_SLOPE, w)
    alpha, low, high, same, flat = one, zero, splat(1e300, w), zero, zero
    slope, curve, changed = _full_step(columns, pattern, value, group, zeta, t, dt, d, mu, w)
    steep = greater(larger_of(slope, zero - slope), enough)
    if mu is None:
        same = (one - greater(changed, zero)) * (one - steep)
        flat = greater(enough * splat(EXACT, w), larger_of(slope, zero - slope))
        store(cuts, 0, load(cuts, 0, w) + steep)
        wild = greater(slope, larger_of(first, zero - first) * splat(overshoot, w))
        store(cuts, 0, muladd(wild, splat(GIVEN_UP, w), load(cuts, 0, w)))
    for _ in range(1, TRIALS):
        if not any_positive(steep):
            break
        rising = greater(slope, zero)
        high = select(steep * rising, alpha, high)
        low = select(steep * (one - rising), alpha, low)
        guess = alpha - slope / curve
        bisect = select(
            greater(splat(1e299, w), high), (low + high) * splat(0.5, w), alpha * splat(4.0, w)
        )
        guess = select(greater(guess, low) * greater(high, guess), guess, bisect)
        alpha = select(steep, guess, alpha)
        slope, curve = _slope(columns, group, zeta, t, dt, d, alpha, mu, w)
        steep = greater(larger_of(slope, zero - slope), enough)
    keep = greater(one, load(settled, 0, w))
    alpha = alpha * keep
    for i in range(m):
        store(group.v, i, muladd(alpha, load(d, i, w), load(group.v, i, w)))
    store(exact, 0, muladd(same, flat, load(exact, 0, w)))
    if columns.n_equalities == m:
        finished = greater(load(exact, 0, w), zero)
    else:
        _move_rest_points(group, zeta, same * keep, w)
        finished = greater(load(exact, 0, w), splat(MOVES, w))
    store(settled, 0, larger_of(finished, load(settled, 0, w)))


@kernel
def _full_step(columns, pattern, value, group, zeta, t, dt, d, mu, w):
    """Fill dt = A^T d; slope and curvature after a full step, and unless it is a soft one how many
    pieces differ from those before."""
    zero, one = splat(0.0, w), splat(1.0, w)
    slope, curve, changed = zero, zero, zero
    for j in range(len(columns.start) - 1):
        move = zero
        for e in range(columns.start[j], columns.start[j + 1]):
            move = muladd(splat(value[e], w), load(d, pattern.entry_row[e], w), move)
        store(dt, j, move)
        before = load(t, j, w)
        r, inside = _residual(group, j, before + move, mu, w)
        slope = muladd(r, move, slope)
        curve = muladd(inside * move, move, curve)
        if mu is None:
            _, was_inside = _residual(group, j, before, None, w)
            differs = inside - was_inside
            changed = muladd(differs, differs, changed)
    if columns.n_equalities == columns.norm.shape[1]:
        return slope, curve, changed  # no bounded rows, so no springs
    pull, stiffness, switched = _springs(group, zeta, d, one, w)
    return slope + pull, curve + stiffness, changed + switched


@kernel
def _slope(columns, group, zeta, t, dt, d, alpha, mu, w):
    """Slope and curvature at step alpha."""
    slope, curve = splat(0.0, w), splat(0.0, w)
    for j in range(len(columns.start) - 1):
        move = load(dt, j, w)
        r, inside = _residual(group, j, muladd(alpha, move, load(t, j, w)), mu, w)
        slope = muladd(r, move, slope)
        curve = muladd(inside * move, move, curve)
    if columns.n_equalities == columns.norm.shape[1]:
        return slope, curve
    pull, stiffness, _ = _springs(group, zeta, d, alpha, w)
    return slope + pull, curve + stiffness


@kernel
def _springs(group, zeta, d, alpha, w):
    """What springs add to slope and curvature at step alpha, and how many have become taut or
    slack."""
    zero, spring = splat(0.0, w), splat(SPRING, w)
    slope, curve, changed = zero, zero, zero
    for i in range(len(zeta) // len(w)):
        before = load(group.v, i, w) - load(group.least, i, w) - load(zeta, i, w)
        move = load(d, i, w)
        now = muladd(alpha, move, before)
        bounded = load(group.bounded, i, w)
        taut = greater(zero, now) * bounded
        differs = taut - greater(zero, before) * bounded
        slope = muladd(taut * spring * now, move, slope)
        curve = muladd(taut * spring * move, move, curve)
        changed = muladd(differs, differs, changed)
    return slope, curve, changed


@kernel
def _move_rest_points(group, zeta, where, w):
    """Multiplier update of the springs, in the lanes chosen by `where`."""
    zero = splat(0.0, w)
    for i in range(len(zeta) // len(w)):
        rest = load(zeta, i, w)
        stretch = load(group.v, i, w) - load(group.least, i, w) - rest
        target = larger_of(zero - stretch, zero) * load(group.bounded, i, w)
        store(zeta, i, select(where, target, rest))


@kernel
def _all_positive(flags):
    for value in flags:
        if value <= 0.0:
            return False
    return True
