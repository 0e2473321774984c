"""Decisions that were rounded before anybody wrote them down, and the vertices they stand for.

A table with two decimals moves every entry by up to 0.005, so that bounds and rows which held with
equality no longer do: some decisions break their constraints, the others lie inside them, where
they say something else. For an entry known to h_j, a row a is known to sum_j |a_j| h_j: constraints
that near are the candidates for being active. The decision meant is a feasible one, no entry more
than h_j away, at which as many candidates as possible hold with equality.

Letters: B decisions, n entries, m rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._common.arrays import to_float64
from ..errors import InputError, ShapeError
from ..problems.linear import LinearProgram, in_parts
from .active_set import EntryState, read_active_set
from .precision import precision_of
from .vertices import (
    Candidates,
    by_enumeration,
    by_linear_program,
    equality_rank,
    find_candidates,
    nearest_at,
)

LEAST, SHARE = 3, 0.05
"""Decisions that must be off, in number and as a share of all, before rounding is assumed."""
OPEN_SHARE = 0.01
"""The same where only infeasible decisions count: rounding breaks known constraints that happen to
be active, and of these about half."""
SETTLED = 0.8
"""Share of those that must turn out to be vertices within the rounding."""
ONE_WAY = 0.95
"""Share of the entries that must have become larger where digits are said to be cut off."""
LOOKED = 4_000
"""Decisions looked at first, so that many exact ones cost no time."""


class Reading(NamedTuple):
    """Decisions as they were meant, and what was assumed to find them."""

    decisions: np.ndarray
    """(B, n)"""
    half_unit: np.ndarray | None
    """(n,) how far each entry may be off; None where decisions are taken as exact, and where it
    goes with the size of the number."""
    changed: np.ndarray
    """(B,) whether the decision was moved."""
    moved: np.ndarray
    """(B,) the largest change of an entry."""
    sentence: str
    """What was assumed; empty where nothing was."""
    words: str = ""
    """How precise decisions are taken to be; empty where they are taken as exact."""
    unexplained: np.ndarray | None = None
    """(B,) which decisions break their constraints by more than that explains."""

    def keep(self, rows: np.ndarray) -> Reading:
        """The same of some of the decisions."""
        if not self.words or self.unexplained is None:
            return self._replace(
                decisions=self.decisions[rows], changed=self.changed[rows], moved=self.moved[rows]
            )
        return _described(
            self.decisions[rows],
            self.half_unit,
            self.moved[rows],
            self.words,
            self.unexplained[rows],
        )


def read_rounded(
    problem: LinearProgram,
    X: np.ndarray,
    decision_tol: Any = "auto",
    *,
    tol: float = 1e-5,
    vertices: bool = True,
) -> Reading:
    """The decisions that rounded ones stand for.

    What rounding does not explain is left as it is.

    Parameters
    ----------
    problem : LinearProgram
    X : (B, n) array
        Observed decisions.
    decision_tol : "auto", float or (n,) array
        Half a unit of the last digit, one number or one for each entry; 0 takes the decisions as
        they are. "auto" finds the precision from the numbers, and assumes rounding only where it
        explains most decisions that are infeasible or not at a vertex.
    tol : float
        How near to a bound, or to obeying a constraint, counts as there.
    vertices : bool
        Whether decisions should be vertices. Without, where unknown constraints make up for what
        is missing of a vertex, only decisions that are infeasible count, and any feasible point
        within rounding at which known candidates hold explains them.

    Returns
    -------
    Reading
    """
    given = checked_decision_tol(decision_tol, problem.n_variables)
    if given is not None and not given.any():
        return _exact(X)
    if given is None and len(X) > LOOKED:
        some = np.linspace(0, len(X) - 1, LOOKED).astype(int)
        if not _off(problem[some], X[some], tol, vertices).any():
            return _exact(X)
    off = np.flatnonzero(_off(problem, X, tol, vertices))
    if given is not None and not vertices:
        off = np.arange(len(X))
    if not off.size:
        return _exact(X)
    if given is not None:
        found, _ = settle_rows(problem[off], X[off], given)
        return _reading(problem, X, off, found, given, f"known to within {_told(given)}", tol)
    if len(off) < max(LEAST, (SHARE if vertices else OPEN_SHARE) * len(X)):
        return _exact(X)
    return _guess(problem, X, off, tol) if vertices else _guess_between(problem, X, off, tol)


def _guess_between(problem: LinearProgram, X: np.ndarray, off: np.ndarray, tol: float) -> Reading:
    """Find the precision of decisions that need not be vertices, and keep it if it explains the
    infeasible ones; then it is that of the feasible ones too."""
    precision = precision_of(problem, X)
    if precision is None:
        return _exact(X)
    half = precision.half_unit
    found, _ = settle_rows(problem, X, half)
    if np.isfinite(found[off]).all(axis=1).mean() < SETTLED:
        return _exact(X)
    words = f"rounded to {precision.words}"
    return _reading(problem, X, np.arange(len(X)), found, half, words, tol)


def _guess(problem: LinearProgram, X: np.ndarray, off: np.ndarray, tol: float) -> Reading:
    """Find the precision of a table, and keep it if it explains the decisions that are `off`."""
    precision = precision_of(problem, X)
    if precision is None:
        return _exact(X)
    half = precision.half_unit
    there = half if half.ndim == 1 else half[off]
    found, vertex = settle_rows(problem[off], X[off], there)
    if vertex.mean() >= SETTLED:
        return _reading(problem, X, off, found, half, f"rounded to {precision.words}", tol)
    found, vertex = settle_rows(problem[off], X[off], 2.0 * there)
    if vertex.mean() >= SETTLED and _cut_off(X[off], found):
        words = f"cut off after {precision.words}"
        return _reading(problem, X, off, found, 2.0 * half, words, tol)
    return _exact(X)


def _cut_off(X: np.ndarray, found: np.ndarray) -> bool:
    """Whether numbers only ever lost digits, as by a program that cuts them off."""
    with np.errstate(invalid="ignore"):
        gain = (found - X) * np.sign(X)
    moved = np.abs(gain) > 1e-9 * np.maximum(np.abs(X), 1.0)
    return bool(moved.any()) and float((gain[moved] > 0).mean()) >= ONE_WAY


def settle_rows(
    problem: LinearProgram, X: np.ndarray, half_unit: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(B, n) feasible decisions within `half_unit`, (n,) or (B, n), of X, NaN where there is none,
    and (B,) whether each is a vertex."""
    found, vertex = np.full(X.shape, np.nan), np.zeros(len(X), bool)
    for part, some, x in in_parts(problem, X):
        near = find_candidates(some, x, half_unit if half_unit.ndim == 1 else half_unit[part])
        found[part], vertex[part] = _settle(some, x, near)
    return found, vertex


def _settle(
    problem: LinearProgram, X: np.ndarray, near: Candidates
) -> tuple[np.ndarray, np.ndarray]:
    """All candidates active at once; failing that, as many as make a vertex; failing that, what a
    linear program chooses."""
    found, vertex = nearest_at(problem, X, near)
    vertex &= np.isfinite(found).all(axis=1)
    for choose in (by_enumeration, by_linear_program):
        left = np.flatnonzero(~np.isfinite(found).all(axis=1))
        if left.size:
            found[left], vertex[left] = choose(problem[left], X[left], near.take(left))
    return found, vertex


def _off(problem: LinearProgram, X: np.ndarray, tol: float, vertices: bool) -> np.ndarray:
    """(B,) which decisions are infeasible, or have too few active constraints for a vertex."""
    violation = np.asarray(problem.constraint_violation(X))
    if not vertices:
        return ~(violation <= tol)
    found = read_active_set(problem, X, tol)
    active = (found.entry_state != EntryState.FREE).sum(axis=1) + found.row_active.sum(axis=1)
    return ~(violation <= tol) | (active + equality_rank(problem) < X.shape[1])


def checked_decision_tol(value: Any, n: int) -> np.ndarray | None:
    """(n,) half units; None for "auto"."""
    if value is None or (isinstance(value, str) and value == "auto"):
        return None
    if isinstance(value, str):
        raise InputError(f'`decision_tol` must be "auto" or numbers; got {value!r}.')
    array = to_float64(value, "decision_tol")
    if array.ndim > 1 or (array.ndim == 1 and len(array) != n):
        raise ShapeError(
            f"`decision_tol` must be one number, or one for each of the {n} entries of a decision; "
            f"got shape {array.shape}."
        )
    if not (np.isfinite(array) & (array >= 0)).all():
        raise InputError(
            f"`decision_tol` must be finite and at least 0; got {value!r}. Give half a unit of the "
            "last digit, such as 0.005 for two decimals."
        )
    return np.array(np.broadcast_to(array, (n,)), float)


def _reading(
    problem: LinearProgram,
    X: np.ndarray,
    off: np.ndarray,
    found: np.ndarray,
    half: np.ndarray,
    words: str,
    tol: float,
) -> Reading:
    decisions = _polished(problem, X, half, tol)
    there = np.asarray(np.isfinite(found).all(axis=1))
    decisions[off] = np.where(there[:, None], found, X[off])
    moved = np.abs(decisions - X).max(axis=1, initial=0.0)
    unexplained = np.zeros(len(X), bool)
    unexplained[off] = ~there
    return _described(decisions, half if half.ndim == 1 else None, moved, words, unexplained)


def _described(
    decisions: np.ndarray,
    half: np.ndarray | None,
    moved: np.ndarray,
    words: str,
    unexplained: np.ndarray,
) -> Reading:
    """A reading with what it says of itself."""
    changed = moved > 0
    note = (
        f"Decisions are taken as {words}: {int(changed.sum()):,} of {len(moved):,} were moved to "
        "the feasible point that they stand for, no entry by more than "
        f"{moved.max(initial=0.0):.3g}."
    )
    rest = int(unexplained.sum())
    if rest:
        note += f" {rest:,} break their constraints by more than that explains."
    return Reading(decisions, half, changed, moved, note, words, unexplained)


def _polished(problem: LinearProgram, X: np.ndarray, half: np.ndarray, tol: float) -> np.ndarray:
    """Decisions (B, n) at the vertex of the constraints that are active within `tol`, where there
    is one within rounding; others as they are."""
    points = X.copy()
    for part, some, x in in_parts(problem, X):
        seen = read_active_set(some, x, tol)
        upper = seen.entry_state == EntryState.AT_UPPER
        lower = (seen.entry_state != EntryState.FREE) & ~upper
        reach = half if half.ndim == 1 else half[part]
        found, vertex = nearest_at(some, x, Candidates(reach, lower, upper, seen.row_active))
        good = vertex & np.isfinite(found).all(axis=1)
        points[part] = np.where(good[:, None], found, x)
    return points


def _told(half: np.ndarray) -> str:
    low, high = float(half.min()), float(half.max())
    return f"{high:g}" if low == high else f"{low:g} to {high:g}"


def _exact(X: np.ndarray) -> Reading:
    return Reading(X, None, np.zeros(len(X), bool), np.zeros(len(X)), "")
