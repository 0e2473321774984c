"""Between the estimator and `LimitLearning`: data in, costs and limits fitted in turn.

Letters: B samples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ...errors import InputError
from ...optimality.limit_sets import UnknownLimitSet
from ...optimality.protocol import CostSet
from ...optimality.sets import OptimalitySet
from ...problems.linear import LinearProgram
from ...problems.unknown import UnknownLimits
from ..decisions import in_units
from ..defaults import usual_noise
from ..evaluation import DistanceLoss, Evaluator
from ..observed import observed
from ..prediction import cost_form, cost_units
from .learning import LimitLearning

COSTS_COUNT = 0.2
"""Times the square of the noise: what a loss of costs is divided by to be added to likelihoods of
limits. Of 1, 0.2, 0.04 and 0.01 this gave the best limits and decisions on noisy plans with three
unknown limits, on other seeds than those reported; all of them were good."""


class Prepared(NamedTuple):
    """Data of a fit with unknown limits."""

    Z: Any
    learning: LimitLearning
    kept: np.ndarray | None
    """Rows that are used; None for all."""
    report: str


def limit_data(est: Any, Z: Any, y: Any, true_costs: Any, weights: np.ndarray | None) -> Prepared:
    """The samples that count, and which limits are active there as far as decisions tell."""
    if true_costs is not None or y is None or isinstance(y, CostSet):
        raise InputError(
            "`unknown_limits` are learned from decisions (B, n), not from sets or true costs. "
            "Where costs are known, use revealed.fit.learn_limits(problem, unknown, Z, X, costs=C)."
        )
    unknown = UnknownLimits.read(est.unknown_limits, est.problem)
    policy = {"infeasible": est.infeasible, "decision_tol": est.decision_tol}
    opened = unknown.opened(est.problem)
    # Unknown limits make up for what is missing of a vertex.
    seen = observed(opened, y, len(Z), vertices=False, margin=est.margin, **policy)
    sets, kept = seen.sets, seen.kept
    if not isinstance(sets, OptimalitySet):
        sets = OptimalitySet(opened, sets, est.margin)  # refuses it, with the reason
    known = est.problem if kept is None else est.problem[kept]
    if kept is not None:
        Z, weights = Z[kept], None if weights is None else weights[kept]
    pairs = UnknownLimitSet(known, sets.decisions, unknown, est.margin, tol=sets.tol)
    counts = sets.weights if weights is None else sets.weights * weights / weights.max()
    pairs = pairs.replaced(weights=counts)
    if not counts.all():
        there = np.flatnonzero(counts)
        Z, pairs = Z[there], pairs[there]
    seed = est.random_state if isinstance(est.random_state, int) else 0
    learning = LimitLearning(pairs, Z, _builder(est), seed=seed)
    return Prepared(Z, learning, kept, seen.report)


def fit_in_turn(
    learning: LimitLearning, fresh: Callable[[], Any], solver: Any, Z: Any, job: Any
) -> tuple[Any, Any]:
    """A fitted model and its history, after labels, limits and costs were fitted in turn."""
    loss: DistanceLoss = job.loss
    noise = loss.noise or usual_noise(learning.sets)
    unit = COSTS_COUNT * noise**2

    def fit(sets: Any) -> tuple[Any, Any]:
        model = fresh()
        return model, solver.fit(model, Z, sets, job)

    def losses(fitted: Any, sets: Any) -> np.ndarray:
        evaluator = Evaluator(sets, loss, warm_start=False, threads=job.threads)
        return evaluator.each(np.asarray(fitted[0].predict_cost(Z)))

    model, history = learning.alternate(fit, losses, unit)
    if history.certificate is not None:
        history.certificate = replace(history.certificate, limits=learning.certificate())
    return model, history


def _builder(est: Any) -> Callable[[LinearProgram, np.ndarray], OptimalitySet]:
    form, scale = cost_form(est.cost_map), cost_units(est.cost_map)

    def build(problem: LinearProgram, X: np.ndarray) -> OptimalitySet:
        sets = OptimalitySet(problem, X, est.margin, form=form)
        return sets if scale is None else in_units(sets, scale)

    return build
