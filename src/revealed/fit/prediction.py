"""What a fitted estimator says of new contexts: costs, decisions, a score."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._common.arrays import to_float64
from ..errors import InputError, ShapeError
from ..optimality.cost_form import CostForm
from ..optimality.mixed import MixedSets
from ..optimality.protocol import CostSet as Sets
from ..optimality.sets import OptimalitySet
from ..problems.protocol import Problem, check_problem
from ..problems.solution import SolveStatus
from .contexts import Common, Ragged, check_length, checked_contexts, is_ragged, like
from .decisions import checked_sample_weight, joined
from .feature_models import SharedModel
from .limits.model import LimitIntervals, LimitModel
from .models import CostModel
from .output import as_asked, set_output


class UnsolvedDecisionWarning(UserWarning):
    """Some predicted costs have no decision of minimum cost; their rows are NaN."""


class Predictor:
    """The half of `InverseRegressor` that decides; the other half learns `model_` and `form_`."""

    problem: Any
    cost_map: Any
    threads: int | None
    model_: CostModel
    form_: CostForm | None
    limits_: LimitModel | None

    def set_output(self, *, transform: str | None = None) -> Self:
        """What `predict` and `predict_cost` return: "pandas" for a DataFrame with the names of the
        variables, where the decisions learned from had names, and the index of `Z`; "default" for
        arrays. scikit-learn's `set_config(transform_output="pandas")` says it for all.

        Parameters
        ----------
        transform : "pandas", "default" or None
            None changes nothing.

        Returns
        -------
        InverseRegressor
            This estimator.
        """
        return set_output(self, transform)

    def predict_parameters(self, Z: Any) -> Any:
        """(B, p) what the model itself predicts, before a form makes costs of it.

        Parameters
        ----------
        Z : (B, d) or (B, n, p) array
            Contexts, as in `fit`.

        Returns
        -------
        (B, p) array
            A tensor where `Z` is one.
        """
        return like(Z, self._parameters(Z))

    def predict_cost(self, Z: Any, form: CostForm | None = None) -> Any:
        """(B, n) costs; torch in, torch out. Parameters beyond `lower` or `upper` of a `CostForm`
        count as these limits.

        Parameters
        ----------
        Z : (B, d) or (B, n, p) array
            Contexts, as in `fit`.
        form : CostForm, optional
            That of these instances, where it differs from sample to sample.

        Returns
        -------
        (B, n) array
            A tensor where `Z` is one, a DataFrame where `set_output` asks for it.
        """
        return as_asked(self, Z, like(Z, self._costs(Z, form)))

    def predict_limits(self, Z: Any) -> Any:
        """(B, K) learned limits, in the order rows of `A_ub`, lower bounds, upper bounds; infinite
        for a limit that was never active, of which no number is known (see `limit_intervals`).
        Torch in, torch out.

        Parameters
        ----------
        Z : (B, d) array
            Contexts.

        Returns
        -------
        (B, K) array
        """
        return like(Z, self._learned_limits().predict(self._checked(Z, reset=False)))

    def limit_intervals(self, Z: Any, *, level: float = 0.95, side: str = "both") -> LimitIntervals:
        """Confidence intervals (B, K) of the limits in contexts `Z`.

        Parameters
        ----------
        Z : (B, d) array
            Contexts.
        level : float
            Confidence, between 0 and 1.
        side : "both", "low" or "high"
            Which ends are finite.

        Returns
        -------
        LimitIntervals
            See `LimitModel.intervals`.
        """
        contexts = self._checked(Z, reset=False)
        return self._learned_limits().intervals(contexts, level, side)

    def predict(
        self, Z: Any, problem: Problem | MixedSets | None = None, form: CostForm | None = None
    ) -> Any:
        """(B, n) decisions of minimum predicted cost; torch in, torch out.

        A cost for which there is no decision of minimum cost (it falls without limit, say) gets a
        row of NaN and an `UnsolvedDecisionWarning`.

        Parameters
        ----------
        Z : (B, d) or (B, n, p) array
            Contexts, as in `fit`.
        problem : problem or sets of several problems, optional
            The constraints of these instances, where they differ from those learned with.
        form : CostForm, optional
            That of these instances, where it differs from sample to sample.

        Returns
        -------
        (B, n) array
            A tensor where `Z` is one, a DataFrame where `set_output` asks for it, a list of B
            decisions for sets of several problems.
        """
        return as_asked(self, Z, self._decisions(Z, problem, form))

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
        costs = self._costs(Z, form, size)
        if getattr(self, "limits_", None) is not None:
            return like(Z, self._under_limits(Z, costs, chosen))
        answer = chosen.solve(costs, threads=self.threads)
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

    def _under_limits(self, Z: Any, costs: np.ndarray, problem: Any) -> np.ndarray:
        """Decisions under learned limits; NaN and a warning where they leave none."""
        limits = self._learned_limits()
        closed, crossed = limits.closed(problem, self._checked(Z, reset=False))
        answer = closed.solve(costs, threads=self.threads)
        x, bad = np.array(answer.x), np.flatnonzero(crossed | ~answer.optimal)
        x[bad] = np.nan
        if bad.size:
            status = SolveStatus(int(answer.status[bad[0]]))
            why = (
                "The learned limits leave no feasible decision there; see `predict_limits`."
                if crossed[bad[0]] or status is SolveStatus.INFEASIBLE
                else status.sentence
            )
            warnings.warn(
                f"{bad.size} of {len(x)} contexts have no decision under the learned costs and "
                f"limits and get NaN (first: row {bad[0]}). {why}",
                UnsolvedDecisionWarning,
                stacklevel=4,
            )
        return x

    def _learned_limits(self) -> LimitModel:
        check_is_fitted(self, "model_")
        if getattr(self, "limits_", None) is None:
            raise InputError(
                "No limits were learned; name them when the estimator is built, as "
                'unknown_limits={"ub": [2]}.'
            )
        assert self.limits_ is not None
        return self.limits_

    def score(self, Z: Any, y: Any, sample_weight: Any = None) -> float:
        """Minus the mean decision loss |x(c) - x|^2, so 0 is perfect and larger is better.

        Finer than the share of decisions matched exactly (see `revealed.metrics.accuracy`), which
        suits the choice of parameters. -inf where a predicted cost has no optimal decision.

        Parameters
        ----------
        Z : (B, d) or (B, n, p) array
            Contexts.
        y : (B, n) array or OptimalitySet
            Decisions to compare with. Sets bring the constraints of their instances.
        sample_weight : (B,) array, optional
            Of the mean.

        Returns
        -------
        float
        """
        y = joined(y)
        sets = y if isinstance(y, Sets) else None
        decisions = to_float64(y if sets is None else sets.decisions, "y")
        if isinstance(sets, MixedSets):
            predicted = filled_up(self.predict(Z, problem=sets), decisions.shape[1])
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

    def _parameters(self, Z: Any, size: int | None = None) -> np.ndarray:
        check_is_fitted(self, "model_")
        Z = self._checked(Z, reset=False)
        if isinstance(self.model_, SharedModel) and Z.ndim == 2:
            Z = Common(Z, 1 if size is None else size)
        scale = cost_units(self.cost_map)
        found = self.model_.predict_cost(in_scale(Z, scale))
        return found if scale is None else found * scale

    def _costs(self, Z: Any, form: CostForm | None = None, size: int | None = None) -> np.ndarray:
        parameters = self._parameters(Z, size)
        form = self.form_ if form is None else form
        return parameters if form is None else form.costs(form.within(parameters))

    def _checked(self, Z: Any, *, reset: bool, model: CostModel | None = None) -> Any:
        """Contexts as numbers, as `model` takes them; modules and regressors check their own."""
        model = self.model_ if model is None else model
        return checked_contexts(self, Z, reset=reset, as_given=model.family != "convex")


def cost_units(cost_map: Any) -> np.ndarray | None:
    """(n,) the units of the cost entries, where the map from predictions to costs is a scale."""
    if cost_map is None or isinstance(cost_map, CostForm):
        return None
    return to_float64(cost_map, "cost_map")


def cost_form(cost_map: Any) -> CostForm | None:
    """The form of costs, where the map from predictions to costs is one."""
    return cost_map if isinstance(cost_map, CostForm) else None


def in_scale(Z: Any, scale: np.ndarray | None) -> Any:
    """Features of entries in the units of their entry; other contexts as they are."""
    if scale is None or Z.ndim < 3:
        return Z
    if isinstance(Z, Ragged):
        raise InputError("A `cost_map` of units is for samples of one problem.")
    unit = scale[:, None]
    return Common(Z.rows / unit, len(Z)) if isinstance(Z, Common) else Z / unit


def filled_up(decisions: list[np.ndarray], width: int) -> np.ndarray:
    """(B, width): decisions of several problems, filled up with 0."""
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
