"""What the page asks for, as plain data: the model, a sample, a context that someone makes up.

Letters: B samples, n variables, d features.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import InputError
from ...metrics.sameness import SAME, alike
from ...problems.solution import SolveStatus
from ..commands.deciding import decide
from ..explain import explaining, nearest_costs
from ..store import FittedModel, Samples
from .alternatives import next_best
from .controls import Controls
from .places import drawing_of

ALTERNATIVES = 5
DECIDED_S = 10.0
"""Seconds after which nobody waits for a whole decision any more."""


class Explorer:
    """Answers about one model and the samples that are looked at."""

    def __init__(self, model: FittedModel, samples: Samples) -> None:
        if not len(samples):
            raise InputError("There is no sample to look at.")
        self.model, self.samples = model, samples
        self._controls = Controls(model, samples)
        self._problem = model.plan_of(samples.limits).problem  # of each sample its own
        self._sets = explaining(self._problem, samples.decisions, model.given)
        self._costs = model.costs(samples.contexts)
        self._own = decide(self._problem, self._costs, quiet=False).decisions

    def describe(self) -> dict[str, Any]:
        """Everything that does not change while the page is open."""
        model = self.model
        same = [_same(a, b) for a, b in zip(self._own, self.samples.decisions, strict=True)]
        return {
            "plan": model.plan.name,
            "maximize": model.plan.maximize,
            "whole": model.plan.is_whole,
            "relaxed": bool(model.plan.integers) and not model.plan.is_whole,
            "variables": list(model.plan.variables),
            "margin": model.margin,
            "given": None if model.given is None else model.given.describe(model.plan),
            "features": self._controls.describe(),
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
            "context": self._controls.context(b),
            "observed": self.samples.decisions[b].tolist(),
            **self._answer(Z, self._problem[[b]], b),
        }

    def decide(self, context: dict[str, Any], b: int | None) -> dict[str, Any]:
        """The model's answer to a context that someone made up, beside the decision of sample b."""
        if b is not None and not 0 <= b < len(self.samples):
            raise InputError(f"There are {len(self.samples)} samples; number {b} is not one.")
        Z, problem = self._controls.encode(context), self._controls.problem(context, b)
        limits = self._controls.learned(context, b)
        return {**self._answer(Z, problem, b), "limits": limits}

    def _answer(self, Z: np.ndarray, problem: Any, b: int | None) -> dict[str, Any]:
        """What the model makes of a context; `problem` is None where bounds leave no number."""
        plan = self.model.plan
        costs = self.model.costs(Z[None])
        best, status = None, SolveStatus.INFEASIBLE
        if problem is not None:
            found = decide(problem, costs, quiet=True, seconds=DECIDED_S)
            status = SolveStatus(int(found.status[0]))
            best = found.decisions[0] if np.isfinite(found.decisions[0]).all() else None
        view: dict[str, Any] = {
            "costs": (plan.sign * costs[0]).tolist(),
            "solved": best is not None,
            "proved": status is SolveStatus.OPTIMAL,
            "stopped": status is SolveStatus.LIMIT,
            "impossible": status is SolveStatus.INFEASIBLE,
            "predicted": None if best is None else best.tolist(),
            **self._alternatives(problem, costs[0], best),
        }
        return view if b is None else view | self._beside(costs, problem, best, b)

    def _alternatives(
        self, problem: Any, cost: np.ndarray, best: np.ndarray | None
    ) -> dict[str, Any]:
        """Other decisions, the best first, and whether these are proved to be the next best."""
        if problem is None or best is None:
            return {"alternatives": [], "alternatives_proved": False}
        others = next_best(problem, cost, best, ALTERNATIVES, self.samples.decisions)
        found = [{"decision": x.tolist(), "extra": extra} for x, extra in others.found]
        return {"alternatives": found, "alternatives_proved": others.proved}

    def _beside(
        self, costs: np.ndarray, problem: Any, best: np.ndarray | None, b: int
    ) -> dict[str, Any]:
        """The decision of sample b beside the best one; nothing is said of how good it is where
        other limits than its own forbid it."""
        taken, sets = self.samples.decisions[b], self._sets[[b]]
        if self.model.limits:
            sets = None
            if problem is not None and problem.constraint_violation(taken[None])[0] <= SAME:
                sets = explaining(problem, taken[None], self.model.given)
        answer = None
        if sets is not None:
            answer = nearest_costs(sets, costs, self.model.given, DECIDED_S)
        known = answer is not None and best is not None
        return {
            "distance": None if answer is None else _finite(answer.distance[0]),
            "distance_solved": answer is not None and bool(answer.solved[0]),
            "excess": float(costs[0] @ (taken - best)) if known else None,
            "repeated": best is not None and _same(best, taken),
        }

    def _drawing(self) -> dict[str, Any] | None:
        """A grid or a graph to draw decisions on; None where the plan has neither. Where limits
        move the ends of paths, it has none."""
        drawing = drawing_of(self.model.plan.rows.structure)
        if drawing is not None and any(limit.part == "b_eq" for limit in self.model.limits):
            drawing["ends"] = []
        return drawing


def _finite(value: float) -> float | None:
    """A number as JSON can hold it."""
    return float(value) if np.isfinite(value) else None


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    return bool(alike(one, other).all())
