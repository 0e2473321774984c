"""How far a point is from the nearest one, proved without trusting cosines.

Let p = q + r be the point of some multipliers. If y = 0 where entries are fixed, has the sign of
its state elsewhere, A y = 0 on equalities and on rows whose multiplier exceeds the margin, and
A y >= 0 on other active rows, then <y, c> over the set is least at p, wherever y moves only what
r moves. So y proves that

    |p - nearest|^2  <=  |r - y|^2,

twice the gap between the objective at p and the dual objective at y. That is a bound in the
units of the costs, whatever the scales of rows and columns. Here y is r, corrected by the shortest
change of the entries that move, with products summed in twice the working precision.

Rows that seem to depend on others, among those entries, may do so but for dust, and then another
point is the nearest. Where exact arithmetic is at hand for what is refused here (small problems,
see `exact`), they must depend exactly, which arithmetic modulo a prime decides. In larger problems
dependent up to rounding is dependent: the claim holds for data that differ by rounding.

It takes one factorization more, so it is done where `spread` says that cosines may mislead.
"""

import numpy as np

from ..._common.compiled import kernel
from ..constants import SHORT
from .analysis import Analysis
from .factor import factorize, solve
from .group import Job, unit_of
from .kernel import Work
from .simd import token
from .spread import PRIME

UNPROVED = 1.0
"""Reported residual of a point of which nothing is proved."""
ROUNDS = 24
LAST_BITS = 2.0**-50
"""What a row may miss, relative to its own terms."""
ROUNDED = 1e-14
"""Or in moves, its sum over the length of the row, entries that move counted: in problems too large
for exact arithmetic only. An entry of 1e-17 of its row, which this overlooks, moves a point
arbitrarily far if its multiplier may be 1e26 (seed 8000065 of `claims_projection`)."""
HARDLY = 1e-9
"""A move this short may be rounding of 0."""
LEVEL = 1e-10
"""A slope this small, relative to its terms, may have either sign: 0 is asked of it."""
LEAST_PIVOT = 1e-14
CLEAR = 1e-10
"""Squared sine of the angle between a row and others, from which it is independent of them."""


def prove(analysis: Analysis, job: Job, work: Work, ids: np.ndarray) -> None:
    """Raise the residuals of instances `ids` to the proved bound, relative to the move; to
    `UNPROVED` where there is none."""
    multipliers = work.multipliers
    if analysis.whole is not None:
        multipliers = multipliers.copy()
        analysis.whole.basis.fold(multipliers)
    _prove(
        *(analysis.columns, analysis.pattern, analysis.residue, job, ids),
        *(multipliers, work.answer.point, work.answer.residual, token(1)),
    )


@kernel
def _prove(columns, pattern, residue, job, ids, multipliers, point, residual, w):
    n, m = len(columns.start) - 1, columns.norm.shape[1]
    v, g, size, kind = np.empty(m), np.empty(m), np.empty(m), np.empty(m, np.int8)
    r, y, moves = np.empty(n), np.empty(n), np.empty(n, np.int8)
    L, work, step, scale = np.empty(len(pattern.row)), np.empty(m), np.empty(m), np.empty(m)
    for b in ids:
        line = b if len(columns.value) > 1 else 0
        value, mod = columns.value[line], residue[line if len(residue) > 1 else 0]
        unit = unit_of(job.cost[b], job.margin[b])
        _read_rows(columns, job, b, unit, multipliers, v, kind)
        _moves(columns, value, job, b, unit, v, r, moves)
        if _snap(columns, value, job.margin[b] / unit, v, kind, r, moves, g, size, scale):
            _moves(columns, value, job, b, unit, v, r, moves)
        square, total, off = 0.0, (job.margin[b] / unit) ** 2, 0.0
        cost = 0.0
        for j in range(n):
            q = job.cost[b, j] / unit
            square += r[j] * r[j]
            cost += q * q
            off += (point[b, j] / unit - (q + r[j])) ** 2
            y[j] = r[j]
        denominator = max(np.sqrt(square), SHORT * np.sqrt(max(cost, total)))
        denominator = denominator if denominator > 0 else 1.0
        good = _correct(
            columns, pattern, value, mod, job.state[b], kind, denominator, y, moves, g, size, L,
            work, step, scale, w,
        )  # fmt: skip
        apart = 0.0
        for j in range(n):
            apart += (r[j] - y[j]) ** 2
        bound = np.sqrt(apart) if good else np.inf
        bound = (min(bound, np.sqrt(square)) + np.sqrt(off)) / denominator
        if not bound <= UNPROVED or _below(multipliers, columns, job, b):
            bound = UNPROVED
        residual[b] = max(residual[b], bound)


@kernel
def _below(multipliers, columns, job, b):
    """Whether a multiplier is below its margin by more than rounding."""
    n_equalities = multipliers.shape[1] - job.active.shape[1]
    for i in range(columns.n_equalities, columns.norm.shape[1]):
        at = columns.source[i]
        least = job.margin[b] * (1.0 - 1e-15)
        if job.active[b, at - n_equalities] and not multipliers[b, at] >= least:
            return True
    return False


TIGHT, SLACK, ABSENT = 2, 1, 0
"""Kinds of rows: A y = 0 is asked, A y >= 0 is asked, nothing is."""


@kernel
def _read_rows(columns, job, b, unit, multipliers, v, kind):
    n_equalities = multipliers.shape[1] - job.active.shape[1]
    for i in range(columns.norm.shape[1]):
        at = columns.source[i]
        v[i], kind[i] = multipliers[b, at] / unit, TIGHT
        if i >= columns.n_equalities:
            least = job.margin[b] / unit
            if not job.active[b, at - n_equalities]:
                v[i], kind[i] = 0.0, ABSENT
            elif v[i] <= least:
                v[i], kind[i] = least, SLACK


@kernel
def _moves(columns, value, job, b, unit, v, r, moves):
    """r for multipliers v, and which entries move; free ones always may."""
    for j in range(len(columns.start) - 1):
        code = job.state[b, j]
        lower, upper = code & 1, code >> 1
        t = _dot_column(columns, value, v, j, job.margin[b] / unit * (lower - upper))
        t -= job.cost[b, j] / unit
        r[j] = max(t, 0.0) if lower else t
        r[j] = min(r[j], 0.0) if upper else r[j]
        moves[j] = 1 if code == 0 or r[j] != 0.0 else 0


@kernel
def _dot_column(columns, value, v, j, first):
    """first + a_j . v, summed in twice the working precision."""
    high, low = first, 0.0
    for e in range(columns.start[j], columns.start[j + 1]):
        product, rest = _product(value[e], v[columns.row[e]])
        total = high + product
        part = total - high
        low += (high - (total - part)) + (product - part) + rest
        high = total
    return high + low


@kernel
def _product(a, b):
    """a b as a number and what rounding has taken from it (Dekker)."""
    product = a * b
    if abs(a) > 1e150 or abs(b) > 1e150:
        return product, 0.0
    t = 134217729.0 * a
    ah = t - (t - a)
    al = a - ah
    t = 134217729.0 * b
    bh = t - (t - b)
    bl = b - bh
    return product, ((ah * bh - product) + ah * bl + al * bh) + al * bl


@kernel
def _row_sums(columns, value, y, g, size, work):
    """g = A y in twice the working precision, and the size of the terms of each row."""
    for i in range(len(g)):
        g[i], size[i], work[i] = 0.0, 0.0, 0.0
    for j in range(len(columns.start) - 1):
        if y[j] == 0.0:
            continue
        for e in range(columns.start[j], columns.start[j + 1]):
            i = columns.row[e]
            product, rest = _product(value[e], y[j])
            total = g[i] + product
            part = total - g[i]
            work[i] += (g[i] - (total - part)) + (product - part) + rest
            g[i] = total
            size[i] += abs(product)
    for i in range(len(g)):
        g[i] += work[i]


@kernel
def _snap(columns, value, least, v, kind, r, moves, g, size, scale):
    """Set multipliers to the margin where they exceed it by less than the slope there: rounding.
    Whether there were any."""
    _row_sums(columns, value, r, g, size, scale)
    _moving_lengths(columns, value, moves, scale)
    found = False
    for i in range(columns.n_equalities, len(v)):
        if kind[i] == TIGHT and scale[i] > 0.0 and g[i] > 0.0:
            if g[i] / scale[i] > (v[i] - least) * scale[i]:
                v[i], kind[i] = least, SLACK
                found = True
    return found


@kernel
def _moving_lengths(columns, value, moves, length):
    """The length of each row over the entries that move."""
    length[:] = 0.0
    largest = np.zeros(len(length))
    for j in range(len(columns.start) - 1):
        if moves[j]:
            for e in range(columns.start[j], columns.start[j + 1]):
                i = columns.row[e]
                largest[i] = max(largest[i], abs(value[e]))
    for j in range(len(columns.start) - 1):
        if moves[j]:
            for e in range(columns.start[j], columns.start[j + 1]):
                i = columns.row[e]
                if largest[i] > 0.0:
                    length[i] += (value[e] / largest[i]) ** 2
    for i in range(len(length)):
        length[i] = np.sqrt(length[i]) * largest[i]


@kernel
def _correct(
    columns, pattern, value, mod, state, kind, denominator, y, moves, g, size, L, work, step,
    scale, w
):  # fmt: skip
    """Change y, of the entries that move, until it obeys every row; whether that succeeded."""
    n, m = len(columns.start) - 1, len(g)
    stale, independent = True, False
    solid, far = np.empty(m), np.empty(n, np.int8)
    for j in range(n):
        far[j] = moves[j] * (state[j] == 0 or abs(y[j]) > HARDLY * denominator)
    _moving_lengths(columns, value, far, solid)
    for _ in range(ROUNDS):
        _row_sums(columns, value, y, g, size, work)
        done = True
        for i in range(m):
            if kind[i] == SLACK and g[i] < LEVEL * size[i]:
                kind[i], stale = TIGHT, True
            allowed = LAST_BITS * size[i]
            if not len(mod):
                # Too large for exact arithmetic, which would answer what is refused here: entries
                # below the rounding of a row are no entries then.
                allowed = max(ROUNDED * denominator * solid[i], allowed)
            if kind[i] == TIGHT and abs(g[i]) > allowed:
                done = False
            if not np.isfinite(g[i]):
                return False
        if done:
            return True if not stale and independent else _factor(
                columns, pattern, value, mod, kind, moves, L, work, scale, w
            )  # fmt: skip
        if stale:
            independent = _factor(columns, pattern, value, mod, kind, moves, L, work, scale, w)
            stale = False
            if not independent:
                return False
        for i in range(m):
            at = pattern.place[i]
            step[at] = -g[i] / scale[i] if kind[i] == TIGHT and scale[i] > 0.0 else 0.0
        solve(pattern, L, step, w)
        for j in range(n):
            if not moves[j]:
                continue
            for e in range(columns.start[j], columns.start[j + 1]):
                i = columns.row[e]
                if kind[i] == TIGHT and scale[i] > 0.0:
                    y[j] += value[e] / scale[i] * step[pattern.place[i]]
            lower, upper = state[j] & 1, state[j] >> 1
            if (lower and y[j] < 0.0) or (upper and y[j] > 0.0):
                y[j], moves[j], far[j], stale = 0.0, 0, 0, True
        if stale:
            _moving_lengths(columns, value, far, solid)
    return False


@kernel
def _factor(columns, pattern, value, mod, kind, moves, L, work, scale, w):
    """Factor A D A^T of the tight rows, each of length 1 over the entries that move; whether rows
    that seem to depend on others do so exactly."""
    n, m = len(columns.start) - 1, len(scale)
    _moving_lengths(columns, value, moves, scale)
    L[:] = 0.0
    pair = 0
    for j in range(n):
        begin, end = columns.start[j], columns.start[j + 1]
        for e in range(begin, end):
            i = columns.row[e]
            for f in range(begin, e + 1):
                k = columns.row[f]
                if moves[j] and kind[i] == TIGHT and kind[k] == TIGHT:
                    if scale[i] > 0.0 and scale[k] > 0.0:
                        a, c = value[e] / scale[i], value[f] / scale[k]
                        L[pattern.pair_slot[pair]] += a * c
                pair += 1
    counted = 0
    for i in range(m):
        if kind[i] == TIGHT and scale[i] > 0.0:
            counted += 1
        else:
            L[pattern.start[pattern.place[i]]] = 1.0
    factorize(pattern, L, work, LEAST_PIVOT, w)
    if not len(mod):
        return True
    clear = 0
    for i in range(m):
        reciprocal = L[pattern.start[pattern.place[i]]]
        if kind[i] == TIGHT and scale[i] > 0.0 and reciprocal * reciprocal * CLEAR <= 1.0:
            clear += 1
    return clear == counted or _rank_is(columns, mod, kind, moves, scale, clear, counted)


@kernel
def _rank_is(columns, mod, kind, moves, scale, clear, counted):
    """Whether the rank of the tight rows over the entries that move is `clear`, modulo a prime."""
    width = 0
    for j in range(len(moves)):
        width += moves[j]
    A = np.zeros((counted, width), np.int64)
    place, at = np.full(len(scale), -1), 0
    for i in range(len(scale)):
        if kind[i] == TIGHT and scale[i] > 0.0:
            place[i] = at
            at += 1
    column = 0
    for j in range(len(moves)):
        if moves[j]:
            for e in range(columns.start[j], columns.start[j + 1]):
                if place[columns.row[e]] >= 0:
                    A[place[columns.row[e]], column] = mod[e]
            column += 1
    rank = 0
    for column in range(width):
        pivot = -1
        for i in range(rank, counted):
            if A[i, column] != 0:
                pivot = i
                break
        if pivot < 0:
            continue
        rank += 1
        if rank > clear:
            return False
        for k in range(column, width):
            A[rank - 1, k], A[pivot, k] = A[pivot, k], A[rank - 1, k]
        inverse = _inverse(A[rank - 1, column])
        for i in range(rank, counted):
            factor = A[i, column] * inverse % PRIME
            if factor:
                for k in range(column, width):
                    A[i, k] = (A[i, k] - factor * A[rank - 1, k]) % PRIME
    return rank == clear


@kernel
def _inverse(a):
    """1 / a modulo the prime, by Fermat."""
    result, power, left = 1, a % PRIME, PRIME - 2
    while left:
        if left & 1:
            result = result * power % PRIME
        power = power * power % PRIME
        left >>= 1
    return result
