"""Semismooth Newton with an exact line search, for a list of instances, W at a time.

Minimizes over the multipliers v, one for each row,

    1/2 sum_j clip(a_j . v - shift_j, low_j, high_j)^2   subject to  v_i >= least_i  on bounded
    rows.

The gradient is A r and the generalized Hessian A D A^T with a 0/1 diagonal D. A bounded row is kept
by an augmented Lagrangian: the one-sided penalty PENALTY / 2 min(v - least - zeta, 0)^2, whose
multiplier is -PENALTY zeta, and `zeta` is updated until the bound holds.

Where many entries are to change sides, the piece at hand says little about that of the answer, and
steps overshoot and are cut short. Soft steps see further: they round the corner of every max(t, 0)
off, to (t + sqrt(t^2 + 4 mu^2)) / 2, and mu falls from step to step.
"""

from typing import NamedTuple

import numpy as np

from ..._common.compiled import kernel
from ..constants import (
    EXACT,
    GIVEN_UP,
    MOVES,
    PENALTY,
    RIDGE,
    SHORT,
    SLOPE,
    SOFT_SLOPE,
    SOFTENING,
    TRIALS,
)
from .certificate import certify_group
from .factor import factorize, solve
from .group import (
    ABSENT,
    along,
    choose_lanes,
    limits,
    load_group,
    matrix_of,
    new_group,
    offset_of,
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


class Iterate(NamedTuple):
    """Where the method stands and where it is going, in lanes; n columns, m rows."""

    t: np.ndarray
    """(n) offsets A^T v - shift."""
    dt: np.ndarray
    """(n) what a full step adds to them."""
    g: np.ndarray
    """(m) gradient."""
    d: np.ndarray
    """(m) step of v."""
    zeta: np.ndarray
    """(m) multipliers of the bounds, in terms of -PENALTY."""
    L: np.ndarray
    """A D A^T, then its factor."""
    work: np.ndarray
    """(m)"""
    mu: np.ndarray
    """(1) how round the corners are in a soft step."""
    settled: np.ndarray
    """(1) whether a lane is done, or empty."""
    cuts: np.ndarray
    """(1) full steps that had to be cut."""
    exact: np.ndarray
    """(1) full steps that were exact within one piece."""


@kernel
def _new_iterate(n, m, entries_of_L, width):
    """Storage for a group of `width` instances."""
    return Iterate(
        zeros(n, width),
        zeros(n, width),
        zeros(m, width),
        zeros(m, width),
        zeros(m, width),
        zeros(entries_of_L, width),
        zeros(m, width),
        np.empty(width),
        np.empty(width),
        np.empty(width),
        np.empty(width),
    )


@kernel
def newton(columns, pattern, first, job, ids, pace, fresh, work, stop, w):
    """Run steps on each of the instances `ids` at the given `pace`.

    Parameters
    ----------
    columns, pattern : Columns, Pattern
        The matrix.
    first : (nnz of L,) array
        The factor of A A^T that gives `fresh` instances their least-squares start; others start
        from `work.multipliers`.
    job : Job
        Costs and sets of all instances.
    ids : (k,) int64 array
        Which of them.
    pace : Pace
    fresh : bool
    work : Work
        `multipliers` and the certified `answer` are filled, `steps` is added to.
    stop : (1,) uint8 array
        Not 0 ends it early.
    w : tuple of ints
        The token of the lanes.
    """
    width = len(w)
    n, m = len(columns.start) - 1, columns.norm.shape[1]
    group, at = new_group(n, m, width), _new_iterate(n, m, len(pattern.row), width)
    lane_ids = np.empty(width, np.int64)
    for begin in range(0, len(ids), width):
        choose_lanes(ids, begin, lane_ids)
        for lane in range(width):
            at.settled[lane] = 1.0 if lane_ids[lane] < 0 else 0.0
            at.cuts[lane], at.exact[lane], at.mu[lane] = 0.0, 0.0, 0.0
        load_group(columns, pattern, job, lane_ids, work.multipliers, group, w)
        matrix = matrix_of(columns, pattern, lane_ids[0])
        if fresh:
            _least_squares_start(matrix, pattern, first, group, w)
        for step in range(pace.cap):
            soft = step < pace.soft
            if soft and step == 0:
                _roughness(matrix, group, at.mu, w)
            # With None in place of mu, another function is compiled: one without the roots.
            if soft:
                _assemble(matrix, group, at, step == 0, 0.0, at.mu, w)
            else:
                _assemble(matrix, group, at, step == 0, pace.still, None, w)
            if stop[0] or _all_positive(at.settled):
                break
            _direction(pattern, at, w)
            for lane in range(width):
                if at.settled[lane] == 0.0:
                    work.steps[lane_ids[lane]] += 1
            if soft:
                _line_search(matrix, group, at, np.inf, at.mu, w)
            else:
                _line_search(matrix, group, at, pace.overshoot, None, w)
            for lane in range(width):
                at.mu[lane] *= SOFTENING
                if at.cuts[lane] >= pace.patience:
                    at.settled[lane] = 1.0
            if _all_positive(at.settled):
                break
        store_multipliers(columns, pattern, lane_ids, group, work.multipliers)
        certify_group(matrix, job, lane_ids, group, at.t, at.g, work.answer, w)


@kernel
def _direction(pattern, at, w):
    """d = -(A D A^T + ridge)^-1 g; the factor takes the matrix's place."""
    for i in range(len(pattern.start) - 1):
        store(at.d, i, load(at.g, i, w) * splat(-1.0, w))
    factorize(pattern, at.L, at.work, RIDGE, w)
    solve(pattern, at.L, at.d, w)


@kernel
def _least_squares_start(matrix, pattern, first, group, w):
    """v as if every entry were free: one solve with a factor that the whole batch shares."""
    m = matrix.n_rows
    for i in range(m):
        store(group.v, i, splat(0.0, w))
    for j in range(len(matrix.start) - 1):
        shift = load(group.shift, j, w)
        for e in range(matrix.start[j], matrix.start[j + 1]):
            i = matrix.row[e]
            store(group.v, i, muladd(splat(matrix.value[e], w), shift, load(group.v, i, w)))
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
def _roughness(matrix, group, mu, w):
    """Set mu to the root mean square of the residuals."""
    square, n = splat(0.0, w), len(matrix.start) - 1
    for j in range(n):
        r, _ = _residual(group, j, offset_of(matrix, group, j, w), None, w)
        square = muladd(r, r, square)
    store(mu, 0, larger_of(square_root(square / splat(float(n), w)), splat(1e-100, w)))


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
def _assemble(matrix, group, at, opening, still, mu, w):
    """Offsets t = A^T v - shift, gradient g = A r, and the lower triangle of A D A^T in L."""
    zero = splat(0.0, w)
    square = zero
    value, L, g = matrix.value, at.L, at.g
    for p in range(len(L) // len(w)):
        store(L, p, zero)
    for i in range(matrix.n_rows):
        store(g, i, zero)
    pair = 0
    for j in range(len(matrix.start) - 1):
        begin, end = matrix.start[j], matrix.start[j + 1]
        tj = offset_of(matrix, group, j, w)
        store(at.t, j, tj)
        r, inside = _residual(group, j, tj, mu, w)
        square = muladd(r, r, square)
        for e in range(begin, end):
            i = matrix.row[e]
            a = splat(value[e], w)
            store(g, i, muladd(a, r, load(g, i, w)))
            weight = a * inside
            for f in range(begin, e + 1):
                slot = matrix.slot[pair]
                store(L, slot, muladd(weight, splat(value[f], w), load(L, slot, w)))
                pair += 1
    _close_rows(matrix, group, at, opening, square, still, w)


@kernel
def _close_rows(matrix, group, at, opening, square, still, w):
    """Add penalties, ridge and absent rows to g and L; settle lanes whose residual is small enough.

    The residual is that of `certificate`, so that a warm start which is already right stays.
    """
    zero, one = splat(0.0, w), splat(1.0, w)
    penalty, ridge, absent = splat(PENALTY, w), splat(RIDGE, w), splat(ABSENT, w)
    row_gradient, gap = zero, zero
    g, L, zeta = at.g, at.L, at.zeta
    for i in range(matrix.n_rows):
        bounded = load(group.bounded, i, w)
        gi = load(g, i, w) * (one - load(group.absent, i, w))
        excess = load(group.v, i, w) - load(group.least, i, w)
        below = larger_of(zero - excess, zero)
        off = smaller_of(larger_of(gi, zero), larger_of(excess, zero)) + below
        off = select(bounded, off + larger_of(zero - gi, zero), larger_of(gi, zero - gi))
        row_gradient = larger_of(off, row_gradient)
        gap = muladd(excess, gi, gap)
        if opening:  # a bound that starts out active starts with the multiplier that holds it
            tight = bounded * (one - greater(excess, zero))
            store(zeta, i, tight * larger_of(gi, zero) / penalty)
        broken = excess - load(zeta, i, w)
        stiff = bounded * greater(zero, broken) * penalty
        store(g, i, muladd(stiff, broken, gi))
        extra = muladd(load(group.absent, i, w), absent, stiff + ridge)
        store(L, matrix.diagonal[i], load(L, matrix.diagonal[i], w) + extra)
    denominator = larger_of(square_root(square), splat(SHORT, w) * load(group.size, 0, w))
    gap = larger_of(gap, zero - gap)
    worst = larger_of(row_gradient * denominator, gap)
    enough = greater(splat(still, w) * denominator * denominator, worst)
    store(at.settled, 0, larger_of(enough, load(at.settled, 0, w)))


@kernel
def _line_search(matrix, group, at, overshoot, mu, w):
    """Move v along d to where the slope has (nearly) vanished, and settle lanes that have nothing
    left to change.

    The slope along d is piecewise linear and increasing: Newton's method on it, kept inside a
    bracket.
    """
    zero, one = splat(0.0, w), splat(1.0, w)
    m, d, cuts, exact = matrix.n_rows, at.d, at.cuts, at.exact
    first = zero
    for i in range(m):
        first = muladd(load(at.g, i, w), load(d, i, w), first)
    enough = larger_of(first, zero - first) * splat(SLOPE if mu is None else SOFT_SLOPE, w)
    alpha, low, high, same, flat = one, zero, splat(1e300, w), zero, zero
    slope, curve, changed = _full_step(matrix, group, at, mu, w)
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
        slope, curve = _slope(matrix, group, at, alpha, mu, w)
        steep = greater(larger_of(slope, zero - slope), enough)
    keep = greater(one, load(at.settled, 0, w))
    alpha = alpha * keep
    for i in range(m):
        store(group.v, i, muladd(alpha, load(d, i, w), load(group.v, i, w)))
    store(exact, 0, muladd(same, flat, load(exact, 0, w)))
    if matrix.n_equalities == m:
        finished = greater(load(exact, 0, w), zero)
    else:
        _update_multipliers(group, at.zeta, same * keep, w)
        finished = greater(load(exact, 0, w), splat(MOVES, w))
    store(at.settled, 0, larger_of(finished, load(at.settled, 0, w)))


@kernel
def _full_step(matrix, group, at, mu, w):
    """Fill dt = A^T d; slope and curvature after a full step, and unless it is a soft one how many
    pieces differ from those before."""
    zero, one = splat(0.0, w), splat(1.0, w)
    slope, curve, changed = zero, zero, zero
    for j in range(len(matrix.start) - 1):
        move = along(matrix, at.d, j, w)
        store(at.dt, j, move)
        before = load(at.t, j, w)
        r, inside = _residual(group, j, before + move, mu, w)
        slope = muladd(r, move, slope)
        curve = muladd(inside * move, move, curve)
        if mu is None:
            _, was_inside = _residual(group, j, before, None, w)
            differs = inside - was_inside
            changed = muladd(differs, differs, changed)
    if matrix.n_equalities == matrix.n_rows:
        return slope, curve, changed  # no bounded rows, so no penalties
    pull, stiffness, switched = _penalties(group, at, one, w)
    return slope + pull, curve + stiffness, changed + switched


@kernel
def _slope(matrix, group, at, alpha, mu, w):
    """Slope and curvature at step alpha."""
    slope, curve = splat(0.0, w), splat(0.0, w)
    for j in range(len(matrix.start) - 1):
        move = load(at.dt, j, w)
        r, inside = _residual(group, j, muladd(alpha, move, load(at.t, j, w)), mu, w)
        slope = muladd(r, move, slope)
        curve = muladd(inside * move, move, curve)
    if matrix.n_equalities == matrix.n_rows:
        return slope, curve
    pull, stiffness, _ = _penalties(group, at, alpha, w)
    return slope + pull, curve + stiffness


@kernel
def _penalties(group, at, alpha, w):
    """What penalties add to slope and curvature at step alpha, and how many have switched on or
    off."""
    zero, penalty = splat(0.0, w), splat(PENALTY, w)
    slope, curve, changed = zero, zero, zero
    for i in range(len(at.zeta) // len(w)):
        before = load(group.v, i, w) - load(group.least, i, w) - load(at.zeta, i, w)
        move = load(at.d, i, w)
        now = muladd(alpha, move, before)
        bounded = load(group.bounded, i, w)
        on = greater(zero, now) * bounded
        differs = on - greater(zero, before) * bounded
        slope = muladd(on * penalty * now, move, slope)
        curve = muladd(on * penalty * move, move, curve)
        changed = muladd(differs, differs, changed)
    return slope, curve, changed


@kernel
def _update_multipliers(group, zeta, where, w):
    """Multiplier update of the augmented Lagrangian, in the lanes chosen by `where`."""
    zero = splat(0.0, w)
    for i in range(len(zeta) // len(w)):
        before = load(zeta, i, w)
        broken = load(group.v, i, w) - load(group.least, i, w) - before
        target = larger_of(zero - broken, zero) * load(group.bounded, i, w)
        store(zeta, i, select(where, target, before))


@kernel
def _all_positive(flags):
    for value in flags:
        if value <= 0.0:
            return False
    return True
