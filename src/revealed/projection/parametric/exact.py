"""Nearest parameters in exact arithmetic, for small sets that rounding decides.

    min 1/2 |w - q|^2 + soft/2 |e|^2   subject to   h = G (w, v, mu - margin) + d + e,

the conditions of `conditions`. Floating-point numbers are fractions of whole numbers. With forces y
of the conditions the nearest parameters are w = q + S^T y, so what is left is to find forces and
multipliers that fit each other: a linear complementarity problem z >= 0, M z + r >= 0,
z (M z + r) = 0 with M positive semidefinite, which Lemke's method solves in whole numbers. It ends
with an answer, or with a proof that there are no parameters. Letters: p parameters, k conditions.
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...optimality.active_set import EntryState
from ..constants import SHORT

if TYPE_CHECKING:
    from .conditions import Conditions

MOST_CONDITIONS, MOST_UNKNOWNS = 30, 40
"""Conditions, and size of the complementarity problem, up to which an answer takes milliseconds."""
MOST_STEPS = 400
WIDEST = 600
"""Bits between the largest and the smallest number from which whole numbers get too long."""
_ZERO = Fraction(0)


class ExactParameters(NamedTuple):
    """The answer for one instance, rounded to float64 in the very end."""

    point: np.ndarray
    """(p,), NaN where no parameters explain the decision."""
    distance: float
    rounding: float
    """How far the rounded point is from the exact one, in moves."""
    multipliers: np.ndarray
    """(m_eq + m_ub,), without the margins of the inequalities."""
    empty: bool


def exact_parameters(own: Conditions, q: np.ndarray) -> ExactParameters | None:
    """The nearest parameters to q (p,) for the conditions of one instance; None where that takes
    too long or leaves the range of float64."""
    G, active = own.matrix.matrix(0), np.flatnonzero(own.active[0])
    p, m_eq = own.n_parameters, own.n_equalities
    asked = np.flatnonzero(own.state[0] != EntryState.FIXED)
    columns = np.concatenate([np.arange(p + m_eq), p + m_eq + active])
    if len(asked) > MOST_CONDITIONS or len(columns) - p + len(asked) > MOST_UNKNOWNS:
        return None
    dense, offset = G.toarray()[np.ix_(asked, columns)], own.offset[0, asked]
    if _width(np.concatenate([dense.ravel(), offset, q, own.give[asked]])) > WIDEST:
        return None
    found = _Complementarity(dense, offset, own.state[0, asked], own.give[asked], q, m_eq).solve()
    if found is None:
        return None
    multipliers = np.zeros(m_eq + own.active.shape[1])
    if not found:
        return ExactParameters(np.full(p, np.nan), np.inf, np.inf, multipliers, True)
    w, x, square = found
    point = np.array([float(value) for value in w])
    multipliers[np.concatenate([np.arange(m_eq), m_eq + active])] = [float(value) for value in x]
    distance = float(square) ** 0.5
    off = [float(Fraction(a) - b) for a, b in zip(point.tolist(), w, strict=True)]
    denominator = max(distance, SHORT * max(float(np.linalg.norm(q)), own.size[0])) or 1.0
    return ExactParameters(
        point, distance, float(np.linalg.norm(off)) / denominator, multipliers, False
    )


class _Complementarity:
    """The complementarity problem of one instance. Unknowns are the multipliers of rows, then the
    forces of conditions; those that may have either sign count as a difference of two."""

    def __init__(
        self,
        G: np.ndarray,
        offset: np.ndarray,
        state: np.ndarray,
        give: np.ndarray,
        q: np.ndarray,
        n_free: int,
    ) -> None:
        p = len(q)
        self.q = [Fraction(value) for value in q.tolist()]
        # A condition h <= 0 is -h >= 0.
        signs = np.where(state == EntryState.AT_UPPER, -1.0, 1.0)
        rows = [[Fraction(value) for value in line] for line in (G * signs[:, None]).tolist()]
        self.S, self.pull = [line[:p] for line in rows], [line[p:] for line in rows]
        self.give = [Fraction(value) for value in give.tolist()]
        starts = (Fraction(d) for d in (signs * offset).tolist())
        self.start = [_dot(line, self.q) + d for line, d in zip(self.S, starts, strict=True)]
        self.n_rows = G.shape[1] - p
        either = [i < n_free for i in range(self.n_rows)]
        either += [code == EntryState.FREE for code in state]
        self.unknowns = [
            (i, s) for i, free in enumerate(either) for s in ((1, -1) if free else (1,))
        ]

    def solve(self) -> tuple[list[Fraction], list[Fraction], Fraction] | tuple[()] | None:
        """w, multipliers of rows and the square of the distance; () where there is no answer, None
        where the search takes too long."""
        M = [[s * t * self._entry(a, b) for b, t in self.unknowns] for a, s in self.unknowns]
        r = [
            s * (self.start[a - self.n_rows] if a >= self.n_rows else _ZERO)
            for a, s in self.unknowns
        ]
        if not self.unknowns:  # nothing is asked, so q is its own answer
            return self.q, [], _ZERO
        z = lemke(M, r)
        if not z:
            return None if z is None else ()
        both = [_ZERO] * (self.n_rows + len(self.S))
        for (a, s), value in zip(self.unknowns, z, strict=True):
            both[a] += s * value
        x, y = both[: self.n_rows], both[self.n_rows :]
        move = [_dot([line[j] for line in self.S], y) for j in range(len(self.q))]
        square = _dot(move, move) + sum(
            (g * f * f for g, f in zip(self.give, y, strict=True)), _ZERO
        )
        return [a + b for a, b in zip(self.q, move, strict=True)], x, square

    def _entry(self, a: int, b: int) -> Fraction:
        m = self.n_rows
        if a < m:
            return -self.pull[b - m][a] if b >= m else _ZERO
        if b < m:
            return self.pull[a - m][b]
        both = _dot(self.S[a - m], self.S[b - m])
        return both + self.give[a - m] if a == b else both


def lemke(M: list[list[Fraction]], r: list[Fraction]) -> list[Fraction] | None:
    """z >= 0 with M z + r >= 0 and z (M z + r) = 0, for M positive semidefinite; [] where there is
    none, None after too many steps.

    The tableau is [B^-1, z, covering variable, right-hand side], each line in whole numbers of its
    own unit. Among lines that would leave at the same time the inverse of the basis decides
    (lexicographically), so that nothing comes back and the method ends.
    """
    size = len(r)
    if all(value >= 0 for value in r):
        return [_ZERO] * size
    cover = 2 * size
    table = [
        _whole(
            [*(Fraction(int(i == j)) for j in range(size)), *(-a for a in M[i]), Fraction(-1), r[i]]
        )
        for i in range(size)
    ]
    basis = list(range(size))

    def order(i: int, unit: int) -> list[Fraction]:
        return [Fraction(value, unit) for value in (table[i][-1], *table[i][:size])]

    leaving = min(range(size), key=lambda i: order(i, table[i][i]))
    entering = _exchange(table, basis, leaving, cover)
    for _ in range(MOST_STEPS):
        if entering == cover:
            z = [_ZERO] * size
            for i, name in enumerate(basis):
                if name >= size:
                    z[name - size] = Fraction(table[i][-1], table[i][name])
            return z
        able = [i for i in range(size) if table[i][entering] > 0]
        if not able:
            return []  # a ray: the conditions contradict each other
        ratio = {i: Fraction(table[i][-1], table[i][entering]) for i in able}
        least = min(ratio.values())
        first = [i for i in able if ratio[i] == least]
        done = [i for i in first if basis[i] == cover]
        leaving = (done or [min(first, key=lambda i: order(i, table[i][entering]))])[0]
        entering = _exchange(table, basis, leaving, entering)
    return None


def _exchange(table: list[list[int]], basis: list[int], row: int, entering: int) -> int:
    """Bring a variable into the basis at a row; the complement of the one that leaves is next."""
    size = len(table)
    if table[row][entering] < 0:
        table[row] = [-value for value in table[row]]
    line, head = table[row], table[row][entering]
    for i in range(size):
        factor = table[i][entering]
        if i != row and factor:
            mixed = [head * a - factor * b for a, b in zip(table[i], line, strict=True)]
            shared = gcd(*mixed)
            table[i] = [value // shared for value in mixed] if shared > 1 else mixed
    left, basis[row] = basis[row], entering
    if left == 2 * size:
        return left
    return left + size if left < size else left - size


def _whole(line: list[Fraction]) -> list[int]:
    common = max(value.denominator for value in line)  # all are powers of two
    return [int(value * common) for value in line]


def _dot(a: list[Fraction], b: list[Fraction]) -> Fraction:
    return sum((x * y for x, y in zip(a, b, strict=True) if x and y), _ZERO)


def _width(values: np.ndarray) -> float:
    """Bits from the largest to the smallest number."""
    size = np.abs(values[values != 0])
    return float(np.log2(size.max()) - np.log2(size.min())) if size.size else 0.0
