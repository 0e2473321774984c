"""What the data can teach, said before anything is fitted: findings, each with rows and advice."""

from __future__ import annotations

from collections.abc import Callable

from .contexts import check_contexts
from .decisions import check_decisions
from .feasibility import check_feasibility
from .finding import Case, Finding, Severity
from .identification import check_identification
from .limits import check_limits
from .repetition import check_repetition
from .suspicions import check_suspicions
from .unknown import check_unknown
from .whole import check_whole

__all__ = ["CHECKS", "Case", "Finding", "Severity", "examine"]

_ORDER = list(Severity)


OF_MOST = frozenset({check_decisions})
"""Checks of feasible decisions that are silent where half of all are not: the cause comes first."""
CHECKS = (
    check_whole,
    check_decisions,
    check_repetition,
    check_contexts,
    check_suspicions,
    check_identification,
    check_unknown,
)


def examine(case: Case, step: Callable[[int], None] = lambda k: None) -> list[Finding]:
    """All findings, the worst first; `step` is called after every check."""
    feasible, found = check_feasibility(case)
    found = [*check_limits(case, feasible), *found]  # the cause before what comes of it
    few = 2 * feasible.sum() <= len(feasible)
    for k, check in enumerate(CHECKS):
        found += [] if few and check in OF_MOST else check(case, feasible)
        step(k + 1)
    return sorted(found, key=lambda finding: _ORDER.index(finding.severity))
