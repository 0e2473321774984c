"""Scorers for scikit-learn's model selection, by name, and predictions of costs through a pipeline.

GridSearchCV(est, grid, scoring=rv.fit.scorer("accuracy")).fit(Z, X)
rv.fit.predict_cost(pipeline, Z)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._common.arrays import to_float64
from ..errors import InputError
from ..metrics import accuracy, relative_suboptimality
from ..optimality.sets import OptimalitySet
from ..projection import project
from .decisions import joined


def predict_cost(model: Any, Z: Any) -> Any:
    """(B, n) costs predicted by an estimator, or by the last step of a pipeline or of a search.

    Parameters
    ----------
    model : InverseRegressor, Pipeline, GridSearchCV, ...
        Fitted. The other steps of a pipeline transform the contexts first.
    Z : (B, d) contexts
    """
    if hasattr(model, "best_estimator_"):
        return predict_cost(model.best_estimator_, Z)
    if hasattr(model, "steps"):
        *before, (_, last) = model.steps
        for _, step in before:
            Z = Z if step in (None, "passthrough") else step.transform(Z)
        return predict_cost(last, Z)
    if not hasattr(model, "predict_cost"):
        raise InputError(
            f"`model` must be an InverseRegressor, or a pipeline or search that ends in one; got "
            f"{type(model).__name__}."
        )
    return model.predict_cost(Z)


def estimator_of(model: Any) -> Any:
    """The estimator at the end of pipelines and searches."""
    if hasattr(model, "best_estimator_"):
        return estimator_of(model.best_estimator_)
    return estimator_of(model.steps[-1][1]) if hasattr(model, "steps") else model


def _accuracy(problem: Any, costs: np.ndarray, X: Any) -> float:
    return float(np.mean(to_float64(accuracy(problem, costs=costs, decisions=X), "accuracy")))


def _extra_cost(problem: Any, costs: np.ndarray, X: Any) -> float:
    found = relative_suboptimality(problem, costs=costs, decisions=X)
    return -float(np.mean(to_float64(found, "relative suboptimality")))


def _distance(problem: Any, costs: np.ndarray, X: Any) -> float:
    sets = X if isinstance(X, OptimalitySet) else OptimalitySet(problem, X)
    return -float(np.mean(np.asarray(project(costs, sets).distance)))


SCORES: dict[str, tuple[Callable[[Any, np.ndarray, Any], float], str]] = {
    "accuracy": (_accuracy, "share of decisions repeated exactly, ties counted fairly"),
    "extra_cost": (_extra_cost, "minus the extra cost of the observed decisions, at unit costs"),
    "distance": (_distance, "minus the mean distance to the costs that explain the decisions"),
}
"""What `scorer` knows: larger is better in each."""


class Scorer:
    """How well predicted costs explain held-out decisions, as scikit-learn asks: larger is better.

    Parameters
    ----------
    name : str
        "accuracy", "extra_cost", "distance" or "decision_loss" (the estimator's own score).
    """

    def __init__(self, name: str) -> None:
        if name not in SCORES and name != "decision_loss":
            raise InputError(
                f"`name` must be one of {', '.join(SCORES)}, decision_loss; got {name!r}."
            )
        self.name = name

    def __call__(self, model: Any, Z: Any, X: Any, sample_weight: Any = None) -> float:
        if sample_weight is not None:
            raise InputError("Scorers weigh every sample alike; leave out `sample_weight`.")
        if self.name == "decision_loss":
            return float(model.score(Z, X))
        X = joined(X)
        own = isinstance(X, OptimalitySet)
        problem = X.problem if own else estimator_of(model).problem
        decisions = X if own else to_float64(X, "X")
        costs = to_float64(predict_cost(model, Z), "predicted costs")
        return SCORES[self.name][0](problem, costs, decisions)

    def __repr__(self) -> str:
        return f"scorer({self.name!r})"


def scorer(name: str) -> Scorer:
    """The scorer of that name, for `scoring=` of scikit-learn's searches and cross-validation.

    Parameters
    ----------
    name : str
        "accuracy": the share of decisions repeated exactly, ties counted fairly.
        "extra_cost": minus the extra cost of the observed decisions, costs brought to one scale.
        "distance": minus the mean distance to the costs that explain the decisions.
        "decision_loss": what `est.score` gives.
    """
    return Scorer(name)
