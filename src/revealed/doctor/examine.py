"""Every check in the order in which a person would want to hear of it."""

from __future__ import annotations

from .contexts import check_contexts
from .decisions import check_decisions
from .feasibility import check_feasibility
from .finding import Case, Finding, Severity
from .identification import check_identification
from .repetition import check_repetition

_ORDER = list(Severity)


def examine(case: Case) -> list[Finding]:
    """All findings, the worst first."""
    feasible, found = check_feasibility(case)
    checks = (check_decisions, check_repetition, check_contexts, check_identification)
    for check in checks:
        found += check(case, feasible)
    return sorted(found, key=lambda finding: _ORDER.index(finding.severity))
