"""What the page asks for, as plain data: the model, a sample, a context that someone makes up.

Letters: B samples, n variables, d features.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InputError
from ..explain.likeness import SAME, alike
from ..optimality import OptimalitySet
from ..projection import project
from ..store import FittedModel, Samples
from ..tables import Feature
from .places import drawing_of

ALTERNATIVES = 5
MOST_TRIED = 60
"""Entries of a decision that are forbidden in turn to find its alternatives."""


class Explorer:
    """Answers about one model and the samples that are looked at."""

    def __init__(self, model: FittedModel, samples: Samples) -> None:
        if not len(samples):
            raise InputError("There is no sample to look at.")
        self.model, self.samples = model, samples
        plan = model.plan
        self._sets = OptimalitySet(plan.problem, samples.decisions, 0.0)
        self._costs = model.costs(samples.contexts)
        self._own = np.asarray(plan.problem.solve(self._costs).x)

    def describe(self) -> dict[str, Any]:
        """Everything that does not change while the page is open."""
        model = self.model
        same = [_same(a, b) for a, b in zip(self._own, self.samples.decisions, strict=True)]
        return {
            "plan": model.plan.name,
            "maximise": model.plan.maximise,
            "variables": list(model.plan.variables),
            "margin": model.margin,
            "features": [self._feature(f) for f in model.features.features],
            "samples": [
                {"name": name, "held": bool(held), "repeated": bool(hit)}
                for name, held, hit in zip(
                    self.samples.names, self.samples.held.tolist(), same, strict=True
                )
            ],
            "drawing": self._drawing(),
            "training": model.training,
        }

    def sample(self, b: int) -> dict[str, Any]:
        """One sample: its context, the decision taken, and what the model makes of it."""
        if not 0 <= b < len(self.samples):
            raise InputError(f"There are {len(self.samples)} samples; number {b} is not one.")
        Z = self.samples.contexts[b]
        return {
            "number": b,
            "name": self.samples.names[b],
            "held": bool(self.samples.held[b]),
            "context": self._decode(Z),
            "observed": self.samples.decisions[b].tolist(),
            **self._answer(Z, b),
        }

    def decide(self, context: dict[str, Any], b: int | None) -> dict[str, Any]:
        """The model's answer to a context that someone made up, beside the decision of sample b."""
        if b is not None and not 0 <= b < len(self.samples):
            raise InputError(f"There are {len(self.samples)} samples; number {b} is not one.")
        return self._answer(self._encode(context), b)

    def _answer(self, Z: np.ndarray, b: int | None) -> dict[str, Any]:
        plan = self.model.plan
        costs = self.model.costs(Z[None])
        solution = plan.problem.solve(costs)
        solved = bool(np.asarray(solution.optimal)[0])
        told: dict[str, Any] = {
            "costs": (plan.sign * costs[0]).tolist(),
            "solved": solved,
            "predicted": np.asarray(solution.x)[0].tolist() if solved else None,
            "alternatives": self._alternatives(costs[0], np.asarray(solution.x)[0])
            if solved
            else [],
        }
        if b is not None:
            answer = project(costs, self._sets[[b]])
            taken = self.samples.decisions[b]
            told |= {
                "distance": float(answer.distance[0]),
                "distance_solved": bool(answer.solved[0]),
                "excess": float(costs[0] @ taken - np.asarray(solution.objective)[0])
                if solved
                else None,
                "repeated": solved and _same(np.asarray(solution.x)[0], taken),
            }
        return told

    def _alternatives(self, cost: np.ndarray, best: np.ndarray) -> list[dict[str, Any]]:
        """The next best decisions: the optimum with one of its entries made dear, each in turn."""
        problem = self.model.plan.problem
        used = np.flatnonzero(np.abs(best - np.minimum(np.abs(problem.lb), np.abs(best))) > SAME)
        used = used[np.argsort(-np.abs(best[used]), kind="stable")][:MOST_TRIED]
        if not used.size:
            return []
        dear = np.repeat(cost[None], len(used), axis=0)
        dear[np.arange(len(used)), used] += 1e3 * (1.0 + np.abs(cost).max())
        found = problem.solve(dear)
        kept: dict[bytes, dict[str, Any]] = {}
        for x, fine in zip(np.asarray(found.x), np.asarray(found.optimal), strict=True):
            if fine and not _same(x, best):
                extra = float(cost @ (x - best))
                kept.setdefault(np.round(x, 6).tobytes(), {"decision": x.tolist(), "extra": extra})
        return sorted(kept.values(), key=lambda item: item["extra"])[:ALTERNATIVES]

    def _feature(self, feature: Feature) -> dict[str, Any]:
        if feature.levels:
            return {"name": feature.name, "levels": list(feature.levels)}
        column = self._column(feature)
        values = self.samples.contexts[:, column] * feature.scale + feature.mean
        low, high = float(values.min()), float(values.max())
        room = 0.25 * (high - low) or 1.0
        off = np.abs(values - np.round(values)).max()
        whole = bool(off <= 1e-9 and 0.5 < np.ptp(values) <= 1.5)  # yes or no
        least = 0.0 if low >= 0 else -np.inf  # amounts and prices do not become negative
        return {
            "name": feature.name,
            "low": low if whole else max(low - room, least),
            "high": high if whole else high + room,
            "whole": whole,
        }

    def _column(self, feature: Feature) -> int:
        return self.model.features.names.index(feature.columns[0])

    def _decode(self, Z: np.ndarray) -> dict[str, Any]:
        """An encoded context in the words and units of its table."""
        context: dict[str, Any] = {}
        at = 0
        for feature in self.model.features.features:
            part = Z[at : at + len(feature.columns)]
            at += len(feature.columns)
            if feature.levels:
                context[feature.name] = feature.levels[int(np.argmax([0.5, *part]))]
            else:
                context[feature.name] = float(f"{part[0] * feature.scale + feature.mean:.12g}")
        return context

    def _encode(self, context: dict[str, Any]) -> np.ndarray:
        parts: list[float] = []
        for feature in self.model.features.features:
            value = context.get(feature.name)
            if feature.levels:
                if value not in feature.levels:
                    raise InputError(f"{feature.name} must be one of {', '.join(feature.levels)}.")
                parts += [float(value == level) for level in feature.levels[1:]] or [0.0]
            else:
                if isinstance(value, bool) or not isinstance(value, int | float):
                    raise InputError(f"{feature.name} must be a number; got {value!r}.")
                if not abs(value) < 1e100:
                    raise InputError(f"{feature.name} must be a number of usual size.")
                parts.append((value - feature.mean) / feature.scale)
        return np.array(parts)

    def _drawing(self) -> dict[str, Any] | None:
        """A grid or a graph to draw decisions on; None where the plan has neither."""
        return drawing_of(self.model.plan.problem.structure)


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    return bool(alike(one, other).all())
