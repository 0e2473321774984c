"""Inverse optimization under the worst distribution near the data, as one linear program.

The suboptimality loss of a linear hypothesis c = Theta z is <c, x> - min_y <c, y>, convex in Theta
and affine in the observed decision x. Its expectation under the worst distribution Q of decisions
within a Wasserstein ball (1-norm, radius `radius`, decisions feasible) around the data is

    min_{lambda >= 0}  radius lambda
        + 1/B sum_i  max_{x in X} { <c_i, x> - lambda |x - x_i|_1 }  -  min_{y in X} <c_i, y>

and both inner programs have duals, so the whole is a linear program in Theta, lambda and
multipliers. Letters: B samples, n cost entries, d features, m rows.

Source: Mohajerin Esfahani, Shafieezadeh-Abadeh, Hanasusanto and Kuhn, *Data-Driven Inverse
Optimization with Imperfect Information* (Mathematical Programming, 2018). There contexts move the
constraints and the coefficients are one vector; here contexts enter the cost, so the ball moves
decisions and leaves contexts where they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from revealed.errors import InputError, RevealedError
from revealed.problems.linear import LinearProgram


@dataclass(frozen=True, eq=False)
class RobustFit:
    """What the program has found."""

    coef: np.ndarray
    """(n, d): the predicted cost is coef @ z."""
    value: float
    """The mean suboptimality loss under the worst distribution in the ball."""

    def predict_cost(self, Z: Any) -> np.ndarray:
        """(B, n) costs of contexts (B, d)."""
        return np.asarray(Z, float) @ self.coef.T


def robust_inverse(problem: LinearProgram, Z: Any, X: Any, *, radius: float) -> RobustFit:
    """The coefficients of least worst-case suboptimality.

    Theta = 0 explains everything, so a normalization must exclude it. The authors ask |Theta| = 1
    in the maximum norm, which is 2 n d programs; here it is one linear condition that is free of
    what no decision can tell: under their own costs the observed decisions are better than the mean
    decision by 1 on average, 1/B sum_i <c_i, mean x - x_i> = 1.
    """
    Z, X = np.asarray(Z, float), np.asarray(X, float)
    _check(problem, Z, X, radius)
    program = _Program(problem, Z, X)
    apart = (X.mean(0) - X).T @ Z / len(Z)  # (n, d): the normalization as a form in Theta
    if not np.abs(apart).max() > 1e-12:
        raise InputError(
            "The decisions do not vary with the contexts, so no linear cost can prefer each to the "
            "mean decision. Give decisions taken in contexts that differ."
        )
    found = program.minimize(radius, apart.ravel())
    return RobustFit(found.x[: apart.size].reshape(apart.shape), float(found.fun))


def worst_case(problem: LinearProgram, coef: Any, Z: Any, X: Any, *, radius: float) -> float:
    """The worst-case mean suboptimality of given coefficients (n, d), by the primal program.

    As the loss is affine in the decision and the feasible set convex, the worst distribution moves
    each observed decision to a single point: maximize 1/B sum <c_i, x_i'> over feasible x_i' with
    1/B sum |x_i' - x_i|_1 <= radius.
    """
    Z, X = np.asarray(Z, float), np.asarray(X, float)
    B, n = X.shape
    C = Z @ np.asarray(coef, float).T
    A_eq, A_ub = (rows.matrix(0).tocsr() for rows in (problem.eq_rows, problem.ub_rows))
    eye = sp.identity(B * n)
    move = sp.vstack([sp.hstack([eye, -eye]), sp.hstack([-eye, -eye])])
    far = sp.hstack([sp.csr_array((1, B * n)), sp.csr_array(np.full((1, B * n), 1.0 / B))])
    blocks = [move, far]
    limits = [X.ravel(), -X.ravel(), [radius]]
    if problem.ub_rows.shape[0]:
        own = sp.kron(sp.identity(B), A_ub)
        blocks.append(sp.hstack([own, sp.csr_array(own.shape)]))
        limits.append(np.tile(problem.b_ub, B))
    equal = None
    if problem.eq_rows.shape[0]:
        own = sp.kron(sp.identity(B), A_eq)
        equal = sp.hstack([own, sp.csr_array(own.shape)])
    low, high = (np.broadcast_to(side, n) for side in (problem.lb, problem.ub))
    bounds = [*zip(np.tile(low, B), np.tile(high, B), strict=True), *[(0, None)] * (B * n)]
    found = linprog(
        np.r_[-C.ravel() / B, np.zeros(B * n)],
        A_ub=sp.vstack(blocks).tocsr(),
        b_ub=np.concatenate(limits),
        A_eq=None if equal is None else equal.tocsr(),
        b_eq=None if equal is None else np.tile(problem.b_eq, B),
        bounds=bounds,
    )
    _check_solved(found)
    return -float(found.fun) - float(np.asarray(problem.solve(C).objective).mean())


class _Program:
    """The columns and rows of the linear program.

    Columns: Theta (n d), lambda, then for each sample the multipliers of `max` and of `min`.
    """

    def __init__(self, problem: LinearProgram, Z: np.ndarray, X: np.ndarray) -> None:
        self.Z, self.X = Z, X
        self.B, self.n = X.shape
        low, high = (np.broadcast_to(side, self.n) for side in (problem.lb, problem.ub))
        eye = np.eye(self.n)
        # <row, x> <= side for every inequality of X; the equalities have free multipliers.
        A_eq, A_ub = (rows.matrix(0).toarray() for rows in (problem.eq_rows, problem.ub_rows))
        at_low, at_high, binds = np.isfinite(low), np.isfinite(high), np.isfinite(problem.b_ub)
        self.rows = np.vstack([A_eq, A_ub[binds], eye[at_high], -eye[at_low]])
        b_eq = np.asarray(problem.b_eq, float)
        self.sides = np.r_[b_eq, problem.b_ub[binds], high[at_high], -low[at_low]]
        self.free = np.arange(len(self.sides)) < len(b_eq)

    def minimize(self, radius: float, normal: np.ndarray) -> Any:
        B, n, k = self.B, self.n, len(self.sides)
        n_theta = normal.size
        # <c_i, x> for sample i: row (i, j) of this times Theta is the entry j of c_i.
        cost = sp.kron(self.Z, sp.identity(n), format="csr")  # columns by feature, then entry
        order = np.arange(n_theta).reshape(n, -1).T.ravel()  # ours are by entry, then feature
        cost = cost[:, np.argsort(order)]
        turned = sp.kron(sp.identity(B), self.rows.T, format="csr")  # (B n, B k)
        blank = sp.csr_array((B * n, B * k))
        one = sp.csr_array(np.ones((B * n, 1)))
        none = sp.csr_array((B * n, 1))
        # max: |c - rows^T u| <= lambda; min: c + rows^T w = 0, value -<sides, w>.
        above = sp.hstack([cost, -one, -turned, blank])
        below = sp.hstack([-cost, -one, turned, blank])
        equal = sp.hstack([cost, none, blank, turned])
        scale = sp.hstack([sp.csr_array(normal[None]), sp.csr_array((1, 1 + 2 * B * k))])
        at_decisions = self.sides - self.X @ self.rows.T  # (B, k)
        objective = np.r_[
            (self.X.T @ self.Z / B).ravel(),
            radius,
            at_decisions.ravel() / B,
            np.tile(self.sides, B) / B,
        ]
        signs = [(None, None) if free else (0, None) for free in self.free]
        found = linprog(
            objective,
            A_ub=sp.vstack([above, below]).tocsr(),
            b_ub=np.zeros(2 * B * n),
            A_eq=sp.vstack([equal, scale]).tocsr(),
            b_eq=np.r_[np.zeros(B * n), 1.0],
            bounds=[*[(None, None)] * n_theta, (0, None), *signs * (2 * B)],
        )
        _check_solved(found)
        return found


def _check(problem: LinearProgram, Z: np.ndarray, X: np.ndarray, radius: float) -> None:
    if not isinstance(problem, LinearProgram) or problem.n_instances is not None:
        raise InputError("`problem` must be a LinearProgram that all samples share.")
    if Z.ndim != 2 or X.shape != (len(Z), problem.n_variables):
        raise InputError(
            f"`Z` must be (B, d) and `X` (B, {problem.n_variables}); got {Z.shape} and {X.shape}."
        )
    if not radius >= 0:
        raise InputError(f"`radius` must be at least 0; got {radius!r}.")


def _check_solved(found: Any) -> None:
    if found.status != 0:
        raise RevealedError(f"HiGHS has not solved the linear program: {found.message}")
