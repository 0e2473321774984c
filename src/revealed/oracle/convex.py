"""Convex problems given as functions: quadratic programs one after the other, cones kept whole.

At x, phi is replaced by its second-order expansion (with the curvature of the constraints at their
multipliers), the functions by their tangents; Clarabel solves that, and a line search along the
step lowers phi plus a price for broken constraints. Near the answer these are Newton's steps.
Letters: n variables, k inequality functions.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from .._arrays import as_costs
from .._conic import (
    ConicAnswer,
    conditions_left,
    in_threads,
    load_clarabel,
    rows_of,
    solve_best,
    solve_conic,
)
from ..derivatives import second_order, value_and_slope, values_and_slopes
from .limits import deadline_after, thread_count
from .quadratic import FEASIBLE, STATIONARY, polyhedron_rows
from .solution import Solution, SolveStatus

if TYPE_CHECKING:
    from ..convex import ConvexProgram

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
GOAL = 1e-12
"""Of the first-order conditions of each quadratic program; missed, another attempt is made."""
WHAT = "Solving a ConvexProgram"


class _Rows(NamedTuple):
    """Rows, bounds and cones of one instance: right - A x in the cones."""

    A: Any
    right: np.ndarray
    cones: list[tuple[str, int]]


def solve_convex(
    problem: ConvexProgram,
    costs: Any,
    *,
    time_limit: float | None = None,
    threads: int | None = None,
) -> Solution:
    """Best decisions for parameters (B, p); see `ConvexProgram.solve`."""
    w, restore = as_costs(costs, problem.n_parameters)
    problem.check_batch(len(w), "costs")
    load_clarabel(WHAT)
    deadline, workers = deadline_after(time_limit), thread_count(threads)
    X = np.full((len(w), problem.n_variables), np.nan)
    value = np.full(len(w), np.nan)
    status = np.full(len(w), SolveStatus.LIMIT, np.int8)

    def work(b: int) -> None:
        if time.monotonic() < deadline:
            one = problem[np.array([b])]
            phi = problem.objective_function
            status[b], x = _minimise(one, phi, w[b], deadline)
            if status[b] == SolveStatus.OPTIMAL and _curves_down(phi, x, w[b]):
                status[b] = SolveStatus.FAILED
            if status[b] == SolveStatus.OPTIMAL:
                X[b], value[b] = x, value_and_slope(phi, x, w[b])[0]

    in_threads(work, len(w), workers)
    return Solution(restore(X), restore(value), restore(status))


def nearest_feasible(problem: ConvexProgram, X: np.ndarray) -> np.ndarray:
    """(B, n): the nearest decisions that obey the constraints; NaN where there is none."""
    load_clarabel("Repairing decisions of a ConvexProgram")

    def off(x: Any, centre: Any) -> Any:
        return 0.5 * (x - centre).square().sum()

    result = np.full(X.shape, np.nan)
    for b, x in enumerate(X):
        status, found = _minimise(problem[np.array([b])], off, x, np.inf)
        if status == SolveStatus.OPTIMAL:
            result[b] = found
    return result


def _minimise(
    one: ConvexProgram, objective: Callable[..., Any], w: np.ndarray, deadline: float
) -> tuple[SolveStatus, np.ndarray]:
    rows = _conic_rows(one)
    status, x = _start(one, rows)
    if status is not SolveStatus.OPTIMAL:
        return status, x
    functions = one.inequalities
    k = values_and_slopes(functions, x[None])[0].shape[1]
    mu, damping, before = np.ones(k), 0.0, np.inf
    for _ in range(MOST_STEPS):
        if time.monotonic() > deadline:
            return SolveStatus.LIMIT, x
        value, slope = value_and_slope(objective, x, w)
        g, J = (part[0] for part in values_and_slopes(functions, x[None]))
        H = _positive(second_order(objective, functions, x, w, mu))
        size = 1.0 + np.abs(H).max()
        H = H + damping * np.eye(len(x))
        answer, left = _step(rows, x, slope, H, g, J)
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
            return _judged(one, x + d if length <= before else x, d, H, slope, left)
        before = length
        share = _line_search(objective, functions, w, x, d, value, g, mu, size)
        if share == 0.0:
            return _judged(one, x, d, H, slope, left)
        x, damping = x + share * d, 0.1 * damping if damping > 1e-12 else 0.0
    return SolveStatus.FAILED, x


def _judged(
    one: ConvexProgram,
    x: np.ndarray,
    d: np.ndarray,
    H: np.ndarray,
    slope: np.ndarray,
    left: float,
) -> tuple[SolveStatus, np.ndarray]:
    """OPTIMAL where x obeys the constraints and the multipliers of the last program, whose gradient
    is slope + H d and whose own conditions hold but for `left`, leave nothing of that at x."""
    moved = np.abs(H @ d).max(initial=0.0) / (1.0 + np.abs(slope).max(initial=0.0))
    short = np.linalg.norm(d) <= SHORT * (1.0 + np.linalg.norm(x))
    good = short and max(moved, left) <= STATIONARY
    good = good and one.constraint_violation(x[None])[0] <= FEASIBLE * 10
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
    price = 2.0 * mu.max(initial=0.0) + 1.0

    def merit(share: float) -> float:
        there = x + share * d
        now = value_and_slope(objective, there, w)[0] if share else value
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


def _curves_down(objective: Any, x: np.ndarray, w: np.ndarray) -> bool:
    """Whether x may be a maximum along some line: first-order conditions cannot tell."""
    H = second_order(objective, (), x, w, np.zeros(0))
    if not np.isfinite(H).all():  # at the edge of a domain
        return False
    return bool(np.linalg.eigvalsh(0.5 * (H + H.T))[0] < -1e-7 * (1.0 + np.abs(H).max()))


def _positive(H: np.ndarray) -> np.ndarray:
    """Without what rounding, or a w for which phi is not convex, has left below 0."""
    H = 0.5 * (H + H.T)
    values, vectors = np.linalg.eigh(H)
    if values[0] >= 0:
        return H
    return (vectors * np.maximum(values, 0.0)) @ vectors.T


def _conic_rows(one: ConvexProgram) -> _Rows:
    A, b, n_zero = polyhedron_rows(one.constraints)
    parts, right = [A], [b]
    cones = [("zero", n_zero), ("nonnegative", len(b) - n_zero)]
    for cone in one.cones:
        rows, own, kind = cone.conic()
        parts.append(sparse.csc_array(rows))
        right.append(own)
        cones.append(kind)
    return _Rows(sparse.vstack(parts, format="csc"), np.concatenate(right), cones)


def _start(one: ConvexProgram, rows: _Rows) -> tuple[SolveStatus, np.ndarray]:
    """The start given, or the point of least length in rows and cones."""
    n = one.n_variables
    if one.start is not None:
        return SolveStatus.OPTIMAL, one.start.copy()
    eye = sparse.eye_array(n)
    answer = solve_conic(eye, np.zeros(n), rows.A, rows.right, rows.cones, what=WHAT)
    return (SolveStatus.INFEASIBLE if answer.infeasible else SolveStatus.OPTIMAL), answer.x


def _step(
    rows: _Rows, x: np.ndarray, slope: np.ndarray, H: np.ndarray, g: np.ndarray, J: np.ndarray
) -> tuple[ConicAnswer, float]:
    """The answer of the quadratic program at x, and what is left of its conditions."""
    A = sparse.vstack([rows.A, sparse.csc_array(J)], format="csc")
    right = np.concatenate([rows.right - rows.A @ x, -g])
    cones = [*rows.cones, ("nonnegative", len(g))]
    assert sum(rows_of(cone) for cone in cones) == len(right)
    size = max(np.abs(H).max(initial=0.0), np.abs(slope).max(initial=0.0)) or 1.0
    program = (sparse.csc_array(H / size), slope / size, A, right, cones)

    def judge(found: ConicAnswer) -> tuple[ConicAnswer, float]:
        return found, max(conditions_left(*program, found))

    answer, left = solve_best(*program, what=WHAT, judge=judge, goal=GOAL)
    return answer._replace(z=answer.z * size), left
