# type: ignore  (a kernel is Triton's language, not Python's, to a type checker)
"""The primal-dual interior point on the device, for what Newton did not settle.

The method is that of the CPU's `projection.cpu.interior`: Mehrotra's predictor and corrector.

Letters as in `layout`; z is the residual of an entry at a bound, `inside` its distance from it, y
and force the same for a bounded row. With s = +-(A^T d), Newton's equations give
    dz = (s - inside) z / (z + inside),   dinside = -inside (z + s) / (z + inside)
for z inside -> 0.
"""

import triton
import triton.language as tl

from .. import constants
from .factor import reciprocal
from .memory import peek, poke
from .newton import assemble_and_factorize, solve_rows
from .passes import (
    ABSENT,
    BOUNDED,
    across,
    f64,
    offsets,
    row_weights,
    store_diagonal,
    sums2,
    sums4,
)

START = tl.constexpr(constants.START)
INSIDE = tl.constexpr(constants.INSIDE)


@triton.jit
def sign_of(states, j, n):
    """+1 at lower, -1 at upper, 0 otherwise; whether the entry is limited, and whether free."""
    code = tl.load(states + j, mask=j < n, other=3).to(tl.int32)
    limited = (code == 1) | (code == 2)
    return tl.where(limited, 3.0 - 2.0 * code.to(tl.float64), 0.0), limited, code == 0


@triton.jit(noinline=True)
def enter(instance, entries, rows, columns, M, config: tl.constexpr):
    """A first point on z - inside = +-t with equal products, from the multipliers at hand."""
    C: tl.constexpr = config.C
    G: tl.constexpr = config.G
    t, N, states, n = entries.t, columns.size, instance.states, instance.n
    offsets(rows.v, instance, t, entries.r, columns, config)
    tl.debug_barrier()
    total = tl.zeros([C], tl.float64)
    count = tl.zeros([C], tl.float64)
    for base in range(0, N, C):
        j = base + tl.arange(0, C)
        sign, limited, _ = sign_of(states, j, n)
        total += tl.where(limited, tl.abs(tl.load(t + j)), 0.0)
        count += sign * sign
    mean = tl.sum(total, axis=0) / tl.maximum(tl.sum(count, axis=0), 1.0)
    mean = START * tl.maximum(mean, 1e-6 * instance.size)
    mean = tl.where(mean > 0.0, mean, f64(1.0))
    if config.BOUNDS:
        for base in range(0, M, G):
            i = base + tl.arange(0, G)
            there = i < M
            bounded = tl.load(rows.kind + i, mask=there, other=ABSENT) == BOUNDED
            value = peek(rows.v, tl.minimum(i, M - 1), config.SHARED)
            bottom = tl.load(rows.least + i, mask=there, other=0.0)
            gap = tl.maximum(value - bottom, mean)
            tl.store(rows.y + i, tl.where(bounded, gap, 1.0), mask=there)
            tl.store(rows.force + i, tl.where(bounded, mean * mean / gap, 0.0), mask=there)
            poke(rows.v, i, tl.where(bounded, bottom + gap, value), there, config.SHARED)
        tl.debug_barrier()
        # Lifting a multiplier off its bound moved the offsets of its row.
        offsets(rows.v, instance, t, entries.r, columns, config)
        tl.debug_barrier()
    product = mean * mean
    for base in range(0, N, C):
        j = base + tl.arange(0, C)
        sign, limited, _ = sign_of(states, j, n)
        offset = sign * tl.load(t + j)
        big = 0.5 * (tl.abs(offset) + tl.sqrt(offset * offset + 4.0 * product))
        small = product / big
        up = offset > 0.0
        tl.store(entries.z + j, tl.where(limited, tl.where(up, big, small), 1.0))
        tl.store(entries.inside + j, tl.where(limited, tl.where(up, small, big), 1.0))


@triton.jit
def weigh(states, n, entries, N, config: tl.constexpr):
    """D in w and the predictor's aim in r; returns sum z inside, how many, and the squared move."""
    C: tl.constexpr = config.C
    total = tl.zeros([C], tl.float64)
    count = tl.zeros([C], tl.float64)
    square = tl.zeros([C], tl.float64)
    for base in range(0, N, C):
        j = base + tl.arange(0, C)
        sign, limited, free = sign_of(states, j, n)
        zj, wj, tj = tl.load(entries.z + j), tl.load(entries.inside + j), tl.load(entries.t + j)
        share = zj * reciprocal(zj + wj, config.FAST)
        move = tl.where(free, tj, sign * zj)
        tl.store(entries.w + j, tl.where(limited, share, tl.where(free, 1.0, 0.0)))
        poke(entries.r, j, tl.where(free, tj, sign * share * zj), j >= 0, config.NEAR)
        total += tl.where(limited, zj * wj, 0.0)
        count += sign * sign
        square += move * move
    total, count, square, _ = sums4(total, count, square, square, config.FAST)
    return total, count, square


@triton.jit
def close_rows(r, w, rows, values, lists, ridge, config: tl.constexpr):
    """The predictor's right-hand side and the diagonal; returns sum y force and how many."""
    G: tl.constexpr = config.G
    SHARED: tl.constexpr = config.SHARED
    M = lists.size
    total = tl.zeros([G], tl.float64)
    count = tl.zeros([G], tl.float64)
    for base in range(0, M, G):
        i = base + tl.arange(0, G)
        there = i < M
        at = tl.minimum(i, M - 1)
        what = tl.load(rows.kind + at)
        row_gradient, square = row_weights(r, w, lists, at, config.UR, True, config.NEAR)
        if config.BOUNDS:
            yi, fi = tl.load(rows.y + at), tl.load(rows.force + at)
            bounded = there & (what == BOUNDED)
            square += tl.where(bounded, fi / yi, 0.0)
            total += tl.where(bounded, yi * fi, 0.0)
            count += tl.where(bounded, 1.0, 0.0)
        poke(rows.rhs, i, tl.where(what == ABSENT, 0.0, -row_gradient), there, SHARED)
        store_diagonal(square, what, rows.scale, values, i, there, ridge, config.BOUNDS, SHARED)
    return tl.sum(total, axis=0), tl.sum(count, axis=0)


@triton.jit(noinline=True)
def predict(mu, number, states, n, entries, rows, columns, M, config: tl.constexpr):
    """Mehrotra's target for z inside, from the step that would take it straight to zero."""
    C: tl.constexpr = config.C
    G: tl.constexpr = config.G
    N = columns.size
    rates = tl.full([C], 1.0, tl.float64)  # the largest relative decrease; 1 / it is the step
    line = tl.zeros([C], tl.float64)
    curve = tl.zeros([C], tl.float64)
    for base in range(0, N, C):
        j = base + tl.arange(0, C)
        move = across(rows.d, columns, j, config.UC, config.SHARED)
        tl.store(entries.dt + j, move)
        sign, limited, _ = sign_of(states, j, n)
        zj, wj = tl.load(entries.z + j), tl.load(entries.inside + j)
        part = reciprocal(zj + wj, config.FAST)
        s = sign * move
        fall = tl.maximum((wj - s) * part, (zj + s) * part)
        rates = tl.where(limited, tl.maximum(rates, fall), rates)
        dz = (s - wj) * zj * part
        dw = dz - s
        line += tl.where(limited, zj * dw + wj * dz, 0.0)
        curve += tl.where(limited, dz * dw, 0.0)
    rate = tl.max(rates, axis=0)
    linear, quadratic = sums2(line, curve, config.FAST)
    if config.BOUNDS:
        row_rates = tl.full([G], 1.0, tl.float64)
        row_line = tl.zeros([G], tl.float64)
        row_curve = tl.zeros([G], tl.float64)
        for base in range(0, M, G):
            i = base + tl.arange(0, G)
            there = i < M
            bounded = tl.load(rows.kind + i, mask=there, other=ABSENT) == BOUNDED
            yi = tl.load(rows.y + i, mask=there, other=1.0)
            fi = tl.load(rows.force + i, mask=there, other=0.0)
            step = peek(rows.d, tl.minimum(i, M - 1), config.SHARED)
            df = -fi - fi * step / yi
            tl.store(rows.dy + i, step, mask=there)
            tl.store(rows.dforce + i, df, mask=there)
            fall = tl.maximum(-step / yi, -df / tl.maximum(fi, 1e-300))
            row_rates = tl.where(bounded, tl.maximum(row_rates, fall), row_rates)
            row_line += tl.where(bounded, yi * df + fi * step, 0.0)
            row_curve += tl.where(bounded, step * df, 0.0)
        rate = tl.maximum(rate, tl.max(row_rates, axis=0))
        linear += tl.sum(row_line, axis=0)
        quadratic += tl.sum(row_curve, axis=0)
    alpha = 1.0 / rate
    after = mu + alpha * (linear + alpha * quadratic) / number
    ratio = tl.where(mu > 0.0, after / tl.where(mu > 0.0, mu, f64(1.0)), f64(0.0))
    ratio = tl.minimum(tl.maximum(ratio, 0.0), 1.0)
    return ratio * ratio * ratio * mu


@triton.jit(noinline=True)
def correct(target, states, n, entries, rows, N, lists, config: tl.constexpr):
    """The corrector's right-hand side; leaves the second-order parts in dt and dforce."""
    C: tl.constexpr = config.C
    G: tl.constexpr = config.G
    M = lists.size
    for base in range(0, N, C):
        j = base + tl.arange(0, C)
        sign, _, free = sign_of(states, j, n)
        zj, wj = tl.load(entries.z + j), tl.load(entries.inside + j)
        part = reciprocal(zj + wj, config.FAST)
        s = sign * tl.load(entries.dt + j)
        dz = (s - wj) * zj * part
        constant = (target - zj * wj - dz * (dz - s)) * part
        tl.store(entries.dt + j, constant)
        aim = tl.where(free, tl.load(entries.t + j), sign * (zj + constant))
        poke(entries.r, j, aim, j >= 0, config.NEAR)
    tl.debug_barrier()
    for base in range(0, M, G):
        i = base + tl.arange(0, G)
        there = i < M
        at = tl.minimum(i, M - 1)
        what = tl.load(rows.kind + at)
        value = -across(entries.r, lists, at, config.UR, config.NEAR)
        if config.BOUNDS:
            second = tl.load(rows.dy + at) * tl.load(rows.dforce + at)
            pull = (target - second) / tl.load(rows.y + at)
            pull = tl.where(what == BOUNDED, pull, 0.0)
            tl.store(rows.dforce + i, pull, mask=there)
            value += pull
        poke(rows.rhs, i, tl.where(what == ABSENT, 0.0, value), there, config.SHARED)


@triton.jit(noinline=True)
def advance(states, n, entries, rows, columns, M, config: tl.constexpr):
    """The longest step along the corrected direction that keeps everything positive, and the
    step itself."""
    C: tl.constexpr = config.C
    G: tl.constexpr = config.G
    N = columns.size
    rates = tl.zeros([C], tl.float64)
    for base in range(0, N, C):
        j = base + tl.arange(0, C)
        move = across(rows.d, columns, j, config.UC, config.SHARED)
        poke(entries.r, j, move, j >= 0, config.NEAR)
        sign, limited, _ = sign_of(states, j, n)
        zj, wj = tl.load(entries.z + j), tl.load(entries.inside + j)
        constant = tl.load(entries.dt + j)
        s = sign * move * reciprocal(zj + wj, config.FAST)
        fall_z = -s - constant * reciprocal(zj, config.FAST)
        fall_w = s - constant * reciprocal(wj, config.FAST)
        rates = tl.where(limited, tl.maximum(rates, tl.maximum(fall_z, fall_w)), rates)
    rate = tl.max(rates, axis=0)
    if config.BOUNDS:
        row_rates = tl.zeros([G], tl.float64)
        for base in range(0, M, G):
            i = base + tl.arange(0, G)
            there = i < M
            bounded = tl.load(rows.kind + i, mask=there, other=ABSENT) == BOUNDED
            step = peek(rows.d, tl.minimum(i, M - 1), config.SHARED)
            yi, fi, df = _row_steps(rows, step, i, there)
            fall = tl.maximum(-step / yi, -df / tl.maximum(fi, 1e-300))
            row_rates = tl.where(bounded, tl.maximum(row_rates, fall), row_rates)
        rate = tl.maximum(rate, tl.max(row_rates, axis=0))
    alpha = tl.minimum(INSIDE / tl.maximum(rate, 1e-30), 1.0)
    tl.debug_barrier()
    for base in range(0, N, C):
        j = base + tl.arange(0, C)
        sign, limited, _ = sign_of(states, j, n)
        zj, wj = tl.load(entries.z + j), tl.load(entries.inside + j)
        move = peek(entries.r, j, config.NEAR)
        s = sign * move
        dz = s * zj * reciprocal(zj + wj, config.FAST) + tl.load(entries.dt + j)
        tl.store(entries.t + j, tl.load(entries.t + j) + alpha * move)
        tl.store(entries.z + j, tl.where(limited, zj + alpha * dz, 1.0))
        tl.store(entries.inside + j, tl.where(limited, wj + alpha * (dz - s), 1.0))
    for base in range(0, M, G):
        i = base + tl.arange(0, G)
        there = i < M
        step = peek(rows.d, tl.minimum(i, M - 1), config.SHARED)
        value = peek(rows.v, tl.minimum(i, M - 1), config.SHARED) + alpha * step
        poke(rows.v, i, value, there, config.SHARED)
        if config.BOUNDS:
            bounded = tl.load(rows.kind + i, mask=there, other=ABSENT) == BOUNDED
            yi, fi, df = _row_steps(rows, step, i, there)
            tl.store(rows.y + i, yi + tl.where(bounded, alpha * step, 0.0), mask=there)
            tl.store(rows.force + i, fi + tl.where(bounded, alpha * df, 0.0), mask=there)
    tl.debug_barrier()


@triton.jit
def _row_steps(rows, step, i, there):
    """y and force of rows i, and what the latter gains where the former gains `step`."""
    yi = tl.load(rows.y + i, mask=there, other=1.0)
    fi = tl.load(rows.force + i, mask=there, other=0.0)
    df = tl.load(rows.dforce + i, mask=there, other=0.0) - fi - fi * step / yi
    return yi, fi, df


@triton.jit
def interior_steps(
    cap, goal, ridge, instance, entries, rows, factor, problem, config: tl.constexpr
):
    """Improve v until the mean product is below `goal`, relative to the squared move; returns
    how many steps it took, `cap` at most."""
    states, n, size = instance.states, instance.n, instance.size
    N, M, H = problem.columns.size, problem.rows.size, problem.blocks.H
    r, w = entries.r, entries.w
    enter(instance, entries, rows, problem.columns, M, config)
    zero = tl.full((), 0, tl.int32)
    steps, going = zero, zero + 1
    while going > 0:
        tl.debug_barrier()
        total, count, square = weigh(states, n, entries, N, config)
        tl.debug_barrier()
        row_total, row_count = close_rows(r, w, rows, factor.gram, problem.rows, ridge, config)
        total += row_total
        number = tl.maximum(count + row_count, 1.0)
        small = total < goal * tl.maximum(square, 1e-12 * size * size)
        if small | (steps >= cap):
            going = zero
        else:
            assemble_and_factorize(r, w, rows, factor, problem, True, config)
            solve_rows(rows, factor, M, H, config)
            target = predict(
                total / number, number, states, n, entries, rows, problem.columns, M, config
            )
            tl.debug_barrier()
            correct(target, states, n, entries, rows, N, problem.rows, config)
            tl.debug_barrier()
            solve_rows(rows, factor, M, H, config)
            advance(states, n, entries, rows, problem.columns, M, config)
            steps += 1
    return steps
