"""The same again: rows that are there twice, contexts with two answers, entries that never move.

Letters: B samples, n variables.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..._common.words import count
from .finding import Case, Finding, Severity, some

FEW = 20
"""Samples below which no share of them means much."""


def check_repetition(case: Case, feasible: np.ndarray) -> list[Finding]:
    """Findings about rows and columns that repeat."""
    return [*_duplicates(case), *_conflicts(case), *_still(case, feasible)]


def _groups(rows: np.ndarray) -> Iterator[np.ndarray]:
    """Positions of lines that are equal, for every line that is there more than once."""
    _, which = np.unique(row_codes(rows), return_inverse=True)
    order = np.argsort(which, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(which[order]) > 0])
    for group in np.split(order, starts[1:]):
        if len(group) > 1:
            yield group


def _duplicates(case: Case) -> list[Finding]:
    groups = list(_groups(np.hstack([case.given, case.decisions])))
    if not groups:
        return []
    extra = sum(len(group) - 1 for group in groups)
    rows = np.concatenate(groups)
    first = groups[0]
    return [
        Finding(
            Severity.WARNING,
            "duplicates",
            f"{count(extra, 'row repeats', 'rows repeat')} another one, context and decision "
            f"alike: {some(case.named(first))} are the same.",
            "Remove them if they are true duplicates: they count double, and a copy on each side "
            "of a held-out split makes a model look better than it is.",
            case.named(rows),
        )
    ]


def _conflicts(case: Case) -> list[Finding]:
    """Contexts that are the same and decisions that are not."""
    found: list[np.ndarray] = []
    for group in _groups(case.given):
        if (np.abs(np.ptp(case.decisions[group], axis=0)) > case.tol).any():
            found.append(group)
    if not found:
        return []
    rows = np.concatenate(found)
    share = len(rows) / len(case.samples)
    return [
        Finding(
            Severity.WARNING,
            "conflict",
            f"{count(len(found), 'context has', 'contexts have')} more than one decision: "
            f"{some(case.named(found[0]))} differ although their contexts are the same "
            f"({share:.0%} of all rows are such). No cost explains both with the margin: at "
            f"best they tie.",
            "Add the column in which they differ. A fit does not let the minority pull the rest: "
            "its loss grows slowly far away.",
            case.named(rows),
            {"groups": [list(case.named(group)) for group in found[:50]]},
        )
    ]


def _still(case: Case, feasible: np.ndarray) -> list[Finding]:
    """Variables that are the same in every decision, or nearly every decision the same; nothing
    where half of the decisions break the plan, for the rest are no picture of all."""
    X = case.decisions[feasible]
    if len(X) < 2 or 2 * len(X) <= len(feasible):
        return []
    span = np.ptp(case.decisions, axis=0)
    choice = case.choice
    still = np.flatnonzero((span <= case.tol) & choice)
    found = []
    if len(still) == int(choice.sum()):
        return [
            Finding(
                Severity.ERROR,
                "constant",
                "All decisions are the same, whatever the context.",
                "Nothing can be learned about contexts. Collect samples with other decisions.",
            )
        ]
    if still.size:
        names = [case.plan.variables[j] for j in still]
        found.append(
            Finding(
                Severity.NOTE,
                "still",
                f"{count(len(still), 'variable never changes', 'variables never change')}: "
                f"{some(names)}. The decisions show only on which side of a limit such a cost "
                "lies.",
                "Do not interpret their coefficients.",
                details={"variables": names},
            )
        )
    different = len(np.unique(row_codes(np.round(X / max(case.tol, 1e-12)))))
    if different <= 3 and len(X) >= FEW:
        found.append(
            Finding(
                Severity.WARNING,
                "few-decisions",
                f"There are only {different} different decisions among {len(X):,}.",
                "Little can be learned from so few; collect samples with other decisions.",
            )
        )
    return found


def row_codes(rows: np.ndarray) -> np.ndarray:
    """(B,) uint64 for rows (B, k): the same for equal rows, and for others but once in 2^64 pairs.

    Sorting these instead of the rows takes a tenth of the time on a million decisions.
    """
    if rows.dtype.kind == "f":
        rows = rows + 0.0  # so that -0.0 is 0.0
    raw = np.ascontiguousarray(rows).view(np.uint8).reshape(len(rows), -1)
    words = np.pad(raw, ((0, 0), (0, -raw.shape[1] % 8))).view(np.uint64)
    odd = np.random.default_rng(0).integers(1, 2**63, words.shape[1], dtype=np.uint64) * 2 + 1
    code = np.zeros(len(rows), np.uint64)
    for k, factor in enumerate(odd):
        code = (code ^ words[:, k]) * factor
        code ^= code >> np.uint64(29)
    return code
