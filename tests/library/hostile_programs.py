"""Linear and quadratic programs that mislead solvers, with the truth known by construction.

    min 1/2 x^T P x + c x   subject to   A_eq x = b_eq,  A_ub x <= b_ub,  lb <= x <= ub

Each begins as a program in small integers with a certificate: a decision and its multipliers (an
optimum), a ray that the constraints leave open (none), or multipliers that make the rows contradict
each other (no decision at all). Disguises follow that keep the truth: other units for rows,
columns, costs and x, rows twice, limits that stand for none, right-hand sides that are rounding,
and two programs of different size side by side. `python
experiments/scripts/claims.py` runs thousands.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg

import revealed as rv

OPTIMAL, INFEASIBLE, UNBOUNDED = "optimal", "infeasible", "unbounded"
TRUTHS = (OPTIMAL, OPTIMAL, INFEASIBLE, UNBOUNDED)
DUST = 0.1 + 0.2 - 0.3
SLIP = 1e-12
"""What a decision of size 1 may break rows by: rounding."""


@dataclass(frozen=True)
class Program:
    """One program and the truth about it; x and y are the certificate of an optimum."""

    truth: str
    P: np.ndarray
    c: np.ndarray
    A_eq: np.ndarray
    b_eq: np.ndarray
    A_ub: np.ndarray
    b_ub: np.ndarray
    lb: np.ndarray
    ub: np.ndarray
    x: np.ndarray
    """A best decision, or any feasible one, or 0."""
    y: np.ndarray
    """Multipliers of the rows, equalities first: of the optimum, or of the contradiction."""

    @property
    def constraints(self):
        """Arguments of a problem."""
        return {
            "A_eq": self.A_eq,
            "b_eq": self.b_eq,
            "A_ub": self.A_ub,
            "b_ub": self.b_ub,
            "lb": self.lb,
            "ub": self.ub,
        }

    @property
    def curved(self):
        return bool(self.P.any())

    def cost(self, x):
        return float(self.c @ x + 0.5 * x @ self.P @ x)

    @property
    def rows(self):
        """A, b, the largest entry of each row, and what is small against which is nothing: 1, or
        the largest right-hand side or bound if that is smaller."""
        A, b = np.vstack([self.A_eq, self.A_ub]), np.concatenate([self.b_eq, self.b_ub])
        largest = np.abs(A).max(axis=1, initial=0.0)
        largest = np.where(largest > 0, largest, 1.0)
        sides = np.concatenate([np.abs(b) / largest, np.abs(self.lb), np.abs(self.ub)])
        size = sides[np.isfinite(sides)].max(initial=0.0)
        return A, b, largest, size if 0 < size < 1 else 1.0

    @property
    def is_told_right(self):
        """Whether the truth is beyond doubt. Rows and bounds of an infeasible program contradict
        each other by 1e-6, as `constraint_violation` measures rows: below 1e-7 a decision would
        pass for feasible. A decision of the others obeys them to 1e-12: right-hand sides of 1e-16
        in units of 1e8 are no rounding where everything else is near 1."""
        A, b, largest, unit = self.rows
        if self.truth != INFEASIBLE:
            off = A @ self.x - b
            off[: len(self.b_eq)] = np.abs(off[: len(self.b_eq)])
            return bool((off <= SLIP * (unit * largest + np.abs(A) @ np.abs(self.x))).all())
        g, used = A.T @ self.y, self.y != 0
        bound = np.where(g > 0, self.lb, np.where(g < 0, self.ub, 0.0))
        gap = g @ bound - b[used] @ self.y[used]
        measure = np.abs(self.y[used]) @ (np.abs(b) + unit * largest)[used]
        return bool(gap > 1e-6 * (measure + np.abs(g) @ (unit + np.abs(bound))))

    def allowance(self, x):
        """What the cost of a decision that is right to 1e-7 may be off by.

        The truth itself obeys the rows to `SLIP` only (`is_told_right`), so it may cost less than
        any decision that obeys them exactly: by the slope times the slip, and by the curvature
        times its square, which is all there is where costs and decision are 0.
        """
        size = max(np.abs(x).max(), np.abs(self.x).max())
        terms = np.abs(self.c) @ (np.abs(x) + np.abs(self.x))
        terms += np.abs(x) @ np.abs(self.P) @ np.abs(x) + np.abs(self.c).max() * size
        A, b, largest, unit = self.rows
        b = np.where(np.isfinite(b), np.abs(b), 0.0)
        sides = np.abs(self.y) @ (b + np.abs(A) @ np.abs(self.x) + largest)
        slip = SLIP * unit
        rounding = slip * np.abs(self.c).sum() + 0.5 * slip**2 * np.abs(self.P).sum()
        return 1e-6 * terms + 2e-7 * sides + rounding


def hostile(seed, curved):
    """One program in disguise, a quadratic one if `curved`."""
    rng = np.random.default_rng([seed, int(curved)])
    while True:
        program = _drawn(rng, curved)
        if program.is_told_right:
            return program


def claimed(program):
    """What the library claims of a program: status in words, decision and its violation."""
    if program.curved:
        problem = rv.QuadraticProgram(Q=program.P, sense="min", **program.constraints)
    else:
        problem = rv.LinearProgram(**program.constraints)
    found = problem.solve(program.c[None], threads=1)
    x = found.x[0]
    good = np.isfinite(x).all()
    violation = float(problem.constraint_violation(x[None])[0]) if good else np.inf
    return rv.SolveStatus(int(found.status[0])).name, x, violation


def _drawn(rng, curved):
    program = _disguised(_plain(rng, rng.choice(TRUTHS), curved), rng)
    if rng.random() < 0.25:
        truth = rng.choice(TRUTHS) if program.truth == OPTIMAL else OPTIMAL
        program = _beside(program, _disguised(_plain(rng, truth, curved), rng))
    return program


def judged(program, status, x, violation):
    """Whether what a solver said is false: its status in words, its decision, and how far that is
    from obeying the constraints."""
    if status in ("FAILED", "LIMIT"):
        return False
    if status != program.truth.upper():
        return True
    if status != "OPTIMAL":
        return False
    off = abs(program.cost(x) - program.cost(program.x))
    return not (violation <= 1e-7 and off <= program.allowance(x))


# --- plain programs with a certificate -----------------------------------------------------------


def _plain(rng, truth, curved):
    n, m_eq, m_ub = rng.integers(1, 9), rng.integers(0, 4), rng.integers(0, 5)
    if truth == INFEASIBLE and m_eq + m_ub == 0:
        m_ub = 1
    A = rng.integers(-3, 4, (m_eq + m_ub, n)) * (rng.random((m_eq + m_ub, n)) < 0.6) * 1.0
    x = rng.integers(-3, 4, n) * (rng.random(n) < 0.7) * 1.0
    lb = np.where(rng.random(n) < 0.3, -np.inf, x - rng.integers(0, 3, n))
    ub = np.where(rng.random(n) < 0.5, np.inf, x + rng.integers(0, 3, n))
    root = rng.integers(-2, 3, (rng.integers(1, n + 1), n)) * 1.0 * curved
    make = {OPTIMAL: _with_optimum, UNBOUNDED: _with_ray, INFEASIBLE: _with_contradiction}[truth]
    return make(rng, A, m_eq, x, lb, ub, root)


def _with_optimum(rng, A, m_eq, x, lb, ub, root):
    m, n = A.shape
    slack = np.where(rng.random(m) < 0.5, 0, rng.integers(0, 3, m)) * (np.arange(m) >= m_eq)
    y = np.where(np.arange(m) < m_eq, rng.integers(-2, 3, m), -rng.integers(0, 3, m)) * 1.0
    y[slack > 0] = 0
    d = np.where(x == lb, rng.integers(0, 4, n), 0) - np.where(x == ub, rng.integers(0, 4, n), 0)
    P = root.T @ root
    b = A @ x + slack
    return Program(OPTIMAL, P, A.T @ y + d - P @ x, *_parts(A, b, m_eq), lb, ub, x, y)


def _with_ray(rng, A, m_eq, x, lb, ub, root):
    n = A.shape[1]
    k, r = rng.integers(n), rng.integers(-2, 3, n) * 1.0
    r[k] = rng.choice([-1.0, 1.0])
    if rng.random() < 0.5:
        r = np.where(r < 0, -r, r)
    lb, ub = np.where(r < 0, -np.inf, lb), np.where(r > 0, np.inf, ub)
    lead = rng.integers(0, 2, len(A)) * (np.arange(len(A)) >= m_eq)  # how fast a row is left behind
    A, root = A.copy(), root.copy()
    for rows, speed in ((A, -lead), (root, 0)):
        rows[:, k] += (speed - rows @ r) / r[k]
    c = rng.integers(-3, 4, n) * 1.0
    c[k] += (-rng.integers(1, 4) - c @ r) / r[k]
    b = A @ x + rng.integers(0, 3, len(A)) * (np.arange(len(A)) >= m_eq)
    return Program(UNBOUNDED, root.T @ root, c, *_parts(A, b, m_eq), lb, ub, x, np.zeros(len(A)))


def _with_contradiction(rng, A, m_eq, x, lb, ub, root):
    m, n = A.shape
    w = np.where(np.arange(m) < m_eq, rng.integers(-2, 3, m), rng.integers(0, 3, m)) * 1.0
    k = rng.integers(m)
    w[k] = 1.0 if k >= m_eq else rng.choice([-1.0, 1.0])
    g = A.T @ w  # must not ask for a bound that is missing
    wanted = np.where(np.isinf(lb) & (g > 0) | np.isinf(ub) & (g < 0), 0.0, g)
    A = A.copy()
    A[k] += (wanted - g) / w[k]
    bound = np.where(wanted > 0, lb, np.where(wanted < 0, ub, 0.0))
    b = A @ x + rng.integers(0, 3, m) * (np.arange(m) >= m_eq)
    b[k] += (wanted @ bound - rng.integers(1, 4) - b @ w) / w[k]
    c = rng.integers(-3, 4, n) * 1.0
    parts = _parts(A, b, m_eq)
    return Program(INFEASIBLE, root.T @ root, c, *parts, lb, ub, np.zeros(n), w)


def _parts(A, b, m_eq):
    return A[:m_eq], b[:m_eq], A[m_eq:], b[m_eq:]


# --- disguises -----------------------------------------------------------------------------------


def _disguised(program, rng):
    for disguise in (_dust, _twice, _loose_limits, _empty, _scaled):
        if rng.random() < 0.5:
            program = disguise(program, rng)
    return program


def _twice(p, rng):
    """Rows repeated, some of them in other units."""
    for rows, side in (("A_eq", "b_eq"), ("A_ub", "b_ub")):
        A, b = getattr(p, rows), getattr(p, side)
        at = 0 if rows == "A_eq" else len(p.b_eq)
        if len(A):
            k, s = rng.integers(0, len(A), 2), rng.choice([1.0, 2.0, 0.25], 2)
            y = np.insert(p.y, at + len(A), np.zeros(2))
            p = replace(p, y=y, **{rows: np.vstack([A, s[:, None] * A[k]])})
            p = replace(p, **{side: np.concatenate([b, s * b[k]])})
    return p


def _loose_limits(p, rng):
    """Upper limits that stand for none; a ray would end at them."""
    if p.truth != OPTIMAL:
        return p
    big = float(rng.choice([1e6, 1e9, 1e12]))
    some = rng.random(len(p.x)) < 0.7
    row, none = rng.integers(-2, 3, (1, len(p.x))) * 1.0, [0.0]
    return replace(
        p,
        ub=np.where(some & np.isinf(p.ub), big, p.ub),
        A_ub=np.vstack([p.A_ub, row]),
        b_ub=np.append(p.b_ub, rng.choice([big, np.inf])),
        y=np.concatenate([p.y, none]),
    )


def _dust(p, rng):
    """Right-hand sides of 0 become rounding; two new variables differ by rounding."""
    if p.truth == INFEASIBLE or np.linalg.matrix_rank(p.A_eq) < len(p.A_eq):
        return p  # rows that repeat each other would be infeasible by rounding
    b = np.where((p.b_eq == 0) & (rng.random(len(p.b_eq)) < 0.7), rng.choice([DUST, 1e-16]), p.b_eq)
    if p.curved:
        return replace(p, b_eq=b)
    n, zero = len(p.c), np.zeros((len(p.A_eq), 2))
    rows = np.zeros((2, n + 2))
    rows[0, n:], rows[1, n:] = (1.0, -1.0), (1.0, 1.0)
    y = np.insert(p.y, len(p.A_eq), [0.0, 1.0])
    return replace(
        p,
        P=linalg.block_diag(p.P, np.zeros((2, 2))),
        c=np.concatenate([p.c, [1.0, 1.0]]),
        A_eq=np.vstack([np.hstack([p.A_eq, zero]), rows]),
        b_eq=np.concatenate([b, [DUST, 2.0]]),
        A_ub=np.hstack([p.A_ub, np.zeros((len(p.A_ub), 2))]),
        lb=np.concatenate([p.lb, [0.0, 0.0]]),
        ub=np.concatenate([p.ub, [np.inf, np.inf]]),
        x=np.concatenate([p.x, [1.0, 1.0]]),
        y=y,
    )


def _empty(p, rng):
    """A row without entries, and a variable in no row that costs nothing."""
    n = len(p.c)
    row = np.zeros((1, n))
    p = replace(p, A_eq=np.vstack([row, p.A_eq]), b_eq=np.concatenate([[0.0], p.b_eq]))
    p = replace(p, y=np.concatenate([[0.0], p.y]))
    wide = [np.hstack([A, np.zeros((len(A), 1))]) for A in (p.A_eq, p.A_ub)]
    return replace(
        p,
        P=linalg.block_diag(p.P, np.zeros((1, 1))),
        c=np.append(p.c, 0.0),
        A_eq=wide[0],
        A_ub=wide[1],
        lb=np.append(p.lb, rng.choice([0.0, -np.inf])),
        ub=np.append(p.ub, rng.choice([5.0, np.inf])),
        x=np.append(p.x, 0.0),
    )


def _scaled(p, rng):
    """Other units for x, rows, columns and costs: powers of two where digits matter."""
    far = rng.choice([0, 3, 7])
    whole = 10.0 ** rng.integers(-9, 10) if rng.random() < 0.6 else 1.0
    columns = np.ldexp(1.0, np.rint(3.32 * rng.uniform(-far, far, len(p.c))).astype(int))
    rows = np.ldexp(1.0, np.rint(3.32 * rng.uniform(-far, far, len(p.y))).astype(int))
    price = 10.0 ** rng.integers(-9, 10)
    m_eq, back = len(p.b_eq), whole / columns
    eq, ub = rows[:m_eq], rows[m_eq:]
    return replace(
        p,
        P=price / whole * p.P * np.outer(columns, columns),
        c=price * p.c * columns,
        A_eq=eq[:, None] * p.A_eq * columns,
        b_eq=whole * eq * p.b_eq,
        A_ub=ub[:, None] * p.A_ub * columns,
        b_ub=whole * ub * p.b_ub,
        lb=p.lb * back,
        ub=p.ub * back,
        x=p.x * back,
        y=(1.0 if p.truth == INFEASIBLE else price) * p.y / rows,
    )


def _beside(p, q):
    """Both programs in one, each with variables of its own; one of them has an optimum."""
    truth = q.truth if p.truth == OPTIMAL else p.truth
    if truth == INFEASIBLE:  # only the multipliers of the contradiction count
        p, q = (r if r.truth == truth else replace(r, y=0 * r.y) for r in (p, q))
    k, l = len(p.b_eq), len(q.b_eq)
    sides = {
        name: np.concatenate([getattr(p, name), getattr(q, name)])
        for name in ("c", "b_eq", "b_ub", "lb", "ub", "x")
    }
    blocks = {
        name: linalg.block_diag(getattr(p, name), getattr(q, name))
        for name in ("P", "A_eq", "A_ub")
    }
    y = np.concatenate([p.y[:k], q.y[:l], p.y[k:], q.y[l:]])
    return Program(truth=truth, **blocks, **sides, y=y)
