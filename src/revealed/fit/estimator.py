"""The scikit-learn estimator: contexts and decisions in, decisions for new contexts out."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._arrays import to_float64
from .._numbers import check_whole
from ..errors import InputError, ShapeError
from ..forms import CostForm
from ..mixed import MixedSets, Sets
from ..optimality import OptimalitySet, check_program
from ..oracle import SolveStatus
from .certificate import Certificate
from .contexts import Ragged, check_length, checked_contexts, is_ragged, like
from .decisions import as_sets, checked_sample_weight, joined, weighed
from .history import History, StopReason
from .models import CostModel, KernelModel, LinearModel, SharedModel
from .pocs import pocs
from .sweep import WarmStart, sweep

METHODS = ("pocs", "erm")
MODELS = ("linear", "shared", "kernel")


class UnsolvedDecisionWarning(UserWarning):
    """Some predicted costs have no decision of minimum cost; their rows are NaN."""


class InverseRegressor(RegressorMixin, BaseEstimator):
    """Learns costs c = f(z) under which observed decisions are optimal, then decides like them.

        est = InverseRegressor(problem, method="pocs", margin=1.0).fit(Z, X)
        est.predict(Z_new)          # decisions         est.predict_cost(Z_new)    # costs
        print(est.certificate_)     # does the model explain what it has seen?

    `Z` is (B, d): features of each sample, in numpy, torch or pandas; or (B, n, p): features of
    each cost entry, with shared weights. `X` (`y` by its name in scikit-learn) is (B, n) decisions,
    or an OptimalitySet, whose own constraints and margin are then used.

    Parameters
    ----------
    problem : LinearProgram, QuadraticProgram or ConvexProgram
        What the decision maker may do.
    method : "pocs" or "erm"
        Alternating projections, or first-order minimisation of the distance loss.
    margin : float
        How clearly costs must favour the decision.
    form : CostForm or None
        How costs come from what is predicted: known or tied entries, shared coefficients, limits.
    max_iter : int
        Updates of POCS, epochs of ERM.
    model : "linear", "shared", "kernel" or a torch.nn.Module
        A module is copied, never changed. Contexts (B, n, p) make "linear" a "shared" one.
    ridge : float
        Adds ridge/2 times the sum of squared weights to the mean loss; the intercept is free.
    power : 2, 1, "huber" or "bounded"
        Squared distance, distance, Huber's form with its bend at `delta`, or one that gives up what
        is many `delta` away; all but 2 need ERM.
    tol : float
        Relative: a cost this near its set is inside; a fall of the loss this small is none.
    optimiser, step, decay, batch_size, inner_steps, patience
        Of ERM, see `revealed.fit.TrainSettings`; "auto" is "armijo", and "adam" for a module. For a
        module in POCS, `optimiser`, `step`, `batch_size` and `inner_steps` are of the inner fit.
    kernel, gamma, degree, coef0, n_components
        Of a kernel model, see `revealed.fit.KernelModel`.
    track_decisions : bool
        Adds the column `decision_loss` to the history: the mean of |x(c) - x|^2, solved for anew
        in every iteration.

    Attributes
    ----------
    history_ : History
        One row an iteration: h, distances, seconds.
    certificate_ : Certificate
        Whether the model explains all decisions, and if not, how far off it is; print it.
    n_iter_ : int
        Updates of POCS, epochs of ERM.
    coef_, intercept_ : arrays
        (n, d) and (n,); for a shared model (p,) and (1,). Not for a module.
    model_ : the fitted model
    form_ : CostForm or None
        That of the data learnt from.
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn
    """

    def __init__(
        self,
        problem: Any,
        *,
        method: str = "pocs",
        margin: float = 1.0,
        form: CostForm | None = None,
        max_iter: int = 150,
        fit_intercept: bool = True,
        model: Any = "linear",
        ridge: float = 0.0,
        power: int | str = 2,
        delta: float = 1.0,
        tol: float = 1e-6,
        optimiser: str = "auto",
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
        track_decisions: bool = False,
        random_state: Any = None,
        threads: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.problem = problem
        self.method = method
        self.margin = margin
        self.form = form
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.model = model
        self.ridge = ridge
        self.power = power
        self.delta = delta
        self.tol = tol
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
        `sample_weight` (B,) says.

        Where costs are known instead of decisions (predict-then-optimise), give `true_costs`
        (B, n): the decisions are then those of minimum true cost. `validation` is a pair like
        (Z, y) for method="erm": the model that does best on it is kept, and `patience` stops.
        """
        self._check_parameters(validation)
        Z = checked_contexts(self, Z, reset=True)
        sets = self._sets(y, true_costs, len(Z), sample_weight)
        self._seed = _seed(self.random_state)
        model = self._new_model(Z)
        history = self._train(model, Z, sets, self.max_iter, validation)
        self.n_iter_ = len(history) - 1  # the last row only measures
        return self._keep(model, sets, history)

    def partial_fit(
        self, Z: Any, y: Any = None, *, sample_weight: Any = None, true_costs: Any = None
    ) -> InverseRegressor:
        """Learn from more data, in one pass over them.

        For linear, shared and kernel models under POCS this is recursive least squares: the new
        samples are projected once and weigh as much as each of those seen before. ERM makes one
        epoch over the new samples.
        """
        first = not hasattr(self, "model_")
        self._check_parameters(None)
        Z = checked_contexts(self, Z, reset=first)
        sets = self._sets(y, true_costs, len(Z), sample_weight)
        if first:
            self._seed = _seed(self.random_state)
        model = self._new_model(Z) if first else self.model_
        pocs = self.method == "pocs"
        new = self._pass(model, Z, sets) if pocs else self._train(model, Z, sets, 1, None)
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
        if isinstance(problem, MixedSets):
            return problem.solve(self._parameters(Z), threads=self.threads)
        chosen = self.problem if problem is None else problem
        check_program(chosen)
        check_is_fitted(self, "model_")
        if is_ragged(Z):
            _check_sizes(Z, chosen if self.form_ is None else self.form_)
        answer = chosen.solve(self._costs(Z, form), threads=self.threads)
        bad = np.flatnonzero(~answer.optimal)
        if bad.size:
            status = SolveStatus(int(answer.status[bad[0]]))
            warnings.warn(
                f"{bad.size} of {len(answer)} predicted costs have no decision of minimum cost "
                f"and get NaN (first: row {bad[0]}). {status.sentence}",
                UnsolvedDecisionWarning,
                stacklevel=2,
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
            own, form = (None, None) if sets is None else (sets.problem, sets.form)
            predicted = to_float64(self.predict(Z, problem=own, form=form), "predict(Z)")
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

    def _parameters(self, Z: Any) -> np.ndarray:
        check_is_fitted(self, "model_")
        return self.model_.predict_cost(checked_contexts(self, Z, reset=False))

    def _costs(self, Z: Any, form: CostForm | None = None) -> np.ndarray:
        parameters = self._parameters(Z)
        form = self.form_ if form is None else form
        return parameters if form is None else form.costs(parameters)

    # --- what comes in ---------------------------------------------------------------------------

    def _check_parameters(self, validation: Any) -> None:
        check_program(self.problem)
        check_whole(self.max_iter, "max_iter", 0)
        if self.method not in METHODS:
            raise InputError(f'`method` must be "pocs" or "erm"; got {self.method!r}.')
        if isinstance(self.model, str) and self.model not in MODELS:
            raise InputError(
                f"`model` must be one of {', '.join(MODELS)} or a torch.nn.Module; "
                f"got {self.model!r}."
            )
        if self.method == "pocs" and self.power != 2:
            raise InputError(
                f'POCS minimises the squared distance; power={self.power!r} needs method="erm".'
            )
        if self.method == "pocs" and (validation is not None or self.patience is not None):
            raise InputError('`validation` and `patience` are for method="erm".')

    def _sets(self, y: Any, true_costs: Any, size: int, sample_weight: Any) -> Sets:
        sets = self._as_sets(y, true_costs, size)
        weights = checked_sample_weight(sample_weight, size)
        return sets if weights is None else weighed(sets, weights)

    def _as_sets(self, y: Any, true_costs: Any, size: int) -> Sets:
        return as_sets(self.problem, y, true_costs, margin=self.margin, size=size, form=self.form)

    # --- the fit ---------------------------------------------------------------------------------

    def _new_model(self, Z: Any) -> CostModel:
        shape = {"fit_intercept": self.fit_intercept, "ridge": self.ridge}
        if not isinstance(self.model, str):
            from .torch_model import TorchModel

            return TorchModel(
                copy.deepcopy(self.model),
                optimiser="adam" if self.optimiser in ("auto", "armijo") else self.optimiser,
                step=1e-3 if self.step is None else self.step,
                inner_steps=100 if self.inner_steps is None else self.inner_steps,
                batch_size=self.batch_size,
                ridge=self.ridge,
                seed=self._seed,
            )
        if self.model == "kernel":
            names = ("kernel", "gamma", "degree", "coef0", "n_components")
            return KernelModel(
                **{name: getattr(self, name) for name in names}, seed=self._seed, **shape
            )
        shared = self.model == "shared" or Z.ndim == 3
        return SharedModel(**shape) if shared else LinearModel(**shape)

    def _train(
        self,
        model: CostModel,
        Z: Any,
        sets: Sets,
        passes: int,
        validation: tuple[Any, Any] | None,
    ) -> History:
        common = {"tol": self.tol, "threads": self.threads, "verbose": self.verbose}
        common["monitor"] = self._monitor(Z, sets) if self.track_decisions else None
        if self.method == "pocs":
            return pocs(model, Z, sets, max_iter=passes, **common)
        from .training import erm

        if validation is not None:
            held = checked_contexts(self, validation[0], reset=False)
            validation = held, self._as_sets(validation[1], None, len(held))
        module = not isinstance(self.model, str)
        default = "adam" if module else "armijo"
        return erm(
            model,
            Z,
            sets,
            validation=validation,
            optimiser=default if self.optimiser == "auto" else self.optimiser,
            epochs=passes,
            step=self.step,
            decay=self.decay,
            batch_size=self.batch_size,
            inner_steps=1 if self.inner_steps is None else self.inner_steps,
            patience=self.patience,
            power=self.power,
            delta=self.delta,
            seed=self._seed,
            **common,
        )

    def _pass(self, model: CostModel, Z: Any, sets: Sets) -> History:
        """One step of POCS on new data, with what earlier data have told kept."""
        features = model.prepare(Z, sets.n_parameters, more=True)
        warm = WarmStart(len(sets), keep=False)
        done = sweep(model, features, sets, warm=warm, threads=self.threads)
        model.refit()
        history = History([{"iteration": 0, "loss": done.h + model.penalty()} | done.row()])
        history.reason = StopReason.ONE_PASS
        history.certificate = Certificate.of(done, self.tol, history.reason)
        return history

    def _monitor(self, Z: Any, sets: Sets) -> Any:
        def decision_loss(model: CostModel) -> dict[str, float]:
            w = model.predict_cost(Z)
            if isinstance(sets, MixedSets):
                x = _filled_up(sets.solve(w, threads=self.threads), sets.decisions.shape[1])
            else:
                costs = w if sets.form is None else sets.form.costs(w)
                x = sets.problem.solve(costs, threads=self.threads).x
            return {"decision_loss": float(((x - sets.decisions) ** 2).sum(axis=1).mean())}

        return decision_loss

    def _keep(self, model: CostModel, sets: Sets, history: History) -> InverseRegressor:
        """Take a model over once it is fitted: a fit that was refused or interrupted leaves none,
        or the one before."""
        self.model_, self.history_, self.certificate_ = model, history, history.certificate
        self.form_ = sets.form if isinstance(sets, OptimalitySet) else None
        if isinstance(model, LinearModel | SharedModel | KernelModel):
            self.coef_, self.intercept_ = model.coef, model.intercept
        return self


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
