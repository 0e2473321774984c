"""What happens in the demonstration: terrain, routes, a bad guess, its projection, a check.

Letters: B drivers, n roads (entries of a cost vector), m junctions, k side of the grid.
"""

import time
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from scipy import sparse
from scipy.ndimage import gaussian_filter

from ..optimality import OptimalitySet
from ..problem import LinearProgram
from ..problems import grid_shortest_path
from ..projection import Projection, project

SIDE = 12
N_DRIVERS = 200
MARGIN = 1.0  # minutes that leaving the observed route must cost; an average road takes about 12
N_CHECKED = 5  # instances handed to the outside solver as well
TOL = 1e-8  # relative residual asked of every projection


@dataclass(frozen=True)
class Scene:
    """Drivers who each crossed their own terrain by the quickest route, and a guess of it."""

    problem: LinearProgram
    tail: np.ndarray  # (n,) junction at which each road starts
    head: np.ndarray  # (n,) junction at which it ends
    length: np.ndarray  # (n,) 1, or sqrt(2) for a diagonal
    routes: np.ndarray  # (B, n) the observed decisions, 1 where the driver went
    true_costs: np.ndarray  # (B, n) minutes for each road; only used to make the routes
    guess: np.ndarray  # (B, n) minutes for each road as someone believes them to be
    guess_routes: np.ndarray  # (B, n) best routes under the guess


@dataclass(frozen=True)
class Outcome:
    """The projected guess and everything the demonstration says about it."""

    projection: Projection
    projected_routes: np.ndarray  # (B, n) best routes under the projected costs
    seconds: float  # one projection of the whole batch, compiled code warm
    outside_gap: float | None  # largest relative difference to the outside solver; None if absent


def make_scene(seed: int) -> Scene:
    """Draw the terrains, let every driver take the quickest route, and blur a guess from it."""
    rng = np.random.default_rng(seed)
    problem = grid_shortest_path(SIDE, SIDE, neighbors=8)
    tail, head = problem.structure.tails, problem.structure.heads
    rise = np.abs(tail // SIDE - head // SIDE) + np.abs(tail % SIDE - head % SIDE)
    length = np.sqrt(rise)
    truth = _smooth_field(rng)
    # An old survey: right in outline (correlation 0.6), wrong in every detail that matters.
    believed = 0.6 * truth + 0.8 * _smooth_field(rng)
    true_costs, guess = (_road_minutes(f, tail, head, length) for f in (truth, believed))
    routes, guess_routes = (np.asarray(problem.solve(c).x) for c in (true_costs, guess))
    return Scene(problem, tail, head, length, routes, true_costs, guess, guess_routes)


def _smooth_field(rng: np.random.Generator) -> np.ndarray:
    """(B, k, k) random hills and valleys, standardised driver by driver."""
    field = gaussian_filter(rng.standard_normal((N_DRIVERS, SIDE, SIDE)), sigma=(0, 1.3, 1.3))
    field -= field.mean(axis=(1, 2), keepdims=True)
    return field / field.std(axis=(1, 2), keepdims=True)


def _road_minutes(field: np.ndarray, tail, head, length) -> np.ndarray:
    """(B, n) minutes: the road's length times the mean slowness of the terrain at its two ends."""
    slowness = 10.0 * np.exp(0.5 * field).reshape(len(field), -1)
    return length * (slowness[:, tail] + slowness[:, head]) / 2


def explain(scene: Scene) -> Outcome:
    """Project the guess onto the costs that explain the routes, and put the result to the test."""
    sets = OptimalitySet(scene.problem, scene.routes, margin=MARGIN)
    project(scene.guess[:2], sets[:2], tol=TOL)  # compile, or load what was compiled before
    projection, seconds = _timed_projection(scene.guess, sets)
    return Outcome(
        projection=projection,
        projected_routes=np.asarray(scene.problem.solve(projection.point).x),
        seconds=seconds,
        outside_gap=_outside_gap(scene, projection),
    )


def _timed_projection(costs: np.ndarray, sets: OptimalitySet, repeats: int = 5):
    """The projection and the median of a few wall-clock times; each run starts cold."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        projection = project(costs, sets, tol=TOL)
        times.append(time.perf_counter() - start)
    return projection, float(np.median(times))


def reproduced(routes: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """(B,) bool: is the route the observed one, road for road?"""
    return np.abs(routes - observed).max(axis=1) < 0.5


def _outside_gap(scene: Scene, projection: Projection) -> float | None:
    """Largest relative distance between our projection and Clarabel's, over a few drivers."""
    try:
        nearest = [_nearest_by_clarabel(scene, i) for i in range(N_CHECKED)]
    except ModuleNotFoundError:  # the `solvers` extra is not installed; the telling says so
        return None
    gap = np.linalg.norm(projection.point[:N_CHECKED] - nearest, axis=1)
    return float((gap / np.linalg.norm(nearest, axis=1)).max())


def _nearest_by_clarabel(scene: Scene, i: int) -> np.ndarray:
    """The same projection as a textbook quadratic program in (c, v), written out afresh.

    min 1/2 |c - q|^2  subject to  c_j - a_j.v = 0 on the route, c_j - a_j.v >= margin off it.
    Nothing of the library's own projection is used, so agreement means something.
    """
    clarabel: Any = import_module("clarabel")  # a compiled module without type information
    A = scene.problem.eq_rows.matrix()
    m, n = scene.problem.eq_rows.shape
    on = scene.routes[i] > 0.5
    order = np.concatenate([np.flatnonzero(on), np.flatnonzero(~on)])  # equalities come first
    reduced_cost = sparse.csr_array(sparse.hstack([sparse.eye_array(n), -A.T]))[order]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    # As tight as it goes: at 1e-11 its points are still up to 1e-6 from where they end up.
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-13
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix(sparse.diags_array(np.r_[np.ones(n), np.zeros(m)])),
        np.r_[-scene.guess[i], np.zeros(m)],
        sparse.csc_matrix(-reduced_cost),
        np.where(on[order], 0.0, -MARGIN),
        [clarabel.ZeroConeT(int(on.sum())), clarabel.NonnegativeConeT(int((~on).sum()))],
        settings,
    )
    return np.asarray(solver.solve().x)[:n]
