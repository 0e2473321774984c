"""One limit as a function of the context, from values that are limits in some samples only.

Where a limit is active a decision shows it; elsewhere it shows a value that the limit is at least.
That is censored regression. With b_i = <theta, f_i> + s e_i, e_i standard normal:

    active        density   phi((r_i - g_i) / s) / s
    not active    chance    Phi((g_i - r_i) / s)

Plain regression on the active ones alone would be too low: limits are active where they happen to
be small. A share of the samples may follow another law (wrong readings, other rules), as a third
kind of term that keeps a few of them from moving the fit. Slopes have a normal prior as wide as the
values spread, which shrinks a limit that is rarely active towards a constant, and vanishes beside
exact data. Letters: B samples, d slopes and an intercept, which comes first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import erfcx, log_ndtr

OUTLIERS, FEWEST, MOST = 0.02, 1e-3, 0.2
"""Share of the samples that follow another law: at first, and between what it is estimated."""
WIDTH = 100.0
"""Over how many spreads of the values that law is spread: so many that nearly no sample which
follows the limit, however far off, counts as an outlier. With 6 it were 3 to 5% of them, so that
noise came out 6% too small, and limits low."""
EXACT = 1e-7
"""Of the spread: noise below this is none."""
FREEDOM = 5
"""Active samples that slopes need beyond their number; with fewer the limit is a constant, unless
one more than their number lies on one plane exactly."""
ROUNDS = 1_000


@dataclass(frozen=True, eq=False)
class CensoredFit:
    """A fitted limit, in units where it is from above."""

    theta: np.ndarray
    """(d + 1,) of features with an intercept first."""
    scale: float
    """s, the limit's own noise."""
    information: np.ndarray
    """(d + 2, d + 2) observed, of theta / s and log s, given in which samples the limit is
    active; 0 for slopes that a constant limit does not have."""
    freedom: int
    """Of the t distribution that intervals take."""
    loss: float
    """Minus the log likelihood of all samples, with that of the prior."""
    inlier: np.ndarray
    """(B,) the chance that a sample follows the law at all."""
    outliers: float = OUTLIERS
    """Share of samples that do not."""
    exact: bool = False
    """Whether values have no noise, so that the limit has no error."""

    @property
    def covariance(self) -> np.ndarray:
        """(d + 1, d + 1) of theta, given labels; 0 where data are exact."""
        return covariance_of(self, self.information)


def covariance_of(fit: CensoredFit, information: np.ndarray) -> np.ndarray:
    """(d + 1, d + 1) of theta, from an information of theta / s and log s."""
    d = len(fit.theta)
    if fit.exact:
        return np.zeros((d, d))
    # Least squares divide by the degrees of freedom, the likelihood by the number of samples.
    more = (fit.freedom + d) / fit.freedom
    return more * fit.scale**2 * np.linalg.pinv(information, hermitian=True)[:d, :d]


def spread_of(values: np.ndarray) -> float:
    """The unit of values (B,): their standard deviation, or where they are all the same their
    size."""
    spread = float(np.std(values))
    size = float(np.abs(values).max(initial=0.0))
    return spread if spread > 1e-9 * size else size or 1.0


def term_losses(
    r: np.ndarray, g: np.ndarray, s: float, unit: float, share: float
) -> tuple[np.ndarray, np.ndarray]:
    """(B,) each: minus the log likelihood of values r where the limit g is active, and where it is
    not; densities are by `unit`, and a `share` of the samples follows another law."""
    e = (r - g) / s
    normal = -0.5 * e**2 - np.log(s / unit) - 0.5 * np.log(2.0 * np.pi)
    active = -np.logaddexp(np.log1p(-share) + normal, np.log(share / WIDTH))
    idle = -np.logaddexp(np.log1p(-share) + log_ndtr(-e), np.log(0.5 * share))
    return active, idle


def fit_censored(
    F: np.ndarray,
    r: np.ndarray,
    p: np.ndarray,
    *,
    start: np.ndarray | None = None,
    scale: float | None = None,
    weights: np.ndarray | None = None,
    rounds: int = ROUNDS,
    outliers: float = OUTLIERS,
) -> CensoredFit:
    """The likeliest limit.

    Parameters
    ----------
    F : (B, d + 1) array
        Standardized features, an intercept of 1 first.
    r : (B,) array
        Where decisions stand.
    p : (B,) array
        The chance that the limit is active there; 0 or 1 where that is known.
    start, scale, outliers : array, float and float, optional
        To start from. Without them from least squares, with noise as large as the values spread.
    weights : (B,) array, optional
        What samples count.
    rounds : int
        Most steps.
    """
    counts = np.ones(len(r)) if weights is None else weights
    data, counted, d = _Readings.of(F, r, counts), float((counts * p).sum()), F.shape[1]
    if counted <= d:
        return _constant(data, p, rounds)
    theta = _least_squares(F, r, p * counts) if start is None else start
    s = data.unit if scale is None else max(scale, EXACT * data.unit)
    found = _maximize(data, p, _At(theta, s, outliers), rounds)
    followed = float((counts * p * found.inlier).sum())
    if counted >= d + FREEDOM or (found.exact and followed > d + 0.5):
        return found
    return _constant(data, p, rounds)


@dataclass(frozen=True, eq=False)
class _Readings:
    """What one limit is learned from."""

    F: np.ndarray
    r: np.ndarray
    weights: np.ndarray
    unit: float
    """Of values."""
    prior: np.ndarray
    """(d + 1,) precision of the coefficients around 0."""

    @classmethod
    def of(cls, F: np.ndarray, r: np.ndarray, weights: np.ndarray) -> _Readings:
        unit = spread_of(r)
        prior = np.full(F.shape[1], 1.0 / unit**2)
        prior[0] = 0.0
        return cls(F, r, weights, unit, prior)


class _At(NamedTuple):
    """A law that readings may follow."""

    theta: np.ndarray
    s: float
    share: float
    """Of samples that follow another."""


class _Shares(NamedTuple):
    """(B,) how much each sample counts as one in which the limit is active, or is not, and that
    follows the law."""

    on: np.ndarray
    off: np.ndarray


def _constant(data: _Readings, p: np.ndarray, rounds: int) -> CensoredFit:
    d = data.F.shape[1]
    one = replace(data, F=data.F[:, :1], prior=np.zeros(1))
    theta = _least_squares(one.F, data.r, p * data.weights)
    found = _maximize(one, p, _At(theta, data.unit, OUTLIERS), rounds)
    kept = np.array([0, d])
    whole, information = np.zeros(d), np.zeros((d + 1, d + 1))
    whole[0], information[np.ix_(kept, kept)] = found.theta[0], found.information
    return replace(found, theta=whole, information=information)


def _least_squares(F: np.ndarray, r: np.ndarray, weights: np.ndarray) -> np.ndarray:
    root = np.sqrt(weights)[:, None]
    return np.linalg.lstsq(F * root, r * root[:, 0], rcond=None)[0]


def _maximize(data: _Readings, p: np.ndarray, at: _At, rounds: int) -> CensoredFit:
    """Expectation (who follows the law?) and maximization (Newton steps) in turn."""
    floor, loss = EXACT * data.unit, np.inf
    for _ in range(rounds):
        shares = _shares(data, p, at)
        theta = _newton_step(data, shares, at)
        s = max(_best_scale(data.r - data.F @ theta, shares, at.s), floor)
        share = 1.0 - float((shares.on + shares.off).sum() / data.weights.sum())
        at = _At(theta, s, min(max(share, FEWEST), MOST))
        before, loss = loss, _loss(data, p, at)
        if before - loss <= 1e-10 * max(abs(loss), 1.0):
            break
    shares = _shares(data, p, at)
    inlier_on, inlier_off = _inliers(data.r, data.F @ at.theta, at.s, data.unit, at.share)
    return CensoredFit(
        at.theta,
        at.s,
        _information(data, shares, at),
        max(int(shares.on.sum()) - len(at.theta), 1),
        loss,
        p * inlier_on + (1.0 - p) * inlier_off,
        at.share,
        at.s <= floor,
    )


def _loss(data: _Readings, p: np.ndarray, at: _At) -> float:
    active, idle = term_losses(data.r, data.F @ at.theta, at.s, data.unit, at.share)
    own = data.weights @ (p * active + (1.0 - p) * idle)
    return float(own + 0.5 * data.prior @ at.theta**2)


def _shares(data: _Readings, p: np.ndarray, at: _At) -> _Shares:
    on, off = _inliers(data.r, data.F @ at.theta, at.s, data.unit, at.share)
    return _Shares(data.weights * p * on, data.weights * (1.0 - p) * off)


def _inliers(
    r: np.ndarray, g: np.ndarray, s: float, unit: float, share: float
) -> tuple[np.ndarray, np.ndarray]:
    """(B,) chances of following the law, where active and where not."""
    active, idle = term_losses(r, g, s, unit, share)
    on = 1.0 - np.exp(np.minimum(np.log(share / WIDTH) + active, 0.0))
    off = 1.0 - np.exp(np.minimum(np.log(0.5 * share) + idle, 0.0))
    return on, off


def _mills(m: np.ndarray) -> np.ndarray:
    """phi / Phi, the slope of log Phi"""
    with np.errstate(over="ignore"):  # far above 0 it is 0
        return np.sqrt(2.0 / np.pi) / erfcx(-m / np.sqrt(2.0))


def _bend(m: np.ndarray, mills: np.ndarray) -> np.ndarray:
    """Minus the second derivative of log Phi, between 0 and 1."""
    return np.clip(mills * (mills + m), 0.0, 1.0)


def _newton_step(data: _Readings, shares: _Shares, at: _At) -> np.ndarray:
    """A step of Newton's method on the weighted loss, which is convex in theta, halved until it
    falls; all terms times s^2, so that nothing grows where data are exact."""
    theta, (on, off) = at.theta, shares
    gradient, hessian = _derivatives(data, shares, at)
    hessian[np.diag_indices_from(hessian)] += 1e-12 * max(float(np.trace(hessian)), 1e-300)
    step = np.linalg.solve(hessian, gradient)

    def value(t: np.ndarray) -> float:
        e = (data.r - data.F @ t) / at.s
        return float(0.5 * on @ e**2 - off @ log_ndtr(-e) + 0.5 * data.prior @ t**2)

    before, size = value(theta), 1.0
    while size > 1e-6:
        if value(theta - size * step) <= before:
            return theta - size * step
        size *= 0.5
    return theta


def _derivatives(data: _Readings, shares: _Shares, at: _At) -> tuple[np.ndarray, np.ndarray]:
    """Gradient and Hessian in theta, times s^2."""
    F, s, (on, off) = data.F, at.s, shares
    e = F @ at.theta - data.r
    m = e / s
    mills = _mills(m)
    gradient = F.T @ (on * e - off * s * mills) + s**2 * data.prior * at.theta
    curvature = on + off * _bend(m, mills)
    return gradient, (F.T * curvature) @ F + np.diag(s**2 * data.prior)


def _best_scale(e: np.ndarray, shares: _Shares, s: float) -> float:
    """The noise that fits residuals e (B,) best: Newton's method in 1 / s, where the loss is
    convex."""
    on, off = shares
    E, N = float(on @ e**2), float(on.sum())
    if N <= 0:
        return s
    gamma = 1.0 / s
    for _ in range(50):
        m = -gamma * e
        mills = _mills(m)
        slope = gamma * E - N / gamma + float(off @ (e * mills))
        bend = E + N / gamma**2 + float(off @ (e**2 * _bend(m, mills)))
        new = gamma - slope / bend
        new = min(max(new, 0.3 * gamma), 10.0 * gamma)
        if abs(new - gamma) <= 1e-9 * gamma:
            break
        gamma = new
        if gamma > 1e300:
            break
    return 1.0 / gamma


def _information(data: _Readings, shares: _Shares, at: _At) -> np.ndarray:
    """(d + 2, d + 2) observed information of theta / s and log s, labels and outliers given."""
    F, (on, off) = data.F, shares
    _, hessian = _derivatives(data, shares, at)
    m = (F @ at.theta - data.r) / at.s
    mills = _mills(m)
    bend = _bend(m, mills)
    with_theta = F.T @ (-2.0 * on * m + off * (mills - m * bend))
    own = float(on @ (2.0 * m**2) + off @ (m**2 * bend - m * mills))
    return np.block([[hessian, with_theta[:, None]], [with_theta[None, :], np.array([[own]])]])


def label_scores(F: np.ndarray, r: np.ndarray, fit: CensoredFit) -> np.ndarray:
    """(B, d + 2): how the score of theta / s and log s differs between a limit that is active and
    one that is not, outliers left out."""
    m = (F @ fit.theta - r) / fit.scale
    on, off = _inliers(r, F @ fit.theta, fit.scale, spread_of(r), fit.outliers)
    mills = _mills(m)
    along = on * m + off * mills
    scale = on * (1.0 - m**2) - off * m * mills
    return np.column_stack([F * along[:, None], scale])
