"""Quadratic programs in units of their own, and the proof that an answer is one.

    min 1/2 x^T P x + q x   subject to   A x <= b, the first rows with equality

The size of x is told by the right-hand sides and by q against P, that of a row by its entries.
Everything here is relative to those, so that no choice of units makes a wrong answer look right,
or a right one wrong.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from .._conic import Cone
from ..problem import LinearProgram
from .units import least_size, power_of_two, with_even_rows

SHORT = 1e-3
"""Of the largest entry of x, the largest part of the gradient, or the unit of x: where terms are
smaller than this share of it, rounding of the others speaks."""
PROOF = 1e-7
"""How far multipliers may be from proving that no x obeys the rows; how fast an objective must fall
to fall for ever."""
FLAT = 1e-12
"""An eigenvalue of P this small against its largest is rounding."""


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
        return power_of_two(least_size(self.b[: self.n_zero], self.b[self.n_zero :]) or free)

    @property
    def conic(self) -> tuple[Any, np.ndarray, Any, np.ndarray, list[Cone]]:
        """As a conic solver takes it: b - A x in a product of cones."""
        cones = [("zero", self.n_zero), ("nonnegative", len(self.b) - self.n_zero)]
        return sparse.csc_array(self.P), self.q, self.A, self.b, cones

    def within(self, unit: float) -> tuple[Program, float]:
        """The program in x / unit with an objective of size 1; multipliers are to be multiplied
        by the number that comes with it."""
        P = unit * self.P
        size = power_of_two(max(np.abs(P).max(initial=0.0), np.abs(self.q).max(initial=0.0)))
        return self._replace(P=P / size, q=self.q / size, b=self.b / unit), size


def left_over(program: Program, x: np.ndarray, z: np.ndarray) -> float:
    """Relative, 0 where x is optimal and z are its multipliers: the largest of what rows are
    broken by, what the gradient leaves over, and the multipliers of rows that do not bind."""
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
    worst = [part.max(initial=0.0) for part in (broken, gradient, both)]
    return float(max(worst)) if np.isfinite(worst).all() else np.inf


def is_infeasible(program: Program, z: np.ndarray) -> bool:
    """Whether multipliers prove it: A^T z = 0 and b z < 0, to rounding, in units of x."""
    z = np.concatenate([z[: program.n_zero], np.maximum(z[program.n_zero :], 0.0)])
    below = -float(program.b @ z)
    return below > 0 and np.abs(program.A.T @ z).max(initial=0.0) <= PROOF * below


def is_unbounded(program: Program) -> bool:
    """Whether the objective falls for ever along some direction that is flat and in which no row
    ends: a linear program over the directions of length at most 1."""
    P, q, A, b, n_zero = program
    values, vectors = np.linalg.eigh(P)
    flat = vectors[:, values <= FLAT * np.abs(values).max(initial=0.0)]
    size = np.abs(q).max(initial=0.0)
    if not (flat.size and size):
        return False
    ends = A @ flat
    ends[np.abs(ends) <= FLAT * abs(A).sum(axis=1)[:, None]] = 0.0
    cone = LinearProgram(
        A_eq=ends[:n_zero],
        b_eq=np.zeros(n_zero),
        A_ub=ends[n_zero:],
        b_ub=np.zeros(len(b) - n_zero),
        lb=-1.0,
        ub=1.0,
    )
    return bool(cone.solve((q / size @ flat)[None]).objective[0] < -PROOF)
