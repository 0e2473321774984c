# type: ignore  (a kernel is Triton's language, not Python's, to a type checker)
"""Semismooth Newton with an exact line search on the device, for one instance.

The method, its constants and their reasons are those of the CPU kernel, `projection.cpu.newton`.
Letters as in `layout`.
"""

from typing import NamedTuple

import triton
import triton.language as tl

from .. import constants
from .factor import factorize, solve
from .memory import peek, poke
from .passes import (
    ABSENT,
    BOUNDED,
    SHORT,
    across,
    apply_scale,
    f64,
    is_active,
    largest_and_sum,
    off_by,
    offsets,
    pair_weights,
    row_weights,
    store_diagonal,
    sums2,
    sums4,
)

PENALTY = tl.constexpr(constants.PENALTY)
SLOPE = tl.constexpr(constants.SLOPE)
TRIALS = tl.constexpr(constants.TRIALS)
MOVES = tl.constexpr(constants.MOVES)
EXACT = tl.constexpr(constants.EXACT)
GIVEN_UP = tl.constexpr(constants.GIVEN_UP)


class Pace(NamedTuple):
    """How far Newton goes."""

    cap: tl.tensor
    """Most steps."""
    patience: tl.tensor
    """Cut steps after which an instance is given up."""
    overshoot: tl.tensor
    """So is one whose slope after a full step is so many times the one before."""
    far: tl.tensor
    """And one whose rows are off by more than this at the beginning, in terms of the residuals."""
    begin: tl.tensor
    """It is left alone where its residual is below this before the first step,"""
    still: tl.tensor
    """or below this after one,"""
    fair: tl.tensor
    """or below this where the pieces have been found."""


@triton.jit
def close_rows(
    r, w, rows, values, lists, fresh, strict, ridge, WEIGHTED: tl.constexpr, config: tl.constexpr
):  # fmt: skip
    """The negative gradient in `rhs` and the diagonal in `values`, penalties and ridge included.

    D as in `row_weights`. Returns the largest row condition broken and the gap, from which the
    residual follows.
    """
    G: tl.constexpr = config.G
    SHARED: tl.constexpr = config.SHARED
    M = lists.size
    worst = tl.zeros([G], tl.float64)
    gap = tl.zeros([G], tl.float64)
    for base in range(0, M, G):
        i = base + tl.arange(0, G)
        inside = i < M
        at = tl.minimum(i, M - 1)
        what = tl.load(rows.kind + at)
        row_gradient, square = row_weights(r, w, lists, at, config.UR, WEIGHTED, config.NEAR)
        row_gradient = tl.where(what == ABSENT, 0.0, row_gradient)
        excess = peek(rows.v, at, SHARED)
        if config.BOUNDS:
            excess -= tl.load(rows.least + at)
            tight = (what == BOUNDED) & (excess <= 0.0)
            # A bound that starts out active starts with the multiplier that holds it.
            zeta = tl.where(tight, tl.maximum(row_gradient, 0.0) / PENALTY, 0.0)
            zeta = tl.where(fresh > 0, zeta, tl.load(rows.zeta + at))
            if fresh > 0:
                tl.store(rows.zeta + i, zeta, mask=inside)
            broken = excess - zeta
            on = (what == BOUNDED) & (broken < 0.0)
            poke(rows.rhs, i, -row_gradient - tl.where(on, PENALTY * broken, 0.0), inside, SHARED)
            square += tl.where(on, PENALTY, 0.0)
        else:
            poke(rows.rhs, i, -row_gradient, inside, SHARED)
        store_diagonal(square, what, rows.scale, values, i, inside, ridge, config.BOUNDS, SHARED)
        worst = tl.maximum(worst, tl.where(inside, off_by(row_gradient, excess, what, strict), 0.0))
        gap += tl.where(inside, excess * row_gradient, 0.0)
    return largest_and_sum(worst, gap, config.FAST)


@triton.jit(noinline=True)
def slope_at(alpha, t, dt, states, n, rows, columns, M, FIRST: tl.constexpr, config: tl.constexpr):
    """Slope and curvature at step alpha; FIRST also fills dt = A^T d, and says how many pieces
    differ from those at step 0 and what the slope was there."""
    C: tl.constexpr = config.C
    slope = tl.zeros([C], tl.float64)
    curve = tl.zeros([C], tl.float64)
    changed = tl.zeros([C], tl.float64)
    start = tl.zeros([C], tl.float64)
    for base in range(0, columns.size, C):
        j = base + tl.arange(0, C)
        before = tl.load(t + j)
        code = tl.load(states + j, mask=j < n, other=3).to(tl.int32)
        if FIRST:
            move = across(rows.d, columns, j, config.UC, config.SHARED)
            tl.store(dt + j, move)
        else:
            move = tl.load(dt + j)
        now = before + alpha * move
        active = is_active(now, code)
        slope += tl.where(active, now * move, 0.0)
        curve += tl.where(active, move * move, 0.0)
        if FIRST:
            was = is_active(before, code)
            changed += tl.where(active != was, 1.0, 0.0)
            start += tl.where(was, before * move, 0.0)
    if FIRST:
        total, bend, differ, begin = sums4(slope, curve, changed, start, config.FAST)
    else:
        total, bend = sums2(slope, curve, config.FAST)
        differ, begin = total * 0.0, total * 0.0
    if config.BOUNDS:
        pull, stiff, other, held = _penalties_at(alpha, rows, M, config)
        total += pull
        bend += stiff
        differ += other
        begin += held
    return total, bend, differ, begin


@triton.jit
def _penalties_at(alpha, rows, M, config: tl.constexpr):
    """What penalties add to slope and curvature at step alpha, how many have switched on or off,
    and what they add to the slope at step 0."""
    G: tl.constexpr = config.G
    slope = tl.zeros([G], tl.float64)
    curve = tl.zeros([G], tl.float64)
    changed = tl.zeros([G], tl.float64)
    start = tl.zeros([G], tl.float64)
    for base in range(0, M, G):
        i = base + tl.arange(0, G)
        inside = i < M
        at = tl.minimum(i, M - 1)
        bounded = tl.load(rows.kind + i, mask=inside, other=ABSENT) == BOUNDED
        before = peek(rows.v, at, config.SHARED) - tl.load(rows.least + at)
        before -= tl.load(rows.zeta + at)
        move = peek(rows.d, at, config.SHARED)
        now = before + alpha * move
        on = bounded & (now < 0.0)
        was = bounded & (before < 0.0)
        slope += tl.where(on, PENALTY * now * move, 0.0)
        curve += tl.where(on, PENALTY * move * move, 0.0)
        changed += tl.where(on != was, 1.0, 0.0)
        start += tl.where(was, PENALTY * before * move, 0.0)
    return sums4(slope, curve, changed, start, config.FAST)


@triton.jit
def move_rows(alpha, whole, rows, M, config: tl.constexpr):
    """v += alpha d; where the step was `whole`, the update of the bounds' multipliers."""
    G: tl.constexpr = config.G
    SHARED: tl.constexpr = config.SHARED
    for base in range(0, M, G):
        i = base + tl.arange(0, G)
        inside = i < M
        at = tl.minimum(i, M - 1)
        value = peek(rows.v, at, SHARED) + alpha * peek(rows.d, at, SHARED)
        poke(rows.v, i, value, inside, SHARED)
        if config.BOUNDS:
            zeta = tl.load(rows.zeta + i, mask=inside, other=0.0)
            broken = value - tl.load(rows.least + i, mask=inside, other=0.0) - zeta
            bounded = tl.load(rows.kind + i, mask=inside, other=ABSENT) == BOUNDED
            target = tl.where(bounded, tl.maximum(-broken, 0.0), 0.0)
            tl.store(rows.zeta + i, tl.where(whole > 0, target, zeta), mask=inside)


@triton.jit
def solve_rows(rows, factor, M, H, config: tl.constexpr):
    """d from `rhs`: `solve` for a matrix that was scaled where there are bounds."""
    if config.BOUNDS:
        apply_scale(rows.rhs, rows.scale, M, config.G, config.SHARED)
    inverses, below, above = factor.inverses, factor.below, factor.above
    solve(rows.rhs, rows.d, inverses, below, above, H, config.W, config.SHARED)
    if config.BOUNDS:
        apply_scale(rows.d, rows.scale, M, config.G, config.SHARED)


@triton.jit
def assemble_and_factorize(
    r, w, rows, factor, problem, WEIGHTED: tl.constexpr, config: tl.constexpr
):
    """The factor of A D A^T, of which `close_rows` has made the diagonal."""
    pair_weights(
        r, w, rows.scale, factor.gram, problem.pairs, problem.pair_rows, problem.rows.size,
        WEIGHTED, config,
    )  # fmt: skip
    tl.debug_barrier()
    factorize(factor, problem.blocks, config)
    tl.debug_barrier()


# --- the line search, for plain and for soft steps -----------------------------------------------


@triton.jit
def rounded(t, code, mu):
    """The residual of an entry with offset t and active set `code`, its corner rounded off by mu,
    and its derivative."""
    side = ((code & 1) - (code >> 1)).to(tl.float64)
    square = t * t + 4.0 * mu * mu
    inverse = tl.rsqrt(square)
    limited = (code == 1) | (code == 2)
    free = tl.where(code == 0, 1.0, 0.0)
    move = tl.where(limited, 0.5 * (t + side * square * inverse), free * t)
    return move, tl.where(limited, 0.5 * (1.0 + side * t * inverse), free)


@triton.jit(noinline=True)
def soft_slope_at(
    alpha, mu, t, dt, states, n, d, columns, FIRST: tl.constexpr, config: tl.constexpr
):
    """Slope and curvature at step alpha of a soft step; FIRST also fills dt = A^T d, and says what
    the slope was at step 0."""
    C: tl.constexpr = config.C
    slope = tl.zeros([C], tl.float64)
    curve = tl.zeros([C], tl.float64)
    start = tl.zeros([C], tl.float64)
    for base in range(0, columns.size, C):
        j = base + tl.arange(0, C)
        before = tl.load(t + j)
        code = tl.load(states + j, mask=j < n, other=3).to(tl.int32)
        if FIRST:
            move = across(d, columns, j, config.UC, config.SHARED)
            tl.store(dt + j, move)
            held, _ = rounded(before, code, mu)
            start += held * move
        else:
            move = tl.load(dt + j)
        now, share = rounded(before + alpha * move, code, mu)
        slope += now * move
        curve += share * move * move
    if FIRST:
        total, bend, begin, _ = sums4(slope, curve, start, start, config.FAST)
    else:
        total, bend = sums2(slope, curve, config.FAST)
        begin = total * 0.0
    return total, bend, begin


@triton.jit
def step_length(
    slope,
    curve,
    limit,
    mu,
    entries,
    instance,
    rows,
    problem,
    SOFT: tl.constexpr,
    config: tl.constexpr,
):
    """The step at which the slope along d is at most `limit`, from slope and curvature after a full
    step: Newton's method on the slope, which increases, kept inside a bracket."""
    alpha, low, high = f64(1.0), f64(0.0), f64(1e300)
    trial = tl.full((), 1, tl.int32)
    while (tl.abs(slope) > limit) & (trial < TRIALS):
        high = tl.where(slope > 0.0, alpha, high)
        low = tl.where(slope > 0.0, low, alpha)
        guess = alpha - slope / curve
        bisect = tl.where(high < 1e299, 0.5 * (low + high), 4.0 * alpha)
        alpha = tl.where((guess > low) & (guess < high), guess, bisect)
        if SOFT:
            slope, curve, _ = soft_slope_at(
                alpha, mu, entries.t, entries.dt, instance.states, instance.n, rows.d,
                problem.columns, False, config,
            )  # fmt: skip
        else:
            slope, curve, _, _ = slope_at(
                alpha, entries.t, entries.dt, instance.states, instance.n, rows, problem.columns,
                problem.rows.size, False, config,
            )  # fmt: skip
        trial += 1
    return alpha


@triton.jit
def newton_steps(pace, instance, entries, rows, factor, problem, ridge, config: tl.constexpr):
    """Steps from v at the given `pace`; returns how many, and what is left to others: 0 or, in
    terms of the residuals, how far its rows are off at the beginning where that is more than
    `far`, or GIVEN_UP."""
    zero = tl.full((), 0, tl.int32)
    steps, cuts, exact, going = zero, zero, zero, zero + 1
    off = f64(0.0)
    t, r, dt, M = entries.t, entries.r, entries.dt, problem.rows.size
    while going > 0:
        square = offsets(rows.v, instance, t, r, problem.columns, config)
        tl.debug_barrier()
        denominator = tl.maximum(tl.sqrt(square), SHORT * instance.size)
        # Lifting a multiplier to its bound at the end opens the gap by what it lacked, times |v|.
        strict = instance.size / tl.maximum(denominator, 1e-300)
        worst, gap = close_rows(
            r, r, rows, factor.gram, problem.rows, (steps == 0).to(tl.int32), strict, ridge,
            False, config,
        )  # fmt: skip
        limit = tl.where(steps == 0, pace.begin, tl.where(exact > 0, pace.fair, pace.still))
        limit = limit * denominator * denominator
        enough = tl.maximum(worst * denominator, tl.abs(gap)) < limit
        astray = (steps == 0) & (worst > pace.far * tl.sqrt(square / M)) & (~enough)
        off = tl.where(astray, worst / tl.sqrt(square / M), 0.0)
        if enough | (steps >= pace.cap) | astray:
            going = zero
        else:
            assemble_and_factorize(r, r, rows, factor, problem, False, config)
            solve_rows(rows, factor, M, problem.blocks.H, config)
            steps += 1
            slope, curve, changed, was = slope_at(
                f64(1.0), t, dt, instance.states, instance.n, rows, problem.columns, M, True,
                config,
            )  # fmt: skip
            limit = SLOPE * tl.abs(was)
            steep = tl.abs(slope) > limit
            whole = ((changed == 0.0) & (~steep)).to(tl.int32)
            flat = tl.abs(slope) < EXACT * limit
            cuts += steep.to(tl.int32)
            wild = slope > pace.overshoot * tl.abs(was)
            alpha = step_length(
                slope, curve, limit, was, entries, instance, rows, problem, False, config
            )
            exact += whole * flat.to(tl.int32)
            move_rows(alpha, whole, rows, M, config)
            tl.debug_barrier()
            if config.BOUNDS:
                finished = exact > MOVES
            else:
                finished = exact > 1  # the second corrects the rounding of the first
            given_up = (wild | (cuts >= pace.patience)) & (~finished)
            off = tl.where(given_up, f64(GIVEN_UP), f64(0.0))
            going = tl.where(finished | given_up | (steps >= pace.cap), zero, zero + 1)
    return steps, off
