"""Sets of whole decisions: rounds of projecting onto the cuts found so far and asking the oracle.

All samples of a batch advance together, so each round is one batch of the oracle. What comes out
are bounds from both sides: `outer` is the nearest cost that explains the decision against the
alternatives found, `point` the nearest one known to explain it against all. Letters: B samples, n
variables.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..._common.arrays import as_costs
from ...optimality.integer import IntegerCosts
from ...optimality.protocol import ProjectionOptions
from ...optimality.sets import OptimalitySet
from ...optimality.tight_rows import tight_rows
from ...oracles.calls import deadline_after, seconds_until
from ...problems.linear import LinearProgram
from ...problems.oracle_problem import OracleProblem
from ..project import check_options, projected
from ..result import IntegerProjection, Projection, ProjectionStatus, as_given
from .cone import FEW, nearest_in_cones
from .separation import ask, cut_with_known

METHODS = ("auto", "cuts", "known")
"""`"cuts"` does without the inner set, which training does not look at; `"known"` also without the
oracle, by decisions that were found before."""
KNOWN_ROUNDS = 50
"""Rounds of cuts from decisions found before, until the oracle is asked."""
FEW_CALLS = 3
"""Budgets of questions up to which one such round does: what it leaves, the next step finds."""
ENTRIES = 4_000_000
"""Of the matrices of inner sets that are built at a time."""


def project_integer(costs: Any, sets: OptimalitySet, options: ProjectionOptions) -> Projection:
    """`project` for sets of whole decisions; `max_iter` is the most questions to the oracle for
    each sample, `warm_start` is not needed: the sets remember their cuts."""
    q, restore = as_costs(costs, sets.n_parameters, "costs")
    check_options(len(q), len(sets), options, METHODS)
    kind = sets.kind
    assert isinstance(kind, IntegerCosts)  # or another projector would have been chosen
    shift = sets.margins[:, None] * kind.direction
    run = _Rounds(q - shift, kind, deadline_after(options.time_limit), options.threads)
    if kind.known_only:
        run.settle(np.arange(len(q)), 0)
    elif options.method == "known":
        run.settle(np.arange(len(q)), 1)
    else:
        run.refine(int(options.max_iter))
        if isinstance(kind.problem, OracleProblem) and not kind.problem.is_trusted:
            run.distrust()
    return as_given(_result(q, shift, sets, run, options), restore)


class _Rounds:
    """A batch on its way: costs of the cone, and what is known of each."""

    def __init__(
        self, t: np.ndarray, kind: IntegerCosts, deadline: float, threads: int | None
    ) -> None:
        self.t, self.kind, self.deadline, self.threads = t, kind, deadline, threads
        size = len(t)
        self.p, self.bound = np.empty_like(t), np.zeros(size)
        self.used, self.calls = np.zeros(size, np.int64), np.zeros(size, np.int64)
        self.proved = np.zeros(size, bool)
        self.missing, self.tilt = np.full(size, np.inf), np.zeros(size)
        self.status = np.full(size, ProjectionStatus.MAX_ITER, np.int8)

    def refine(self, max_calls: int) -> None:
        """Add cuts until the oracle proves that none is missing, or the budget is spent."""
        left, rounds = np.arange(len(self.t)), KNOWN_ROUNDS if max_calls > FEW_CALLS else 1
        for _ in range(max_calls):
            left = self.settle(left, rounds)
            if not left.size:
                return
            seconds = seconds_until(self.deadline)
            if seconds is not None and seconds <= 0:
                self.status[left] = ProjectionStatus.TIME_LIMIT
                return
            found = ask(self.p[left], self._of(left), self.used[left], seconds, self.threads)
            self.calls[left] += found.calls
            self.proved[left], self.missing[left] = found.proved, found.missing
            self.tilt[left] = found.tilt
            stuck = ~found.proved & ~found.added
            self.status[left[stuck]] = ProjectionStatus.UNPROVED
            left = left[found.added]
            self.proved[left] = False
        self.settle(left, rounds - 1)

    def distrust(self) -> None:
        """Take back what an oracle proved that has contradicted itself."""
        asked = self.calls > 0
        self.status[asked & self.proved] = ProjectionStatus.UNPROVED
        self.proved[asked], self.missing[asked] = False, np.inf

    def settle(self, rows: np.ndarray, rounds: int) -> np.ndarray:
        """Project rows onto the cuts that known decisions give; those that are worth a question."""
        todo = rows
        self._project(todo)
        for _ in range(rounds):
            todo = todo[cut_with_known(self.p[todo], self._of(todo), self.used[todo])]
            if not todo.size:
                break
            self._project(todo)
        trivial = ~self._is_real(rows)  # a cost of 0 makes no decision cheaper than another
        self.proved[rows[trivial]], self.missing[rows[trivial]] = True, 0.0
        return rows[~trivial]

    def _is_real(self, rows: np.ndarray) -> np.ndarray:
        size = np.abs(self.p[rows]).max(axis=1, initial=0.0)
        least = 1e-12 * np.abs(self.t[rows]).max(axis=1, initial=0.0)
        self.p[rows[size <= least]] = 0.0
        return size > least

    def _project(self, rows: np.ndarray) -> None:
        kind = self.kind
        for group in np.unique(kind.group[rows]):
            here = rows[kind.group[rows] == group]
            cuts = [kind.alternatives.cuts[s].places for s in kind.number[here]]
            points = kind.alternatives.points[group].rows
            begin = kind.alternatives.last(kind.number[here], FEW)
            near = nearest_in_cones(self.t[here], kind.observed[here], points, cuts, begin)
            self.p[here], self.bound[here] = near.point, near.bound
            kind.alternatives.keep_last(kind.number[here], near.used)
            self.used[here] = [len(cut) for cut in cuts]

    def _of(self, rows: np.ndarray) -> IntegerCosts:
        problem = self.kind.problem
        return self.kind.take(rows, problem if problem.n_instances is None else problem[rows])

    def inside(self) -> np.ndarray:
        """(B, n): costs of the cone that are known to be in it; p itself where that is proved to
        the last digit, NaN where nothing is known."""
        kind = self.kind
        with np.errstate(divide="ignore", invalid="ignore"):
            more = np.where(self.missing > 0, self.missing / kind.least, 0.0)
        # A solver's own accuracy hides behind ties where no distance separates decisions.
        more = np.where(self.proved & (kind.least == 0), 0.0, more)
        push = np.where(np.isfinite(more), self.tilt + more, np.nan)
        return self.p + push[:, None] * kind.direction


def _result(
    q: np.ndarray,
    shift: np.ndarray,
    sets: OptimalitySet,
    run: _Rounds,
    options: ProjectionOptions,
) -> IntegerProjection:
    kind, outer = run.kind, run.p + shift
    if kind.known_only:
        point, run.proved[:] = outer, True
    else:
        point = run.inside() + shift
        _take_inner(q, shift, sets, run, point, options)
    distance = np.linalg.norm(point - q, axis=1)
    size = np.maximum(np.linalg.norm(q, axis=1), np.linalg.norm(shift, axis=1))
    gap = np.maximum(distance - run.bound, 0.0)
    residual = np.divide(gap, size, out=gap.copy(), where=size > 0)
    solved = run.proved & (residual <= options.tol)
    status = np.where(run.proved, ProjectionStatus.INACCURATE, run.status).astype(np.int8)
    status[solved] = ProjectionStatus.SOLVED
    return IntegerProjection(
        point=point,
        distance=distance,
        residual=residual,
        solved=solved,
        status=status,
        iterations=run.calls,
        multipliers=np.zeros((len(q), 0)),
        outer=outer,
        bound=np.minimum(run.bound, distance),
        calls=run.calls,
    )


def _take_inner(
    q: np.ndarray,
    shift: np.ndarray,
    sets: OptimalitySet,
    run: _Rounds,
    point: np.ndarray,
    options: ProjectionOptions,
) -> None:
    """Where nothing is proved: the nearest of the costs that the oracle's bound leaves and those of
    the inner set."""
    rows = np.flatnonzero(~run.proved)
    if not rows.size:
        return
    found = shift[rows]  # the margin alone explains every decision
    if options.method == "auto":
        found = project_inner(q[rows], sets[rows], options)
    known = np.linalg.norm(point[rows] - q[rows], axis=1)
    better = ~(known <= np.linalg.norm(found - q[rows], axis=1))
    point[rows[better]] = found[better]


def project_inner(q: np.ndarray, sets: OptimalitySet, options: ProjectionOptions) -> np.ndarray:
    """(B, n): costs that rows, bounds and valid inequalities prove to be in the set, about the
    nearest to q.

        margin g + { A_eq^T v - A_ub^T mu - G^T nu + s }   mu >= 0 on active rows, nu >= 0 on valid
        inequalities that are tight (`optimality.tight_rows`), s of the sign of the bound

    The shift takes the margin out, so that rows need none. Every point of the kernel is in the set,
    so the slower solvers that would prove it the nearest are not asked.
    """
    kind = sets.kind
    assert isinstance(kind, IntegerCosts)
    shift = sets.margins[:, None] * kind.direction
    plain = ProjectionOptions(method="kernel", tol=options.tol, threads=options.threads)
    points = np.empty_like(q)
    for rows, program in _inner_programs(kind):
        inner = OptimalitySet(program, kind.observed[rows], 0.0, tol=sets.tol)
        points[rows] = np.asarray(projected((q - shift)[rows], inner, plain).point)
    return points + shift


def _inner_programs(kind: IntegerCosts) -> Iterator[tuple[np.ndarray, LinearProgram]]:
    """Decisions, some at a time, and a program for each: the relaxation with the tight rows."""
    problem, n = kind.problem, kind.n_parameters
    rows, size = problem.relaxation, len(kind.observed)
    tight = [tight_rows(problem, x, b) for b, x in enumerate(kind.observed)]
    own = rows.n_instances is not None
    most = max((len(G) for G in tight), default=0)
    if not most:
        yield np.arange(size), rows
        return
    base = rows.ub_rows.shape[0]
    step = max(1, ENTRIES // (n * (base + most)))
    for first in range(0, size, step):
        here = np.arange(first, min(first + step, size))
        some = rows[here] if own else rows
        A = np.zeros((len(here), base + most, n))
        b = np.ones((len(here), base + most))  # what is not filled in is 0 <= 1
        for k, at in enumerate(here):
            A[k, :base] = some.ub_rows.matrix(k if some.ub_rows.per_instance else 0).todense()
            A[k, base : base + len(tight[at])] = tight[at]
            b[k, base : base + len(tight[at])] = tight[at] @ kind.observed[at]
        b[:, :base] = some.b_ub
        equal = (some.eq_rows, some.b_eq) if some.eq_rows.shape[0] else (None, None)
        yield here, LinearProgram(*equal, A, b, some.lb, some.ub)
