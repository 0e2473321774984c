"""Which costs the decisions identify, and which no decision ever will.

Letters: B samples, n variables.
"""

from __future__ import annotations

import numpy as np

from ..._common.words import count
from ...optimality.identification import LARGEST, Identified, identified
from ...optimality.sets import OptimalitySet
from .finding import Case, Finding, Severity, some

MOST = 0.9
"""Share of the decisions that must obey the plan before something is said of every decision."""


def check_identification(case: Case, feasible: np.ndarray) -> list[Finding]:
    """Findings about directions of cost."""
    found = _fixed(case)
    X = case.decisions[feasible]
    if not len(X) or len(X) < MOST * len(feasible) or case.plan.problem.n_variables > LARGEST:
        return found
    # Rows and bounds that all decisions reach leave the same directions open to whole ones.
    known = identified(OptimalitySet(case.plan[feasible].rows, X, 0.0, tol=case.tol))
    return [*found, *_directions(case, known), *_reached(case, known)]


def _fixed(case: Case) -> list[Finding]:
    fixed = np.flatnonzero(~case.choice)
    if not fixed.size:
        return []
    names = [case.plan.variables[j] for j in fixed]
    return [
        Finding(
            Severity.NOTE,
            "fixed",
            f"{count(len(names), 'variable has', 'variables have')} no choice, upper and "
            f"lower bound are equal: {some(names)}. Their costs cannot be learned.",
            "Nothing to do; do not interpret their coefficients.",
            details={"variables": names},
        )
    ]


def _directions(case: Case, known: Identified) -> list[Finding]:
    """How many directions decisions identify, equality rows and limits always reached counted."""
    if not (known.n_unknown > len(known.fixed)):
        return []
    lines, rays = known.n_lines - len(known.fixed), known.n_one_sided
    what = (
        f"Of {known.n - len(known.fixed)} directions of cost these decisions identify "
        f"{'at most ' if case.plan.is_whole else ''}{known.n_identified}, up to a common factor."
    )
    if lines:
        rows = some(list(case.plan.equalities))
        what += (
            f" {lines} {'is' if lines == 1 else 'are'} free: along each equality ({rows}) costs "
            "may be raised together in proportion to its entries, and no decision changes."
        )
    if rays:
        one = len(known.reached) + len(known.still) == 1
        what += (
            f" {rays}{' more' if lines else ''} {'is' if rays == 1 else 'are'} known from one side "
            f"at most: {_one_sided(known)} in every decision, so any cost that makes "
            f"{'it' if one else 'them'} matter more would do as well."
        )
    return [
        Finding(
            Severity.NOTE,
            "free-directions",
            what,
            "Compare only what such shifts do not change: differences between alternatives, not "
            "single costs. revealed explain shows costs with these directions "
            "taken out.",
            details={"free": lines, "one_sided": rays, "identified": known.n_identified},
        )
    ]


def _one_sided(known: Identified) -> str:
    rows, still = len(known.reached), len(known.still)
    parts = [count(rows, "limit is reached", "limits are reached")] if rows else []
    if still:
        parts.append(count(still, "variable stays at one bound", "variables stay at one bound"))
    return " and ".join(parts)


def _reached(case: Case, known: Identified) -> list[Finding]:
    """Limits that every decision reaches."""
    if not known.reached.size:
        return []
    names = [case.plan.inequalities[i] for i in known.reached]
    one = len(names) == 1
    return [
        Finding(
            Severity.NOTE,
            "always-reached",
            f"{count(len(names), 'limit is', 'limits are')} reached in every decision: "
            f"{some(names)}. Along {'it' if one else 'each'} costs may be moved "
            "together, in the direction that makes the limit matter more and in proportion to its "
            "entries, and no decision changes.",
            "Compare costs with one another, not with money: decisions do not identify what the "
            "limit itself is worth.",
            details={"rows": names},
        )
    ]
