"""Least squares for a whole data set: factored once, then solved for one set of targets after
another.

The rows come chunk by chunk and only their count, mean and triangular factor are kept, so memory
does not grow with the data. The factor is that of a QR decomposition, not the Cholesky factor of
the normal equations, which would square the condition number. Letters: N rows, k features.
"""

from __future__ import annotations

import numpy as np

CHUNK = 2048
"""Samples looked at together. They and their costs stay in the cache: 8192 took twice as long."""

_ROUNDING = 8 * np.finfo(float).eps


def chunks(size: int, length: int = CHUNK) -> list[slice]:
    """Slices that cover `size` samples in order."""
    return [slice(start, min(start + length, size)) for start in range(0, size, length)]


class RowFactor:
    """R with R^T R = sum (z - mean)(z - mean)^T over all rows seen so far.

    With `center` the mean is that of the rows, which is what an intercept amounts to; without it
    the mean is 0. Rows count by their weights.
    """

    def __init__(self, k: int, *, center: bool) -> None:
        self.center = center
        self.count: float = 0
        """The sum of the weights of the rows."""
        self.mean = np.zeros(k)
        self._largest = np.zeros(k)  # of |z|, column by column: what rounding is relative to
        self._R = np.zeros((0, k))

    def add(self, rows: np.ndarray, weights: np.ndarray | None = None) -> None:
        """Take in (N, k) more rows. One of weight 2 is a row that comes twice; `weights` (N,) are
        1 unless given."""
        if weights is not None and (weights == 1.0).all():
            weights = None
        size = len(rows) if weights is None else float(weights.sum())
        total = self.count + size
        if len(rows) == 0:
            return
        self._largest = np.maximum(self._largest, np.abs(rows).max(axis=0))
        parts = [self._R]
        if self.center:
            mean = np.average(rows, axis=0, weights=weights)
            rows = rows - mean
            # What rounding has left of the mean; without this a constant column is not quite 0.
            left = np.average(rows, axis=0, weights=weights)
            rows -= left
            shift = mean + left - self.mean
            # Two groups about their own means become one group about the common mean.
            parts.append((np.sqrt(self.count * size / total) * shift)[None])
            self.mean = self.mean + shift * (size / total)
        parts.insert(1, rows if weights is None else np.sqrt(weights)[:, None] * rows)
        self._R = np.asarray(np.linalg.qr(np.vstack(parts), mode="r"))
        self.count = total

    def merge(self, other: RowFactor) -> None:
        """Take in the rows that another has seen."""
        if not other.count:
            return
        total = self.count + other.count
        self._largest = np.maximum(self._largest, other._largest)
        parts = [self._R, other._R]
        if self.center:
            shift = other.mean - self.mean
            parts.append((np.sqrt(self.count * other.count / total) * shift)[None])
            self.mean = self.mean + shift * (other.count / total)
        self._R = np.asarray(np.linalg.qr(np.vstack(parts), mode="r"))
        self.count = total

    def scale(self, factor: float) -> None:
        """Let every row count `factor` times as much."""
        if factor != 1.0:
            self.count *= factor
            self._R = np.sqrt(factor) * self._R

    def arrays(self) -> dict[str, np.ndarray]:
        """All that is known of the rows, to be kept on disk."""
        return {
            "mean": self.mean,
            "largest": self._largest,
            "factor": self._R,
            "count": np.array([float(self.count)]),
        }

    def take_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        """Go on from what `arrays` gave."""
        self.mean, self._largest = np.array(arrays["mean"]), np.array(arrays["largest"])
        self._R, self.count = np.array(arrays["factor"]), float(arrays["count"][0])

    @property
    def spread(self) -> np.ndarray:
        """(k,) standard deviation of each feature about the mean; 0 for a constant feature."""
        scale = np.linalg.norm(self._R, axis=0)
        scale[scale <= _ROUNDING * np.sqrt(self.count) * self._largest] = 0.0
        return scale / np.sqrt(self.count or 1)

    def product(self, matrix: np.ndarray) -> np.ndarray:
        """(R^T R) times a (k, r) matrix."""
        return self._R.T @ (self._R @ matrix)

    def inverse_root(
        self, ridge: float, scale: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """M with M M^T = (R^T R + ridge N D^2)^+, and an orthonormal basis of the rows' span.

        D is diagonal: `scale` (k,), or 1 for every feature. With a scale, the solution of minimum
        norm is that of scaled features, and no basis is needed for it.

        The basis is None where the rows span everything. Where they do not (a constant feature,
        features that depend on each other, fewer rows than features), M M^T Z^T t is the solution
        of minimum norm. Columns are brought to length 1 first, so features in different units
        cannot be taken for dependent ones.
        """
        R, k = self._R, len(self.mean)
        if ridge:
            D = np.eye(k) if scale is None else np.diag(scale)
            R = np.vstack([R, np.sqrt(ridge * self.count) * D])
        length = np.linalg.norm(R, axis=0)
        length[length <= _ROUNDING * np.sqrt(self.count) * self._largest] = 0.0  # constant
        unscale = np.divide(1.0, length, out=np.zeros(k), where=length > 0)
        _, s, Vt = np.linalg.svd(R * unscale, full_matrices=False)
        keep = s > _ROUNDING * (k + np.sqrt(self.count)) * s.max(initial=0.0)
        V = Vt[keep].T
        M = unscale[:, None] * V / s[keep]
        if V.shape[1] == k or scale is not None:
            return M, None
        basis = np.linalg.qr(length[:, None] * V)[0]
        return basis @ (basis.T @ M), basis
