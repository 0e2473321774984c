"""Link costs from routes by projection: how far costs are from explaining what each driver did.

Costs are c = length + features @ coef, so a coefficient is in metres and no scale is left open.
The explaining set of a route holds the costs under which it is cheapest between its own ends, by at
least a margin. Distances are relative: the cost of a move counts in units of its length plus 50 m,
so the long may change by more than the short, and the margin is a share of length too.

Drivers are not all optimal under any one set of costs. A squared distance lets those who are
farthest off rule; a bounded one, 1 - exp(-d^2 / 2 delta^2), lets them go, and as delta falls it
counts the routes left unexplained. It is not convex and begins where a convex loss ends.

Letters: B distinct routes, M moves, p features.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.optimize import minimize

from ...data.routes import Routes
from ...optimality import OptimalitySet
from ...problem import LinearProgram
from ...projection import project
from .features import MoveFeatures

TURNS = ("left turn", "right turn", "U-turn")
RARE = 0.1
"""Of the mean use of a move, added to that of each, for those that no driver makes."""
CLIP = 2.0
"""Standard deviations at which noise is cut, so that few noisy costs are negative."""


@dataclass(frozen=True)
class Setting:
    """A loss on the relative distances."""

    loss: str
    """"squared", "plain", "huber" or "bounded"."""
    margin: float
    """Share of a link's length by which a route must be cheapest."""
    delta: float = 0.0
    """Where the loss bends; of no meaning to the squared distance."""
    sigma: float = 0.0
    """Of noise on the costs, as a share of length; 0 for the plain projection loss."""
    begin: Setting | None = None
    """The loss whose minimum is where this one begins; None: length, and 100 m for a turn."""
    ridge: float = 0.0
    """Of links' own costs: ridge/2 times the sum of their squares is added to the mean loss."""

    @property
    def label(self) -> str:
        bend = "" if self.loss == "squared" else f", delta {self.delta:g}"
        noise = f", noise {self.sigma:g}" if self.sigma else ""
        return f"{self.loss}, margin {self.margin:g}{bend}{noise}"


def _squared(d: np.ndarray, delta: float) -> tuple[np.ndarray, np.ndarray]:
    return 0.5 * d * d, np.ones_like(d)


def _plain(d: np.ndarray, delta: float) -> tuple[np.ndarray, np.ndarray]:
    root = np.sqrt(d * d + delta * delta)  # rounded at 0, so that a line search can settle
    return root - delta, 1.0 / root


def _huber(d: np.ndarray, delta: float) -> tuple[np.ndarray, np.ndarray]:
    near = np.minimum(d, delta)
    return near * (d - 0.5 * near), near / np.maximum(d, 1e-300)


def _bounded(d: np.ndarray, delta: float) -> tuple[np.ndarray, np.ndarray]:
    kept = np.exp(-0.5 * (d / delta) ** 2)
    return 1.0 - kept, kept / delta**2


LOSSES: dict[str, Callable[[np.ndarray, float], tuple[np.ndarray, np.ndarray]]] = {
    "squared": _squared,
    "plain": _plain,
    "huber": _huber,
    "bounded": _bounded,
}
"""Distances (B,) -> values (B,), and what each residual is multiplied by in the gradient."""


class RouteLoss:
    """The mean loss of routes in the coefficients of all features but length, with its gradient.

    Features are the same for every route, so costs are one vector (M,) and the gradient is one sum
    of residuals: nothing of the size routes x moves x features is ever formed. Routes driven more
    than once are projected once.
    """

    def __init__(
        self, routes: Routes, features: MoveFeatures, setting: Setting, *, seed: int = 0,
        threads: int | None = None,
    ) -> None:  # fmt: skip
        decisions = routes.decisions()
        _, first, inverse = np.unique(
            np.packbits(decisions, axis=1), axis=0, return_index=True, return_inverse=True
        )
        self.weights = np.bincount(inverse.ravel()) / len(routes)
        unit = features.unit
        self._features = features.values / unit[:, None]
        self._ridge = setting.ridge * features.own[1:]
        # About the curvature of the loss: how much the moves that drivers make depend on each
        # coefficient. In these units L-BFGS takes half as many steps.
        usage = decisions.mean(axis=0) + RARE * decisions.mean()
        self.scale = np.sqrt(usage @ self._features[:, 1:] ** 2)
        self.scale[self.scale == 0] = 1.0
        # Costs in units of their own are costs of x in inverse units: the same paths.
        plain = routes[first].problem()
        scaled = LinearProgram(
            A_eq=plain.A_eq @ sparse.diags_array(1.0 / unit), b_eq=plain.b_eq, lb=0.0
        )
        self._sets = OptimalitySet(scaled, decisions[first] * unit, setting.margin)
        self._form, self._delta = LOSSES[setting.loss], setting.delta
        self._threads, self._last = threads, None
        self._noise = _noise(setting.sigma, decisions[first].shape, seed)
        self.unsolved = 0
        self.evaluations = 0

    def _each(self, coef: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Value (B,), factor (B,) and residual (B, M) of every distinct route."""
        costs = self._features @ np.concatenate([[1.0], coef])
        costs = np.broadcast_to(costs, self._sets.decisions.shape) + self._noise
        near = project(costs, self._sets, warm_start=self._last, threads=self._threads)
        self._last = near
        self.evaluations += 1
        self.unsolved += int((~near.solved).sum())
        return *self._form(near.distance, self._delta), costs - near.point

    def __call__(self, coef: np.ndarray) -> tuple[float, np.ndarray]:
        value, factor, residual = self._each(coef)
        pull = (self.weights * factor) @ residual
        penalty = self._ridge * coef
        return (
            float(self.weights @ value + 0.5 * penalty @ coef),
            (pull @ self._features)[1:] + penalty,
        )

    def scaled(self, units: np.ndarray) -> tuple[float, np.ndarray]:
        """The same for coefficients times `scale`."""
        value, gradient = self(units / self.scale)
        return value, gradient / self.scale


def _noise(sigma: float, shape: tuple[int, ...], seed: int) -> np.ndarray | float:
    if sigma == 0:
        return 0.0
    draws = np.random.default_rng(seed).standard_normal(shape)
    return sigma * np.clip(draws, -CLIP, CLIP)


@dataclass(frozen=True)
class Fit:
    """Coefficients in units of 100 m, that of length (1) included."""

    coef: np.ndarray
    value: float
    evaluations: int
    unsolved: int
    """Projections, of all evaluations, that are not certified."""


def start_of(features: MoveFeatures) -> np.ndarray:
    """Where the first loss begins: length, and 100 m for a turn."""
    coef = np.zeros(len(features.names))
    coef[0] = 1.0
    coef[[features.column(name) for name in TURNS]] = 1.0
    return coef


def fit_projection(
    routes: Routes,
    features: MoveFeatures,
    setting: Setting,
    *,
    start: np.ndarray | None = None,
    max_iter: int = 25,
    threads: int | None = None,
    begun: dict[Setting, Fit] | None = None,
) -> Fit:
    """Minimise the loss by L-BFGS, from the minimum of the loss it begins with if there is one.

    `start` has the coefficients to begin with instead; those it lacks at its end are 0. `begun`
    keeps the fits on these routes that others may begin with.
    """
    begun = {} if begun is None else begun
    coef, evaluations, unsolved = start_of(features), 0, 0
    if start is not None:
        coef[:] = np.pad(start, (0, len(coef) - len(start)))
    elif setting.begin is not None:
        if setting.begin not in begun:
            begun[setting.begin] = fit_projection(
                routes, features, setting.begin, max_iter=max_iter, threads=threads
            )
        first = begun[setting.begin]
        coef, evaluations, unsolved = first.coef, first.evaluations, first.unsolved
    loss = RouteLoss(routes, features, setting, threads=threads)
    done = minimize(
        loss.scaled, coef[1:] * loss.scale, jac=True, method="L-BFGS-B",
        options={"maxiter": max_iter, "ftol": 1e-7},
    )  # fmt: skip
    return Fit(
        np.concatenate([[1.0], done.x / loss.scale]),
        float(done.fun),
        evaluations + loss.evaluations,
        unsolved + loss.unsolved,
    )
