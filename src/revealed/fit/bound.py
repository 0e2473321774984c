"""A lower bound on the minimum of the penalized mean loss, from the gradients of its samples.

Minimize  F = sum_i w_i phi_i(W z_i + b) + ridge/2 |W|^2  over W and b. Whatever y_i are chosen with
sum_i w_i y_i = 0 (the intercept is free),

    F >= sum_i w_i (<y_i, noise_i> - phi*_i(y_i)) - 1/(2 ridge) |sum_i w_i y_i z_i^T|^2,

and for a function of the distance to a convex set, with y_i in the normal cone at the projection
p_i, the conjugate is phi*_i(y_i) = <y_i, p_i> + 1/2 |y_i|^2 (without the square for the plain
distance, with |y_i| <= delta for Huber's form, |y_i| <= 1 for the plain one). The gradients at a
model are such y_i, but their sum need not be 0. Scaled by factors a_i > 0 they stay in their cones.
With x the model, g the gradient of F there, R the curvature of the penalty and
G = sum_i w_i v_i v_i^T, v_i the gradient of <y_i, W z_i + b> / |y_i| in the model, the best factors
near 1 are

    a_i = 1 - <y_i, (cost at x + p) - (cost at x)> / |y_i|^2,    p = (R + G)^-1 g,

and leave a gap of about 1/2 g^T (R + G)^-1 g, where a_i = 1 leave |g|^2 / (2 ridge). What is then
left of the sum is taken out by a second scaling. Letters: B samples, n cost entries, K draws.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from .curvature import LARGEST, MOVES, groups, places
from .evaluation import CACHED, DistanceLoss, Evaluator
from .models import ConvexModel, Curved, Slope

NEAR = 0.5
"""Largest |1 - a_i| that is tried."""
ROUNDS, BALANCED, ROUNDING = 8, 1e-12, 1e-15
"""Scalings tried until the sum of all y is 0; the share of their sizes that counts as 0; and that
of their squares."""
SHORT, LEAST = 0.9, 0.2
"""Shares of the largest and of the mean length between which a y may change its length."""


def lower_bound(
    model: ConvexModel,
    features: Any,
    evaluator: Evaluator,
    value: float,
    gradient: np.ndarray,
    slope: Slope,
) -> tuple[float, float]:
    """A number that the minimum is not below, and one for the loss without its kinks rounded; 0
    where nothing better can be proved.

    `value`, `gradient` and `slope` are those at the model. Takes one more pass over the data. The
    gradients of a rounded distance are no longer than 1, so they prove a bound for the plain one.
    """
    if not (model.ridge > 0 and evaluator.loss.is_convex):
        return 0.0, 0.0
    simple = 0.0 if slope.level.any() else value - slope.weights / (2.0 * model.ridge)
    sets, loss = evaluator.sets, evaluator.loss
    if len(sets) * sets.n_parameters * loss.count > CACHED:
        return max(0.0, simple), max(0.0, simple)
    parts = list(evaluator.dual_parts(model, features))
    if len(gradient) <= LARGEST:
        parts = _scaled(parts, _factors(model, parts, gradient, loss))
    balanced = _balanced(model, parts)
    if balanced is None:
        return max(0.0, simple), max(0.0, simple)
    parts, left = balanced
    # Rounding leaves a little of the sum; intercepts as large as these make it count at most so.
    lost = 2.0 * float(left @ np.abs(model.levels()))
    rounded, plain = (_dual_value(model, parts, one) - lost for one in (loss, loss.sharp))
    return max(0.0, simple, rounded), max(0.0, simple, plain)


def _scaled(parts: list[Any], factors: list[np.ndarray] | None) -> list[Any]:
    """The parts with their y multiplied by factors (K, b), chunk by chunk."""
    if factors is None:
        return parts
    return [
        (features, weights, a[:, :, None] * y, a * along)
        for (features, weights, y, along), a in zip(parts, factors, strict=True)
    ]


def _factors(
    model: ConvexModel, parts: list[Any], gradient: np.ndarray, loss: DistanceLoss
) -> list[np.ndarray] | None:
    """(K, b) for each chunk: the factors near 1 that leave the smallest gap; None where there are
    none. Those y that are as long as they may be keep their length."""
    total, lengths = 0.0, []
    for _, weights, y, _ in parts:
        length = np.linalg.norm(y, axis=2)
        least = LEAST * float(length.mean())  # a short y would have to change by much of itself
        free = (length > least) & (length < SHORT * loss.longest_gradient)
        lengths.append(np.where(free, length, np.inf))
        total += float(weights.sum()) * len(y)
    gram = model.curvature(_across(parts, lengths)) / total + model.penalty_curvature()
    gram[np.diag_indices(len(gram))] += 1e-12
    try:
        step = cho_solve(cho_factor(gram, check_finite=False), gradient, check_finite=False)
    except LinAlgError:
        return None
    here = model.point
    result = []
    for (features, _, y, _), length in zip(parts, lengths, strict=True):
        before = model.cost(features)
        model.move_to(here + step)
        turn = model.cost(features) - before
        model.move_to(here)
        change = (y * turn).sum(axis=2) / length**2
        result.append(1.0 - np.clip(change, -NEAR, NEAR))
    return result


def _across(parts: list[Any], lengths: list[np.ndarray]) -> Iterator[Curved]:
    """v v^T of every y that may change its length, as Hessians of the samples."""
    for (features, weights, y, _), length in zip(parts, lengths, strict=True):
        u = (y / length[:, :, None]).transpose(1, 2, 0)  # (b, n, K)
        for some, entries, here in _in_few_entries(u):
            yield (
                features[some],
                entries,
                (weights[some][:, None, None] * here) @ here.transpose(0, 2, 1),
            )


def _in_few_entries(u: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Group by group: numbers (b,) of samples, entries (b, k) in which their u (b, n, K) is not
    nothing, and u there (b, k, K): in a large network most of its entries are 0."""
    size = np.abs(u).max(axis=2)
    moves = size > MOVES * size.max(axis=1, keepdims=True, initial=0.0)
    for some in groups(moves.sum(axis=1)):
        entries, there = places(moves[some])
        here = np.take_along_axis(u[some], entries[:, :, None], axis=1) * there[:, :, None]
        yield some, entries, here


def _balanced(model: ConvexModel, parts: list[Any]) -> tuple[list[Any], np.ndarray] | None:
    """The parts with y scaled such that intercepts are free, and what is left of their sum by
    rounding; None where no factors of at least 0 were found that make it 0."""
    for _ in range(ROUNDS):
        lifts = [model.dual_lifts(y) for _, _, y, _ in parts]
        gram, sums, total, size = 0.0, 0.0, 0.0, 0.0
        for (_, weights, y, _), lift in zip(parts, lifts, strict=True):
            flat = lift.reshape(-1, lift.shape[2])
            counted = np.tile(weights, len(lift))[:, None] * flat
            gram, sums = gram + flat.T @ counted, sums + counted.sum(axis=0)
            total += float(weights.sum()) * len(lift)
            size += float((weights * (y**2).sum(axis=2)).sum())
        # Lifts that are nothing but rounding (paths that all have one length, say) cannot push.
        values, vectors = np.linalg.eigh(gram)
        real = values > ROUNDING * size
        along = vectors[:, real].T @ sums
        if np.linalg.norm(along) <= BALANCED * np.sqrt(total * size):
            return parts, np.abs(sums) / total
        push = vectors[:, real] @ (along / values[real])
        # An entry in which a single y differs from 0 asks for that y to be 0.
        parts = _scaled(parts, [np.clip(1.0 - lift @ push, 0.0, 2.0) for lift in lifts])
    return None


def _dual_value(model: ConvexModel, parts: list[Any], loss: DistanceLoss) -> float:
    longest = max(float(np.linalg.norm(y, axis=2).max(initial=0.0)) for _, _, y, _ in parts)
    factor = min(1.0, loss.longest_gradient / longest) if longest > 0 else 1.0
    total, value, pull = 0.0, 0.0, np.zeros(1)
    for features, weights, y, along in parts:
        total += float(weights.sum())
        each = factor * along - loss.conjugate_square * factor**2 * (y**2).sum(axis=2)
        value += float(weights @ each.mean(axis=0))
        pull = pull + model.dual_pull(features, weights[:, None] * factor * y.mean(axis=0))
    return value / total - model.dual_penalty(pull / total) / (2.0 * model.ridge)
