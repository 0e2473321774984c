"""Nearest costs in exact arithmetic, for small problems that rounding decides.

Floating-point numbers are fractions of whole numbers, so the projection of a small problem can be
computed without rounding: the active-set method of Lawson and Hanson, in whole numbers. An answer
is right whatever the scales of rows and columns, and however nearly rows depend on each other.

    min sum_j r_j^2,   r_j = a_j . x - f_j  for entries j in D,   over multipliers x of rows in E

D are the entries that move; those outside it have a reduced cost with the right sign, which
takes up what a_j . x - f_j leaves. E are the equalities and the inequalities whose multiplier
exceeds the margin.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from ...optimality.active_set import EntryState
from ...optimality.sets import OptimalitySet
from ..constants import SHORT

MOST_ROWS, MOST_ENTRIES = 12, 40
"""Sizes up to which an answer takes milliseconds."""
MOST_STEPS = 200
MOST = 10**300
"""Costs beyond this have no float64."""
WIDEST = 600
"""Bits between the largest and the smallest number from which whole numbers get too long."""


class Exact(NamedTuple):
    """The projection of one instance, rounded to float64 in the very end."""

    point: np.ndarray
    """(n,)"""
    distance: float
    rounding: float
    """How far the rounded point is from the exact one, in moves."""
    multipliers: np.ndarray
    """(m_eq + m_ub,)"""
    steps: int


def exact_projection(sets: OptimalitySet, cost: np.ndarray, b: int) -> Exact | None:
    """The nearest point of set `b` to `cost` (n,); None where the problem is too large, or the
    answer too large for float64."""
    rows, active = sets.rows[np.array([b])], np.flatnonzero(sets.row_active[b])
    m_eq, n = rows.eq_rows.shape[0], rows.n_variables
    if m_eq + len(active) > MOST_ROWS or n > MOST_ENTRIES:
        return None
    A = np.vstack([rows.eq_rows.matrix(0).toarray(), -rows.ub_rows.matrix(0).toarray()[active]])
    margin = float(sets.margins[b])
    if _width(A) > WIDEST or _width(np.append(cost, margin)) > WIDEST:
        return None
    solver = _ActiveSet(A, m_eq, sets.entry_state[b], cost, margin)
    if not solver.run():
        return None
    multipliers = np.zeros(m_eq + sets.row_active.shape[1])
    multipliers[np.concatenate([np.arange(m_eq), m_eq + active])] = solver.multipliers()
    move = solver.move()
    nearest = [Fraction(q) + r for q, r in zip(cost.tolist(), move, strict=True)]
    if max(map(abs, nearest)) > MOST or not np.isfinite(multipliers).all():
        return None
    point = np.array([float(p) for p in nearest])
    distance = float(np.linalg.norm([float(r) for r in move]))
    off = [float(Fraction(p) - exact) for p, exact in zip(point.tolist(), nearest, strict=True)]
    denominator = max(distance, SHORT * max(float(np.linalg.norm(cost)), margin)) or 1.0
    return Exact(
        point, distance, float(np.linalg.norm(off)) / denominator, multipliers, solver.steps
    )


class _ActiveSet:
    """Lawson and Hanson's method for one instance; all numbers are whole or fractions of them."""

    def __init__(
        self, A: np.ndarray, n_equalities: int, state: np.ndarray, cost: np.ndarray, margin: float
    ) -> None:
        self.n, self.n_equalities = len(cost), n_equalities
        self.row_unit = [_unit(line) for line in A]
        self.A = [_whole(line, u) for line, u in zip(A, self.row_unit, strict=True)]
        """Rows, each multiplied by the power of two that makes it whole."""
        self.state = [EntryState(int(code)) for code in state]
        self.side = [_SIDE[code] for code in self.state]
        self.margin = Fraction(margin)
        self.f = self._targets(cost)
        self.moving = {j for j in range(self.n) if self.state[j] is not EntryState.FIXED}
        self.used = set(range(n_equalities))
        self.excess: dict[tuple[str, int], Fraction] = {}
        """What reduced costs ("entry") and multipliers ("row") have beyond their margins."""
        self.x: list[Fraction] = [Fraction(0)] * len(self.A)
        self.steps = 0

    def _targets(self, cost: np.ndarray) -> list[Fraction]:
        """f: costs, less what margins alone contribute."""
        f = [Fraction(q) - self.margin * side for q, side in zip(cost, self.side, strict=True)]
        for i in range(self.n_equalities, len(self.A)):
            least = self.margin / self.row_unit[i]
            f = [value - least * a for value, a in zip(f, self.A[i], strict=True)]
        return f

    def run(self) -> bool:
        """Find the answer; False where it takes too many steps."""
        self._accept(self._solve())
        while self.steps < MOST_STEPS:
            entering = self._most_violated()
            if entering is None:
                return True
            self._enter(*entering)
            self.excess[entering] = Fraction(0)
            while True:
                self.steps += 1
                x = self._solve()
                wanted = self._excess_at(x)
                below = {key: value for key, value in wanted.items() if value < 0}
                if not below:
                    self._accept(x)
                    break
                self._retreat(wanted, below)
        return False

    def _accept(self, x: list[Fraction]) -> None:
        self.x, self.excess = x, self._excess_at(x)

    def _retreat(
        self, wanted: dict[tuple[str, int], Fraction], below: dict[tuple[str, int], Fraction]
    ) -> None:
        """Go as far toward `wanted` as signs allow, and let go of what has reached 0."""
        share = min(self.excess[key] / (self.excess[key] - value) for key, value in below.items())
        for key, value in wanted.items():
            self.excess[key] += share * (value - self.excess[key])
        for key in [key for key in below if self.excess[key] <= 0]:
            del self.excess[key]
            self._leave(*key)

    def _enter(self, kind: str, k: int) -> None:
        self.moving.discard(k) if kind == "entry" else self.used.add(k)

    def _leave(self, kind: str, k: int) -> None:
        self.moving.add(k) if kind == "entry" else self.used.discard(k)

    def _excess_at(self, x: list[Fraction]) -> dict[tuple[str, int], Fraction]:
        """Excess of reduced costs outside D and of multipliers in E."""
        found = {}
        for j in range(self.n):
            if j not in self.moving and self.side[j]:
                found["entry", j] = -self.side[j] * self._offset(j, x)
        for i in self.used:
            if i >= self.n_equalities:
                found["row", i] = x[i]
        return found

    def _offset(self, j: int, x: list[Fraction]) -> Fraction:
        return sum((self.A[i][j] * x[i] for i in self.used), Fraction(0)) - self.f[j]

    def move(self) -> list[Fraction]:
        """r: 0 outside D."""
        return [self._offset(j, self.x) if j in self.moving else _ZERO for j in range(self.n)]

    def multipliers(self) -> np.ndarray:
        """(rows,) in the caller's units, margins included."""
        found = [x * unit for x, unit in zip(self.x, self.row_unit, strict=True)]
        for i in range(self.n_equalities, len(found)):
            found[i] += self.margin
        return np.array([float(v) if abs(v) <= MOST else np.inf for v in found])

    def _most_violated(self) -> tuple[str, int] | None:
        """The entry whose move, or the row whose slope, has the wrong sign by most."""
        r = self.move()
        worst, found = 0.0, None
        size = float(max((abs(value) for value in r), default=_ZERO)) or 1.0
        for j in self.moving:
            wrong = -self.side[j] * r[j]
            if wrong > 0 and float(wrong) / size >= worst:
                worst, found = float(wrong) / size, ("entry", j)
        for i in range(self.n_equalities, len(self.A)):
            slope = sum((a * value for a, value in zip(self.A[i], r, strict=True)), _ZERO)
            if i not in self.used and slope < 0:
                length = max(abs(a) for a in self.A[i])
                if float(-slope / length) / size >= worst:
                    worst, found = float(-slope / length) / size, ("row", i)
        return found

    def _solve(self) -> list[Fraction]:
        """Least squares over D in the rows of E; 0 for rows that depend on others there."""
        rows, columns = sorted(self.used), sorted(self.moving)
        unit = _common_denominator(self.f)
        f = [int(value * unit) for value in self.f]
        system = [
            [sum(self.A[i][j] * self.A[k][j] for j in columns) for k in rows]
            + [sum(self.A[i][j] * f[j] for j in columns)]
            for i in rows
        ]
        x = [_ZERO] * len(self.A)
        for i, value in zip(rows, _solution(system), strict=True):
            x[i] = value / unit
        return x


_ZERO = Fraction(0)
_SIDE = {
    EntryState.FREE: 0,
    EntryState.AT_LOWER: 1,
    EntryState.AT_UPPER: -1,
    EntryState.FIXED: 0,
}


def _solution(system: list[list[int]]) -> list[Fraction]:
    """Solves G x = g, [G g] in whole numbers, G symmetric and positive semidefinite, g in its
    range, by elimination without fractions; dependent rows get 0."""
    size, divisor, order = len(system), 1, []
    for _ in range(size):
        rest = [i for i in range(size) if i not in order and system[i][i]]
        if not rest:
            break
        pivot = rest[0]
        order.append(pivot)
        line = system[pivot]
        for i in range(size):
            if i in order:
                continue
            factor = system[i][pivot]
            system[i] = [
                (line[pivot] * own - factor * other) // divisor
                for own, other in zip(system[i], line, strict=True)
            ]
        divisor = line[pivot]
    x = [_ZERO] * size
    for pivot in reversed(order):
        line = system[pivot]
        known = sum((line[k] * x[k] for k in range(size) if k != pivot and x[k]), _ZERO)
        x[pivot] = (line[-1] - known) / line[pivot]
    return x


def _unit(line: np.ndarray) -> Fraction:
    """The power of two by which to multiply the numbers to make them whole and small."""
    found = [Fraction(value) for value in line.tolist() if value]
    if not found:
        return Fraction(1)
    common = _common_denominator(found)
    shared = min((int(v * common) & -int(v * common)).bit_length() for v in found) - 1
    return Fraction(common, 1 << shared)


def _whole(line: np.ndarray, unit: Fraction) -> list[int]:
    return [int(Fraction(value) * unit) for value in line.tolist()]


def _common_denominator(values: list[Fraction]) -> int:
    return max(value.denominator for value in values)  # all are powers of two


def _width(values: np.ndarray) -> float:
    """Bits from the largest to the smallest number."""
    size = np.abs(values[values != 0])
    return float(np.log2(size.max()) - np.log2(size.min())) if size.size else 0.0
