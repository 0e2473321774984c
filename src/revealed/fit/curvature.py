"""The curvature of the mean loss, from a sample of projections: a metric for L-BFGS.

Where the projection P_i is differentiable, 1/2 dist^2 has the Hessian T_i = 1 - P'_i, the
orthogonal projector onto the directions that the active set leaves to the residual:

    T = {y : y_j = 0 where the reduced cost may move,  a_i y = 0 where the multiplier may}

In a large problem few entries of y are not 0 (those near a route, in a city), so T is kept
as a small matrix with the numbers of these entries. Its mean over some hundred samples, in whitened
features, is close to that of all: after a first few steps L-BFGS with this metric needs a third to
a fifth of the evaluations. The true gradient decides where a fit ends, so nothing here can make an
answer wrong, only slower. Letters: b samples, n cost entries, m rows, k entries that are not 0, N
coordinates of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ..optimality.sets import EntryState, OptimalitySet
from ..projection.distance import FORMS
from .models import ConvexModel, Curved
from .objective import Objective

if TYPE_CHECKING:
    from .evaluation import DistanceLoss, Evaluator

LARGEST = 3000
"""Coordinates of a model whose curvature is factored."""
MOST_SAMPLES, BATCH, FEW = 1000, 200, 20
WORK = 2e9
"""Multiply-adds spent on the projectors of all samples, about; a first batch in any case."""
BLOCK = 5e6
"""Numbers of projectors held at a time."""
DAMPING = 1e-3
"""Added to the curvature, which is at most 1 in whitened features: at most this, and less as the
gradient falls. With 1e-5 from the start, fits that end at a loss of 0 took ten times as long."""
CURVED = 10
"""Entries in which a sample is curved, about, besides three for each of its free ones."""
MOVES = 1e-9
"""Residuals above this share of the largest are not 0."""


def has_metric(model: ConvexModel, objective: Objective) -> bool:
    """Whether the curvature can be sampled: for sets of plain costs and models not too large."""
    sets = objective.in_memory(None)[1].sets
    return (
        isinstance(sets, OptimalitySet)
        and sets.is_plain
        and len(model.point) <= LARGEST
        and not sets.rows.eq_rows.per_instance
        and not sets.rows.ub_rows.per_instance
    )


def price_of_metric(model: ConvexModel, features: Any, objective: Objective) -> float:
    """About how many evaluations of the loss a metric takes the time of, at this point.

    From a few active sets and sizes, not from a clock, so that a fit takes the same steps on every
    machine: 50 ns per row and column for a projection, 2 and 20 billion multiply-adds a second for
    small and large products, as seen on two cores.
    """
    features, evaluator = objective.in_memory(features)
    sets: Any = evaluator.sets
    rows = _rows_of(sets)
    N, m, n = len(model.point), sets.row_active.shape[1], sets.problem.n_variables
    m += sets.rows.eq_rows.shape[0]
    chosen, draws = _some_samples(len(sets), evaluator.loss.count, FEW, 0)
    Q, own, near = evaluator.sample(model, features[chosen], chosen, draws)
    moves, held = _active(rows, Q, own, near)
    k, r = moves.sum(axis=1).mean(), held.sum(axis=1).mean()
    each = r * k * (r + k)
    count = min(_most_samples(N, each), len(sets) * evaluator.loss.count)
    small = count * each + count * k * k * N * N / max(n, 1) ** 2
    evaluation = len(objective) * evaluator.loss.count * 5e-8 * (m + n)
    return float((small / 2e9 + N**3 / 6e10) / evaluation)


def sampled_metric(
    model: ConvexModel, features: Any, objective: Objective, *, steepness: float, turn: int
) -> Callable[[np.ndarray], np.ndarray] | None:
    """gradient -> the inverse curvature times it; None where the sample has no factor.

    `steepness` is the length of the gradient over the root of twice the loss; `turn` chooses the
    samples.
    """
    features, evaluator = objective.in_memory(features)
    counted: list[float] = []
    total = model.curvature(_sampled(model, features, evaluator, turn, counted)) / sum(counted)
    size = len(total)
    total += model.penalty_curvature()
    total[np.diag_indices(size)] += min(DAMPING, max(steepness, 1e-9))
    try:
        factor = cho_factor(total, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return None
    return lambda gradient: cho_solve(factor, gradient, check_finite=False)


def _sampled(
    model: ConvexModel, features: Any, evaluator: Evaluator, turn: int, counted: list[float]
) -> Iterator[Curved]:
    """Hessians of some samples; what these count goes to `counted`."""
    sets: Any = evaluator.sets
    A, work = _rows_of(sets), 0.0
    most = max(MOST_SAMPLES, 4 * len(model.point))
    chosen, draws = _some_samples(len(sets), evaluator.loss.count, most, turn)
    for start in range(0, len(chosen), BATCH):
        index, draw = chosen[start : start + BATCH], draws[start : start + BATCH]
        part = features[index]
        sample = evaluator.sample(model, part, index, draw)
        for some, entries, hessians in _hessians(A, *sample, evaluator.loss):
            yield part[some], entries, hessians
            work += 2.0 * len(some) * entries.shape[1] ** 3
        counted.append(float(sets.weights[index].sum()))
        if work > WORK:
            break


def _rows_of(sets: OptimalitySet) -> sparse.csr_array:
    """(m, n) the rows of all constraints, equalities first."""
    both = (sets.rows.eq_rows, sets.rows.ub_rows)
    return sparse.csr_array(sparse.vstack([rows.matrix(0) for rows in both]))


def _most_samples(size: int, each: float) -> int:
    """Samples that `WORK` allows, where one takes `each` multiply-adds."""
    return int(min(max(MOST_SAMPLES, 4 * size), max(BATCH, WORK / max(each, 1.0))))


def _some_samples(size: int, count: int, most: int, turn: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of samples, and of the draw taken of each; a sample may come with several draws."""
    rng = np.random.default_rng(turn)
    pairs = rng.choice(size * count, min(size * count, most), replace=False)
    return pairs // count, pairs % count


def _hessians(
    A: sparse.csr_array, Q: np.ndarray, own: OptimalitySet, near: Any, loss: DistanceLoss
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Group by group: numbers (b,) of samples, the entries (b, k) in which their loss is curved,
    and its Hessians (b, k, k) in these, times the weights of the samples."""
    residual, dense = Q - near.point, A.toarray()
    moves, held = _active(A, Q, own, near)
    form = FORMS[loss.power]
    for some in groups(np.maximum(moves.sum(axis=1), held.sum(axis=1))):
        entries, there = places(moves[some])
        rows, kept = places(held[some])
        part = dense[rows[:, :, None], entries[:, None, :]] * there[:, None, :] * kept[:, :, None]
        T = _null_projectors(part, there)
        if form.is_straight_beyond_delta:
            along = np.take_along_axis(residual[some], entries, axis=1) * there
            T = _bent(T, along, near.distance[some], loss.delta)
        factor = form.curvature(own.weights[some], near.distance[some], loss.delta)
        yield some, entries, factor[:, None, None] * T


def _active(
    A: sparse.csr_array, Q: np.ndarray, own: OptimalitySet, near: Any
) -> tuple[np.ndarray, np.ndarray]:
    """(b, n) the entries that the residual may change in, (b, m) the rows it is orthogonal to."""
    residual = Q - near.point
    longest = np.abs(residual).max(axis=1, keepdims=True, initial=0.0)
    moves = (own.entry_state == EntryState.FREE) | (np.abs(residual) > MOVES * (longest + 1e-300))
    m_eq = own.rows.eq_rows.shape[0]
    held = np.asarray((moves @ abs(A).T) > 0)
    extra = near.multipliers[:, m_eq:] - own.margins[:, None]
    held[:, m_eq:] &= own.row_active & (extra > MOVES * (1.0 + np.abs(near.multipliers[:, m_eq:])))
    return moves, held


def groups(size: np.ndarray) -> Iterator[np.ndarray]:
    """Samples of about the same `size` (b,), as many together as `BLOCK` allows."""
    order = np.argsort(size, kind="stable")[::-1]
    start = 0
    while start < len(order):
        count = max(1, int(BLOCK / max(int(size[order[start]]), 1) ** 2))
        half = np.searchsorted(-size[order], -0.5 * size[order[start]], side="right")
        stop = min(start + count, max(int(half), start + 1))
        yield order[start:stop]
        start = stop


def places(flags: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(b, k) where each line of `flags` (b, n) is true, filled up, and which of these are real."""
    count = flags.sum(axis=1)
    most = max(int(count.max(initial=0)), 1)
    if most == flags.shape[1]:  # all of them, in order
        return np.broadcast_to(np.arange(most), flags.shape), flags
    places = np.argsort(~flags, axis=1, kind="stable")[:, :most]
    return places, np.arange(most) < count[:, None]


def _null_projectors(rows: np.ndarray, there: np.ndarray) -> np.ndarray:
    """(b, k, k) projectors onto what is orthogonal to rows (b, r, k), 0 where nothing is there."""
    gram = rows @ rows.transpose(0, 2, 1)
    diagonal = np.arange(rows.shape[1])
    gram[:, diagonal, diagonal] += 1e-10 * (1.0 + np.trace(gram, axis1=1, axis2=2)[:, None])
    T = -(rows.transpose(0, 2, 1) @ np.linalg.solve(gram, rows))
    entries = np.arange(rows.shape[2])
    T[:, entries, entries] += there
    return T


def _bent(T: np.ndarray, residual: np.ndarray, distance: np.ndarray, delta: float) -> np.ndarray:
    """Where the loss is straight its curvature is across the residual only."""
    far = distance > delta
    slack = np.where(far, delta / np.maximum(distance, 1e-300), 1.0)
    along = residual / np.maximum(distance, 1e-300)[:, None] * far[:, None]
    return slack[:, None, None] * (T - along[:, :, None] * along[:, None, :])
