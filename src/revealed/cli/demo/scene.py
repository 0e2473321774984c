"""What happens in the demonstration: a town, trips through it, and costs learned from the trips.

Letters: B trips, n streets (both directions counted: entries of a cost vector), m junctions.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter

from ... import metrics
from ...datasets import Split
from ...optimality.sets import OptimalitySet
from ...problems import grid_shortest_path, shortest_path
from ...problems.linear import LinearProgram
from ...projection import project

SIDE = 8  # junctions along each side of the town
BLOCK_KM = 0.5
SHORTEST_TRIP = 4  # blocks between start and end
MARGIN = 1.0  # the unit of learned costs: leaving the route taken costs at least this much more
FEATURES = ("rain", "traffic", "frost")
TOL = 1e-8  # relative residual asked of every projection


@dataclass(frozen=True, eq=False)
class Town:
    """Junctions, streets between neighbors, and what slows whom: all that trips do not show."""

    place: np.ndarray  # (m, 2) kilometers east and south
    tail: np.ndarray  # (n,) junction at which each street starts
    head: np.ndarray  # (n,) junction at which it ends
    length: np.ndarray  # (n,) kilometers
    pace: np.ndarray  # (n,) minutes per kilometer on a quiet, dry, mild day
    slowed: np.ndarray  # (3, n) how strongly rain, traffic and frost slow each street

    def minutes(self, contexts: np.ndarray) -> np.ndarray:
        """(B, n) true times. Slow conditions multiply, so no linear model has them exactly."""
        factors = 1.0 + contexts[:, :, None] * self.slowed
        return self.length * self.pace * factors.prod(axis=1)

    def by_junction(self, costs: np.ndarray) -> np.ndarray:
        """(..., m) mean over the streets at each junction, both directions.

        What all streets across a line gain, those along it may lose, and hardly a route changes:
        decisions say less about a single street than of the streets around it.
        """
        ends = np.zeros((len(self.place), len(self.tail)))
        ends[self.tail, np.arange(len(self.tail))] += 1.0
        ends[self.head, np.arange(len(self.tail))] += 1.0
        return costs @ (ends / ends.sum(axis=1, keepdims=True)).T

    @property
    def reverse(self) -> np.ndarray:
        """(n,) each street's number in the other direction."""
        number = {ends: i for i, ends in enumerate(zip(self.tail, self.head, strict=True))}
        return np.array([number[ends] for ends in zip(self.head, self.tail, strict=True)])


@dataclass(frozen=True, eq=False)
class Trips:
    """Drivers who each took the quickest route from their start to their destination."""

    problem: LinearProgram  # a start and a destination for each trip
    seen: Split
    hours: np.ndarray  # (B,)

    def __len__(self) -> int:
        return len(self.seen)

    def part(self, index: slice) -> Trips:
        s = self.seen
        seen = Split(s.contexts[index], s.decisions[index], s.costs[index])
        return Trips(self.problem[index], seen, self.hours[index])


@dataclass(frozen=True)
class Score:
    """How someone's costs fared on trips not learned from."""

    name: str
    saw: str
    match: float  # share of routes predicted exactly; ties count by chance
    loss: float  # mean number of streets that differ
    regret: float  # extra minutes, as a share of the best possible
    ours: bool = False


@dataclass(frozen=True, eq=False)
class Outcome:
    """Everything the demonstration says about what was learned."""

    model: Any  # the fitted InverseRegressor
    costs: np.ndarray  # (B, n) learned costs on the held-out trips
    routes: np.ndarray  # (B, n) predicted routes on the held-out trips
    map_routes: np.ndarray  # (B, n) shortest by length
    scores: tuple[Score, ...]
    residual: float  # worst of a last round of projections, from the definition
    each_us: float  # microseconds a projection, over the whole fit
    seconds: float  # the fit, compiled code warm


def make_town(seed: int) -> Town:
    """A street grid with crooked blocks, a river, a center and hills."""
    rng = np.random.default_rng(seed)
    grid = grid_shortest_path(SIDE, SIDE)
    tail, head = grid.structure.tails, grid.structure.heads
    row, column = np.divmod(np.arange(SIDE * SIDE), SIDE)
    crooked = rng.uniform(-0.2, 0.2, (SIDE * SIDE, 2))
    place = BLOCK_KM * (np.column_stack([column, row]) + crooked)
    length = np.linalg.norm(place[tail] - place[head], axis=1)
    east, south = (place / (BLOCK_KM * (SIDE - 1))).T  # 0 to 1 across the town
    ground = gaussian_filter(rng.standard_normal((SIDE, SIDE)), 1.0).ravel()
    river = np.exp(-(((south - 0.72 - 0.1 * np.sin(6 * east)) / 0.13) ** 2))
    center = np.exp(-((east - 0.4) ** 2 + (south - 0.38) ** 2) / 0.2**2)
    hills = np.exp(-((east - 0.9) ** 2 + (south - 0.1) ** 2) / 0.3**2)

    def on_streets(field: np.ndarray) -> np.ndarray:
        return (field[tail] + field[head]) / 2

    pace = 2.5 * np.exp(0.15 * on_streets(ground) / ground.std())
    slowed = 3.0 * np.stack([on_streets(field) for field in (river, center, hills)])
    return Town(place, tail, head, length, pace, slowed)


def make_trips(town: Town, count: int, seed: int) -> Trips:
    """Trips at random hours in random weather, each by the quickest route."""
    rng = np.random.default_rng([seed, 1])
    hours = rng.uniform(6.0, 22.0, count)
    rain, frost = np.maximum(0.0, rng.uniform(-0.7, 1.0, (2, count)))  # on four days of ten, none
    contexts = np.column_stack([rain, rush(hours), frost])
    ends = _ends(rng, count)
    edges = np.column_stack([town.tail, town.head])
    problem = shortest_path(edges, source=ends[0], target=ends[1], n_nodes=SIDE * SIDE)
    costs = town.minutes(contexts)
    routes = np.asarray(problem.solve(costs).x)
    return Trips(problem, Split(contexts, routes, costs), hours)


def rush(hours: np.ndarray) -> np.ndarray:
    """Traffic from 0 to 1: a peak in the morning and one in the evening."""
    return np.exp(-(((hours - 8.0) / 1.5) ** 2)) + np.exp(-(((hours - 17.5) / 1.8) ** 2))


def _ends(rng: np.random.Generator, count: int) -> np.ndarray:
    """(2, count) start and destination of each trip, not next to each other."""
    found = np.zeros((2, 0), np.int64)
    while found.shape[1] < count:
        pair = rng.integers(0, SIDE * SIDE, (2, 2 * count))
        blocks = np.abs(np.diff(np.stack(np.divmod(pair, SIDE)), axis=1)).sum(axis=(0, 1))
        found = np.hstack([found, pair[:, blocks >= SHORTEST_TRIP]])
    return found[:, :count]


def compile_kernels(trips: Trips) -> None:
    """One small fit, so that the first run's compilation is not part of anything timed."""
    from ...fit import LBFGS, InverseRegressor

    few = trips.part(slice(0, 32))
    sets = OptimalitySet(few.problem, few.seen.decisions, margin=MARGIN)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two evaluations are not enough to converge
        InverseRegressor(few.problem, solver=LBFGS(max_iter=2)).fit(few.seen.contexts, sets)


def learn(train: Trips, held_out: Trips, town: Town, *, iterations: int, verbose: bool) -> Outcome:
    """Fit to the decisions of `train`, then decide on `held_out` and compare."""
    from ...fit import LBFGS, InverseRegressor

    sets = OptimalitySet(train.problem, train.seen.decisions, margin=MARGIN)
    # Every driver took the quickest route, so there is no noise in the decisions to average over.
    model = InverseRegressor(
        train.problem,
        margin=MARGIN,
        noise=0.0,
        solver=LBFGS(max_iter=iterations),
        random_state=0,
        verbose=verbose,
    )
    started = time.perf_counter()
    model.fit(train.seen.contexts, sets)
    seconds = time.perf_counter() - started
    costs = model.predict_cost(held_out.seen.contexts)
    history = model.history_
    last = project(model.predict_cost(train.seen.contexts), sets, tol=TOL)
    return Outcome(
        model=model,
        costs=costs,
        routes=np.asarray(held_out.problem.solve(costs).x),
        map_routes=np.asarray(held_out.problem.solve(_by_length(town, held_out)).x),
        scores=_scores(train, held_out, town, costs, iterations),
        residual=float(last.residual.max()),
        each_us=1e6 * float(history["projection_seconds"].sum()) / (len(train) * len(history)),
        seconds=seconds,
    )


def _scores(
    train: Trips, held_out: Trips, town: Town, learned: np.ndarray, iterations: int
) -> tuple[Score, ...]:
    """Held-out figures for knowing nothing, for what was learned, and for knowing true costs."""
    rivals = (
        ("shortest by length", "the map", _by_length(town, held_out)),
        ("blind to context", "routes", _without_context(train, held_out, iterations)),
        ("learned", "routes, contexts", learned),
        ("least squares", "true times", _from_truth(train, held_out)),
    )
    X, C, problem = held_out.seen.decisions, held_out.seen.costs, held_out.problem
    return tuple(
        Score(
            name,
            saw,
            match=float(metrics.accuracy(problem, costs=costs, decisions=X).mean()),
            loss=float(metrics.decision_loss(problem, costs=costs, decisions=X).mean()),
            regret=metrics.relative_regret(problem, costs=costs, decisions=X, true_costs=C),
            ours=costs is learned,
        )
        for name, saw, costs in rivals
    )


def _by_length(town: Town, trips: Trips) -> np.ndarray:
    return np.tile(town.length, (len(trips), 1))


def _without_context(train: Trips, held_out: Trips, iterations: int) -> np.ndarray:
    """One cost for each street, whatever the conditions, from the same decisions."""
    from ...fit import LBFGS, InverseRegressor

    sets = OptimalitySet(train.problem, train.seen.decisions, margin=MARGIN)
    solver = LBFGS(max_iter=iterations)
    model = InverseRegressor(train.problem, solver=solver, margin=MARGIN, noise=0.0, random_state=0)
    model.fit(np.ones((len(train), 1)), sets)
    return model.predict_cost(np.ones((len(held_out), 1)))


def _from_truth(train: Trips, held_out: Trips) -> np.ndarray:
    """The same linear model fitted to the true times themselves."""
    from ...fit import LinearModel

    model = LinearModel().fit_targets(train.seen.contexts, train.seen.costs)
    return model.predict_cost(held_out.seen.contexts)
