"""One instance in other units: rows, columns and x itself multiplied by powers of two, and the way
back for decisions, multipliers and rays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from .claims import Claim
from .proofs import Polyhedron
from .units import FARTHEST, even_columns, largest_side, linear_unit, power_of_two, size_in_box


class Scaled(NamedTuple):
    """x = unit * columns * z with z what the solver sees."""

    at: Polyhedron
    rows: np.ndarray
    columns: np.ndarray
    unit: float

    def cost(self, c: np.ndarray) -> np.ndarray:
        """Of z, with the largest entry in [1/2, 1)."""
        scaled = c * self.columns
        return scaled / power_of_two(np.abs(scaled).max(initial=0.0))

    def back(self, claim: Claim, c: np.ndarray) -> Claim:
        """The claim in the problem's own units; c is its cost."""
        y = claim.y
        size = power_of_two(np.abs(c * self.columns).max(initial=0.0))
        return claim._replace(
            x=self.decision(claim.x),
            y=None if y is None else y * self.rows * size,
            ray=self.decision(claim.ray),
        )

    def decision(self, z: np.ndarray | None) -> np.ndarray | None:
        """x of z."""
        return None if z is None else self.unit * self.columns * z


def scaled(at: Polyhedron, *, even: bool, unit: str) -> Scaled:
    """Rows of size 1; with `even`, columns too, as nearly as may be. `unit` is what x is measured
    in: "least", what the constraints ask for at least, or "largest", the largest number in them, or
    "own"."""
    columns = even_columns(at.A) if even else np.ones(at.A.shape[1])
    rows = 1.0 / _largest(_times(at.A, np.ones(at.A.shape[0]), columns))
    A = _times(at.A, rows, columns)
    with np.errstate(over="ignore"):
        b, lb, ub = at.b * rows, at.lb / columns, at.ub / columns
        size = 1.0
        if unit == "least":
            size = linear_unit(size_in_box(b[: at.n_eq], b[at.n_eq :], lb, ub))
        elif unit == "largest":
            size = power_of_two(largest_side(b, lb, ub))
        inside = Polyhedron(A, b / size, at.n_eq, lb / size, ub / size)
    return Scaled(inside, rows, columns, size)


def _largest(A: Any) -> np.ndarray:
    """(m,): the power of two at the largest entry of each row; 1 for an empty one."""
    largest = np.zeros(A.shape[0])
    np.maximum.at(largest, np.repeat(np.arange(A.shape[0]), np.diff(A.indptr)), np.abs(A.data))
    exponent = np.frexp(np.where(largest > 0, largest, 1.0))[1] - 1
    return np.ldexp(1.0, np.clip(exponent, -2 * FARTHEST, 2 * FARTHEST))


def _times(A: Any, rows: np.ndarray, columns: np.ndarray) -> Any:
    row = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    return sparse.csr_array((A.data * rows[row] * columns[A.indices], A.indices, A.indptr), A.shape)
