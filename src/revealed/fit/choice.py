"""The choice of model and ridge by cross-validation.

Every fold fits a path of ridges, from strong to weak, each fit starting from the one before, and
judges it on the samples held out. The usual judge is the loss that is minimized: it changes
smoothly with the costs, where the share of decisions repeated or |x(c) - x|^2 jumps and needs many
more samples to tell two ridges apart (docs/noise.md has figures). Letters: B samples.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.model_selection import KFold, check_cv

from .. import metrics
from .._common.arrays import to_float64
from .._common.checks import check_number
from ..errors import InputError
from ..optimality.mixed import MixedSets
from ..optimality.protocol import CostSet as Sets
from .contexts import Common
from .defaults import STRENGTH
from .evaluation import DistanceLoss, Evaluator
from .lbfgs import lbfgs
from .models import CostModel
from .named_models import MODELS, fresh_copy, label_of

SCORINGS = ("distance", "decision_loss", "accuracy", "regret")
PATH = STRENGTH * 10.0 ** np.arange(2.0, -2.6, -0.5)
"""Strengths of the prior that are tried: a ridge is this over the number of samples."""
RISES = 2
"""Ridges in a row that do worse than the best on a fold, after which weaker ones are not tried."""
LOOSE = 1e-3
"""Relative distance to the minimum that a fit on a fold goes to: differences between ridges are
larger."""
FITTING, JUDGING = 1_000, 4_000
"""Draws over all samples together, in fits on folds and in judging them: fewer than a final fit
has, but two ridges see the same ones."""


@dataclass(frozen=True, kw_only=True)
class Search:
    """What is tried, and how it is judged; `InverseRegressorCV` explains the settings."""

    models: Any = "auto"
    ridges: Any = "auto"
    cv: Any = 5
    scoring: str = "distance"
    one_standard_error: bool = False
    n_jobs: int | None = None

    def check(self, true_costs: Any) -> None:
        """Refuse a judge that is none, or that lacks what it judges by."""
        if self.scoring not in SCORINGS:
            raise InputError(
                f"`scoring` must be one of {', '.join(SCORINGS)}; got {self.scoring!r}."
            )
        if self.scoring == "regret" and true_costs is None:
            raise InputError('scoring="regret" needs true costs: fit(Z, X, true_costs=C).')

    def candidates(self, Z: Any) -> dict[str, Any]:
        """The models to choose from, by label: names and objects."""
        if isinstance(self.models, str) and self.models == "auto":
            by_entry = getattr(Z, "ndim", 2) == 3 or (isinstance(Z, list) and np.ndim(Z[0]) == 2)
            models: list[Any] = ["shared"] if by_entry else ["linear", "quadratic"]
        else:
            models = list(self.models) if isinstance(self.models, list | tuple) else [self.models]
        bad = [
            model
            for model in models
            if (model not in MODELS if isinstance(model, str) else _is_not_convex(model))
        ]
        if bad or not models:
            raise InputError(
                f"`model` must be auto, or models among {', '.join(MODELS)}, by name or as objects "
                f"such as KernelModel(gamma=0.1); got {self.models!r}."
            )
        return {label_of(model): model for model in models}

    def strengths(self, size: int) -> np.ndarray:
        """Ridges times the number of samples, from strong to weak."""
        if isinstance(self.ridges, str):
            if self.ridges != "auto":
                raise InputError(f'`ridges` must be "auto" or numbers; got {self.ridges!r}.')
            return PATH
        array = np.atleast_1d(to_float64(self.ridges, "ridges")).ravel()
        if not array.size:
            raise InputError("`ridges` must hold at least one number; got none.")
        for value in array.tolist():
            check_number(value, "ridges")
        return np.sort(array)[::-1] * size

    def folds(self, size: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Samples to fit to and samples to judge by, fold by fold."""
        splitter: Any = self.cv
        if isinstance(splitter, int | np.integer):
            if not 2 <= splitter <= size:
                raise InputError(
                    f"`cv` must be between 2 and the number of samples, {size}; got {splitter}."
                )
            splitter = KFold(int(splitter), shuffle=True, random_state=seed)
        return list(check_cv(splitter, None).split(np.zeros((size, 1))))  # pyright: ignore


def _is_not_convex(model: Any) -> bool:
    return getattr(model, "family", None) != "convex"


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What cross-validation has chosen."""

    label: str
    ridge: float
    score: float
    splits: int
    results: dict[str, Any]
    sentence: str


@dataclass(frozen=True, kw_only=True)
class Data:
    """What folds are taken from, and how they are fitted."""

    Z: Any
    sets: Sets
    loss: DistanceLoss
    truth: np.ndarray | None
    """(B, n) true costs, where the judge needs them."""
    tol: float
    seed: int
    threads: int | None

    def part(self, index: np.ndarray, threads: int | None) -> Data:
        """Some of the samples."""
        Z = self.Z[index]
        return replace(
            self,
            Z=Common(Z.rows, len(index)) if isinstance(Z, Common) else Z,
            sets=self.sets[index],
            truth=None if self.truth is None else self.truth[index],
            threads=threads,
        )


class _Fold(NamedTuple):
    """A path of fits of one model on one fold."""

    model: str
    fold: int
    scores: np.ndarray
    """(ridges,) larger is better; -inf where it was not tried."""


def choose(search: Search, models: dict[str, CostModel], data: Data) -> Choice:
    """The model, by label, and the ridge that do best on samples held out."""
    size = len(data.sets)
    folds, strengths = search.folds(size, data.seed), search.strengths(size)
    threads = data.threads if search.n_jobs in (None, 1) else 1
    found: Any = Parallel(n_jobs=search.n_jobs)(
        delayed(_fit_path)(
            label,
            k,
            fresh_copy(model, ridge=float(strengths[0]) / len(fitted), seed=data.seed),
            data.part(fitted, threads),
            data.part(held, threads),
            strengths,
            search.scoring,
        )
        for label, model in models.items()
        for k, (fitted, held) in enumerate(folds)
    )
    return _best(search, list(models), found, strengths / size, len(folds), STRENGTH / size)


def _fit_path(
    label: str,
    fold: int,
    model: Any,
    data: Data,
    held: Data,
    strengths: np.ndarray,
    scoring: str,
) -> _Fold:
    """Fit the ridges one after the other, each from where the one before ended."""
    Z, sets = data.Z, data.sets
    features = model.prepare(Z, sets.n_parameters, weights=sets.weights)
    few = replace(data.loss, draws=min(data.loss.draws, _draws(FITTING, len(sets))))
    evaluator = Evaluator(sets, few, cache=True, threads=data.threads)
    judge = _Judge(held, scoring)
    scores, rises = np.full(len(strengths), -np.inf), 0
    for k, strength in enumerate(strengths):
        model.set_ridge(float(strength) / len(sets))
        lbfgs(
            model, Z, sets, max_iter=200, tol=max(LOOSE, data.tol), threads=data.threads,
            evaluator=evaluator, features=features, describe_fit=False,
            sample_curvature=False,
        )  # fmt: skip
        scores[k] = judge(model)
        rises = 0 if scores[k] >= scores[: k + 1].max() else rises + 1
        if rises >= RISES:
            break
    return _Fold(label, fold, scores)


def _draws(total: int, samples: int) -> int:
    """An even number for each sample, between 2 and 16."""
    return 2 * min(8, max(1, round(0.5 * total / samples)))


class _Judge:
    """The score of a model on held-out samples; larger is better."""

    def __init__(self, held: Data, scoring: str) -> None:
        self._held, self._scoring = held, scoring
        loss = replace(held.loss, draws=_draws(JUDGING, len(held.sets)), seed=held.loss.seed + 1)
        self._evaluator = Evaluator(held.sets, loss, cache=True, threads=held.threads)
        if scoring != "distance" and isinstance(held.sets, MixedSets):
            raise InputError('Samples of several problems are judged by scoring="distance".')

    def __call__(self, model: Any) -> float:
        costs = model.predict_cost(self._held.Z)
        if self._scoring == "distance":
            return -self._evaluator.look(_Known(), costs).h  # pyright: ignore[reportArgumentType]
        sets: Any = self._held.sets
        costs = costs if sets.form is None else sets.form.costs(costs)
        given = {"costs": costs, "decisions": sets.decisions}
        if self._scoring == "accuracy":
            return float(metrics.accuracy(sets.problem, **given).mean())
        if self._scoring == "regret":
            truth = self._held.truth
            return -float(metrics.relative_regret(sets.problem, **given, true_costs=truth))
        return -float(metrics.decision_loss(sets.problem, **given).mean())


class _Known:
    """A model whose features are the costs themselves."""

    def cost(self, features: np.ndarray) -> np.ndarray:
        return features


def _best(
    search: Search,
    labels: list[str],
    found: list[_Fold],
    ridges: np.ndarray,
    splits: int,
    usual: float,
) -> Choice:
    scores = np.array([[f.scores for f in found if f.model == label] for label in labels])
    flat = scores.transpose(0, 2, 1).reshape(-1, splits)  # models x ridges, folds
    tried: Any = np.isfinite(flat).all(axis=1)
    if not tried.any():
        raise InputError(
            "No ridge could be judged on every fold: some held-out decisions have no finite "
            "score. Choose another `scoring`, or fewer folds."
        )
    mean = np.where(tried, np.where(tried[:, None], flat, 0.0).mean(axis=1), -np.inf)
    spread = np.where(tried[:, None], flat, np.nan).std(axis=1, ddof=1)
    models, path = np.repeat(labels, len(ridges)), np.tile(ridges, len(labels))
    best = int(np.argmax(mean))
    if isinstance(search.ridges, str):
        best = _unless_usual(best, models, path, flat, usual)
    if search.one_standard_error:
        enough = mean[best] - spread[best] / np.sqrt(splits)
        alike = [k for k in range(len(mean)) if models[k] == models[best] and mean[k] >= enough]
        best = max(alike, key=lambda k: path[k])
    results = {
        "param_model": models,
        "param_ridge": path,
        "mean_test_score": mean,
        "std_test_score": spread,
        "rank_test_score": np.argsort(np.argsort(-mean, kind="stable"), kind="stable") + 1,
    } | {f"split{k}_test_score": flat[:, k] for k in range(splits)}
    label, ridge, score = str(models[best]), float(path[best]), float(mean[best])
    return Choice(
        label=label,
        ridge=ridge,
        score=score,
        splits=splits,
        results=results,
        sentence=_sentence(search.scoring, label, ridge, score, results, splits),
    )


def _unless_usual(
    best: int, models: np.ndarray, path: np.ndarray, scores: np.ndarray, usual: float
) -> int:
    """The usual ridge with the first model, unless `best` beats it by more than the standard
    error of the difference, fold by fold: a choice among many must pay."""
    there = np.flatnonzero((models == models[0]) & np.isclose(path, usual))
    if not there.size or not np.isfinite(scores[there[0]]).all():
        return best
    gain = scores[best] - scores[there[0]]
    clear = gain.mean() > gain.std(ddof=1) / np.sqrt(len(gain))
    return best if clear else int(there[0])


def _sentence(
    scoring: str, label: str, ridge: float, score: float, results: dict[str, Any], splits: int
) -> str:
    words = {"distance": "loss", "decision_loss": "decision loss"}.get(scoring, scoring)
    sign = 1.0 if scoring == "accuracy" else -1.0
    said = (
        f"Chose {label} features and ridge {ridge:.2g} by {splits}-fold cross-validation: "
        f"held-out {words} {sign * score:.4g}"
    )
    models, mean = results["param_model"], results["mean_test_score"]
    others = [
        f"{sign * mean[models == name].max():.4g} at best with {name} ones"
        for name in dict.fromkeys(models.tolist())
        if name != label and np.isfinite(mean[models == name].max())
    ]
    return f"{said}, against {' and '.join(others)}." if others else f"{said}."
