"""Rows whose limit may not be what the plan says: the doctor's candidates for `--unknown-limit`.

A solver's decision is a feasible vertex. Where many are not, because they break one row alone or
stop where no limit of the plan stops them, a row is sought that explains nearly all of them once
its limit is open. Letters: B samples, n variables.
"""

from __future__ import annotations

import numpy as np

from ..._common.words import count
from ...problems.linear import LinearProgram
from ...problems.unknown import UnknownLimits
from .finding import Case, Finding, Severity, some

FEWEST, SHARE = 10, 0.05
"""Decisions that nothing explains, in number and as a share, before a row is sought."""
EXPLAINED = 0.9
"""Share of them that a row must explain."""
LOOKED, LARGEST = 500, 300
"""Decisions that are looked at, and variables or rows up to which it is done at all."""


def check_unknown(case: Case, feasible: np.ndarray) -> list[Finding]:
    """Findings about rows whose limit may be unknown; at most one, of the likeliest row."""
    problem = case.plan.problem
    if type(problem) is not LinearProgram or max(problem.shape) > LARGEST:
        return []
    some_rows = np.unique(np.linspace(0, len(feasible) - 1, LOOKED).astype(int))
    vertex = _vertices(case, some_rows, UnknownLimits(_NONE, _NONE, _NONE))
    odd = some_rows[~vertex]
    if len(odd) < max(FEWEST, SHARE * len(some_rows)):
        return []
    best, share = None, EXPLAINED
    for i in range(problem.ub_rows.shape[0]):
        if ("b_ub", i) not in case.limited:
            own = float(_vertices(case, odd, UnknownLimits(np.array([i]), _NONE, _NONE)).mean())
            best, share = (i, own) if own >= share else (best, share)
    return [] if best is None else [_finding(case, best, share, odd)]


_NONE = np.zeros(0, np.int64)


def _vertices(case: Case, rows: np.ndarray, unknown: UnknownLimits) -> np.ndarray:
    """(b,) which of some decisions are feasible vertices once these limits are open."""
    from ...fit.limits.labels import find_guesses
    from ...optimality.limit_sets import UnknownLimitSet

    problem, X = case.plan[rows].rows, case.decisions[rows]
    found = np.asarray(unknown.opened(problem).constraint_violation(X)) <= case.tol
    here = np.flatnonzero(found)
    if here.size:
        own = problem if problem.n_instances is None else problem[here]
        guesses = find_guesses(UnknownLimitSet(own, X[here], unknown, tol=case.tol))
        found[here] = guesses.vertex
    return found


def _finding(case: Case, i: int, share: float, odd: np.ndarray) -> Finding:
    name = case.plan.inequalities[i]
    return Finding(
        Severity.WARNING,
        "unknown-limit",
        f"{count(len(odd), 'decision is', 'decisions are')} not where a limit of the plan would "
        f"stop them: {some(case.named(odd))}. Another limit of the row {name} would explain "
        f"{100 * share:.0f}% of them.",
        f"If the limit of {name} differs from what the plan says, give its column with --limit "
        f"{name}=COLUMN, or learn it with --unknown-limit {name}.",
        case.named(odd),
        {"row": name, "share": share},
    )
