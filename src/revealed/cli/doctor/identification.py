"""Which costs the decisions can tell, and which no decision ever will.

Adding the same amount to every entry of an equality row (a potential) changes the total cost of
every decision alike, so no decision speaks for or against it. A limit that every decision reaches
is much like one, in one direction. Entries whose bounds leave no choice have costs that nobody can
see.

Letters: n variables, m rows.
"""

from __future__ import annotations

import numpy as np

from ..._common.words import count
from .finding import Case, Finding, Severity, some

RANK_LIMIT = 3_000
"""Rows beyond which no rank is computed."""


def check_identification(case: Case, feasible: np.ndarray) -> list[Finding]:
    """Findings about directions of cost."""
    problem, n = case.plan.problem, case.plan.problem.n_variables
    fixed = np.flatnonzero(~case.choice)
    found = []
    if fixed.size:
        names = [case.plan.variables[j] for j in fixed]
        found.append(
            Finding(
                Severity.NOTE,
                "fixed",
                f"{count(len(names), 'variable has', 'variables have')} no choice, upper and "
                f"lower bound are equal: {some(names)}. Their costs cannot be learnt.",
                "Nothing to do; read nothing into their coefficients.",
                details={"variables": names},
            )
        )
    m = problem.eq_rows.shape[0]
    if m and max(m, n) <= RANK_LIMIT:
        rank = int(np.linalg.matrix_rank(problem.eq_rows.matrix(0).toarray()))
        rows = list(case.plan.equalities)
        found.append(
            Finding(
                Severity.NOTE,
                "free-directions",
                f"Of {n} directions of cost, {rank} {'is' if rank == 1 else 'are'} free: along "
                f"each equality ({some(rows)}) costs may be raised together in proportion to its "
                f"entries, and no decision changes. The other {n - rank}, and the scale through "
                "the margin, are what decisions tell.",
                "Compare costs only within what such shifts leave alone: differences between "
                "alternatives, not single numbers.",
                details={"free": rank, "told": n - rank},
            )
        )
    return [*found, *_always_reached(case, feasible)]


def _always_reached(case: Case, feasible: np.ndarray) -> list[Finding]:
    """Limits that every decision reaches."""
    X, problem = case.decisions[feasible], case.plan[feasible].problem
    if not len(X) or not problem.ub_rows.shape[0]:
        return []
    slack = problem.b_ub - problem.ub_rows.times(X)  # (B, m)
    close = case.tol * (1.0 + np.abs(np.where(np.isfinite(problem.b_ub), problem.b_ub, 0.0)))
    reached = np.flatnonzero((slack <= close).all(axis=0))
    if not reached.size:
        return []
    names = [case.plan.inequalities[i] for i in reached]
    return [
        Finding(
            Severity.NOTE,
            "always-reached",
            f"{count(len(names), 'limit is', 'limits are')} reached in every decision: "
            f"{some(names)}. Along {'it' if len(names) == 1 else 'each'} costs may be moved "
            "together, in the direction that makes the limit matter more and in proportion to its "
            "entries, and no decision changes.",
            "Compare costs with one another, not with money: how much the limit itself is worth "
            "the decisions do not tell.",
            details={"rows": names},
        )
    ]
