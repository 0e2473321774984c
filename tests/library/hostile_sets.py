"""Sets of parameters that mislead solvers, and their nearest points in exact arithmetic.

    min 1/2 |w - q|^2 + soft/2 |e|^2   over   w within its limits for which S w + c0 + e explains a
                                       decision

with every kind of form (features, entries tied or known, limits on parameters and costs), soft
sets, and quadratic programs, whose gradient at the decision has an offset of its own. Rows,
columns and features have units of up to 2^+-24, powers of two, so that the numbers are what they
seem to be. The truth is found by Lemke's method in whole numbers. It shares no code with the
library.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import gcd

import numpy as np

import revealed as rv
from revealed import EntryState, ProjectionStatus

WRONG = 1e-6
"""A claim is false if the point is farther than this from the truth, in moves."""
SHORT, SLIP = 1e-3, 1e-8
KINDS = ("features", "tied", "known", "limits", "quadratic")
SCALES = ("none", "rows", "columns", "features", "all")
FREE, AT_LOWER, AT_UPPER, FIXED = range(4)


@dataclass(frozen=True)
class Case:
    """One set, a point to project, and all that the exact method needs to know."""

    sets: rv.OptimalitySet
    q: np.ndarray
    S: np.ndarray
    """(n, p), and c0 (n,): what the decision must be optimal under is S w + c0."""
    c0: np.ndarray
    A_eq: np.ndarray
    A_ub: np.ndarray
    """The rows that bind."""
    states: list
    margin: float
    soft: float | None
    limits: list
    """(row (p,), offset, bound, sign): sign * (row w + offset - bound) >= 0."""
    kind: str
    scales: str


# --- exact arithmetic ----------------------------------------------------------------------------


def is_false(case, status, point):
    """What is wrong with a claim, in words; "" where nothing is. A set that is empty by less than
    `SLIP`, the tolerance of projections, of its parameters, such as w >= 0 and w = -1e-11, may pass
    for one that is not."""
    if status == ProjectionStatus.EMPTY:
        return "called empty" if exact_parameters(case) is not None else ""
    if status != ProjectionStatus.SOLVED:
        return ""
    truth = exact_parameters(case) or exact_parameters(case, SLIP)
    error = np.inf if truth is None else error_of(case, point, truth)
    return "" if error <= WRONG else f"called solved, {error:.1e} moves off"


def exact_parameters(case, slip=0.0):
    """The nearest parameters (p,) as fractions and the square of the distance, misses of a soft set
    included; None where nothing explains the decision, limits widened by `slip`.

    With multipliers y of the conditions h >= 0 (or = 0) the best w is q + S^T y, which leaves a
    linear complementarity problem in y and the multipliers of rows.
    """
    rows, start, kinds, gives, q = _conditions(case, slip)
    n_free = len(case.A_eq)
    n_x, k, p = n_free + len(case.A_ub), len(rows), len(q)
    weights = [row[:p] for row in rows]
    pulls = [row[p:] for row in rows]
    signs = [(j, s) for j in range(n_x) for s in ((1, -1) if j < n_free else (1,))]
    signs += [(n_x + i, s) for i in range(k) for s in ((1, -1) if kinds[i] == "zero" else (1,))]

    def entry(a, b):
        if a < n_x and b >= n_x:
            return -pulls[b - n_x][a]
        if a >= n_x and b < n_x:
            return pulls[a - n_x][b]
        if a < n_x:
            return Fraction(0)
        inner = _dot(weights[a - n_x], weights[b - n_x])
        return inner + (gives[a - n_x] if a == b else 0)

    M = [[s * t * entry(a, b) for b, t in signs] for a, s in signs]
    r = [Fraction(0) if a < n_x else s * start[a - n_x] for a, s in signs]
    z = _lemke(M, r)
    if z is None:
        return None
    y = [Fraction(0)] * k
    for (a, s), value in zip(signs, z, strict=True):
        if a >= n_x:
            y[a - n_x] += s * value
    w = [q[j] + sum((weights[i][j] * y[i] for i in range(k)), Fraction(0)) for j in range(p)]
    square = sum((a - b) ** 2 for a, b in zip(w, q, strict=True))
    return w, square + sum(give * value**2 for give, value in zip(gives, y, strict=True))


def _conditions(case, slip):
    """Rows over (w, v, mu - margin), values at w = q, "zero" or "signed", and 1 / soft."""
    f = Fraction
    q, margin = [f(float(v)) for v in case.q], f(float(case.margin))
    give = f(0) if case.soft is None else 1 / f(float(case.soft))
    wider = f(slip) * f(float(max(np.abs(case.q).max(initial=0.0), case.margin)))
    rows, start, kinds, gives = [], [], [], []
    for j, state in enumerate(case.states):
        if state == FIXED:
            continue
        sign = -1 if state == AT_UPPER else 1
        own = [f(float(a)) for a in case.S[j]]
        eq, ub = ([f(float(a)) for a in A[:, j]] for A in (case.A_eq, case.A_ub))
        value = _dot(own, q) + f(float(case.c0[j])) + margin * sum(ub, f(0))
        rows.append([sign * a for a in own + [-a for a in eq] + ub])
        start.append(sign * value - (margin if state != FREE else 0))
        kinds.append("zero" if state == FREE else "signed")
        gives.append(give)
    for row, offset, bound, sign in case.limits:
        own = [f(float(a)) for a in row]
        rest = [f(0)] * (len(case.A_eq) + len(case.A_ub))
        rows.append([sign * a for a in own] + rest)
        start.append(sign * (_dot(own, q) + f(float(offset)) - f(float(bound))) + wider)
        kinds.append("signed")
        gives.append(f(0))
    return rows, start, kinds, gives, q


def _lemke(M, r):
    """z >= 0 with M z + r >= 0 and z (M z + r) = 0, for M positive semidefinite; None if there is
    none. Ties are broken by the basis inverse, so that nothing cycles."""
    size = len(r)
    if all(value >= 0 for value in r):
        return [Fraction(0)] * size
    unit = lambda i: [Fraction(int(i == j)) for j in range(size)]  # noqa: E731
    cover = 2 * size
    table = [_whole([*unit(i), *(-a for a in M[i]), Fraction(-1), r[i]]) for i in range(size)]
    basis = list(range(size))  # i: slack of i, size + i: z_i, 2 size: the covering variable
    order = lambda i: [Fraction(table[i][-1]), *map(Fraction, table[i][:size])]  # noqa: E731
    worst = min(range(size), key=lambda i: [v / table[i][i] for v in order(i)])
    entering = _pivot(table, basis, worst, cover)
    while True:
        column = [line[entering] for line in table]
        able = [i for i in range(size) if column[i] > 0]
        if not able:
            return None
        least = min(able, key=lambda i: [v / column[i] for v in order(i)])
        for i in able:  # the covering variable leaves as soon as it may
            if basis[i] == cover and table[i][-1] * column[least] == table[least][-1] * column[i]:
                least = i
        entering = _pivot(table, basis, least, entering)
        if entering == cover:
            break
    z = [Fraction(0)] * size
    for i, name in enumerate(basis):
        if size <= name < cover:
            z[name - size] = Fraction(table[i][-1], table[i][name])
    return z


def _pivot(table, basis, row, entering):
    """Bring a variable into the basis in place of that of a row; the complement of the latter, or
    the covering variable itself where that has left."""
    size, cover = len(table), 2 * len(table)
    line, head = table[row], table[row][entering]
    if head < 0:
        line, head = [-a for a in line], -head
        table[row] = line
    for i in range(size):
        factor = table[i][entering]
        if i != row and factor:
            mixed = [head * a - factor * b for a, b in zip(table[i], line, strict=True)]
            shared = gcd(*mixed)
            table[i] = [a // shared for a in mixed] if shared > 1 else mixed
    left, basis[row] = basis[row], entering
    if left == cover:
        return cover
    return left + size if left < size else left - size


def _whole(line):
    """Fractions with powers of two below, multiplied by one number until they are whole."""
    common = 1
    for value in line:
        common = common * value.denominator // gcd(common, value.denominator)
    return [int(value * common) for value in line]


def _dot(a, b):
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))


def error_of(case, point, truth):
    """How far a point is from the truth, in moves; a move is at least 1e-3 of the parameters, the
    margin or the known part of the costs."""
    w, square = truth
    if not np.isfinite(point).all():
        return np.inf
    size = max(np.linalg.norm(case.q), case.margin, np.abs(case.c0).max(initial=0.0))
    denominator = max(float(square), (SHORT * size) ** 2)
    off = float(sum((Fraction(float(p)) - t) ** 2 for p, t in zip(point, w, strict=True)))
    return (off / denominator) ** 0.5 if denominator else off**0.5


# --- problems ------------------------------------------------------------------------------------


def hostile_set(seed):
    """A set and a point, from small whole numbers in odd units."""
    rng = np.random.default_rng([21, seed])
    while True:
        case = _drawn(rng, KINDS[seed % len(KINDS)], SCALES[seed // len(KINDS) % len(SCALES)])
        if case is not None:
            return case


def _drawn(rng, kind, scales):
    reach = int(rng.choice([12, 20, 24]))
    n, m_eq, m_ub = int(rng.integers(2, 5)), int(rng.integers(0, 3)), int(rng.integers(0, 2))
    powers = lambda size, on: np.ldexp(1.0, rng.integers(-reach, reach + 1, size) * on)  # noqa: E731
    column = powers(n, scales in ("columns", "all"))
    row = powers(m_eq + m_ub, scales in ("rows", "all"))
    A = rng.integers(-3, 4, (m_eq + m_ub, n)) * (rng.random((m_eq + m_ub, n)) < 0.8) * 1.0
    if len(A) > 1 and rng.random() < 0.2:
        A[-1] = 2.0 * A[0]
    A = A * row[:, None] * column
    states = [int(s) for s in rng.choice(4, n, p=[0.3, 0.35, 0.25, 0.1])]
    x = np.where(rng.random(n) < 0.5, rng.integers(1, 4, n), 0) / column
    lb = np.where(np.isin(states, (AT_LOWER, FIXED)), x, -np.inf)
    ub = np.where(np.isin(states, (AT_UPPER, FIXED)), x, np.inf)
    rows = {"A_eq": A[:m_eq], "b_eq": A[:m_eq] @ x, "A_ub": A[m_eq:], "b_ub": A[m_eq:] @ x}
    margin = float(rng.choice([0.0, 0.0, 1.0, 2.0**-20, 2.0**13]))
    soft = float(rng.choice([1.0, 100.0, 2.0**20])) if rng.random() < 0.4 else None
    S, free = _matrix(rng, kind, n, column, powers, scales)
    w0 = rng.integers(-3, 4, S.shape[1]) * 1.0
    v0 = rng.integers(-2, 3, len(A)) * np.where(np.arange(len(A)) < m_eq, 1.0, -1.0) / row
    v0[m_eq:] = -np.abs(v0[m_eq:]) - margin
    side = np.select([np.array(states) == AT_LOWER, np.array(states) == AT_UPPER], [1.0, -1.0], 0.0)
    spare = side * (margin + rng.integers(0, 3, n) * column)
    wanted = A.T @ v0 + spare
    c0 = wanted - S @ w0
    if kind in ("limits", "quadratic") or (rng.random() < 0.3 and soft is not None):
        c0 = np.zeros(n)
    bounds = _limits(rng, kind, w0, S, c0)
    if kind == "quadratic":
        root = rng.integers(-2, 3, (n, n)) * 1.0 * column
        Q = root.T @ root
        problem, form = rv.QuadraticProgram(Q=Q, sense="min", **rows, lb=lb, ub=ub), None
        S, c0 = np.eye(n), Q @ x
    else:
        problem, form = rv.LinearProgram(**rows, lb=lb, ub=ub), _form(kind, free, S, c0, bounds)
    q = _point(rng, w0)
    if kind == "quadratic":
        exact = _is_exact(_sums(Q, x), [[(c, 1.0)] for c in c0])
    else:
        exact = not c0.any() or _is_exact(_sums(S, w0, c0), _sums(A.T, v0, spare))
    if not exact:
        return None
    sets = rv.OptimalitySet(problem, x[None], margin, form=form, soft=soft, tol=1e-9)
    told = [_CODES[s] for s in states]
    if sets.entry_state[0].tolist() != [int(c) for c in told] or not sets.row_active.all():
        return None  # a bound is so near to 0 that it reads as such
    limits = _limit_rows(S, c0, bounds)
    parts = (q, S, c0, A[:m_eq], A[m_eq:], states, margin, soft, limits, kind, scales)
    return Case(sets, *parts)


_CODES = {
    FREE: EntryState.FREE,
    AT_LOWER: EntryState.AT_LOWER,
    AT_UPPER: EntryState.AT_UPPER,
    FIXED: EntryState.FIXED,
}


def _matrix(rng, kind, n, column, powers, scales):
    """S, and which entries are predicted where others are known."""
    if kind in ("limits", "quadratic"):
        return np.eye(n), None
    if kind == "known":
        free = np.flatnonzero(rng.random(n) < 0.6)
        free = free if free.size else np.array([0])
        return np.eye(n)[:, free], free
    if kind == "tied":
        groups = np.sort(rng.integers(0, 2, n))
        groups = np.unique(groups, return_inverse=True)[1]
        return np.eye(int(groups.max()) + 1)[groups], groups
    p = int(rng.integers(1, 4))
    S = rng.integers(-3, 4, (n, p)) * 1.0 * column[:, None]
    return S * powers(p, scales in ("features", "all")), None


def _limits(rng, kind, w0, S, c0):
    if kind == "quadratic" or (rng.random() < 0.4 and kind != "limits"):
        return {}
    some = lambda value: np.where(rng.random(len(value)) < 0.5, value, np.inf)  # noqa: E731
    cost = S @ w0 + c0
    low, high = rng.integers(0, 3, len(w0)), rng.integers(0, 3, len(w0))
    bounds = {"lower": -some(low - w0), "upper": some(w0 + high)}
    if rng.random() < 0.5:
        bounds["cost_lower"] = -some(np.abs(cost) * rng.integers(0, 2) - cost)
    return bounds


def _form(kind, told, S, c0, bounds):
    return rv.CostForm(S, c0, **bounds)


def _limit_rows(S, c0, bounds):
    found, p = [], S.shape[1]
    for name, sign, rows, base in (
        ("lower", 1, np.eye(p), np.zeros(p)),
        ("upper", -1, np.eye(p), np.zeros(p)),
        ("cost_lower", 1, S, c0),
    ):
        if name in bounds:
            for j in np.flatnonzero(np.isfinite(bounds[name])):
                found.append((rows[j], base[j], bounds[name][j], sign))
    return found


def _point(rng, w0):
    match rng.integers(0, 4):
        case 0:
            return w0 + np.where(rng.random(len(w0)) < 0.5, 0.0, rng.normal(size=len(w0)))
        case 1:
            return rng.integers(-4, 5, len(w0)) * 1.0
        case 2:
            return w0 + 2.0**-12 * rng.integers(-2, 3, len(w0))
    return rng.normal(size=len(w0)) * 2.0 ** rng.integers(-12, 13)


def _is_exact(left, right):
    """Whether S w + c0, as computed, is the right-hand side without any rounding: otherwise
    equalities would contradict each other by dust. Both are sums of products (a, b)."""
    return all(_exact_sum(a) == _exact_sum(b) for a, b in zip(left, right, strict=True))


def _sums(M, v, more=None):
    """The products in M v + more, for each row."""
    more = np.zeros(len(M)) if more is None else more
    return [[*zip(row, v, strict=True), (m, 1.0)] for row, m in zip(M, more, strict=True)]


def _exact_sum(products):
    return _dot(
        *([Fraction(float(value)) for value in side] for side in zip(*products, strict=True))
    )
