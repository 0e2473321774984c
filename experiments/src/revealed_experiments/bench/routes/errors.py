"""How sure the coefficients are: a bootstrap over routes, every draw fitted from the beginning.

A draw has fewer routes than the table (m out of n), which saves time, and its spread is scaled by
sqrt(m / n). As each fit begins anew, the spread also holds what a loss that is not convex adds by
ending in one minimum or another; a formula from the curvature at the fit would not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm

from revealed.datasets.routes import Routes

from .features import MoveFeatures
from .ours import Fit, Setting, fit_projection

LEVEL = 0.95


@dataclass(frozen=True)
class Errors:
    """Of each coefficient, that of length (given, so 0) included; in units of 100 m."""

    standard_error: np.ndarray
    low: np.ndarray
    high: np.ndarray
    draws: int
    size: int
    """Routes of a draw."""


def bootstrap(
    fit: Fit,
    routes: Routes,
    features: MoveFeatures,
    setting: Setting,
    *,
    draws: int,
    size: int,
    seed: int = 0,
    **options: Any,
) -> Errors:
    """Standard errors of `fit`, and normal intervals; `options` go to the fits."""
    rng = np.random.default_rng(seed)
    size = min(size, len(routes))
    coefs = [
        fit_projection(
            routes[rng.integers(len(routes), size=size)], features, setting, **options
        ).coef
        for _ in range(draws)
    ]
    error = np.sqrt(size / len(routes)) * np.std(coefs, axis=0, ddof=1)
    reach = norm.ppf((1 + LEVEL) / 2) * error
    return Errors(error, fit.coef - reach, fit.coef + reach, draws, size)
