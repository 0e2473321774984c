# type: ignore  (a kernel is Triton's language, not Python's, to a type checker)
"""The primal-dual interior point on the device, for what Newton did not settle.

The method is that of the CPU's `projection.interior`: Mehrotra's predictor and corrector.

Letters as in `passes` and `factor`; z is the residual of an entry at a bound, `room` how far it
is inside, y and force the same for a bounded row. With s = +-(A^T d), Newton's equations give
    dz = (s - room) z / (z + room),   droom = -room (z + s) / (z + room)   for z room -> 0.
"""

import triton
import triton.language as tl

from .factor import factorise, reciprocal
from .memory import peek, poke
from .newton import solve_rows
from .passes import (
    ABSENT,
    BOUNDED,
    across,
    f64,
    offsets,
    pair_weights,
    row_weights,
    store_diagonal,
    sums2,
    sums4,
)

START = tl.constexpr(0.1)
"""First room of an entry, in mean |t|."""


@triton.jit
def sign_of(states, j, n):
    """+1 at lower, -1 at upper, 0 otherwise; whether the entry is limited, and whether free."""
    code = tl.load(states + j, mask=j < n, other=3).to(tl.int32)
    limited = (code == 1) | (code == 2)
    return tl.where(limited, 3.0 - 2.0 * code.to(tl.float64), 0.0), limited, code == 0


@triton.jit(noinline=True)
def enter(
    cost, states, inverse, margin, size, t, r, z, room, v, least, kind, y, force,
    col_take, col_weight, col_length, n, N, M,
    C: tl.constexpr, G: tl.constexpr, UC: tl.constexpr, BOUNDS: tl.constexpr,
    SHARED: tl.constexpr, NEAR: tl.constexpr,
):  # fmt: skip
    """A first point on z - room = +-t with equal products, from the multipliers at hand."""
    offsets(
        v, cost, states, inverse, margin, t, r, col_take, col_weight, n, N, col_length, C, UC,
        SHARED, NEAR,
    )  # fmt: skip
    tl.debug_barrier()
    total = tl.zeros([C], tl.float64)
    count = tl.zeros([C], tl.float64)
    for base in range(0, N, C):
        j = base + tl.arange(0, C)
        sign, limited, _ = sign_of(states, j, n)
        total += tl.where(limited, tl.abs(tl.load(t + j)), 0.0)
        count += sign * sign
    mean = tl.sum(total, axis=0) / tl.maximum(tl.sum(count, axis=0), 1.0)
    mean = START * tl.maximum(mean, 1e-6 * size)
    mean = tl.where(mean > 0.0, mean, f64(1.0))
    if BOUNDS:
        for base in range(0, M, G):
            i = base + tl.arange(0, G)
            inside = i < M
            bounded = tl.load(kind + i, mask=inside, other=ABSENT) == BOUNDED
            value = peek(v, tl.minimum(i, M - 1), SHARED)
            bottom = tl.load(least + i, mask=inside, other=0.0)
            gap = tl.maximum(value - bottom, mean)
            tl.store(y + i, tl.where(bounded, gap, 1.0), mask=inside)
            tl.store(force + i, tl.where(bounded, mean * mean / gap, 0.0), mask=inside)
            poke(v, i, tl.where(bounded, bottom + gap, value), inside, SHARED)
        tl.debug_barrier()
        # Lifting a multiplier off its bound moved the offsets of its row.
        offsets(
            v, cost, states, inverse, margin, t, r, col_take, col_weight, n, N, col_length, C, UC,
            SHARED, NEAR,
        )  # fmt: skip
        tl.debug_barrier()
    product = mean * mean
    for base in range(0, N, C):
        j = base + tl.arange(0, C)
        sign, limited, _ = sign_of(states, j, n)
        offset = sign * tl.load(t + j)
        big = 0.5 * (tl.abs(offset) + tl.sqrt(offset * offset + 4.0 * product))
        small = product / big
        up = offset > 0.0
        tl.store(z + j, tl.where(limited, tl.where(up, big, small), 1.0))
        tl.store(room + j, tl.where(limited, tl.where(up, small, big), 1.0))


@triton.jit
def weigh(states, t, r, w, z, room, n, N, C: tl.constexpr, FAST: tl.constexpr, NEAR: tl.constexpr):
    """D in w and the predictor's aim in r; returns sum z room, how many, and the squared move."""
    total = tl.zeros([C], tl.float64)
    count = tl.zeros([C], tl.float64)
    square = tl.zeros([C], tl.float64)
    for base in range(0, N, C):
        j = base + tl.arange(0, C)
        sign, limited, free = sign_of(states, j, n)
        zj, wj, tj = tl.load(z + j), tl.load(room + j), tl.load(t + j)
        share = zj * reciprocal(zj + wj, FAST)
        move = tl.where(free, tj, sign * zj)
        tl.store(w + j, tl.where(limited, share, tl.where(free, 1.0, 0.0)))
        poke(r, j, tl.where(free, tj, sign * share * zj), j >= 0, NEAR)
        total += tl.where(limited, zj * wj, 0.0)
        count += sign * sign
        square += move * move
    total, count, square, _ = sums4(total, count, square, square, FAST)
    return total, count, square


@triton.jit
def close_rows(
    r, w, rhs, scale, values, y, force, kind, ridge, row_take, row_weight, row_length, M,
    G: tl.constexpr, UR: tl.constexpr, BOUNDS: tl.constexpr, SHARED: tl.constexpr,
    NEAR: tl.constexpr,
):  # fmt: skip
    """The predictor's right-hand side and the diagonal; returns sum y force and how many."""
    total = tl.zeros([G], tl.float64)
    count = tl.zeros([G], tl.float64)
    for base in range(0, M, G):
        i = base + tl.arange(0, G)
        inside = i < M
        at = tl.minimum(i, M - 1)
        what = tl.load(kind + at)
        slant, square = row_weights(r, w, row_take, row_weight, at, M, row_length, UR, True, NEAR)
        if BOUNDS:
            yi, fi = tl.load(y + at), tl.load(force + at)
            bounded = inside & (what == BOUNDED)
            square += tl.where(bounded, fi / yi, 0.0)
            total += tl.where(bounded, yi * fi, 0.0)
            count += tl.where(bounded, 1.0, 0.0)
        poke(rhs, i, tl.where(what == ABSENT, 0.0, -slant), inside, SHARED)
        store_diagonal(square, what, scale, values, i, inside, ridge, BOUNDS, SHARED)
    return tl.sum(total, axis=0), tl.sum(count, axis=0)


@triton.jit(noinline=True)
def predict(
    mu, number, states, z, room, dt, d, y, force, dy, dforce, kind,
    col_take, col_weight, col_length, n, N, M,
    C: tl.constexpr, G: tl.constexpr, UC: tl.constexpr, BOUNDS: tl.constexpr,
    FAST: tl.constexpr, SHARED: tl.constexpr,
):  # fmt: skip
    """Mehrotra's target for z room, from the step that would take it straight to zero."""
    rates = tl.full([C], 1.0, tl.float64)  # the largest relative decrease; 1 / it is the step
    line = tl.zeros([C], tl.float64)
    curve = tl.zeros([C], tl.float64)
    for base in range(0, N, C):
        j = base + tl.arange(0, C)
        move = across(d, col_take, col_weight, j, N, col_length, UC, SHARED)
        tl.store(dt + j, move)
        sign, limited, _ = sign_of(states, j, n)
        zj, wj = tl.load(z + j), tl.load(room + j)
        part = reciprocal(zj + wj, FAST)
        s = sign * move
        fall = tl.maximum((wj - s) * part, (zj + s) * part)
        rates = tl.where(limited, tl.maximum(rates, fall), rates)
        dz = (s - wj) * zj * part
        dw = dz - s
        line += tl.where(limited, zj * dw + wj * dz, 0.0)
        curve += tl.where(limited, dz * dw, 0.0)
    rate = tl.max(rates, axis=0)
    linear, quadratic = sums2(line, curve, FAST)
    if BOUNDS:
        row_rates = tl.full([G], 1.0, tl.float64)
        row_line = tl.zeros([G], tl.float64)
        row_curve = tl.zeros([G], tl.float64)
        for base in range(0, M, G):
            i = base + tl.arange(0, G)
            inside = i < M
            bounded = tl.load(kind + i, mask=inside, other=ABSENT) == BOUNDED
            yi = tl.load(y + i, mask=inside, other=1.0)
            fi = tl.load(force + i, mask=inside, other=0.0)
            step = peek(d, tl.minimum(i, M - 1), SHARED)
            df = -fi - fi * step / yi
            tl.store(dy + i, step, mask=inside)
            tl.store(dforce + i, df, mask=inside)
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
def correct(
    target, states, t, r, z, room, dt, rhs, y, dy, dforce, kind, row_take, row_weight, row_length,
    n, N, M, C: tl.constexpr, G: tl.constexpr, UR: tl.constexpr, BOUNDS: tl.constexpr,
    FAST: tl.constexpr, SHARED: tl.constexpr, NEAR: tl.constexpr,
):  # fmt: skip
    """The corrector's right-hand side; leaves the second-order parts in dt and dforce."""
    for base in range(0, N, C):
        j = base + tl.arange(0, C)
        sign, _, free = sign_of(states, j, n)
        zj, wj = tl.load(z + j), tl.load(room + j)
        part = reciprocal(zj + wj, FAST)
        s = sign * tl.load(dt + j)
        dz = (s - wj) * zj * part
        constant = (target - zj * wj - dz * (dz - s)) * part
        tl.store(dt + j, constant)
        poke(r, j, tl.where(free, tl.load(t + j), sign * (zj + constant)), j >= 0, NEAR)
    tl.debug_barrier()
    for base in range(0, M, G):
        i = base + tl.arange(0, G)
        inside = i < M
        at = tl.minimum(i, M - 1)
        what = tl.load(kind + at)
        value = -across(r, row_take, row_weight, at, M, row_length, UR, NEAR)
        if BOUNDS:
            pull = (target - tl.load(dy + at) * tl.load(dforce + at)) / tl.load(y + at)
            pull = tl.where(what == BOUNDED, pull, 0.0)
            tl.store(dforce + i, pull, mask=inside)
            value += pull
        poke(rhs, i, tl.where(what == ABSENT, 0.0, value), inside, SHARED)


@triton.jit(noinline=True)
def advance(
    states, t, r, z, room, dt, d, v, y, force, dforce, kind, col_take, col_weight, col_length,
    n, N, M, C: tl.constexpr, G: tl.constexpr, UC: tl.constexpr, BOUNDS: tl.constexpr,
    FAST: tl.constexpr, SHARED: tl.constexpr, NEAR: tl.constexpr,
):  # fmt: skip
    """The longest step along the corrected direction that keeps everything positive, and the
    step itself."""
    rates = tl.zeros([C], tl.float64)
    for base in range(0, N, C):
        j = base + tl.arange(0, C)
        move = across(d, col_take, col_weight, j, N, col_length, UC, SHARED)
        poke(r, j, move, j >= 0, NEAR)
        sign, limited, _ = sign_of(states, j, n)
        zj, wj, constant = tl.load(z + j), tl.load(room + j), tl.load(dt + j)
        s = sign * move * reciprocal(zj + wj, FAST)
        fall = tl.maximum(-s - constant * reciprocal(zj, FAST), s - constant * reciprocal(wj, FAST))
        rates = tl.where(limited, tl.maximum(rates, fall), rates)
    rate = tl.max(rates, axis=0)
    if BOUNDS:
        row_rates = tl.zeros([G], tl.float64)
        for base in range(0, M, G):
            i = base + tl.arange(0, G)
            inside = i < M
            bounded = tl.load(kind + i, mask=inside, other=ABSENT) == BOUNDED
            yi = tl.load(y + i, mask=inside, other=1.0)
            fi = tl.load(force + i, mask=inside, other=0.0)
            step = peek(d, tl.minimum(i, M - 1), SHARED)
            df = tl.load(dforce + i, mask=inside, other=0.0) - fi - fi * step / yi
            fall = tl.maximum(-step / yi, -df / tl.maximum(fi, 1e-300))
            row_rates = tl.where(bounded, tl.maximum(row_rates, fall), row_rates)
        rate = tl.maximum(rate, tl.max(row_rates, axis=0))
    alpha = tl.minimum(0.995 / tl.maximum(rate, 1e-30), 1.0)
    tl.debug_barrier()
    for base in range(0, N, C):
        j = base + tl.arange(0, C)
        sign, limited, _ = sign_of(states, j, n)
        zj, wj, move = tl.load(z + j), tl.load(room + j), peek(r, j, NEAR)
        s = sign * move
        dz = s * zj * reciprocal(zj + wj, FAST) + tl.load(dt + j)
        tl.store(t + j, tl.load(t + j) + alpha * move)
        tl.store(z + j, tl.where(limited, zj + alpha * dz, 1.0))
        tl.store(room + j, tl.where(limited, wj + alpha * (dz - s), 1.0))
    for base in range(0, M, G):
        i = base + tl.arange(0, G)
        inside = i < M
        step = peek(d, tl.minimum(i, M - 1), SHARED)
        poke(v, i, peek(v, tl.minimum(i, M - 1), SHARED) + alpha * step, inside, SHARED)
        if BOUNDS:
            bounded = tl.load(kind + i, mask=inside, other=ABSENT) == BOUNDED
            yi = tl.load(y + i, mask=inside, other=1.0)
            fi = tl.load(force + i, mask=inside, other=0.0)
            df = tl.load(dforce + i, mask=inside, other=0.0) - fi - fi * step / yi
            tl.store(y + i, yi + tl.where(bounded, alpha * step, 0.0), mask=inside)
            tl.store(force + i, fi + tl.where(bounded, alpha * df, 0.0), mask=inside)
    tl.debug_barrier()


@triton.jit
def interior_steps(
    cap, goal, ridge, cost, states, inverse, margin, size,
    t, r, dt, w, z, room, v, rhs, d, scale, least, kind, y, force, dy, dforce,
    values, inverses, below, above, board, swap,
    col_take, col_weight, col_length, row_take, row_weight, row_length,
    pair_take, pair_weight, pair_rows, pair_length, opening, entering, middle, n, N, M, P, H, one,
    W: tl.constexpr, C: tl.constexpr, G: tl.constexpr, GP: tl.constexpr,
    UC: tl.constexpr, UR: tl.constexpr, UP: tl.constexpr, BOUNDS: tl.constexpr,
    FAST: tl.constexpr, SHARED: tl.constexpr, NEAR: tl.constexpr,
):  # fmt: skip
    """Improve v until the mean product is below `goal`, relative to the squared move; returns
    how many steps it took, `cap` at most."""
    enter(
        cost, states, inverse, margin, size, t, r, z, room, v, least, kind, y, force,
        col_take, col_weight, col_length, n, N, M, C, G, UC, BOUNDS, SHARED, NEAR,
    )  # fmt: skip
    zero = tl.full((), 0, tl.int32)
    steps, going = zero, zero + 1
    while going > 0:
        tl.debug_barrier()
        total, count, square = weigh(states, t, r, w, z, room, n, N, C, FAST, NEAR)
        tl.debug_barrier()
        row_total, row_count = close_rows(
            r, w, rhs, scale, values, y, force, kind, ridge, row_take, row_weight, row_length, M,
            G, UR, BOUNDS, SHARED, NEAR,
        )  # fmt: skip
        total += row_total
        number = tl.maximum(count + row_count, 1.0)
        small = total < goal * tl.maximum(square, 1e-12 * size * size)
        if small | (steps >= cap):
            going = zero
        else:
            pair_weights(
                r, w, scale, values, pair_take, pair_weight, pair_rows, P, M, pair_length, GP, UP,
                True, BOUNDS, SHARED, NEAR,
            )  # fmt: skip
            tl.debug_barrier()
            factorise(
                values, opening, entering, middle, inverses, below, above, board, swap, H, one,
                W, tl.float64, FAST, SHARED, SHARED and W <= 2,
            )  # fmt: skip
            tl.debug_barrier()
            solve_rows(rhs, d, scale, inverses, below, above, M, H, W, G, BOUNDS, SHARED)
            target = predict(
                total / number, number, states, z, room, dt, d, y, force, dy, dforce, kind,
                col_take, col_weight, col_length, n, N, M, C, G, UC, BOUNDS, FAST, SHARED,
            )  # fmt: skip
            tl.debug_barrier()
            correct(
                target, states, t, r, z, room, dt, rhs, y, dy, dforce, kind,
                row_take, row_weight, row_length, n, N, M, C, G, UR, BOUNDS, FAST, SHARED, NEAR,
            )  # fmt: skip
            tl.debug_barrier()
            solve_rows(rhs, d, scale, inverses, below, above, M, H, W, G, BOUNDS, SHARED)
            advance(
                states, t, r, z, room, dt, d, v, y, force, dforce, kind,
                col_take, col_weight, col_length, n, N, M, C, G, UC, BOUNDS, FAST, SHARED, NEAR,
            )  # fmt: skip
            steps += 1
    return steps
