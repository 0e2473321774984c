# type: ignore  (a kernel is Triton's language, not Python's, to a type checker)
"""For what the first try left above the tolerance: interior point, then Newton, stage by stage.

The stages are the CPU kernel's, without the soft steps, which came before. An instance keeps the
best multipliers it has had here. One launch serves a batch: programs pass over instances whose
residual is within the tolerance.
"""

import triton
import triton.language as tl

from .. import constants
from .certify import residual_from, residual_rows
from .interior import interior_steps
from .layout import Blocks, Gather, Instance, Origin, Problem, entry, lay_out
from .memory import peek, poke
from .newton import Pace, newton_steps
from .passes import BOUNDED, f64, line_of, load_rows, offsets, size_of, store_rows, unit_of

INTERIOR_STEPS = tl.constexpr(constants.INTERIOR_STEPS)
STAGES = tl.constexpr(len(constants.STAGES) - 1)
GOAL_0, GOAL_1, GOAL_2 = (tl.constexpr(goal) for goal, _ in constants.STAGES[1:])
POLISH_0, POLISH_1, POLISH_2 = (tl.constexpr(steps) for _, steps in constants.STAGES[1:])


@triton.jit
def admit(rows, M, G: tl.constexpr, SHARED: tl.constexpr):
    """Lift bounded multipliers to what they must be at least."""
    for base in range(0, M, G):
        i = base + tl.arange(0, G)
        inside = i < M
        bounded = tl.load(rows.kind + i, mask=inside, other=0) == BOUNDED
        value = peek(rows.v, tl.minimum(i, M - 1), SHARED)
        lifted = tl.maximum(value, tl.load(rows.least + i, mask=inside, other=0.0))
        poke(rows.v, i, tl.where(bounded, lifted, value), inside, SHARED)


@entry
def fallback_kernel(
    cost_ptr, states_ptr, active_ptr, margin_ptr, index_ptr, multipliers_ptr, steps_ptr,
    residual_ptr, due_ptr, scratch_ptr, stride,
    col_take, col_weight, row_take, row_weight, pair_take, pair_weight,
    pair_rows, opening, entering, middle, norm, source,
    B, n, n_eq, n_ub, N, M, P, H, one, col_length, row_length, pair_length, indexed, max_iter,
    tol: tl.float64, still: tl.float64, fair: tl.float64, ridge: tl.float64,
    inner_ridge: tl.float64,
    config: tl.constexpr,
):  # fmt: skip
    """Better multipliers where `residual` is above `tol`; `due` says where that was."""
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
        reached = tl.load(residual_ptr + b)
        reached = tl.where(reached == reached, reached, f64(float("inf")))
        tl.store(due_ptr + b, (reached > tol).to(tl.int8))
        if reached > tol:
            line = line_of(b, index_ptr, indexed)
            cost = cost_ptr + b.to(tl.int64) * n
            multipliers = multipliers_ptr + b.to(tl.int64) * (n_eq + n_ub)
            margin = tl.load(margin_ptr + line)
            unit, inverse = unit_of(cost, margin, n, N, config.C)
            margin = margin * inverse
            size = size_of(cost, inverse, margin, n, N, config.C)
            instance = Instance(cost, states_ptr + line * n, n, inverse, margin, size)
            steps = tl.load(steps_ptr + b)
            stage = tl.full((), 0, tl.int32)
            while (reached > tol) & (stage < STAGES) & (steps < max_iter):
                tl.debug_barrier()
                load_rows(
                    multipliers, active_ptr + line * n_ub, origin, instance, rows.v, rows.least,
                    rows.kind, 1, M, G, SHARED,
                )  # fmt: skip
                tl.debug_barrier()
                goal = tl.where(stage == 0, GOAL_0, tl.where(stage == 1, GOAL_1, GOAL_2))
                polish = tl.where(stage == 0, POLISH_0, tl.where(stage == 1, POLISH_1, POLISH_2))
                steps += interior_steps(
                    tl.minimum(INTERIOR_STEPS, max_iter - steps), goal, inner_ridge, instance,
                    entries, rows, factor, problem, config,
                )  # fmt: skip
                tl.debug_barrier()
                polish = tl.minimum(polish, max_iter - steps)
                never = f64(float("inf"))
                pace = Pace(polish, polish + 1, never, never, still, still, fair)
                taken, _ = newton_steps(
                    pace, instance, entries, rows, factor, problem, ridge, config
                )
                steps += taken
                tl.debug_barrier()
                admit(rows, M, G, SHARED)
                tl.debug_barrier()
                square = offsets(rows.v, instance, entries.t, entries.r, columns, config)
                tl.debug_barrier()
                worst, gap, lacking = residual_rows(
                    entries.r,
                    rows.v,
                    rows.least,
                    rows.kind,
                    lists,
                    G,
                    config.UR,
                    SHARED,
                    config.NEAR,
                )
                residual = residual_from(square, worst, gap, lacking, size)
                if residual <= reached:
                    store_rows(multipliers, origin, rows, unit, M, G, SHARED)
                    reached = residual
                stage += 1
            tl.store(steps_ptr + b, steps)
        b += tl.num_programs(0)
