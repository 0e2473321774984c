"""The scikit-learn estimator: contexts and decisions in, decisions for new contexts out."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._common.arrays import to_float64
from .._common.checks import check_number, check_whole
from ..errors import InputError, ShapeError
from ..optimality.cost_form import CostForm
from ..optimality.mixed import MixedSets
from ..optimality.protocol import CostSet as Sets
from ..optimality.sets import OptimalitySet
from ..problems.protocol import check_problem
from ..problems.solution import SolveStatus
from .certificate import Certificate
from .contexts import Common, Ragged, check_length, checked_contexts, is_ragged, like
from .decisions import as_sets, checked_sample_weight, in_units, joined, weighed
from .defaults import default_loss, default_ridge
from .evaluation import Evaluator
from .feature_models import KernelModel, QuadraticModel, SharedModel
from .history import History, StopReason
from .lbfgs import lbfgs
from .models import CostModel, LinearModel
from .observed import observed
from .pocs import pocs

FIRST_ORDER = ("armijo", "preconditioned", "sgd", "adam", "adagrad")
SOLVERS = ("lbfgs", "pocs", "boosting", *FIRST_ORDER)
MODELS = ("linear", "quadratic", "shared", "kernel")
CHOSEN = "auto"
"""The model that cross-validation chooses."""


class UnsolvedDecisionWarning(UserWarning):
    """Some predicted costs have no decision of minimum cost; their rows are NaN."""


class InverseRegressor(RegressorMixin, BaseEstimator):
    """Learns costs c = f(z) under which observed decisions are optimal, then decides like them.

        est = InverseRegressor(problem).fit(Z, X)
        est.predict(Z_new)          # decisions         est.predict_cost(Z_new)    # costs
        print(est.certificate_)     # how near the minimum, and does it explain what it has seen?

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
    model : "linear", "quadratic", "shared", "kernel", "auto", a torch.nn.Module or a scikit-learn
        regressor
        "quadratic" adds squares and products of the features. "auto" chooses between "linear" and
        "quadratic" by cross-validation, and the ridge with it unless that is given, as
        `InverseRegressorCV` does. A module or regressor is copied, never changed. Contexts
        (B, n, p) make "linear" a "shared" one.
    solver : "auto", "lbfgs", "pocs", "boosting", "armijo", "preconditioned", "sgd", "adam" or
        "adagrad"
        "lbfgs" goes to the minimum, for models that are linear in what they learn; "pocs" is the
        paper's Algorithm 1; "boosting" adds up regressors fitted to what is left; the others are
        first-order methods. "auto" is "lbfgs", "adam" for a module, "boosting" for a regressor.
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
    power : "auto", 2, 1, "huber" or "bounded"
        Squared distance, distance, Huber's form with its bend at `delta`, or one that gives up what
        is many `delta` away. "auto" is "huber" with noise and 2 without.
    delta : float or None
        None is the noise, or 1 without noise.
    form : CostForm or None
        How costs come from what is predicted: known or tied entries, shared coefficients, limits.
    scale : (n,) array or None
        Units of the cost entries: distances and margins count in these, entry by entry.
    given : dict or None
        For model="shared": weights that are known, by number of the feature, such as {0: 1.0}.
    max_iter : int or None
        Evaluations of "lbfgs" (500), updates of "pocs" (150) and "boosting" (100), epochs of
        first-order methods (150).
    tol : float
        Relative. Of "lbfgs": the distance to the minimum; of the others: a cost this near its set
        is inside, a fall of the loss this small is none.
    n_draws : int or None
        Draws of noise for each sample, an even number; None for 8, fewer for many samples.
    optimiser, step, decay, batch_size, inner_steps, patience
        Of first-order methods, see `revealed.fit.TrainSettings`. For a module in POCS, `optimiser`,
        `step`, `batch_size` and `inner_steps` are of the inner fit. `patience` also ends boosting.
    kernel, gamma, degree, coef0, n_components
        Of a kernel model, see `revealed.fit.KernelModel`.
    infeasible : "refuse", "repair", "weigh" or "skip"
        What to do with decisions that break their constraints: refuse them all, take the nearest
        that obey, count these for less the farther they moved, or learn from the others only.
    decision_tol : "auto", float or (n,) array
        How far an entry of a decision may be off, such as 0.005 for two decimals: decisions are
        then taken to stand for the nearest vertex. 0 takes them as exact. "auto" looks at the
        digits of infeasible decisions and of those between vertices, and warns if it assumes
        rounding.
    track_decisions : bool
        Adds the column `decision_loss` to the history: the mean of |x(c) - x|^2, solved for anew
        in every iteration.

    Attributes
    ----------
    history_ : History
        One row for each iteration: h, distances, seconds.
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
    form_ : CostForm or None
        That of the data learnt from.
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn
    """

    def __init__(
        self,
        problem: Any,
        *,
        model: Any = "linear",
        solver: str = "auto",
        margin: float = 1.0,
        noise: float | str = "auto",
        ridge: float | str = "auto",
        power: int | str = "auto",
        delta: float | None = None,
        form: CostForm | None = None,
        scale: Any = None,
        given: dict[int, float] | None = None,
        fit_intercept: bool = True,
        max_iter: int | None = None,
        tol: float = 1e-6,
        n_draws: int | None = None,
        optimiser: str = "adam",
        step: float | None = None,
        decay: float = 0.0,
        batch_size: int = 32,
        inner_steps: int | None = None,
        patience: int | None = None,
        kernel: str = "rbf",
        gamma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        n_components: int | None = None,
        infeasible: str = "refuse",
        decision_tol: Any = "auto",
        track_decisions: bool = False,
        random_state: Any = None,
        threads: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.problem = problem
        self.model = model
        self.solver = solver
        self.margin = margin
        self.noise = noise
        self.ridge = ridge
        self.power = power
        self.delta = delta
        self.form = form
        self.scale = scale
        self.given = given
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.n_draws = n_draws
        self.optimiser = optimiser
        self.step = step
        self.decay = decay
        self.batch_size = batch_size
        self.inner_steps = inner_steps
        self.patience = patience
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.n_components = n_components
        self.infeasible = infeasible
        self.decision_tol = decision_tol
        self.track_decisions = track_decisions
        self.random_state = random_state
        self.threads = threads
        self.verbose = verbose

    def fit(
        self,
        Z: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        true_costs: Any = None,
        validation: tuple[Any, Any] | None = None,
    ) -> InverseRegressor:
        """Learn from contexts `Z` and the decisions `y` taken there, each counting as much as
        `sample_weight` (B,) says; a weight of 0 is as if the sample were not there.

        Where costs are known instead of decisions (predict-then-optimise), give `true_costs`
        (B, n): the decisions are then those of minimum true cost. `validation` is a pair like
        (Z, y) for first-order methods and boosting: the model that does best on it is kept, and
        `patience` stops.
        """
        self._check_parameters(validation)
        if isinstance(self.model, str) and self.model == CHOSEN:
            return self._fit_chosen(Z, y, sample_weight, true_costs)
        Z = self._contexts(Z, y, true_costs, reset=True)
        Z, sets = self._data(Z, y, true_costs, sample_weight)
        self._seed = _seed(self.random_state)
        self._choose(sets)
        model = self._new_model(Z)
        history = self._train(model, Z, sets, self._passes(), validation)
        self.n_iter_ = len(history) - 1  # the last row only measures
        self._keep(model, sets, history)
        self._warn_unless_converged()
        return self

    def _fit_chosen(self, Z: Any, y: Any, sample_weight: Any, true_costs: Any) -> InverseRegressor:
        """Let cross-validation choose features and ridge, and take over what it has fitted."""
        from .cross_validation import InverseRegressorCV

        names = set(InverseRegressorCV(None).get_params()) & set(self.get_params(deep=False))
        ridges = self.ridge if self.ridge == "auto" else [self.ridge]
        chosen = InverseRegressorCV(**{name: getattr(self, name) for name in names}, ridges=ridges)
        chosen.fit(Z, y, sample_weight=sample_weight, true_costs=true_costs)
        own = self.get_params(deep=False)
        vars(self).update({name: v for name, v in vars(chosen).items() if name not in own})
        return self

    def partial_fit(
        self, Z: Any, y: Any = None, *, sample_weight: Any = None, true_costs: Any = None
    ) -> InverseRegressor:
        """Learn from more data, in one pass over them.

        For models that are linear in what they learn this is recursive least squares: the new
        samples are projected once and weigh as much as each of those seen before. First-order
        methods make one epoch over the new samples.
        """
        first = not hasattr(self, "model_")
        self._check_parameters(None)
        if isinstance(self.model, str) and self.model == CHOSEN:
            raise InputError('model="auto" chooses on all data at once; use `fit`.')
        Z = self._contexts(Z, y, true_costs, reset=first)
        Z, sets = self._data(Z, y, true_costs, sample_weight)
        if first:
            self._seed = _seed(self.random_state)
            self._choose(sets)
        model = self._new_model(Z) if first else self.model_
        solver = self._solver
        if solver == "boosting":
            raise InputError("Regressors learn from all data at once; use `fit`.")
        by_pass = solver in ("pocs", "lbfgs")
        new = self._pass(model, Z, sets) if by_pass else self._train(model, Z, sets, 1, None)
        before = [] if first else self.history_.rows
        rows = [row | {"iteration": len(before) + k} for k, row in enumerate(new.rows)]
        history = History(before + rows)
        history.reason, history.certificate = new.reason, new.certificate
        self.n_iter_ = 1 if first else self.n_iter_ + 1
        return self._keep(model, sets, history)

    def predict_parameters(self, Z: Any) -> Any:
        """(B, p) what the model itself predicts, before a form makes costs of it."""
        return like(Z, self._parameters(Z))

    def predict_cost(self, Z: Any, form: CostForm | None = None) -> Any:
        """(B, n) costs; torch in, torch out.

        `form` is that of these instances where it differs from sample to sample.
        """
        return like(Z, self._costs(Z, form))

    def predict(self, Z: Any, problem: Any = None, form: CostForm | None = None) -> Any:
        """(B, n) decisions of minimum predicted cost; torch in, torch out.

        `problem` holds the constraints of these instances where they differ from those learnt
        with; sets of several problems give a list of B decisions. A cost for which there is no
        decision of minimum cost (it falls without limit, say) gets a row of NaN and a warning.
        """
        return self._decisions(Z, problem, form)

    def _decisions(
        self, Z: Any, problem: Any, form: CostForm | None, size: int | None = None
    ) -> Any:
        """`predict`, for `size` samples where neither `Z` nor the problem says how many."""
        if isinstance(problem, MixedSets):
            return problem.solve(self._parameters(Z), threads=self.threads)
        chosen = self.problem if problem is None else problem
        check_problem(chosen)
        check_is_fitted(self, "model_")
        if is_ragged(Z):
            _check_sizes(Z, chosen if self.form_ is None else self.form_)
        size = size if chosen.n_instances is None else chosen.n_instances
        answer = chosen.solve(self._costs(Z, form, size), threads=self.threads)
        bad = np.flatnonzero(~answer.optimal)
        if bad.size:
            status = SolveStatus(int(answer.status[bad[0]]))
            warnings.warn(
                f"{bad.size} of {len(answer)} predicted costs have no decision of minimum cost "
                f"and get NaN (first: row {bad[0]}). {status.sentence}",
                UnsolvedDecisionWarning,
                stacklevel=3,
            )
        return like(Z, answer.x)

    def score(self, Z: Any, y: Any, sample_weight: Any = None) -> float:
        """Minus the mean decision loss |x(c) - x|^2, so 0 is perfect and larger is better.

        Finer than the share of decisions matched exactly (see `revealed.metrics.accuracy`), which
        suits the choice of parameters. -inf where a predicted cost has no optimal decision.
        """
        y = joined(y)
        sets = y if isinstance(y, Sets) else None
        decisions = to_float64(y if sets is None else sets.decisions, "y")
        if isinstance(sets, MixedSets):
            predicted = _filled_up(self.predict(Z, problem=sets), decisions.shape[1])
        else:
            own = None if sets is None else sets.problem
            form = sets.form if isinstance(sets, OptimalitySet) else None
            found = self._decisions(Z, own, form, len(decisions))
            predicted = to_float64(found, "predict(Z)")
        check_length(len(predicted), len(decisions))
        if decisions.shape != predicted.shape:
            raise ShapeError(f"`y` must have shape {predicted.shape}; got {decisions.shape}.")
        loss = ((predicted - decisions) ** 2).sum(axis=1)
        weights = checked_sample_weight(sample_weight, len(loss))
        return 0.0 - float(np.average(np.nan_to_num(loss, nan=np.inf), weights=weights))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        tags.input_tags.three_d_array = True
        tags.regressor_tags.poor_score = True  # the score is not R^2: 0 is its best
        return tags

    def _parameters(self, Z: Any, size: int | None = None) -> np.ndarray:
        check_is_fitted(self, "model_")
        Z = checked_contexts(self, Z, reset=False)
        if self.model == "shared" and Z.ndim == 2:
            Z = Common(Z, 1 if size is None else size)
        found = self.model_.predict_cost(self._in_scale(Z))
        return found if self.scale is None else found * np.asarray(self.scale, float)

    def _costs(self, Z: Any, form: CostForm | None = None, size: int | None = None) -> np.ndarray:
        parameters = self._parameters(Z, size)
        form = self.form_ if form is None else form
        return parameters if form is None else form.costs(parameters)

    # --- what comes in ---------------------------------------------------------------------------

    @property
    def _solver(self) -> str:
        """What "auto" stands for."""
        if self.solver != "auto":
            return self.solver
        if isinstance(self.model, str):
            return "lbfgs"
        return "boosting" if _is_regressor(self.model) else "adam"

    def _check_parameters(self, validation: Any) -> None:
        check_problem(self.problem)
        for name in ("noise", "ridge"):
            if getattr(self, name) != "auto":
                check_number(getattr(self, name), name, ' Or "auto".')
        if self.max_iter is not None:
            check_whole(self.max_iter, "max_iter", 0)
        if self.n_draws is not None:
            check_whole(self.n_draws, "n_draws", 2)
            if self.n_draws % 2:
                raise InputError(
                    f"`n_draws` must be even, for draws come in pairs; got {self.n_draws}."
                )
        if self.solver not in ("auto", *SOLVERS):
            raise InputError(
                f"`solver` must be auto or one of {', '.join(SOLVERS)}; got {self.solver!r}."
            )
        self._check_model()
        solver = self._solver
        if solver == "pocs" and self.power in (1, "bounded"):
            raise InputError(
                f'POCS minimises the squared distance; power={self.power!r} needs solver="lbfgs".'
            )
        if solver in ("lbfgs", "pocs") and (validation is not None or self.patience is not None):
            raise InputError(
                "`validation` and `patience` are for first-order solvers and boosting."
            )

    def _check_model(self) -> None:
        if isinstance(self.model, str) and self.model not in (*MODELS, CHOSEN):
            raise InputError(
                f"`model` must be one of {', '.join(MODELS)}, {CHOSEN}, a torch.nn.Module or a "
                f"scikit-learn regressor; got {self.model!r}."
            )
        if isinstance(self.model, str) and self.model == CHOSEN and self._solver != "lbfgs":
            raise InputError(f'model="auto" goes with solver="lbfgs"; got {self.solver!r}.')
        named, solver = isinstance(self.model, str), self._solver
        regressor = not named and _is_regressor(self.model)
        if solver == "lbfgs" and not named:
            raise InputError(
                'solver="lbfgs" is for models that are linear in what they learn; for a module use '
                '"adam", for a scikit-learn regressor "boosting" or "pocs".'
            )
        if (solver == "boosting") != regressor and not (regressor and solver == "pocs"):
            raise InputError(
                f"solver={solver!r} does not go with this model: a scikit-learn regressor goes "
                'with "boosting" and "pocs", and "boosting" with nothing else.'
            )
        if self.given and not (named and self.model in ("shared", "linear")):
            raise InputError('`given` weights are for model="shared".')
        if self.scale is not None and (not named or self.form is not None):
            raise InputError("`scale` is for models of costs by name, without a `form`.")

    def _contexts(self, Z: Any, y: Any, true_costs: Any, *, reset: bool) -> Any:
        Z = checked_contexts(self, Z, reset=reset)
        if self.given and self.model == "linear" and Z.ndim == 2:
            raise InputError(
                '`given` weights are for model="shared", or for contexts (B, n, p), features of '
                f"each cost entry; got contexts of shape {Z.shape}."
            )
        if self.model == "shared" and Z.ndim == 2:
            told = y if y is not None else true_costs
            return Common(Z, len(told) if told is not None else 1)
        return Z

    def _data(self, Z: Any, y: Any, true_costs: Any, sample_weight: Any) -> tuple[Any, Sets]:
        """Contexts and sets of the samples that count."""
        weights = checked_sample_weight(sample_weight, len(Z))
        policy = {"infeasible": self.infeasible, "decision_tol": self.decision_tol}
        seen = observed(self.problem, y, len(Z), margin=self.margin, form=self.form, **policy)
        self.decision_report_, self._kept = seen.report, seen.kept
        if seen.kept is not None:
            Z, weights = Z[seen.kept], None if weights is None else weights[seen.kept]
            Z = Common(Z.rows, len(seen.kept)) if isinstance(Z, Common) else Z
        sets = self._as_sets(seen.sets, true_costs, len(Z))
        if weights is None:
            return self._in_scale(Z), sets
        sets = weighed(sets, weights)
        if not weights.all():
            there = np.flatnonzero(weights)
            Z, sets = Z[there], sets[there]
            Z = Common(Z.rows, len(there)) if isinstance(Z, Common) else Z
        return self._in_scale(Z), sets

    def _in_scale(self, Z: Any) -> Any:
        """Features of entries in the units of their entry; other contexts as they are."""
        if self.scale is None or Z.ndim < 3:
            return Z
        unit = np.asarray(self.scale, float)[:, None]
        if isinstance(Z, Ragged):
            raise InputError("`scale` is for samples of one problem.")
        return Common(Z.rows / unit, len(Z)) if isinstance(Z, Common) else Z / unit

    def _as_sets(self, y: Any, true_costs: Any, size: int) -> Sets:
        sets = as_sets(self.problem, y, true_costs, margin=self.margin, size=size, form=self.form)
        return sets if self.scale is None else in_units(sets, self.scale)

    # --- the fit ---------------------------------------------------------------------------------

    def _choose(self, sets: Sets) -> None:
        """What "auto" stands for on these data."""
        told = {"noise": self.noise, "power": self.power, "delta": self.delta}
        converging = self._solver == "lbfgs" and not self.given
        self.loss_ = default_loss(
            sets, **told, draws=self.n_draws, seed=self._seed, smooth=converging
        )
        self.ridge_ = (
            float(self.ridge) if self.ridge != "auto" else default_ridge(sets) * converging
        )

    def _passes(self) -> int:
        usual = {"lbfgs": 500, "boosting": 100}.get(self._solver, 150)
        return usual if self.max_iter is None else self.max_iter

    def _new_model(self, Z: Any) -> CostModel:
        shape = {"fit_intercept": self.fit_intercept, "ridge": self.ridge_}
        if not isinstance(self.model, str):
            return self._foreign_model()
        if self.model == "kernel":
            names = ("kernel", "gamma", "degree", "coef0", "n_components")
            options = {name: getattr(self, name) for name in names}
            return KernelModel(**options, seed=self._seed, standardize=True, **shape)
        if self.model == "quadratic":
            return QuadraticModel(**shape)
        if self.model == "shared" or Z.ndim == 3:
            return SharedModel(**shape, standardize=True, given=self.given)
        return LinearModel(**shape, standardize=True)

    def _foreign_model(self) -> CostModel:
        """A copy of a torch module or a scikit-learn regressor, as a model of costs."""
        if _is_regressor(self.model):
            from .regressors import BoostedModel, RefittedModel

            kind = BoostedModel if self._solver == "boosting" else RefittedModel
            return kind(self.model, seed=self._seed)
        from .torch_model import TorchModel

        return TorchModel(
            copy.deepcopy(self.model),
            optimiser=self.optimiser,
            step=1e-3 if self.step is None else self.step,
            inner_steps=100 if self.inner_steps is None else self.inner_steps,
            batch_size=self.batch_size,
            ridge=self.ridge_,
            seed=self._seed,
        )

    def _train(
        self,
        model: CostModel,
        Z: Any,
        sets: Sets,
        passes: int,
        validation: tuple[Any, Any] | None,
    ) -> History:
        common: dict[str, Any] = {"tol": self.tol, "threads": self.threads, "verbose": self.verbose}
        common["monitor"] = self._monitor(Z, sets) if self.track_decisions else None
        if validation is not None:
            held = checked_contexts(self, validation[0], reset=False)
            validation = held, self._as_sets(validation[1], None, len(held))
        if self._solver == "lbfgs":
            return lbfgs(model, Z, sets, loss=self.loss_, max_iter=passes, **common)  # pyright: ignore
        if self._solver == "boosting":
            from .regressors import boost

            common |= {"validation": validation, "patience": self.patience}
            return boost(model, Z, sets, loss=self.loss_, max_iter=passes, **common)  # pyright: ignore
        if self._solver == "pocs":
            return pocs(model, Z, sets, loss=self.loss_, max_iter=passes, **common)
        from .training import erm

        return erm(
            model,
            Z,
            sets,
            loss=self._torch_loss(sets),
            validation=validation,
            optimiser=self._solver,
            epochs=passes,
            step=self.step,
            decay=self.decay,
            batch_size=self.batch_size,
            inner_steps=1 if self.inner_steps is None else self.inner_steps,
            patience=self.patience,
            power=self.loss_.power,
            delta=self.loss_.delta,
            seed=self._seed,
            **common,
        )

    def _torch_loss(self, sets: Sets) -> Any:
        """The smoothed distance, where first-order methods are to minimize it; else their own."""
        if not self.loss_.noise:
            return None
        if isinstance(sets, MixedSets):
            raise InputError("Smoothing by first-order methods is for samples of one problem.")
        from ..losses import SmoothedProjectionLoss

        full = self._solver in ("armijo", "preconditioned")
        return SmoothedProjectionLoss(
            sets.problem,  # pyright: ignore[reportArgumentType]  (the loss checks it)
            None,
            sigma=self.loss_.noise,
            n_samples=self.loss_.draws,
            power=self.loss_.power,
            delta=self.loss_.delta,
            seed=self._seed,
            fixed=full,
            threads=self.threads,
        )

    def _pass(self, model: CostModel, Z: Any, sets: Sets) -> History:
        """One step of POCS on new data, with what earlier data have told kept."""
        features = model.prepare(Z, sets.n_parameters, more=True)
        done = Evaluator(sets, self.loss_, warm_start=False, threads=self.threads)(model, features)
        model.refit()
        history = History([{"iteration": 0, "loss": done.h + model.penalty()} | done.row()])
        history.reason = StopReason.ONE_PASS
        history.certificate = Certificate.of(done, self.tol, history.reason)
        return history

    def _monitor(self, Z: Any, sets: Sets) -> Any:
        unit = 1.0 if self.scale is None else np.asarray(self.scale, float)

        def decision_loss(model: CostModel) -> dict[str, float]:
            w = model.predict_cost(Z)
            if isinstance(sets, MixedSets):
                x = _filled_up(sets.solve(w, threads=self.threads), sets.decisions.shape[1])
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
        if isinstance(model, LinearModel | SharedModel | QuadraticModel | KernelModel):
            self.coef_, self.intercept_ = model.coef, model.intercept
            if self.scale is not None and not isinstance(model, SharedModel):
                unit = np.asarray(self.scale, float)
                self.coef_, self.intercept_ = unit[:, None] * self.coef_, unit * self.intercept_
        return self

    def _warn_unless_converged(self) -> None:
        told = self.certificate_
        if told is None or told.convergence is None or told.converged:
            return
        more = "Allow more with `max_iter`" if told.reason is StopReason.CAP else "It stalled"
        warnings.warn(
            f"{told.convergence.sentence} {more}; a larger `ridge` is easier to fit.",
            ConvergenceWarning,
            stacklevel=3,
        )


def _is_regressor(model: Any) -> bool:
    """Whether a model is one of scikit-learn's kind rather than a torch module."""
    return hasattr(model, "get_params") and hasattr(model, "predict")


def _filled_up(decisions: list[np.ndarray], width: int) -> np.ndarray:
    return np.stack([np.pad(x, (0, width - len(x))) for x in decisions])


def _check_sizes(Z: Any, expected: Any) -> None:
    """Refuse features of other entries than the problem has."""
    sizes = Z.sizes if isinstance(Z, Ragged) else [len(part) for part in Z]
    bad = np.flatnonzero(np.array(sizes) != expected.n_parameters)
    if bad.size:
        raise ShapeError(
            f"`Z[{bad[0]}]` has features of {sizes[bad[0]]} entries, where the problem has "
            f"{expected.n_parameters}. Where samples are of several problems, give "
            "problem=OptimalitySet.concatenate([...])."
        )


def _seed(random_state: Any) -> int:
    if isinstance(random_state, int | np.integer):
        check_whole(random_state, "random_state", 0)
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))
