"""Any scikit-learn regressor as a model of costs: refitted to projections, or boosted.

    RefittedModel   in POCS, the paper's Algorithm 1 for any model: fit anew to the projections
    BoostedModel    functional gradient boosting: add a regressor fitted to what is left over

Both need no gradient of the regressor, so forests, boosted trees and Gaussian processes will do.
Letters: B samples, n cost entries.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.multioutput import MultiOutputRegressor
from sklearn.utils import get_tags

from .._common.checks import check_whole
from .._common.settings import Settings
from ..errors import InputError
from ..optimality.protocol import CostSet as Sets
from .certificate import Certificate, describe
from .contexts import as_contexts, check_data
from .evaluation import DistanceLoss, Evaluator
from .history import History, StopReason
from .lbfgs import lbfgs
from .models import CostModel, LinearModel
from .progress import progress

HELD_OUT = 0.2
"""Share of the samples that decides when to stop, where no validation data are given."""
RATE = 0.5
"""Of the best step along a new regressor: small steps generalize better."""
LONGEST = 64.0
"""Steps tried along a new regressor go up to this."""
FEWEST = 10
"""Samples below which none are kept aside."""


def as_regressor(regressor: Any, seed: int) -> Any:
    """A fresh copy that takes (B, n) targets, its random state set where it has none."""
    copy: Any = clone(regressor)
    free = [
        name
        for name, value in copy.get_params().items()
        if name.rpartition("__")[2] == "random_state" and value is None
    ]
    copy.set_params(**dict.fromkeys(free, seed))
    return copy if get_tags(copy).target_tags.multi_output else MultiOutputRegressor(copy)


class _Rows:
    """Contexts with the numbers of their samples in the training data."""

    def __init__(self, values: np.ndarray, index: np.ndarray) -> None:
        self.values, self.index = values, index

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, part: Any) -> _Rows:
        return _Rows(self.values[part], self.index[part])


class RefittedModel(Settings):
    """c = regressor(z), fitted anew to the targets taken in; 0 before the first fit."""

    family = "regressor"
    ridge = 0.0

    def __init__(self, regressor: Any, *, seed: int = 0) -> None:
        self.regressor = regressor
        self.seed = seed
        self.fitted_: Any = None
        self._targets: list[np.ndarray] = []

    def prepare(
        self, Z: Any, n: int, *, more: bool = False, weights: np.ndarray | None = None
    ) -> np.ndarray:
        self._Z, self._n, self._targets = as_contexts(Z), n, []
        return self._Z

    def cost(self, features: np.ndarray) -> np.ndarray:
        if self.fitted_ is None:
            return np.zeros((len(features), self._n))
        return predicted(self.fitted_, features, self._n)

    def add(
        self, features: Any, costs: np.ndarray, targets: np.ndarray, count: float | None = None
    ) -> None:
        self._targets.append(targets)

    def refit(self, step: float = 1.0) -> None:
        targets, self._targets = np.vstack(self._targets), []
        self.fitted_ = fitted(as_regressor(self.regressor, self.seed), self._Z, targets)

    def penalty(self) -> float:
        return 0.0

    def predict_cost(self, Z: Any) -> np.ndarray:
        return self.cost(as_contexts(Z))

    def torch_module(self) -> Any:
        raise InputError("A scikit-learn regressor is not a torch module; use solver='boosting'.")


class BoostedModel(RefittedModel):
    """c = constant + sum_k rate_k regressor_k(z)."""

    family = "boosted"

    def __init__(self, regressor: Any, *, seed: int = 0) -> None:
        super().__init__(regressor, seed=seed)
        self.stages: list[tuple[float, Any]] = []
        self.constant = np.zeros(0)
        self._train = np.zeros((0, 0))

    def prepare(
        self, Z: Any, n: int, *, more: bool = False, weights: np.ndarray | None = None
    ) -> Any:
        values = super().prepare(Z, n)
        self.constant = np.zeros(n)
        self._train = np.zeros((len(values), n))
        return _Rows(values, np.arange(len(values)))

    def start(self, constant: np.ndarray) -> None:
        """The same costs for every context, to begin with."""
        self.constant = constant
        self._train[:] = constant

    def cost(self, features: Any) -> np.ndarray:
        if isinstance(features, _Rows):
            return self._train[features.index]
        parts = [rate * predicted(stage, features, self._n) for rate, stage in self.stages]
        return np.tile(self.constant, (len(features), 1)) + sum(parts)

    def next_stage(self) -> tuple[Any, np.ndarray]:
        """A regressor fitted to targets less costs, and what it predicts for the training data."""
        targets, self._targets = np.vstack(self._targets), []
        seed = self.seed + len(self.stages)
        stage = fitted(as_regressor(self.regressor, seed), self._Z, targets - self._train)
        return stage, predicted(stage, self._Z, self._n)

    def forget_targets(self) -> None:
        self._targets = []

    def move(self, direction: np.ndarray, rate: float) -> None:
        self._train += rate * direction


def predicted(regressor: Any, Z: np.ndarray, n: int) -> np.ndarray:
    return np.asarray(regressor.predict(Z), dtype=np.float64).reshape(len(Z), n)


def fitted(regressor: Any, Z: np.ndarray, targets: np.ndarray) -> Any:
    return regressor.fit(Z, targets if targets.shape[1] > 1 else targets[:, 0])


def boost(
    model: BoostedModel,
    Z: Any,
    sets: Sets,
    *,
    loss: DistanceLoss,
    max_iter: int = 100,
    validation: tuple[Any, Sets] | None = None,
    patience: int = 10,
    tol: float = 1e-6,
    monitor: Callable[[CostModel], dict[str, Any]] | None = None,
    threads: int | None = None,
    verbose: bool = False,
) -> History:
    """Add regressors to `model` while they help on samples that it does not learn from.

    These are `validation`, or a fifth of the data drawn with the seed of the loss. Every round
    fits a regressor to the negative gradient of the loss, goes half of the best step along it, and
    looks at the held-out loss; the rounds after the best one are dropped.
    """
    check_data(len(Z), sets)
    check_whole(patience, "patience", 1)
    Z = as_contexts(Z)
    if validation is None and len(Z) >= FEWEST:
        order = np.random.default_rng(loss.seed).permutation(len(Z))
        cut = int(HELD_OUT * len(Z))
        held, kept = np.sort(order[:cut]), np.sort(order[cut:])
        Z, sets, validation = Z[kept], sets[kept], (Z[held], sets[held])
    features = model.prepare(Z, sets.n_parameters)
    model.start(_best_constant(sets, loss, threads))
    evaluator = Evaluator(sets, loss, cache=True, threads=threads)
    judge = _Judge(model, validation, loss, threads)
    history = History()
    with progress("Boosting", max_iter, verbose=verbose) as show:
        while True:
            done = evaluator(model, features)
            row = {"iteration": len(history), "loss": done.h} | done.row() | judge.look()
            history.append(row | (monitor(model) if monitor else {}))
            show(history.rows[-1])
            if len(history) - 1 - judge.best >= patience:
                history.reason = StopReason.VALIDATION
            elif len(history) > max_iter:
                history.reason = StopReason.CAP
            if history.reason is not None:
                break
            stage, direction = model.next_stage()
            rate = RATE * _best_step(model, features, evaluator, direction, done.h)
            model.move(direction, rate)
            model.stages.append((rate, stage))
            judge.move(rate, stage)
    model.forget_targets()
    del model.stages[judge.best :]
    done = describe(model, Z, sets, threads=threads)
    history.certificate = Certificate.of(done, tol, history.reason)
    return history


def _best_constant(sets: Sets, loss: DistanceLoss, threads: int | None) -> np.ndarray:
    """(n,) the costs, the same for every context, that explain the decisions best."""
    model = LinearModel()
    lbfgs(model, np.ones((len(sets), 1)), sets, loss=loss, max_iter=50, tol=1e-4, threads=threads)
    return model.intercept.copy()


def _best_step(
    model: BoostedModel, features: Any, evaluator: Evaluator, direction: np.ndarray, before: float
) -> float:
    """Doubled as long as that lowers the loss; the loss is convex along a line."""
    step, best = 1.0, before
    while step <= LONGEST:
        model.move(direction, step)
        value = evaluator.look(model, features).h
        model.move(direction, -step)
        if value >= best:
            break
        step, best = 2.0 * step, value
    return 0.5 * step


class _Judge:
    """The held-out loss round by round, from predictions that are added up, not made anew."""

    def __init__(
        self, model: BoostedModel, validation: Any, loss: DistanceLoss, threads: int | None
    ) -> None:
        self.best, self._least, self._rounds = 0, np.inf, 0
        self._evaluator = None
        if validation is not None:
            self._Z, sets = as_contexts(validation[0]), validation[1]
            self._costs = np.tile(model.constant, (len(self._Z), 1))
            self._evaluator = Evaluator(sets, loss, cache=True, threads=threads)

    def cost(self, features: np.ndarray) -> np.ndarray:
        return features

    def look(self) -> dict[str, float]:
        if self._evaluator is None:
            self.best = self._rounds
            return {}
        value = self._evaluator.look(self, self._costs).h  # pyright: ignore[reportArgumentType]
        if value < self._least:
            self.best, self._least = self._rounds, value
        return {"validation": value}

    def move(self, rate: float, stage: Any) -> None:
        self._rounds += 1
        if self._evaluator is not None:
            self._costs = self._costs + rate * predicted(stage, self._Z, self._costs.shape[1])
