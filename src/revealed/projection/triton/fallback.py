# type: ignore  (a kernel is Triton's language, not Python's, to a type checker)
"""For what the first try left above the tolerance: interior point, then Newton, stage by stage.

The stages are the CPU kernel's, without the soft steps, which came before. An instance keeps the
best multipliers it has had here. One launch serves a batch: programs pass over instances whose
residual is within the tolerance.
"""

import triton
import triton.language as tl

from ..cpu import kernel as cpu
from . import first
from .certify import residual_from, residual_rows
from .interior import interior_steps
from .memory import address, after, peek, poke
from .newton import newton_steps
from .passes import BOUNDED, f64, line_of, load_rows, offsets, size_of, store_rows, unit_of

START = ("cap", "patience", "warm", "placed", "start_ptr", "places_ptr")
START += ("first_inverse", "first_below", "first_above")
"""What only a first try is told."""
NUMBERS = [name for name in first.NUMBERS if name not in START]
NUMBERS += ["max_iter"]
POINTERS = [name for name in first.POINTERS if name not in START]
POINTERS += ["residual_ptr", "due_ptr"]

INTERIOR_STEPS = tl.constexpr(cpu.INTERIOR_STEPS)
STAGES = tl.constexpr(len(cpu.STAGES) - 1)


@triton.jit
def admit(v, least, kind, M, G: tl.constexpr, SHARED: tl.constexpr):
    """Lift bounded multipliers to what they must be at least."""
    for base in range(0, M, G):
        i = base + tl.arange(0, G)
        inside = i < M
        bounded = tl.load(kind + i, mask=inside, other=0) == BOUNDED
        value = peek(v, tl.minimum(i, M - 1), SHARED)
        lifted = tl.maximum(value, tl.load(least + i, mask=inside, other=0.0))
        poke(v, i, tl.where(bounded, lifted, value), inside, SHARED)


@triton.jit(do_not_specialize=NUMBERS, do_not_specialize_on_alignment=POINTERS)
def rescue_kernel(
    cost_ptr, states_ptr, active_ptr, margin_ptr, index_ptr, multipliers_ptr, steps_ptr,
    residual_ptr, due_ptr, scratch_ptr, stride,
    col_take, col_weight, row_take, row_weight, pair_take, pair_weight,
    pair_rows, opening, entering, middle, norm, source,
    B, n, n_eq, n_ub, N, M, P, H, one, col_length, row_length, pair_length, indexed, max_iter,
    tol: tl.float64, still: tl.float64, fair: tl.float64, ridge: tl.float64,
    inner_ridge: tl.float64,
    W: tl.constexpr, C: tl.constexpr, G: tl.constexpr, GP: tl.constexpr, UC: tl.constexpr,
    UR: tl.constexpr, UP: tl.constexpr, BOUNDS: tl.constexpr, FAST: tl.constexpr,
    SHARED: tl.constexpr, NEAR: tl.constexpr, PTX: tl.constexpr,
):  # fmt: skip
    """Better multipliers where `residual` is above `tol`; `due` says where that was."""
    program = tl.program_id(0)
    scratch = scratch_ptr + program.to(tl.int64) * stride
    v = address(scratch, PTX, SHARED)
    rhs = after(v, M, SHARED)
    d = after(rhs, M, SHARED)
    scale = after(d, M, SHARED)
    board = after(scale, M if BOUNDS else 0, SHARED)
    t = scratch + 4 * M + 128 * (W + 1) + 256 * W * (W + 1)
    r = t + N
    if NEAR:
        r = board  # residuals are done with when an elimination begins
    swap = scratch + 4 * M + 128 * (W + 1)
    if SHARED and W <= 2:
        swap = after(board, 128 * (W + 1), SHARED)
    dt = t + 2 * N
    w = dt + N
    z = w + N
    room = z + N
    zeta = room + N
    least = zeta + M
    y = least + M
    force = y + M
    dy = force + M
    dforce = dy + M
    kind = (dforce + M).to(tl.pointer_type(tl.int32))
    values = dforce + 2 * M
    inverses = values + 1 + M + P
    below = inverses + (2 * H + W) * 256
    above = below + (2 * H * W + W * (W - 1) // 2 + W) * 256
    tl.store(values, f64(0.0))
    b = program
    while b < B:
        reached = tl.load(residual_ptr + b)
        reached = tl.where(reached == reached, reached, f64(float("inf")))
        tl.store(due_ptr + b, (reached > tol).to(tl.int8))
        if reached > tol:
            line = line_of(b, index_ptr, indexed)
            cost = cost_ptr + b.to(tl.int64) * n
            states = states_ptr + line * n
            multipliers = multipliers_ptr + b.to(tl.int64) * (n_eq + n_ub)
            margin = tl.load(margin_ptr + line)
            unit, inverse = unit_of(cost, margin, n, N, C)
            margin = margin * inverse
            size = size_of(cost, inverse, margin, n, N, C)
            steps = tl.load(steps_ptr + b)
            stage = tl.full((), 0, tl.int32)
            while (reached > tol) & (stage < STAGES) & (steps < max_iter):
                tl.debug_barrier()
                load_rows(
                    multipliers, active_ptr + line * n_ub, norm, source, v, least, kind, inverse,
                    margin, 1, n_eq, M, G, SHARED,
                )  # fmt: skip
                tl.debug_barrier()
                goal = tl.where(stage == 0, 1e-6, tl.where(stage == 1, 1e-10, 1e-14))
                polish = tl.where(stage == 0, 15, tl.where(stage == 1, 40, 100))
                steps += interior_steps(
                    tl.minimum(INTERIOR_STEPS, max_iter - steps), goal, inner_ridge,
                    cost, states, inverse, margin, size, t, r, dt, w, z, room,
                    v, rhs, d, scale, least, kind, y, force, dy, dforce,
                    values, inverses, below, above, board, swap,
                    col_take, col_weight, col_length, row_take, row_weight, row_length,
                    pair_take, pair_weight, pair_rows, pair_length, opening, entering, middle,
                    n, N, M, P, H, one,
                    W, C, G, GP, UC, UR, UP, BOUNDS, FAST, SHARED, NEAR,
                )  # fmt: skip
                tl.debug_barrier()
                polish = tl.minimum(polish, max_iter - steps)
                taken, _ = newton_steps(
                    polish, polish + 1, f64(float("inf")), f64(float("inf")), still, still, fair,
                    cost, states, inverse, margin, size,
                    t, r, dt, v, rhs, d, scale, zeta, least, kind,
                    values, inverses, below, above, board, swap,
                    col_take, col_weight, col_length, row_take, row_weight, row_length,
                    pair_take, pair_weight, pair_rows, pair_length, opening, entering, middle,
                    n, N, M, P, H, one,
                    ridge, W, C, G, GP, UC, UR, UP, BOUNDS, tl.float64, FAST, SHARED, NEAR,
                )  # fmt: skip
                steps += taken
                tl.debug_barrier()
                admit(v, least, kind, M, G, SHARED)
                tl.debug_barrier()
                square = offsets(
                    v, cost, states, inverse, margin, t, r, col_take, col_weight, n, N,
                    col_length, C, UC, SHARED, NEAR,
                )  # fmt: skip
                tl.debug_barrier()
                worst, gap, lacking = residual_rows(
                    r, v, least, kind, row_take, row_weight, row_length, M, G, UR, SHARED, NEAR
                )
                residual = residual_from(square, worst, gap, lacking, size)
                if residual <= reached:
                    store_rows(multipliers, norm, source, v, least, kind, unit, M, G, SHARED)
                    reached = residual
                stage += 1
            tl.store(steps_ptr + b, steps)
        b += tl.num_programs(0)
