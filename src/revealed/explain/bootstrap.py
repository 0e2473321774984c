"""How firm the coefficients are: the same fit on samples drawn anew, many times.

Only a part of the coefficients means anything: adding a multiple of an equality row to all costs
changes no decision. That part is taken out first, so that two models which decide alike have the
same coefficients here.

Letters: n variables, d features, B samples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import lstsq

from ..optimality import OptimalitySet
from ..plans import Plan

LOW, HIGH = 2.5, 97.5


@dataclass(frozen=True, eq=False)
class Coefficients:
    """Coefficients that decisions can tell, with intervals; (n, d + 1), the intercept last."""

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
    *,
    margin: float,
    ridge: float = 0.0,
    rounds: int = 50,
    max_iter: int = 50,
    seed: int = 0,
    step: Callable[[int], None] = lambda k: None,
) -> Coefficients:
    """Intervals at 95% for the coefficients `value` (n, d + 1) of a fitted model.

    Every round draws B samples with replacement and fits by POCS, starting from `value`; `step` is
    called after each. What such a fit is compared with is the same fit on all samples as they are:
    `value` itself may have stopped before its end, and going on would look like a difference.
    """
    from ..fit import LinearModel, pocs  # brings torch, which `--help` can do without

    sets = OptimalitySet(plan.problem, decisions, margin)
    rng = np.random.default_rng(seed)

    def again(rows: np.ndarray) -> np.ndarray:
        model = LinearModel(ridge=ridge)
        model.coef, model.intercept = value[:, :-1].copy(), value[:, -1].copy()
        pocs(model, Z[rows], sets[rows], max_iter=max_iter)
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
