"""Affine maps, one for each instance: from what is predicted to what a set is about.

    g = S w + c0        S (n, p), shared or one for each instance; c0 (n,) likewise

Letters: B instances, n entries of g, p parameters w, k directions of a metric.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import sparse

from .arrays import Choice
from .rows import Rows, frozen


@dataclass(frozen=True, eq=False)
class Metric:
    """S S^T = alpha (I + U U^T): how far w must move for g to move.

    Where this holds with few directions U, the nearest parameters come from a nearest point in
    the space of g, with one more row and column for each direction.
    """

    alpha: np.ndarray
    """(1 or B,), above 0."""
    directions: np.ndarray | None = None
    """(1 or B, n, k), None for a plain multiple of the identity."""

    def take(self, index: Choice) -> Metric:
        alpha = self.alpha if len(self.alpha) == 1 else self.alpha[index]
        own = self.directions
        if own is not None and len(own) > 1:
            own = own[index]
        return Metric(alpha, own)


@dataclass(frozen=True, eq=False)
class AffineMap:
    """g = S w + c0 for a batch."""

    rows: Rows
    """S, (n, p)."""
    offset: np.ndarray
    """c0, (n,) or (B, n)."""
    known_metric: Metric | None = None
    """S S^T where the caller knows it; None leaves it to `metric`."""

    @property
    def n_parameters(self) -> int:
        return self.rows.shape[1]

    @property
    def n_instances(self) -> int | None:
        """B where anything differs by instance, else None."""
        return len(self.offset) if self.offset.ndim == 2 else self.rows.n_instances

    def __call__(self, w: np.ndarray) -> np.ndarray:
        """(B, n) from (B, p)."""
        return self.rows.times(w) + self.offset

    def adjoint(self, y: np.ndarray) -> np.ndarray:
        """S^T y: (B, p) from (B, n)."""
        owner = np.repeat(np.arange(self.rows.shape[0]), np.diff(self.rows.indptr))
        return np.asarray((self.rows.data * y[:, owner]) @ self._by_column)

    def take(self, index: Choice) -> AffineMap:
        """The maps of the chosen instances."""
        return replace(
            self,
            rows=self.rows.take(index),
            offset=self.offset[index] if self.offset.ndim == 2 else self.offset,
            known_metric=None if self.known_metric is None else self.known_metric.take(index),
        )

    def after(self, inner: AffineMap) -> AffineMap:
        """self(inner(w)) as one map."""
        count = self.n_instances if inner.n_instances is None else inner.n_instances
        if count is None:
            offset = self(inner.offset[None])[0]
        else:
            offset = self(np.broadcast_to(inner.offset, (count, self.n_parameters)))
        outer, known = self.rows, self._metric_after(inner)
        if count is None or not (outer.per_instance or inner.rows.per_instance):
            return AffineMap(Rows.build(outer.matrix() @ inner.rows.matrix(), "S"), offset, known)
        shape = (outer.shape[0], inner.n_parameters)
        products = [outer.matrix(b) @ inner.rows.matrix(b) for b in range(count)]
        return AffineMap(Rows.build(products or np.zeros((0, *shape)), "S"), offset, known)

    def _metric_after(self, inner: AffineMap) -> Metric | None:
        """The metric of self(inner(w)), where the inner one is plain and so only scales ours."""
        own, plain = self.metric, inner.metric
        if own is None or plain is None or plain.directions is not None:
            return None
        return Metric(own.alpha * plain.alpha, own.directions)

    @cached_property
    def metric(self) -> Metric | None:
        """S S^T where it is a multiple of the identity plus known directions, else None."""
        return self.known_metric or _uniform(self.rows)

    @cached_property
    def _by_column(self) -> sparse.csr_array:
        nnz = len(self.rows.indices)
        shape = (nnz, self.rows.shape[1])
        return sparse.csr_array((np.ones(nnz), self.rows.indices, np.arange(nnz + 1)), shape=shape)


def scaled_identity(n: int, factor: float, offset: np.ndarray) -> AffineMap:
    """g = factor w + offset."""
    rows = Rows.build(sparse.diags_array(np.full(n, factor)), "S")
    return AffineMap(rows, frozen(offset))


def _uniform(rows: Rows) -> Metric | None:
    """One entry in each row, no column twice, all of one size: S S^T is a multiple of I."""
    alone = (np.diff(rows.indptr) == 1).all() and len(np.unique(rows.indices)) == len(rows.indices)
    if not alone or not rows.shape[0]:
        return None
    square = rows.data**2
    if (square != square[:, :1]).any() or not square.all():
        return None
    return Metric(square[:, 0])
