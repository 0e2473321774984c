# type: ignore  (a kernel is Triton's language, not Python's, to a type checker)
# ruff: noqa: RUF005  (Triton knows no stars)
"""Passes over the columns and the rows of one instance, inside a Triton program.

An entry's residual is r = t where the active set lets it move, else 0, with t = a_j . v - shift_j.
Active sets come as codes of EntryState: bit 0 says that r must not be negative, bit 1 that it must
not be positive. Rows have length 1 and costs are divided by a power of two, as in the CPU kernel.

Letters: n columns (N padded), m rows (M padded); C columns and G rows are handled at a time.
"""

import triton
import triton.language as tl

from .. import constants
from .memory import peek, poke

EQUALITY = tl.constexpr(0)
BOUNDED = tl.constexpr(1)
ABSENT = tl.constexpr(2)
SHORT = tl.constexpr(constants.SHORT)
LOST = tl.constexpr(constants.LOST)
TRACE = tl.constexpr(1e-300)
"""Stands for a residual of exactly 0 that is free to move: not 0 marks an active column."""


@triton.jit
def f64(x):
    """A float64 number; Triton's own literals are float32."""
    return tl.full((), x, tl.float64)


@triton.jit
def line_of(b, index, indexed):
    """Which of the uploaded decisions instance b is about."""
    line = b.to(tl.int64)
    if indexed > 0:
        line = tl.load(index + b).to(tl.int64)
    return line


@triton.jit
def unit_of(cost, margin, n, N, C: tl.constexpr):
    """The power of two just above the largest of |cost| and margin, and its reciprocal."""
    most = tl.zeros([C], tl.float64)
    for base in range(0, N, C):
        j = base + tl.arange(0, C)
        q = tl.load(cost + j, mask=j < n, other=0.0).to(tl.float64)
        most = tl.maximum(most, tl.abs(q))
    largest = tl.maximum(tl.max(most, axis=0), margin)
    exponent = (largest.to(tl.int64, bitcast=True) >> 52) & 2047
    # Within 2^-1000 .. 2^1000; 0 (and, harmlessly, the smallest numbers) become 1.
    exponent = tl.where(exponent == 0, 1022, tl.minimum(tl.maximum(exponent, 22), 2022))
    unit = ((exponent + 1) << 52).to(tl.float64, bitcast=True)
    inverse = ((2045 - exponent) << 52).to(tl.float64, bitcast=True)
    return unit, inverse


@triton.jit
def shift_of(instance, j):
    """shift of columns j and the codes of their active sets; columns that are padding are fixed."""
    there = j < instance.n
    q = tl.load(instance.cost + j, mask=there, other=0.0).to(tl.float64) * instance.inverse
    code = tl.load(instance.states + j, mask=there, other=3).to(tl.int32)
    pull = instance.margin * ((code & 1) - (code >> 1)).to(tl.float64)
    return q - pull, code


@triton.jit
def size_of(cost, inverse, margin, n, N, C: tl.constexpr):
    """Euclidean length of the scaled cost, or the margin if that is larger."""
    square = tl.zeros([C], tl.float64)
    for base in range(0, N, C):
        j = base + tl.arange(0, C)
        q = tl.load(cost + j, mask=j < n, other=0.0).to(tl.float64) * inverse
        square += q * q
    return tl.maximum(tl.sqrt(tl.sum(square, axis=0)), margin)


@triton.jit
def is_active(t, code):
    """Whether an entry with offset t and code `code` has its residual free to move."""
    held = ((code & 1) != 0) & (t <= 0.0) | ((code >> 1) != 0) & (t >= 0.0)
    return ~held


@triton.jit
def across(v, lists, at, U: tl.constexpr, SHARED: tl.constexpr):
    """sum_k weight[k, at] v[take[k, at]]: A^T v for columns `at`, or A r for rows.

    Two running sums, for a float64 addition waits long for the one before it.
    """
    even = tl.zeros(at.shape, tl.float64)
    odd = tl.zeros(at.shape, tl.float64)
    for k in range(0, lists.length, U):
        for u in tl.static_range(0, U, 2):
            e = (k + u) * lists.size + at
            even += tl.load(lists.weight + e) * peek(v, tl.load(lists.take + e), SHARED)
            e += lists.size
            odd += tl.load(lists.weight + e) * peek(v, tl.load(lists.take + e), SHARED)
    return even + odd


@triton.jit
def is_finite(values, count, G: tl.constexpr):
    """1 where all of `count` numbers are finite, else 0."""
    total = tl.zeros([G], tl.float64)
    for base in range(0, count, G):
        i = base + tl.arange(0, G)
        value = tl.load(values + i, mask=i < count, other=0.0)
        total += value - value  # 0, or NaN
    return (tl.sum(total, axis=0) == 0.0).to(tl.int32)


@triton.jit
def load_rows(
    multipliers, active, origin, instance, v, least, kind, warm, M,
    G: tl.constexpr, SHARED: tl.constexpr,
):  # fmt: skip
    """Bring an instance's rows into scratch, in band order and in kernel units; v where `warm`."""
    for base in range(0, M, G):
        i = base + tl.arange(0, G)
        inside = i < M
        row = tl.load(origin.source + i, mask=inside, other=-1)
        bound = row >= origin.n_eq
        binds = tl.load(active + row - origin.n_eq, mask=bound, other=0) != 0
        there = (row >= 0) & ((row < origin.n_eq) | binds)
        length = tl.load(origin.norm + i, mask=inside, other=1.0)
        tl.store(kind + i, tl.where(there, tl.where(bound, BOUNDED, EQUALITY), ABSENT), mask=inside)
        tl.store(least + i, tl.where(bound & there, instance.margin * length, 0.0), mask=inside)
        given = tl.load(multipliers + row, mask=there & (warm > 0), other=0.0)
        poke(v, i, given * instance.inverse * length, inside, SHARED)


@triton.jit
def store_rows(multipliers, origin, rows, unit, M, G: tl.constexpr, SHARED: tl.constexpr):
    """Make the multipliers admissible, and write them back in the caller's rows and units."""
    for base in range(0, M, G):
        i = base + tl.arange(0, G)
        inside = i < M
        row = tl.load(origin.source + i, mask=inside, other=-1)
        what = tl.load(rows.kind + i, mask=inside, other=ABSENT)
        value = peek(rows.v, tl.minimum(i, M - 1), SHARED)
        bottom = tl.load(rows.least + i, mask=inside, other=0.0)
        value = tl.where(tl.abs(value) < LOST, value, bottom)
        value = tl.where(what == BOUNDED, tl.maximum(value, bottom), value)
        value = tl.where(what == ABSENT, 0.0, value)
        length = tl.load(origin.norm + i, mask=inside, other=1.0)
        tl.store(multipliers + row, value / length * unit, mask=row >= 0)


@triton.jit(noinline=True)
def offsets(v, instance, t, r, columns, config: tl.constexpr):
    """Fill t = A^T v - shift and the residuals r; returns |r|^2."""
    C: tl.constexpr = config.C
    square = tl.zeros([C], tl.float64)
    for base in range(0, columns.size, C):
        j = base + tl.arange(0, C)
        shift, code = shift_of(instance, j)
        offset = across(v, columns, j, config.UC, config.SHARED) - shift
        active = is_active(offset, code)
        tl.store(t + j, offset)
        move = tl.where(active, tl.where(offset == 0.0, TRACE, offset), 0.0)
        poke(r, j, move, j >= 0, config.NEAR)
        square += tl.where(active, offset * offset, 0.0)
    return tl.sum(square, axis=0)


@triton.jit
def _add4(a, b, c, d, e, f, g, h):
    return a + e, b + f, c + g, d + h


@triton.jit
def sums4(a, b, c, d, FAST: tl.constexpr):
    """Four sums; FAST: in one exchange between the threads."""
    if FAST:
        return tl.reduce((a, b, c, d), 0, _add4)
    else:
        return tl.sum(a, axis=0), tl.sum(b, axis=0), tl.sum(c, axis=0), tl.sum(d, axis=0)


@triton.jit
def _add2(a, b, c, d):
    return a + c, b + d


@triton.jit
def sums2(a, b, FAST: tl.constexpr):
    """Two sums; FAST: in one exchange between the threads."""
    if FAST:
        return tl.reduce((a, b), 0, _add2)
    else:
        return tl.sum(a, axis=0), tl.sum(b, axis=0)


@triton.jit
def _larger_and_add(a, b, c, d):
    return tl.maximum(a, c), b + d


@triton.jit
def largest_and_sum(a, b, FAST: tl.constexpr):
    """The largest of a and the sum of b; FAST: in one exchange between the threads."""
    if FAST:
        return tl.reduce((a, b), 0, _larger_and_add)
    else:
        return tl.max(a, axis=0), tl.sum(b, axis=0)


@triton.jit
def off_by(row_gradient, excess, what, strict):
    """How far a row is from its condition: A r = 0, or on a bounded row the complementary one.

    What a multiplier lacks counts `strict` times.
    """
    below = tl.maximum(-excess, 0.0) * strict
    bounded = tl.minimum(tl.maximum(row_gradient, 0.0), tl.maximum(excess, 0.0)) + below
    bounded += tl.maximum(-row_gradient, 0.0)
    return tl.where(what == BOUNDED, bounded, tl.abs(row_gradient))


@triton.jit
def row_weights(r, w, lists, at, U: tl.constexpr, WEIGHTED: tl.constexpr, NEAR: tl.constexpr):
    """A r and the diagonal of A D A^T for rows `at`; D is in w, or 1 where r is not 0."""
    zero = tl.zeros(at.shape, tl.float64)
    total, square = (zero, zero, zero, zero), (zero, zero, zero, zero)
    for k in range(0, lists.length, U):
        for u in tl.static_range(0, U, 4):
            totals, squares = (), ()
            for part in tl.static_range(4):
                e = (k + u + part) * lists.size + at
                a, j = tl.load(lists.weight + e), tl.load(lists.take + e)
                move = peek(r, j, NEAR)
                totals = totals + (total[part] + a * move,)
                if WEIGHTED:
                    squares = squares + (square[part] + a * a * tl.load(w + j),)
                else:
                    squares = squares + (square[part] + tl.where(move != 0.0, a * a, 0.0),)
            total, square = totals, squares
    row_gradient = (total[0] + total[1]) + (total[2] + total[3])
    return row_gradient, (square[0] + square[1]) + (square[2] + square[3])


@triton.jit(noinline=True)
def pair_weights(
    r, w, scale, values, pairs, pair_rows, M, WEIGHTED: tl.constexpr, config: tl.constexpr
):
    """Fill the entries of A D A^T off the diagonal; the diagonal and the zero are before them."""
    P = pairs.size
    G: tl.constexpr = config.GP
    U: tl.constexpr = config.UP
    for base in range(0, P, G):
        s = base + tl.arange(0, G)
        inside = s < P
        total = tl.zeros([G], tl.float64)
        for k in range(0, pairs.length, U):
            for u in tl.static_range(U):
                e = (k + u) * P + s
                a = tl.load(pairs.weight + e, mask=inside, other=0.0)
                j = tl.load(pairs.take + e, mask=inside, other=0)
                if WEIGHTED:
                    total += a * tl.load(w + j)
                else:
                    total += tl.where(peek(r, j, config.NEAR) != 0.0, a, 0.0)
        if config.BOUNDS:
            first = tl.load(pair_rows + s, mask=inside, other=0)
            total *= peek(scale, first, config.SHARED)
            second = tl.load(pair_rows + P + s, mask=inside, other=0)
            total *= peek(scale, second, config.SHARED)
        tl.store(values + 1 + M + s, total, mask=inside)


@triton.jit
def store_diagonal(
    square, what, scale, values, i, inside, ridge, BOUNDS: tl.constexpr, SHARED: tl.constexpr
):
    """Store the diagonal of A D A^T for rows i; a row that is not there gets 1.

    Bounds put very large numbers there: with them, rows and columns are scaled to a diagonal of
    1, and `scale` is 0 for a row that is not there, which takes it out of the others.
    """
    if BOUNDS:
        poke(scale, i, tl.where(what == ABSENT, 0.0, 1.0 / tl.sqrt(square + ridge)), inside, SHARED)
        tl.store(values + 1 + i, tl.where(inside, 1.0 + ridge, 0.0), mask=inside)
    else:
        tl.store(values + 1 + i, tl.where(what == ABSENT, 1.0, square + ridge), mask=inside)


@triton.jit
def apply_scale(words, scale, M, G: tl.constexpr, SHARED: tl.constexpr):
    """Multiply a row vector by the scale; ends with a barrier."""
    for base in range(0, M, G):
        i = base + tl.arange(0, G)
        at = tl.minimum(i, M - 1)
        poke(words, i, peek(words, at, SHARED) * peek(scale, at, SHARED), i < M, SHARED)
    tl.debug_barrier()
