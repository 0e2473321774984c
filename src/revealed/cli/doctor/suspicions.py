"""Columns of the contexts that are not what they seem: numbers of rows, marks for what is missing,
words spelled in two ways, columns that are known only after the decision.

Letters: B samples, d features, n variables.
"""

from __future__ import annotations

import numpy as np

from ..._common.words import count
from ..tables.names import bare
from .finding import Case, Finding, Severity, some

MARKS = (-1.0, -9.0, -99.0, -999.0, -9999.0, -99999.0, 999.0, 9999.0, 99999.0, 999999.0)
"""Numbers that stand for `not known` in many tables."""
MISSING_WORDS = frozenset({"na", "n/a", "nan", "null", "#n/a", "?", "-", "missing", "unknown"})
RARE = 3
"""Rows below which the effect of a word is anybody's guess."""
KNOWN = 0.95
"""Share of rows in which a column equals a decision for it to be one."""
FEW = 20
"""Rows from which on that is no accident."""


def check_suspicions(case: Case, feasible: np.ndarray) -> list[Finding]:
    """Findings about columns; which decisions are feasible plays no part."""
    return [
        *_leaks(case),
        *_counters(case),
        *_marks(case),
        *_spellings(case),
        *_words(case),
    ]


def _leaks(case: Case) -> list[Finding]:
    """Columns of numbers that equal a variable of the decisions, also where it is unusual."""
    words = {f"{name}={word}" for name, several in case.words.items() for word in several}
    found = []
    for k, name in enumerate(case.feature_names):
        values, counts = np.unique(case.features[:, k], return_counts=True)
        unusual = np.flatnonzero(case.features[:, k] != values[counts.argmax()])
        if name in words or len(unusual) < FEW:
            continue
        same = np.arange(len(case.plan.variables))
        for rows in (unusual[:FEW], unusual, np.arange(len(case.features))):
            same = _equal(case, rows, k, same)
        if same.size:
            found.append((name, case.plan.variables[same[0]]))
    return [
        Finding(
            Severity.WARNING,
            "leak",
            f"The column {column} of the contexts equals {variable} in the decisions: it says what "
            "was decided, which is not known beforehand.",
            f"Leave it out with {case.ignoring([column])} unless it is known before the decision.",
            details={"column": column, "variable": variable},
        )
        for column, variable in found
    ]


def _equal(case: Case, rows: np.ndarray, k: int, variables: np.ndarray) -> np.ndarray:
    """Those of the variables that equal feature k in nearly all rows."""
    column, X = case.features[rows, k][:, None], case.decisions[np.ix_(rows, variables)]
    share = (np.abs(X - column) <= case.tol * np.abs(column)).mean(axis=0)
    return variables[share >= KNOWN]


def _counters(case: Case) -> list[Finding]:
    steps = np.diff(case.features, axis=0)
    counts = np.flatnonzero((np.abs(steps - 1.0) < 1e-9).all(axis=0)) if len(steps) > RARE else []
    return [
        Finding(
            Severity.WARNING,
            "row-number",
            f"The column {case.feature_names[k]} only counts the rows, from "
            f"{case.features[0, k]:g} to {case.features[-1, k]:g}.",
            f"Leave it out with {case.ignoring([case.feature_names[k]])} unless something grows "
            "with it: new rows lie beyond all that was seen.",
            details={"column": case.feature_names[k]},
        )
        for k in counts
    ]


def _marks(case: Case) -> list[Finding]:
    """Numbers such as -999 that lie outside all others and are there more than once."""
    found = []
    for k, name in enumerate(case.feature_names):
        column = case.features[:, k]
        for mark in MARKS:
            at = column == mark
            rest = column[~at]
            if at.sum() < 2 or len(np.unique(rest)) < RARE or rest.min() <= mark <= rest.max():
                continue
            gap = max(rest.min() - mark, mark - rest.max())
            if gap <= 0.5 * np.ptp(rest):
                continue
            rows = np.flatnonzero(at)
            found.append(
                Finding(
                    Severity.WARNING,
                    "mark",
                    f"{count(len(rows), 'row has', 'rows have')} {mark:g} in the column {name}, "
                    f"all others lie between {rest.min():g} and {rest.max():g}: "
                    f"{some(case.named(rows))}. It looks like a placeholder for missing values.",
                    "Empty these cells and fill them with --impute median, or leave the column out "
                    f"with {case.ignoring([name])}; as a number it misleads.",
                    case.named(rows),
                    {"column": name, "mark": mark},
                )
            )
    return found


def _spellings(case: Case) -> list[Finding]:
    found = []
    for name, words in case.words.items():
        groups: dict[str, list[str]] = {}
        for word in words:
            groups.setdefault(bare(word).strip("."), []).append(word)
        twice = [group for group in groups.values() if len(group) > 1]
        if twice:
            shown = "; ".join(" and ".join(map(repr, group)) for group in twice[:3])
            found.append(
                Finding(
                    Severity.WARNING,
                    "spelling",
                    f"The column {name} spells the same word in two ways: {shown}. Each is learned "
                    "as if it were something else.",
                    f"Replace {twice[0][1]!r} by {twice[0][0]!r} in the file, or the other way "
                    f"round; there is no option for this.",
                    details={"column": name, "words": twice},
                )
            )
    return found


def _words(case: Case) -> list[Finding]:
    """Words that stand for nothing, and words that are hardly there."""
    found = []
    for name, counts in case.word_counts().items():
        for word in [word for word in counts if word.lower() in MISSING_WORDS]:
            found.append(
                Finding(
                    Severity.WARNING,
                    "missing-word",
                    f"{count(counts[word], 'row has', 'rows have')} {word!r} in the column "
                    f"{name}: it is learned from as a word like the others.",
                    "If it means that something is missing, fill it in, or empty these cells and "
                    "use --impute or --skip-bad.",
                    details={"column": name, "word": word},
                )
            )
        rare = [word for word, times in counts.items() if times < RARE and len(counts) > 1]
        if rare:
            found.append(
                Finding(
                    Severity.NOTE,
                    "rare-words",
                    f"The column {name} has {count(len(rare), 'word')} in fewer than {RARE} rows: "
                    f"{some(rare)}.",
                    "Do not interpret their coefficients, or replace them in the file by a word "
                    "that means nearly the same.",
                    details={"column": name, "words": rare},
                )
            )
    return found
