"""The curvature of the mean loss, from a sample of projections: a metric for L-BFGS.

Where the projection P_i is differentiable, 1/2 dist^2 has the Hessian T_i = 1 - P'_i, the
orthogonal projector onto the directions that the active set leaves to the residual:

    T = {y : y_j = 0 where the reduced cost may move,  a_i y = 0 where the multiplier may}

Its mean over some hundred samples, in whitened features, is close to that of all: after a first few
steps L-BFGS with this metric needs a third to a fifth of the evaluations (docs/minimum.md). The
true gradient decides where a fit ends, so nothing here can make an answer wrong, only slower.
Letters: b samples, n cost entries, m rows, N coordinates of the model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ..optimality import EntryState, OptimalitySet
from ..projection.distance import ROUNDED
from .evaluation import Evaluator
from .models import ConvexModel

LARGEST = 3000
"""Coordinates of a model whose curvature is factored."""
MOST_SAMPLES, LEAST_SAMPLES = 1000, 100
WORK = 2e9
"""Multiply-adds spent on the projectors of a sample, about."""
BLOCK = 5e6
"""Numbers of projectors held at a time."""
DAMPING = 1e-3
"""Added to the curvature, which is at most 1 in whitened features: at most this, and less as the
gradient falls. With 1e-5 from the start, fits that end at a loss of 0 took ten times as long."""
MOVES = 1e-9
"""Residuals above this share of the largest are not 0."""


def sampled_metric(
    model: ConvexModel, features: Any, evaluator: Evaluator, *, steepness: float, turn: int
) -> Callable[[np.ndarray], np.ndarray] | None:
    """gradient -> the inverse curvature times it; None where there is no cheap way to know it.

    `steepness` is the length of the gradient over the root of twice the loss; `turn` chooses the
    samples.
    """
    sets, size = evaluator.sets, len(model.point)
    if not isinstance(sets, OptimalitySet) or not sets.is_plain or size > LARGEST:
        return None
    if sets.problem.eq_rows.per_instance or sets.problem.ub_rows.per_instance:
        return None
    both = (sets.problem.eq_rows, sets.problem.ub_rows)
    A = np.vstack([rows.matrix(0).toarray() for rows in both])
    most = max(MOST_SAMPLES, 4 * size)
    most = int(min(most, max(LEAST_SAMPLES, WORK / (len(A) + 1) / A.shape[1] ** 2)))
    chosen, draws = _some_samples(len(sets), evaluator.loss.count, most, turn)
    total = np.zeros((size, size))
    step = max(1, int(BLOCK / A.shape[1] ** 2))
    for start in range(0, len(chosen), step):
        index, draw = chosen[start : start + step], draws[start : start + step]
        part = features[index]
        T, weights = _projectors(A, *evaluator.sample(model, part, index, draw), evaluator)
        total += model.curvature(part, weights[:, None, None] * T)
    total /= float(sets.weights[chosen].sum())
    total += model.penalty_curvature()
    total[np.diag_indices(size)] += min(DAMPING, max(steepness, 1e-9))
    try:
        factor = cho_factor(total, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return None
    return lambda gradient: cho_solve(factor, gradient, check_finite=False)


def _some_samples(size: int, count: int, most: int, turn: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of samples, and of the draw taken of each; a sample may come with several draws."""
    if size * count <= most:
        pairs = np.arange(size * count)
    else:
        pairs = np.sort(np.random.default_rng(turn).choice(size * count, most, replace=False))
    return pairs // count, pairs % count


def _projectors(
    A: np.ndarray, Q: np.ndarray, own: OptimalitySet, near: Any, evaluator: Evaluator
) -> tuple[np.ndarray, np.ndarray]:
    """(b, n, n) Hessians of the loss of each sample in its cost, and weights (b,)."""
    residual, loss = Q - near.point, evaluator.loss
    longest = np.abs(residual).max(axis=1, keepdims=True, initial=0.0)
    moves = (own.entry_state == EntryState.FREE) | (np.abs(residual) > MOVES * (longest + 1e-300))
    m_eq = own.problem.eq_rows.shape[0]
    held = np.ones((len(Q), len(A)), bool)
    extra = near.multipliers[:, m_eq:] - own.margins[:, None]
    held[:, m_eq:] = own.row_active & (extra > MOVES * (1.0 + np.abs(near.multipliers[:, m_eq:])))
    rows = A * moves[:, None, :] * held[:, :, None]
    gram = rows @ rows.transpose(0, 2, 1)
    diagonal = np.arange(len(A))
    gram[:, diagonal, diagonal] += 1e-10 * (1.0 + np.trace(gram, axis1=1, axis2=2)[:, None])
    T = -(rows.transpose(0, 2, 1) @ np.linalg.solve(gram, rows))
    entries = np.arange(A.shape[1])
    T[:, entries, entries] += moves
    if loss.power in ("huber", ROUNDED):
        T = _bent(T, residual, near.distance, loss.delta)
    return (T / loss.delta if loss.power == ROUNDED else T), own.weights


def _bent(T: np.ndarray, residual: np.ndarray, distance: np.ndarray, delta: float) -> np.ndarray:
    """Where the loss is straight its curvature is across the residual only."""
    far = distance > delta
    slack = np.where(far, delta / np.maximum(distance, 1e-300), 1.0)
    along = residual / np.maximum(distance, 1e-300)[:, None] * far[:, None]
    return slack[:, None, None] * (T - along[:, :, None] * along[:, None, :])
