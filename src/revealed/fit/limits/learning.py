"""Labels, limits and costs in turn: what the estimator does where limits are unknown.

    J = mean_i [ loss(f(z_i); C_i^A) / u  +  sum_k -log likelihood of limit k at x_i, given A_i ]

A_i is the guess of which unknown limits are active in sample i, C_i^A the costs that explain the
decision then, u the square of the unit of costs. Three steps lower J in turn: the costs given
labels (a convex problem, solved to its minimum), the labels, the limits given labels. Where the
vertex test tells all labels, one turn is all. Letters: B samples, K unknown limits, C guesses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..._common.arrays import to_float64
from ...errors import InputError, ShapeError
from ...optimality.limit_sets import UnknownLimitSet
from ...optimality.sets import OptimalitySet
from ...problems.linear import LinearProgram
from ...problems.unknown import UnknownLimits
from ...projection import project
from .censored import EXACT
from .labels import find_guesses
from .mixture import (
    STARTS,
    LimitData,
    Mixture,
    best_guess,
    chances_of,
    covariances,
    learn_mixture,
)
from .model import LimitCertificate, LimitModel

ROUNDS = 10
"""Most turns of labels, limits and costs."""
FULL = 2
"""Times as many decisions with sure labels as coefficients are enough to learn costs from first."""
KNOWN = 1e-3
"""Of its entries: how exactly known costs are taken to be."""

Losses = Callable[[Any, OptimalitySet], np.ndarray]
"""(fitted costs, sets) -> (B,) losses"""


@dataclass(frozen=True, eq=False)
class _State:
    """Labels and limits at one time."""

    fits: list[Any]
    label: np.ndarray
    """(B,) the guess that each sample is taken to follow."""
    chance: np.ndarray
    """(B, C) of guesses."""
    costs: Any = None
    """What `fit_costs` returned."""
    objective: float = np.inf


class LimitLearning:
    """Unknown limits of one data set, from their start to their certificate.

    Parameters
    ----------
    pairs : UnknownLimitSet
        Of the decisions learned from.
    Z : (B, d) array
    build : callable
        Makes the sets of costs from a problem with known limits and the decisions.
    seed : int
        Of the starts that are drawn at random.
    known_costs : (B, n) array, optional
        They say what each guess costs besides.
    """

    def __init__(
        self,
        pairs: UnknownLimitSet,
        Z: np.ndarray,
        build: Callable[[LinearProgram, np.ndarray], Any],
        *,
        seed: int = 0,
        known_costs: np.ndarray | None = None,
    ) -> None:
        if Z.ndim != 2:
            raise InputError(
                "`unknown_limits` need contexts (B, d), one row of features for each sample; got "
                f"{Z.ndim} dimensions."
            )
        self.pairs, self.Z, self._build = pairs, Z, build
        spread = Z.std(axis=0)
        self.units = Z.mean(axis=0), np.where(spread > 0, spread, 1.0)
        F = np.column_stack([np.ones(len(Z)), (Z - self.units[0]) / self.units[1]])
        self.data = LimitData(
            F, pairs.values * pairs.unknown.sense, find_guesses(pairs), pairs.weights
        )
        self.extra = None if known_costs is None else self._misfit(known_costs)
        self.mixture: Mixture = learn_mixture(self.data, extra=self.extra, starts=STARTS, seed=seed)
        losses = self.data.losses(self.mixture.fits, self.extra)
        self.state = _State(self.mixture.fits, losses.argmin(axis=1), self.mixture.chance)
        self.objective: list[float] = []

    @property
    def settled(self) -> bool:
        """Whether costs have nothing to say about labels."""
        return bool(self.data.guesses.sure.all())

    @property
    def active(self) -> np.ndarray:
        """(B, K) which limits are taken to be active."""
        return self._active(self.state.label)

    @property
    def sets(self) -> Any:
        """The sets of costs with these limits active."""
        return self._sets(self.state.label)

    def alternate(self, fit_costs: Callable[[Any], Any], losses: Losses, unit: float) -> Any:
        """Costs, labels and limits in turn until no label changes, from labels that limits alone
        tell and from those that costs tell, whichever ends better; returns what `fit_costs` made of
        the last sets."""
        self.state, self.objective = self._descend(self.state, fit_costs, losses, unit)
        start = None if self.settled else self._told_by_costs(fit_costs, losses, unit)
        if start is not None:
            state, objective = self._descend(start, fit_costs, losses, unit)
            if state.objective < self.state.objective:
                self.state, self.objective = state, objective
        return self.state.costs

    def _descend(
        self, state: _State, fit_costs: Callable[[Any], Any], losses: Losses, unit: float
    ) -> tuple[_State, list[float]]:
        """Where the turns end from a state, and the objective after each."""
        state = self._with_costs(state, fit_costs, losses, unit)
        objective = [state.objective]
        for _ in range(ROUNDS if not self.settled else 0):
            total = self._cost_losses(state.costs, losses) / unit
            total += self.data.losses(state.fits, self.extra)
            label = total.argmin(axis=1)
            if (self._active(label) == self._active(state.label)).all():
                break
            fits = self.data.fit(best_guess(total), state.fits)
            new = self._with_costs(_State(fits, label, chances_of(total)), fit_costs, losses, unit)
            if new.objective > state.objective:
                break
            state = new
            objective.append(state.objective)
        return state, objective

    def _told_by_costs(
        self, fit_costs: Callable[[Any], Any], losses: Losses, unit: float
    ) -> _State | None:
        """Labels under costs that were learned from the decisions whose labels are sure; None where
        these are too few."""
        sure = self.data.guesses.sure
        if sure.sum() < FULL * self.data.F.shape[1]:
            return None
        sets = self.sets
        costs = fit_costs(sets.replaced(weights=sets.weights * sure))
        total = self._cost_losses(costs, losses) / unit
        total[np.arange(total.shape[1]) >= self.data.guesses.count[:, None]] = np.inf
        fits = self.data.fit(chances_of(total))
        total += self.data.losses(fits, self.extra)
        return _State(fits, total.argmin(axis=1), chances_of(total))

    def model(self) -> LimitModel:
        """The limits learned."""
        counts = self._counts()
        values, fits = self.pairs.values, self.state.fits
        errors = covariances(self.data, fits, self.state.chance)
        return LimitModel.of(self.pairs.unknown, fits, counts, self.units, self.Z, values, errors)

    def certificate(self) -> LimitCertificate:
        """What is known of them."""
        fits, guesses = self.state.fits, self.data.guesses
        inlier = [fit.inlier for fit in fits if fit is not None]
        out = np.flatnonzero((np.array(inlier) < 0.5).any(axis=0)) if inlier else np.zeros(0, int)
        loose = np.flatnonzero(~guesses.vertex)
        warnings = []
        if loose.size:
            warnings.append(
                f"{loose.size:,} decisions (first: row {loose[0]}) are not vertices whatever "
                "limits are active, so that for them any set of limits was a guess."
            )
        return LimitCertificate(
            names=self.pairs.unknown.names,
            active=[int(count) for count in self._counts()],
            noise=[np.nan if f is None else 0.0 if f.exact else f.scale for f in fits],
            samples=len(self.Z),
            sure=int(guesses.sure.sum()),
            outliers=[int(b) for b in out],
            starts=self.mixture.starts,
            agreeing=self.mixture.agreeing,
            rounds=max(len(self.objective), 1),
            objective=self.objective,
            warnings=warnings,
        )

    def _counts(self) -> np.ndarray:
        """(K,) samples that limits are active in; 0 where no limit was learned."""
        known = np.array([fit is not None for fit in self.state.fits])
        return np.where(known, self.active.sum(axis=0), 0)

    def _active(self, label: np.ndarray) -> np.ndarray:
        return self.data.guesses.active[np.arange(len(label)), label]

    def _sets(self, label: np.ndarray) -> Any:
        limits = np.where(self._active(label), self.pairs.values, np.inf * self.pairs.unknown.sense)
        problem = self.pairs.unknown.closed(self.pairs.problem, limits)
        sets = self._build(problem, self.pairs.decisions)
        return sets.replaced(weights=self.pairs.weights)

    def _with_costs(
        self, state: _State, fit_costs: Callable[[Any], Any], losses: Losses, unit: float
    ) -> _State:
        sets = self._sets(state.label)
        costs = fit_costs(sets)
        weights, rows = self.pairs.weights, np.arange(len(state.label))
        each = self.data.losses(state.fits, self.extra)[rows, state.label]
        each = each + losses(costs, sets) / unit
        return replace(state, costs=costs, objective=float(np.average(each, weights=weights)))

    def _cost_losses(self, costs: Any, losses: Losses) -> np.ndarray:
        """(B, C) of costs, under each guess."""
        B, C = self.data.guesses.active.shape[:2]
        columns = [losses(costs, self._sets(np.full(B, c))) for c in range(C)]
        return np.column_stack(columns)

    def _misfit(self, costs: np.ndarray) -> np.ndarray:
        """(B, C): what known costs say of each guess."""
        B, C = self.data.guesses.active.shape[:2]
        size = KNOWN * np.maximum(np.sqrt((costs**2).mean(axis=1)), 1e-300)
        found = np.empty((B, C))
        for c in range(C):
            plain = self.pairs.pieces(self.data.guesses.active[:, c])
            plain = plain.replaced(margins=np.zeros(B))
            found[:, c] = 0.5 * (np.asarray(project(costs, plain).distance) / size) ** 2
        return found


def learn_limits(
    problem: LinearProgram,
    unknown: Any,
    Z: Any,
    X: Any,
    *,
    costs: Any = None,
    seed: int = 0,
) -> tuple[LimitModel, LimitCertificate]:
    """Unknown limits alone, from contexts and decisions, without learning costs.

    Parameters
    ----------
    problem : LinearProgram
    unknown : dict
        As `unknown_limits` of `InverseRegressor`.
    Z : (B, d) array
    X : (B, n) array
        Decisions.
    costs : (B, n) array, optional
        Known costs of the samples; they tell which limit was active where decisions alone do not.
    seed : int
        Of the starts that are drawn at random.

    Returns
    -------
    LimitModel and LimitCertificate
        `model.predict(Z)` are limits, `model.closed(problem, Z)[0]` is the problem with them.
    """
    contexts = to_float64(Z, "Z")
    pairs = UnknownLimitSet(problem, X, UnknownLimits.read(unknown, problem))
    if len(contexts) != len(pairs):
        raise ShapeError(
            f"`Z` and the decisions must have one row for each sample; got {len(contexts)} and "
            f"{len(pairs)}."
        )
    known = None if costs is None else to_float64(costs, "costs")
    if known is not None and known.shape != pairs.decisions.shape:
        raise ShapeError(f"`costs` must have shape {pairs.decisions.shape}; got {known.shape}.")
    learning = LimitLearning(pairs, contexts, OptimalitySet, seed=seed, known_costs=known)
    return learning.model(), learning.certificate()


def limits_in_force(
    model: LimitModel, problem: LinearProgram, X: np.ndarray, Z: np.ndarray
) -> np.ndarray:
    """(B, K) limits under which decisions X (B, n) were taken in contexts Z (B, d), as far as is
    known: where the likeliest guess has a limit active, the value of the decision; elsewhere what
    the model says, or the value of the decision where that is beyond."""
    pairs = UnknownLimitSet(problem, X, model.unknown)
    guesses, sense = find_guesses(pairs), model.unknown.sense
    said, values = model.predict(Z), pairs.values
    scale = np.maximum(np.nan_to_num(model.noise), EXACT * np.maximum(values.std(axis=0), 1e-300))
    off = np.where(np.isfinite(said), (values - said) * sense / scale, -np.inf)
    on, idle = off**2, np.maximum(off, 0.0) ** 2
    active = guesses.active
    each = np.where(active, on[:, None], idle[:, None]).sum(axis=2)
    each[np.arange(active.shape[1]) >= guesses.count[:, None]] = np.inf
    best = active[np.arange(len(X)), each.argmin(axis=1)]
    beyond = np.where(sense > 0, np.maximum(said, values), np.minimum(said, values))
    return np.where(best, values, beyond)
