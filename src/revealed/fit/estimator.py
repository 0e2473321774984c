"""The scikit-learn estimator: contexts and decisions in, decisions for new contexts out."""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._common.arrays import to_float64
from .._common.checks import check_whole
from ..datasets.partitions import Partitions
from ..errors import InputError
from ..optimality.mixed import MixedSets
from ..optimality.protocol import CostSet as Sets
from ..optimality.sets import OptimalitySet
from ..problems.protocol import Problem
from .agreement import checked_settings, usual_solver
from .choice import Data, Search, choose
from .contexts import Common, checked_contexts
from .decisions import as_sets, checked_sample_weight, in_units, weighed
from .defaults import STRENGTH, default_loss, default_ridge
from .feature_models import SharedModel
from .history import History, StopReason
from .intervals import CoefficientIntervals, coefficient_intervals, kind_of
from .limits.estimating import fit_in_turn, limit_data
from .loss_names import Huber, Welsch, power_and_delta
from .models import CostModel
from .named_models import CHOSEN, MODELS, fresh_copy
from .observed import observed
from .partial import fit_partial, in_part
from .partitioned.fitting import fit_partitions
from .partitioned.run import Run
from .prediction import Predictor, cost_form, cost_units, filled_up, in_scale
from .solvers import LBFGS, Job, Solver, as_solver
from .storing import save_estimator

LATEST = 1000
"""Rows of the history that `partial_fit` keeps: a stream may have no end."""


class InverseRegressor(Predictor, RegressorMixin, BaseEstimator):
    """Learns costs c = f(z) under which observed decisions are optimal, then decides like them.

        est = InverseRegressor(problem).fit(Z, X)
        est.predict(Z_new)          # decisions         est.predict_cost(Z_new)    # costs
        print(est.certificate_)     # how near the minimum, and does it explain what it has seen?
        est.save("folder")          # read again by revealed.load("folder")

    `Z` is (B, d): features of each sample, in numpy, torch or pandas. For shared weights it is
    (B, n, p): features of each cost entry; or with model="shared" (n, p), the same in every sample.
    `X` (`y` by its name in scikit-learn) is (B, n) decisions, or an OptimalitySet, whose own
    constraints and margin are then used.

    Minimizes the mean over samples of a function of the distance between the predicted cost and
    the costs that explain the decision, plus ridge/2 |weights|^2.

    Parameters
    ----------
    problem : LinearProgram, QuadraticProgram or ConvexProgram
        What the decision maker may do.
    model : str or model
        "linear", "quadratic" (squares and products of the features too), "shared", "kernel", or an
        object with settings such as `KernelModel(gamma=0.1)` or `LinearModel(fit_intercept=False)`;
        a torch.nn.Module or a scikit-learn regressor. "auto" chooses between "linear" and
        "quadratic" by cross-validation, and the ridge with it unless that is given, as
        `InverseRegressorCV` does. Models given are copied, never changed. Contexts (B, n, p) make
        "linear" a "shared" one.
    solver : str or solver
        "lbfgs", "pocs", "boosting", "armijo", "preconditioned", "sgd", "adam" or "adagrad", or an
        object with settings such as `LBFGS(max_iter=200)` or `Adam(lr=0.01)`. "auto" is "lbfgs",
        "adam" for a module, "boosting" for a regressor.
    margin : float
        How clearly costs must favor the decision. With "auto" noise it is only a unit of costs.
    noise : float or "auto"
        Standard deviation of normal noise on the predictions over which the loss is averaged: 0 is
        the plain distance, which is biased where decisions are noisy. "auto" is five times the
        root mean square entry of the smallest costs that explain a decision with the margin (of
        the median sample), for "lbfgs" on linear programs whose costs have no unit of their own,
        and 0 for the rest.
    ridge : float or "auto"
        Adds ridge/2 times the sum of squared weights to the mean loss, features taken with a
        standard deviation of 1; the intercept is free. "auto" is 0.15 over the number of samples
        for "lbfgs" where "auto" noise is not 0, and 0 for the rest; `InverseRegressorCV` chooses.
    loss : str or loss
        "squared" or "distance"; "huber" or `Huber(delta=...)`; "welsch" or `Welsch(delta=...)`,
        which gives up what is far away. "auto" is "huber" with noise and "squared" without.
    cost_map : CostForm, (n,) array or None
        How costs come from what is predicted. A CostForm: known or tied entries, shared
        coefficients, limits. An array: the units of the cost entries, in which distances and
        margins count, entry by entry.
    infeasible : "refuse", "repair", "weigh" or "skip"
        What to do with decisions that break their constraints: refuse them all, take the nearest
        that obey, count these for less the farther they moved, or learn from the others only.
    decision_tol : "auto", float or (n,) array
        How far an entry of a decision may be off, such as 0.005 for two decimals: decisions are
        then taken to stand for the nearest vertex. 0 takes them as exact. "auto" looks at the
        digits of infeasible decisions and of those between vertices, and warns if it assumes
        rounding.
    unknown_limits : dict or None
        Right-hand sides and bounds of a LinearProgram that are learned too, linear in the context:
        rows of `A_ub` under "ub", variables under "lower" and "upper", as `{"ub": [2, 5]}`. What
        the problem holds there is not looked at. `predict` then decides under learned costs and
        limits; `predict_limits` says which.
    random_state : int, RandomState or None
        Of the noise, of batches and folds. The default makes the same model from the same data;
        None draws anew in every fit.
    threads : int or None
        Of projections; None for every core.
    verbose : bool

    Attributes
    ----------
    history_ : History
        One row for each iteration: h, distances, seconds. Of calls of `partial_fit` the last 1,000.
    certificate_ : Certificate
        The loss reached, a bound on its minimum (`gap`), and how well decisions are explained;
        print it. A fit that did not converge also gives scikit-learn's ConvergenceWarning.
    n_iter_ : int
        Iterations of the solver, epochs of first-order methods.
    coef_, intercept_ : arrays
        (n, d) and (n,); for a shared model (p,) and (1,). Not for a module or a regressor.
    loss_, ridge_ : DistanceLoss and float
        What "auto" has chosen.
    decision_report_ : str
        What was assumed about the decisions, and which were moved or skipped; empty if none.
    model_ : the fitted model
    limits_ : LimitModel or None
        The learned limits, where some are unknown: `coef`, `intercept`, `noise`, `intervals(Z)`.
    form_ : CostForm or None
        That of the data learned from.
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn
    decision_names_in_ : array of str
        Columns of a table of decisions, where they have names.
    partitions_report_ : dict
        After a fit to Partitions: what was read, kept, skipped and spent.
    """

    partitions_report_: dict[str, Any]

    def __init__(
        self,
        problem: Problem,
        *,
        model: Any = "linear",
        solver: Any = "auto",
        margin: float = 1.0,
        noise: float | str = "auto",
        ridge: float | str = "auto",
        loss: Any = "auto",
        cost_map: Any = None,
        infeasible: str = "refuse",
        decision_tol: Any = "auto",
        unknown_limits: Any = None,
        random_state: Any = 0,
        threads: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.problem = problem
        self.model = model
        self.solver = solver
        self.margin = margin
        self.noise = noise
        self.ridge = ridge
        self.loss = loss
        self.cost_map = cost_map
        self.infeasible = infeasible
        self.decision_tol = decision_tol
        self.unknown_limits = unknown_limits
        self.random_state = random_state
        self.threads = threads
        self.verbose = verbose

    def set_params(self, **params: Any) -> Self:
        """Change settings; `solver__max_iter=` and the like also where the solver, the model or
        the loss is a name: the object of that name then takes its place.

        Parameters
        ----------
        **params
            Settings of the estimator by name, those of its objects as `object__setting`.

        Returns
        -------
        InverseRegressor
            This estimator.
        """
        for name in {key.partition("__")[0] for key in params if "__" in key}:
            value = params.get(name, getattr(self, name, None))
            if isinstance(value, str):
                params[name] = self._named(name, value)
        return super().set_params(**params)

    def fit(
        self,
        Z: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        true_costs: Any = None,
        validation: tuple[Any, Any] | None = None,
        track_decisions: bool = False,
        run: Run | None = None,
    ) -> InverseRegressor:
        """Learn from contexts `Z` and the decisions `y` taken there.

        Parameters
        ----------
        Z : (B, d) or (B, n, p) array, or Partitions
            Contexts, in the forms described above. `datasets.Partitions` bring decisions and
            weights of their own; the fit then runs part by part.
        y : (B, n) array, OptimalitySet or PartialDecisions, optional
            Observed decisions; `PartialDecisions`, or an OptimalitySet made with `observed`, where
            only a part of each was seen. Give either these or `true_costs`.
        sample_weight : (B,) array, optional
            How much each sample counts, at least 0; 0 is as if the sample were not there.
        true_costs : (B, n) array, optional
            Where costs are known instead of decisions (predict-then-optimize): the decisions are
            then those of minimum true cost.
        validation : (Z, y), optional
            Held-out samples for first-order methods and boosting: the model that does best on them
            is kept, and `patience` of the solver stops.
        track_decisions : bool
            Whether to add the column `decision_loss` to the history: the mean of |x(c) - x|^2,
            solved for anew in every iteration.
        run : Run, optional
            How to fit to Partitions: memory, workers, checkpoints.

        Returns
        -------
        InverseRegressor
            This estimator, fitted.
        """
        if isinstance(Z, Partitions):
            if self.unknown_limits is not None:
                raise InputError("`unknown_limits` are learned from all data at once.")
            self._seed = _seed(self.random_state)
            given = {"y": y, "sample_weight": sample_weight, "true_costs": true_costs}
            fit_partitions(self, Z, run or Run(), given | {"validation": validation})
            return self
        if run is not None:
            raise InputError("`run` is for data in `datasets.Partitions`.")
        if in_part(y):
            return self._fit_partial(Z, y, sample_weight, true_costs, validation)
        if isinstance(self.model, str) and self.model == CHOSEN:
            ridges = self.ridge if self.ridge == "auto" else [self.ridge]
            search = Search(ridges=ridges)
            return self._fit_chosen(search, Z, y, sample_weight, true_costs, track_decisions)
        model, solver = checked_settings(self, self.model, Z, validation)
        Z = self._contexts(Z, y, true_costs, model, reset=True)
        Z, sets = self._data(Z, y, true_costs, sample_weight)
        self._seed = _seed(self.random_state)
        self._settle(sets, model, solver)
        return self._fit(model, solver, Z, sets, validation, track_decisions)

    def partial_fit(
        self, Z: Any, y: Any = None, *, sample_weight: Any = None, true_costs: Any = None
    ) -> InverseRegressor:
        """Learn from more data, in one pass over them: one sample or many, again and again.

        For "lbfgs" these are online Newton steps on the loss of `fit`, which end close to what
        `fit` learns from all samples at once. `LBFGS(forgetting=0.99)` follows costs that change.
        "pocs" makes one iteration of recursive least squares, first-order methods one epoch.

        Parameters
        ----------
        Z, y, sample_weight, true_costs
            The new samples, as in `fit`.

        Returns
        -------
        InverseRegressor
            This estimator.
        """
        first = not hasattr(self, "model_")
        if isinstance(self.model, str) and self.model == CHOSEN:
            raise InputError('model="auto" chooses on all data at once; use `fit`.')
        if self.unknown_limits is not None:
            raise InputError("Unknown limits are learned from all data at once; use `fit`.")
        model, solver = checked_settings(self, self.model, Z, None)
        Z = self._contexts(Z, y, true_costs, model, reset=first)
        Z, sets = self._data(Z, y, true_costs, sample_weight)
        if first:
            self._seed = _seed(self.random_state)
            self._settle(sets, model, solver)
        # A copy: an error or an interruption in the middle leaves the model as it was.
        ours: Any = self._fresh(model) if first else copy.deepcopy(self.model_)
        job = replace(self._job(None, None), unit=self._heaviest, **self._known())
        new = solver.update(ours, Z, sets, job)
        if job.prior is not None:
            self.ridge_ = ours.ridge
        before = [] if first or self.history_ is None else self.history_.rows
        start = before[-1]["iteration"] + 1 if before else 0
        rows = [row | {"iteration": start + k} for k, row in enumerate(new.rows)]
        history = History((before + rows)[-LATEST:])
        history.reason, history.certificate = new.reason, new.certificate
        self.n_iter_ = 1 if first else self.n_iter_ + 1
        return self._keep(ours, sets, history)

    def save(
        self,
        folder: str | os.PathLike[str],
        *,
        features: Sequence[str] | None = None,
        variables: Sequence[str] | None = None,
    ) -> Path:
        """Write the fitted estimator to a folder, which is made if need be; returns it.

        `revealed.load(folder)` reads it again. It holds safetensors and JSON, numbers and no code:
        of a torch module the parameters, of a problem made of Python functions nothing, and a
        scikit-learn regressor is refused.

        Parameters
        ----------
        folder : path
            A model that is there is replaced.
        features, variables : sequences of str or None
            Names of the features and of the entries of a decision, those of the tables learned from
            unless given. With both, a linear or quadratic model of a linear program can be read by
            `revealed predict`, `revealed explain` and `revealed explore`.
        """
        return save_estimator(self, folder, features, variables)

    def intervals(
        self, Z: Any, X: Any, *, refits: int = 50, level: float = 0.95
    ) -> CoefficientIntervals:
        """Confidence intervals of the coefficients that decisions `X` (B, n) in contexts `Z` (B, d)
        tell, usually those learned from; NaN for the others. Print it for what they are of.

        For linear and quadratic models of plain costs, fitted anew with the loss of this one.

        Parameters
        ----------
        Z : (B, d) array
            Contexts.
        X : (B, n) array or OptimalitySet
            Decisions taken there.
        refits : int
            Groups of samples; the model is fitted once without each.
        level : float
            Confidence, between 0 and 1.

        Returns
        -------
        CoefficientIntervals
        """
        check_is_fitted(self, "model_")
        if self.cost_map is not None:
            raise InputError("Intervals are for plain costs, without a `cost_map`.")
        kind = kind_of(self.model_)
        Z, sets = self._data(checked_contexts(self, Z, reset=False), X, None, None)
        self._limits = None
        chosen: dict[str, Any] = {"kind": kind, "loss": self.loss_, "ridge": self.ridge_}
        return coefficient_intervals(  # which refuses sets of other kinds
            Z, cast(OptimalitySet, sets), refits=refits, level=level, threads=self.threads, **chosen
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        tags.input_tags.three_d_array = True
        tags.regressor_tags.poor_score = True  # the score is not R^2: 0 is its best
        return tags

    # --- what is meant ---------------------------------------------------------------------------

    def _named(self, setting: str, name: str) -> Any:
        """The object that a setting names."""
        if setting == "solver":
            return as_solver(name, usual_solver(self.model))
        objects: dict[str, dict[str, type]] = {
            "model": MODELS,
            "loss": {"huber": Huber, "welsch": Welsch},
        }
        kind = objects.get(setting, {}).get(name)
        if kind is None:
            raise InputError(f"`{setting}` is {name!r}, which has no settings of its own.")
        return kind()

    def _settle(self, sets: Sets, model: CostModel, solver: Solver) -> None:
        """What "auto" stands for on these data."""
        # Coefficients that are given set the unit of costs: no multiple of them is as good.
        free = solver.smooths and not getattr(model, "given", None)
        self.loss_ = default_loss(
            sets,
            noise=self.noise,
            **power_and_delta(self.loss),
            draws=solver.n_draws,
            seed=self._seed,
            smooth=free,
        )
        self.ridge_ = float(self.ridge) if self.ridge != "auto" else default_ridge(sets) * free

    # --- what comes in ---------------------------------------------------------------------------

    def _contexts(self, Z: Any, y: Any, true_costs: Any, model: CostModel, *, reset: bool) -> Any:
        Z = self._checked(Z, reset=reset, model=model)
        if isinstance(model, SharedModel) and Z.ndim == 2:
            given = y if y is not None else true_costs
            return Common(Z, len(given) if given is not None else 1)
        return Z

    def _data(self, Z: Any, y: Any, true_costs: Any, sample_weight: Any) -> tuple[Any, Sets]:
        """Contexts and sets of the samples that count."""
        weights = checked_sample_weight(sample_weight, len(Z))
        policy = {"infeasible": self.infeasible, "decision_tol": self.decision_tol}
        form, scale = cost_form(self.cost_map), cost_units(self.cost_map)
        self._take_names(y)
        self._limits, self._heaviest = None, 1.0
        if self.unknown_limits is not None:
            found = limit_data(self, Z, y, true_costs, weights)
            self.decision_report_, self._kept, self._limits = (
                found.report,
                found.kept,
                found.learning,
            )
            return in_scale(found.Z, scale), found.learning.sets
        seen = observed(self.problem, y, len(Z), margin=self.margin, form=form, **policy)
        self.decision_report_, self._kept = seen.report, seen.kept
        if seen.kept is not None:
            Z, weights = Z[seen.kept], None if weights is None else weights[seen.kept]
            Z = Common(Z.rows, len(seen.kept)) if isinstance(Z, Common) else Z
        sets = self._as_sets(seen.sets, true_costs, len(Z))
        if weights is None:
            return in_scale(Z, scale), sets
        self._heaviest = float(weights.max())
        sets = weighed(sets, weights)
        if not weights.all():
            there = np.flatnonzero(weights)
            Z, sets = Z[there], sets[there]
            Z = Common(Z.rows, len(there)) if isinstance(Z, Common) else Z
        return in_scale(Z, scale), sets

    def _take_names(self, y: Any) -> None:
        """The columns of a table of decisions, where all of them are words."""
        vars(self).pop("decision_names_in_", None)
        names = list(getattr(y, "columns", []))
        if names and all(isinstance(name, str) for name in names):
            self.decision_names_in_ = np.array(names, dtype=object)

    def _as_sets(self, y: Any, true_costs: Any, size: int) -> Sets:
        form, scale = cost_form(self.cost_map), cost_units(self.cost_map)
        sets = as_sets(self.problem, y, true_costs, margin=self.margin, size=size, form=form)
        return sets if scale is None else in_units(sets, scale)

    # --- the fit ---------------------------------------------------------------------------------

    def _fresh(self, model: CostModel) -> Any:
        return fresh_copy(model, ridge=self.ridge_, seed=self._seed)

    def _job(self, monitor: Any, validation: Any) -> Job:
        return Job(
            loss=self.loss_,
            seed=self._seed,
            threads=self.threads,
            verbose=self.verbose,
            monitor=monitor,
            validation=validation,
        )

    def _known(self) -> dict[str, Any]:
        """What an update must know of earlier samples."""
        before = getattr(self, "certificate_", None)
        seen = 0 if before is None else before.samples
        return {"seen": seen, "prior": STRENGTH if self.ridge == "auto" and self.ridge_ else None}

    def _fit(
        self,
        model: CostModel,
        solver: Solver,
        Z: Any,
        sets: Sets,
        validation: tuple[Any, Any] | None,
        track_decisions: bool,
    ) -> InverseRegressor:
        """Fit a copy of the model to data that are checked."""
        monitor = self._monitor(Z, sets) if track_decisions else None
        if validation is not None:
            held = self._checked(validation[0], reset=False, model=model)
            validation = held, self._as_sets(validation[1], None, len(held))
        job = self._job(monitor, validation)
        if self._limits is None:
            ours = self._fresh(model)
            history = solver.fit(ours, Z, sets, job)
        else:
            ours, history = fit_in_turn(self._limits, lambda: self._fresh(model), solver, Z, job)
            sets = self._limits.sets
        self.n_iter_ = len(history) - 1  # the last row only measures
        self._keep(ours, sets, history)
        self._warn_unless_converged()
        return self

    def _fit_partial(
        self, Z: Any, seen: Any, sample_weight: Any, true_costs: Any, validation: Any
    ) -> InverseRegressor:
        if true_costs is not None or validation is not None:
            raise InputError("`true_costs` and `validation` do not go with decisions seen in part.")
        options = {} if sample_weight is None else {"sample_weight": sample_weight}
        return fit_partial(self, Z, seen, **options)

    def _fit_chosen(
        self,
        search: Search,
        Z: Any,
        y: Any,
        sample_weight: Any,
        true_costs: Any,
        track_decisions: bool,
    ) -> InverseRegressor:
        """Let cross-validation choose model and ridge, then fit to all data."""
        search.check(true_costs)
        names = search.candidates(Z)
        checked = [checked_settings(self, model, Z, None) for model in names.values()]
        models, solver = [model for model, _ in checked], checked[0][1]
        if not isinstance(solver, LBFGS):
            raise InputError(
                f'A choice of the model goes with solver="lbfgs"; got {self.solver!r}.'
            )
        costs_only = true_costs if y is None else None
        Z = self._contexts(Z, y, costs_only, models[0], reset=True)
        Z, sets = self._data(Z, y, costs_only, sample_weight)
        self._seed = _seed(self.random_state)
        self._settle(sets, models[0], solver)
        truth = None if true_costs is None else to_float64(true_costs, "true_costs")
        truth = truth if truth is None or self._kept is None else truth[self._kept]
        by_label = dict(zip(names, models, strict=True))
        data = Data(
            Z=Z,
            sets=sets,
            loss=self.loss_,
            truth=truth,
            tol=solver.tol,
            seed=self._seed,
            threads=self.threads,
        )
        found = choose(search, by_label, data)
        self.chosen_model_, self.ridge_ = found.label, found.ridge
        self.best_score_, self.n_splits_ = found.score, found.splits
        self.cv_results_, self.choice_ = found.results, found.sentence
        return self._fit(by_label[found.label], solver, Z, sets, None, track_decisions)

    def _monitor(self, Z: Any, sets: Sets) -> Any:
        scale = cost_units(self.cost_map)
        unit = 1.0 if scale is None else scale

        def decision_loss(model: CostModel) -> dict[str, float]:
            w = model.predict_cost(Z)
            if isinstance(sets, MixedSets):
                x = filled_up(sets.solve(w, threads=self.threads), sets.decisions.shape[1])
            else:
                x = sets.solve(w, threads=self.threads).x
            missed = (x - sets.decisions) / unit
            return {"decision_loss": float((missed**2).sum(axis=1).mean())}

        return decision_loss

    def _keep(self, model: CostModel, sets: Sets, history: History) -> InverseRegressor:
        """Take a model over once it is fitted: a fit that was refused or interrupted leaves none,
        or the one before."""
        self.model_, self.history_, self.certificate_ = model, history, history.certificate
        self.form_ = sets.form if isinstance(sets, OptimalitySet) else None
        learning = vars(self).pop("_limits", None)  # it holds the data
        self.limits_ = None if learning is None else learning.model()
        self._take_coefficients()
        return self

    def _take_coefficients(self) -> None:
        """Those of the model in the units of the data, where it has some."""
        model: Any = self.model_
        if model.family == "convex":
            self.coef_, self.intercept_ = model.coef, model.intercept
            unit = cost_units(self.cost_map)
            if unit is not None and not isinstance(model, SharedModel):
                self.coef_, self.intercept_ = unit[:, None] * self.coef_, unit * self.intercept_

    def _warn_unless_converged(self) -> None:
        certificate = self.certificate_
        if certificate is None or certificate.convergence is None or certificate.converged:
            return
        more = (
            "Allow more with `max_iter`" if certificate.reason is StopReason.CAP else "It stalled"
        )
        warnings.warn(
            f"{certificate.convergence.sentence} {more}; a larger `ridge` is easier to fit.",
            ConvergenceWarning,
            stacklevel=4,
        )


def _seed(random_state: Any) -> int:
    if isinstance(random_state, int | np.integer):
        check_whole(random_state, "random_state", 0)
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))
