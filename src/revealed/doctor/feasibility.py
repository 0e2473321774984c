"""Decisions that break the constraints: which one, by how much, and whether a slip explains it."""

from __future__ import annotations

import numpy as np

from ..problem import LinearProgram, constraint_gaps
from .finding import Case, Finding, Severity, plural, some

FACTORS = (1000.0, 100.0, 60.0, 24.0, 10.0, 12.0, 2.20462)
"""Mixed-up units: thousands, per cent, minutes, hours, tens, months, pounds."""
SWAPS = 120
"""Variables up to which all pairs are tried for a swap of columns."""


def check_feasibility(case: Case) -> tuple[np.ndarray, list[Finding]]:
    """(B,) which decisions are feasible, and findings about the others."""
    violation = np.asarray(case.plan.problem.constraint_violation(case.decisions))
    feasible = violation <= case.tol
    bad = np.flatnonzero(~feasible)
    if not bad.size:
        return feasible, []
    worst = bad[np.argsort(-violation[bad], kind="stable")]
    found = []
    for cause in (_other_units, _swapped):
        finding = cause(case, worst)
        if finding is not None:
            found.append(finding)
    return feasible, [*found, _infeasible(case, worst, violation)]


def _infeasible(case: Case, worst: np.ndarray, violation: np.ndarray) -> Finding:
    lines = [_broken(case, int(b)) for b in worst]
    b = int(worst[0])
    what = (
        f"{plural(len(worst), 'decision breaks', 'decisions break')} the constraints: "
        f"{some(case.named(worst))}. The worst, {case.samples[b]}: {lines[0]}."
    )
    slight = float(violation[worst].max()) < 1e-2
    advice = (
        "The gaps are slight: round the decisions to the precision of the plan, or clean them."
        if slight
        else "Correct these rows, or leave them out; check that decisions and plan are of the same "
        "time and in the same units."
    )
    details = {
        "broken": dict(zip(case.named(worst[:100]), lines[:100], strict=True)),
        "violation": float(violation[b]),
    }
    return Finding(Severity.ERROR, "infeasible", what, advice, case.named(worst), details)


def _broken(case: Case, b: int) -> str:
    """The constraint that decision b breaks most, in the planner's words."""
    plan, x = case.plan, case.decisions[b : b + 1]
    problem = plan.problem
    gaps = constraint_gaps(problem, x)
    kind = int(np.argmax([gap.max(initial=0.0) for gap in gaps]))
    i = int(np.argmax(gaps[kind][0]))
    if kind < 2:
        rows = (problem.eq_rows, problem.ub_rows)[kind]
        name = (plan.equalities, plan.inequalities)[kind][i]
        got, limit = float(rows.times(x)[0, i]), float((problem.b_eq, problem.b_ub)[kind][i])
        relation = ("must be", "may be at most")[kind]
        return f"{name} is {got:g}, it {relation} {limit:g} (off by {abs(got - limit):g})"
    limit = float((problem.lb, problem.ub)[kind - 2][i])
    relation = ("must not be below", "must not be above")[kind - 2]
    return f"{plan.variables[i]} is {float(x[0, i]):g}, it {relation} {limit:g}"


def _other_units(case: Case, bad: np.ndarray) -> Finding | None:
    """Decisions that fit the constraints when all are divided or multiplied by one number."""
    problem, X = case.plan.problem, case.decisions[bad]
    for factor in FACTORS:
        for scale, words in ((1.0 / factor, "divided"), (factor, "multiplied")):
            fits = np.asarray(problem.constraint_violation(X * scale)) <= 10 * case.tol
            fits &= np.abs(X).max(axis=1) > 0
            if fits.mean() >= 0.5 and fits.any():
                rows = bad[fits]
                return Finding(
                    Severity.ERROR,
                    "units",
                    f"{plural(len(rows), 'decision', 'decisions')} would be feasible {words} by "
                    f"{factor:g}: {some(case.named(rows))}. They look as if they were in other "
                    "units.",
                    f"Convert these rows ({words} by {factor:g}), then look again.",
                    case.named(rows),
                    {"scale": scale},
                )
    return None


def _swapped(case: Case, bad: np.ndarray) -> Finding | None:
    """A pair of columns whose exchange makes the infeasible decisions feasible."""
    problem, n = case.plan.problem, case.plan.problem.n_variables
    if n > SWAPS:
        return None
    sample = case.decisions[bad[:20]]
    for i, j in _suspects(problem, sample, case.tol):
        changed = sample.copy()
        changed[:, [i, j]] = changed[:, [j, i]]
        if not (np.asarray(problem.constraint_violation(changed)) <= case.tol).all():
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
