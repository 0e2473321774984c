"""The learners of `revealed bench portfolio`: all fit the same model, from different teachers.

    returns   c_j = theta . features_j          covariance   known, or   Q = sum_k a_k estimate_k

Validation chooses how much of a ridge holds theta back, and how far covariances shrink toward
their diagonal; the ranges are the same for all who descend.

Letters: T periods, n assets, p features, K covariance estimates.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from revealed._common.conic import svec
from revealed.datasets.prices import ESTIMATES, PortfolioPeriods

GAMMA = 1.0
"""Aversion to risk, for returns in per cent of a week: portfolios in hindsight hold about six of
the twenty stocks."""
YEAR, VARIANCES = (ESTIMATES.index(f"a year's {name}") for name in ("covariance", "variances"))


@dataclass(frozen=True, eq=False)
class Samples:
    """Periods as the learners see them."""

    features: np.ndarray
    """(T, n, p)"""
    returns: np.ndarray
    """(T, n) the true ones."""
    risk: np.ndarray
    """(T, n, n) the true ones, with which the portfolios in hindsight were chosen."""
    estimates: np.ndarray | None
    """(T, K, n, n), or None where the true covariance is known when deciding."""
    portfolios: np.ndarray
    """(T, n) the best in hindsight."""

    def __len__(self) -> int:
        return len(self.returns)

    def take(self, index: Any) -> Samples:
        own = {name: getattr(self, name)[index] for name in ("features", "returns", "risk")}
        estimates = None if self.estimates is None else self.estimates[index]
        return replace(self, **own, estimates=estimates, portfolios=self.portfolios[index])

    @property
    def known_risk(self) -> np.ndarray:
        """(T, n, n) the covariance of the year before, which is known when deciding."""
        return self.risk if self.estimates is None else self.estimates[:, YEAR]

    def shrunk(self, share: float) -> Samples:
        """With every estimate moved toward the variances alone by a share of the way."""
        if self.estimates is None or not share:
            return self
        alone = self.estimates[:, [VARIANCES]]
        return replace(self, estimates=(1 - share) * self.estimates + share * alone)


@dataclass(frozen=True, eq=False)
class Weights:
    """A fitted model."""

    returns: np.ndarray
    """(p,) theta."""
    risk: np.ndarray | None = None
    """(K,) a, or None where the covariance is known."""

    def decide(self, samples: Samples) -> np.ndarray:
        """(T, n) portfolios."""
        return solve(samples.features @ self.returns, self.covariance(samples))

    def covariance(self, samples: Samples) -> np.ndarray:
        if self.risk is None or samples.estimates is None:
            return samples.risk
        return np.einsum("k,tkij->tij", self.risk, samples.estimates)

    def unshrunk(self, share: float) -> Weights:
        """The same model for estimates as they are, of one fitted to shrunk ones."""
        if self.risk is None:
            return self
        alone = np.arange(len(self.risk)) == VARIANCES
        return replace(self, risk=(1 - share) * self.risk + share * self.risk.sum() * alone)


def samples_of(periods: PortfolioPeriods, *, joint: bool) -> Samples:
    """Portfolios best in hindsight: for the known covariance, or for the one that came."""
    risk = periods.risk if joint else periods.covariance
    estimates = periods.estimates if joint else None
    best = solve(periods.returns, risk)
    return Samples(periods.features, periods.returns, risk, estimates, best)


def solve(returns: np.ndarray, risk: np.ndarray) -> np.ndarray:
    """(T, n) best portfolios, with the tiny shares of an interior point set to 0."""
    import torch

    from .implicit import interior_point

    c, Q = torch.tensor(returns), torch.tensor(risk)
    x = interior_point(c, GAMMA * Q)[0].numpy()
    x = np.where(x < 1e-7, 0.0, x)
    return x / x.sum(axis=1, keepdims=True)


def objective(samples: Samples, portfolios: np.ndarray) -> np.ndarray:
    """(T,): what portfolios were worth, <c, x> - gamma/2 x^T Q x with the whole of the true Q."""
    risk = np.einsum("ti,tij,tj->t", portfolios, samples.risk, portfolios)
    return (samples.returns * portfolios).sum(axis=1) - 0.5 * GAMMA * risk


# --- two stages ----------------------------------------------------------------------------------


def two_stage(train: Samples, seed: int, ridge: float) -> Weights:
    """Least squares on the true returns and, where it is not known, on the true covariance."""
    from scipy.optimize import nnls

    Z = train.features.reshape(-1, train.features.shape[2])
    y = (train.returns - train.returns.mean(axis=1, keepdims=True)).ravel()
    theta = np.linalg.solve(Z.T @ Z + ridge * len(Z) * np.eye(Z.shape[1]), Z.T @ y)
    if train.estimates is None:
        return Weights(theta)
    basis = svec(train.estimates)  # (T, K, n (n+1)/2)
    rows = np.moveaxis(basis, 1, 2).reshape(-1, basis.shape[1])
    return Weights(theta, nnls(rows, svec(train.risk).ravel())[0])


# --- the distance to returns that explain --------------------------------------------------------

DRAWS = 4
"""Draws of noise for each sample, in pairs of opposite sign."""
DELTA = 10.0
"""Where the bounded distance bends, in per cent a week: about as far as predictions are off."""
TOL, EVALUATIONS = 1e-3, 200
"""Relative distance to the minimum at which a fit ends, and when it ends at the latest."""


def projections(train: Samples, seed: int, power: int | str, noise: float, ridge: float) -> Weights:
    """Through the estimator, to the minimum; sees portfolios, no return and no true covariance.

    A portfolio x* is the best one for (c, Q) where it is the best for the returns c - gamma Q x*
    alone: costs are linear in theta and in the mix. With `noise`, the loss is the mean over draws
    added to c that are scattered like returns: with the known covariance, `noise` standard
    deviations long. Every draw is then a sample of its own.
    """
    hidden = train.features.shape[2]
    draws = _scattered(train, noise, seed) if noise else np.zeros((1, *train.returns.shape))
    if train.estimates is None:
        risk = GAMMA * np.einsum("tij,tj->ti", train.risk, train.portfolios)[:, :, None]
    else:
        risk = GAMMA * np.einsum("tkij,tj->tik", train.estimates, train.portfolios)
    mixed = [YEAR, *(k for k in range(risk.shape[2]) if k != YEAR)] if risk.shape[2] > 1 else [0]
    while True:  # shares below 0 are taken out, the lowest first
        first, *others = mixed
        columns = [-train.features, risk[:, :, others] - risk[:, :, [first]]]
        coef = _fit(risk[:, :, first] + draws, columns, train.portfolios, power, ridge)
        shares = np.zeros(risk.shape[2])
        shares[others] = coef[hidden:]
        shares[first] = 1.0 - shares.sum()
        if shares.min() >= 0.0:
            return Weights(coef[:hidden], None if train.estimates is None else shares)
        mixed.remove(int(shares.argmin()))


def _scattered(train: Samples, noise: float, seed: int) -> np.ndarray:
    """(DRAWS, T, n) opposite pairs of draws with the known covariance."""
    roots = noise * np.linalg.cholesky(train.known_risk)
    half = np.random.default_rng(seed).standard_normal((DRAWS // 2, *train.returns.shape))
    return np.einsum("tij,ktj->kti", roots, np.concatenate([half, -half]))


def _fit(
    given: np.ndarray, columns: list[np.ndarray], decisions: np.ndarray, power: Any, ridge: float
) -> np.ndarray:
    """Coefficients of `columns` (T, n, .) in costs of which the parts (K, T, n) are `given`.

    The ridge is a share of the loss before learning, so that it means the same for every power.
    """
    from sklearn.exceptions import ConvergenceWarning

    from revealed.fit import LBFGS, InverseRegressor, SharedModel, Welsch
    from revealed.problems.linear import LinearProgram

    count, _, n = given.shape
    learned = np.tile(np.concatenate(columns, axis=2), (count, 1, 1))
    Z = np.concatenate([given.reshape(-1, n, 1), learned], axis=2)
    X = np.tile(decisions, (count, 1))
    est = InverseRegressor(
        LinearProgram(A_eq=np.ones((1, n)), b_eq=1.0),
        model=SharedModel(given={0: 1.0}, fit_intercept=False),
        solver=LBFGS(max_iter=0, tol=TOL),
        margin=0.0,
        noise=0.0,
        loss={2: "squared", 1: "distance", "bounded": Welsch(delta=DELTA)}[power],
        ridge=0.0,
        decision_tol=0.0,
        threads=1,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # nor do rivals go to the end
        before = est.fit(Z, X).history_.rows[0]["loss"] if ridge else 0.0
        est.set_params(ridge=ridge * before, solver__max_iter=EVALUATIONS).fit(Z, X)
    return est.coef_[1:]


# --- gradient descent ----------------------------------------------------------------------------

EPOCHS, BATCH = 10, 64


class _Model:
    """theta and the mix of estimates as torch parameters; the same start for every loss.

    Portfolios do not tell c and Q from twice as much of both, so the mix is a convex one.
    """

    def __init__(self, train: Samples) -> None:
        import torch

        zeros = {"dtype": torch.float64, "requires_grad": True}
        self.theta = torch.zeros(train.features.shape[2], **zeros)
        self.mix = None
        if train.estimates is not None:
            self.mix = torch.zeros(train.estimates.shape[1], **zeros)

    @property
    def parameters(self) -> list[Any]:
        return [self.theta] if self.mix is None else [self.theta, self.mix]

    def predict(self, part: Samples) -> tuple[Any, Any]:
        """Returns (T, n) and covariances (T, n, n)."""
        import torch

        c = torch.tensor(part.features) @ self.theta
        if self.mix is None or part.estimates is None:
            return c, torch.tensor(part.risk)
        return c, torch.einsum("k,tkij->tij", self.mix.softmax(0), torch.tensor(part.estimates))

    def weights(self) -> Weights:
        mix = None if self.mix is None else self.mix.detach().softmax(0).numpy()
        return Weights(self.theta.detach().numpy(), mix)


def _descend(
    train: Samples, seed: int, step: float, ridge: float, loss: Callable[..., Any]
) -> Weights:
    """Adam on `loss(c, Q, part, rows)`, with steps that fall like 1 / epoch.

    The ridge is a share of the loss before learning, so that it means the same for every loss.
    """
    import torch

    rng, model = np.random.default_rng(seed), _Model(train)
    optimiser = torch.optim.Adam(model.parameters, lr=step)
    held = 0.0
    if ridge:
        with torch.no_grad():
            held = ridge * abs(float(loss(*model.predict(train), train, np.arange(len(train)))))
    for epoch in range(EPOCHS):
        optimiser.param_groups[0]["lr"] = step / (1 + epoch)
        for rows in np.array_split(rng.permutation(len(train)), max(1, len(train) // BATCH)):
            part = train.take(rows)
            optimiser.zero_grad()
            value = loss(*model.predict(part), part, rows) + 0.5 * held * model.theta.square().sum()
            value.backward()
            optimiser.step()
    return model.weights()


def implicit(train: Samples, seed: int, criterion: str, step: float, ridge: float) -> Weights:
    """Through the best portfolio: `criterion="decision"` compares it with the one in hindsight,
    1/2 |x - x*|^2; "objective" asks what it was worth, which needs the true returns and risk."""
    import torch

    from .implicit import best_portfolios

    def loss(c: Any, Q: Any, part: Samples, rows: np.ndarray) -> Any:
        x = best_portfolios(c, Q, GAMMA)
        if criterion == "decision":
            return 0.5 * ((x - torch.tensor(part.portfolios)) ** 2).sum(1).mean()
        risk = torch.einsum("ti,tij,tj->t", x, torch.tensor(part.risk), x)
        return (0.5 * GAMMA * risk - (torch.tensor(part.returns) * x).sum(1)).mean()

    return _descend(train, seed, step, ridge, loss)


# --- all of them ---------------------------------------------------------------------------------


STEPS, RIDGES, SHRINK = (0.03, 0.3), (0.0, 0.03, 0.1), (0.0, 0.6, 0.9)
NOISE, OUR_RIDGES = (0.0, 0.5, 1.0), (0.0, 0.03, 0.1, 0.3, 1.0, 3.0)
"""Of ours: as many candidates as with two steps, for a fit to the minimum has none."""


@dataclass(frozen=True)
class Learner:
    """A way to fit, the settings that validation chooses from, and what it is told."""

    method: Callable[..., Weights]
    settings: dict[str, tuple[Any, ...]]
    """Values to try of each; all learners may also shrink covariances where Q is unknown."""
    needs_returns: bool
    """Whether fitting sees true returns and covariances."""
    random: bool = True

    def candidates(self, *, joint: bool) -> tuple[dict[str, Any], ...]:
        """Every combination."""
        options = {**self.settings, "shrink": SHRINK if joint else (0.0,)}
        return tuple(dict(zip(options, c, strict=True)) for c in product(*options.values()))

    def fit(self, train: Samples, seed: int, shrink: float, **settings: Any) -> Weights:
        return self.method(train.shrunk(shrink), seed, **settings).unshrunk(shrink)


def _descent(method: Callable[..., Weights], *, needs_returns: bool, **own: Any) -> Learner:
    options = {name: value if isinstance(value, tuple) else (value,) for name, value in own.items()}
    return Learner(method, {**options, "step": STEPS, "ridge": RIDGES}, needs_returns)


def _ours(power: int | str) -> Learner:
    options = {"power": (power,), "noise": NOISE, "ridge": OUR_RIDGES}
    return Learner(projections, options, needs_returns=False)


LEARNERS = {
    "two-stage regression": Learner(
        two_stage, {"ridge": (0.0, 1.0, 10.0, 100.0)}, needs_returns=True, random=False
    ),
    "implicit, objective": _descent(implicit, criterion="objective", needs_returns=True),
    "implicit, decisions": _descent(implicit, criterion="decision", needs_returns=False),
    "ours, bounded": _ours("bounded"),
    "ours, plain": _ours(1),
    "ours, squared": _ours(2),
}
