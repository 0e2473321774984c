"""Ask for decisions that a cost makes cheaper than the observed one: those known, then the oracle.

Costs here are those of the cone (see `optimality.integer`): without the margin's part. A cost p is
asked about with a little of g added, which raises the cost of every other decision in proportion to
its distance. So an exact oracle breaks ties in favor of the observed decision, and says with it
that p plus this little is in the cone. Letters: R rows, n entries.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..._common.compiled import kernel
from ...optimality.alternatives import RECENT
from ...optimality.integer import IntegerCosts
from ...problems.oracle_problem import OracleProblem
from ...problems.solution import SolveStatus

TIE = 1e-10
"""Of the largest cost: how much of g is added."""
AUDIT = 1e-3
"""The same in a second question, to a caller's own oracle that answered with another decision."""
PROBES = 8
"""Questions that only test a caller's function."""
NEW = 100
"""Answers until a function that has not contradicted itself is asked twice no more."""
VIOLATED = 1e-9
"""Of |p| |x - x*|: a decision cheaper by less counts as tied."""
EXACT = 1e-7
"""The same for an oracle's optimum that costs more than the observed decision: within the accuracy
of a solver, or wrong."""

FEW_AT_ONCE = 6
"""Known decisions that are added as cuts together."""
ROUNDING = 1e-12
"""Of |p| |x*|: differences that come from the last digits of decisions."""


class Answers(NamedTuple):
    """Of R questions."""

    added: np.ndarray
    """(R,) bool: a decision that is cheaper than the observed one was found, and is a new cut."""
    proved: np.ndarray
    """(R,) bool: the oracle says that there is none."""
    missing: np.ndarray
    """(R,) by how much there may be a cheaper decision, under p plus `tilt` g; inf if not known."""
    tilt: np.ndarray
    """(R,)"""
    calls: np.ndarray
    """(R,) of the oracle."""


def cut_with_known(p: np.ndarray, kind: IntegerCosts, used: np.ndarray) -> np.ndarray:
    """(R,) bool: decisions found before are cheaper under p (R, n) than the observed one, and are
    cuts beyond those `used` (R,). The cheapest few are added, which takes fewer rounds than one."""
    added = np.zeros(len(p), bool)
    for group in np.unique(kind.group):
        here = np.flatnonzero(kind.group == group)
        rows = kind.alternatives.points[group].rows
        first = max(0, len(rows) - RECENT)
        places = np.full((len(here), FEW_AT_ONCE), -1, np.int64)
        _cheapest(p[here], kind.observed[here], rows[first:], places)
        r, k = np.nonzero(places >= 0)
        row = here[r]
        at = kind.alternatives.cut(kind.number[row].tolist(), (first + places[r, k]).tolist())
        added[row[np.array(at, int) >= used[row]]] = True
    return added


# A product of matrices would be as fast alone, but wakes all threads of the linear algebra for a
# fraction of a millisecond; on a busy machine they wait for each other twenty times as long.
@kernel(fastmath={"reassoc", "contract"})
def _cheapest(p, observed, points, places):
    """Fill in which points (N, n) are the cheapest under each p (R, n), of those that are cheaper
    than the observed decision by more than rounding; -1 where there are fewer."""
    count, few = places.shape
    n = p.shape[1]
    values = np.full((count, few), np.inf)
    for k in range(len(points)):
        for r in range(count):
            value = 0.0
            for j in range(n):
                value += p[r, j] * points[k, j]
            if value < values[r, few - 1]:
                at = few - 1
                while at > 0 and values[r, at - 1] > value:
                    values[r, at], places[r, at] = values[r, at - 1], places[r, at - 1]
                    at -= 1
                values[r, at], places[r, at] = value, k
    for r in range(count):
        size, length = 0.0, 0.0
        for j in range(n):
            size += p[r, j] ** 2
            length += observed[r, j] ** 2
        for i in range(few):
            if places[r, i] < 0:
                break
            gain, moved = 0.0, 0.0
            for j in range(n):
                step = points[places[r, i], j] - observed[r, j]
                gain -= p[r, j] * step
                moved += step * step
            share = VIOLATED * np.sqrt(moved) + ROUNDING * np.sqrt(length)
            if gain <= np.sqrt(size) * share:
                places[r, i] = -1


def are_cheaper(p: np.ndarray, steps: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """(R,) bool: whether other decisions, `steps` (R, n) from the observed ones, cost less than
    these under p (R, n), by more than rounding."""
    return np.einsum("ij,ij->i", p, steps) < -_allowed(VIOLATED, p, steps, observed)


def _allowed(share: float, p: np.ndarray, steps: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """(R,) differences in cost that mean nothing."""
    size = np.linalg.norm(p, axis=1)
    moved, length = np.linalg.norm(steps, axis=1), np.linalg.norm(observed, axis=1)
    return size * (share * moved + ROUNDING * length)


def ask(
    p: np.ndarray,
    kind: IntegerCosts,
    used: np.ndarray,
    seconds: float | None,
    threads: int | None,
) -> Answers:
    """Ask the oracle about costs p (R, n), none of them 0, nearest among `used` (R,) cuts each."""
    found = _asked(p, kind, used, TIE, seconds, threads)
    if isinstance(kind.problem, OracleProblem):
        _audit(p, kind, used, found, seconds, threads)
    return found


def _audit(
    p: np.ndarray,
    kind: IntegerCosts,
    used: np.ndarray,
    found: Answers,
    seconds: float | None,
    threads: int | None,
) -> None:
    """Take proofs of a caller's function back that fail a question whose answer is known.

    Once for each problem it is asked about a few costs drawn at random: its answers, and the
    observed decisions, must not contradict each other. Once for each decision about costs g, under
    which nothing is as cheap as the observed one, and about -g, under which all others are. And
    again about p with a little more of g, under which the observed one is still the best, where
    the function answered p with another decision, or is `NEW`.
    """
    problem: Any = kind.problem
    record, confirmed = problem.record, kind.alternatives.confirmed
    if not record.probed:
        record.probed = True
        probes = np.random.default_rng(0).normal(size=(PROBES, p.shape[1]))
        start = kind.observed[np.arange(PROBES) % len(p)]
        problem.solve(probes, time_limit=seconds, threads=threads, start=start)
        found.calls[0] += PROBES
    can = found.proved & (kind.least > 0)
    new = np.array([r for r in np.flatnonzero(can) if int(kind.number[r]) not in confirmed], int)
    if new.size:
        some = kind.take(new, problem)
        for sign in (1.0, -1.0):
            answer = problem.solve(
                sign * some.direction, time_limit=seconds, threads=threads, start=some.observed
            )
            found.calls[new] += 1
            same = np.all(np.asarray(answer.incumbent) == some.observed, axis=1)
            found.proved[new] &= same if sign > 0 else ~same
        confirmed.update(some.number[found.proved[new]].tolist())
    doubtful = np.flatnonzero(found.proved & ((found.missing != 0.0) | (record.count < NEW)))
    if doubtful.size:
        some = kind.take(doubtful, problem)
        again = _asked(p[doubtful], some, used[doubtful], AUDIT, seconds, threads)
        found.calls[doubtful] += again.calls
        found.added[doubtful] = again.added
        found.proved[doubtful] &= again.proved & ~again.added


def _asked(
    p: np.ndarray,
    kind: IntegerCosts,
    used: np.ndarray,
    share: float,
    seconds: float | None,
    threads: int | None,
) -> Answers:
    tilt = share * np.abs(p).max(axis=1)
    costs = p + tilt[:, None] * kind.direction
    answer = kind.problem.solve(costs, time_limit=seconds, threads=threads, start=kind.observed)
    X: Any = np.asarray(answer.incumbent)
    own, there = kind.observed, np.isfinite(X).all(axis=1)
    optimal = there & (np.asarray(answer.status) == SolveStatus.OPTIMAL)
    steps = np.where(there[:, None], X - own, 0.0)
    own_cost = np.einsum("ij,ij->i", costs, own)
    gain = -np.einsum("ij,ij->i", costs, steps)
    # An optimum that costs more than a decision that is feasible.
    wrong = optimal & (gain < -_allowed(EXACT, costs, steps, own))
    lower = there & ~wrong & are_cheaper(p, steps, own)
    proved = optimal & ~wrong & ~lower
    # Other decisions may be tied, or within the accuracy of a solver.
    tied = np.where(steps.any(axis=1), np.maximum(gain, np.finfo(float).tiny), 0.0)
    missing = np.maximum(own_cost - np.asarray(answer.bound), 0.0)
    missing = np.where(wrong, np.inf, np.where(proved, tied, missing))
    added = np.zeros(len(p), bool)
    new = np.flatnonzero(lower)
    places = [kind.alternatives.add(int(kind.group[r]), np.ascontiguousarray(X[r])) for r in new]
    at = kind.alternatives.cut(kind.number[new].tolist(), places)
    # A cut in use that is violated all the same: the oracle and the cone disagree.
    added[new] = np.array(at, int) >= used[new]
    return Answers(added, proved, missing, tilt, np.ones(len(p), np.int64))
