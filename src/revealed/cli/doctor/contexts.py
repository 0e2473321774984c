"""Contexts taken for themselves: columns that say nothing, say the same, or jump.

Letters: B samples, d features.
"""

from __future__ import annotations

import numpy as np

from ..._common.words import count
from .finding import SHOWN, Case, Finding, Severity, some

FAR = 30.0
"""Distances from the median, in units of the usual distance, at which a value is far off."""


def check_contexts(case: Case, feasible: np.ndarray) -> list[Finding]:
    """Findings about the features; `feasible` plays no part."""
    Z = case.features
    return [*_constant(case, Z), *_dependent(case, Z), *_few(case, Z), *_far(case, Z)]


def _constant(case: Case, Z: np.ndarray) -> list[Finding]:
    still = np.flatnonzero(np.ptp(Z, axis=0) <= 1e-12 * np.maximum(np.abs(Z).max(axis=0), 1e-300))
    alone = case.limits is not None and len(still) == Z.shape[1]  # for what never changes
    if not still.size or len(Z) < 2 or alone:
        return []
    names = [case.feature_names[k] for k in still]
    return [
        Finding(
            Severity.WARNING,
            "constant-feature",
            f"{count(len(names), 'column of the contexts is', 'columns of the contexts are')} the "
            f"same in every row: {some(names)}.",
            f"Leave {'it' if len(names) == 1 else 'them'} out with {option}, or find out why it "
            f"never changes."
            if (option := case.ignoring(names))
            else "Nothing to do: it is the same on all days, so costs cannot depend on it.",
            details={"columns": names},
        )
    ]


def _dependent(case: Case, Z: np.ndarray) -> list[Finding]:
    """Columns that another one says too, then those that follow from several others together."""
    unit = Z / np.where(Z.any(axis=0), np.abs(Z).max(axis=0), 1.0)
    centered = unit - unit.mean(axis=0)
    size = np.linalg.norm(centered, axis=0)
    live = np.flatnonzero(size > 1e-12 * len(Z) ** 0.5)
    if len(live) < 2 or len(Z) <= len(live):
        return []
    centered[:, live] /= size[live]
    if not _following(centered, live):
        return []
    parts = _parts(case, set(live.tolist()))
    twice = _repeated(case, centered, parts)
    found = [_said_twice(case, twice)] if twice else []
    rest = [k for name, columns in parts.items() if name not in twice for k in columns]
    follows = [case.feature_names[k] for k in _following(centered, np.sort(rest))]
    if follows:
        option = case.ignoring(follows)
        found.append(
            Finding(
                Severity.WARNING,
                "dependent-features",
                f"{count(len(follows), 'feature follows', 'features follow')} from several others "
                f"together: {some(follows)}.",
                "Predictions are the same with or without them, but their coefficients cannot be "
                "separated: do not interpret single ones"
                + (f", or leave their columns out with {option}." if option else "."),
                details={"columns": follows},
            )
        )
    return found


def _following(columns: np.ndarray, order: np.ndarray) -> list[int]:
    """Of columns of length 1, in this order, those that follow from the ones before."""
    basis = np.zeros((len(columns), 0))
    found = []
    for k in order:
        rest = columns[:, k] - basis @ (basis.T @ columns[:, k])
        length = np.linalg.norm(rest)
        if length <= 1e-8:
            found.append(int(k))
        else:
            basis = np.column_stack([basis, rest / length])
    return found


def _parts(case: Case, live: set[int]) -> dict[str, list[int]]:
    """Of every number and category, in the order of the table, which columns are its own."""
    of = {f"{name}={word}": name for name, words in case.words.items() for word in words}
    parts: dict[str, list[int]] = {}
    for k, feature in enumerate(case.feature_names):
        if k in live:
            parts.setdefault(of.get(feature, feature), []).append(k)
    return parts


def _repeated(case: Case, columns: np.ndarray, parts: dict[str, list[int]]) -> dict[str, str]:
    """Columns of the table that say nothing beyond one other: an earlier one, or a part of a date,
    which no option leaves out alone."""
    twice: dict[str, str] = {}
    dates = {name for name, own in parts.items() if _column(case, own) in case.dates}
    names = list(parts)
    for place, name in enumerate(names):
        if name in dates:
            continue
        for other in [o for o in names if o != name and (o in dates or o in names[:place])]:
            span, own = columns[:, parts[other]], columns[:, parts[name]]
            rest = own - span @ (np.linalg.pinv(span) @ own)
            if other not in twice and np.linalg.norm(rest, axis=0).max() <= 1e-8:
                twice[name] = other
                break
    return twice


def _column(case: Case, own: list[int]) -> str:
    return case.column(case.feature_names[own[0]])


def _said_twice(case: Case, twice: dict[str, str]) -> Finding:
    pairs, names = list(twice.items())[:SHOWN], list(twice)
    said = "; ".join(f"{name} repeats what {other} says" for name, other in pairs)
    more = len(twice) - len(pairs)
    return Finding(
        Severity.WARNING,
        "dependent-features",
        f"{said}{f'; and {more:,} more' if more else ''}.",
        f"Use {case.ignoring(names[:SHOWN])}{' and so on' if more else ''}: predictions stay the "
        "same, and every coefficient that is left has a meaning of its own.",
        details={"columns": names, "repeats": twice},
    )


def _few(case: Case, Z: np.ndarray) -> list[Finding]:
    B, d = Z.shape
    if B >= 5 * (d + 1):
        return []
    return [
        Finding(
            Severity.WARNING,
            "few-samples",
            f"{count(B, 'sample')} for {count(d, 'feature')}: a linear model can explain almost "
            "anything with so few.",
            "Gather more samples, use fewer columns (--ignore), or fit with --ridge.",
        )
    ]


def _far(case: Case, Z: np.ndarray) -> list[Finding]:
    """Values far from all others: a slip of the decimal point, or other units."""
    middle = np.median(Z, axis=0)
    usual = np.median(np.abs(Z - middle), axis=0)
    found = []
    for k in np.flatnonzero(usual > 0):
        off = np.abs(Z[:, k] - middle[k]) / usual[k]
        far = np.flatnonzero(off > FAR)
        if not far.size or len(far) > 0.2 * len(Z):
            continue
        far = far[np.argsort(-off[far], kind="stable")]
        value = Z[far[0], k]
        factor = value / middle[k] if middle[k] else np.nan
        hint = f" ({factor:.3g} times the median)" if 0 < factor < 1e5 else ""
        name = case.feature_names[k]
        found.append(
            Finding(
                Severity.WARNING,
                "far-off",
                f"{count(len(far), 'value')} of {name} far from all others: "
                f"{some(case.named(far))}. The farthest is {value:g}{hint}; the median is "
                f"{middle[k]:g}.",
                "Check these rows for a misplaced decimal point or other units.",
                case.named(far),
                {"column": name},
            )
        )
    return found
