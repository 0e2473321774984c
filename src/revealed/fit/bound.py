"""A lower bound on the minimum of the penalized mean loss, from the gradients of its samples.

Minimize  F = sum_i w_i phi_i(W z_i + b) + ridge/2 |W|^2  over W and b. Whatever y_i are chosen with
sum_i w_i y_i = 0 (the intercept is free),

    F >= sum_i w_i (<y_i, noise_i> - phi*_i(y_i)) - 1/(2 ridge) |sum_i w_i y_i z_i^T|^2,

and for a function of the distance to a convex set, with y_i in the normal cone at the projection
p_i, the conjugate is phi*_i(y_i) = <y_i, p_i> + 1/2 |y_i|^2 (without the square for the plain
distance, with |y_i| <= delta for Huber's form, |y_i| <= 1 for the plain one). The gradients at a
model are such y_i, but for their sum. Scaled by a_i = 1 - <lambda, y_i> they stay in their cones,
and lambda is chosen such that the sum is 0. Letters: B samples, n cost entries, K draws.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .evaluation import CACHED, Evaluator
from .models import ConvexModel, Slope

NEAR = 0.5
"""Largest |1 - a_i| that is tried: farther from the minimum the bound says nothing."""


def lower_bound(
    model: ConvexModel, features: Any, evaluator: Evaluator, value: float, slope: Slope
) -> float:
    """A number that the minimum is not below; 0 where nothing better can be proved.

    `value` and `slope` are those at the model. Without intercepts, or where their gradient is 0,
    the bound is value - slope.weights / (2 ridge), as for any strongly convex function. Else it
    takes at least one more pass over the data.
    """
    if not (model.ridge > 0 and evaluator.loss.is_convex):
        return 0.0
    if not slope.level.any():
        return max(0.0, value - slope.weights / (2.0 * model.ridge))
    parts = _Parts(model, features, evaluator)
    push = _push(model, parts)
    factor = _factor(model, parts, push, evaluator)
    return 0.0 if factor is None else max(0.0, _dual_value(model, parts, push, factor, evaluator))


class _Parts:
    """The parts of the dual, from one pass over the data where memory allows, else from one each
    time."""

    def __init__(self, model: ConvexModel, features: Any, evaluator: Evaluator) -> None:
        self._make = lambda: evaluator.dual_parts(model, features)
        sets = evaluator.sets
        small = len(sets) * sets.n_parameters * evaluator.loss.count <= CACHED
        self._kept = list(self._make()) if small else None

    def __iter__(self) -> Any:
        return iter(self._make() if self._kept is None else self._kept)


def _push(model: ConvexModel, parts: _Parts) -> np.ndarray:
    """lambda, in the space of the sum that must be 0."""
    gram, sums = 0.0, 0.0
    for _, weights, y, _ in parts:
        lifts = model.dual_lifts(y)
        sums = sums + np.einsum("b,kbr->r", weights, lifts)
        flat = lifts.reshape(-1, lifts.shape[2])
        gram = gram + flat.T @ (np.tile(weights, len(y))[:, None] * flat)
    return np.linalg.lstsq(gram, sums, rcond=1e-12)[0]


def _factor(
    model: ConvexModel, parts: _Parts, push: np.ndarray, evaluator: Evaluator
) -> float | None:
    """What all y are multiplied by to be short enough; None where the scaling goes too far."""
    longest, farthest = 0.0, 0.0
    for _, _, y, _ in parts:
        a = 1.0 - model.dual_lifts(y) @ push
        farthest = max(farthest, float(np.abs(a - 1.0).max()))
        longest = max(longest, float((np.abs(a) * np.linalg.norm(y, axis=2)).max()))
    if not farthest <= NEAR:
        return None
    return min(1.0, evaluator.loss.longest_gradient / longest) if longest > 0 else 1.0


def _dual_value(
    model: ConvexModel, parts: _Parts, push: np.ndarray, factor: float, evaluator: Evaluator
) -> float:
    total, value, pull = 0.0, 0.0, 0.0
    square = evaluator.loss.conjugate_square
    for features, weights, y, along in parts:
        a = factor * (1.0 - model.dual_lifts(y) @ push)
        total += float(weights.sum())
        scaled = a[:, :, None] * y
        each = a * along - square * (scaled**2).sum(axis=2)
        value += float(weights @ each.mean(axis=0))
        pull = pull + model.dual_pull(features, weights[:, None] * scaled.mean(axis=0))
    return value / total - model.dual_penalty(pull / total) / (2.0 * model.ridge)
