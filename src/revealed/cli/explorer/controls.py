"""What can be moved on the page: the features of a context, and the limits it brings.

Letters: B samples, d features, k limits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import InputError
from ...problems.integer import IntegerProgram
from ...problems.linear import LinearProgram
from ..plans import Limit, planned, refuse_limits
from ..store import FittedModel, Samples
from ..tables import Feature

LARGEST = 1e100
"""Numbers beyond this are no amounts."""
NO_LIMIT = "no limit"
"""What is said of a limit that is infinite."""


class Controls:
    """Contexts in the words and units of their table, and back to what the model takes."""

    def __init__(self, model: FittedModel, samples: Samples) -> None:
        self._model, self._samples = model, samples
        self._limits: dict[str, list[int]] = {}
        for k, limit in enumerate(model.limits):  # one column may limit several rows
            self._limits.setdefault(limit.column, []).append(k)

    def describe(self) -> list[dict[str, Any]]:
        """Of every feature, then of every limit, its name and where it may be moved."""
        controls, at = [], 0
        for feature in self._model.features.features:
            if feature.levels:
                controls.append({"name": feature.name, "levels": list(feature.levels)})
            else:
                values = self._samples.contexts[:, at] * feature.scale + feature.mean
                controls.append({"name": feature.name, **_range(values)})
            at += len(feature.columns)
        for column, several in self._limits.items():
            assert self._samples.limits is not None
            own = planned(self._model.plan, self._model.limits[several[0]])
            given = self._samples.limits[:, several[0]]
            names = ", ".join(self._model.limits[k].name for k in several)
            limits = {"name": column, "limits": names, "planned": own}
            limits["learned"] = self._model.limits[several[0]].learned
            controls.append(limits | _range(np.where(np.isnan(given), own, given)))
        return controls

    def context(self, b: int) -> dict[str, Any]:
        """The context of a sample, with limits as they were in force; of a limit None if it is the
        plan's own, and words if it is none."""
        context: dict[str, Any] = {}
        Z, at = self._samples.contexts[b], 0
        for feature in self._model.features.features:
            part = Z[at : at + len(feature.columns)]
            at += len(feature.columns)
            if feature.levels:
                context[feature.name] = feature.levels[int(np.argmax([0.5, *part]))]
            else:
                context[feature.name] = float(f"{part[0] * feature.scale + feature.mean:.12g}")
        for column, several in self._limits.items():
            assert self._samples.limits is not None
            given = float(self._samples.limits[b, several[0]])
            endless = NO_LIMIT if np.isinf(given) else None
            context[column] = given if np.isfinite(given) else endless
        return context

    def encode(self, context: dict[str, Any]) -> np.ndarray:
        """(d,) what the model sees of a context that someone made up."""
        parts = [_encoded(feature, context) for feature in self._model.features.features]
        return np.concatenate([np.zeros(0), *parts])

    def problem(
        self, context: dict[str, Any], b: int | None
    ) -> LinearProgram | IntegerProgram | None:
        """The constraints under the limits of a context that someone made up; where it names none,
        those of sample b, or else the plan's own. None where bounds leave no number."""
        model, values = self._model, self._values(context, b)
        try:
            refuse_limits(model.plan, model.limits, values, lambda b, column: column)
        except InputError:
            return None
        return model.plan_of(values).problem

    def learned(self, context: dict[str, Any], b: int | None) -> dict[str, float | None]:
        """By column the learned limits of a context that someone made up; None where none is
        known."""
        values = self._values(context, b)[0]
        pairs = zip(self._model.limits, values.tolist(), strict=True)
        found = {limit.column: value for limit, value in pairs if limit.learned}
        return {name: value if np.isfinite(value) else None for name, value in found.items()}

    def _values(self, context: dict[str, Any], b: int | None) -> np.ndarray:
        """(1, k) limits of a context that someone made up. A learned limit that the context does
        not name moves with its features, from where it was in force in sample b."""
        said = self._said(context)
        if b is not None:
            at = self._said(self.context(b))
            own = np.nan if self._samples.limits is None else self._samples.limits[b]
            learned = np.array([limit.learned for limit in self._model.limits], bool)
            said = np.where(learned, own + (said - at), own)
        values = [
            self._given(limit, context, value)
            for limit, value in zip(self._model.limits, said, strict=True)
        ]
        return np.array([values])

    def _said(self, context: dict[str, Any]) -> np.ndarray:
        """(k,) learned limits as the model says them from features alone; NaN for others."""
        count = sum(not limit.learned for limit in self._model.limits)
        none = np.full((1, count), np.nan)
        if count == len(self._model.limits):
            return none[0]
        found = self._model.limits_at(self.encode(context)[None], none)
        assert found is not None
        return found[0]

    def _given(self, limit: Limit, context: dict[str, Any], otherwise: float) -> float:
        if context.get(limit.column) not in (None, NO_LIMIT):
            return _number(limit.column, context[limit.column])
        return otherwise


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
