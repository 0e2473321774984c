"""What a model must beat: always the most frequent decision, and costs that ignore the context.

Letters: B samples, n variables.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ...metrics.sameness import SAME, same_decision
from ..doctor.repetition import row_codes
from ..store import FittedModel
from .dossier import Dossier
from .given import SOFT
from .judging import NEAR, relative

MOST = 4_000
"""Samples that the costs without context are learned from."""


def baselines(
    model: FittedModel, dossier: Dossier, learn: np.ndarray, rows: np.ndarray, noise: float
) -> dict[str, Any]:
    """Figures of both baselines, learned from the rows `learn`, on `rows`."""
    problem, taken = dossier.plans[rows].problem, dossier.decisions[rows]
    usual = np.repeat(_most_frequent(dossier.decisions[learn])[None], len(rows), axis=0)
    plain_cost = _without_context(dossier, learn, model, noise)
    without = _always(problem, plain_cost, len(rows))
    costs = model.costs(dossier.contexts[rows])
    best = problem.solve(costs)
    there = np.asarray(best.optimal)
    spent = np.abs(costs * taken).sum(axis=1)
    figures = {}
    for name, decisions in (("most_frequent", usual), ("no_context", without)):
        solved = np.isfinite(decisions).all(axis=1)
        obeys = np.zeros(len(rows), bool)
        if solved.any():
            at = np.flatnonzero(solved)
            obeys[at] = np.asarray(problem[at].constraint_violation(decisions[at])) <= SAME
        hits = int(same_decision(decisions, taken).sum())
        use = there & obeys
        more = (costs * (np.where(use[:, None], decisions - np.asarray(best.x), 0.0))).sum(axis=1)
        gap = np.abs(decisions - taken).sum(axis=1)
        figures[name] = {
            "repeated": hits,
            "repeated_share": hits / len(rows),
            "near": int((gap <= NEAR * np.abs(taken).sum(axis=1)).sum()),
            "extra_cost": relative(more[use], spent[use]) if use.any() else None,
            "infeasible": int((solved & ~obeys).sum()),
        }
    above = ((taken - without) @ plain_cost)[(there := np.isfinite(without).all(axis=1))]
    size = (np.abs(taken) @ np.abs(plain_cost))[there]
    figures["no_context"]["own_extra_cost"] = relative(above, size) if there.any() else None
    return figures | {"samples": len(rows)}


def _always(problem: Any, cost: np.ndarray, size: int) -> np.ndarray:
    """(B, n) decisions under the same cost (n,) on each of B days."""
    if problem.n_instances is None:
        return np.repeat(np.asarray(problem.solve(cost[None]).x), size, axis=0)
    return np.asarray(problem.solve(np.repeat(cost[None], size, axis=0)).x)


def _most_frequent(decisions: np.ndarray) -> np.ndarray:
    """The decision (n,) that was taken most often; of several the first."""
    codes = row_codes(np.round(decisions / SAME) + 0.0)
    _, first, counts = np.unique(codes, return_index=True, return_counts=True)
    most = counts == counts.max()
    return decisions[first[most].min()]


def _without_context(
    dossier: Dossier, learn: np.ndarray, model: FittedModel, noise: float
) -> np.ndarray:
    """(n,) the costs that explain the decisions best if they are the same on every day."""
    from sklearn.exceptions import ConvergenceWarning

    from ...fit import LBFGS, InverseRegressor
    from ...fit.cuts import known_cuts
    from ...optimality.sets import OptimalitySet

    some = learn[np.linspace(0, len(learn) - 1, min(len(learn), MOST)).astype(int)]
    margin, given = model.margin, model.given
    known = {} if given is None else {"form": given.form, "soft": SOFT}
    sets = OptimalitySet(dossier.plans[some].problem, dossier.decisions[some], margin, **known)
    if dossier.plan.is_whole:  # near enough by the alternatives that the fit has found
        sets = known_cuts(sets)
    solver = LBFGS(max_iter=200, tol=1e-3)
    est = InverseRegressor(
        sets.problem,
        solver=solver,
        margin=margin,
        noise=noise,
        ridge=0.0,
        random_state=0,
        cost_map=None if given is None else given.form,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a baseline, near enough
        est.fit(np.zeros((len(some), 1)), sets)
    if given is None:
        return np.asarray(est.intercept_, float)
    return given.within(given.form.costs(est.intercept_[None]))[0]
