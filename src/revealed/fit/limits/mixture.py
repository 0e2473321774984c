"""Which unknown limits are active and where the limits lie, from decisions and contexts alone.

Where the vertex test leaves one guess for a decision, labels are known. Where it leaves several,
labels and limits are learned in turn (expectation maximization): given limits, each guess has a
likelihood; given the chances of guesses, each limit is a censored regression. Every turn raises the
likelihood of the whole, so it ends at a local maximum; several starts are tried and the best is
kept. Letters: B samples, K unknown limits, C guesses, d features.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import block_diag
from scipy.special import logsumexp

from .censored import (
    FREEDOM,
    ROUNDS,
    CensoredFit,
    covariance_of,
    fit_censored,
    label_scores,
    spread_of,
    term_losses,
)
from .labels import Guesses

TURNS = 100
FEW = 5
"""Steps of a regression in one turn; the last goes to the end."""
QUANTILE = 0.95
"""Of values: where limits are at first, if the vertex test tells too few of them."""
STARTS = 6
LOST = 0.95
"""Most of the information in any direction that labels may take away."""


@dataclass(frozen=True, eq=False)
class Mixture:
    """Limits, and for each sample the chances of its guesses."""

    fits: list[CensoredFit | None]
    """One for each limit, in units where it is from above; None where it is never active."""
    chance: np.ndarray
    """(B, C)"""
    loss: float
    """Minus the log likelihood of all samples."""
    starts: int
    """Starts that were tried; 1 where nothing had to be guessed."""
    agreeing: int
    """Starts that ended as well as the best, to one part in a thousand."""


@dataclass(frozen=True, eq=False)
class LimitData:
    """What limits are learned from."""

    F: np.ndarray
    """(B, d + 1) standardized features, an intercept of 1 first."""
    values: np.ndarray
    """(B, K) where decisions stand, in units where limits are from above."""
    guesses: Guesses
    weights: np.ndarray
    """(B,) what samples count."""

    def losses(self, fits: list[CensoredFit | None], extra: np.ndarray | None) -> np.ndarray:
        """(B, C): minus the log likelihood of each guess, plus what else it costs; inf for guesses
        that repeat another."""
        active, C = self.guesses.active, self.guesses.active.shape[1]
        total = np.zeros((len(self.values), C)) if extra is None else extra.copy()
        for k, fit in enumerate(fits):
            if fit is not None:
                r = self.values[:, k]
                on, off = term_losses(r, self.F @ fit.theta, fit.scale, spread_of(r), fit.outliers)
                total += np.where(active[:, :, k], on[:, None], off[:, None])
        total[np.arange(C) >= self.guesses.count[:, None]] = np.inf
        return total

    def chances(self, chance: np.ndarray) -> np.ndarray:
        """(B, K) that each limit is active, from those of guesses (B, C)."""
        return np.einsum("bc,bck->bk", chance, self.guesses.active)

    def fit(
        self,
        chance: np.ndarray,
        before: list[CensoredFit | None] | None = None,
        rounds: int = ROUNDS,
    ) -> list[CensoredFit | None]:
        """Every limit, given the chances of guesses, from where it was before."""
        p = self.chances(chance)
        return [
            self._fit_one(k, p[:, k], None if before is None else before[k], rounds)
            for k in range(p.shape[1])
        ]

    def _fit_one(
        self, k: int, p: np.ndarray, before: CensoredFit | None, rounds: int
    ) -> CensoredFit | None:
        if float((self.weights * p).sum()) < 0.5:
            return None
        from_before: dict[str, Any] = {}
        if before is not None:
            from_before = {"start": before.theta, "scale": before.scale}
            from_before["outliers"] = before.outliers
        r, weights = self.values[:, k], self.weights
        return fit_censored(self.F, r, p, weights=weights, rounds=rounds, **from_before)


def learn_mixture(
    data: LimitData,
    *,
    extra: np.ndarray | None = None,
    starts: int = STARTS,
    seed: int = 0,
) -> Mixture:
    """The likeliest limits and labels of several starts; `extra` (B, C) is what guesses cost
    besides, such as costs that they would take."""
    if data.guesses.sure.all():
        chance = np.zeros(data.guesses.active.shape[:2])
        chance[:, 0] = 1.0
        fits = data.fit(chance)
        return Mixture(fits, chance, _of(data, data.losses(fits, extra)), starts=1, agreeing=1)
    found = [_climb(data, fits, extra) for fits in _starts(data, starts, seed)]
    best = min(found, key=lambda m: m.loss)
    near = best.loss + 1e-3 * max(abs(best.loss), 1.0)
    agreeing = sum(m.loss <= near for m in found)
    return Mixture(best.fits, best.chance, best.loss, len(found), agreeing)


def best_guess(losses: np.ndarray) -> np.ndarray:
    """(B, C) 1 for the guess of the least loss, else 0."""
    chance = np.zeros(losses.shape)
    chance[np.arange(len(losses)), losses.argmin(axis=1)] = 1.0
    return chance


def _climb(data: LimitData, fits: list[CensoredFit | None], extra: np.ndarray | None) -> Mixture:
    loss = np.inf
    chance = chances_of(data.losses(fits, extra))
    for turn in range(TURNS):
        fits = data.fit(chance, fits, FEW if turn else ROUNDS)
        losses = data.losses(fits, extra)
        chance = chances_of(losses)
        before, loss = loss, _of(data, losses)
        if before - loss <= 1e-8 * max(abs(loss), 1.0):
            break
    fits = data.fit(chance, fits)
    losses = data.losses(fits, extra)
    return Mixture(fits, chances_of(losses), _of(data, losses), 1, 1)


def chances_of(losses: np.ndarray) -> np.ndarray:
    """(B, C) of guesses, from minus their log likelihoods."""
    whole: Any = logsumexp(-losses, axis=1, keepdims=True)
    return np.exp(-losses - whole)


def _of(data: LimitData, losses: np.ndarray) -> float:
    each: Any = logsumexp(-losses, axis=1)
    return -float(data.weights @ each)


def _starts(data: LimitData, starts: int, seed: int) -> Iterator[list[CensoredFit | None]]:
    """Limits to begin with: from the samples whose label is known, from above nearly all values,
    and from chances drawn at random."""
    rng = np.random.default_rng(seed)
    B, C, K = data.guesses.active.shape
    even = (np.arange(C) < data.guesses.count[:, None]) / data.guesses.count[:, None]
    sure = data.guesses.sure
    known = LimitData(
        data.F[sure], data.values[sure], data.guesses.take(np.flatnonzero(sure)), data.weights[sure]
    )
    wide = data.fit(even, None, 1)
    if sure.any():
        fits = known.fit(even[sure])
        enough = known.chances(even[sure]).sum(axis=0) >= data.F.shape[1] + FREEDOM
        yield [fits[k] if enough[k] else wide[k] for k in range(K)]
    yield [None if fit is None else _from_above(data, k, fit) for k, fit in enumerate(wide)]
    for _ in range(starts - 1 - int(sure.any())):
        drawn = rng.gamma(0.3, size=(B, C)) * (even > 0) + 1e-300 * (even > 0)
        yield data.fit(drawn / drawn.sum(axis=1, keepdims=True), None, 3)


def _from_above(data: LimitData, k: int, fit: CensoredFit) -> CensoredFit:
    """Asymmetric least squares, above nearly all values: a smooth quantile regression."""
    r, theta = data.values[:, k], fit.theta
    for _ in range(50):
        weight = np.where(r > data.F @ theta, QUANTILE, 1.0 - QUANTILE) * data.weights
        root = np.sqrt(weight)[:, None]
        theta = np.linalg.lstsq(data.F * root, r * root[:, 0], rcond=None)[0]
    return CensoredFit(
        theta, 0.3 * spread_of(r), fit.information, fit.freedom, fit.loss, fit.inlier
    )


def covariances(
    data: LimitData, fits: list[CensoredFit | None], chance: np.ndarray
) -> list[np.ndarray | None]:
    """(d + 1, d + 1) of each limit, with what is not known of labels taken into account.

    Observed information is that given labels less the variance that labels leave in the score
    (Louis), all limits together: a sample that is not given to one is given to another.
    """
    loose = [k for k, fit in enumerate(fits) if fit is not None and not fit.exact]
    found: list[np.ndarray | None] = [None if fit is None else fit.covariance for fit in fits]
    if data.guesses.sure.all() or not loose:
        return found
    known: list[Any] = [fits[k] for k in loose]
    size = known[0].information.shape[0]
    whole: Any = block_diag(*(fit.information for fit in known))
    scores = [
        label_scores(data.F, data.values[:, k], fit) * (np.diag(fit.information) > 0)
        for k, fit in zip(loose, known, strict=True)
    ]
    left = _less(whole, _missing(data, loose, scores, chance))
    for i, (k, fit) in enumerate(zip(loose, known, strict=True)):
        own = left[i * size : (i + 1) * size, i * size : (i + 1) * size]
        found[k] = covariance_of(fit, np.linalg.pinv(own, hermitian=True))
    return found


def _missing(
    data: LimitData, loose: list[int], scores: list[np.ndarray], chance: np.ndarray
) -> np.ndarray:
    """The information about the limits `loose` that labels leave open: the variance of their
    scores, limit by limit."""
    p, blocks = data.chances(chance), []
    for k, one in zip(loose, scores, strict=True):
        row = []
        for other, another in zip(loose, scores, strict=True):
            both = data.guesses.active[:, :, k] & data.guesses.active[:, :, other]
            spread = data.weights * ((chance * both).sum(axis=1) - p[:, k] * p[:, other])
            row.append((one.T * spread) @ another)
        blocks.append(row)
    return np.block(blocks)


def _less(whole: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """The inverse of an information less what is missing of it, of which no direction loses more
    than `LOST`."""
    sizes, V = np.linalg.eigh(whole)
    there = sizes > 1e-12 * sizes[-1]
    root = V[:, there] / np.sqrt(sizes[there])
    share, U = np.linalg.eigh(root.T @ missing @ root)
    axes = root @ U
    return (axes / (1.0 - np.clip(share, 0.0, LOST))) @ axes.T
