"""The estimator that chooses its own regularization and features, by cross-validation.

Every fold fits a path of ridges, from strong to weak, each fit starting from the one before, and
judges it on the samples held out. The usual judge is the loss that is minimized: it changes
smoothly with the costs, where the share of decisions repeated or |x(c) - x|^2 jumps and needs many
more samples to tell two ridges apart (docs/noise.md has figures). Letters: B samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.model_selection import KFold, check_cv

from .. import metrics
from .._common.arrays import to_float64
from .._common.checks import check_number
from ..errors import InputError
from ..optimality.cost_form import CostForm
from ..optimality.mixed import MixedSets
from ..optimality.protocol import CostSet as Sets
from .contexts import Common
from .defaults import STRENGTH
from .estimator import MODELS, InverseRegressor, _seed
from .evaluation import Evaluator
from .lbfgs import lbfgs

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


class _Fold(NamedTuple):
    """A path of fits of one model on one fold."""

    model: str
    fold: int
    scores: np.ndarray
    """(ridges,) larger is better; -inf where it was not tried."""


class InverseRegressorCV(InverseRegressor):
    """`InverseRegressor` with ridge and features chosen by cross-validation, as `RidgeCV` does.

        est = InverseRegressorCV(problem, cv=5).fit(Z, X)
        est.ridge_, est.chosen_model_, est.best_score_
        print(est.choice_)          # what was chosen and what it gained
        est.plot_path()

    Parameters
    ----------
    problem, margin, noise, power, delta, form, scale, given, fit_intercept, max_iter, tol, n_draws,
    kernel, gamma, degree, coef0, n_components, infeasible, decision_tol, random_state, threads,
    verbose
        As in `InverseRegressor`; the solver is "lbfgs".
    model : "auto", a name or a list of names
        "auto" chooses between "linear" and "quadratic", or for contexts (B, n, p) is "shared".
    ridges : "auto" or array
        To choose from. "auto" is a path around the usual 0.15 over the number of samples, from 100
        times as much to a three-hundredth; the usual one with the first model is kept unless
        another does better by more than the standard error of the difference.
    cv : int or a scikit-learn splitter
        Folds; an int shuffles the samples with `random_state`.
    scoring : "distance", "decision_loss", "accuracy" or "regret"
        What is judged on the samples held out: the loss that is minimized; |x(c) - x|^2; the share
        of decisions repeated; regret, where `fit` is given `true_costs`.
    one_standard_error : bool
        Take the strongest ridge within one standard error of the chosen one.
    n_jobs : int or None
        Folds fitted at a time, in processes; None for one, which then uses every core itself.

    Attributes
    ----------
    ridge_, chosen_model_, best_score_ : what was chosen, and its score (larger is better)
    cv_results_ : dict of arrays, as that of `GridSearchCV`
    choice_ : str
        The choice in one sentence.
    Others as in `InverseRegressor`.
    """

    solver = "lbfgs"
    ridge = "auto"
    optimiser, step, decay, batch_size = "adam", None, 0.0, 32
    inner_steps, patience, track_decisions = None, None, False

    def __init__(
        self,
        problem: Any,
        *,
        model: str | Sequence[str] = "auto",
        ridges: Any = "auto",
        cv: Any = 5,
        scoring: str = "distance",
        one_standard_error: bool = False,
        margin: float = 1.0,
        noise: float | str = "auto",
        power: int | str = "auto",
        delta: float | None = None,
        form: CostForm | None = None,
        scale: Any = None,
        given: dict[int, float] | None = None,
        fit_intercept: bool = True,
        max_iter: int | None = None,
        tol: float = 1e-6,
        n_draws: int | None = None,
        kernel: str = "rbf",
        gamma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        n_components: int | None = None,
        infeasible: str = "refuse",
        decision_tol: Any = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        threads: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.problem = problem
        self.model = model
        self.ridges = ridges
        self.cv = cv
        self.scoring = scoring
        self.one_standard_error = one_standard_error
        self.margin = margin
        self.noise = noise
        self.power = power
        self.delta = delta
        self.form = form
        self.scale = scale
        self.given = given
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.n_draws = n_draws
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.n_components = n_components
        self.infeasible = infeasible
        self.decision_tol = decision_tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.threads = threads
        self.verbose = verbose

    def fit(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, Z: Any, y: Any = None, *, sample_weight: Any = None, true_costs: Any = None
    ) -> InverseRegressorCV:
        """Choose on folds of contexts `Z` and decisions `y`, then fit to all of them.

        `true_costs` (B, n) stand for decisions that are not given; beside decisions they are for
        scoring="regret" alone.
        """
        self._check_choices(true_costs)
        asked, self._seed = self.model, _seed(self.random_state)
        costs_only = true_costs if y is None else None
        try:
            names = self.model = self._candidates(Z)
            self.model = names[0]
            self._check_parameters(None)
            whole = self._contexts(Z, y, costs_only, reset=True)
            contexts, sets = self._data(whole, y, costs_only, sample_weight)
            self._choose(sets)
            self._usual_ridge = STRENGTH / len(sets)
            folds = self._folds(contexts, sets)
            strengths = self._strengths(len(sets))
            truth = None if true_costs is None else to_float64(true_costs, "true_costs")
            truth = truth if truth is None or self._kept is None else truth[self._kept]
            found = self._run(names, folds, contexts, sets, strengths, truth)
            self._take_best(found, names, strengths / len(sets), len(folds))
            self.model = self.chosen_model_
            super().fit(Z, y, sample_weight=sample_weight, true_costs=costs_only)
        finally:
            self.model = asked
        return self

    def partial_fit(self, *args: Any, **options: Any) -> Any:
        """Not here: a choice needs all data."""
        raise InputError("InverseRegressorCV learns from all data at once; use `fit`.")

    def plot_path(self, ax: Any = None) -> Any:
        """Scores by ridge, a line for each model, with standard errors; the choice is marked."""
        import matplotlib.pyplot as plt

        ax = plt.subplots(figsize=(6, 4))[1] if ax is None else ax
        told = self.cv_results_
        models, ridges = told["param_model"], told["param_ridge"]
        for name in dict.fromkeys(models):
            here = (models == name) & np.isfinite(told["mean_test_score"])
            error = told["std_test_score"][here] / np.sqrt(self.n_splits_)
            line = ax.errorbar(
                ridges[here],
                told["mean_test_score"][here],
                error,
                marker="o",
                capsize=3,
                label=name,
            )
            if name == self.chosen_model_:
                ax.axvline(self.ridge_, color=line[0].get_color(), linestyle=":", linewidth=1)
        ax.set(xscale="log", xlabel="ridge", ylabel=f"held-out score ({self.scoring})")
        ax.legend(frameon=False)
        return ax

    # --- choosing --------------------------------------------------------------------------------

    def _check_choices(self, true_costs: Any) -> None:
        if self.scoring not in SCORINGS:
            raise InputError(
                f"`scoring` must be one of {', '.join(SCORINGS)}; got {self.scoring!r}."
            )
        if self.scoring == "regret" and true_costs is None:
            raise InputError('scoring="regret" needs true costs: fit(Z, X, true_costs=C).')

    def _candidates(self, Z: Any) -> list[str]:
        if isinstance(self.model, str) and self.model != "auto":
            names = [self.model]
        elif self.model == "auto":
            wide = getattr(Z, "ndim", 2) == 3 or (isinstance(Z, list) and np.ndim(Z[0]) == 2)
            names = ["shared"] if wide else ["linear", "quadratic"]
        else:
            names = list(self.model)
        bad = [name for name in names if name not in MODELS]
        if bad or not names:
            raise InputError(
                f"`model` must be auto, or names among {', '.join(MODELS)}; got {self.model!r}."
            )
        return names

    def _strengths(self, size: int) -> np.ndarray:
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

    def _folds(self, contexts: Any, sets: Sets) -> list[tuple[np.ndarray, np.ndarray]]:
        size = len(sets)
        splitter: Any = self.cv
        if isinstance(splitter, int | np.integer):
            if not 2 <= splitter <= size:
                raise InputError(
                    f"`cv` must be between 2 and the number of samples, {size}; got {splitter}."
                )
            splitter = KFold(int(splitter), shuffle=True, random_state=self._seed)
        return list(check_cv(splitter, None).split(np.zeros((size, 1))))  # pyright: ignore

    def _run(
        self,
        names: list[str],
        folds: list[tuple[np.ndarray, np.ndarray]],
        contexts: Any,
        sets: Sets,
        strengths: np.ndarray,
        truth: np.ndarray | None,
    ) -> list[_Fold]:
        tasks = [(name, k) for name in names for k in range(len(folds))]
        alone = self.n_jobs in (None, 1)
        jobs = Parallel(n_jobs=self.n_jobs)
        found = jobs(
            delayed(_fit_path)(
                self._like(name, self.threads if alone else 1),
                name,
                k,
                *(_part(contexts, index) for index in folds[k]),
                *(sets[index] for index in folds[k]),
                strengths,
                self.scoring,
                None if truth is None else truth[folds[k][1]],
            )
            for name, k in tasks
        )
        return list(found)  # pyright: ignore[reportArgumentType, reportReturnType]

    def _like(self, name: str, threads: int | None) -> InverseRegressor:
        """The plain estimator of a model, with what "auto" stands for settled."""
        shared = set(InverseRegressor(None).get_params()) & set(self.get_params(deep=False))
        options = {key: getattr(self, key) for key in shared}
        est = InverseRegressor(**options | {"model": name, "solver": "lbfgs", "threads": threads})
        est.loss_, est._seed = self.loss_, self._seed
        return est

    def _take_best(
        self, found: list[_Fold], names: list[str], ridges: np.ndarray, splits: int
    ) -> None:
        scores = np.array([[f.scores for f in found if f.model == name] for name in names])
        flat = scores.transpose(0, 2, 1).reshape(-1, splits)  # models x ridges, folds
        tried: Any = np.isfinite(flat).all(axis=1)
        if not tried.any():
            raise InputError(
                "No ridge could be judged on every fold: some held-out decisions have no finite "
                "score. Choose another `scoring`, or fewer folds."
            )
        mean = np.where(tried, np.where(tried[:, None], flat, 0.0).mean(axis=1), -np.inf)
        spread = np.where(tried[:, None], flat, np.nan).std(axis=1, ddof=1)
        models, path = np.repeat(names, len(ridges)), np.tile(ridges, len(names))
        best = self._unless_usual(int(np.argmax(mean)), models, path, flat)
        if self.one_standard_error:
            enough = mean[best] - spread[best] / np.sqrt(splits)
            alike = [k for k in range(len(mean)) if models[k] == models[best] and mean[k] >= enough]
            best = max(alike, key=lambda k: path[k])
        self.n_splits_, self.chosen_model_ = splits, str(models[best])
        self._chosen_ridge, self.best_score_ = float(path[best]), float(mean[best])
        self.cv_results_ = {
            "param_model": models,
            "param_ridge": path,
            "mean_test_score": mean,
            "std_test_score": spread,
            "rank_test_score": np.argsort(np.argsort(-mean, kind="stable"), kind="stable") + 1,
        } | {f"split{k}_test_score": flat[:, k] for k in range(splits)}
        self.choice_ = self._sentence(names, models, mean)

    def _unless_usual(
        self, best: int, models: np.ndarray, path: np.ndarray, scores: np.ndarray
    ) -> int:
        """The usual ridge with the first model, unless `best` beats it by more than the standard
        error of the difference, fold by fold: a choice among many must pay."""
        if not isinstance(self.ridges, str):
            return best
        there = np.flatnonzero((models == models[0]) & np.isclose(path, self._usual_ridge))
        if not there.size or not np.isfinite(scores[there[0]]).all():
            return best
        gain = scores[best] - scores[there[0]]
        clear = gain.mean() > gain.std(ddof=1) / np.sqrt(len(gain))
        return best if clear else int(there[0])

    def _sentence(self, names: list[str], models: np.ndarray, mean: np.ndarray) -> str:
        words = {"distance": "loss", "decision_loss": "decision loss"}.get(
            self.scoring, self.scoring
        )
        sign = 1.0 if self.scoring == "accuracy" else -1.0
        told = (
            f"Chose {self.chosen_model_} features and ridge {self._chosen_ridge:.2g} by "
            f"{self.n_splits_}-fold cross-validation: held-out {words} "
            f"{sign * self.best_score_:.4g}"
        )
        others = [
            f"{sign * mean[models == name].max():.4g} at best with {name} ones"
            for name in names
            if name != self.chosen_model_ and np.isfinite(mean[models == name].max())
        ]
        return f"{told}, against {' and '.join(others)}." if others else f"{told}."

    def _choose(self, sets: Sets) -> None:
        super()._choose(sets)
        if hasattr(self, "_chosen_ridge"):
            self.ridge_ = self._chosen_ridge


def _part(contexts: Any, index: np.ndarray) -> Any:
    """Some of the contexts, as a data set of its own."""
    part = contexts[index]
    return Common(part.rows, len(index)) if isinstance(part, Common) else part


def _fit_path(
    est: InverseRegressor,
    name: str,
    fold: int,
    Z: Any,
    held_Z: Any,
    sets: Sets,
    held: Sets,
    strengths: np.ndarray,
    scoring: str,
    truth: np.ndarray | None,
) -> _Fold:
    """Fit the ridges one after the other, each from where the one before ended."""
    est.ridge_ = float(strengths[0]) / len(sets)
    model: Any = est._new_model(Z)
    features = model.prepare(Z, sets.n_parameters)
    few = replace(est.loss_, draws=min(est.loss_.draws, _draws(FITTING, len(sets))))
    evaluator = Evaluator(sets, few, cache=True, threads=est.threads)
    judge = _Judge(est, held_Z, held, scoring, truth)
    scores, rises = np.full(len(strengths), -np.inf), 0
    for k, strength in enumerate(strengths):
        model.set_ridge(float(strength) / len(sets))
        lbfgs(
            model, Z, sets, max_iter=200, tol=max(LOOSE, est.tol), threads=est.threads,
            evaluator=evaluator, features=features, describe_fit=False,
            sample_curvature=False,
        )  # fmt: skip
        scores[k] = judge(model)
        rises = 0 if scores[k] >= scores[: k + 1].max() else rises + 1
        if rises >= RISES:
            break
    return _Fold(name, fold, scores)


def _draws(total: int, samples: int) -> int:
    """An even number for each sample, between 2 and 16."""
    return 2 * min(8, max(1, round(0.5 * total / samples)))


class _Judge:
    """The score of a model on held-out samples; larger is better."""

    def __init__(
        self,
        est: InverseRegressor,
        Z: Any,
        sets: Sets,
        scoring: str,
        truth: np.ndarray | None,
    ) -> None:
        self._Z, self._sets, self._scoring, self._truth = Z, sets, scoring, truth
        self._threads = est.threads
        loss = replace(est.loss_, draws=_draws(JUDGING, len(sets)), seed=est.loss_.seed + 1)
        self._evaluator = Evaluator(sets, loss, cache=True, threads=est.threads)
        if scoring != "distance" and isinstance(sets, MixedSets):
            raise InputError('Samples of several problems are judged by scoring="distance".')

    def __call__(self, model: Any) -> float:
        costs = model.predict_cost(self._Z)
        if self._scoring == "distance":
            return -self._evaluator.look(_AsTold(), costs).h  # pyright: ignore[reportArgumentType]
        sets: Any = self._sets
        costs = costs if sets.form is None else sets.form.costs(costs)
        given = {"costs": costs, "decisions": sets.decisions}
        if self._scoring == "accuracy":
            return float(metrics.accuracy(sets.problem, **given).mean())
        if self._scoring == "regret":
            return -float(metrics.relative_regret(sets.problem, **given, true_costs=self._truth))
        return -float(metrics.decision_loss(sets.problem, **given).mean())


class _AsTold:
    """A model whose features are the costs themselves."""

    def cost(self, features: np.ndarray) -> np.ndarray:
        return features
