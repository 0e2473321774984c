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
left of the sum is taken out by a second scaling.

Where there are too many y to keep, they are made anew in every pass, G is that of a sample, and
only sums leave a pass: a factor follows from the step p and from the scalings so far. Letters: B
samples, n cost entries, K draws.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from .curvature import LARGEST, MOVES, groups, places
from .models import ConvexModel, Curved, Slope
from .objective import DualTotals, Objective

if TYPE_CHECKING:
    from .evaluation import DistanceLoss

NEAR = 0.5
"""Largest |1 - a_i| that is tried."""
ROUNDS, BALANCED, ROUNDING = 8, 1e-12, 1e-15
"""Scalings tried until the sum of all y is 0; the share of their sizes that counts as 0; and that
of their squares."""
PROJECTED = 1e-12
"""The same where y are projected anew in each pass, as exactly as projections are, squared."""
FEWEST = 500
"""Samples at least that stand for all in G, where not all can be kept."""
UNSEEN = 1e-3
"""Added to a G of some samples, for directions that others see: curvatures are at most 1."""
SHORT, LEAST = 0.9, 0.2
"""Shares of the largest and of the mean length between which a y may change its length."""


def lower_bound(
    model: ConvexModel,
    features: Any,
    objective: Objective,
    value: float,
    gradient: np.ndarray,
    slope: Slope,
) -> tuple[float, float]:
    """A number that the minimum is not below, and one for the loss without its kinks rounded; 0
    where nothing better can be proved.

    `value`, `gradient` and `slope` are those at the model. Takes one more pass over the data, or a
    few where there are too many samples to keep their gradients. The gradients of a rounded
    distance are no longer than 1, so they prove a bound for the plain one.
    """
    loss = objective.loss
    if not (model.ridge > 0 and loss.is_convex):
        return 0.0, 0.0
    simple = 0.0 if slope.level.any() else value - slope.weights / (2.0 * model.ridge)
    if not objective.keeps_duals:
        proved = _proved_by_sums(model, features, objective, gradient)
        return tuple(max(0.0, simple, one) for one in proved)  # pyright: ignore
    _, evaluator = objective.in_memory(features)
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


# --- with sums alone ------------------------------------------------------------------------------


def totals_of(
    model: ConvexModel,
    moved: ConvexModel,
    parts: Iterator[Any],
    pushes: list[np.ndarray],
    loss: DistanceLoss,
) -> DualTotals:
    """The sums over the gradients in `parts`, scaled as the step from `model` to `moved` says and
    then by each of `pushes` (r,)."""
    total: DualTotals | None = None
    for features, weights, y, along in parts:
        turn = moved.cost(features) - model.cost(features)
        change = (y * turn).sum(axis=2) / _free_lengths(y, loss) ** 2
        part = _lengthened((features, weights, y, along), np.clip(change, -NEAR, NEAR), loss)
        for push in pushes:
            change = np.where(_is_free(part[2], loss), model.dual_lifts(part[2]) @ push, 0.0)
            part = _lengthened(part, np.clip(change, -1.0, 1.0), loss)
        one = _sums_of(model, part, loss)
        total = one if total is None else total.plus(one)
    assert total is not None, "a data set has samples"
    return total


def _lengthened(part: Any, change: np.ndarray, loss: DistanceLoss) -> Any:
    """The part with its y times 1 - `change` (K, b), but none longer than it may be."""
    length = np.maximum(np.linalg.norm(part[2], axis=2), 1e-300)
    most = np.maximum(loss.longest_gradient / length, 1.0)
    return _scaled([part], [np.minimum(1.0 - change, most)])[0]


def _is_free(y: np.ndarray, loss: DistanceLoss) -> np.ndarray:
    """(K, b) whether y (K, b, n) has room to become longer."""
    return np.linalg.norm(y, axis=2) < SHORT * loss.longest_gradient


def _sums_of(model: ConvexModel, part: Any, loss: DistanceLoss) -> DualTotals:
    features, weights, y, along = part
    lift = model.dual_lifts(y)
    flat, counted = lift.reshape(-1, lift.shape[2]), np.tile(weights, len(lift))[:, None]
    free = flat * _is_free(y, loss).reshape(-1, 1)  # the others will not change
    square = (y**2).sum(axis=2)
    return DualTotals(
        gram=free.T @ (counted * free),
        sums=(counted * flat).sum(axis=0),
        weight=float(weights.sum()) * len(lift),
        along=float(weights @ along.mean(axis=0)),
        square=float(weights @ square.mean(axis=0)),
        longest=float(np.sqrt(square.max(initial=0.0))),
        pull=model.dual_pull(features, weights[:, None] * y.mean(axis=0)),
    )


def _proved_by_sums(
    model: ConvexModel, features: Any, objective: Objective, gradient: np.ndarray
) -> tuple[float, float]:
    """Bounds for the loss and for its sharp form; 0 where none was found."""
    moved = _moved(model, features, objective, gradient)
    pushes: list[np.ndarray] = []
    for _ in range(ROUNDS):
        totals = objective.dual_totals(model, moved, features, pushes)
        draws = objective.loss.count
        size = totals.square * draws
        push = _push(totals.gram, totals.sums, totals.weight, size, PROJECTED)
        if push is None:
            lost = 2.0 * float(np.abs(totals.sums) / totals.weight @ np.abs(model.levels()))
            loss = objective.loss
            rounded, plain = (_value_of(model, totals, one) - lost for one in (loss, loss.sharp))
            return rounded, plain
        pushes.append(push)
    return 0.0, 0.0


def _moved(
    model: ConvexModel, features: Any, objective: Objective, gradient: np.ndarray
) -> ConvexModel:
    """The model after the step p, with G from a sample; the model itself where there is no step."""
    moved = copy.deepcopy(model)
    if len(gradient) > LARGEST:
        return moved
    held, evaluator = objective.in_memory(features)
    size = min(len(evaluator), max(FEWEST, 4 * len(gradient)))
    some = np.unique(np.linspace(0, len(evaluator) - 1, size).astype(int))
    parts = list(evaluator.on(some).dual_parts(model, held[some]))
    step = _step(model, parts, gradient, objective.loss, damping=UNSEEN)
    if step is not None:
        moved.move_to(model.point + step)
    return moved


def _value_of(model: ConvexModel, totals: DualTotals, loss: DistanceLoss) -> float:
    longest, samples = totals.longest, totals.weight / loss.count
    factor = min(1.0, loss.longest_gradient / longest) if longest > 0 else 1.0
    value = factor * totals.along - loss.conjugate_square * factor**2 * totals.square
    pull = factor * totals.pull / samples
    return value / samples - model.dual_penalty(pull) / (2.0 * model.ridge)


# --- with all gradients in memory -----------------------------------------------------------------


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
    none."""
    step = _step(model, parts, gradient, loss)
    if step is None:
        return None
    here = model.point
    result = []
    for features, _, y, _ in parts:
        before = model.cost(features)
        model.move_to(here + step)
        turn = model.cost(features) - before
        model.move_to(here)
        change = (y * turn).sum(axis=2) / _free_lengths(y, loss) ** 2
        result.append(1.0 - np.clip(change, -NEAR, NEAR))
    return result


def _step(
    model: ConvexModel,
    parts: list[Any],
    gradient: np.ndarray,
    loss: DistanceLoss,
    damping: float = 1e-12,
) -> np.ndarray | None:
    """p, with G that of the y in `parts`; None where it has no factor."""
    lengths = [_free_lengths(y, loss) for _, _, y, _ in parts]
    total = sum(float(weights.sum()) * len(y) for _, weights, y, _ in parts)
    gram = model.curvature(_across(parts, lengths)) / total + model.penalty_curvature()
    gram[np.diag_indices(len(gram))] += damping
    try:
        return cho_solve(cho_factor(gram, check_finite=False), gradient, check_finite=False)
    except LinAlgError:
        return None


def _free_lengths(y: np.ndarray, loss: DistanceLoss) -> np.ndarray:
    """(K, b) the lengths of y (K, b, n), inf for those that keep it: they are as long as they may
    be, or so short that they would have to change by much of themselves."""
    length = np.linalg.norm(y, axis=2)
    least = LEAST * float(length.mean())
    free = (length > least) & (length < SHORT * loss.longest_gradient)
    return np.where(free, length, np.inf)


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
        push = _push(gram, sums, total, size, ROUNDING)
        if push is None:
            return parts, np.abs(sums) / total
        # An entry in which a single y differs from 0 asks for that y to be 0.
        parts = _scaled(parts, [np.clip(1.0 - lift @ push, 0.0, 2.0) for lift in lifts])
    return None


def _push(gram: Any, sums: Any, total: float, size: float, rounding: float) -> np.ndarray | None:
    """(r,) the scaling that makes the sum of lifts 0 if no factor hits its limits; None where it is
    0 already, but for directions in which lifts are no more than `rounding`."""
    # Lifts that are nothing but rounding (paths that all have one length, say) cannot push.
    values, vectors = np.linalg.eigh(gram)
    real = values > rounding * size
    along = vectors[:, real].T @ sums
    if np.linalg.norm(along) <= BALANCED * np.sqrt(total * size):
        return None
    return vectors[:, real] @ (along / values[real])


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
