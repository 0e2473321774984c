"""Contexts far outside what a model has seen.

Letters: B rows, d features.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..tables import FeatureMap

FAR = 0.5
"""Beyond the least and the largest number seen, in units of the distance between them."""


class Outside(NamedTuple):
    """A number far outside what was seen."""

    row: int
    feature: str
    value: float
    low: float
    high: float


def ranges_of(features: FeatureMap, contexts: np.ndarray) -> dict[str, list[float]]:
    """Of every feature that is a number the least and the largest of encoded contexts (B, d)."""
    names = list(features.names)
    ranges = {}
    for feature in (f for f in features.features if not f.levels):
        column = contexts[:, names.index(feature.name)] * feature.scale + feature.mean
        ranges[feature.name] = [float(column.min()), float(column.max())]
    return ranges


def far_outside(
    features: FeatureMap, contexts: np.ndarray, training: dict[str, Any]
) -> list[Outside]:
    """Numbers of encoded contexts (B, d) far outside the ranges kept with a model, the farthest
    first; none for a model that has kept none."""
    kept = training.get("ranges")
    kept, names = kept if isinstance(kept, dict) else {}, list(features.names)
    found: list[tuple[float, Outside]] = []
    for feature in (f for f in features.features if not f.levels):
        seen = _pair(kept.get(feature.name))
        if seen is None:
            continue
        low, high = seen
        column = contexts[:, names.index(feature.name)] * feature.scale + feature.mean
        width = max(high - low, 1e-9 * max(abs(low), abs(high), 1e-300))
        off = np.maximum(low - column, column - high) / width
        for row in np.flatnonzero(off > FAR):
            value = float(f"{column[row]:.12g}")
            found.append((float(off[row]), Outside(int(row), feature.name, value, low, high)))
    return [outside for _, outside in sorted(found, key=lambda pair: -pair[0])]


def _pair(pair: Any) -> tuple[float, float] | None:
    """Two numbers of a stored model, if that is what they are."""
    good = isinstance(pair, list) and len(pair) == 2
    if not good or not all(isinstance(x, int | float) and np.isfinite(x) for x in pair):
        return None
    return (float(pair[0]), float(pair[1])) if pair[0] <= pair[1] else None
