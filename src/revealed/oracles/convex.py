"""Convex problems given as functions: each instance in units of its own.

Solvers have absolute tolerances, so what they are given should be of size 1: x, phi and each
inequality function are divided by what they turn out to be at the answer, and the answer is looked
for again from there until that stays the same. What is proven of it is then relative to its data.
Letters: B instances, n variables, k values of inequality functions.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from .._common.arrays import as_costs
from .._common.conic import in_threads, load_clarabel
from ..problems.derivatives import second_order, tensor, value_and_gradient, values_and_slopes
from ..problems.solution import Solution, SolveStatus
from .calls import deadline_after, thread_count
from .curved import CONVEX
from .quadratic import polyhedron_rows
from .sequential import WHAT, Smooth, minimize, nearest_to_zero
from .units import least_size, limit_size, power_of_two, with_even_rows

if TYPE_CHECKING:
    from ..problems.convex import ConvexProgram

ROUNDS = 4
"""Choices of units, at most."""
CLOSE = 16.0
"""Units that differ by less than this factor are as good as the same."""
NOTHING = 1e-9
"""An x this small, in its units, is 0 and has no size to learn from."""


class Units(NamedTuple):
    """What x, phi and the values of the inequality functions are measured in."""

    x: float
    phi: float
    functions: np.ndarray
    """(k,)"""

    def near(self, other: Units) -> bool:
        """Whether another choice would make no difference."""
        mine, theirs = (np.array([u.x, u.phi, *u.functions]) for u in (self, other))
        return bool((np.maximum(mine / theirs, theirs / mine) < CLOSE).all())


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
            status[b], x = _minimize(one, phi, w[b], deadline)
            if status[b] == SolveStatus.OPTIMAL and _curves_down(phi, x, w[b]):
                status[b] = SolveStatus.FAILED
            if status[b] == SolveStatus.OPTIMAL:
                X[b], value[b] = x, value_and_gradient(phi, x, w[b])[0]

    in_threads(work, len(w), workers)
    return Solution(restore(X), restore(value), restore(status))


def nearest_feasible(problem: ConvexProgram, X: np.ndarray) -> np.ndarray:
    """(B, n): the nearest decisions that obey the constraints; NaN where there is none."""
    load_clarabel("Repairing decisions of a ConvexProgram")

    def off(x: Any, center: Any) -> Any:
        return 0.5 * (x - center).square().sum()

    result = np.full(X.shape, np.nan)
    for b, x in enumerate(X):
        status, found = _minimize(problem[np.array([b])], off, x, np.inf)
        if status == SolveStatus.OPTIMAL:
            result[b] = found
    return result


def _minimize(
    one: ConvexProgram, objective: Callable[..., Any], w: np.ndarray, deadline: float
) -> tuple[SolveStatus, np.ndarray]:
    rows = _conic_rows(one)
    unit = _expected_size(one, rows)
    status, x = SolveStatus.OPTIMAL, one.start
    if x is None:
        status, x = nearest_to_zero(rows._replace(right=rows.right / unit), one.n_variables)
        x = unit * x
    if status is not SolveStatus.OPTIMAL:
        return status, x
    units = _measured(one, objective, w, x, unit)
    for _ in range(ROUNDS):
        scaled = _in_units(one, objective, rows, units)
        status, y = minimize(scaled, w, x / units.x, deadline)
        if status not in (SolveStatus.OPTIMAL, SolveStatus.FAILED) or not np.isfinite(y).all():
            return status, units.x * y
        x = units.x * y
        found = _measured(one, objective, w, x, units.x)
        if status is SolveStatus.OPTIMAL and units.near(found):
            break
        units = found
    return status, x


def _measured(
    one: ConvexProgram, objective: Callable[..., Any], w: np.ndarray, x: np.ndarray, unit: float
) -> Units:
    """Sizes at x: its own (or `unit`, where it is 0), and what phi and the functions change by over
    that, or are."""
    largest = float(np.abs(x).max(initial=0.0))
    size = power_of_two(largest) if largest > NOTHING * unit else unit
    slope = np.abs(value_and_gradient(objective, x, w)[1]).max()
    curvature = np.abs(second_order(objective, (), x, w, np.zeros(0))).max()
    phi = max(
        (part for part in (slope * size, curvature * size**2) if np.isfinite(part)), default=0
    )
    values, slopes = (part[0] for part in values_and_slopes(one.inequalities, x[None]))
    own = np.maximum(np.abs(values), np.abs(slopes).max(axis=1, initial=0.0) * size)
    return Units(size, power_of_two(phi), np.array([power_of_two(part) for part in own]))


def _in_units(
    one: ConvexProgram, objective: Callable[..., Any], rows: Smooth, units: Units
) -> Smooth:
    """The problem of x / unit, with phi and the functions of size 1."""
    torch, divisor = sys.modules["torch"], tensor(units.functions)

    def every(y: Any) -> Any:
        return torch.cat([f(units.x * y).reshape(-1) for f in one.inequalities]) / divisor

    return rows._replace(
        objective=lambda y, w: objective(units.x * y, w) / units.phi,
        functions=(every,) if one.inequalities else (),
        right=rows.right / units.x,
    )


def _expected_size(one: ConvexProgram, rows: Smooth) -> float:
    """The size of x by the right-hand sides, or else its start, or else how far functions are
    from binding at 0."""
    n_zero = rows.cones[0][1]
    known = least_size(rows.right[:n_zero], rows.right[n_zero:]) or limit_size(rows.right[n_zero:])
    if known:
        return power_of_two(known)
    if one.start is not None:
        return power_of_two(np.abs(one.start).max())
    zero = np.zeros(one.n_variables)
    values, slopes = values_and_slopes(one.inequalities, zero[None])
    bends = second_order(_nothing, one.inequalities, zero, zero, np.ones(values.shape[1]))
    value, slope, bend = (np.abs(part).max(initial=0.0) for part in (values, slopes, bends))
    with np.errstate(divide="ignore", invalid="ignore"):
        return power_of_two(np.fmin(value / slope, np.sqrt(value / bend)))


def _curves_down(objective: Any, x: np.ndarray, w: np.ndarray) -> bool:
    """Whether x may be a maximum along some line: first-order conditions cannot decide."""
    H = second_order(objective, (), x, w, np.zeros(0))
    if not np.isfinite(H).all():  # at the edge of a domain
        return False
    return bool(np.linalg.eigvalsh(0.5 * (H + H.T))[0] < -CONVEX * np.abs(H).max())


def _conic_rows(one: ConvexProgram) -> Smooth:
    """Rows, bounds and cones, the largest entry of each row and each cone in [1/2, 1)."""
    A, b, n_zero = polyhedron_rows(one.constraints)
    even, sides = with_even_rows(A, b)
    blocks, right = [even], [sides]
    cones = [("zero", n_zero), ("nonnegative", len(b) - n_zero)]
    for cone in one.cones:
        rows, own, kind = cone.conic()
        size = power_of_two(np.abs(rows).max(initial=0.0))
        blocks.append(sparse.csc_array(rows / size))
        right.append(own / size)
        cones.append(kind)
    return Smooth(_nothing, (), sparse.vstack(blocks, format="csc"), np.concatenate(right), cones)


def _nothing(x: Any, w: Any) -> Any:
    return 0.0 * x.sum()
