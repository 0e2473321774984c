"""What the page asks for, as plain data: the model, a sample, a context that someone makes up.

Letters: B samples, n variables, d features.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import InputError
from ...metrics.sameness import SAME, alike
from ...optimality.sets import OptimalitySet
from ...problems.integer import IntegerProgram
from ...problems.linear import LinearProgram
from ...problems.solution import SolveStatus
from ...projection import project
from ..commands.deciding import decide
from ..store import FittedModel, Samples
from .controls import Controls
from .places import drawing_of

ALTERNATIVES = 5
DECIDED_S, ALTERNATIVES_S = 10.0, 2.0
"""Seconds after which nobody waits for a whole decision any more, or for its alternatives."""
MOST_TRIED = 60
"""Entries of a decision that are forbidden in turn to find its alternatives."""


class Explorer:
    """Answers about one model and the samples that are looked at."""

    def __init__(self, model: FittedModel, samples: Samples) -> None:
        if not len(samples):
            raise InputError("There is no sample to look at.")
        self.model, self.samples = model, samples
        self._controls = Controls(model, samples)
        self._problem = model.plan_of(samples.limits).problem  # of each sample its own
        self._sets = OptimalitySet(self._problem, samples.decisions, 0.0)
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
        return self._answer(Z, problem, b)

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
            "alternatives": []
            if problem is None or best is None
            else _alternatives(problem, costs[0], best),
        }
        return view if b is None else view | self._beside(costs, problem, best, b)

    def _beside(
        self, costs: np.ndarray, problem: Any, best: np.ndarray | None, b: int
    ) -> dict[str, Any]:
        """The decision of sample b beside the best one; nothing is said of how good it is where
        other limits than its own forbid it."""
        taken, sets = self.samples.decisions[b], self._sets[[b]]
        if self.model.limits:
            sets = None
            if problem is not None and problem.constraint_violation(taken[None])[0] <= SAME:
                sets = OptimalitySet(problem, taken[None], 0.0)
        answer = None if sets is None else project(costs, sets, time_limit=DECIDED_S)
        known = answer is not None and best is not None
        return {
            "distance": None if answer is None else float(answer.distance[0]),
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


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    return bool(alike(one, other).all())


def _alternatives(problem: Any, cost: np.ndarray, best: np.ndarray) -> list[dict[str, Any]]:
    """The next best decisions: the optimum with one of its entries made dear, each in turn."""
    if isinstance(problem, IntegerProgram):
        return _ordered(_one_off(problem, cost, best), cost, best)
    lower = np.atleast_2d(problem.lb)[0]
    used = np.flatnonzero(np.abs(best - np.minimum(np.abs(lower), np.abs(best))) > SAME)
    used = used[np.argsort(-np.abs(best[used]), kind="stable")][:MOST_TRIED]
    if not used.size:
        return []
    dear = np.repeat(cost[None], len(used), axis=0)
    dear[np.arange(len(used)), used] += 1e3 * (1.0 + np.abs(cost).max())
    found = problem[np.zeros(len(used), int)].solve(dear)
    return _ordered(np.asarray(found.x), cost, best)


def _one_off(problem: IntegerProgram, cost: np.ndarray, best: np.ndarray) -> np.ndarray:
    """(K, n) the best decisions with one whole entry below or above what it is in the best of all,
    each in turn; NaN where there is none, or none was proved in time. The second best of all that
    differ in a whole entry is among them."""
    rows = problem.relaxation
    lb, ub = (np.broadcast_to(np.atleast_2d(bound)[0], best.shape) for bound in (rows.lb, rows.ub))
    whole = np.flatnonzero(problem.integer)
    turns = [(j, -1.0) for j in whole if best[j] - 1.0 >= lb[j]]
    turns += [(j, 1.0) for j in whole if best[j] + 1.0 <= ub[j]]
    size = min(len(turns), 2 * MOST_TRIED)
    low, high = np.tile(lb, (size, 1)), np.tile(ub, (size, 1))
    for k, (j, way) in enumerate(turns[:size]):
        side = high if way < 0 else low
        side[k, j] = best[j] + way
    if not size:
        return np.empty((0, len(best)))
    sides = [np.atleast_2d(part)[0] for part in (rows.b_eq, rows.b_ub)]
    turned = LinearProgram(rows.A_eq, sides[0], rows.A_ub, sides[1], low, high)
    branches = IntegerProgram.of(turned, problem.integer)
    answer = branches.solve(np.tile(cost, (size, 1)), time_limit=ALTERNATIVES_S)
    return np.asarray(answer.x)


def _ordered(decisions: np.ndarray, cost: np.ndarray, best: np.ndarray) -> list[dict[str, Any]]:
    """Those (K, n) that differ from the best one and from each other, the nearest in cost first."""
    kept: dict[bytes, dict[str, Any]] = {}
    for x in decisions:
        if np.isfinite(x).all() and not _same(x, best):
            extra = float(cost @ (x - best))
            kept.setdefault(
                (np.round(x, 6) + 0.0).tobytes(), {"decision": x.tolist(), "extra": extra}
            )
    return sorted(kept.values(), key=lambda item: item["extra"])[:ALTERNATIVES]
