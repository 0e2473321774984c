"""What a decision says of its constraints: which entries are at a bound, which rows bind.

Letters: B instances, n entries, m_ub inequality rows.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from .._common.arrays import Choice, to_float64
from ..errors import InfeasibleDecisionError, InputError, ShapeError
from ..problems.linear import LinearProgram, constraint_gaps, in_parts, row_scale, unit_of


class EntryState(IntEnum):
    """Where an entry of a decision stands, which fixes the sign of its reduced cost."""

    FREE = 0
    AT_LOWER = 1
    AT_UPPER = 2
    FIXED = 3


def checked_margins(margin: Any, size: int) -> np.ndarray:
    """(B,) margins from one number, or one for each decision."""
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


def checked_soft(soft: Any) -> float | None:
    """None, or a finite price above 0."""
    if soft is None:
        return None
    number = isinstance(soft, int | float | np.number) and not isinstance(soft, bool)
    if not (number and 0 < soft < np.inf):
        raise InputError(
            f"`soft` must be None or a price above 0 for missing the conditions; got {soft!r}."
        )
    return float(soft)


def checked_tolerance(tol: Any) -> float:
    """A number from 0 to 0.1."""
    array = to_float64(tol, "tol")
    value = float(array) if array.ndim == 0 else np.nan
    if not 0 <= value < 0.1:
        raise InputError(f"`tol` must be at least 0 and below 0.1; got {tol}. The default is 1e-5.")
    return value


class ActiveSet(NamedTuple):
    """What the decisions of a batch say of their constraints."""

    entry_state: np.ndarray
    """(B, n) int8 codes of EntryState."""
    row_active: np.ndarray
    """(B, m_ub) whether each inequality binds."""
    snapped: np.ndarray
    """(B,) the largest relative distance that was read as none."""
    nearest_free: np.ndarray
    """(B,) the smallest that was read as real; inf if there is none."""

    def take(self, index: Choice) -> ActiveSet:
        """That of the chosen decisions."""
        return ActiveSet(*(part[index] for part in self))


def read_active_set(problem: LinearProgram, X: np.ndarray, tol: float) -> ActiveSet:
    """What holds with equality at feasible decisions (B, n)."""
    m_ub = problem.ub_rows.shape[0]
    found = ActiveSet(
        np.empty(X.shape, np.int8),
        np.empty((len(X), m_ub), bool),
        np.empty(len(X)),
        np.empty(len(X)),
    )
    for part, some, x in in_parts(problem, X):
        found.entry_state[part], entry_gap = entry_states(some, x, tol)
        found.row_active[part], row_gap = active_rows(some, x, tol)
        gaps = np.hstack([entry_gap, row_gap])
        read_as_none = gaps <= tol
        found.snapped[part] = np.where(read_as_none, gaps, 0.0).max(1, initial=0.0)
        found.nearest_free[part] = np.where(read_as_none, np.inf, gaps).min(1, initial=np.inf)
    return found


def refuse_infeasible(problem: LinearProgram, X: np.ndarray, tol: float, straight: int) -> None:
    """Name the first decision that breaks its constraints, and the one it breaks most; inequality
    rows from `straight` on are tangents of curved constraints."""
    violation = np.asarray(problem.constraint_violation(X))
    bad = np.flatnonzero(~(violation <= tol))
    if bad.size:
        b = int(bad[0])
        what = _worst_constraint(problem, X, b, straight)
        raise InfeasibleDecisionError(
            f"Decision {b} breaks {what}, a relative violation of "
            f"{violation[b]:.3g} where {tol:g} is allowed ({len(bad)} of {len(X)} decisions do). "
            "Check that decisions and constraints belong together. If they were rounded, "
            "`rv.read_rounded(problem, X).decisions` are the vertices they stand for; raise `tol` "
            'if they are merely inexact; infeasible="repair" moves them to the nearest that obey.'
        )


def _worst_constraint(problem: LinearProgram, X: np.ndarray, b: int, straight: int) -> str:
    """The constraint that decision b breaks most, in words."""
    one, x = problem[np.array([b])], X[b : b + 1]
    gaps = constraint_gaps(one, x)
    kind = int(np.argmax([gap.max(initial=0.0) for gap in gaps]))
    i = int(np.argmax(gaps[kind][0]))
    got = (one.eq_rows.times(x), one.ub_rows.times(x), x, x)[kind][0, i]
    limit = np.atleast_2d((one.b_eq, one.b_ub, one.lb, one.ub)[kind])[0, i]
    if kind == 1 and i >= straight:
        what = f"curved constraint {i - straight} (functions come first, then cones)"
        return f"{what}: its value is {got - limit:.6g}, where at most 0 obeys"
    what, name = (
        (f"equality row {i}", "b_eq"),
        (f"inequality row {i}", "b_ub"),
        (f"the lower bound of entry {i}", "lb"),
        (f"the upper bound of entry {i}", "ub"),
    )[kind]
    return f"{what}: it gives {got:.6g}, {name} is {limit:.6g}"


def entry_states(
    problem: LinearProgram, X: np.ndarray, tol: float
) -> tuple[np.ndarray, np.ndarray]:
    """(B, n) states, and each entry's relative distance from its nearest bound (0 where it has no
    choice)."""
    lb, ub, unit = problem.lb, problem.ub, unit_of(problem, X)
    with np.errstate(invalid="ignore"):
        below = np.abs(X - lb) / (unit + np.abs(lb))
        above = np.abs(ub - X) / (unit + np.abs(ub))
        fixed = ub - lb <= tol * (unit + np.minimum(np.abs(lb), np.abs(ub)))
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


def active_rows(problem: LinearProgram, X: np.ndarray, tol: float) -> tuple[np.ndarray, np.ndarray]:
    """(B, m_ub) whether each inequality binds, and its relative distance from binding."""
    rows = problem.ub_rows
    if rows.shape[0] == 0:
        return np.zeros((len(X), 0), bool), np.zeros((len(X), 0))
    scale = row_scale(rows, problem.b_ub, X, unit_of(problem, X))
    with np.errstate(invalid="ignore"):
        gap = np.abs(problem.b_ub - rows.times(X)) / scale
    gap = np.where(np.isnan(gap), np.inf, gap)
    return np.ascontiguousarray(gap <= tol), gap
