"""Nearest parameters from nearest costs: a metric that is nearly plain becomes rows and columns.

With g = S w + c0 and S S^T = alpha (I + U U^T), the nearest parameters with g in C(x*) are those of
the g nearest to g0 = S q + c0 in the metric (I + U U^T)^-1. Since

    r^T (I + U U^T)^-1 r = min over omega of |r + U omega|^2 + |omega|^2,

that is a plain projection of (g0, 0) onto the costs of a problem with an equality row (u, -1) and
a free column more for each direction u, which the kernel does. If it moves (g0, 0) by (y, tau),
the answer is w = q + S^T y / alpha. A soft set adds I / soft to S S^T.

Letters: B instances, n entries, k directions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._common.affine import Metric
from .._common.arrays import Choice
from .._common.rows import Rows, frozen
from ..optimality.active_set import EntryState
from ..optimality.kinds import Parameters
from ..optimality.sets import OptimalitySet
from ..problems.linear import LinearProgram
from .cpu.analysis import analyze

MOST_DIRECTIONS = 16
"""Directions are dense rows; beyond this many a conic solver is asked instead."""


@dataclass(frozen=True, eq=False)
class Lifting:
    """Sets of plain costs from which the kernel finds the nearest parameters."""

    metric: Metric
    """How far parameters must move for the gradient to move."""
    sets: OptimalitySet

    def take(self, index: Choice) -> Lifting:
        """That of the chosen decisions."""
        return Lifting(self.metric.take(index), self.sets[index])


def lift(sets: OptimalitySet) -> Lifting | None:
    """The lifting of sets of parameters; None where their metric is not simple enough."""
    metric = metric_of(sets)
    return None if metric is None else Lifting(metric, lifted(sets, metric))


def lifting_of(sets: OptimalitySet) -> Lifting | None:
    """What `lift` made when the sets, or those that they are a part of, were built."""
    return sets.kind.prepared if isinstance(sets.kind, Parameters) else None


def plain_sets(
    sets: OptimalitySet,
    problem: LinearProgram,
    decisions: np.ndarray,
    states: np.ndarray,
    margins: np.ndarray | None = None,
) -> OptimalitySet:
    """`sets` restated as sets of plain costs of `problem`, ready to be sliced."""
    result = sets.as_plain(problem, decisions, states, margins)
    if problem.eq_rows.per_instance or problem.ub_rows.per_instance:
        analyze(result)  # now, so that slices of these sets take their part of it along
    return result


def metric_of(sets: OptimalitySet) -> Metric | None:
    """S S^T (+ I / soft) as alpha (I + U U^T), or None where that takes too many directions."""
    plain = Metric(np.ones(1)) if sets.gradient is None else sets.gradient.metric
    if sets.soft is None:
        return plain
    slack = 1.0 / sets.soft
    if plain is not None:
        alpha = plain.alpha + slack
        share = np.sqrt(plain.alpha / alpha)[:, None, None]
        own = None if plain.directions is None else share * plain.directions
        return Metric(alpha, own)
    assert sets.gradient is not None
    rows = sets.gradient.rows
    if rows.shape[1] > MOST_DIRECTIONS:
        return None
    dense = np.stack([rows.matrix(b).toarray() for b in range(len(rows.data))])
    return Metric(np.full(1, slack), np.sqrt(sets.soft) * dense)


def lifted(sets: OptimalitySet, metric: Metric) -> OptimalitySet:
    """Plain sets with a row and a column more for each direction."""
    rows, X = sets.rows, sets.decisions
    states, decisions = sets.entry_state, X
    if metric.directions is not None:
        U = metric.directions
        rows = _with_directions(rows, U)
        along = np.einsum("bnk,bn->bk", np.broadcast_to(U, (len(X), *U.shape[1:])), X)
        decisions = np.hstack([X, along])
        free = np.full(along.shape, EntryState.FREE, np.int8)
        states = np.hstack([states, free])
    return plain_sets(sets, rows, decisions, states)


def _with_directions(problem: LinearProgram, U: np.ndarray) -> LinearProgram:
    """The problem with rows U^T x - tau = 0 and as many columns tau without bounds."""
    n, k = problem.n_variables, U.shape[2]
    return LinearProgram(
        A_eq=_extended(problem.eq_rows, U),
        b_eq=_padded(problem.b_eq, k, 0.0),
        A_ub=Rows(
            (problem.ub_rows.shape[0], n + k),
            problem.ub_rows.indptr,
            problem.ub_rows.indices,
            problem.ub_rows.data,
            problem.ub_rows.per_instance,
        ),
        b_ub=problem.b_ub,
        lb=_padded(problem.lb, k, -np.inf),
        ub=_padded(problem.ub, k, np.inf),
    )


def _extended(rows: Rows, U: np.ndarray) -> Rows:
    m, n = rows.shape
    k = U.shape[2]
    used = [np.flatnonzero(U[:, :, i].any(axis=0)) for i in range(k)]
    lines = max(len(rows.data), len(U))
    parts, indices, counts = [np.broadcast_to(rows.data, (lines, rows.data.shape[1]))], [], []
    for i, entries in enumerate(used):
        parts.append(np.broadcast_to(U[:, entries, i], (lines, len(entries))))
        parts.append(np.full((lines, 1), -1.0))
        indices += [entries, [n + i]]
        counts.append(len(entries) + 1)
    indptr = np.concatenate([rows.indptr, rows.indptr[-1] + np.cumsum(counts)])
    return Rows(
        (m + k, n + k),
        frozen(indptr.astype(np.int64)),
        frozen(np.concatenate([rows.indices, *indices]).astype(np.int64)),
        frozen(np.hstack(parts)),
        rows.per_instance or len(U) > 1,
    )


def _padded(array: np.ndarray, k: int, value: float) -> np.ndarray:
    width = [(0, 0)] * (array.ndim - 1) + [(0, k)]
    return np.pad(array, width, constant_values=value)
