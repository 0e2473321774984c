"""Constraint rows as one sparsity pattern with a line of values for each instance.

Letters: B instances, m rows, n columns, nnz stored entries. A matrix shared by all instances is
the case of one line of values, so everything downstream analyses the pattern once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from ..errors import InputError, ShapeError
from .arrays import Choice, to_float64


@dataclass(frozen=True, eq=False)
class Rows:
    """B matrices of shape (m, n) on a common pattern, stored by rows."""

    shape: tuple[int, int]
    indptr: np.ndarray
    """(m + 1,) int64: row i owns the entries indptr[i] to indptr[i + 1]."""
    indices: np.ndarray
    """(nnz,) int64 columns, increasing within a row, no duplicates."""
    data: np.ndarray
    """(1, nnz) when all instances share the matrix, else (B, nnz)."""
    per_instance: bool = False

    @classmethod
    def build(cls, A: Any, name: str, n: int | None = None) -> Rows:
        """Rows from None (no rows), a matrix (dense or sparse), or one matrix for each instance;
        Rows stay what they are.

        Instances come as a dense (B, m, n) array or as a sequence of B matrices; their patterns
        are united. Duplicates are summed and stored zeros dropped.
        """
        if A is None:
            if n is None:
                raise ShapeError(f"`{name}` is None, so the number of columns must be given.")
            return _shared(sparse.csr_array((0, n), dtype=np.float64))
        if isinstance(A, Rows):
            return A
        rows = _from_matrices(A, name) if _is_sequence_of_matrices(A) else _from_array(A, name)
        if n is not None and rows.shape[1] != n:
            raise ShapeError(
                f"`{name}` must have {n} columns, one for each variable; got {rows.shape[1]}."
            )
        return rows

    @property
    def n_instances(self) -> int | None:
        """B when the values differ by instance, None when they are shared."""
        return len(self.data) if self.per_instance else None

    @cached_property
    def magnitude(self) -> Rows:
        """The same rows with the absolute value of every entry."""
        return Rows(
            self.shape, self.indptr, self.indices, frozen(np.abs(self.data)), self.per_instance
        )

    @cached_property
    def largest(self) -> np.ndarray:
        """(1 or B, m): the largest absolute entry of each row, 0 for an empty row."""
        result = np.zeros((len(self.data), self.shape[0]))
        filled = np.diff(self.indptr) > 0
        if filled.any() and len(self.data):
            starts = self.indptr[:-1][filled]
            result[:, filled] = np.maximum.reduceat(np.abs(self.data), starts, axis=1)
        return frozen(result)

    def times(self, X: np.ndarray) -> np.ndarray:
        """(B, m): each instance's matrix times its own row of `X` (B, n)."""
        if not self.per_instance:
            return np.ascontiguousarray((self._shared_matrix @ X.T).T)
        if len(X) != len(self.data):
            raise ShapeError(f"These rows hold {len(self.data)} instances; got {len(X)} vectors.")
        return np.ascontiguousarray((self._row_sums @ (self.data * X[:, self.indices]).T).T)

    def transposed_times(self, Y: np.ndarray) -> np.ndarray:
        """(B, n): each instance's transposed matrix times its own row of `Y` (B, m)."""
        if not self.per_instance:
            return np.ascontiguousarray((self._shared_matrix.T @ Y.T).T)
        terms = self.data * Y[:, np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))]
        shape = (self.shape[1], len(self.indices))
        sums = sparse.csr_array((np.ones(shape[1]), (self.indices, np.arange(shape[1]))), shape)
        return np.ascontiguousarray((sums @ terms.T).T)

    def matrix(self, instance: int = 0) -> sparse.csr_array:
        """The (m, n) matrix of one instance, without stored zeros."""
        if not self.per_instance:
            return self._shared_matrix
        values = self.data[instance]
        result = sparse.csr_array((values.copy(), self.indices, self.indptr), shape=self.shape)
        if not values.all():
            result = result.copy()  # the pattern arrays are shared, and this edits in place
            result.eliminate_zeros()
        return result

    def take(self, index: Choice) -> Rows:
        """The rows of the chosen instances; a shared matrix is returned as it is."""
        if not self.per_instance:
            return self
        return Rows(self.shape, self.indptr, self.indices, frozen(self.data[index]), True)

    @cached_property
    def _shared_matrix(self) -> sparse.csr_array:
        return sparse.csr_array((self.data[0], self.indices, self.indptr), shape=self.shape)

    @cached_property
    def _row_sums(self) -> sparse.csr_array:
        nnz = len(self.indices)
        shape = (self.shape[0], nnz)
        return sparse.csr_array((np.ones(nnz), np.arange(nnz), self.indptr), shape=shape)


def frozen(array: np.ndarray) -> np.ndarray:
    """The array, no longer writable."""
    array.setflags(write=False)
    return array


def _is_sequence_of_matrices(A: Any) -> bool:
    # A plain list of lists of numbers is one dense matrix; a list of matrices is one for each.
    return isinstance(A, Sequence) and any(getattr(part, "ndim", 0) == 2 for part in A)


def _from_array(A: Any, name: str) -> Rows:
    if sparse.issparse(A):
        return _shared(_clean_csr(A, name))
    dense = to_float64(A, name)
    if dense.ndim == 2:
        return _shared(_clean_csr(dense, name))
    if dense.ndim == 3:
        return _from_dense_stack(dense, name)
    hint = f" For one row use `{name}[None]`." if dense.ndim == 1 else ""
    raise ShapeError(
        f"`{name}` must be an (m, n) matrix, or (B, m, n) for one matrix per instance; "
        f"got shape {dense.shape}.{hint}"
    )


def _from_dense_stack(stack: np.ndarray, name: str) -> Rows:
    bad = np.argwhere(~np.isfinite(stack))
    if bad.size:
        instance, row, column = bad[0]
        raise InputError(
            _entry_message(f"{name}[{instance}]", row, column, float(stack[instance, row, column]))
        )
    row, column = np.nonzero((stack != 0).any(axis=0))
    indptr = np.searchsorted(row, np.arange(stack.shape[1] + 1))
    data = np.ascontiguousarray(stack[:, row, column])
    return _frozen_rows((stack.shape[1], stack.shape[2]), indptr, column, data, per_instance=True)


def _from_matrices(matrices: Sequence[Any], name: str) -> Rows:
    parts = [_clean_csr(part, f"{name}[{i}]") for i, part in enumerate(matrices)]
    m, n = _shape(parts[0])
    for i, part in enumerate(parts):
        if _shape(part) != (m, n):
            raise ShapeError(
                f"Every matrix of `{name}` must have the same shape; `{name}[0]` is {(m, n)}, "
                f"`{name}[{i}]` is {part.shape}. Pad with zero rows or columns."
            )
    keys = [np.repeat(np.arange(m), np.diff(part.indptr)) * n + part.indices for part in parts]
    united = np.unique(np.concatenate(keys))
    data = np.zeros((len(parts), len(united)))
    for line, key, part in zip(data, keys, parts, strict=True):
        line[np.searchsorted(united, key)] = part.data
    indptr = np.searchsorted(united // n, np.arange(m + 1)) if n else np.zeros(m + 1)
    return _frozen_rows((m, n), indptr, united % max(n, 1), data, per_instance=True)


def _clean_csr(A: Any, name: str) -> sparse.csr_array:
    """Finite float64 CSR with sorted, distinct columns and no stored zeros; never the input."""
    source = A if sparse.issparse(A) else to_float64(A, name)
    if source.ndim != 2:
        raise ShapeError(f"`{name}` must be an (m, n) matrix; got shape {source.shape}.")
    if source.dtype.kind not in "fiub":
        raise InputError(f"`{name}` must hold real numbers; got dtype {source.dtype}.")
    # astype first: duplicates of a boolean or small integer matrix must be summed as numbers.
    matrix = sparse.csr_array(source.astype(np.float64), copy=True)
    with np.errstate(invalid="ignore"):  # inf - inf among duplicates becomes the NaN refused below
        matrix.sum_duplicates()
    bad = np.flatnonzero(~np.isfinite(matrix.data))
    if bad.size:
        row = int(np.searchsorted(matrix.indptr, bad[0], side="right") - 1)
        column, value = int(matrix.indices[bad[0]]), float(matrix.data[bad[0]])
        raise InputError(_entry_message(name, row, column, value))
    matrix.eliminate_zeros()
    return matrix


def _shared(matrix: sparse.csr_array) -> Rows:
    return _frozen_rows(
        _shape(matrix), matrix.indptr, matrix.indices, matrix.data[None], per_instance=False
    )


def _shape(matrix: sparse.csr_array) -> tuple[int, int]:
    shape: Any = matrix.shape  # scipy's annotations allow None
    return int(shape[0]), int(shape[1])


def _frozen_rows(
    shape: tuple[int, int],
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    *,
    per_instance: bool,
) -> Rows:
    return Rows(
        shape,
        frozen(np.asarray(indptr).astype(np.int64)),
        frozen(np.asarray(indices).astype(np.int64)),
        frozen(data),
        per_instance,
    )


def _entry_message(name: str, row: int, column: int, value: float) -> str:
    return (
        f"`{name}` must be finite; got {value} in row {row}, column {column}. "
        "Remove the row or replace the entry."
    )
