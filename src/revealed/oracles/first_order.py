"""Quadratic programs in units of their own, and the proof that an answer is one.

    min 1/2 x^T P x + q x   subject to   A x <= b, the first rows with equality

The size of x follows from the right-hand sides and from q and P, that of a row from its entries.
Everything here is relative to those, so that no choice of units makes a wrong answer look right,
or a right one wrong.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from .._common.conic import Cone
from .units import even_columns, least_size, limit_size, power_of_two, row_sizes, with_even_rows

SHORT = 1e-3
"""Of the largest entry of x, the largest part of the gradient, or the unit of x: where terms are
smaller than this share of it, rounding of the others speaks."""


class Program(NamedTuple):
    """One program; rows have their largest entry in [1/2, 1)."""

    P: np.ndarray
    q: np.ndarray
    A: Any
    b: np.ndarray
    n_zero: int
    """Rows that hold with equality."""

    @classmethod
    def of(cls, P: np.ndarray, q: np.ndarray, A: Any, b: np.ndarray, n_zero: int) -> Program:
        return cls(P, q, *with_even_rows(A, b), n_zero)

    @property
    def unit(self) -> float:
        """The size that x may be expected to have, as a power of two."""
        curvature = np.abs(self.P).max(initial=0.0)
        free = np.abs(self.q).max(initial=0.0) / curvature if curvature else 0.0
        below = self.b[self.n_zero :]
        sizes = [size for size in (free, limit_size(below)) if size > 0]
        return power_of_two(least_size(self.b[: self.n_zero], below) or min(sizes, default=1.0))

    @property
    def conic(self) -> tuple[Any, np.ndarray, Any, np.ndarray, list[Cone]]:
        """As a conic solver takes it: b - A x in a product of cones."""
        cones = [("zero", self.n_zero), ("nonnegative", len(self.b) - self.n_zero)]
        return sparse.csc_array(self.P), self.q, self.A, self.b, cones

    def within(self, unit: float) -> tuple[Program, float]:
        """The program in x / unit with an objective of size 1; multiply multipliers
        by the number that comes with it."""
        P = unit * self.P
        size = power_of_two(max(np.abs(P).max(initial=0.0), np.abs(self.q).max(initial=0.0)))
        with np.errstate(over="ignore"):  # limits that stand for none may become infinite
            return self._replace(P=P / size, q=self.q / size, b=self.b / unit), size

    def only(self, kept: np.ndarray) -> Program:
        """Some of the rows, all equalities among them."""
        if kept.all():
            return self
        return self._replace(A=sparse.csc_array(self.A[kept]), b=self.b[kept])

    def even(self) -> tuple[Program, np.ndarray, np.ndarray]:
        """The program in x / columns with entries of P and A as near 1 as may be; the columns, and
        the factor for its multipliers."""
        both = sparse.csr_array(sparse.vstack([sparse.csr_array(self.P), self.A], format="csr"))
        both.eliminate_zeros()
        columns = even_columns(both)
        A = sparse.csc_array(self.A @ sparse.diags_array(columns))
        size = row_sizes(A)
        A.data = A.data / size[A.indices]
        P = self.P * columns * columns[:, None]
        return Program(P, self.q * columns, A, self.b / size, self.n_zero), columns, 1.0 / size


def left_over(program: Program, x: np.ndarray, z: np.ndarray) -> float:
    """Relative, 0 where x is optimal and z are its multipliers: the largest of `left_overs`."""
    return float(max(left_overs(program, x, z)))


def left_overs(program: Program, x: np.ndarray, z: np.ndarray) -> list[float]:
    """What rows are broken by, what the gradient leaves over, and the multipliers of rows that do
    not bind."""
    with np.errstate(over="ignore", invalid="ignore"):  # what is not a number is no proof
        worst = _left_overs(program, x, z)
    return worst if np.isfinite(worst).all() else [np.inf] * 3


def _left_overs(program: Program, x: np.ndarray, z: np.ndarray) -> list[float]:
    P, q, A, b, n_zero = program
    z = np.concatenate([z[:n_zero], np.maximum(z[n_zero:], 0.0)])
    size = max(np.abs(x).max(initial=0.0), SHORT * program.unit)
    slack = (b - A @ x) / (np.abs(b) + abs(A) @ np.abs(x) + SHORT * size)
    broken = np.concatenate([np.abs(slack[:n_zero]), -slack[n_zero:]])
    terms = (P @ x, q, A.T @ z)
    each = sum(np.abs(term) for term in terms)
    largest = max(np.abs(term).max(initial=0.0) for term in terms) or 1.0
    gradient = np.abs(sum(terms)) / (each + SHORT * largest)
    spare, force = np.maximum(slack[n_zero:], 0.0), z[n_zero:] / largest
    both = np.minimum(spare, force) * np.maximum(1.0, np.maximum(spare, force))
    return [float(part.max(initial=0.0)) for part in (broken, gradient, both)]


def gap(program: Program, x: np.ndarray, z: np.ndarray) -> float:
    """By how much the objective at x may exceed the least one, where nothing else is left over: the
    products of slacks and multipliers, as a share of the terms of the objective.

    The products b z are not among those terms: multipliers of rows that repeat each other may be
    as large as they like, and then any gap would be small beside them.
    """
    P, q, A, b, n_zero = program
    force, slack = np.maximum(z[n_zero:], 0.0), np.abs(b - A @ x)[n_zero:]
    size = max(np.abs(x).max(initial=0.0), SHORT * program.unit)
    with np.errstate(over="ignore", invalid="ignore"):
        terms = np.abs(x) @ np.abs(P @ x) + np.abs(q) @ np.abs(x)
        terms += SHORT * size * np.abs(q).max(initial=0.0)
        over = float(slack @ force)
    if over == 0.0:
        return 0.0
    return float(over / terms) if terms > 0 and np.isfinite(over) else np.inf
