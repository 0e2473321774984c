"""Any linear program: HiGHS when highspy is installed, scipy's copy of it when not.

Each instance is solved from the same start, so its decision depends on nothing else in the batch.
What the solver says is believed only after it has been checked here: a decision by its constraints
and the multipliers that prove it the cheapest, the rest by multipliers and rays (`proofs`). Where
that fails, `fallback` tries other ways.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ..problems.linear import relative_violation
from ..problems.solution import SolveStatus
from .calls import wait_for
from .claims import Claim, Way, snapped
from .fallback import FEASIBLE, Doubtful, Known
from .gap import duality_gap
from .proofs import Polyhedron

if TYPE_CHECKING:
    from ..problems.linear import LinearProgram

SHORT = 500
"""Rows and columns of a problem that HiGHS solves, or gives up, in less than a second."""
PART = 1 << 16
"""Entries of decisions checked at a time."""


class Solver(Protocol):
    """Solves one instance at a time; `seconds` may be inf."""

    def solve(
        self, problem: LinearProgram, instance: int, cost: np.ndarray, seconds: float
    ) -> Claim: ...

    def once(self, at: Polyhedron, cost: np.ndarray, seconds: float, way: Way) -> Claim: ...

    def stop(self) -> None: ...


def solve_general(
    problem: LinearProgram, costs: np.ndarray, deadline: float, threads: int
) -> tuple[np.ndarray, np.ndarray]:
    """Decisions (B, n) and statuses (B,) for scaled costs (B, n)."""
    batch = _Batch(problem, costs, deadline)
    threads = min(threads, len(costs))
    size = problem.n_variables + problem.eq_rows.shape[0] + problem.ub_rows.shape[0]
    if threads <= 1 and size <= SHORT:
        batch.work(range(len(costs)))
    else:
        shares = [range(k, len(costs), threads) for k in range(threads)]
        wait_for([partial(batch.work, share) for share in shares], batch.stop)
    return batch.X, batch.status


class _Batch:
    """One call: costs in, decisions and statuses filled in by one or more threads."""

    def __init__(self, problem: LinearProgram, costs: np.ndarray, deadline: float) -> None:
        self.problem, self.costs, self.deadline = problem, costs, deadline
        self.X = np.zeros(costs.shape)
        self.status = np.full(len(costs), SolveStatus.LIMIT, dtype=np.int8)
        # Idle solvers wait here; a thread takes one or makes one, so no two share a model.
        self.idle: list[Solver] = problem.cached("general-solvers", list)
        self.running: list[Solver] = []
        self.is_stopped = False
        # Where all instances share all constraints, they share what is found out about them.
        self.is_shared = problem.n_instances is None
        self.known: list[Known] = problem.cached("known", list) if self.is_shared else []

    def stop(self) -> None:
        self.is_stopped = True
        for solver in self.running:
            solver.stop()

    def _new(self) -> Solver:
        solver = _new_solver()
        self.running.append(solver)
        if self.is_stopped:
            solver.stop()
        return solver

    def work(self, rows: range) -> None:
        try:
            solver = self.idle.pop()
            self.running.append(solver)
        except IndexError:
            solver = self._new()
        size = max(1, PART // self.problem.n_variables)
        for start in range(0, len(rows), size):
            self._solve_part(solver, rows[start : start + size])
        if not self.is_stopped:
            self.idle.append(solver)

    def _solve_part(self, solver: Solver, rows: range) -> None:
        """Solve some instances, check them together, and settle what is left in doubt."""
        claims: dict[int, Claim] = {}
        for i in rows:
            seconds = deadline_left(self.deadline)
            if seconds <= 0 or self.is_stopped:
                break
            if self._is_empty():
                self.status[i] = SolveStatus.INFEASIBLE
                continue
            claim = solver.solve(self.problem, i, self.costs[i], seconds)
            if claim.status is not SolveStatus.LIMIT:
                claims[i] = claim
        doubtful = self._accept(claims)
        if doubtful:
            other = self._new()  # the first one keeps its model
            for i in doubtful:
                self._settle(other, i, claims[i])
            self.running.remove(other)

    def _accept(self, claims: dict[int, Claim]) -> list[int]:
        """Enter the decisions that are proved to be best; the instances of all others."""
        found = [i for i, c in claims.items() if c.x is not None and c.y is not None]
        if not found:
            return list(claims)
        some, C = self.problem[np.array(found)], self.costs[found]
        X = np.array([claims[i].x for i in found])
        Y = np.array([claims[i].y for i in found])
        X = snapped(some, np.nan_to_num(X, nan=np.inf))  # NaN must count as a violation
        gap = duality_gap(some, C, X, Y)
        good = gap.closed & ~gap.unsupported.any(axis=1)
        good &= relative_violation(some, X) <= FEASIBLE
        rows = np.array(found)[good]
        self.X[rows], self.status[rows] = X[good], SolveStatus.OPTIMAL
        proved = set(rows.tolist())
        return [i for i in claims if i not in proved]

    def _settle(self, other: Solver, i: int, claim: Claim) -> None:
        if self.is_stopped:
            return
        if self._is_empty():
            self.status[i] = SolveStatus.INFEASIBLE
            return
        one = self.problem[np.array([i])]
        known = self.known[0] if self.known else Known(one)
        status, x = Doubtful(one, self.costs[i], other, self.deadline, known).settle(claim)
        self.status[i] = status
        if x is not None:
            self.X[i] = x
        known.is_empty = status is SolveStatus.INFEASIBLE
        if self.is_shared and not self.known:
            self.known.append(known)

    def _is_empty(self) -> bool:
        return bool(self.known) and self.known[0].is_empty


def deadline_left(deadline: float) -> float:
    return deadline - time.monotonic()


def _new_solver() -> Solver:
    try:
        from .highs import HighsSolver
    except ImportError:  # highspy is optional
        from .linprog import LinprogSolver

        return LinprogSolver()
    return HighsSolver()
