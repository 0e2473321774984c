# type: ignore  (a kernel is Triton's language, not Python's, to a type checker)
"""The first try: a start, and Newton and soft steps from there, one Triton program per instance.

The whole loop runs inside the program, so that a batch is one launch. Scratch is a few vectors, the
entries of A D A^T and its eliminated blocks for each program, and stays in the caches.

Where Newton gives up, soft steps go on, as on the CPU; but in the same program, for a batch would
wait twice for its slowest instance. They also come first where a warm start has most of its pieces
wrong: late in training the residuals are no larger than their changes, full steps overshoot, and
one instance of a hundred would take twice as many as the others.

Letters as in `passes` and `factor`. Scratch pointers have the names of what they hold.
"""

import triton
import triton.language as tl

from .factor import solve
from .memory import address, after, peek, poke
from .newton import newton_steps
from .passes import (
    ABSENT,
    BOUNDED,
    across,
    f64,
    is_finite,
    line_of,
    load_rows,
    offsets,
    shift_of,
    size_of,
    store_rows,
    unit_of,
)
from .soft import soft_steps

NUMBERS = ["stride", "B", "n", "n_eq", "n_ub", "N", "M", "P", "H", "one", "col_length"]
NUMBERS += ["row_length", "pair_length", "indexed", "warm", "placed", "cap", "patience"]
POINTERS = ["cost_ptr", "states_ptr", "active_ptr", "margin_ptr", "index_ptr", "multipliers_ptr"]
POINTERS += ["steps_ptr", "scratch_ptr", "col_take", "col_weight", "row_take", "row_weight"]
POINTERS += ["pair_take", "pair_weight", "pair_rows", "opening", "entering", "middle", "norm"]
POINTERS += ["source", "first_inverse", "first_below", "first_above", "start_ptr", "places_ptr"]
"""Nothing is made of alignment and sizes: tiles then keep one layout from load to store, one
number to a thread, and need no exchange through shared memory inside the loops."""

ROUNDS = tl.constexpr(2)
"""How often there may be soft steps."""
SOFT_STEPS = tl.constexpr(4)
SOFTENING = tl.constexpr(0.2)
"""What is left of mu after one; it starts at the root mean square of the residuals."""
MILD = tl.constexpr(1.5)
"""A start whose rows are off by less than this, in terms of the residuals, needs fewer of them:"""
MILD_STEPS = tl.constexpr(2)
MILD_ROUGH = tl.constexpr(0.2)
"""and rounded off less, in terms of that root mean square."""


@triton.jit(noinline=True)
def least_squares_start(
    cost, states, inverse, margin, r, rhs, v, least, kind,
    row_take, row_weight, row_length, first_inverse, first_below, first_above, n, N, M, H,
    W: tl.constexpr, C: tl.constexpr, G: tl.constexpr, UR: tl.constexpr, SHARED: tl.constexpr,
    NEAR: tl.constexpr,
):  # fmt: skip
    """v as if every entry were free, with the factor of A A^T that came with the plan."""
    for base in range(0, N, C):
        j = base + tl.arange(0, C)
        shift, _ = shift_of(cost, states, inverse, margin, j, n)
        poke(r, j, shift, j >= 0, NEAR)
    tl.debug_barrier()
    for base in range(0, M, G):
        i = base + tl.arange(0, G)
        at = tl.minimum(i, M - 1)
        total = across(r, row_take, row_weight, at, M, row_length, UR, NEAR)
        poke(rhs, i, total, i < M, SHARED)
    tl.debug_barrier()
    solve(rhs, v, first_inverse, first_below, first_above, H, W, SHARED)
    for base in range(0, M, G):
        i = base + tl.arange(0, G)
        inside = i < M
        what = tl.load(kind + i, mask=inside, other=ABSENT)
        value = peek(v, tl.minimum(i, M - 1), SHARED)
        value = tl.where(what == ABSENT, 0.0, value)
        value = tl.where(
            what == BOUNDED, tl.maximum(value, tl.load(least + i, mask=inside, other=0.0)), value
        )
        poke(v, i, value, inside, SHARED)


@triton.jit(do_not_specialize=NUMBERS, do_not_specialize_on_alignment=POINTERS)
def first_kernel(
    cost_ptr, states_ptr, active_ptr, margin_ptr, index_ptr, multipliers_ptr, steps_ptr,
    scratch_ptr, stride, col_take, col_weight, row_take, row_weight, pair_take, pair_weight,
    pair_rows, opening, entering, middle, norm, source, first_inverse, first_below, first_above,
    start_ptr, places_ptr,
    B, n, n_eq, n_ub, N, M, P, H, one, col_length, row_length, pair_length, indexed, warm, placed,
    cap, patience, overshoot: tl.float64, far: tl.float64, tol: tl.float64, still: tl.float64,
    fair: tl.float64, ridge: tl.float64,
    W: tl.constexpr, C: tl.constexpr, G: tl.constexpr, GP: tl.constexpr, UC: tl.constexpr,
    UR: tl.constexpr, UP: tl.constexpr, BOUNDS: tl.constexpr, KIND: tl.constexpr,
    SOFT: tl.constexpr, FAST: tl.constexpr, SHARED: tl.constexpr, NEAR: tl.constexpr,
    PTX: tl.constexpr,
):  # fmt: skip
    """Newton on instances program_id, program_id + programs, ...: fills multipliers and steps.

    Starts where `warm` from the multipliers at `start`, but afresh from a line that is not finite.
    A warm start within the tolerance is an answer; else it aims higher, and a fresh one highest.
    `patience` is doubled for it. With SOFT, soft steps come first where it is `far`, and follow
    where Newton has given up; after them there is more patience, with any overshoot.
    """
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
    zeta = w + N
    least = zeta + M
    kind = (least + M).to(tl.pointer_type(tl.int32))
    values = least + 2 * M
    inverses = values + 1 + M + P
    below = inverses + (2 * H + W) * 256
    above = below + (2 * H * W + W * (W - 1) // 2 + W) * 256
    tl.store(values, f64(0.0))
    b = program
    while b < B:
        line = line_of(b, index_ptr, indexed)
        cost = cost_ptr + b.to(tl.int64) * n
        states = states_ptr + line * n
        multipliers = multipliers_ptr + b.to(tl.int64) * (n_eq + n_ub)
        margin = tl.load(margin_ptr + line)
        unit, inverse = unit_of(cost, margin, n, N, C)
        margin = margin * inverse
        size = size_of(cost, inverse, margin, n, N, C)
        start = start_ptr + line_of(b, places_ptr, placed) * (n_eq + n_ub)
        known = tl.full((), 0, tl.int32)
        if warm > 0:
            known = is_finite(start, n_eq + n_ub, G)
        tl.debug_barrier()
        load_rows(
            start, active_ptr + line * n_ub, norm, source, v, least, kind, inverse, margin,
            known, n_eq, M, G, SHARED,
        )  # fmt: skip
        if known == 0:
            least_squares_start(
                cost, states, inverse, margin, r, rhs, v, least, kind,
                row_take, row_weight, row_length, first_inverse, first_below, first_above,
                n, N, M, H, W, C, G, UR, SHARED, NEAR,
            )  # fmt: skip
        tl.debug_barrier()
        steps = tl.full((), 0, tl.int32)
        rounds, going = steps, steps + 1
        while going > 0:
            first = rounds == 0
            taken, off = newton_steps(
                cap - steps, tl.where(first & (known == 0), patience, 2 * patience),
                tl.where(first, overshoot, f64(float("inf"))),
                tl.where(first & (known > 0), far, f64(float("inf"))),
                tl.where(known > 0, tol, still), tl.where(known > 0, fair, still), fair,
                cost, states, inverse, margin, size,
                t, r, dt, v, rhs, d, scale, zeta, least, kind,
                values, inverses, below, above, board, swap,
                col_take, col_weight, col_length, row_take, row_weight, row_length,
                pair_take, pair_weight, pair_rows, pair_length, opening, entering, middle,
                n, N, M, P, H, one, ridge, W, C, G, GP, UC, UR, UP, BOUNDS, KIND,
                FAST, SHARED, NEAR,
            )  # fmt: skip
            steps += taken
            going = going * 0
            if SOFT:  # known when it is compiled
                if (off > 0.0) & (rounds < ROUNDS) & (steps < cap):
                    tl.debug_barrier()
                    square = offsets(
                        v, cost, states, inverse, margin, t, r, col_take, col_weight, n, N,
                        col_length, C, UC, SHARED, NEAR,
                    )  # fmt: skip
                    tl.debug_barrier()
                    count = tl.minimum(tl.where(off < MILD, MILD_STEPS, SOFT_STEPS), cap - steps)
                    rough = tl.where(off < MILD, f64(MILD_ROUGH), f64(1.0))
                    soft_steps(
                        count, rough * tl.sqrt(square / n), f64(SOFTENING), states,
                        t, r, dt, w, v, rhs, d, scale, zeta, least, kind,
                        values, inverses, below, above, board, swap,
                        col_take, col_weight, col_length, row_take, row_weight, row_length,
                        pair_take, pair_weight, pair_rows, pair_length, opening, entering, middle,
                        n, N, M, P, H, one, ridge, W, C, G, GP, UC, UR, UP, KIND,
                        FAST, SHARED, NEAR,
                    )  # fmt: skip
                    steps += count
                    rounds += 1
                    going = going + 1
        tl.debug_barrier()
        store_rows(multipliers, norm, source, v, least, kind, unit, M, G, SHARED)
        tl.store(steps_ptr + b, steps)
        b += tl.num_programs(0)
