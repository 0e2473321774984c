"""Convex problems by quadratic programs one after the other, in units in which all is of size 1.

At x, phi is replaced by its second-order expansion (with the curvature of the constraints at their
multipliers), the functions by their tangents; Clarabel solves that, and a line search along the
step lowers phi plus a price for broken constraints. Near the answer these are Newton's steps.
Letters: n variables, k values of inequality functions.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from .._common.conic import Cone, ConicAnswer, conditions_left, onto_cones, solve_best, solve_conic
from ..problems.derivatives import second_order, value_and_gradient, values_and_slopes
from ..problems.solution import SolveStatus

MOST_STEPS = 100
MOST_HALVINGS = 40
STILL = 1e-10
"""A step this short, relative to 1 + |x|, is the last."""
SHORT = 1e-6
"""Steps this short that no longer halve are the rounding of the quadratic programs."""
STEEP = 1e3
"""How much larger a curvature may get in one step."""
FAR = 1e9
"""A length of x beyond which a problem without a bottom is called unbounded."""
CHEAP = 1e-3
"""The least price of a broken constraint. A price far above the multiplier would refuse good steps
along a curved constraint, which break it by the square of their length."""
GOAL = 1e-12
"""Of the first-order conditions of each quadratic program; missed, another attempt is made."""
FEASIBLE = 1e-7
"""What a decision that is called optimal may break its constraints by."""
STATIONARY = 1e-6
"""What may be left over of its gradient."""
WHAT = "Solving a ConvexProgram"


class Smooth(NamedTuple):
    """min phi(x, w) with functions(x) <= 0 and right - A x in a product of cones."""

    objective: Callable[..., Any]
    functions: tuple[Callable[..., Any], ...]
    A: Any
    right: np.ndarray
    cones: list[Cone]

    def broken(self, x: np.ndarray) -> float:
        """How far x is from obeying the constraints."""
        slack = self.right - self.A @ x
        away = np.abs(slack - onto_cones(slack, self.cones)).max(initial=0.0)
        own = values_and_slopes(self.functions, x[None])[0]
        worst = max(float(away), float(own.max(initial=0.0)))
        return worst if np.isfinite(own).all() else np.inf


def nearest_to_zero(problem: Smooth, n: int) -> tuple[SolveStatus, np.ndarray]:
    """The point of least length in rows and cones."""
    program = (sparse.eye_array(n), np.zeros(n), problem.A, problem.right, problem.cones)
    answer = solve_conic(*program, what=WHAT)
    return (SolveStatus.INFEASIBLE if answer.infeasible else SolveStatus.OPTIMAL), answer.x


def minimize(
    problem: Smooth, w: np.ndarray, x: np.ndarray, deadline: float
) -> tuple[SolveStatus, np.ndarray]:
    """The answer for one w, beginning at x; what is returned with another status than OPTIMAL is
    where it ended."""
    objective, functions = problem.objective, problem.functions
    k = values_and_slopes(functions, x[None])[0].shape[1]
    mu, damping, before = np.ones(k), 0.0, np.inf
    for _ in range(MOST_STEPS):
        if time.monotonic() > deadline:
            return SolveStatus.LIMIT, x
        value, gradient = value_and_gradient(objective, x, w)
        g, J = (part[0] for part in values_and_slopes(functions, x[None]))
        H = _positive(second_order(objective, functions, x, w, mu))
        size = 1.0 + np.abs(H).max()
        H = H + damping * np.eye(len(x))
        answer, left = _step(problem, x, gradient, H, g, J)
        if answer.unbounded:
            if damping > 1e6 * size or np.linalg.norm(x) > FAR:
                return SolveStatus.UNBOUNDED, x
            damping = max(10.0 * damping, 1e-3 * size)
            continue
        if answer.infeasible:
            return SolveStatus.INFEASIBLE, x
        d, mu = answer.x, np.maximum(answer.z[len(answer.z) - k :], 0.0)
        length = float(np.linalg.norm(d)) / (1.0 + float(np.linalg.norm(x)))
        if length <= STILL or (length <= SHORT and length > 0.5 * before):
            return _judged(problem, x + d if length <= before else x, d, H, gradient, left)
        before = length
        share = _line_search(objective, functions, w, x, d, value, g, mu, size)
        if share == 0.0:
            return _judged(problem, x, d, H, gradient, left)
        x, damping = x + share * d, 0.1 * damping if damping > 1e-12 else 0.0
    return SolveStatus.FAILED, x


def _judged(
    problem: Smooth,
    x: np.ndarray,
    d: np.ndarray,
    H: np.ndarray,
    gradient: np.ndarray,
    left: float,
) -> tuple[SolveStatus, np.ndarray]:
    """OPTIMAL where x obeys the constraints and the multipliers of the last program, whose gradient
    is gradient + H d and whose own conditions hold but for `left`, leave nothing of that at x."""
    moved = np.abs(H @ d).max(initial=0.0) / (1.0 + np.abs(gradient).max(initial=0.0))
    short = np.linalg.norm(d) <= SHORT * (1.0 + np.linalg.norm(x))
    good = short and max(moved, left) <= STATIONARY
    good = good and problem.broken(x) <= FEASIBLE
    return (SolveStatus.OPTIMAL if good else SolveStatus.FAILED), x


def _line_search(
    objective: Any,
    functions: Any,
    w: np.ndarray,
    x: np.ndarray,
    d: np.ndarray,
    value: float,
    g: np.ndarray,
    mu: np.ndarray,
    size: float,
) -> float:
    """The first of 1, 1/2, 1/4 ... that lowers phi plus a price for what is broken; 0 if none.

    A step to where the curvature is far above its present `size` is too long as well: the edge of
    a domain is near (x log x at 0), from which Newton's steps do not come back.
    """
    price = 2.0 * mu.max(initial=0.0) + CHEAP

    def merit(share: float) -> float:
        there = x + share * d
        now = value_and_gradient(objective, there, w)[0] if share else value
        own = values_and_slopes(functions, there[None])[0][0] if share else g
        return now + price * float(np.maximum(own, 0.0).sum())

    before, share = merit(0.0), 1.0
    for _ in range(MOST_HALVINGS):
        after = merit(share)
        lower = after <= before + 1e-14 * (1.0 + abs(before))  # NaN is not
        if lower and _curvature(objective, functions, x + share * d, w, mu) <= STEEP * size:
            return share
        share *= 0.5
    return 0.0


def _curvature(
    objective: Any, functions: Any, x: np.ndarray, w: np.ndarray, mu: np.ndarray
) -> float:
    return float(np.abs(second_order(objective, functions, x, w, mu)).max())


def _positive(H: np.ndarray) -> np.ndarray:
    """Without what rounding, or a w for which phi is not convex, has left below 0."""
    H = 0.5 * (H + H.T)
    values, vectors = np.linalg.eigh(H)
    if values[0] >= 0:
        return H
    return (vectors * np.maximum(values, 0.0)) @ vectors.T


def _step(
    problem: Smooth,
    x: np.ndarray,
    gradient: np.ndarray,
    H: np.ndarray,
    g: np.ndarray,
    J: np.ndarray,
) -> tuple[ConicAnswer, float]:
    """The answer of the quadratic program at x, and what is left of its conditions."""
    A = sparse.vstack([problem.A, sparse.csc_array(J)], format="csc")
    right = np.concatenate([problem.right - problem.A @ x, -g])
    cones = [*problem.cones, ("nonnegative", len(g))]
    size = max(np.abs(H).max(initial=0.0), np.abs(gradient).max(initial=0.0)) or 1.0
    program = (sparse.csc_array(H / size), gradient / size, A, right, cones)

    def judge(found: ConicAnswer) -> tuple[ConicAnswer, float]:
        return found, max(conditions_left(*program, found))

    answer, left = solve_best(*program, what=WHAT, judge=judge, goal=GOAL)
    return answer._replace(z=answer.z * size), left
