"""Cholesky factorization and solution in SIMD lanes, on a pattern analyzed once.

L is stored by columns, diagonal first; after `factorize` the diagonal slot holds its reciprocal.
"""

from ..._common.compiled import kernel
from .simd import larger_of, load, muladd, splat, square_root, store


@kernel
def factorize(pattern, L, work, floor, w):
    """Replace the lower triangle held in `L` by its Cholesky factor; pivots below `floor` are
    lifted to it.

    Left-looking: column j gathers what earlier columns subtract from it in `work`, which stays in
    cache.
    """
    start, row = pattern.start, pattern.row
    one = splat(1.0, w)
    least = splat(floor, w)
    for j in range(len(start) - 1):
        for p in range(start[j], start[j + 1]):
            store(work, row[p], load(L, p, w))
        k = pattern.left_start[j]
        while k < pattern.left_start[j + 1]:
            if pattern.left_alike[k]:
                _subtract_four(pattern, L, work, k, w)
                k += 4
            else:
                _subtract(pattern, L, work, k, w)
                k += 1
        reciprocal = one / square_root(larger_of(load(work, j, w), least))
        store(L, start[j], reciprocal)
        for p in range(start[j] + 1, start[j + 1]):
            store(L, p, load(work, row[p], w) * reciprocal)


@kernel
def _subtract(pattern, L, work, k, w):
    """Take one earlier column's share off `work`."""
    first = pattern.left_slot[k]
    factor = load(L, first, w) * splat(-1.0, w)
    for p in range(first, pattern.left_end[k]):
        i = pattern.row[p]
        store(work, i, muladd(load(L, p, w), factor, load(work, i, w)))


@kernel
def _subtract_four(pattern, L, work, k, w):
    """The same for four columns with the same rows: `work` is read and written once for all."""
    minus = splat(-1.0, w)
    a, b = pattern.left_slot[k], pattern.left_slot[k + 1]
    c, d = pattern.left_slot[k + 2], pattern.left_slot[k + 3]
    fa, fb = load(L, a, w) * minus, load(L, b, w) * minus
    fc, fd = load(L, c, w) * minus, load(L, d, w) * minus
    for p in range(pattern.left_end[k] - a):
        i = pattern.row[a + p]
        left = muladd(load(L, a + p, w), fa, load(work, i, w))
        right = load(L, b + p, w) * fb
        left = muladd(load(L, c + p, w), fc, left)
        right = muladd(load(L, d + p, w), fd, right)
        store(work, i, left + right)


@kernel
def solve(pattern, L, x, w):
    """Overwrite the right-hand side `x` by the solution of L L^T x = rhs."""
    start, row = pattern.start, pattern.row
    m = len(start) - 1
    minus = splat(-1.0, w)
    for j in range(m):
        value = load(x, j, w) * load(L, start[j], w)
        store(x, j, value)
        negative = value * minus
        for p in range(start[j] + 1, start[j + 1]):
            i = row[p]
            store(x, i, muladd(load(L, p, w), negative, load(x, i, w)))
    for j in range(m - 1, -1, -1):
        value = load(x, j, w) * minus
        for p in range(start[j] + 1, start[j + 1]):
            value = muladd(load(L, p, w), load(x, row[p], w), value)
        store(x, j, value * minus * load(L, start[j], w))
