"""Drivers' routes of which links are hidden: what is completed, and what is learned from it.

Of every trip each link of the network is hidden by itself with the same chance; of the others it is
known whether the driver used them. Ends are known, as everywhere on these data. Letters: B trips, L
links, M moves.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from revealed.datasets.routes import Routes, load_road_network, load_routes
from revealed.fit import LBFGS, InverseRegressor, PartialDecisions, SharedModel, Welsch
from revealed.optimality.completion import Completion

from ..routes.features import MoveFeatures, move_features
from ..routes.scores import FLOOR, Judge

SHARES = (0.25, 0.5, 0.75)
MARGIN, DELTA = 0.08, 0.2
"""As `revealed bench routes` chose them."""
DRAWS, SPREAD = 4, 0.15
"""Of completions, and the standard deviation of the logarithm of the costs they are drawn under."""


def hidden_links(folder: Path, trips: int, tested: int, seed: int) -> Iterator[dict[str, Any]]:
    """A row for each share of links hidden and each way to learn."""
    network = load_road_network(folder)
    routes = load_routes(folder, "train_CV0_size1000.csv", network)
    routes = routes[np.arange(min(trips, len(routes)))]
    test = load_routes(folder, "test_CV0.csv", network)
    judge = Judge(test[np.arange(min(tested, len(test)))])
    features, truth = move_features(network), routes.decisions().astype(float)
    entered = network.moves[:, 1]
    into = sparse.csr_array(
        (np.ones(len(entered)), (entered, np.arange(len(entered)))),
        shape=(network.n_links, len(entered)),
    )
    whole = estimator(routes, features).fit(features.values, truth)
    complete = judge.score(whole.predict_cost(features.values)).means()
    length = np.maximum(features.values[:, 0], FLOOR)
    for share in SHARES:
        rng = np.random.default_rng([seed, int(100 * share)])
        seen = (into @ truth.T).T
        there = rng.random(seen.shape) >= share
        given = PartialDecisions(
            np.where(there, seen, np.nan), totals=into, start=length, floor=FLOOR
        )
        began = time.process_time()
        completion = Completion(routes.problem(), given.seen, into)
        shortest = completion.complete(np.broadcast_to(length, truth.shape).copy())
        ours = estimator(routes, features).fit(features.values, given)
        seconds = time.process_time() - began
        naive = estimator(routes, features).fit(features.values, shortest)
        several = replace(given, draws=DRAWS, spread=SPREAD)
        drawn = estimator(routes, features).fit(features.values, several)
        learned = {
            "ours": judge.score(ours.predict_cost(features.values)).means(),
            "shortest completion": judge.score(naive.predict_cost(features.values)).means(),
            "drawn completions": judge.score(drawn.predict_cost(features.values)).means(),
            "complete routes": complete,
        }
        yield {
            "hidden": share,
            "trips": len(routes),
            "tested": len(judge.trip),
            "seconds": seconds,
            "gaps": ours.gaps_.tolist(),
            "completed": {
                "ours": _agreement(ours.completed_, truth, into, there),
                "shortest completion": _agreement(shortest, truth, into, there),
                "drawn completions": _agreement(drawn.completed_, truth, into, there),
            },
            "learned": learned,
        }


def estimator(routes: Routes, features: MoveFeatures) -> Any:
    """As in `revealed bench routes`, with the named features alone."""
    warnings.simplefilter("ignore")  # whether it converged changes nothing here
    return InverseRegressor(
        routes.problem(),
        model=SharedModel(given={0: 1.0}, fit_intercept=False),
        solver=LBFGS(max_iter=150, tol=1e-3),
        cost_map=features.unit,
        loss=Welsch(delta=DELTA),
        margin=MARGIN,
        noise=0.0,
        ridge=0.0,
        decision_tol=0.0,
    )


def _agreement(
    found: np.ndarray, truth: np.ndarray, into: Any, there: np.ndarray
) -> dict[str, float]:
    """Of hidden links that drivers used, the share found; and the share of routes all right."""
    used, guessed = (into @ truth.T).T > 0.5, (into @ found.T).T > 0.5
    hidden = used & ~there
    exact = (np.abs(found - truth) < 1e-6).all(axis=1)
    return {
        "links": float((guessed & hidden).sum() / hidden.sum()),
        "exact": float(exact.mean()),
    }
