"""Pictures of fits, with matplotlib (`pip install 'revealed[plot]'`).

    rv.plot.ridges(cv)                      # held-out scores along the path of ridges
    rv.plot.distances(est, Z, X)            # does a small distance mean a repeated decision?
    rv.plot.intervals(est.intervals(Z, X))  # costs with confidence intervals
    rv.plot.decisions(X[0], est.predict(Z[:1])[0])

Each draws into `ax`, or a new figure, and returns the axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ._common.arrays import to_float64
from ._common.optional import require
from .errors import InputError, ShapeError

OBSERVED, PREDICTED = "#0067b1", "#d9480f"


def ridges(search: Any, ax: Any = None) -> Any:
    """Held-out scores by ridge, a line for each model, with standard errors; the choice is marked.

    Parameters
    ----------
    search : InverseRegressorCV
        Fitted.
    ax : matplotlib axes or None
    """
    if not hasattr(search, "plot_path"):
        raise InputError(f"`search` must be an InverseRegressorCV; got {type(search).__name__}.")
    return search.plot_path(_axes(ax))


def distances(model: Any, Z: Any, X: Any, *, bins: int = 8, ax: Any = None) -> Any:
    """The share of decisions repeated, by how far the predicted cost is from explaining them.

    A distance that means something falls from left to right; bars are 95% intervals of the shares.

    Parameters
    ----------
    model : fitted InverseRegressor, or a pipeline that ends in one
    Z, X : (B, d) contexts and (B, n) decisions, best ones that the model has not seen
    bins : int
        Groups with equal numbers of samples.
    ax : matplotlib axes or None
    """
    from scipy.stats import binomtest

    from .fit.scoring import estimator_of, predict_cost
    from .metrics import same_decision
    from .optimality.sets import OptimalitySet
    from .projection import project

    problem, costs = estimator_of(model).problem, to_float64(predict_cost(model, Z), "costs")
    taken = to_float64(X, "X")
    away = np.asarray(project(costs, OptimalitySet(problem, taken)).distance)
    same = np.asarray(same_decision(np.asarray(problem.solve(costs).x), taken))
    groups = np.array_split(np.argsort(away, kind="stable"), min(bins, len(away)))
    shares = np.array([same[rows].mean() for rows in groups])
    limits = [binomtest(int(same[r].sum()), len(r)).proportion_ci(method="wilson") for r in groups]
    error = np.array([[s - ci.low, ci.high - s] for s, ci in zip(shares, limits, strict=True)]).T
    ax = _axes(ax)
    middles = [float(np.median(away[rows])) for rows in groups]
    ax.errorbar(middles, shares, np.maximum(error, 0), marker="o", capsize=3, color=OBSERVED)
    ax.set(xlabel="distance to the costs that explain the decision", ylim=(-0.03, 1.03))
    ax.set_ylabel("share of decisions repeated")
    return ax


def intervals(found: Any, *, names: Sequence[str] | None = None, ax: Any = None) -> Any:
    """Mean costs with their confidence intervals; entries of which nothing is said are left out.

    Parameters
    ----------
    found : CoefficientIntervals
        From `est.intervals(Z, X)`.
    names : sequence of str or None
        Of the n cost entries.
    ax : matplotlib axes or None
    """
    value, low, high = (np.asarray(a)[:, -1] for a in (found.value, found.low, found.high))
    names = [f"x{j}" for j in range(len(value))] if names is None else list(names)
    if len(names) != len(value):
        raise ShapeError(f"`names` must be {len(value)}; got {len(names)}.")
    rows = np.flatnonzero(np.isfinite(value) & np.isfinite(low))
    if not rows.size:
        raise InputError(f"There is no interval to draw. {found}")
    ax = _axes(ax, height=0.25 * len(rows) + 1.2)
    error = np.maximum([value[rows] - low[rows], high[rows] - value[rows]], 0.0)
    ax.errorbar(value[rows], np.arange(len(rows)), xerr=error, fmt="o", capsize=3, color=OBSERVED)
    ax.axvline(0.0, color="0.6", linewidth=1)
    ax.set_yticks(np.arange(len(rows)), [names[j] for j in rows])
    ax.invert_yaxis()
    ax.set_xlabel(f"mean cost, {100 * found.level:g}% intervals")
    return ax


def decisions(
    observed: Any,
    predicted: Any,
    *,
    names: Sequence[str] | None = None,
    most: int = 30,
    ax: Any = None,
) -> Any:
    """One observed decision beside the predicted one, entry by entry.

    Parameters
    ----------
    observed, predicted : (n,) decisions
    names : sequence of str or None
        Of the n entries.
    most : int
        Entries to draw: those that differ most, in their own order; entries that are 0 in both are
        left out.
    ax : matplotlib axes or None
    """
    taken, made = (np.ravel(to_float64(x, "decision")) for x in (observed, predicted))
    if taken.shape != made.shape:
        raise ShapeError(f"The decisions must be alike; got {taken.shape} and {made.shape}.")
    names = [f"x{j}" for j in range(len(taken))] if names is None else list(names)
    used = np.flatnonzero((np.abs(taken) > 1e-6) | (np.abs(made) > 1e-6))
    rows = np.sort(used[np.argsort(-np.abs(made - taken)[used], kind="stable")][:most])
    ax = _axes(ax, height=0.3 * len(rows) + 1.2)
    place = np.arange(len(rows))
    ax.barh(place - 0.2, taken[rows], 0.38, color=OBSERVED, label="observed")
    ax.barh(place + 0.2, made[rows], 0.38, color=PREDICTED, label="predicted")
    ax.set_yticks(place, [names[j] for j in rows])
    ax.invert_yaxis()
    ax.legend(frameon=False, ncols=2, loc="lower left", bbox_to_anchor=(0, 1))
    return ax


def _axes(ax: Any, height: float = 4.0) -> Any:
    if ax is not None:
        return ax
    require("matplotlib", "`revealed.plot`", "plot")
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(6, height), layout="constrained")[1]
