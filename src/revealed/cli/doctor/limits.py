"""Limits of the plan that seem to change from sample to sample, and ones that no decision can meet.

Letters: B samples, m rows, d features.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..._common.words import count
from ...optimality.precision import precision_of
from ...problems.solution import SolveStatus
from ..plans import Plan, limit_names
from .finding import SHOWN, Case, Finding, Severity, some

FOLLOWS, ALWAYS = 0.8, 0.95
"""Share of rows in which a broken limit equals a column of the contexts for it to be that limit,
and in which one does that nobody broke."""
LEAST, FEW = 3, 20
"""Rows from which on these are no accident."""
LOOKED = 4_000
"""Rows that are looked at, and as many of those that break the plan."""
MOST_NUMBERS = 4_000_000
"""Of equalities beyond which it is not looked at what they fix."""
TRIED, TRIAL_S = 100, 30.0
"""Samples whose limits are tried out, and seconds for that."""


class Following(NamedTuple):
    """A limit of the plan and the column that it follows."""

    asked: str
    """What it is called: `budget`, `upper:truck_3`."""
    column: str
    rows: int
    """In which they are equal, `of` so many that were looked at."""
    of: int
    planned: float
    broken: bool

    @property
    def label(self) -> str:
        same = self.asked == self.column
        return self.asked if same else f"{self.asked} (the column {self.column})"

    @property
    def option(self) -> str:
        pair = self.asked if self.asked == self.column else f"{self.asked}={self.column}"
        return f"--limit {shlex.quote(pair)}"


def check_limits(case: Case, feasible: np.ndarray) -> list[Finding]:
    """Findings about limits that are not yet those of each sample."""
    found = _followed(case, feasible)
    groups = [[f for f in found if f.broken == broken] for broken in (True, False)]
    moving = [_moving(group, len(feasible)) for group in groups if group]
    settled = _settled(case, feasible, {f.asked for f in found})
    return [*moving, *settled, *_named(case, {f.column for f in found})]


def _moving(found: list[Following], size: int) -> Finding:
    first, others = found[0], [f.label for f in found[1:]]
    options = " ".join(f.option for f in found[:SHOWN])
    more = f" and so on for all {len(found)}" if len(found) > SHOWN else ""
    looked = " looked at" if first.of < size else ""
    return Finding(
        Severity.ERROR if first.broken else Severity.WARNING,
        "moving-limit",
        f"{first.asked} equals the column {first.column} of the contexts in {first.rows:,} of "
        f"{first.of:,} rows{looked}: its limit changes from row to row, but the plan has one for "
        f"all ({first.planned:g})." + (f" The same holds for {some(others)}." if others else ""),
        f"Say so with {options}{more}, to `revealed doctor` and `revealed fit`.",
        details={
            "row": first.asked,
            "column": first.column,
            "limits": [{"name": f.asked, "column": f.column} for f in found],
        },
    )


class Settled(NamedTuple):
    """A number that decisions keep to, and the plan has another."""

    asked: str
    value: float
    rows: int
    planned: float
    broken: bool


def _settled(case: Case, feasible: np.ndarray, known: set[str]) -> list[Finding]:
    """Limits that decisions keep to at another number than that of the plan, the same in nearly all
    rows that show it: an old plan, or a slip in it."""
    found = [s for s in _constants(case, feasible) if s.asked not in known]
    findings = []
    for broken in (True, False):
        group = [s for s in found if s.broken == broken]
        if not group:
            continue
        said = [
            f"{s.asked} is {s.value:.9g} in {s.rows:,} of {len(feasible):,} rows"
            f"{'' if broken else ' and never beyond'}; the plan says {s.planned:.9g}"
            for s in group[:SHOWN]
        ]
        more = f" The same holds for {len(group) - SHOWN:,} more." if len(group) > SHOWN else ""
        findings.append(
            Finding(
                Severity.ERROR if broken else Severity.WARNING,
                "other-limit",
                f"{'. '.join(said)}.{more}",
                "Correct the number in the model file if that is the true limit. A limit that "
                "is reached reveals something about costs; one that is too loose does not.",
                details={"limits": [s._asdict() for s in group]},
            )
        )
    return findings


def _constants(case: Case, feasible: np.ndarray) -> Iterator[Settled]:
    """Limits that are broken, or that nobody reaches, with the one number that decisions have."""
    plan, X = case.plan, case.decisions
    names, digits = limit_names(plan), precision_of(plan.rows, X)
    half = 0.0 if digits is None else digits.half_unit
    called = {at[0]: name for name, at in names.items() if len(at) == 1}
    for part, value, own, beyond in _sides(plan, X):
        off = beyond > case.tol * (1.0 + np.abs(own))
        rounding = _moved_by(plan, part, np.broadcast_to(half, X.shape))
        for i in map(int, np.flatnonzero(np.isfinite(own))):
            if (part, i) in case.limited or (part, i) not in called:
                continue
            broken = int(off[:, i].sum()) >= LEAST
            loose = part == "b_ub" and not off[:, i].any() and len(names[plan.inequalities[i]]) == 1
            if not (broken or loose):
                continue
            looked = np.flatnonzero(off[:, i]) if broken else np.arange(len(X))
            usual, rows = _usual(value[looked, i], case.tol)
            close = abs(usual - own[i]) <= case.tol * (1.0 + abs(own[i])) + rounding[i]
            if rows < (FOLLOWS if broken else ALWAYS) * len(looked) or close:
                continue
            found = Settled(called[part, i], usual, rows, float(own[i]), broken)
            if broken or (rows >= FEW and _is_extreme(beyond[:, i]) and _has_choice(case, i)):
                yield found


def _moved_by(plan: Plan, part: str, half: np.ndarray) -> np.ndarray:
    """(m,) by how much rounding (B, n) may move what decisions make of each entry of a vector."""
    rows = {"b_eq": plan.rows.eq_rows, "b_ub": plan.rows.ub_rows}.get(part)
    return (half if rows is None else rows.magnitude.times(half)).max(axis=0, initial=0.0)


def _usual(values: np.ndarray, tol: float) -> tuple[float, int]:
    """The number that is there most often, to within `tol`, and how often."""
    middle = float(np.median(values))
    near = np.abs(values - middle) <= tol * (1.0 + abs(middle))
    return middle, int(near.sum())


def _is_extreme(beyond: np.ndarray) -> bool:
    """Whether no row comes nearer to its limit than most do."""
    return bool(beyond.max() <= np.median(beyond) + 1e-5 * (1.0 + abs(np.median(beyond))))


def _has_choice(case: Case, i: int) -> bool:
    """Whether row i of the inequalities could have had another value: several of its variables
    move, and the equalities do not fix it."""
    problem, moves = case.plan.rows, np.ptp(case.decisions, axis=0) > case.tol
    if problem.ub_rows.per_instance or problem.eq_rows.per_instance:
        return False
    row = problem.ub_rows.matrix(0)[[i]].toarray()[0, moves]
    rows = problem.eq_rows.matrix(0)[:, np.flatnonzero(moves)].toarray()
    if np.count_nonzero(row) < 2 or rows.size > MOST_NUMBERS:
        return False
    if not len(rows):
        return True
    rest = row - rows.T @ np.linalg.lstsq(rows.T, row, rcond=None)[0]
    return bool(np.linalg.norm(rest) > 1e-8 * np.linalg.norm(row))


def _followed(case: Case, feasible: np.ndarray) -> list[Following]:
    """Limits, one for all in the plan, that equal a column of the contexts wherever they are
    broken, or nearly everywhere where none is."""
    step = -(-len(feasible) // LOOKED)
    rows = np.union1d(np.arange(0, len(feasible), step), np.flatnonzero(~feasible)[:LOOKED])
    words = {f"{name}={word}" for name, several in case.words.items() for word in several}
    columns = np.flatnonzero([name not in words for name in case.feature_names])
    plan, X, Z = case.plan[rows], case.decisions[rows], case.features[np.ix_(rows, columns)]
    names = limit_names(plan)
    called = {at[0]: name for name, at in names.items() if len(at) == 1}
    found: list[Following] = []
    for part, value, own, beyond in _sides(plan, X):
        off = beyond > case.tol * (1.0 + np.abs(own))
        for i in map(int, np.flatnonzero(np.isfinite(own))):
            if (part, i) in case.limited or (part, i) not in called:
                continue
            alone = part == "b_ub" and len(names[plan.inequalities[i]]) == 1  # has no other side
            there, share = _evidence(value[:, i], float(own[i]), off[:, i], case.tol, alone)
            looked = np.arange(len(rows)) if part == "b_eq" else there  # an equality always counts
            k = _column(Z, value[:, i], there, looked, share, case.tol)
            if k is not None:
                equal = int(_equal(Z[:, [k]], value[:, i], case.tol).sum())
                name, column = called[part, i], case.feature_names[columns[k]]
                following = Following(
                    name, column, equal, len(rows), float(own[i]), share == FOLLOWS
                )
                found.append(following)
    return found


def _evidence(
    value: np.ndarray, own: float, off: np.ndarray, tol: float, alone: bool
) -> tuple[np.ndarray, float]:
    """Rows that show whether a limit differs from `own`, and the share of them that must
    agree: those that break it (`off`), or where few do, those that stay away from it."""
    if off.sum() >= LEAST:
        return np.flatnonzero(off), FOLLOWS
    away = np.flatnonzero(np.abs(value - own) > tol * (1.0 + abs(own))) if alone else np.zeros(0)
    return away if len(away) >= FEW else np.zeros(0, int), ALWAYS


Side = tuple[str, np.ndarray, np.ndarray, np.ndarray]


def _sides(plan: Plan, X: np.ndarray) -> Iterator[Side]:
    """Of every vector of the problem: its name, what decisions make of each entry (B, m), what the
    plan says (m,), both as the planner writes them, and by how much the one is beyond the other."""
    problem, sign = plan.rows, plan.row_sign
    value, own = problem.eq_rows.times(X), np.atleast_2d(problem.b_eq)[0]
    yield "b_eq", value, own, np.abs(value - own)
    value, own = problem.ub_rows.times(X), np.atleast_2d(problem.b_ub)[0]
    yield "b_ub", sign * value, sign * own, value - own
    low, high = (np.atleast_2d(bound)[0] for bound in (problem.lb, problem.ub))
    yield "lb", X, low, low - X
    yield "ub", X, high, X - high


def _column(
    Z: np.ndarray, value: np.ndarray, rows: np.ndarray, looked: np.ndarray, share: float, tol: float
) -> int | None:
    """The column of the contexts (B, d) that equals `value` (B,) in these rows, in those `looked`
    at, and also where it is not as usual: much is 0 on most days."""
    if not rows.size:
        return None
    values, counts = np.unique(np.round(value[looked], 9), return_counts=True)
    usual = values[counts.argmax()]
    unusual = looked[np.abs(value[looked] - usual) > tol * (1.0 + abs(usual))]
    columns = np.arange(Z.shape[1])
    for where in (unusual[:FEW], unusual, rows, looked):
        if not where.size:
            return None
        equal = _equal(Z[np.ix_(where, columns)], value[where], tol).mean(axis=0)
        columns, equal = columns[equal >= share], equal[equal >= share]
    return int(columns[equal.argmax()]) if columns.size else None


def _equal(columns: np.ndarray, value: np.ndarray, tol: float) -> np.ndarray:
    """(B, d) where columns equal a value (B,)."""
    return np.abs(columns - value[:, None]) <= tol * (1.0 + np.abs(value[:, None]))


def _named(case: Case, known: set[str]) -> list[Finding]:
    """Columns that have the name of a limit of the plan, and may be what it is."""
    names = limit_names(case.plan)
    options = {}
    for name in (n for n in case.feature_names if n in names and n not in known):
        if not case.limited & {*names[name]}:
            two = len(names[name]) > 1
            options[name] = f"--limit {shlex.quote(f'upper:{name}={name}' if two else name)}"
    if not options:
        return []
    one, few = len(options) == 1, list(options.values())[:LEAST]
    return [
        Finding(
            Severity.NOTE,
            "named-like-a-row",
            f"{count(len(options), 'column')} of the contexts {'has' if one else 'have'} the name "
            f"of {'a row' if one else 'rows'} of the plan: {some(list(options))}.",
            f"If {'it says what its limit is' if one else 'they say what their limits are'} on the "
            f"day, say so: {' '.join(few)}{' ...' if len(options) > LEAST else ''}, here and in "
            "`revealed fit`.",
            details={"columns": list(options)},
        )
    ]


def impossible_limits(case: Case, bad: np.ndarray) -> Finding | None:
    """Samples, among those whose decision breaks the plan, whose own limits no decision meets."""
    tried = bad[:TRIED]
    problem = case.plan[tried].problem
    nothing = np.zeros((len(tried), problem.n_variables))
    status = np.asarray(problem.solve(nothing, time_limit=TRIAL_S).status)
    rows = tried[status == SolveStatus.INFEASIBLE]
    if not rows.size:
        return None
    least = f" (of {len(tried)} that were tried)" if len(tried) < len(bad) else ""
    return Finding(
        Severity.ERROR,
        "impossible-limits",
        f"{count(len(rows), 'sample has', 'samples have')} limits that no decision meets{least}: "
        f"{some(case.named(rows))}.",
        "Look at the columns given with --limit in these rows: a wrong number, other units, or a "
        "limit of another day.",
        case.named(rows),
    )
