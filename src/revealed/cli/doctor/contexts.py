"""Contexts taken for themselves: columns that say nothing, say the same, or jump.

Letters: B samples, d features.
"""

from __future__ import annotations

import numpy as np

from ..._common.words import count
from .finding import Case, Finding, Severity, some

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
            f"Leave {'it' if len(names) == 1 else 'them'} out with --ignore, or look why nothing "
            "changes there.",
            details={"columns": names},
        )
    ]


def _dependent(case: Case, Z: np.ndarray) -> list[Finding]:
    """Columns that follow from others."""
    unit = Z / np.where(Z.any(axis=0), np.abs(Z).max(axis=0), 1.0)
    centered = unit - unit.mean(axis=0)
    size = np.linalg.norm(centered, axis=0)
    live = np.flatnonzero(size > 1e-12 * len(Z) ** 0.5)
    if len(live) < 2 or len(Z) <= len(live):
        return []
    unit = centered[:, live] / size[live]
    basis = np.zeros((len(Z), 0))
    dependent = []
    for place, k in enumerate(live):
        rest = unit[:, place] - basis @ (basis.T @ unit[:, place])
        length = np.linalg.norm(rest)
        if length <= 1e-8:
            dependent.append(case.feature_names[k])
        else:
            basis = np.column_stack([basis, rest / length])
    if not dependent:
        return []
    return [
        Finding(
            Severity.WARNING,
            "dependent-features",
            f"{count(len(dependent), 'column follows', 'columns follow')} from the columns before: "
            f"{some(dependent)}.",
            "Predictions are the same with or without it, but coefficients of columns that say the "
            "same cannot be separated. Leave it out with --ignore.",
            details={"columns": dependent},
        )
    ]


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
                "Check for a slip of the decimal point or other units in these rows.",
                case.named(far),
                {"column": name},
            )
        )
    return found
