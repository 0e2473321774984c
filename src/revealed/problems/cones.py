"""Cones that a decision must stay in, and what they say of costs where a decision touches them.

    SecondOrderCone(A, b, c, d)      |A x + b| <= c x + d
    SemidefiniteCone(F, F0)          F0 + sum_j x_j F_j positive semidefinite

Where a cone has a tangent at x*, its normal is the row of an inequality. At a corner (the tip of a
second-order cone, a matrix that loses two ranks or more) the normals are a cone themselves.
Letters: B instances, n variables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .._common.arrays import Choice, to_float64
from .._common.conic import Cone, svec
from ..errors import InputError, ShapeError


class Corner(NamedTuple):
    """Normals at a corner: matrix @ l, with l in the cone."""

    matrix: np.ndarray
    """(n, k)"""
    cone: Cone
    unit: np.ndarray
    """(k,) by which, times the margin, l must be inside the cone."""


class Touch(NamedTuple):
    """What a cone says at one decision: value <= 0 with this gradient, or a corner."""

    value: float
    gradient: np.ndarray
    corner: Corner | None = None


class Normals:
    """The corners of a batch."""

    def __init__(self, corners: list[list[Corner]]) -> None:
        self._corners = corners
        self.present = np.array([len(own) > 0 for own in corners], bool)
        """(B,) whether an instance has any."""

    def of(self, b: int) -> list[Corner]:
        return self._corners[b]

    def take(self, index: Choice) -> Normals:
        chosen = np.arange(len(self._corners))[index]
        return Normals([self._corners[b] for b in chosen])


def _unit(known: float, found: float) -> float:
    """What is small against this is nothing: 1, or where what is known of a cone and its value at a
    decision are smaller, the larger of those (as `problem.unit_of`)."""
    return min(1.0, max(known, found)) if known else 1.0


@dataclass(frozen=True, eq=False)
class SecondOrderCone:
    """Decisions with |A x + b| <= c x + d.

    Parameters
    ----------
    A : (k, n) array
    b : float or (k,) array
    c : float or (n,) array
    d : float
    """

    A: Any
    b: Any = 0.0
    c: Any = 0.0
    d: float = 0.0

    def __post_init__(self) -> None:
        A = np.atleast_2d(to_float64(self.A, "A"))
        k, n = A.shape
        b, c = to_float64(self.b, "b"), to_float64(self.c, "c")
        for name, array, size in (("b", b, k), ("c", c, n)):
            if array.shape not in ((), (size,)):
                raise ShapeError(f"`{name}` must be a number or ({size},); got {array.shape}.")
        parts = {
            "A": A,
            "b": np.broadcast_to(b, k),
            "c": np.broadcast_to(c, n),
            "d": float(self.d),
        }
        for name, value in parts.items():
            if not np.isfinite(value).all():
                raise InputError(f"`{name}` of a SecondOrderCone must be finite.")
            object.__setattr__(self, name, value)

    @property
    def n_variables(self) -> int:
        return self.A.shape[1]

    def conic(self) -> tuple[np.ndarray, np.ndarray, Cone]:
        """Rows and right-hand side with right - rows x in the cone."""
        rows = -np.vstack([self.c, self.A])
        return rows, np.concatenate([[self.d], self.b]), ("second-order", len(rows))

    def touch(self, x: np.ndarray, tol: float) -> Touch:
        u, t = self.A @ x + self.b, float(self.c @ x + self.d)
        length = float(np.linalg.norm(u))
        terms = float((np.abs(self.A) @ np.abs(x)).max(initial=0.0))
        known = float(np.abs(self.b).max(initial=0.0)) + abs(self.d)
        if max(length, abs(t)) <= tol * (_unit(known, terms) + known + terms):
            unit = np.zeros(len(u) + 1)
            unit[0] = 1.0
            matrix = np.vstack([self.c, self.A]).T
            corner = Corner(matrix, ("second-order", len(unit)), unit)
            return Touch(-np.inf, np.zeros(len(x)), corner)
        slope = self.A.T @ (u / length) if length else np.zeros(len(x))
        return Touch(length - t, slope - self.c)


@dataclass(frozen=True, eq=False)
class SemidefiniteCone:
    """Decisions with F0 + sum_j x_j F_j positive semidefinite.

    Parameters
    ----------
    F : (n, k, k) array
        A symmetric matrix for each variable.
    F0 : 0 or (k, k) array
        Symmetric.
    """

    F: Any
    F0: Any = 0.0

    def __post_init__(self) -> None:
        F = to_float64(self.F, "F")
        if F.ndim != 3 or F.shape[1] != F.shape[2]:
            raise ShapeError(f"`F` must be (n, k, k), a matrix for each variable; got {F.shape}.")
        F0 = to_float64(self.F0, "F0")
        if F0.shape not in ((), F.shape[1:]):
            raise ShapeError(f"`F0` must be 0 or {F.shape[1:]}; got {F0.shape}.")
        F0 = np.broadcast_to(F0, F.shape[1:])
        for name, matrix in (("F", F), ("F0", F0)):
            if not np.isfinite(matrix).all():
                raise InputError(f"`{name}` of a SemidefiniteCone must be finite.")
            if not np.allclose(matrix, np.swapaxes(matrix, -1, -2), rtol=1e-12, atol=0.0):
                raise InputError(f"`{name}` of a SemidefiniteCone must be symmetric.")
            object.__setattr__(self, name, matrix)

    @property
    def n_variables(self) -> int:
        return len(self.F)

    def conic(self) -> tuple[np.ndarray, np.ndarray, Cone]:
        """Rows and right-hand side with right - rows x in the cone."""
        return -svec(self.F).T, svec(np.array(self.F0)), ("semidefinite", self.F.shape[1])

    def touch(self, x: np.ndarray, tol: float) -> Touch:
        values, vectors = np.linalg.eigh(self.F0 + np.einsum("j,jkl->kl", x, self.F))
        largest = float(np.abs(values).max(initial=0.0))
        unit = _unit(float(np.abs(self.F0).max(initial=0.0)), largest)
        lost = np.abs(values) <= tol * (unit + largest)
        if values[0] >= 0 or lost[0]:
            V = vectors[:, lost]
            if V.shape[1] > 1:
                matrix = svec(np.einsum("ka,jkl,lb->jab", V, self.F, V))
                unit = svec(np.eye(V.shape[1]))
                corner = Corner(matrix, ("semidefinite", V.shape[1]), unit)
                return Touch(-np.inf, np.zeros(len(x)), corner)
        v = vectors[:, 0]
        return Touch(-float(values[0]), -np.einsum("k,jkl,l->j", v, self.F, v))
