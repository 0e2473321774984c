"""Decisions that break the constraints: which one, by how much, and whether a slip explains it."""

from __future__ import annotations

import numpy as np

from ..._common.words import apart, count
from ...metrics.sameness import SAME
from ...optimality.precision import precision_of
from ...problems.linear import LinearProgram, constraint_gaps, row_scale, unit_of
from ...problems.solution import SolveStatus
from ..plans import Plan
from .finding import Case, Finding, Severity, some
from .limits import impossible_limits

FACTORS = (1000.0, 100.0, 60.0, 24.0, 10.0, 12.0, 2.20462)
"""Mixed-up units: thousands, per cent, minutes, hours, tens, months, pounds."""
LISTED = 100
"""Decisions of which it is said what they break."""
ALIKE = 3
"""Different decisions from which on a swap of columns that explains them is no accident."""
TRIAL_S = 10.0
"""Seconds in which it must turn out that a plan cannot be satisfied."""
SWAPS = 120
"""Variables up to which all pairs are tried for a swap of columns."""


def check_feasibility(case: Case) -> tuple[np.ndarray, list[Finding]]:
    """(B,) which decisions are feasible, and findings about the others."""
    violation = np.asarray(case.plan.rows.constraint_violation(case.decisions))
    part = np.abs(case.decisions - np.round(case.decisions)) * case.plan.whole
    feasible = (violation <= case.tol) & (part.max(axis=1, initial=0.0) <= case.tol)
    bad = np.flatnonzero(~(violation <= case.tol))  # fractions have a finding of their own
    if not bad.size:
        return feasible, []
    worst = bad[np.argsort(-violation[bad], kind="stable")]
    found = []
    unit = _rounding(case, worst)
    slips = (_other_units, _column_units, _swapped) if unit is None else ()
    for cause in (_impossible, *slips):
        finding = cause(case, worst)
        if finding is not None:
            found.append(finding)
    return feasible, [*found, _infeasible(case, worst, violation, unit)]


def _infeasible(
    case: Case, worst: np.ndarray, violation: np.ndarray, unit: float | None
) -> Finding:
    lines = [broken_constraint(case.plan[[b]], case.decisions[b]) for b in worst[:LISTED]]
    b = int(worst[0])
    what = (
        f"{count(len(worst), 'decision breaks', 'decisions break')} the constraints: "
        f"{some(case.named(worst))}. The worst, {case.samples[b]}: {lines[0]}."
    )
    files = "decisions and plan" if case.limits is None else "decisions, plan and limits"
    ways = "`revealed fit` leaves them out with --infeasible skip" + (
        "."
        if case.plan.is_whole
        else ", and takes the nearest decisions that obey with --infeasible repair."
    )
    advice = (
        "No gap is larger than the digits of the decisions leave room for: if they were rounded, "
        f"say so with --tol {unit:g}; otherwise {ways}"
        if unit is not None
        else f"Correct these rows; check that {files} are of the same time and in the same units. "
        f"{ways}"
    )
    details = {
        "broken": dict(zip(case.named(worst[:LISTED]), lines, strict=True)),
        "violation": float(violation[b]),
    }
    return Finding(Severity.ERROR, "infeasible", what, advice, case.named(worst), details)


def _rounding(case: Case, bad: np.ndarray) -> float | None:
    """Half a unit of the last digit of the decisions, where that alone may explain every gap."""
    problem, X = case.plan[bad].rows, case.decisions[bad]
    found = precision_of(case.plan.rows, case.decisions)
    if found is None or found.half_unit.ndim > 1:
        return None
    gaps = constraint_gaps(problem, X)
    unit, half = unit_of(problem, X), found.half_unit * (1.0 + 1e-6)
    rows = (problem.eq_rows, problem.ub_rows)
    allowed = [
        part.magnitude.times(half[None]) / row_scale(part, b, X, unit)
        for part, b in zip(rows, (problem.b_eq, problem.b_ub), strict=True)
    ]
    allowed += [half / (unit + np.abs(bound)) for bound in (problem.lb, problem.ub)]
    pairs = zip(gaps, allowed, strict=True)
    explained = all((gap <= np.maximum(room, case.tol)).all() for gap, room in pairs)
    return float(found.half_unit.max()) if explained else None


def broken_constraint(plan: Plan, decision: np.ndarray) -> str:
    """The constraint that a decision (n,) breaks most, in the planner's words; `plan` is that of
    its sample."""
    x = decision[None]
    part = np.abs(decision - np.round(decision)) * plan.whole
    if part.max(initial=0.0) > SAME:
        j = int(part.argmax())
        return f"{plan.variables[j]} is {decision[j]:.9g}, it must be whole"
    problem = plan.rows
    gaps = constraint_gaps(problem, x)
    kind = int(np.argmax([gap.max(initial=0.0) for gap in gaps]))
    i = int(np.argmax(gaps[kind][0]))
    if kind < 2:
        rows = (problem.eq_rows, problem.ub_rows)[kind]
        name = (plan.equalities, plan.inequalities)[kind][i]
        sign = plan.row_sign[i] if kind else 1.0
        got = sign * float(rows.times(x)[0, i])
        limit = sign * float(np.atleast_2d((problem.b_eq, problem.b_ub)[kind])[0, i])
        relation = "must be" if not kind else "may be at most" if sign > 0 else "must be at least"
        shown = apart(got, limit)
        return f"{name} is {shown[0]}, it {relation} {shown[1]} (off by {abs(got - limit):g})"
    limit = float(np.atleast_2d((problem.lb, problem.ub)[kind - 2])[0, i])
    relation = ("must not be below", "must not be above")[kind - 2]
    shown = apart(float(x[0, i]), limit)
    return f"{plan.variables[i]} is {shown[0]}, it {relation} {shown[1]}"


def _other_units(case: Case, bad: np.ndarray) -> Finding | None:
    """Decisions that fit the constraints when all are divided or multiplied by one number."""
    problem, X = case.plan[bad].rows, case.decisions[bad]
    for factor in FACTORS:
        for scale, words in ((1.0 / factor, "divided"), (factor, "multiplied")):
            fits = _mends(problem, X, X * scale, case.tol)
            if fits.mean() >= 0.5 and fits.any():
                rows = bad[fits]
                other = "" if case.limits is None else " or the limits the other way round"
                return Finding(
                    Severity.ERROR,
                    "units",
                    f"{count(len(rows), 'decision', 'decisions')} would be feasible {words} by "
                    f"{factor:g}: {some(case.named(rows))}. They look as if they were in other "
                    "units.",
                    f"Convert these rows ({words} by {factor:g}){other}, then look again.",
                    case.named(rows),
                    {"scale": scale},
                )
    return None


def _impossible(case: Case, bad: np.ndarray) -> Finding | None:
    """A plan that no decision satisfies."""
    problem = case.plan.problem
    if problem.n_instances is not None:
        return impossible_limits(case, bad)
    if len(bad) < len(case.decisions):
        return None
    answer = problem.solve(np.zeros((1, problem.n_variables)), time_limit=TRIAL_S)
    if SolveStatus(int(answer.status[0])) is not SolveStatus.INFEASIBLE:
        return None
    return Finding(
        Severity.ERROR,
        "impossible-plan",
        f"{case.plan.name} cannot be satisfied: its constraints contradict one another, whatever "
        "is decided.",
        "Look for a wrong sign or a wrong number in the model file; any solver shows which "
        "constraints clash.",
    )


def _column_units(case: Case, bad: np.ndarray) -> Finding | None:
    """A column that makes the infeasible decisions feasible when divided or multiplied."""
    problem, n = case.plan[bad[:20]].rows, case.plan.problem.n_variables
    sample = case.decisions[bad[:20]]
    for j in range(n if n <= SWAPS else 0):
        for factor in FACTORS if sample[:, j].any() else ():
            for scale, words in ((1.0 / factor, "divided"), (factor, "multiplied")):
                changed = sample.copy()
                changed[:, j] *= scale
                if _mends(problem, sample, changed, case.tol).all():
                    name = case.plan.variables[j]
                    return Finding(
                        Severity.ERROR,
                        "column-units",
                        f"With the column {name} {words} by {factor:g}, the infeasible decisions "
                        f"({some(case.named(bad))}) become feasible: it looks as if it were in "
                        "other units.",
                        f"Convert {name} in these rows ({words} by {factor:g}), then look again.",
                        case.named(bad),
                        {"column": name, "scale": scale},
                    )
    return None


def _mends(problem: LinearProgram, X: np.ndarray, changed: np.ndarray, tol: float) -> np.ndarray:
    """(B,) which decisions are feasible once changed, and meet an equality or reach a limit that
    they broke: where only limits count, any decision becomes feasible by being made small."""
    eq, ub, low, high = (gap > tol for gap in constraint_gaps(problem, X))
    limits = (problem.b_ub, problem.lb, problem.ub)
    values = (problem.ub_rows.times(changed), changed, changed)
    at_row, at_low, at_high = (
        np.abs(value - limit) <= 10 * tol * (1.0 + np.abs(limit))
        for value, limit in zip(values, limits, strict=True)
    )
    fits = np.asarray(problem.constraint_violation(changed)) <= 10 * tol
    at_bound = ((low & at_low) | (high & at_high)).any(axis=1)
    at_limit = np.where(ub.any(axis=1), (~ub | at_row).all(axis=1), at_bound)
    return fits & (eq.any(axis=1) | at_limit)


def _swapped(case: Case, bad: np.ndarray) -> Finding | None:
    """A pair of columns whose exchange makes several infeasible decisions feasible, and none of
    the others infeasible: of a single decision, some exchange nearly always does the first."""
    problem, n = case.plan[bad[:20]].rows, case.plan.problem.n_variables
    if n > SWAPS or len(np.unique(case.decisions[bad], axis=0)) < ALIKE:
        return None
    good = np.setdiff1d(np.arange(len(case.decisions)), bad)
    good = good[np.linspace(0, len(good) - 1, min(len(good), LISTED)).astype(int)]
    sample = case.decisions[bad[:20]]
    for i, j in _suspects(problem, sample, case.tol):
        changed = sample.copy()
        changed[:, [i, j]] = changed[:, [j, i]]
        if not (np.asarray(problem.constraint_violation(changed)) <= case.tol).all():
            continue
        others = case.decisions[good]
        others[:, [i, j]] = others[:, [j, i]]
        if not (np.asarray(case.plan[good].rows.constraint_violation(others)) <= case.tol).all():
            continue
        names = case.plan.variables
        return Finding(
            Severity.ERROR,
            "swapped",
            f"With the columns {names[i]} and {names[j]} exchanged, the infeasible decisions "
            f"({some(case.named(bad))}) become feasible: the two look swapped.",
            "Exchange the two column names in the table of decisions, or the values in these rows.",
            case.named(bad),
            {"columns": [names[i], names[j]]},
        )
    return None


def _suspects(problem: LinearProgram, X: np.ndarray, tol: float) -> list[tuple[int, int]]:
    """Pairs of variables whose exchange touches a broken constraint and changes something."""
    n = problem.n_variables
    touched = np.zeros(n, bool)
    eq, ub, low, high = (gap.max(axis=0) > tol for gap in constraint_gaps(problem, X))
    for rows, broken in ((problem.eq_rows, eq), (problem.ub_rows, ub)):
        for row in np.flatnonzero(broken):
            touched[rows.indices[rows.indptr[row] : rows.indptr[row + 1]]] = True
    touched |= low | high
    differs = [(i, j) for i in np.flatnonzero(touched) for j in range(n) if i != j]
    pairs = {(min(i, j), max(i, j)) for i, j in differs}
    return sorted((int(i), int(j)) for i, j in pairs if (X[:, i] != X[:, j]).any())
