"""The estimator that chooses its own regularization and features, by cross-validation."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._common.settings import with_settings_of
from ..errors import InputError
from ..problems.protocol import Problem
from .choice import Search
from .estimator import InverseRegressor


class InverseRegressorCV(InverseRegressor):
    """`InverseRegressor` with ridge and features chosen by cross-validation, as `RidgeCV` does.

        est = InverseRegressorCV(problem, cv=5).fit(Z, X)
        est.ridge_, est.chosen_model_, est.best_score_
        print(est.choice_)          # what was chosen and what it gained
        est.plot_path()

    Parameters
    ----------
    problem
        As in `InverseRegressor`.
    model : "auto", a model or a list of models
        By name, or as objects such as KernelModel(gamma=0.1). "auto" chooses between "linear" and
        "quadratic", or for contexts (B, n, p) is "shared".
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
    **settings
        All others of `InverseRegressor` but `ridge`; the solver is `LBFGS`.

    Attributes
    ----------
    ridge_, chosen_model_, best_score_ : what was chosen, and its score (larger is better)
    cv_results_ : dict of arrays, as that of `GridSearchCV`
    choice_ : str
        The choice in one sentence.
    Others as in `InverseRegressor`.
    """

    ridge = "auto"

    @with_settings_of(InverseRegressor, without=("ridge",))
    def __init__(
        self,
        problem: Problem,
        *,
        model: Any = "auto",
        ridges: Any = "auto",
        cv: Any = 5,
        scoring: str = "distance",
        one_standard_error: bool = False,
        n_jobs: int | None = None,
        **settings: Any,
    ) -> None:
        if "ridge" in settings:
            raise TypeError("InverseRegressorCV chooses the ridge: give ridges=[...] instead.")
        super().__init__(problem, model=model, **settings)
        del self.ridge
        self.ridges = ridges
        self.cv = cv
        self.scoring = scoring
        self.one_standard_error = one_standard_error
        self.n_jobs = n_jobs

    def fit(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        Z: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        true_costs: Any = None,
        track_decisions: bool = False,
    ) -> InverseRegressorCV:
        """Choose on folds of contexts `Z` and decisions `y`, then fit to all of them.

        Parameters
        ----------
        Z : (B, d) or (B, n, p) array
            Contexts.
        y : (B, n) array or OptimalitySet, optional
            Observed decisions.
        sample_weight : (B,) array, optional
            How much each sample counts, at least 0.
        true_costs : (B, n) array, optional
            They stand for decisions that are not given. Beside decisions they are for
            scoring="regret" alone.
        track_decisions : bool
            Whether the history of the fit to all has the column `decision_loss`.

        Returns
        -------
        InverseRegressorCV
            This estimator, fitted.
        """
        search = Search(
            models=self.model,
            ridges=self.ridges,
            cv=self.cv,
            scoring=self.scoring,
            one_standard_error=self.one_standard_error,
            n_jobs=self.n_jobs,
        )
        self._fit_chosen(search, Z, y, sample_weight, true_costs, track_decisions)
        return self

    def partial_fit(self, *args: Any, **options: Any) -> Any:
        """Not here: a choice needs all data.

        Raises
        ------
        InputError
            Always; use `fit`.
        """
        raise InputError("InverseRegressorCV learns from all data at once; use `fit`.")

    def plot_path(self, ax: Any = None) -> Any:
        """Scores by ridge, a line for each model, with standard errors; the choice is marked.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure unless given.

        Returns
        -------
        matplotlib Axes
        """
        import matplotlib.pyplot as plt

        ax = plt.subplots(figsize=(6, 4))[1] if ax is None else ax
        results = self.cv_results_
        models, ridges = results["param_model"], results["param_ridge"]
        for name in dict.fromkeys(models):
            here = (models == name) & np.isfinite(results["mean_test_score"])
            error = results["std_test_score"][here] / np.sqrt(self.n_splits_)
            line = ax.errorbar(
                ridges[here],
                results["mean_test_score"][here],
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
