"""The next best decisions of a linear program, proved to be them.

Every vertex but v lies on a facet that v does not lie on. So the second best vertex is the best of
all facets that the best one is not on; and once a vertex is the best of a face, the others of that
face lie on its intersections with such facets. Each of these is a linear program with some limits
held at equality. A face inside one that still waits needs no program of its own.

Letters: n variables, m inequality rows.
"""

from __future__ import annotations

import heapq
from itertools import count
from time import monotonic
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ...metrics.sameness import SAME, alike
from ...problems.integer import IntegerProgram
from ...problems.linear import LinearProgram
from ...problems.solution import SolveStatus

PROGRAMS, SECONDS = 400, 2.0
"""Linear programs that may be solved for one list, and seconds for them: a page is to answer."""
MOST_TRIED = 60
"""Entries of a decision that are made dear in turn where faces are too many."""

Face = frozenset[int]
"""Limits that hold with equality."""


class Alternative(NamedTuple):
    """A decision and what it costs above the best."""

    decision: np.ndarray
    extra: float


class NextBest(NamedTuple):
    """Other decisions, the best first; whether no other vertex lies between them."""

    found: list[Alternative]
    proved: bool


def next_best(
    problem: LinearProgram | IntegerProgram,
    cost: np.ndarray,
    best: np.ndarray,
    most: int,
    seen: np.ndarray,
) -> NextBest:
    """Up to `most` vertices that come after the optimum `best` (n,) of one instance. Where there
    are too many faces to look at, or decisions are whole, some that cost little more, those of
    `seen` (K, n) that are feasible among them, without a proof."""
    if isinstance(problem, IntegerProgram):
        near = _one_off(problem, cost, best)
    else:
        found = _Search(problem, cost).run(best, most)
        if found is not None:
            return NextBest([Alternative(x, float(cost @ (x - best))) for x in found], True)
        near = _dear(problem, cost, best)
    there: Any = problem[np.zeros(len(seen), int)].constraint_violation(seen) <= SAME
    return NextBest(_ordered([*near, *seen[there]], cost, best)[:most], False)


class _Search:
    """The faces of one instance that wait, by the cost of their best vertex."""

    def __init__(self, problem: LinearProgram, cost: np.ndarray) -> None:
        self._n = problem.n_variables
        eq: Any = problem.eq_rows.matrix(0)
        ub: Any = problem.ub_rows.matrix(0)
        b_eq, b_ub, lb, high = (
            np.atleast_2d(part)[0] for part in (problem.b_eq, problem.b_ub, problem.lb, problem.ub)
        )
        ends = np.isfinite(b_ub)
        self._ub, self._b_ub = ub[np.flatnonzero(ends)], b_ub[ends]
        m = len(self._b_ub)  # rows as equalities, each with a slack of its own
        slack = sparse.vstack([sparse.csr_array((eq.shape[0], m)), sparse.eye_array(m)])
        self._rows = sparse.csr_array(sparse.hstack([sparse.vstack([eq, self._ub]), slack]))
        self._side = np.concatenate([b_eq, self._b_ub])
        self._low = np.concatenate([lb, np.zeros(m)])
        self._high = np.concatenate([high, np.full(m, np.inf)])
        self._cost = np.concatenate([cost, np.zeros(m)])
        moves = self._high > self._low
        lower = np.flatnonzero(moves & np.isfinite(self._low))
        upper = np.flatnonzero(moves & np.isfinite(self._high))
        self._entry = np.concatenate([lower, upper])  # of every limit, and its value
        self._value = np.concatenate([self._low[lower], self._high[upper]])
        self._left, self._number = PROGRAMS, count()
        self._end = monotonic() + SECONDS
        self._waiting: list[tuple[float, int, Face, np.ndarray]] = []
        self._closed: set[Face] = set()
        self._empty: list[Face] = []

    def run(self, best: np.ndarray, most: int) -> list[np.ndarray] | None:
        """The vertices after `best`; None where not even one can be proved."""
        found: list[np.ndarray] = []
        if not self._open(frozenset(), best):
            return None
        while self._waiting and len(found) < most:
            _, _, face, x = heapq.heappop(self._waiting)
            if not any(alike(x, other).all() for other in (best, *found)):
                found.append(x)
            if len(found) < most and not self._open(face, x):
                return found or None
        return found

    def _open(self, face: Face, x: np.ndarray) -> bool:
        """Let the faces of `face` wait that together hold all its vertices but x; False where that
        takes too many programs or too long, or one has no answer."""
        waiting = [other for _, _, other, _ in self._waiting]
        inside = [face | {int(i)} for i in np.flatnonzero(~self._tight(x))]
        faces = [
            each
            for each in inside
            if each not in self._closed
            and not any(other <= each for other in waiting)
            and not any(other <= each for other in self._empty)
        ]
        self._closed |= set(faces)
        self._left -= len(faces)
        if not faces:
            return True
        seconds = self._end - monotonic()
        if self._left < 0 or seconds <= 0:
            return False
        low, high = (np.tile(part, (len(faces), 1)) for part in (self._low, self._high))
        for k, each in enumerate(faces):
            held = list(each)
            low[k, self._entry[held]] = high[k, self._entry[held]] = self._value[held]
        answer = LinearProgram(self._rows, self._side, lb=low, ub=high).solve(
            np.tile(self._cost, (len(faces), 1)), time_limit=seconds
        )
        for k, each in enumerate(faces):
            status = SolveStatus(int(np.asarray(answer.status)[k]))
            if status is SolveStatus.INFEASIBLE:
                self._empty.append(each)
            elif status is SolveStatus.OPTIMAL:
                point = np.asarray(answer.x)[k, : self._n]
                value = float(self._cost[: self._n] @ point)
                heapq.heappush(self._waiting, (value, next(self._number), each, point))
            else:
                return False
        return True

    def _tight(self, x: np.ndarray) -> np.ndarray:
        """Which limits a point (n,) reaches."""
        slack = self._b_ub - self._ub @ x
        size = np.abs(self._b_ub) + abs(self._ub) @ np.abs(x) + 1.0
        point = np.concatenate([x, slack])
        scale = np.concatenate([1.0 + np.abs(x), size])
        gap = np.abs(point[self._entry] - self._value)
        return gap <= SAME * scale[self._entry]


def _dear(problem: LinearProgram, cost: np.ndarray, best: np.ndarray) -> np.ndarray:
    """(K, n) the optimum with one of its entries made dear, each in turn."""
    lower = np.atleast_2d(problem.lb)[0]
    used = np.flatnonzero(np.abs(best - np.minimum(np.abs(lower), np.abs(best))) > SAME)
    used = used[np.argsort(-np.abs(best[used]), kind="stable")][:MOST_TRIED]
    dear = np.repeat(cost[None], len(used), axis=0)
    dear[np.arange(len(used)), used] += 1e3 * (1.0 + np.abs(cost).max())
    answer = problem[np.zeros(len(used), int)].solve(dear, time_limit=SECONDS)
    return np.asarray(answer.x)[np.asarray(answer.optimal)]


def _one_off(problem: IntegerProgram, cost: np.ndarray, best: np.ndarray) -> np.ndarray:
    """(K, n) the best decisions with one whole entry below or above what it is in the best of all,
    each in turn; NaN where there is none, or none was proved in time. The second best of all that
    differ in a whole entry is among them."""
    rows = problem.relaxation
    lb, ub = (np.broadcast_to(np.atleast_2d(bound)[0], best.shape) for bound in (rows.lb, rows.ub))
    whole = np.flatnonzero(problem.integer)
    turns = [(j, -1.0) for j in whole if best[j] - 1.0 >= lb[j]]
    turns += [(j, 1.0) for j in whole if best[j] + 1.0 <= ub[j]]
    size = min(len(turns), 2 * MOST_TRIED)
    low, high = np.tile(lb, (size, 1)), np.tile(ub, (size, 1))
    for k, (j, way) in enumerate(turns[:size]):
        side = high if way < 0 else low
        side[k, j] = best[j] + way
    if not size:
        return np.empty((0, len(best)))
    sides = [np.atleast_2d(part)[0] for part in (rows.b_eq, rows.b_ub)]
    turned = LinearProgram(rows.A_eq, sides[0], rows.A_ub, sides[1], low, high)
    branches = IntegerProgram.of(turned, problem.integer)
    answer = branches.solve(np.tile(cost, (size, 1)), time_limit=SECONDS)
    return np.asarray(answer.x)


def _ordered(points: list[np.ndarray], cost: np.ndarray, best: np.ndarray) -> list[Alternative]:
    """Those that differ from the best one and from each other, the nearest in cost first."""
    kept: dict[bytes, Alternative] = {}
    for x in points:
        if np.isfinite(x).all() and not alike(x, best).all():
            found = Alternative(x, float(cost @ (x - best)))
            kept.setdefault((np.round(x, 6) + 0.0).tobytes(), found)
    return sorted(kept.values(), key=lambda item: item.extra)
