"""Decisions that are seen in part: entries are missing, or only totals M x were written down.

    fit(Z, PartialDecisions(X))                  NaN where an entry was not seen
    fit(Z, PartialDecisions(Y, totals=M))        M x = Y, NaN where a total was not seen

Each decision is completed as the cheapest feasible one that agrees with what was seen, under the
costs learned so far; then costs are learned from the completed decisions, and so on. A turn is kept
only if the gap falls: by how much the cheapest decision that agrees exceeds the cheapest of
all. Where decisions end is a local optimum. Letters: B samples, n variables, q totals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from .._common.arrays import to_float64
from .._common.rows import frozen
from ..errors import InputError, ShapeError
from ..problems.linear import LinearProgram
from ..problems.protocol import Problem
from ..problems.solution import SolveStatus
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
        Entries of decisions, or totals; NaN where nothing was seen.
    totals : (q, n) matrix, optional
        Dense or scipy.sparse: row k adds up what `seen[:, k]` is the total of.
    start : (n,) or (B, n) array, optional
        Costs under which decisions are completed at first, if too few of them are seen whole; 1
        for every entry unless given.
    floor : float, optional
        Learned costs below this are raised to it where decisions are completed, so that a path
        cannot gain by going in circles.
    """

    seen: Any
    totals: Any = None
    start: Any = None
    floor: float = -np.inf

    def __len__(self) -> int:
        return len(self.seen)

    @property
    def whole(self) -> np.ndarray:
        """(B,) decisions of which every entry is seen; none where totals are."""
        if self.totals is not None:
            return np.zeros(len(self.seen), bool)
        return np.asarray(~np.isnan(np.asarray(self.seen, float)).any(axis=1))


class Completion:
    """The cheapest decisions that agree with what was seen, under any costs."""

    def __init__(self, problem: Problem, given: PartialDecisions) -> None:
        if type(problem) is not LinearProgram:
            raise InputError(
                "Decisions seen in part are those of a LinearProgram; got "
                f"{type(problem).__name__}."
            )
        self.problem, self.n = problem, problem.n_variables
        self.seen = _checked(given, self.n)
        self._consistent = (
            self._with_entries() if given.totals is None else self._with(given.totals)
        )

    def complete(self, costs: np.ndarray) -> np.ndarray:
        """(B, n); refused where no feasible decision agrees with what was seen."""
        extra = self._consistent.n_variables - self.n
        padded = np.hstack([costs, np.zeros((len(costs), extra))]) if extra else costs
        answer = self._consistent.solve(padded)
        bad = np.flatnonzero(~np.asarray(answer.optimal))
        if bad.size:
            status = SolveStatus(int(answer.status[bad[0]]))
            why = (
                "no feasible decision agrees with what was seen; look at that row"
                if status is SolveStatus.INFEASIBLE
                else status.sentence
            )
            raise InputError(f"Row {bad[0]} cannot be completed ({bad.size} cannot): {why}")
        return np.asarray(answer.x)[:, : self.n]

    def gap(self, costs: np.ndarray, completed: np.ndarray) -> float:
        """By how much decisions that agree cost more than the cheapest, as a share of what the
        latter cost; inf where costs have no cheapest decision."""
        free = self.problem.solve(costs)
        if not np.asarray(free.optimal).all():
            return np.inf
        paid, least = (costs * completed).sum(axis=1), np.asarray(free.objective)
        return float((paid - least).sum() / max(np.abs(least).sum(), 1e-300))

    def _with_entries(self) -> LinearProgram:
        there, slight = ~np.isnan(self.seen), 1e-6
        low = np.where(there, self.seen, self.problem.lb)
        high = np.where(there, self.seen, self.problem.ub)
        broken = there & (
            (self.seen < self.problem.lb - slight) | (self.seen > self.problem.ub + slight)
        )
        if broken.any():
            b, j = np.argwhere(broken)[0]
            raise InputError(
                f"Row {b}: entry {j} was seen as {self.seen[b, j]:g}, out of its bounds."
            )
        return self._replaced(self.problem, low, high)

    def _with(self, totals: Any) -> LinearProgram:
        """Variables (x, t) with M x = t: totals that were seen are bounds of t."""
        M, (B, q) = sparse.csr_array(totals), self.seen.shape
        base, there = self.problem, ~np.isnan(self.seen)
        eq = sparse.block_array([[base.eq_rows.matrix(0), None], [M, -sparse.eye_array(q)]])
        eq = eq if base.eq_rows.shape[0] else sparse.hstack([M, -sparse.eye_array(q)])
        ub: Any = base.ub_rows.matrix(0)
        m_ub = base.ub_rows.shape[0]
        low, high = (np.where(there, self.seen, end) for end in (-np.inf, np.inf))
        own_low, own_high = (np.broadcast_to(v, (B, self.n)) for v in (base.lb, base.ub))
        b_eq = np.broadcast_to(base.b_eq, (B, base.b_eq.shape[-1]))
        return LinearProgram(
            A_eq=eq,
            b_eq=np.hstack([b_eq, np.zeros((B, q))]),
            A_ub=sparse.hstack([ub, sparse.csr_array((m_ub, q))]) if m_ub else None,
            b_ub=base.b_ub if m_ub else None,
            lb=np.hstack([own_low, low]),
            ub=np.hstack([own_high, high]),
        )

    def _replaced(self, problem: LinearProgram, lb: np.ndarray, ub: np.ndarray) -> LinearProgram:
        parts = {"lb": frozen(lb), "ub": frozen(ub), "n_instances": len(lb)}
        return problem.replaced(**parts, structure=None)


def fit_partial(est: Any, Z: Any, given: PartialDecisions, **options: Any) -> Any:
    """Fit an estimator in turns; it ends as the fit to the best completion, which is kept as
    `completed_`, with `gaps_`, one for each turn that was kept."""
    if est.unknown_limits is not None:
        raise InputError("Decisions seen in part do not go with `unknown_limits`.")
    if cost_form(est.cost_map) is not None and est.cost_map.n_instances is not None:
        raise InputError("Decisions seen in part do not go with a form for each sample.")
    completion = Completion(est.problem, given)
    X = _first(est, Z, given, completion, options)
    kept: dict[str, Any] = {}
    gaps: list[float] = []
    for _ in range(TURNS):
        est.fit(Z, X, **options)
        costs = _costs(est, Z, given)
        again = completion.complete(costs)
        gap = completion.gap(costs, again)
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
    return est


def _first(
    est: Any, Z: Any, given: PartialDecisions, completion: Completion, options: dict[str, Any]
) -> np.ndarray:
    """Decisions completed for the first time: under costs learned from those seen whole, where
    there are enough."""
    whole, shape = given.whole, (len(given), completion.n)
    common = getattr(Z, "ndim", 2) == 2 and len(Z) != len(given)
    enough = whole.sum() >= FULL * (1 + np.shape(Z)[-1]) and not common
    if enough and given.start is None and est.problem.n_instances is None and not options:
        some = np.flatnonzero(whole)
        est.fit(Z[some], completion.seen[some])
        return completion.complete(_costs(est, Z, given))
    start = 1.0 if given.start is None else to_float64(given.start, "start")
    return completion.complete(np.array(np.broadcast_to(start, shape)))


def _costs(est: Any, Z: Any, given: PartialDecisions) -> np.ndarray:
    """(B, n) where features are common to all samples too."""
    found = np.maximum(est._costs(Z, None, len(given)), given.floor)
    return np.array(np.broadcast_to(found, (len(given), found.shape[1])))


def _checked(given: PartialDecisions, n: int) -> np.ndarray:
    seen = np.asarray(given.seen, dtype=np.float64)
    width = n if given.totals is None else given.totals.shape[0]
    if seen.ndim != 2 or seen.shape[1] != width:
        raise ShapeError(
            f"What was seen must have shape (B, {width}), NaN where nothing was; got {seen.shape}."
        )
    if given.totals is not None and given.totals.shape[1] != n:
        raise ShapeError(
            f"`totals` must have {n} columns, one for each variable; got {given.totals.shape[1]}."
        )
    if np.isinf(seen).any():
        raise InputError("What was seen must be finite, or NaN where nothing was.")
    return seen
