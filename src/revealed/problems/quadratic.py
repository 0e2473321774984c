"""Quadratic programs as data: constraints like those of a linear program, a quadratic objective.

    sense="max"   x(c) = argmax <c, x> - gamma/2 x^T Q x      returns c, risk Q
    sense="min"   x(c) = argmin <c, x> + gamma/2 x^T Q x      costs c

With Q known, c is what is predicted. With Q unknown, (c, Q) is: a vector of n + n (n+1)/2 numbers
that `pack` makes and `unpack` reads. Letters: B instances, n variables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from .._common.affine import AffineMap, Metric, scaled_identity
from .._common.arrays import as_choice, as_costs, count_of, to_float64
from .._common.conic import smat, svec, triangle
from .._common.records import Record
from .._common.rows import Rows, frozen
from ..errors import InputError, ShapeError
from .linear import LinearProgram, check_pairs
from .protocol import SmoothProblem, Tangent
from .solution import Solution

T = TypeVar("T")
_SIGNS = {"max": -1.0, "min": 1.0}
SEMIDEFINITE = 1e-9
"""The smallest eigenvalue of Q may fall below 0 by this share of the largest."""


class QuadraticProgram(Record, SmoothProblem):
    """A quadratic program over a polyhedron, or a batch of them, waiting for `c` or for `(c, Q)`.

        sense="max"   x(c) = argmax <c, x> - gamma/2 x^T Q x      returns c, risk Q
        sense="min"   x(c) = argmin <c, x> + gamma/2 x^T Q x      costs c

    A problem never changes once built.

    Parameters
    ----------
    gamma : float
        Weight of the quadratic term, above 0.
    Q : (n, n) or (B, n, n) array, optional
        Symmetric and positive semidefinite, one for each instance where it differs. None makes it
        a part of what is predicted; `pack` and `unpack` convert between (c, Q) and parameters.
    sense : "max" or "min"
    A_eq, A_ub : (m, n) or (B, m, n) array or sparse matrix, optional
        Rows of the constraints, as of a `LinearProgram`.
    b_eq, b_ub : float, (m,) or (B, m) array, optional
        Right-hand sides.
    lb, ub : float, (n,) or (B, n) array, or None
        Bounds. None means no bound; the default is x >= 0.
    semidefinite : bool
        Whether a predicted Q is kept positive semidefinite among the explaining parameters; only
        without `Q`. Otherwise a decision is explained where it meets the first-order conditions,
        which for an indefinite Q do not make it optimal.

    Raises
    ------
    InputError
        If `Q` is not symmetric and positive semidefinite, or an argument has no meaning.
    ShapeError
        If shapes do not agree.
    """

    constraints: LinearProgram
    """What the decision maker may do, without the objective."""
    gamma: float
    Q: np.ndarray | None
    """(n, n) or (B, n, n); None where it is predicted."""
    sense: str
    semidefinite: bool
    n_instances: int | None

    def __init__(
        self,
        gamma: float = 1.0,
        Q: Any = None,
        sense: str = "max",
        A_eq: Any = None,
        b_eq: Any = None,
        A_ub: Any = None,
        b_ub: Any = None,
        lb: Any = 0.0,
        ub: Any = None,
        *,
        semidefinite: bool = False,
    ) -> None:
        lower = -np.inf if lb is None else lb
        sized = [part for part in (A_eq, A_ub) if part is not None]
        sized += [part for part in (lb, ub) if part is not None and np.ndim(part)]
        if Q is not None and not sized:
            lower = np.full(order_of_matrix(Q), lower)  # Q alone gives the number of variables
        constraints = LinearProgram(A_eq, b_eq, A_ub, b_ub, lower, ub)
        if not (isinstance(gamma, int | float | np.number) and 0 < gamma < np.inf):
            raise InputError(f"`gamma` must be a number above 0; got {gamma!r}.")
        if sense not in _SIGNS:
            raise InputError(f'`sense` must be "max" or "min"; got {sense!r}.')
        if semidefinite and Q is not None:
            raise InputError("`semidefinite` is for an unknown Q; a known one is checked anyway.")
        matrix = None if Q is None else _checked(Q, constraints.n_variables)
        self._set(
            constraints=constraints,
            gamma=float(gamma),
            Q=matrix,
            sense=sense,
            semidefinite=bool(semidefinite),
            n_instances=_instances(constraints, matrix),
        )

    # --- the constraints, as of a LinearProgram ----------------------------------------------

    @property
    def n_variables(self) -> int:
        return self.constraints.n_variables

    @property
    def eq_rows(self) -> Rows:
        return self.constraints.eq_rows

    @property
    def ub_rows(self) -> Rows:
        return self.constraints.ub_rows

    @property
    def b_eq(self) -> np.ndarray:
        return self.constraints.b_eq

    @property
    def b_ub(self) -> np.ndarray:
        return self.constraints.b_ub

    @property
    def lb(self) -> np.ndarray:
        return self.constraints.lb

    @property
    def ub(self) -> np.ndarray:
        return self.constraints.ub

    @property
    def shape(self) -> tuple[int, ...]:
        return self.constraints.shape

    structure = None

    @property
    def n_parameters(self) -> int:
        """Length of what is predicted: n, or n + n (n+1)/2 where Q is unknown."""
        n = self.n_variables
        return n if self.Q is not None else n + n * (n + 1) // 2

    @property
    def semidefinite_block(self) -> tuple[int, int] | None:
        """Where among the parameters a positive semidefinite matrix begins, and its order."""
        return (self.n_variables, self.n_variables) if self.semidefinite else None

    @property
    def sign(self) -> float:
        """Of <c, x> in what is minimized."""
        return _SIGNS[self.sense]

    def pack(self, c: Any, Q: Any) -> np.ndarray:
        """(B, n + n (n+1)/2) parameters of c and Q.

        Entries off the diagonal are multiplied by sqrt(2), so that distances between parameters
        are those between c and, in the Frobenius norm, Q.

        Parameters
        ----------
        c : (B, n) array
        Q : (n, n) or (B, n, n) array
            Symmetric.

        Returns
        -------
        (B, n + n (n+1)/2) array
        """
        c, _ = as_costs(c, self.n_variables, "c")
        part = np.atleast_2d(svec(_symmetric(Q, self.n_variables)))
        if len(part) not in (1, len(c)):
            raise ShapeError(
                f"`Q` must be one matrix or one for each of the {len(c)} rows of `c`; got "
                f"{len(part)}."
            )
        return np.hstack([c, np.broadcast_to(part, (len(c), part.shape[1]))])

    def unpack(self, parameters: Any) -> tuple[np.ndarray, np.ndarray]:
        """c and Q of parameters.

        Parameters
        ----------
        parameters : (B, p) array
            As `pack` makes them; c alone where Q is known.

        Returns
        -------
        c : (B, n) array
        Q : (B, n, n) array
        """
        w, _ = as_costs(parameters, self.n_parameters, "parameters")
        n = self.n_variables
        self.check_batch(len(w), "parameters")
        if self.Q is not None:
            return w, np.array(np.broadcast_to(self.Q, (len(w), n, n)))
        return w[:, :n], smat(w[:, n:])

    # --- use ---------------------------------------------------------------------------------

    def solve(
        self, costs: Any, *, time_limit: float | None = None, threads: int | None = None
    ) -> Solution:
        """Best decisions for a batch of parameters, with a status for each.

        Parameters
        ----------
        costs : (B, p) array or tensor
            c, or where Q is unknown (c, Q) as `pack` makes them.
        time_limit : float, optional
            Seconds for the whole call; instances not reached have status LIMIT.
        threads : int, optional
            As many as there are processors unless given.

        Returns
        -------
        Solution
            `objective` is that of the sense: what is earned for "max", what is paid for "min".
        """
        return super().solve(costs, time_limit=time_limit, threads=threads)

    def objective(self, costs: Any, decisions: Any) -> np.ndarray:
        """(B,): <c, x> minus (for "min": plus) gamma/2 x^T Q x, with the whole of Q.

        Parameters
        ----------
        costs : (B, p) array
            Parameters, as for `solve`.
        decisions : (B, n) array

        Returns
        -------
        (B,) array
        """
        c, Q = self.unpack(costs)
        X, _ = as_costs(decisions, self.n_variables, "decisions")
        check_pairs(c, X)
        risk = 0.5 * self.gamma * np.einsum("bi,bij,bj->b", X, Q, X)
        return np.einsum("bi,bi->b", c, X) + self.sign * risk

    def gradient(self, X: np.ndarray) -> AffineMap:
        """Parameters -> the gradient in x, at decisions (B, n), of what is minimized."""
        n = self.n_variables
        if self.Q is not None:
            at = X @ self.Q if self.Q.ndim == 2 else np.einsum("bi,bij->bj", X, self.Q)
            return scaled_identity(n, self.sign, self.gamma * at)
        return _joint_gradient(X, self.gamma, self.sign)

    def tangent(self, X: np.ndarray, tol: float) -> Tangent:
        """The constraints as seen from decisions: for a polyhedron, from anywhere the same."""
        return Tangent(self.constraints)

    def repair(self, decisions: Any) -> Any:
        """The nearest feasible decisions.

        Parameters
        ----------
        decisions : (B, n) array or tensor

        Returns
        -------
        (B, n) array or tensor
            NaN where there is none.
        """
        return self.constraints.repair(decisions)

    def constraint_violation(self, decisions: Any) -> Any:
        """(B,): the largest relative violation, as of a LinearProgram.

        Parameters
        ----------
        decisions : (B, n) array or tensor

        Returns
        -------
        (B,) array or tensor
            0 where a decision obeys every constraint.
        """
        return self.constraints.constraint_violation(decisions)

    def check_batch(self, size: int, name: str) -> None:
        """Refuse a batch of the wrong length; a shared problem takes any length."""
        if self.n_instances not in (None, size):
            raise ShapeError(
                f"This problem differs by instance and holds {self.n_instances}, so `{name}` must "
                f"have {self.n_instances} rows; got {size}. Choose instances with `problem[index]`."
            )

    def cached(self, key: str, build: Callable[[], T]) -> T:
        """See `LinearProgram.cached`."""
        return self.constraints.cached(key, build)

    def __getitem__(self, index: Any) -> QuadraticProgram:
        """The problem of the chosen instances: an integer, slice, mask or integer array."""
        if self.n_instances is None:
            return self
        chosen = as_choice(index, self.n_instances)
        Q = self.Q
        return self.replaced(
            constraints=self.constraints[chosen],
            Q=Q[chosen] if Q is not None and Q.ndim == 3 else Q,
            n_instances=count_of(chosen),
        )

    __iter__ = None

    def __repr__(self) -> str:
        known = "Q known" if self.Q is not None else "Q unknown"
        kind = ", semidefinite" if self.semidefinite else ""
        count = "" if self.n_instances is None else f", {self.n_instances} instances"
        return (
            f"QuadraticProgram({self.n_variables} variables, {self.eq_rows.shape[0]} equalities, "
            f"{self.ub_rows.shape[0]} inequalities{count}, {self.sense}, {known}{kind})"
        )


def _joint_gradient(X: np.ndarray, gamma: float, sign: float) -> AffineMap:
    """(c, svec Q) -> sign c + gamma Q x, and what S S^T is.

    The adjoint of Q -> Q x takes y to (y x^T + x y^T) / 2, so
    S S^T = (1 + gamma^2 |x|^2 / 2) I + gamma^2 / 2 x x^T.
    """
    size, n = X.shape
    row, column, factor = triangle(n)
    place = n + np.arange(len(row))
    off = row != column
    # Entry (i, j) of Q, i < j, adds x_j to row i and x_i to row j.
    line = np.concatenate([np.arange(n), row, column[off]])
    parameter = np.concatenate([np.arange(n), place, place[off]])
    value = gamma / np.concatenate([factor, factor[off]])
    data = np.hstack([np.full((size, n), sign), value * X[:, np.concatenate([column, row[off]])]])
    order = np.lexsort((parameter, line))
    indptr = np.searchsorted(line[order], np.arange(n + 1)).astype(np.int64)
    rows = Rows((n, n + len(row)), indptr, parameter[order], frozen(data[:, order]), True)
    half = 0.5 * gamma**2
    alpha = 1.0 + half * (X**2).sum(axis=1)
    directions = np.sqrt(half / alpha)[:, None, None] * X[:, :, None]
    return AffineMap(rows, frozen(np.zeros(n)), Metric(alpha, directions))


def order_of_matrix(Q: Any) -> int:
    """n of a matrix (n, n), or of a batch of them."""
    shape = np.shape(Q)
    if len(shape) not in (2, 3):
        raise ShapeError(f"`Q` must be (n, n) or (B, n, n); got shape {shape}.")
    return shape[-1]


def _symmetric(Q: Any, n: int) -> np.ndarray:
    matrix = Q.toarray() if sparse.issparse(Q) else to_float64(Q, "Q")
    if matrix.ndim not in (2, 3) or matrix.shape[-2:] != (n, n):
        raise ShapeError(f"`Q` must be ({n}, {n}) or (B, {n}, {n}); got shape {matrix.shape}.")
    if not np.isfinite(matrix).all():
        raise InputError("`Q` must be finite; remove NaN and infinities.")
    turned = np.swapaxes(matrix, -1, -2)
    if np.abs(matrix - turned).max(initial=0.0) > 1e-9 * np.abs(matrix).max(initial=0.0):
        raise InputError("`Q` must be symmetric; use (Q + Q.T) / 2, which gives the same x^T Q x.")
    return 0.5 * (matrix + turned)


def _checked(Q: Any, n: int) -> np.ndarray:
    matrix = _symmetric(Q, n)
    least = np.linalg.eigvalsh(matrix)
    bad = np.argwhere(np.atleast_2d(least)[:, 0] < -SEMIDEFINITE * np.abs(least).max(initial=0.0))
    if bad.size:
        where = f" of instance {int(bad[0, 0])}" if matrix.ndim == 3 else ""
        raise InputError(
            f"`Q` must be positive semidefinite; the smallest eigenvalue{where} is "
            f"{np.atleast_2d(least)[bad[0, 0], 0]:.3g}. Otherwise no decision need be optimal."
        )
    return frozen(matrix)


def _instances(constraints: LinearProgram, Q: np.ndarray | None) -> int | None:
    own = len(Q) if Q is not None and Q.ndim == 3 else None
    counts = {c for c in (own, constraints.n_instances) if c is not None}
    if len(counts) > 1:
        raise ShapeError(
            f"`Q` holds {own} instances, the constraints {constraints.n_instances}; they must "
            "agree."
        )
    return next(iter(counts), None)
