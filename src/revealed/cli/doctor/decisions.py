"""Decisions taken for themselves: vertices or not, degenerate, at their bounds or nearly.

Letters: B samples, n variables.
"""

from __future__ import annotations

import numpy as np

from ..._common.words import count
from ...optimality.sets import EntryState, OptimalitySet
from .finding import Case, Finding, Severity, some
from .repetition import row_codes

LARGEST = 4_000
"""Different decisions whose ranks are looked at; they are small dense problems."""
RANK_LIMIT = 3_000
"""Rows or free entries beyond which no rank is computed."""


def check_decisions(case: Case, feasible: np.ndarray) -> list[Finding]:
    """Findings about the decisions that are feasible. Whole ones need be at no vertex."""
    rows = np.flatnonzero(feasible)
    if not rows.size or case.plan.is_whole:
        return []
    sets = OptimalitySet(case.plan[rows].rows, case.decisions[rows], 1.0, tol=case.tol)
    return [*_nearly(case, sets, rows), *_vertices(case, sets, rows)]


def corners(case: Case, rows: np.ndarray) -> np.ndarray | None:
    """(B, 3) of feasible decisions, whether whole or not, as the relaxation sees them: free
    entries, their rank among active rows, all active rows that are independent; None where that is
    too large to compute."""
    return _ranks(OptimalitySet(case.plan[rows].rows, case.decisions[rows], 1.0, tol=case.tol))


def _nearly(case: Case, sets: OptimalitySet, rows: np.ndarray) -> list[Finding]:
    """Entries that are neither clearly at a bound nor clearly away from it."""
    close = np.flatnonzero(sets.nearest_free < 100 * case.tol)
    if not close.size:
        return []
    order = rows[close[np.argsort(sets.nearest_free[close])]]
    return [
        Finding(
            Severity.WARNING,
            "nearly",
            f"{count(len(order), 'decision has', 'decisions have')} entries or rows within "
            f"{100 * case.tol:.1%} of a limit (of its size) that do not count as at it, which "
            f"takes {case.tol:.3%}: {some(case.named(order))}. A solver's tolerance, or a real "
            "small amount?",
            "If the limit was meant, write it into these rows; if the amount is real, nothing "
            "needs to be done.",
            case.named(order),
        )
    ]


def _vertices(case: Case, sets: OptimalitySet, rows: np.ndarray) -> list[Finding]:
    """Decisions between corners, and corners where more constraints meet than are needed."""
    figures = _ranks(sets)
    if figures is None:
        return []
    free, rank, needed = figures.T
    between = rows[free > rank]
    degenerate = rows[(free <= rank) & (rank < needed)]
    found = []
    if between.size and not case.plan.integers:  # of whole variables `check_whole` says it
        found.append(
            Finding(
                Severity.WARNING,
                "not-a-vertex",
                f"{count(len(between), 'decision lies', 'decisions lie')} between corners of the "
                f"plan: {some(case.named(between))}. Only costs that rank several corners equal "
                "make such a decision optimal, and a solver will return a corner instead.",
                "Expect the model to explain these but not to repeat them. If they were rounded, "
                "give half a unit of their last digit with --tol; if they are averages or "
                "compromises, remove these rows from the table of decisions and leave out their "
                "contexts with --skip-bad.",
                case.named(between),
            )
        )
    if degenerate.size:
        found.append(
            Finding(
                Severity.NOTE,
                "degenerate",
                f"{count(len(degenerate), 'decision is', 'decisions are')} degenerate: more "
                "constraints meet there than are needed to fix it. This does no harm.",
                "Nothing to do; the method needs no choice among these constraints.",
                case.named(degenerate),
            )
        )
    return found


def _ranks(sets: OptimalitySet) -> np.ndarray | None:
    """(B, 3) free entries, their rank among the rows that hold with equality, and the number of
    those rows that are independent; None where that is too large to compute."""
    problem = sets.rows
    eq, ub = problem.eq_rows.matrix(0).toarray(), problem.ub_rows.matrix(0).toarray()
    pattern = np.hstack([sets.entry_state, sets.row_active.astype(np.int8)])
    _, first, which = np.unique(row_codes(pattern), return_index=True, return_inverse=True)
    different = pattern[first]
    if len(different) > LARGEST or max(len(eq) + len(ub), problem.n_variables) > RANK_LIMIT:
        return None
    n = problem.n_variables
    figures = np.zeros((len(different), 3), int)
    for k, line in enumerate(different):
        rows = np.vstack([eq, ub[line[n:].astype(bool)]])
        free = np.flatnonzero(line[:n] == EntryState.FREE)
        rank = np.linalg.matrix_rank(rows[:, free]) if free.size and len(rows) else 0
        whole = np.linalg.matrix_rank(rows) if len(rows) else 0
        figures[k] = len(free), rank, whole
    return figures[which]
