# type: ignore  (a kernel is Triton's language, not Python's, to a type checker)
"""Soft Newton steps on the device, for what has overshot: every max(t, 0) is rounded off.

The method is that of the CPU kernel, `projection.newton`. Letters as in
`passes` and `factor`; w holds the derivatives of the residuals, which are between 0 and 1 here.
Rows have no bounds.
"""

import triton
import triton.language as tl

from .. import newton as cpu
from .factor import factorise
from .memory import poke
from .newton import TRIALS, close_rows, move_rows, solve_rows
from .passes import across, f64, offsets, pair_weights, sums2, sums4

SOFT_SLOPE = tl.constexpr(cpu.SOFT_SLOPE)
SOFTENING = tl.constexpr(cpu.SOFTENING)


@triton.jit
def rounded(t, code, mu):
    """The residual of an entry with offset t and state `code`, and its derivative."""
    side = ((code & 1) - (code >> 1)).to(tl.float64)
    root = tl.sqrt(t * t + 4.0 * mu * mu)
    limited = (code == 1) | (code == 2)
    free = tl.where(code == 0, 1.0, 0.0)
    move = tl.where(limited, 0.5 * (t + side * root), free * t)
    return move, tl.where(limited, 0.5 * (1.0 + side * t / root), free)


@triton.jit(noinline=True)
def soften(mu, states, t, r, w, n, N, C: tl.constexpr, NEAR: tl.constexpr):
    """Residuals in r and their derivatives in w, from the offsets in t."""
    for base in range(0, N, C):
        j = base + tl.arange(0, C)
        code = tl.load(states + j, mask=j < n, other=3).to(tl.int32)
        move, share = rounded(tl.load(t + j), code, mu)
        poke(r, j, move, j >= 0, NEAR)
        tl.store(w + j, share)
    tl.debug_barrier()


@triton.jit(noinline=True)
def soft_slope_at(
    alpha, mu, t, dt, states, d, col_take, col_weight, col_length, n, N,
    C: tl.constexpr, UC: tl.constexpr, FAST: tl.constexpr, SHARED: tl.constexpr,
    FIRST: tl.constexpr,
):  # fmt: skip
    """Slope and curvature at step alpha; FIRST also fills dt = A^T d, and says what the slope was
    at step 0."""
    slope = tl.zeros([C], tl.float64)
    curve = tl.zeros([C], tl.float64)
    start = tl.zeros([C], tl.float64)
    for base in range(0, N, C):
        j = base + tl.arange(0, C)
        before = tl.load(t + j)
        code = tl.load(states + j, mask=j < n, other=3).to(tl.int32)
        if FIRST:
            move = across(d, col_take, col_weight, j, N, col_length, UC, SHARED)
            tl.store(dt + j, move)
            held, _ = rounded(before, code, mu)
            start += held * move
        else:
            move = tl.load(dt + j)
        now, share = rounded(before + alpha * move, code, mu)
        slope += now * move
        curve += share * move * move
    if FIRST:
        total, bend, begin, _ = sums4(slope, curve, start, start, FAST)
    else:
        total, bend = sums2(slope, curve, FAST)
        begin = total * 0.0
    return total, bend, begin


@triton.jit
def soft_steps(
    count, cost, states, inverse, margin,
    t, r, dt, w, v, rhs, d, scale, zeta, least, kind, values, inverses, below, above, board, swap,
    col_take, col_weight, col_length, row_take, row_weight, row_length,
    pair_take, pair_weight, pair_rows, pair_length, opening, entering, middle, n, N, M, P, H, one,
    ridge, W: tl.constexpr, C: tl.constexpr, G: tl.constexpr, GP: tl.constexpr,
    UC: tl.constexpr, UR: tl.constexpr, UP: tl.constexpr,
    FAST: tl.constexpr, SHARED: tl.constexpr, NEAR: tl.constexpr,
):  # fmt: skip
    """`count` soft steps from v, which are not judged."""
    step = tl.full((), 0, tl.int32)
    mu = f64(0.0)
    while step < count:
        square = offsets(
            v, cost, states, inverse, margin, t, r, col_take, col_weight, n, N, col_length, C, UC,
            SHARED, NEAR,
        )  # fmt: skip
        tl.debug_barrier()
        mu = tl.where(step == 0, tl.maximum(tl.sqrt(square / n), 1e-100), mu * SOFTENING)
        soften(mu, states, t, r, w, n, N, C, NEAR)
        close_rows(
            r, w, rhs, scale, values, v, least, kind, zeta, (step == 0).to(tl.int32), f64(1.0),
            ridge, row_take, row_weight, row_length, M, G, UR, True, False, FAST, SHARED, NEAR,
        )  # fmt: skip
        pair_weights(
            r, w, scale, values, pair_take, pair_weight, pair_rows, P, M, pair_length, GP, UP,
            True, False, SHARED, NEAR,
        )  # fmt: skip
        tl.debug_barrier()
        factorise(
            values, opening, entering, middle, inverses, below, above, board, swap, H, one,
            W, tl.float64, FAST, SHARED, SHARED and W <= 2,
        )  # fmt: skip
        tl.debug_barrier()
        solve_rows(rhs, d, scale, inverses, below, above, M, H, W, G, False, SHARED)
        alpha, low, high = f64(1.0), f64(0.0), f64(1e300)
        slope, curve, begin = soft_slope_at(
            alpha, mu, t, dt, states, d, col_take, col_weight, col_length, n, N,
            C, UC, FAST, SHARED, True,
        )  # fmt: skip
        limit = SOFT_SLOPE * tl.abs(begin)
        trial = tl.full((), 1, tl.int32)
        while (tl.abs(slope) > limit) & (trial < TRIALS):
            high = tl.where(slope > 0.0, alpha, high)
            low = tl.where(slope > 0.0, low, alpha)
            guess = alpha - slope / curve
            bisect = tl.where(high < 1e299, 0.5 * (low + high), 4.0 * alpha)
            alpha = tl.where((guess > low) & (guess < high), guess, bisect)
            slope, curve, begin = soft_slope_at(
                alpha, mu, t, dt, states, d, col_take, col_weight, col_length, n, N,
                C, UC, FAST, SHARED, False,
            )  # fmt: skip
            trial += 1
        move_rows(alpha, tl.full((), 0, tl.int32), v, d, least, kind, zeta, M, G, False, SHARED)
        tl.debug_barrier()
        step += 1
