# type: ignore  (a kernel is Triton's language, not Python's, to a type checker)
"""Semismooth Newton with an exact line search on the device, for one instance.

The method, its constants and their reasons are those of the CPU kernel, `projection.cpu.newton`.
Letters as in `passes` and `factor`. Scratch pointers have the names of what they hold.
"""

import triton
import triton.language as tl

from .factor import factorise, solve
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

SPRING = tl.constexpr(1e4)
SLOPE = tl.constexpr(0.1)
TRIALS = tl.constexpr(30)
MOVES = tl.constexpr(4)
EXACT = tl.constexpr(1e-7)
GIVEN_UP = tl.constexpr(1e9)


@triton.jit
def close_rows(
    r, w, rhs, scale, values, v, least, kind, zeta, fresh, strict, ridge,
    row_take, row_weight, row_length, M,
    G: tl.constexpr, UR: tl.constexpr, WEIGHTED: tl.constexpr, BOUNDS: tl.constexpr,
    FAST: tl.constexpr, SHARED: tl.constexpr, NEAR: tl.constexpr,
):  # fmt: skip
    """The negative gradient in `rhs` and the diagonal in `values`, springs and ridge included.

    D as in `row_weights`. Returns the largest row condition broken and the gap, from which the
    residual follows.
    """
    worst = tl.zeros([G], tl.float64)
    gap = tl.zeros([G], tl.float64)
    for base in range(0, M, G):
        i = base + tl.arange(0, G)
        inside = i < M
        at = tl.minimum(i, M - 1)
        what = tl.load(kind + at)
        slant, square = row_weights(
            r, w, row_take, row_weight, at, M, row_length, UR, WEIGHTED, NEAR
        )
        slant = tl.where(what == ABSENT, 0.0, slant)
        excess = peek(v, at, SHARED)
        if BOUNDS:
            excess -= tl.load(least + at)
            tight = (what == BOUNDED) & (excess <= 0.0)
            # A bound that starts out tight starts with the force that holds it.
            rest = tl.where(tight, tl.maximum(slant, 0.0) / SPRING, 0.0)
            rest = tl.where(fresh > 0, rest, tl.load(zeta + at))
            if fresh > 0:
                tl.store(zeta + i, rest, mask=inside)
            stretch = excess - rest
            taut = (what == BOUNDED) & (stretch < 0.0)
            poke(rhs, i, -slant - tl.where(taut, SPRING * stretch, 0.0), inside, SHARED)
            square += tl.where(taut, SPRING, 0.0)
        else:
            poke(rhs, i, -slant, inside, SHARED)
        store_diagonal(square, what, scale, values, i, inside, ridge, BOUNDS, SHARED)
        worst = tl.maximum(worst, tl.where(inside, off_by(slant, excess, what, strict), 0.0))
        gap += tl.where(inside, excess * slant, 0.0)
    return largest_and_sum(worst, gap, FAST)


@triton.jit(noinline=True)
def slope_at(
    alpha, t, dt, states, d, col_take, col_weight, col_length, v, least, kind, zeta, n, N, M,
    C: tl.constexpr, G: tl.constexpr, UC: tl.constexpr, BOUNDS: tl.constexpr,
    FAST: tl.constexpr, SHARED: tl.constexpr, FIRST: tl.constexpr,
):  # fmt: skip
    """Slope and curvature at step alpha; FIRST also fills dt = A^T d, and says how many pieces
    differ from those at step 0 and what the slope was there."""
    slope = tl.zeros([C], tl.float64)
    curve = tl.zeros([C], tl.float64)
    changed = tl.zeros([C], tl.float64)
    start = tl.zeros([C], tl.float64)
    for base in range(0, N, C):
        j = base + tl.arange(0, C)
        before = tl.load(t + j)
        code = tl.load(states + j, mask=j < n, other=3).to(tl.int32)
        if FIRST:
            move = across(d, col_take, col_weight, j, N, col_length, UC, SHARED)
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
        total, bend, differ, begin = sums4(slope, curve, changed, start, FAST)
    else:
        total, bend = sums2(slope, curve, FAST)
        differ, begin = total * 0.0, total * 0.0
    if BOUNDS:
        pull, stiff, other, held = _springs_at(alpha, d, v, least, kind, zeta, M, G, FAST, SHARED)
        total += pull
        bend += stiff
        differ += other
        begin += held
    return total, bend, differ, begin


@triton.jit
def _springs_at(
    alpha, d, v, least, kind, zeta, M,
    G: tl.constexpr, FAST: tl.constexpr, SHARED: tl.constexpr,
):  # fmt: skip
    slope = tl.zeros([G], tl.float64)
    curve = tl.zeros([G], tl.float64)
    changed = tl.zeros([G], tl.float64)
    start = tl.zeros([G], tl.float64)
    for base in range(0, M, G):
        i = base + tl.arange(0, G)
        inside = i < M
        at = tl.minimum(i, M - 1)
        bounded = tl.load(kind + i, mask=inside, other=ABSENT) == BOUNDED
        before = peek(v, at, SHARED) - tl.load(least + at) - tl.load(zeta + at)
        move = peek(d, at, SHARED)
        now = before + alpha * move
        taut = bounded & (now < 0.0)
        was = bounded & (before < 0.0)
        slope += tl.where(taut, SPRING * now * move, 0.0)
        curve += tl.where(taut, SPRING * move * move, 0.0)
        changed += tl.where(taut != was, 1.0, 0.0)
        start += tl.where(was, SPRING * before * move, 0.0)
    return sums4(slope, curve, changed, start, FAST)


@triton.jit
def move_rows(
    alpha, whole, v, d, least, kind, zeta, M,
    G: tl.constexpr, BOUNDS: tl.constexpr, SHARED: tl.constexpr,
):  # fmt: skip
    """v += alpha d; where the step was `whole`, the multiplier update of the springs."""
    for base in range(0, M, G):
        i = base + tl.arange(0, G)
        inside = i < M
        at = tl.minimum(i, M - 1)
        value = peek(v, at, SHARED) + alpha * peek(d, at, SHARED)
        poke(v, i, value, inside, SHARED)
        if BOUNDS:
            rest = tl.load(zeta + i, mask=inside, other=0.0)
            stretch = value - tl.load(least + i, mask=inside, other=0.0) - rest
            bounded = tl.load(kind + i, mask=inside, other=ABSENT) == BOUNDED
            target = tl.where(bounded, tl.maximum(-stretch, 0.0), 0.0)
            tl.store(zeta + i, tl.where(whole > 0, target, rest), mask=inside)


@triton.jit
def solve_rows(
    rhs, d, scale, inverses, below, above, M, H,
    W: tl.constexpr, G: tl.constexpr, BOUNDS: tl.constexpr, SHARED: tl.constexpr,
):  # fmt: skip
    """`solve` for a matrix that was scaled where there are bounds."""
    if BOUNDS:
        apply_scale(rhs, scale, M, G, SHARED)
    solve(rhs, d, inverses, below, above, H, W, SHARED)
    if BOUNDS:
        apply_scale(d, scale, M, G, SHARED)


@triton.jit
def newton_steps(
    cap, patience, overshoot, far, begin, still, fair, cost, states, inverse, margin, size,
    t, r, dt, v, rhs, d, scale, zeta, least, kind, values, inverses, below, above, board, swap,
    col_take, col_weight, col_length, row_take, row_weight, row_length,
    pair_take, pair_weight, pair_rows, pair_length, opening, entering, middle, n, N, M, P, H, one,
    ridge, W: tl.constexpr, C: tl.constexpr, G: tl.constexpr, GP: tl.constexpr,
    UC: tl.constexpr, UR: tl.constexpr, UP: tl.constexpr, BOUNDS: tl.constexpr,
    KIND: tl.constexpr, FAST: tl.constexpr, SHARED: tl.constexpr, NEAR: tl.constexpr,
):  # fmt: skip
    """At most `cap` steps from v, fewer where nothing is left to do; returns how many, and what
    is left to others: 0 or, in terms of the residuals, how far its rows are off at the beginning
    where that is more than `far`, or GIVEN_UP.

    Left alone where the residual is below `begin` before the first step or below `still` after one,
    or below `fair` where the pieces have been found; given up after `patience` cut steps, or once
    the slope after a full step is `overshoot` times the one before.
    """
    zero = tl.full((), 0, tl.int32)
    steps, cuts, exact, going = zero, zero, zero, zero + 1
    off = f64(0.0)
    while going > 0:
        square = offsets(
            v, cost, states, inverse, margin, t, r, col_take, col_weight, n, N, col_length, C, UC,
            SHARED, NEAR,
        )  # fmt: skip
        tl.debug_barrier()
        yard = tl.maximum(tl.sqrt(square), SHORT * size)
        # Lifting a multiplier to its bound at the end opens the gap by what it lacked, times |v|.
        worst, gap = close_rows(
            r, r, rhs, scale, values, v, least, kind, zeta, (steps == 0).to(tl.int32),
            size / tl.maximum(yard, 1e-300), ridge, row_take, row_weight, row_length, M,
            G, UR, False, BOUNDS, FAST, SHARED, NEAR,
        )  # fmt: skip
        limit = tl.where(steps == 0, begin, tl.where(exact > 0, fair, still)) * yard * yard
        enough = tl.maximum(worst * yard, tl.abs(gap)) < limit
        astray = (steps == 0) & (worst > far * tl.sqrt(square / M)) & (~enough)
        off = tl.where(astray, worst / tl.sqrt(square / M), 0.0)
        if enough | (steps >= cap) | astray:
            going = zero
        else:
            pair_weights(
                r, r, scale, values, pair_take, pair_weight, pair_rows, P, M, pair_length, GP, UP,
                False, BOUNDS, SHARED, NEAR,
            )  # fmt: skip
            tl.debug_barrier()
            factorise(
                values, opening, entering, middle, inverses, below, above, board, swap, H, one,
                W, KIND, FAST, SHARED, SHARED and W <= 2,
            )  # fmt: skip
            tl.debug_barrier()
            solve_rows(rhs, d, scale, inverses, below, above, M, H, W, G, BOUNDS, SHARED)
            steps += 1
            alpha, low, high = f64(1.0), f64(0.0), f64(1e300)
            slope, curve, changed, was = slope_at(
                alpha, t, dt, states, d, col_take, col_weight, col_length, v, least, kind, zeta,
                n, N, M, C, G, UC, BOUNDS, FAST, SHARED, True,
            )  # fmt: skip
            limit = SLOPE * tl.abs(was)
            steep = tl.abs(slope) > limit
            whole = ((changed == 0.0) & (~steep)).to(tl.int32)
            flat = tl.abs(slope) < EXACT * limit
            cuts += steep.to(tl.int32)
            wild = slope > overshoot * tl.abs(was)
            trial = zero + 1
            while steep & (trial < TRIALS):
                high = tl.where(slope > 0.0, alpha, high)
                low = tl.where(slope > 0.0, low, alpha)
                guess = alpha - slope / curve
                bisect = tl.where(high < 1e299, 0.5 * (low + high), 4.0 * alpha)
                alpha = tl.where((guess > low) & (guess < high), guess, bisect)
                slope, curve, changed, was = slope_at(
                    alpha, t, dt, states, d, col_take, col_weight, col_length, v, least, kind,
                    zeta, n, N, M, C, G, UC, BOUNDS, FAST, SHARED, False,
                )  # fmt: skip
                steep = tl.abs(slope) > limit
                trial += 1
            exact += whole * flat.to(tl.int32)
            move_rows(alpha, whole, v, d, least, kind, zeta, M, G, BOUNDS, SHARED)
            tl.debug_barrier()
            if BOUNDS:
                finished = exact > MOVES
            else:
                finished = exact > 1  # the second corrects the rounding of the first
            given_up = (wild | (cuts >= patience)) & (~finished)
            off = tl.where(given_up, f64(GIVEN_UP), f64(0.0))
            going = tl.where(finished | given_up | (steps >= cap), zero, zero + 1)
    return steps, off
