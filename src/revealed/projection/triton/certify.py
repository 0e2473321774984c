# type: ignore  (a kernel is Triton's language, not Python's, to a type checker)
"""From multipliers to a point that carries its own proof, on the device.

A launch of its own that knows nothing of how the multipliers were found; the residual is that of
`projection.certificate`, and so are the reasons. Only instances that are `due` are looked at.
"""

import triton
import triton.language as tl

from .layout import Gather, Instance, Origin, entry
from .memory import peek
from .passes import (
    ABSENT,
    BOUNDED,
    SHORT,
    across,
    f64,
    is_active,
    line_of,
    load_rows,
    off_by,
    shift_of,
    size_of,
    unit_of,
)

SOLVED = tl.constexpr(0)
INACCURATE = tl.constexpr(1)
MAX_ITER = tl.constexpr(2)


@triton.jit
def residual_rows(
    r,
    v,
    least,
    kind,
    lists,
    G: tl.constexpr,
    U: tl.constexpr,
    SHARED: tl.constexpr,
    NEAR: tl.constexpr,
):
    """The largest row condition broken, the duality gap, and what a multiplier lacks most."""
    M = lists.size
    worst = tl.zeros([G], tl.float64)
    gap = tl.zeros([G], tl.float64)
    below = tl.zeros([G], tl.float64)
    for base in range(0, M, G):
        i = base + tl.arange(0, G)
        inside = i < M
        at = tl.minimum(i, M - 1)
        what = tl.load(kind + at)
        row_gradient = across(r, lists, at, U, NEAR)
        row_gradient = tl.where(what == ABSENT, 0.0, row_gradient)
        excess = peek(v, at, SHARED) - tl.load(least + at)
        worst = tl.maximum(worst, tl.where(inside, off_by(row_gradient, excess, what, 1.0), 0.0))
        gap += tl.where(inside, excess * row_gradient, 0.0)
        below = tl.maximum(below, tl.where(inside & (what == BOUNDED), -excess, 0.0))
    return tl.max(worst, axis=0), tl.sum(gap, axis=0), tl.max(below, axis=0)


@triton.jit
def residual_from(square, worst, gap, below, size):
    """The residual from what the passes found: a short move proves itself, unless a multiplier
    below its bound leaves the point outside."""
    denominator = tl.maximum(tl.sqrt(square), SHORT * size)
    denominator = tl.where(denominator == 0.0, f64(1.0), denominator)
    missed = tl.maximum(worst / denominator, tl.abs(gap) / (denominator * denominator))
    short = tl.sqrt(square) / denominator
    missed = tl.maximum(tl.where(short < missed, short, missed), below / denominator)
    return missed + (gap - gap)  # a maximum drops NaN, a sum keeps it


@entry
def certify_kernel(
    cost_ptr, states_ptr, active_ptr, margin_ptr, index_ptr, multipliers_ptr, steps_ptr, due_ptr,
    point_ptr, distance_ptr, residual_ptr, solved_ptr, status_ptr, scratch_ptr, stride,
    col_take, col_weight, row_take, row_weight, norm, source,
    B, n, n_eq, n_ub, N, M, col_length, row_length, indexed, all_due, max_iter,
    tol: tl.float64, config: tl.constexpr,
):  # fmt: skip
    """Fill point, distance, residual, solved and status from the multipliers."""
    columns = Gather(col_take, col_weight, N, col_length)
    lists = Gather(row_take, row_weight, M, row_length)
    C: tl.constexpr = config.C
    G: tl.constexpr = config.G
    origin = Origin(source, norm, n_eq)
    program = tl.program_id(0)
    r = scratch_ptr + program.to(tl.int64) * stride
    v = r + N
    least = v + M
    kind = (least + M).to(tl.pointer_type(tl.int32))
    b = program
    while b < B:
        if (all_due > 0) | (tl.load(due_ptr + b) > 0):
            line = line_of(b, index_ptr, indexed)
            cost = cost_ptr + b.to(tl.int64) * n
            margin = tl.load(margin_ptr + line)
            unit, inverse = unit_of(cost, margin, n, N, C)
            margin = margin * inverse
            size = size_of(cost, inverse, margin, n, N, C)
            instance = Instance(cost, states_ptr + line * n, n, inverse, margin, size)
            tl.debug_barrier()
            load_rows(
                multipliers_ptr + b.to(tl.int64) * (n_eq + n_ub), active_ptr + line * n_ub,
                origin, instance, v, least, kind, 1, M, G, False,
            )  # fmt: skip
            tl.debug_barrier()
            square = tl.zeros([C], tl.float64)
            for base in range(0, N, C):
                j = base + tl.arange(0, C)
                shift, code = shift_of(instance, j)
                offset = across(v, columns, j, config.UC, False) - shift
                move = tl.where(is_active(offset, code), offset, 0.0)
                tl.store(r + j, move)
                square += move * move
                q = tl.load(cost + j, mask=j < n, other=0.0).to(tl.float64)
                tl.store(point_ptr + b.to(tl.int64) * n + j, q + move * unit, mask=j < n)
            total = tl.sum(square, axis=0)
            tl.debug_barrier()
            worst, gap, below = residual_rows(r, v, least, kind, lists, G, config.UR, False, False)
            residual = residual_from(total, worst, gap, below, size)
            distance = tl.sqrt(total) * unit
            finite = (distance - distance) == 0.0
            solved = (residual <= tol) & finite & ((total - total) == 0.0)
            spent = tl.load(steps_ptr + b) >= max_iter
            status = tl.where(solved, SOLVED, tl.where(spent, MAX_ITER, INACCURATE))
            tl.store(distance_ptr + b, distance)
            tl.store(residual_ptr + b, residual)
            tl.store(solved_ptr + b, solved)
            tl.store(status_ptr + b, status.to(tl.int8))
        b += tl.num_programs(0)
