"""Small integer programs with a list of all feasible decisions, and projections by that list."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import clarabel
import numpy as np
from scipy import sparse

import revealed as rv
from revealed.problems.structures import TourStructure

KINDS = ("knapsack", "cover", "assignment", "tour", "general", "routes")


class Listed(NamedTuple):
    problem: rv.IntegerProgram
    points: np.ndarray
    """(N, n) all feasible decisions"""


def listed(kind: str, seed: int) -> Listed:
    rng = np.random.default_rng([KINDS.index(kind), seed])
    problem = _BUILD[kind](rng)
    return Listed(problem, points_of(problem))


def points_of(problem: rv.IntegerProgram) -> np.ndarray:
    values = [np.arange(lo, hi + 1) for lo, hi in zip(problem.lb, problem.ub, strict=True)]
    if problem.n_variables <= 15 and not isinstance(problem.structure, TourStructure):
        box = np.array(list(itertools.product(*values)), float)
    else:  # tours: choose as many edges as there are nodes
        n, count = problem.n_variables, problem.structure.n_nodes
        chosen = np.array(list(itertools.combinations(range(n), count)))
        box = np.zeros((len(chosen), n))
        np.put_along_axis(box, chosen, 1.0, axis=1)
    box = box[np.asarray(problem.relaxation.constraint_violation(box)) <= 1e-9]
    return box[np.asarray(problem.constraint_violation(box)) <= 1e-9]


def _knapsack(rng: np.random.Generator) -> rv.IntegerProgram:
    n, k = int(rng.integers(4, 10)), int(rng.integers(1, 4))
    return rv.problems.binary_knapsack(rng.uniform(0, 8, (k, n)), rng.uniform(5, 20, k))


def _cover(rng: np.random.Generator) -> rv.IntegerProgram:
    matrix = rng.random((int(rng.integers(2, 7)), int(rng.integers(4, 10)))) < 0.45
    matrix[~matrix.any(axis=1), 0] = True
    return rv.problems.set_cover(matrix)


def _assignment(rng: np.random.Generator) -> rv.IntegerProgram:
    side = np.kron(np.eye(3), np.ones(3)), np.kron(np.ones(3), np.eye(3))
    weight = rng.integers(0, 6, 9).astype(float)
    room = weight[[0, 4, 8]].sum() + rng.integers(0, 4)  # one assignment at least
    return rv.IntegerProgram(np.vstack(side), 1.0, weight[None], room, ub=1.0)


def _tour(rng: np.random.Generator) -> rv.IntegerProgram:
    return rv.problems.traveling_salesman(6)


def _routes(rng: np.random.Generator) -> rv.IntegerProgram:
    demands = rng.uniform(1, 5, 5)
    return rv.problems.vehicle_routing(demands, float(demands.max() + rng.uniform(6, 12)), 3)


def _general(rng: np.random.Generator) -> rv.IntegerProgram:
    n = int(rng.integers(2, 5))
    low = rng.integers(-2, 1, n).astype(float)
    A = rng.integers(-3, 6, (2, n)).astype(float)
    room = A @ low + rng.integers(2, 12, 2)
    return rv.IntegerProgram(A_ub=A, b_ub=room, lb=low, ub=low + rng.integers(1, 5, n))


_BUILD = {
    "knapsack": _knapsack,
    "cover": _cover,
    "assignment": _assignment,
    "tour": _tour,
    "general": _general,
    "routes": _routes,
}


def distance_from(problem: rv.IntegerProgram, x: np.ndarray, points: np.ndarray) -> np.ndarray:
    """(N,) d of the definition: over entries at a bound at x."""
    at_bound = (x == problem.lb) | (x == problem.ub)
    return np.abs(points - x)[:, at_bound].sum(axis=1)


def nearest_by_list(
    problem: rv.IntegerProgram, q: np.ndarray, x: np.ndarray, points: np.ndarray, margin: float
) -> np.ndarray:
    """The nearest c with <c, y - x> >= margin d(y) for every listed y, by Clarabel."""
    rows, least = points - x, margin * distance_from(problem, x, points)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    quadratic = sparse.eye_array(len(q), format="csc")
    cone = [clarabel.NonnegativeConeT(len(rows))]
    solver = clarabel.DefaultSolver(quadratic, -q, sparse.csc_array(-rows), -least, cone, settings)
    return np.array(solver.solve().x)


def is_member(
    problem: rv.IntegerProgram,
    c: np.ndarray,
    x: np.ndarray,
    points: np.ndarray,
    margin: float,
    tol: float,
) -> bool:
    short = margin * distance_from(problem, x, points) - (points - x) @ c
    return bool(short.max() <= tol * (1.0 + np.abs(c).max()))
