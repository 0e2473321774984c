# type: ignore  (a kernel is Triton's language, not Python's, to a type checker)
"""The first try: a start, and Newton and soft steps from there, one Triton program per instance.

The whole loop runs inside the program, so that a batch is one launch. Scratch is a few vectors, the
entries of A D A^T and its eliminated blocks for each program, and stays in the caches.

Where Newton gives up, soft steps go on, as on the CPU; but in the same program, because a batch
would otherwise wait twice for its slowest instance. They also come first where a warm start has
most of its pieces wrong: late in training the residuals are no larger than their changes, full
steps overshoot, and one instance of a hundred would take twice as many as the others.

Letters as in `layout`.
"""

import triton
import triton.language as tl

from .. import constants
from .factor import solve
from .layout import Blocks, Gather, Instance, Origin, Problem, entry, lay_out
from .memory import peek, poke
from .newton import Pace, newton_steps
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

ROUNDS = tl.constexpr(constants.ROUNDS)
SOFT_STEPS = tl.constexpr(constants.DEVICE_SOFT_STEPS)
MILD = tl.constexpr(constants.MILD)
MILD_STEPS = tl.constexpr(constants.MILD_STEPS)
MILD_ROUGH = tl.constexpr(constants.MILD_ROUGH)


@triton.jit(noinline=True)
def least_squares_start(
    instance, r, rows, lists, first_inverse, first_below, first_above, N, H, config: tl.constexpr
):  # fmt: skip
    """v as if every entry were free, with the factor of A A^T that came with the plan."""
    C: tl.constexpr = config.C
    G: tl.constexpr = config.G
    SHARED: tl.constexpr = config.SHARED
    M = lists.size
    for base in range(0, N, C):
        j = base + tl.arange(0, C)
        shift, _ = shift_of(instance, j)
        poke(r, j, shift, j >= 0, config.NEAR)
    tl.debug_barrier()
    for base in range(0, M, G):
        i = base + tl.arange(0, G)
        at = tl.minimum(i, M - 1)
        total = across(r, lists, at, config.UR, config.NEAR)
        poke(rows.rhs, i, total, i < M, SHARED)
    tl.debug_barrier()
    solve(rows.rhs, rows.v, first_inverse, first_below, first_above, H, config.W, SHARED)
    for base in range(0, M, G):
        i = base + tl.arange(0, G)
        inside = i < M
        what = tl.load(rows.kind + i, mask=inside, other=ABSENT)
        value = peek(rows.v, tl.minimum(i, M - 1), SHARED)
        value = tl.where(what == ABSENT, 0.0, value)
        bottom = tl.load(rows.least + i, mask=inside, other=0.0)
        value = tl.where(what == BOUNDED, tl.maximum(value, bottom), value)
        poke(rows.v, i, value, inside, SHARED)


@entry
def first_kernel(
    cost_ptr, states_ptr, active_ptr, margin_ptr, index_ptr, multipliers_ptr, steps_ptr,
    scratch_ptr, stride, col_take, col_weight, row_take, row_weight, pair_take, pair_weight,
    pair_rows, opening, entering, middle, norm, source, first_inverse, first_below, first_above,
    start_ptr, places_ptr,
    B, n, n_eq, n_ub, N, M, P, H, one, col_length, row_length, pair_length, indexed, warm, placed,
    cap, patience, overshoot: tl.float64, far: tl.float64, tol: tl.float64, still: tl.float64,
    fair: tl.float64, ridge: tl.float64,
    config: tl.constexpr,
):  # fmt: skip
    """Newton on instances program_id, program_id + programs, ...: fills multipliers and steps.

    Starts where `warm` from the multipliers at `start`, but afresh from a line that is not finite.
    A warm start within the tolerance is an answer; else it aims higher, and a fresh one highest.
    `patience` is doubled for it. With SOFT, soft steps come first where it is `far`, and follow
    where Newton has given up; after them there is more patience, with any overshoot.
    """
    G: tl.constexpr = config.G
    SHARED: tl.constexpr = config.SHARED
    columns = Gather(col_take, col_weight, N, col_length)
    lists = Gather(row_take, row_weight, M, row_length)
    pairs = Gather(pair_take, pair_weight, P, pair_length)
    blocks = Blocks(opening, entering, middle, H, one)
    problem = Problem(columns, lists, pairs, pair_rows, blocks)
    origin = Origin(source, norm, n_eq)
    program = tl.program_id(0)
    scratch = scratch_ptr + program.to(tl.int64) * stride
    entries, rows, factor = lay_out(scratch, problem, config)
    b = program
    while b < B:
        line = line_of(b, index_ptr, indexed)
        cost = cost_ptr + b.to(tl.int64) * n
        multipliers = multipliers_ptr + b.to(tl.int64) * (n_eq + n_ub)
        margin = tl.load(margin_ptr + line)
        unit, inverse = unit_of(cost, margin, n, N, config.C)
        margin = margin * inverse
        size = size_of(cost, inverse, margin, n, N, config.C)
        instance = Instance(cost, states_ptr + line * n, n, inverse, margin, size)
        start = start_ptr + line_of(b, places_ptr, placed) * (n_eq + n_ub)
        known = tl.full((), 0, tl.int32)
        if warm > 0:
            known = is_finite(start, n_eq + n_ub, G)
        tl.debug_barrier()
        load_rows(
            start, active_ptr + line * n_ub, origin, instance, rows.v, rows.least, rows.kind,
            known, M, G, SHARED,
        )  # fmt: skip
        if known == 0:
            least_squares_start(
                instance, entries.r, rows, lists, first_inverse, first_below, first_above, N, H,
                config,
            )  # fmt: skip
        tl.debug_barrier()
        steps = tl.full((), 0, tl.int32)
        rounds, going = steps, steps + 1
        while going > 0:
            first = rounds == 0
            pace = Pace(
                cap - steps, tl.where(first & (known == 0), patience, 2 * patience),
                tl.where(first, overshoot, f64(float("inf"))),
                tl.where(first & (known > 0), far, f64(float("inf"))),
                tl.where(known > 0, tol, still), tl.where(known > 0, fair, still), fair,
            )  # fmt: skip
            taken, off = newton_steps(pace, instance, entries, rows, factor, problem, ridge, config)
            steps += taken
            going = going * 0
            if config.SOFT:
                if (off > 0.0) & (rounds < ROUNDS) & (steps < cap):
                    tl.debug_barrier()
                    square = offsets(rows.v, instance, entries.t, entries.r, columns, config)
                    tl.debug_barrier()
                    count = tl.minimum(tl.where(off < MILD, MILD_STEPS, SOFT_STEPS), cap - steps)
                    rough = tl.where(off < MILD, f64(MILD_ROUGH), f64(1.0))
                    soft_steps(
                        count, rough * tl.sqrt(square / n), instance, entries, rows, factor,
                        problem, ridge, config,
                    )  # fmt: skip
                    steps += count
                    rounds += 1
                    going = going + 1
        tl.debug_barrier()
        store_rows(multipliers, origin, rows, unit, M, G, SHARED)
        tl.store(steps_ptr + b, steps)
        b += tl.num_programs(0)
