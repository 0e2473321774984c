"""Decisions that are seen in part: entries are missing, or only totals M x were written down.

    fit(Z, PartialDecisions(X))                  NaN where an entry was not seen
    fit(Z, PartialDecisions(Y, totals=M))        M x = Y, NaN where a total was not seen
    fit(Z, OptimalitySet(problem, X, observed=mask))

Each decision is completed as the cheapest feasible one that agrees with what was seen, under the
costs learned so far; then costs are learned from the completed decisions, and so on. A turn is kept
only if the gap falls: by how much the cheapest decision that agrees exceeds the cheapest of
all. Where decisions end is a local optimum. Letters: B samples, n variables, q totals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._common.arrays import to_float64
from ..errors import InputError
from ..optimality.completion import Completion, plain_costs
from ..optimality.rounding import checked_decision_tol, read_rounded
from ..optimality.sets import OptimalitySet
from ..problems.linear import LinearProgram
from .observed import observed
from .prediction import cost_form

TURNS = 10
"""Most turns of completing and learning."""
LEAST_FALL = 1e-3
"""Of the gap: a turn that gains less is the last."""
FULL = 2
"""Times as many fully seen samples as features are enough to start from."""


@dataclass(frozen=True, eq=False)
class PartialDecisions:
    """What was seen of decisions.

    Parameters
    ----------
    seen : (B, n) or (B, q) array
        Entries of decisions, or totals; NaN where nothing was seen. Entries may be rounded, as
        `decision_tol` of the estimator says, or as the decisions seen whole show.
    totals : (q, n) matrix, optional
        Dense or scipy.sparse: row k adds up what `seen[:, k]` is the total of.
    start : (n,) or (B, n) array, optional
        Costs under which decisions are completed at first, if too few of them are seen whole.
        Unless given, 1 for every entry; -1 for one that has an upper bound alone, 0 without
        bounds.
    floor : float, optional
        Learned costs below this are raised to it where decisions are completed, so that a path
        cannot gain by going in circles.
    draws : int
        With more than 1, costs are learned once more in the end, from so many completions of each
        decision, each under costs that are drawn around those learned. It helps where most entries
        are hidden and people are not always optimal, for then one completion looks too sure.
    spread : float
        Standard deviation of the logarithm of drawn costs.
    """

    seen: Any
    totals: Any = None
    start: Any = None
    floor: float = -np.inf
    draws: int = 1
    spread: float = 0.15

    def __len__(self) -> int:
        return len(self.seen)

    @property
    def whole(self) -> np.ndarray:
        """(B,) decisions of which every entry is seen; none where totals are."""
        if self.totals is not None:
            return np.zeros(len(self.seen), bool)
        return np.asarray(~np.isnan(np.asarray(self.seen, float)).any(axis=1))


def in_part(y: Any) -> bool:
    """Whether these are decisions of which only a part was seen."""
    partial_sets = isinstance(y, OptimalitySet) and y.observed is not None
    return partial_sets or isinstance(y, PartialDecisions)


def fit_partial(est: Any, Z: Any, given: PartialDecisions | OptimalitySet, **options: Any) -> Any:
    """Fit an estimator in turns; it ends as the fit to the best completion, which is kept as
    `completed_`, with `gaps_`, one for each turn that was kept."""
    if est.unknown_limits is not None:
        raise InputError("Decisions seen in part do not go with `unknown_limits`.")
    if cost_form(est.cost_map) is not None and est.cost_map.n_instances is not None:
        raise InputError("Decisions seen in part do not go with a form for each sample.")
    if isinstance(given, PartialDecisions):
        _check_draws(given)
    turns = _Turns(est, Z, given)
    X = turns.first(options)
    kept: dict[str, Any] = {}
    gaps: list[float] = []
    for _ in range(TURNS):
        est.fit(Z, turns.target(X), **options)
        costs = turns.costs()
        again = turns.completion.complete(costs)
        gap = turns.completion.gap(costs, again)
        if gaps and not gap < gaps[-1]:
            break
        small = bool(gaps) and gap > (1.0 - LEAST_FALL) * gaps[-1]
        gaps.append(gap)
        kept = dict(vars(est)) | {"completed_": again}
        if small or np.array_equal(again, X):
            break
        X = again
    vars(est).update(kept)
    est.gaps_ = np.array(gaps)
    if isinstance(given, PartialDecisions) and given.draws > 1:
        turns.learn_from_draws(given, options)
    return est


class _Turns:
    """What a fit in turns needs to know of the decisions, given in one way or the other."""

    def __init__(self, est: Any, Z: Any, given: PartialDecisions | OptimalitySet) -> None:
        self._est, self._Z, self._size = est, Z, len(given)
        self._sets = given if isinstance(given, OptimalitySet) else None
        self._start, self._floor = None, -np.inf
        if isinstance(given, PartialDecisions):
            self._whole = given.whole
            slack = 0.0 if given.totals is not None else _precision(est, given.seen, self._whole)
            self.completion = Completion(est.problem, given.seen, given.totals, slack=slack)
            self._start, self._floor = given.start, given.floor
        else:
            assert given.observed is not None
            self.completion = given.completion
            self._whole = given.observed.all(axis=1)

    def target(self, X: np.ndarray) -> Any:
        """What an estimator learns from, where decisions are completed to X."""
        return X if self._sets is None else self._sets.filled(X).replaced(observed=None)

    def costs(self) -> np.ndarray:
        """(B, n) learned, where features are common to all samples too."""
        found = np.maximum(self._est._costs(self._Z, None, self._size), self._floor)
        return np.array(np.broadcast_to(found, (self._size, found.shape[1])))

    def first(self, options: dict[str, Any]) -> np.ndarray:
        """Decisions completed for the first time: under costs learned from those seen whole, where
        there are enough."""
        est, Z, whole = self._est, self._Z, self._whole
        given = self._start
        start = plain_costs(est.problem) if given is None else to_float64(given, "start")
        shape = (self._size, self.completion.n)
        X = self.completion.complete(np.array(np.broadcast_to(start, shape)))
        common = getattr(Z, "ndim", 2) == 2 and len(Z) != self._size
        enough = whole.sum() >= FULL * (1 + np.shape(Z)[-1]) and not common
        if not enough or given is not None or est.problem.n_instances is not None or options:
            return X
        some = np.flatnonzero(whole)
        est.fit(_rows(Z, some), self.target(X)[some])
        return self.completion.complete(self.costs())

    def learn_from_draws(self, given: PartialDecisions, options: dict[str, Any]) -> None:
        """Learn once more, from several completions of each decision."""
        est, Z, around = self._est, self._Z, self.costs()
        rng = np.random.default_rng(est.random_state if isinstance(est.random_state, int) else 0)
        noise = [given.spread * rng.standard_normal(around.shape) for _ in range(given.draws)]
        drawn = [np.maximum(around * np.exp(e), self._floor) for e in noise]
        X = np.vstack([self.completion.complete(costs) for costs in drawn])
        rows = np.tile(np.arange(self._size), given.draws)
        problem = est.problem if est.problem.n_instances is None else est.problem[rows]
        margin = est.margin if np.ndim(est.margin) == 0 else np.asarray(est.margin)[rows]
        policy = {"infeasible": est.infeasible, "decision_tol": est.decision_tol}
        form = cost_form(est.cost_map)
        seen = observed(problem, X, len(rows), margin=margin, form=form, **policy)
        if "sample_weight" in options:
            options = options | {"sample_weight": np.asarray(options["sample_weight"])[rows]}
        common = getattr(Z, "ndim", 2) == 2 and len(Z) != self._size
        est.fit(Z if common else _rows(Z, rows), seen.sets, **options)
        est.completed_ = self.completion.complete(self.costs())


def _rows(Z: Any, rows: np.ndarray) -> Any:
    """Some of the contexts, in whatever they came."""
    return Z.iloc[rows] if hasattr(Z, "iloc") else np.asarray(Z)[rows]


def _check_draws(given: PartialDecisions) -> None:
    if not (type(given.draws) is int and given.draws >= 1 and 0 <= given.spread < np.inf):
        raise InputError(
            "`draws` must be a whole number of at least 1 and `spread` at least 0 and finite; got "
            f"{given.draws!r} and {given.spread!r}."
        )


def _precision(est: Any, seen: Any, whole: np.ndarray) -> np.ndarray | float:
    """How far entries may be off by rounding: as the estimator was told, or as the decisions seen
    whole show."""
    problem, some = est.problem, np.flatnonzero(whole)
    half = checked_decision_tol(est.decision_tol, problem.n_variables)
    if half is None and some.size and type(problem) is LinearProgram:
        half = read_rounded(problem[some], np.asarray(seen, dtype=np.float64)[some]).half_unit
    return 0.0 if half is None else half
