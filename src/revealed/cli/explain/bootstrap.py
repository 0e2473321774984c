"""How stable the coefficients are: the same fit, to its minimum, on samples drawn anew.

Only a part of the coefficients means anything: adding a multiple of an equality row to all costs
changes no decision. That part is taken out first, so that two models which decide alike have the
same coefficients here.

Letters: n variables, d features, B samples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import lstsq

from ...optimality.sets import OptimalitySet
from ..plans import Plan

if TYPE_CHECKING:
    from ...fit import DistanceLoss

LOW, HIGH = 2.5, 97.5
CLOSE = 1e-3
"""Relative distance to the minimum that a round goes to."""


@dataclass(frozen=True, eq=False)
class Coefficients:
    """Coefficients that decisions can tell, with intervals; (n, terms + 1), the intercept last."""

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray
    rounds: int

    @property
    def clear(self) -> np.ndarray:
        """Whether the interval leaves out 0, and by more than rounding."""
        least = 1e-6 * np.abs(self.value).max(initial=0.0)
        return (self.low > least) | (self.high < -least)


def bootstrap(
    plan: Plan,
    Z: np.ndarray,
    decisions: np.ndarray,
    value: np.ndarray,
    costs: np.ndarray,
    *,
    margin: float,
    kind: str = "linear",
    loss: DistanceLoss | None = None,
    ridge: float = 0.0,
    rounds: int = 50,
    max_iter: int = 200,
    seed: int = 0,
    step: Callable[[int], None] = lambda k: None,
) -> Coefficients:
    """Intervals at 95% for the coefficients `value` (n, terms + 1) of a fitted model, which
    predicts `costs` (B, n) for these samples.

    Every round draws B samples with replacement and minimizes the same loss on them, with the same
    ridge, until the minimum is within 1e-3; `step` is called after each. Such a fit is compared
    with the same fit on all samples as they are.
    """
    from ...fit import LinearModel, QuadraticModel, lbfgs

    sets = OptimalitySet(plan.problem, decisions, margin)
    rng = np.random.default_rng(seed)

    def again(rows: np.ndarray) -> np.ndarray:
        quadratic = kind == "quadratic"
        model = (
            QuadraticModel(ridge=ridge) if quadratic else LinearModel(ridge=ridge, standardize=True)
        )
        lbfgs(
            model, Z[rows], sets[rows], loss=loss, max_iter=max_iter, tol=CLOSE, describe_fit=False
        )
        return told_part(plan, np.column_stack([model.coef, model.intercept]))

    found = np.empty((rounds, *value.shape))
    for k in range(rounds):
        found[k] = again(np.sort(rng.integers(0, len(Z), len(Z))))
        step(k + 1)
    low, high = np.percentile(found - again(np.arange(len(Z))), [LOW, HIGH], axis=0)
    told = told_part(plan, value)
    return Coefficients(told, told + low, told + high, rounds)


def told_part(plan: Plan, coefficients: np.ndarray) -> np.ndarray:
    """Coefficients (n, k) without what no decision can tell: their part along equality rows."""
    rows = plan.problem.eq_rows.matrix(0).toarray()
    if not len(rows):
        return coefficients
    weights = lstsq(rows.T, coefficients, lapack_driver="gelsd")[0]  # pyright: ignore
    return coefficients - rows.T @ weights
