# type: ignore  (a kernel is Triton's language, not Python's, to a type checker)
"""Soft Newton steps on the device, for one instance: every max(t, 0) is rounded off.

The method is that of the CPU kernel, `projection.cpu.newton`. Letters as in
`passes` and `factor`; w holds the derivatives of the residuals, which are between 0 and 1 here.
Rows have no bounds.
"""

import triton
import triton.language as tl

from ..cpu import newton as cpu
from .factor import factorise
from .memory import poke
from .newton import TRIALS, close_rows, move_rows, solve_rows
from .passes import across, f64, pair_weights, sums2, sums4

SOFT_SLOPE = tl.constexpr(cpu.SOFT_SLOPE)


@triton.jit
def rounded(t, code, mu):
    """The residual of an entry with offset t and state `code`, and its derivative."""
    side = ((code & 1) - (code >> 1)).to(tl.float64)
    square = t * t + 4.0 * mu * mu
    inverse = tl.rsqrt(square)
    limited = (code == 1) | (code == 2)
    free = tl.where(code == 0, 1.0, 0.0)
    move = tl.where(limited, 0.5 * (t + side * square * inverse), free * t)
    return move, tl.where(limited, 0.5 * (1.0 + side * t * inverse), free)


@triton.jit(noinline=True)
def soften(mu, alpha, states, t, dt, r, w, n, N, C: tl.constexpr, NEAR: tl.constexpr):
    """Residuals in r and their derivatives in w, from the offsets in t after a step alpha."""
    for base in range(0, N, C):
        j = base + tl.arange(0, C)
        code = tl.load(states + j, mask=j < n, other=3).to(tl.int32)
        offset = tl.load(t + j)
        if alpha > 0.0:
            offset += alpha * tl.load(dt + j)
            tl.store(t + j, offset)
        move, share = rounded(offset, code, mu)
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
    count, mu, softening, states,
    t, r, dt, w, v, rhs, d, scale, zeta, least, kind, values, inverses, below, above, board, swap,
    col_take, col_weight, col_length, row_take, row_weight, row_length,
    pair_take, pair_weight, pair_rows, pair_length, opening, entering, middle, n, N, M, P, H, one,
    ridge, W: tl.constexpr, C: tl.constexpr, G: tl.constexpr, GP: tl.constexpr,
    UC: tl.constexpr, UR: tl.constexpr, UP: tl.constexpr, KIND: tl.constexpr,
    FAST: tl.constexpr, SHARED: tl.constexpr, NEAR: tl.constexpr,
):  # fmt: skip
    """`count` soft steps from v and its offsets t, which are not judged; `softening` of mu is left
    after each."""
    step = tl.full((), 0, tl.int32)
    alpha = f64(0.0)
    mu = tl.maximum(mu, 1e-100)
    while step < count:
        soften(mu, alpha, states, t, dt, r, w, n, N, C, NEAR)
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
            W, KIND, FAST, SHARED, SHARED and W <= 2,
        )  # fmt: skip
        tl.debug_barrier()
        solve_rows(rhs, d, scale, inverses, below, above, M, H, W, G, False, SHARED)
        low, high = f64(0.0), f64(1e300)
        alpha = low + 1.0
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
        mu *= softening
        step += 1
