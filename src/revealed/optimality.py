"""Observed decisions -> the sets of costs that explain them.

A decision x* is optimal under c exactly if c = A_eq^T v - A_ub^T mu + s with

    s_j = 0 where x*_j is free,  s_j >= margin at its lower bound,  s_j <= -margin at its upper
    bound, any s_j where the bounds leave no choice,  mu_i >= margin on rows that bind,  mu_i = 0
    on others.

So a set is told by the state of every entry and row. Letters: B instances, n entries, m_ub
inequality rows.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np

from ._arrays import as_costs, as_index, to_float64
from .errors import InfeasibleDecisionError, InputError, ShapeError
from .oracle import SolveStatus
from .problem import LinearProgram, constraint_gaps, row_scale


class EntryState(IntEnum):
    """Where an entry of a decision stands, which fixes the sign of its reduced cost."""

    FREE = 0
    AT_LOWER = 1
    AT_UPPER = 2
    FIXED = 3


class OptimalitySet:
    """For each decision of a batch, the convex set of costs under which it is optimal.

    A decision read from a solver is never exactly at its bounds: an entry counts as at a bound,
    and a row as binding, within `tol`, relative to 1 + |bound| and to the size of the row's
    terms. The default suits interior-point output, where 5e-6 stands for 0. `snapped` and
    `nearest_free` say what that decided, and `report()` says it in words. A decision that breaks
    its constraints by more than `tol` is refused.

    `margin` (one number, or one for each instance) keeps out the trivial c = 0 and costs that are
    merely tied.
    """

    problem: LinearProgram
    decisions: np.ndarray
    """(B, n) as given."""
    margins: np.ndarray
    """(B,)"""
    tol: float
    entry_state: np.ndarray
    """(B, n) int8 codes of EntryState."""
    row_active: np.ndarray
    """(B, m_ub) whether each inequality binds."""
    row_used: np.ndarray
    """(m_ub,) whether each inequality binds for any decision of the data set; slices inherit it."""
    snapped: np.ndarray
    """(B,) the largest relative distance from a bound, or of a row from binding, that was read as
    none."""
    nearest_free: np.ndarray
    """(B,) the smallest such distance that was read as real; inf if there is none."""

    def __init__(
        self, problem: LinearProgram, decisions: Any, margin: Any = 1.0, *, tol: float = 1e-5
    ) -> None:
        if not isinstance(problem, LinearProgram):
            raise InputError(
                f"`problem` must be a LinearProgram; got {type(problem).__name__}. "
                "Build one with rv.LinearProgram(...) or from rv.problems."
            )
        X, _ = as_costs(decisions, problem.n_variables, "decisions")
        problem.check_batch(len(X), "decisions")
        self.problem = problem
        self.decisions = X
        self.margins = _margins(margin, len(X))
        self.tol = _tolerance(tol)
        _refuse_infeasible(problem, X, self.tol)
        self.entry_state, entry_gap = _entry_states(problem, X, self.tol)
        self.row_active, row_gap = _active_rows(problem, X, self.tol)
        self.row_used = np.asarray(self.row_active.any(axis=0))
        gaps = np.hstack([entry_gap, row_gap])
        read_as_none = gaps <= self.tol
        self.snapped = np.where(read_as_none, gaps, 0.0).max(1, initial=0.0)
        self.nearest_free = np.where(read_as_none, np.inf, gaps).min(1, initial=np.inf)

    @property
    def margin(self) -> float:
        """The margin of all instances; `margins` where they differ."""
        if len(self.margins) and (self.margins != self.margins[0]).any():
            raise InputError("The instances have margins of their own; read `margins` instead.")
        return float(self.margins[0]) if len(self.margins) else 0.0

    def __len__(self) -> int:
        return len(self.decisions)

    def __getitem__(self, index: Any) -> OptimalitySet:
        """The sets of the chosen instances: an integer, slice, mask or integer array."""
        chosen = as_index(index, len(self))
        result = object.__new__(OptimalitySet)
        result.problem = self.problem[chosen]
        result.tol, result.row_used = self.tol, self.row_used
        for name in _PER_INSTANCE:
            setattr(result, name, getattr(self, name)[chosen])
        return result

    def contains(self, costs: Any, *, tol: float = 1e-8) -> Any:
        """(B,) bool: whether each cost explains its decision, to a distance of `tol` |cost|."""
        from .projection import project  # the one step to the right: membership is a distance of 0

        c, restore = as_costs(costs, self.problem.n_variables, "costs")
        p = project(c, self)
        largest = np.maximum(np.abs(c).max(axis=1, initial=0.0), np.finfo(float).tiny)
        size = np.maximum(largest * np.linalg.norm(c / largest[:, None], axis=1), self.margins)
        return restore(p.solved & (p.distance <= tol * size))

    def slack(self, costs: Any) -> Any:
        """(B,): the largest margin at which each cost still explains its decision.

        Negative where some reduced cost has the wrong sign, -inf where no multipliers fit the
        free entries, inf where nothing is at a bound. One linear program for each instance.
        """
        c, restore = as_costs(costs, self.problem.n_variables, "costs")
        _same_length(c, self)
        return restore(np.array([_largest_margin(self, c[b], b) for b in range(len(c))]))

    def report(self) -> str:
        """What was decided about the entries and rows, in words."""
        states = [f"{(self.entry_state == s).sum()} {_WORDS[s]}" for s in EntryState]
        told = f"{len(self)} decisions of {self.problem.n_variables} entries: {', '.join(states)}"
        if self.row_active.size:
            told += f"; {self.row_active.sum()} of {self.row_active.size} inequalities bind"
        farthest = self.snapped.max(initial=0.0)
        nearest = self.nearest_free.min(initial=np.inf)
        limit = f"At most {self.tol:g} from a bound counts as at the bound: the farthest such entry"
        limit += f" or row is {farthest:.2g} away, the nearest that does not count {nearest:.2g}."
        lines = [f"{told}.", limit]
        close = np.flatnonzero(self.nearest_free < 100 * self.tol)
        if close.size:
            lines.append(
                f"{close.size} decisions (first: {close[0]}) come so near the limit that `tol` "
                "deserves a look."
            )
        return "\n".join(lines)

    def __repr__(self) -> str:
        spread = np.unique(self.margins)
        margin = f"{spread[0]:g}" if len(spread) == 1 else f"{len(spread)} values"
        return f"OptimalitySet({len(self)} decisions, margin {margin}, {self.problem!r})"


_PER_INSTANCE = ("decisions", "margins", "entry_state", "row_active", "snapped", "nearest_free")
_WORDS = {
    EntryState.FREE: "free",
    EntryState.AT_LOWER: "at lower",
    EntryState.AT_UPPER: "at upper",
    EntryState.FIXED: "fixed",
}


def _margins(margin: Any, size: int) -> np.ndarray:
    array = to_float64(margin, "margin")
    if array.ndim > 1 or (array.ndim == 1 and len(array) != size):
        raise ShapeError(
            f"`margin` must be one number or ({size},), one for each decision; "
            f"got shape {array.shape}."
        )
    bad = np.flatnonzero(~(np.isfinite(array) & (array >= 0)).ravel())
    if bad.size:
        raise InputError(
            f"`margin` must be finite and at least 0; got {array.ravel()[bad[0]]}. "
            "Use 0 for plain optimality, 1 for the usual margin."
        )
    return np.array(np.broadcast_to(array, (size,)))


def _tolerance(tol: Any) -> float:
    array = to_float64(tol, "tol")
    value = float(array) if array.ndim == 0 else np.nan
    if not 0 <= value < 0.1:
        raise InputError(f"`tol` must be at least 0 and below 0.1; got {tol}. The default is 1e-5.")
    return value


def _refuse_infeasible(problem: LinearProgram, X: np.ndarray, tol: float) -> None:
    violation = np.asarray(problem.constraint_violation(X))
    bad = np.flatnonzero(~(violation <= tol))
    if bad.size:
        b = int(bad[0])
        raise InfeasibleDecisionError(
            f"Decision {b} breaks {_worst_constraint(problem, X, b)}, a relative violation of "
            f"{violation[b]:.3g} where {tol:g} is allowed ({len(bad)} of {len(X)} decisions do). "
            "Check that decisions and constraints belong together, or raise `tol` if they are "
            "merely inexact."
        )


def _worst_constraint(problem: LinearProgram, X: np.ndarray, b: int) -> str:
    """The constraint that decision b breaks most, in words."""
    one, x = problem[np.array([b])], X[b : b + 1]
    gaps = constraint_gaps(one, x)
    kind = int(np.argmax([gap.max(initial=0.0) for gap in gaps]))
    i = int(np.argmax(gaps[kind][0]))
    got = (one.eq_rows.times(x), one.ub_rows.times(x), x, x)[kind][0, i]
    limit = np.atleast_2d((one.b_eq, one.b_ub, one.lb, one.ub)[kind])[0, i]
    what, name = (
        (f"equality row {i}", "b_eq"),
        (f"inequality row {i}", "b_ub"),
        (f"the lower bound of entry {i}", "lb"),
        (f"the upper bound of entry {i}", "ub"),
    )[kind]
    return f"{what}: it gives {got:.6g}, {name} is {limit:.6g}"


def _entry_states(
    problem: LinearProgram, X: np.ndarray, tol: float
) -> tuple[np.ndarray, np.ndarray]:
    """(B, n) states, and each entry's relative distance from its nearest bound (0 where it has no
    choice)."""
    lb, ub = problem.lb, problem.ub
    with np.errstate(invalid="ignore"):
        below = np.abs(X - lb) / (1.0 + np.abs(lb))
        above = np.abs(ub - X) / (1.0 + np.abs(ub))
        fixed = ub - lb <= tol * (1.0 + np.minimum(np.abs(lb), np.abs(ub)))
        fixed &= np.isfinite(ub - lb)  # inf <= inf: no bound at all is not a narrow one
    # |x - inf| / (1 + inf) is NaN: no such bound, so infinitely far away.
    below, above = (np.where(np.isnan(a), np.inf, a) for a in (below, above))
    state = np.full(X.shape, EntryState.FREE, np.int8)
    lower_first = below <= above
    state[(below <= tol) & lower_first] = EntryState.AT_LOWER
    state[(above <= tol) & ~lower_first] = EntryState.AT_UPPER
    fixed = np.broadcast_to(fixed, X.shape)
    state[fixed] = EntryState.FIXED
    return state, np.where(fixed, 0.0, np.minimum(below, above))


def _active_rows(
    problem: LinearProgram, X: np.ndarray, tol: float
) -> tuple[np.ndarray, np.ndarray]:
    """(B, m_ub) whether each inequality binds, and its relative distance from binding."""
    rows = problem.ub_rows
    if rows.shape[0] == 0:
        return np.zeros((len(X), 0), bool), np.zeros((len(X), 0))
    with np.errstate(invalid="ignore"):
        gap = np.abs(problem.b_ub - rows.times(X)) / row_scale(rows, problem.b_ub, X)
    gap = np.where(np.isnan(gap), np.inf, gap)
    return np.ascontiguousarray(gap <= tol), gap


def _same_length(costs: np.ndarray, sets: OptimalitySet) -> None:
    if len(costs) != len(sets):
        raise ShapeError(
            f"`costs` must have one row for each of the {len(sets)} decisions; got {len(costs)}. "
            "Choose the sets of a batch with `sets[index]`."
        )


def _largest_margin(sets: OptimalitySet, cost: np.ndarray, b: int) -> float:
    """max delta  s.t.  cost = A_eq^T v - A_ub^T mu + s,  s and mu on the right side by delta."""
    one = sets.problem[np.array([b])]
    active, state = sets.row_active[b], sets.entry_state[b]
    eq, ub = one.eq_rows.matrix(0).toarray(), one.ub_rows.matrix(0).toarray()[active]
    n_v, n_mu = len(eq), len(ub)
    size = max(np.abs(cost).max(initial=0.0), 1e-300)
    explain = np.hstack([eq.T, -ub.T])
    lower, upper = state == EntryState.AT_LOWER, state == EntryState.AT_UPPER
    free = state == EntryState.FREE
    rows = np.vstack(
        [
            np.hstack([explain[lower], np.ones((lower.sum(), 1))]),
            np.hstack([-explain[upper], np.ones((upper.sum(), 1))]),
            np.hstack([np.zeros((n_mu, n_v)), -np.eye(n_mu), np.ones((n_mu, 1))]),
        ]
    )
    limit = np.concatenate([cost[lower], -cost[upper], np.zeros(n_mu)]) / size
    program = LinearProgram(
        A_eq=np.hstack([explain[free], np.zeros((free.sum(), 1))]),
        b_eq=cost[free] / size,
        A_ub=rows,
        b_ub=limit,
        lb=None,
        ub=None,
    )
    objective = np.zeros((1, n_v + n_mu + 1))
    objective[0, -1] = -1.0
    answer = program.solve(objective)
    status = SolveStatus(int(answer.status[0]))
    if status is SolveStatus.OPTIMAL:
        return float(answer.x[0, -1] * size)
    return np.inf if status is SolveStatus.UNBOUNDED else -np.inf
