# type: ignore  (a kernel is Triton's language, not Python's, to a type checker)
"""Soft Newton steps on the device, for one instance: every max(t, 0) is rounded off.

The method is that of the CPU kernel, `projection.cpu.newton`. Letters as in `layout`; w holds the
derivatives of the residuals, which are between 0 and 1 here. Rows have no bounds.
"""

import triton
import triton.language as tl

from .. import constants
from .memory import poke
from .newton import (
    assemble_and_factorize,
    close_rows,
    move_rows,
    rounded,
    soft_slope_at,
    solve_rows,
    step_length,
)
from .passes import f64

SOFT_SLOPE = tl.constexpr(constants.SOFT_SLOPE)
SOFTENING = tl.constexpr(constants.DEVICE_SOFTENING)


@triton.jit(noinline=True)
def soften(mu, alpha, states, n, t, dt, r, w, N, C: tl.constexpr, NEAR: tl.constexpr):
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


@triton.jit
def soft_steps(count, mu, instance, entries, rows, factor, problem, ridge, config: tl.constexpr):
    """`count` soft steps from v and its offsets t, which are not judged; SOFTENING of mu is left
    after each."""
    t, r, dt, w = entries.t, entries.r, entries.dt, entries.w
    N, M = problem.columns.size, problem.rows.size
    step = tl.full((), 0, tl.int32)
    alpha = f64(0.0)
    mu = tl.maximum(mu, 1e-100)
    while step < count:
        soften(mu, alpha, instance.states, instance.n, t, dt, r, w, N, config.C, config.NEAR)
        close_rows(
            r, w, rows, factor.gram, problem.rows, (step == 0).to(tl.int32), f64(1.0), ridge,
            True, config,
        )  # fmt: skip
        assemble_and_factorize(r, w, rows, factor, problem, True, config)
        solve_rows(rows, factor, M, problem.blocks.H, config)
        slope, curve, begin = soft_slope_at(
            f64(1.0), mu, t, dt, instance.states, instance.n, rows.d, problem.columns, True, config
        )
        limit = SOFT_SLOPE * tl.abs(begin)
        alpha = step_length(slope, curve, limit, mu, entries, instance, rows, problem, True, config)
        move_rows(alpha, tl.full((), 0, tl.int32), rows, M, config)
        tl.debug_barrier()
        mu *= f64(SOFTENING)
        step += 1
