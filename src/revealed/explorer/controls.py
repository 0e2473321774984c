"""What can be moved on the page: the features of a context, and the limits it brings.

Letters: B samples, d features, k limits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InputError
from ..plans import Limit
from ..problem import LinearProgram
from ..store import FittedModel, Samples
from ..tables import Feature

LARGEST = 1e100
"""Numbers beyond this are no amounts."""


class Controls:
    """Contexts in the words and units of their table, and back to what the model takes."""

    def __init__(self, model: FittedModel, samples: Samples) -> None:
        self._model, self._samples = model, samples
        self._limits: dict[str, tuple[int, Limit]] = {}
        for k, limit in enumerate(model.limits):  # one column may limit several rows
            self._limits.setdefault(limit.column, (k, limit))

    def describe(self) -> list[dict[str, Any]]:
        """Of every feature, then of every limit, its name and where it may be moved."""
        told = []
        for feature in self._model.features.features:
            if feature.levels:
                told.append({"name": feature.name, "levels": list(feature.levels)})
            else:
                at = self._model.features.names.index(feature.columns[0])
                values = self._samples.contexts[:, at] * feature.scale + feature.mean
                told.append({"name": feature.name, **_range(values)})
        for column, (k, limit) in self._limits.items():
            assert self._samples.limits is not None
            given = self._samples.limits[:, k]
            told.append({"name": column, "limits": limit.name, **_range(given)})
        return told

    def context(self, b: int) -> dict[str, Any]:
        """The context of a sample; None for a limit that is the plan's own."""
        context: dict[str, Any] = {}
        Z, at = self._samples.contexts[b], 0
        for feature in self._model.features.features:
            part = Z[at : at + len(feature.columns)]
            at += len(feature.columns)
            if feature.levels:
                context[feature.name] = feature.levels[int(np.argmax([0.5, *part]))]
            else:
                context[feature.name] = float(f"{part[0] * feature.scale + feature.mean:.12g}")
        for column, (k, _) in self._limits.items():
            assert self._samples.limits is not None
            given = float(self._samples.limits[b, k])
            context[column] = given if np.isfinite(given) else None
        return context

    def encode(self, context: dict[str, Any]) -> np.ndarray:
        """(d,) what the model sees of a context that someone made up."""
        parts = [_encoded(feature, context) for feature in self._model.features.features]
        return np.concatenate([np.zeros(0), *parts])

    def problem(self, context: dict[str, Any], b: int | None) -> LinearProgram:
        """The constraints under the limits of a context that someone made up; where it names none,
        those of sample b, or else the plan's own."""
        given = [self._given(limit, k, context, b) for k, limit in enumerate(self._model.limits)]
        return self._model.plan_of(np.array([given])).problem

    def _given(self, limit: Limit, k: int, context: dict[str, Any], b: int | None) -> float:
        if context.get(limit.column) is not None:
            return _number(limit.column, context[limit.column])
        if b is None or self._samples.limits is None:
            return np.nan
        return float(self._samples.limits[b, k])


def _range(values: np.ndarray) -> dict[str, Any]:
    """Where numbers like these may be moved."""
    values = values[np.isfinite(values)]
    if not values.size:
        return {"low": 0.0, "high": 1.0, "whole": False}
    low, high = float(values.min()), float(values.max())
    room = 0.25 * (high - low) or 1.0
    off = np.abs(values - np.round(values)).max()
    whole = bool(off <= 1e-9 and 0.5 < np.ptp(values) <= 1.5)  # yes or no
    least = 0.0 if low >= 0 else -np.inf  # amounts and prices do not become negative
    return {
        "low": low if whole else max(low - room, least),
        "high": high if whole else high + room,
        "whole": whole,
    }


def _encoded(feature: Feature, context: dict[str, Any]) -> list[float]:
    value = context.get(feature.name)
    if not feature.levels:
        return [(_number(feature.name, value) - feature.mean) / feature.scale]
    if value not in feature.levels:
        raise InputError(f"{feature.name} must be one of {', '.join(feature.levels)}.")
    return [float(value == level) for level in feature.levels[1:]] or [0.0]


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{name} must be a number; got {value!r}.")
    if not abs(value) < LARGEST:
        raise InputError(f"{name} must be a number of usual size.")
    return float(value)
