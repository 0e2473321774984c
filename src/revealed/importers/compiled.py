"""What CVXPY compiles a problem to, read from its solver data.

    minimize <c, x> + 1/2 x^T P x   subject to   A_eq x = b_eq,  A_ub x <= b_ub,  lb <= x <= ub

Letters: n compiled columns.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from scipy import sparse

from ..errors import InputError
from .raw import RawModel

CONES = {"exp": "exponential cones", "soc": "norms", "psd": "semidefinite matrices"}
CONES |= {"p3d": "power cones", "pnd": "power cones"}


@dataclass(frozen=True, eq=False)
class Compiled:
    """A linear or quadratic program in CVXPY's columns."""

    cost: np.ndarray
    """(n,)"""
    A_eq: sparse.csr_array
    b_eq: np.ndarray
    A_ub: sparse.csr_array
    b_ub: np.ndarray
    lb: np.ndarray
    ub: np.ndarray
    integer: np.ndarray
    """(n,) bool."""
    P: sparse.csr_array
    """(n, n), empty for a linear program."""

    def taken(self, order: np.ndarray) -> Compiled:
        """The same with its columns in another order."""
        vectors = {name: getattr(self, name)[order] for name in ("cost", "lb", "ub", "integer")}
        rows = {name: getattr(self, name)[:, order] for name in ("A_eq", "A_ub")}
        return replace(self, **vectors, **rows, P=self.P[order][:, order])

    def has_curvature_of(self, other: Compiled) -> bool:
        """Whether the quadratic part is the same."""
        return _same(self.P, other.P)

    def has_rows_of(self, other: Compiled) -> bool:
        """Whether everything but the cost is the same."""
        names = [part.name for part in fields(self) if part.name != "cost"]
        return all(_same(getattr(self, name), getattr(other, name)) for name in names)

    def raw(self, source: str, names: tuple[str, ...], cost: np.ndarray | None) -> RawModel:
        """With rows of one variable as the bounds that they are."""
        lb, ub, rest = _bounds_of(self)
        m_eq, n_rest = len(self.b_eq), int(rest.sum())
        return RawModel(
            source=source,
            matrix=sparse.csr_array(sparse.vstack([self.A_eq, self.A_ub[rest]])),
            row_lower=np.concatenate([self.b_eq, np.full(n_rest, -np.inf)]),
            row_upper=np.concatenate([self.b_eq, self.b_ub[rest]]),
            lb=lb,
            ub=ub,
            variable_names=names,
            row_names=tuple([f"eq{i}" for i in range(m_eq)] + [f"ub{i}" for i in range(n_rest)]),
            cost=cost,
            integer=self.integer,
            quadratic=self.P,
        )


def read_compiled(data: dict[str, Any]) -> Compiled:
    """From the data for SciPy (A x = b, G x <= h) or for Clarabel (both in A, split by `dims`)."""
    cost = np.asarray(data["c"], dtype=np.float64)
    n, dims = len(cost), data["dims"]
    beyond = [words for name, words in CONES.items() if getattr(dims, name, None)]
    if beyond:
        raise InputError(
            f"The CVXPY problem must compile to linear constraints; it has {beyond[0]}. Problems "
            "with such constraints are for rv.ConvexProgram."
        )
    if "G" in data:
        equal, limited = (data["A"], data["b"]), (data["G"], data["h"])
    else:
        A, b = sparse.csr_array(data["A"]), np.asarray(data["b"])
        equal, limited = (A[: dims.zero], b[: dims.zero]), (A[dims.zero :], b[dims.zero :])
    lb, ub, integer = _columns(data, n)
    P = data.get("P")
    return Compiled(
        cost,
        *_rows(*equal, n),
        *_rows(*limited, n),
        lb,
        ub,
        integer,
        sparse.csr_array((n, n)) if P is None else sparse.csr_array(P),
    )


def _rows(A: Any, b: Any, n: int) -> tuple[sparse.csr_array, np.ndarray]:
    if A is None:
        return sparse.csr_array((0, n)), np.zeros(0)
    return sparse.csr_array(A), np.asarray(b, dtype=np.float64)


def _columns(data: dict[str, Any], n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bounds, where CVXPY keeps them separate from rows, and which columns are whole."""
    lower, upper = data.get("lower_bounds"), data.get("upper_bounds")
    lb = np.full(n, -np.inf) if lower is None else np.array(lower, dtype=np.float64)
    ub = np.full(n, np.inf) if upper is None else np.array(upper, dtype=np.float64)
    binary = [int(j) for j in data.get("bool_vars_idx", ())]
    lb[binary], ub[binary] = np.maximum(lb[binary], 0.0), np.minimum(ub[binary], 1.0)
    integer = np.zeros(n, dtype=bool)
    integer[[*binary, *(int(j) for j in data.get("int_vars_idx", ()))]] = True
    return lb, ub, integer


def _bounds_of(compiled: Compiled) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bounds with those that stand among the rows, and which rows are left."""
    A, lb, ub = compiled.A_ub.copy(), compiled.lb.copy(), compiled.ub.copy()
    A.eliminate_zeros()
    single = np.diff(A.indptr) == 1
    place = A.indptr[:-1][single]
    column, factor = A.indices[place], A.data[place]
    limit = compiled.b_ub[single] / factor
    above = factor > 0
    np.minimum.at(ub, column[above], limit[above])
    np.maximum.at(lb, column[~above], limit[~above])
    return lb, ub, ~single


def _same(one: Any, other: Any) -> bool:
    if sparse.issparse(one):
        return one.shape == other.shape and (one != other).nnz == 0
    return np.array_equal(one, other)
