"""The methods of `revealed bench noise`; each takes a data set and a seed and returns a model."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from revealed import fit, metrics
from revealed.datasets.dataset import DataSet
from revealed.fit import InverseRegressor, InverseRegressorCV, LinearModel, QuadraticModel, erm
from revealed.losses import make_loss
from revealed.optimality.sets import OptimalitySet

from .names import (
    ARMIJO,
    CHOSEN,
    LONG,
    OURS,
    PFYL,
    PLAIN,
    POCS,
    QUADRATIC_PFYL,
    QUADRATIC_SPO,
    REGRESSION,
    SPO,
    TUNED_PFYL,
    TUNED_SPO,
)

STEP, BATCH, EPOCHS = 1e-2, 32, 20
"""PyEPO's: Adam, batches of 32, 20 epochs."""
LONG_UPDATES = 20_000
"""Samples seen by `LONG`: as many as in 20 epochs over 1,000."""
STEPS, TUNED_EPOCHS = (1.0, 0.1, 0.01), 100

Learner = Callable[[DataSet, int], Any]


def _ours(**options: Any) -> Learner:
    def learn(data: DataSet, seed: int) -> Any:
        est = InverseRegressor(data.problem, random_state=seed, threads=1, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # 150 steps of POCS are no minimum
            return est.fit(data.train.contexts, data.train.decisions)

    return learn


def _chosen(data: DataSet, seed: int) -> Any:
    est = InverseRegressorCV(data.problem, random_state=seed, threads=1)
    return est.fit(data.train.contexts, data.train.decisions)


def _by_adam(name: str, model: Any = LinearModel, epochs: int | None = EPOCHS) -> Learner:
    """A rival's loss with its default settings; `epochs=None` for as many steps as 1,000 samples
    would get."""

    def learn(data: DataSet, seed: int) -> Any:
        count = epochs or max(EPOCHS, LONG_UPDATES // len(data.train))
        return _trained(data, name, model(), STEP, count, seed)

    return learn


def _trained(data: DataSet, name: str, model: Any, step: float, epochs: int, seed: int) -> Any:
    loss, train = make_loss(name, data.problem), data.train
    truth = train.costs if loss.needs_true_costs else None
    erm(
        model,
        train.contexts,
        OptimalitySet(data.problem, train.decisions),
        loss=loss,
        true_costs=truth,
        optimizer="adam",
        lr=step,
        batch_size=BATCH,
        max_epochs=epochs,
        seed=seed,
        threads=1,
    )
    return model


def _tuned(name: str) -> Learner:
    """The step that does best on validation decisions."""

    def learn(data: DataSet, seed: int) -> Any:
        models = [_trained(data, name, LinearModel(), s, TUNED_EPOCHS, seed) for s in STEPS]
        return min(models, key=lambda model: _validation_loss(data, model))

    return learn


def _validation_loss(data: DataSet, model: Any) -> float:
    costs = model.predict_cost(data.valid.contexts)
    decisions = data.valid.decisions
    return float(metrics.decision_loss(data.problem, costs=costs, decisions=decisions).mean())


def _regression(data: DataSet, seed: int) -> Any:
    return LinearModel().fit_targets(data.train.contexts, data.train.costs)


NOISY: dict[str, Learner] = {
    OURS: _ours(),
    PLAIN: _ours(noise=0.0),
    PFYL: _by_adam("pfyl"),
    LONG: _by_adam("pfyl", epochs=None),
    SPO: _by_adam("spo+"),
    REGRESSION: _regression,
}
CHOOSING: dict[str, Learner] = {
    CHOSEN: _chosen,
    QUADRATIC_PFYL: _by_adam("pfyl", QuadraticModel),
    QUADRATIC_SPO: _by_adam("spo+", QuadraticModel),
}
_FORMER = {"noise": 0.0, "ridge": 0.0, "loss": "squared"}
EXACT: dict[str, Learner] = {
    OURS: _ours(),
    POCS: _ours(solver=fit.POCS(max_iter=150), **_FORMER),
    ARMIJO: _ours(solver=fit.Armijo(max_iter=150), **_FORMER),
    PFYL: _by_adam("pfyl", epochs=None),
    TUNED_PFYL: _tuned("pfyl"),
    TUNED_SPO: _tuned("spo+"),
}
