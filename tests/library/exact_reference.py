"""The nearest point of a set in exact arithmetic, by trying active sets, and problems that rounding
would decide. Shares no code with the library; for a handful of entries and rows.

A set is base + span(lines) + cone(rays). Whatever subset of the rays one tries, the projection onto
lines and subset is the answer if its coefficients are not negative and the move has no slope
along a line and no negative one along any ray: there is one such point.
"""

from fractions import Fraction
from itertools import combinations

import numpy as np

import revealed as rv
from revealed import EntryState

SCALES = ("none", "rows", "columns", "both", "tiny", "huge")
VALUES = ("integers", "decimals", "normal")
SHORT = Fraction(1, 1000)


def exact_projection(sets, b, cost, hint=None):
    """The nearest point (n,) of set b as fractions; `hint` is a guess, tried first."""
    lines, rays, names = _generators(sets, b)
    margin = Fraction(float(sets.margins[b]))
    base = [margin * sum((ray[j] for ray in rays), Fraction(0)) for j in range(len(cost))]
    target = [Fraction(float(q)) - o for q, o in zip(cost, base, strict=True)]
    for subset in _subsets(len(rays), _guess(rays, names, target, hint, base)):
        found = _onto(lines, [rays[k] for k in subset], target)
        if found is None:
            continue
        move = [p - t for p, t in zip(found, target, strict=True)]
        if all(_dot(ray, move) >= 0 for ray in rays):
            return [p + o for p, o in zip(found, base, strict=True)]
    raise AssertionError("no active set fits, which cannot be")


def error_of(point, truth, cost, margin):
    """How far a point is from the truth, in moves; a move counts as at least 1e-3 of the cost."""
    q = [Fraction(float(value)) for value in cost]
    move = sum((t - c) ** 2 for t, c in zip(truth, q, strict=True))
    size = max(sum(c * c for c in q), Fraction(float(margin)) ** 2)
    denominator = max(move, SHORT**2 * size)
    if not np.isfinite(point).all():
        return np.inf
    off = sum((Fraction(float(p)) - t) ** 2 for p, t in zip(point, truth, strict=True))
    return float(off / denominator) ** 0.5 if denominator else float(off) ** 0.5


def _generators(sets, b):
    one = sets.rows[np.array([b])]
    n, state = one.n_variables, sets.entry_state[b]
    as_fractions = lambda rows: [[Fraction(float(a)) for a in row] for row in rows]  # noqa: E731
    unit = np.eye(n)
    lines = as_fractions(one.eq_rows.matrix(0).toarray())
    lines += as_fractions(unit[state == EntryState.FIXED])
    rays = as_fractions(unit[state == EntryState.AT_LOWER])
    rays += as_fractions(-unit[state == EntryState.AT_UPPER])
    entries = [j for code in (1, 2) for j in np.flatnonzero(state == code)]
    rays += as_fractions(-one.ub_rows.matrix(0).toarray()[sets.row_active[b]])
    return lines, rays, entries


def _guess(rays, entries, target, hint, base):
    """Rays with a positive coefficient at the guessed point: those along which the move is 0."""
    if hint is None or not np.isfinite(hint).all():
        return None
    point = [Fraction(float(p)) - o for p, o in zip(hint, base, strict=True)]
    units = [k for k, j in enumerate(entries) if point[j] == target[j]]
    return tuple(units) + tuple(range(len(entries), len(rays)))


def _subsets(count, guess):
    if guess is not None:
        units = tuple(k for k in guess)
        yield units
    for size in range(count + 1):
        yield from combinations(range(count), size)


def _onto(lines, rays, target):
    """The projection of `target` onto lines and rays, None where a ray would count negatively."""
    kept = []
    columns = [*lines, *rays]
    gram = [[_dot(a, c) for c in columns] + [_dot(a, target)] for a in columns]
    x = [Fraction(0)] * len(columns)
    for k in range(len(columns)):
        for i, pivot in kept:
            factor = gram[k][pivot] / gram[i][pivot]
            if factor:
                gram[k] = [a - factor * c for a, c in zip(gram[k], gram[i], strict=True)]
        if gram[k][k]:
            kept.append((k, k))
        elif k >= len(lines):
            return None  # a ray that the others span: some smaller subset serves as well
    for i, pivot in reversed(kept):
        rest = sum((gram[i][k] * x[k] for k in range(len(columns)) if k != pivot), Fraction(0))
        x[pivot] = (gram[i][-1] - rest) / gram[i][pivot]
    if any(value < 0 for value in x[len(lines) :]):
        return None
    return [
        sum((x[k] * columns[k][j] for k in range(len(x))), Fraction(0)) for j in range(len(target))
    ]


def _dot(a, c):
    return sum((x * y for x, y in zip(a, c, strict=True)), Fraction(0))


# --- problems ---------------------------------------------------------------------------------


def hostile_problem(seed):
    """Sets of one decision and a cost: scales of up to 10^+-8, dust, repeated rows, every kind of
    entry, with and without margin."""
    rng = np.random.default_rng([20, seed])
    n, m_eq, m_ub = int(rng.integers(2, 6)), int(rng.integers(0, 3)), int(rng.integers(0, 3))
    m_eq += m_eq + m_ub == 0
    reach = float(rng.choice([4.0, 7.0, 8.0]))
    scales = SCALES[seed % len(SCALES)]
    A = _matrix(rng, m_eq + m_ub, n, VALUES[seed // 6 % len(VALUES)])
    column = _powers(rng, n, reach) if scales in ("columns", "both") else np.ones(n)
    row = _powers(rng, len(A), reach) if scales in ("rows", "both") else np.ones(len(A))
    whole = {"tiny": 10.0**-reach, "huge": 10.0**reach}.get(scales, 1.0)
    A = whole * A * row[:, None] * column
    x = np.where(rng.random(n) < 0.3, rng.integers(1, 4, n) / column, 0.0)
    lb, ub = _bounds(rng, x)
    right = A[m_eq:] @ x
    far = rng.random(m_ub) < 0.3
    right = np.where(far, right + np.abs(A[m_eq:]).sum(axis=1) * (1 + np.abs(x).max()), right)
    problem = rv.LinearProgram(
        A_eq=A[:m_eq], b_eq=A[:m_eq] @ x, A_ub=A[m_eq:], b_ub=right, lb=lb, ub=ub
    )
    margin = float(rng.choice([0.0, 0.0, 1.0, 1e-6, 1e4]))
    sets = rv.OptimalitySet(problem, x[None], margin)
    return sets, _cost(rng, sets, A, m_eq, margin)[None]


def _matrix(rng, m, n, kind):
    A = {
        "integers": rng.integers(-3, 4, (m, n)).astype(float),
        "decimals": rng.integers(-9, 10, (m, n)) / 10.0,
        "normal": rng.normal(size=(m, n)),
    }[kind]
    A *= rng.random((m, n)) < 0.8
    for i in range(1, m):
        match rng.integers(0, 8):
            case 0:
                A[i] = -2.0 * A[i - 1]
            case 1:
                A[i] = A[i - 1] * (1.0 + 2e-16 * rng.integers(-2, 3, n))  # equal but for dust
            case 2:
                A[i] = A[i - 1] + 1e-9 * rng.normal(size=n)
            case 3:
                A[i, rng.integers(n)] = 0.1 + 0.2 - 0.3
    return A


def _powers(rng, size, reach):
    return 10.0 ** np.round(rng.uniform(-reach, reach, size), 1)


def _bounds(rng, x):
    kind = rng.choice(4, len(x), p=[0.35, 0.2, 0.35, 0.1])  # at lower, at upper, free, fixed
    lb = np.select([kind == 0, kind == 3], [x, x], -np.inf)
    ub = np.select([kind == 1, kind == 3], [x, x], np.inf)
    return lb, ub


def _cost(rng, sets, A, m_eq, margin):
    n, state = A.shape[1], sets.entry_state[0]
    cost = rng.normal(size=n) * 10.0 ** rng.choice([0.0, 0.0, -6.0, 6.0])
    match rng.integers(0, 4):
        case 0:
            cost = rng.integers(-2, 3, n).astype(float)
        case 1 | 2:  # explains the decision, or nearly does
            v = rng.normal(size=len(A)) * 10.0 ** rng.uniform(-6, 6)
            v[m_eq:] = -(np.abs(v[m_eq:]) + margin) * sets.row_active[0]
            side = np.where(state == 1, 1.0, np.where(state == 2, -1.0, 0.0))
            cost = A.T @ v + side * (margin + rng.random(n) * rng.integers(0, 2, n))
            if rng.random() < 0.5:
                cost *= 1.0 + 1e-3 * rng.normal(size=n)
    return cost
