"""Cholesky factorisation and solution in lanes, on a pattern analysed once.

L is stored by columns, diagonal first; after `factorise` the diagonal slot holds its reciprocal.
"""

from .compiled import kernel
from .lanes import larger_of, load, muladd, splat, square_root, store


@kernel
def factorise(pattern, L, work, floor, w):
    """Replace the lower triangle held in `L` by its Cholesky factor; pivots below `floor` are
    lifted to it.

    Left-looking: column j gathers what earlier columns subtract from it in `work`, which stays in
    cache.
    """
    start, row = pattern.start, pattern.row
    minus = splat(-1.0, w)
    one = splat(1.0, w)
    least = splat(floor, w)
    for j in range(len(start) - 1):
        for p in range(start[j], start[j + 1]):
            store(work, row[p], load(L, p, w))
        for k in range(pattern.left_start[j], pattern.left_start[j + 1]):
            first = pattern.left_slot[k]
            factor = load(L, first, w) * minus
            for p in range(first, pattern.left_end[k]):
                i = row[p]
                store(work, i, muladd(load(L, p, w), factor, load(work, i, w)))
        reciprocal = one / square_root(larger_of(load(work, j, w), least))
        store(L, start[j], reciprocal)
        for p in range(start[j] + 1, start[j + 1]):
            store(L, p, load(work, row[p], w) * reciprocal)


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
