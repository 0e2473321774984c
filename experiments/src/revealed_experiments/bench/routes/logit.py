"""The recursive logit of Fosgerau, Frejinger and Karlström (2013), by exact maximum likelihood.

A driver on link a chooses the next link b with utility v_ab = -c_ab plus Gumbel noise plus the
value of being there; a route's probability is then exp(sum of v) over the sum of the same for all
walks from its origin to its destination. With M_ab = exp(v_ab) and G = (I - M)^-1, walks from o
that end when they first reach d sum to G_od / G_dd. One inverse therefore serves all destinations,
where solving for each destination's value function would take hundreds, with equal results.

The most probable route is the cheapest under c: the denominator is the same for all.

Letters: M moves, L links, p features.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from revealed.datasets.routes import Routes
from revealed.errors import InputError

from .features import MoveFeatures


@dataclass(frozen=True)
class LogitFit:
    """Maximum-likelihood coefficients; costs are `features @ coef`."""

    coef: np.ndarray
    log_likelihood: float
    """A route, on average."""
    standard_error: np.ndarray | None
    """From the curvature of the likelihood; None where links have costs of their own."""
    evaluations: int
    converged: bool


class RecursiveLogit:
    """Negative mean log-likelihood of routes, with its gradient in the coefficients."""

    def __init__(self, routes: Routes, features: MoveFeatures) -> None:
        network = routes.network
        self._moves, self._n_links = network.moves.T, network.n_links
        self._features, self._size = features.values, len(routes)
        self._own = features.own
        self._observed = routes.decisions().sum(axis=0) @ features.values
        count = np.zeros((network.n_links, network.n_links))
        np.add.at(count, (routes.origin, routes.destination), 1.0)
        self._from, self._to = np.nonzero(count)
        self._count = count[self._from, self._to]

    def __call__(self, coef: np.ndarray) -> tuple[float, np.ndarray]:
        weights, G = self._walks(coef)
        reach, again = G[self._from, self._to], G.diagonal()[self._to]
        if G.min() < -1e-9 or reach.min() <= 0 or again.min() <= 0:
            # Walks that grow with their length: no such sum. Far from the answer; step back.
            return np.inf, np.zeros(len(coef))
        value = self._observed @ coef + self._count @ np.log(reach / again)
        # d log(G_od / G_dd) / d M_ab = G_oa G_bd / G_od - G_da G_bd / G_dd, summed over routes.
        pull = np.zeros_like(G)
        pull[self._from, self._to] = self._count / reach
        np.subtract.at(pull, (self._to, self._to), self._count / again)
        through = (G.T @ pull @ G.T)[*self._moves] * weights
        return value / self._size, (self._observed - self._features.T @ through) / self._size

    def fit(self, start: np.ndarray, *, ridge: float = 0.0, max_iter: int = 300) -> LogitFit:
        """L-BFGS from `start`, at which walks must have a finite sum; `ridge` on own costs."""
        if not np.isfinite(self(start)[0]):
            raise InputError("The recursive logit needs a start with larger costs.")
        done = minimize(
            self._penalized, start, args=(ridge * self._own,), jac=True, method="L-BFGS-B",
            options={"maxiter": max_iter, "ftol": 1e-9, "gtol": 1e-6},
        )  # fmt: skip
        error = None if self._own.any() else self._standard_error(done.x)
        return LogitFit(done.x, -self(done.x)[0], error, int(done.nfev), bool(done.success))

    def _penalized(self, coef: np.ndarray, ridge: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = self(coef)
        if not np.isfinite(value):
            return 1e10, gradient
        return value + 0.5 * float((ridge * coef) @ coef), gradient + ridge * coef

    def _standard_error(self, coef: np.ndarray) -> np.ndarray:
        # Pseudo-inverse: a feature that no move of the network has, has no error either.
        spread = np.diag(np.linalg.pinv(self._hessian(coef), hermitian=True))
        return np.sqrt(np.maximum(spread, 0.0) / self._size)

    def _walks(self, coef: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        weights = np.exp(np.minimum(-self._features @ coef, 50.0))
        system = np.eye(self._n_links)
        system[*self._moves] -= weights
        return weights, np.linalg.inv(system)

    def _hessian(self, coef: np.ndarray, step: float = 1e-5) -> np.ndarray:
        """By central differences of the exact gradient."""
        rows = [
            (self(coef + step * unit)[1] - self(coef - step * unit)[1]) / (2 * step)
            for unit in np.eye(len(coef))
        ]
        return 0.5 * (np.array(rows) + np.array(rows).T)


def sample_routes(
    moves: np.ndarray,
    n_links: int,
    costs: np.ndarray,
    ends: np.ndarray,
    trip: np.ndarray,
    seed: int = 0,
) -> np.ndarray:
    """(B, M) times each move is made on one walk drawn for each route of the trips (o, d)."""
    rng = np.random.default_rng(seed)
    weights = np.exp(-costs)
    system = np.eye(n_links)
    system[moves[:, 0], moves[:, 1]] -= weights
    G = np.linalg.inv(system)
    first = np.searchsorted(moves[:, 0], np.arange(n_links + 1))
    taken = np.zeros((len(trip), len(moves)), dtype=np.int64)
    for i, (origin, destination) in enumerate(ends[trip]):
        here = origin
        while here != destination:
            options = slice(first[here], first[here + 1])
            chance = weights[options] * G[moves[options, 1], destination]
            drawn = np.searchsorted(np.cumsum(chance), rng.random() * chance.sum())
            move = first[here] + min(int(drawn), len(chance) - 1)
            taken[i, move] += 1
            here = moves[move, 1]
    return taken
