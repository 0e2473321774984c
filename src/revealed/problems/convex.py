"""Convex problems given as functions: any phi(x, w) whose gradient in x is affine in w.

    x(w) = argmin phi(x, w)   subject to   g(x) <= 0,   h(x) = 0,   x in cones,
                                           A_eq x = b_eq,   A_ub x <= b_ub,   lb <= x <= ub

phi, g (convex) and h (affine) are torch code; x is a vector (n,), w one (p,), float64. What
explains a decision follows from gradients at it. Letters: B instances, n variables, p parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._common.affine import AffineMap
from .._common.arrays import as_choice, as_costs
from .._common.records import Record
from .._common.rows import Rows
from ..errors import InputError, ShapeError
from .cones import Normals, SecondOrderCone, SemidefiniteCone
from .derivatives import (
    affine_rows,
    check_functions,
    check_scalar,
    gradient_map,
    over_batch,
    values_and_slopes,
)
from .linear import LinearProgram, check_pairs, relative_violation
from .protocol import SmoothProblem, Tangent
from .solution import Solution

Function = Callable[..., Any]
STRAIGHT = 1e-7
"""How far a function may lie above its chord, relative to its values, before it is not convex."""


class ConvexProgram(Record, SmoothProblem):
    """A convex problem waiting for parameters w.

        phi = lambda x, w: -(w * x).sum() + (x * x.log()).sum()
        problem = rv.ConvexProgram(phi, n_variables=5, n_parameters=5, A_eq=np.ones((1, 5)),
                                   b_eq=[1.0], inequalities=[lambda x: (x * x).sum() - 0.5])

    Parameters
    ----------
    objective : callable
        phi(x, w), minimized: torch code that takes x (n,) and w (p,), float64, and returns a
        number. Its gradient in x must be affine in w; another is refused, with the reason, as
        soon as there are decisions to look at it from. That phi(., w) is convex for the w in
        question is taken on trust: where it is not, an explained decision is one that meets the
        first-order conditions.
    n_variables, n_parameters : int
        n and p.
    inequalities : sequence of callable
        Convex functions x -> a number or a vector, at most 0.
    equalities : sequence of callable
        Affine functions x -> a number or a vector, equal to 0.
    cones : sequence of SecondOrderCone or SemidefiniteCone
    A_eq, A_ub : (m, n) or (B, m, n) array or sparse matrix, optional
        Rows, as of a `LinearProgram`. Rows and bounds alone may differ by instance.
    b_eq, b_ub : float, (m,) or (B, m) array, optional
        Right-hand sides.
    lb, ub : float, (n,) or (B, n) array, optional
        Bounds; there are none unless given.
    start : (n,) array, optional
        Where `solve` begins, for a phi that is not finite everywhere.

    Raises
    ------
    InputError
        If an argument is not such a function or cone.
    ShapeError
        If shapes do not agree.
    """

    constraints: LinearProgram
    """Rows and bounds, affine equalities included."""

    def __init__(
        self,
        objective: Function,
        n_variables: int,
        n_parameters: int,
        *,
        inequalities: Sequence[Function] = (),
        equalities: Sequence[Function] = (),
        cones: Sequence[Any] = (),
        A_eq: Any = None,
        b_eq: Any = None,
        A_ub: Any = None,
        b_ub: Any = None,
        lb: Any = None,
        ub: Any = None,
        start: Any = None,
    ) -> None:
        n, p = _positive(n_variables, "n_variables"), _positive(n_parameters, "n_parameters")
        functions = {"objective": (objective,), "inequalities": tuple(inequalities)}
        functions["equalities"] = tuple(equalities)
        for name, group in functions.items():
            if not all(callable(f) for f in group):
                raise InputError(f"`{name}` must be functions of torch tensors.")
        check_scalar(objective, n, p)
        check_functions(inequalities, n, "inequalities")
        check_functions(equalities, n, "equalities")
        if equalities:
            A_eq, b_eq = _joined(A_eq, b_eq, *affine_rows(tuple(equalities), n))
        lower = np.full(n, -np.inf) if lb is None else np.broadcast_to(lb, np.shape(lb) or n)
        constraints = LinearProgram(A_eq, b_eq, A_ub, b_ub, lower, ub)
        if constraints.n_variables != n:
            raise ShapeError(
                f"Rows have {constraints.n_variables} columns; there are {n} variables."
            )
        self._set(
            objective_function=objective,
            inequalities=tuple(inequalities),
            cones=_checked_cones(cones, n),
            constraints=constraints,
            n_parameters=p,
            start=None if start is None else as_costs(np.atleast_2d(start), n, "start")[0][0],
        )

    objective_function: Function
    inequalities: tuple[Function, ...]
    cones: tuple[Any, ...]
    n_parameters: int
    start: np.ndarray | None
    semidefinite_block = None
    structure = None

    @property
    def n_variables(self) -> int:
        return self.constraints.n_variables

    @property
    def n_instances(self) -> int | None:
        return self.constraints.n_instances

    @property
    def eq_rows(self) -> Rows:
        return self.constraints.eq_rows

    @property
    def ub_rows(self) -> Rows:
        return self.constraints.ub_rows

    @property
    def shape(self) -> tuple[int, ...]:
        return self.constraints.shape

    # --- use ---------------------------------------------------------------------------------

    def solve(
        self, costs: Any, *, time_limit: float | None = None, threads: int | None = None
    ) -> Solution:
        """Best decisions for a batch of parameters, with a status for each.

        Sequential quadratic programs with the cones kept whole, by Clarabel; OPTIMAL only where the
        constraints and the first-order conditions hold and phi does not curve down.

        Parameters
        ----------
        costs : (B, p) array or tensor
            Parameters w.
        time_limit : float, optional
            Seconds for the whole call; instances not reached have status LIMIT.
        threads : int, optional
            As many as there are processors unless given.

        Returns
        -------
        Solution
        """
        return super().solve(costs, time_limit=time_limit, threads=threads)

    def objective(self, costs: Any, decisions: Any) -> np.ndarray:
        """(B,): phi(x, w).

        Parameters
        ----------
        costs : (B, p) array
            Parameters w.
        decisions : (B, n) array

        Returns
        -------
        (B,) array
        """
        w, _ = as_costs(costs, self.n_parameters, "costs")
        X, _ = as_costs(decisions, self.n_variables, "decisions")
        check_pairs(w, X)
        return over_batch(self.objective_function, X, w)

    def gradient(self, X: np.ndarray) -> AffineMap:
        """Parameters -> the gradient of phi in x at decisions (B, n)."""
        return gradient_map(self.objective_function, X, self.n_parameters)

    def tangent(self, X: np.ndarray, tol: float) -> Tangent:
        """The constraints as seen from decisions: tangents of functions and cones become rows."""
        if not (len(X) and (self.inequalities or self.cones)):
            return Tangent(self.constraints)
        values, slopes = values_and_slopes(self.inequalities, X)
        _refuse_unknown(values, slopes)
        _refuse_bent(self.inequalities, X, values)
        touches = [[cone.touch(x, tol) for cone in self.cones] for x in X]
        if self.cones:
            values = np.hstack([values, [[t.value for t in own] for own in touches]])
            more = np.array([[t.gradient for t in own] for own in touches])
            slopes = np.concatenate([slopes, more], axis=1)
        rows = _with_tangents(self.constraints, X, values, slopes)
        corners = [[t.corner for t in own if t.corner is not None] for own in touches]
        return Tangent(rows, Normals(corners) if any(corners) else None)

    def is_strictly_inside(self, x: np.ndarray, tol: float) -> bool:
        """Whether a decision obeys every function and every cone with room to spare.

        Parameters
        ----------
        x : (n,) array
        tol : float
            The room.

        Returns
        -------
        bool
        """
        values, _ = values_and_slopes(self.inequalities, x[None])
        touches = [cone.touch(x, tol) for cone in self.cones]
        inside = bool((values < -tol).all())
        return inside and all(t.corner is None and t.value < -tol for t in touches)

    def constraint_violation(self, decisions: Any) -> Any:
        """(B,): the largest relative violation of any row, bound, function or cone.

        Parameters
        ----------
        decisions : (B, n) array or tensor

        Returns
        -------
        (B,) array or tensor
            0 where a decision obeys every constraint.
        """
        X, restore = as_costs(decisions, self.n_variables, "decisions")
        self.check_batch(len(X), "decisions")
        return restore(relative_violation(self.tangent(X, 0.0).rows, X))

    def check_batch(self, size: int, name: str) -> None:
        """Refuse a batch of the wrong length; a shared problem takes any length."""
        self.constraints.check_batch(size, name)

    def cached(self, key: str, build: Any) -> Any:
        """See `LinearProgram.cached`."""
        return self.constraints.cached(key, build)

    def __getitem__(self, index: Any) -> ConvexProgram:
        """The problem of the chosen instances: an integer, slice, mask or integer array."""
        if self.n_instances is None:
            return self
        return self.replaced(constraints=self.constraints[as_choice(index, self.n_instances)])

    __iter__ = None

    def __repr__(self) -> str:
        count = "" if self.n_instances is None else f", {self.n_instances} instances"
        return (
            f"ConvexProgram({self.n_variables} variables, {self.n_parameters} parameters, "
            f"{self.eq_rows.shape[0]} equalities, {self.ub_rows.shape[0]} inequalities, "
            f"{len(self.inequalities)} functions, {len(self.cones)} cones{count})"
        )


def _positive(value: Any, name: str) -> int:
    if not (isinstance(value, int | np.integer) and value >= 1):
        raise InputError(f"`{name}` must be a whole number of at least 1; got {value!r}.")
    return int(value)


def _checked_cones(cones: Sequence[Any], n: int) -> tuple[Any, ...]:
    for i, cone in enumerate(cones):
        if not isinstance(cone, SecondOrderCone | SemidefiniteCone):
            raise InputError(
                f"`cones[{i}]` must be a SecondOrderCone or a SemidefiniteCone; got "
                f"{type(cone).__name__}."
            )
        if cone.n_variables != n:
            raise ShapeError(f"`cones[{i}]` is of {cone.n_variables} variables; there are {n}.")
    return tuple(cones)


def _joined(A: Any, b: Any, more: np.ndarray, right: np.ndarray) -> tuple[Any, Any]:
    """Rows given as matrices and those read from functions, as one."""
    if A is None:
        return more, right
    given = LinearProgram(A, b)  # for its checks
    rows = given.eq_rows
    own = np.stack([rows.matrix(i).toarray() for i in range(len(rows.data))])
    added = np.broadcast_to(more, (len(own), *more.shape))
    A, b = np.concatenate([own, added], axis=1), given.b_eq
    right = np.broadcast_to(right, (*b.shape[:-1], len(right)))
    return (A if rows.per_instance else A[0]), np.concatenate([b, right], axis=-1)


def _with_tangents(
    problem: LinearProgram, X: np.ndarray, values: np.ndarray, slopes: np.ndarray
) -> LinearProgram:
    """The rows of the problem and below them values + slopes (. - x) <= 0."""
    right = np.einsum("bkn,bn->bk", slopes, X) - values
    ub = problem.ub_rows
    own = [ub.matrix(b).toarray() for b in range(len(ub.data))]
    stacked = np.concatenate([np.broadcast_to(np.stack(own), (len(X), *ub.shape)), slopes], axis=1)
    b_ub = np.hstack([np.broadcast_to(problem.b_ub, (len(X), ub.shape[0])), right])
    return LinearProgram(problem.eq_rows, problem.b_eq, stacked, b_ub, problem.lb, problem.ub)


def _refuse_unknown(values: np.ndarray, slopes: np.ndarray) -> None:
    bad = np.argwhere(~(np.isfinite(values) & np.isfinite(slopes).all(axis=2)))
    if bad.size:
        b, i = (int(k) for k in bad[0])
        raise InputError(
            f"Inequality function {i} has no finite value and gradient at decision {b}. A norm "
            "at 0 has none: give it as a SecondOrderCone, or square it."
        )


def _refuse_bent(functions: tuple[Function, ...], X: np.ndarray, values: np.ndarray) -> None:
    """Compare each function half-way between two decisions with its chord."""
    if len(X) < 2 or not functions:
        return
    middle, _ = values_and_slopes(functions, 0.5 * (X[1:] + X[:-1]))
    chord = 0.5 * (values[1:] + values[:-1])
    size = 1.0 + np.abs(values[1:]) + np.abs(values[:-1])
    bad = np.argwhere(middle > chord + STRAIGHT * size)
    if bad.size:
        b, i = (int(k) for k in bad[0])
        raise InputError(
            f"Inequality function {i} is not convex: half-way between decisions {b} and {b + 1} "
            f"it is {middle[b, i]:.6g}, above the {chord[b, i]:.6g} of its chord."
        )
