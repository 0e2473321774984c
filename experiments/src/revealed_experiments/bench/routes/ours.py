"""Link costs from routes by projection, through the estimator: features in, coefficients out.

Costs are c = length + features @ coef, so a coefficient is in meters and no scale is left open.
Distances are relative: the cost of a move counts in units of its length plus 50 m (`scale`), so the
long may change by more than the short, and the margin is a share of length too.

Drivers are not all optimal under any one set of costs. A squared distance lets those who are
farthest off rule; a bounded one lets them go, and as delta falls it counts the routes left
unexplained. It is not convex; the solver begins it near the minimum of a convex loss.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from revealed.datasets.routes import Routes

from .features import MoveFeatures

TURNS = ("left turn", "right turn", "U-turn")
TOL = 1e-3
"""Relative: differences between losses on validation routes are a hundred times larger."""


@dataclass(frozen=True)
class Setting:
    """A loss on the relative distances."""

    power: int | str
    """As in `ProjectionLoss`: 2, 1 or "huber"; "bounded" is its "welsch", under the name of
    stored results."""
    margin: float
    """Share of a link's length by which a route must be cheapest."""
    delta: float | None = None
    """Where the loss bends; of no meaning to powers 1 and 2."""
    noise: float = 0.0
    """On the costs, as a share of length; 0 for the plain projection loss."""
    ridge: float = 0.0
    """On standardized features, links' own among them."""

    @property
    def label(self) -> str:
        names: dict[int | str, str] = {2: "squared", 1: "plain"}
        bend = "" if self.delta is None else f", delta {self.delta:g}"
        noise = f", noise {self.noise:g}" if self.noise else ""
        return f"{names.get(self.power, self.power)}, margin {self.margin:g}{bend}{noise}"


@dataclass(frozen=True)
class Fit:
    """Coefficients in units of 100 m, that of length (1) included."""

    coef: np.ndarray
    value: float
    evaluations: int
    projections: int
    converged: bool
    unsolved: int
    """Projections of the final model that are not certified."""


def start_of(features: MoveFeatures) -> np.ndarray:
    """Where the logit models begin: length, and 100 m for a turn."""
    coef = np.zeros(len(features.names))
    coef[0] = 1.0
    coef[[features.column(name) for name in TURNS]] = 1.0
    return coef


def fit_projection(
    routes: Routes,
    features: MoveFeatures,
    setting: Setting,
    *,
    max_iter: int = 500,
    threads: int | None = None,
) -> Fit:
    """Learn the coefficients of all features but length, which is given as the unit."""
    from revealed.fit import LBFGS, Huber, InverseRegressor, SharedModel, Welsch

    routes, times = distinct(routes)
    losses: dict[int | str, Any] = {
        2: "squared",
        1: "distance",
        "huber": Huber(delta=setting.delta),
        "bounded": Welsch(delta=setting.delta),
    }
    est = InverseRegressor(
        routes.problem(),
        model=SharedModel(given={0: 1.0}, fit_intercept=False),
        solver=LBFGS(max_iter=max_iter, tol=TOL),
        cost_map=features.unit,
        loss=losses[setting.power],
        margin=setting.margin,
        noise=setting.noise,
        ridge=setting.ridge,
        random_state=0,
        threads=threads,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whether it converged is in the table
        est.fit(features.values, routes.decisions(), sample_weight=times)
    told = est.certificate_
    assert told is not None
    facts = told.convergence
    assert facts is not None
    return Fit(
        est.coef_, facts.value, facts.evaluations, facts.projections, facts.converged, told.unsolved
    )


def distinct(routes: Routes) -> tuple[Routes, np.ndarray]:
    """Every route once, and how often each was driven: the same fit with fewer projections."""
    keys = [route.tobytes() for route in routes.links]
    _, first, times = np.unique(keys, return_index=True, return_counts=True)
    return routes[first], times.astype(float)
