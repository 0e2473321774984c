"""How `revealed fit` trains, and what it keeps of that with the model."""

from __future__ import annotations

import argparse
import sys
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..plans import GivenCosts, Limit, unknown_of
from .dossier import Dossier
from .given import SOFT
from .partial import InPart

if TYPE_CHECKING:
    from ...fit import DistanceLoss, LimitModel

FOLDS = 5
FEWEST = 20
"""Samples below which nothing is chosen by cross-validation: folds would be a sample or two."""
WHOLE_TOL = 1e-2
"""Relative distance to the minimum that a fit to whole decisions goes to: it asks the solver about
every sample again and again, and nearer the minimum predictions hardly change."""
LARGE = 100_000
"""Numbers in the decisions from which on folds are fitted in several processes."""


class Trained(NamedTuple):
    """A cost model, in the terms of its kind, and plain facts about how it came to be."""

    kind: str
    coef: np.ndarray
    intercept: np.ndarray
    facts: dict[str, Any]
    limits: LimitModel | None = None


def train(
    dossier: Dossier,
    rows: np.ndarray,
    args: argparse.Namespace,
    unknown: tuple[Limit, ...] = (),
    given: GivenCosts | None = None,
    *,
    soft: bool = False,
    half_unit: np.ndarray | None = None,
) -> Trained:
    """Learn from some rows; ridge and features are chosen unless they are given, by decisions
    without empty cells. `soft` is whether decisions that the given costs contradict count by how
    far they miss; `half_unit` is how far cells may be off."""
    verbose = not args.json and sys.stderr.isatty()
    if verbose:
        print("Learning; the first fit after installing compiles for a minute.", file=sys.stderr)
    from sklearn.exceptions import ConvergenceWarning

    from ...fit import LBFGS, InverseRegressor, InverseRegressorCV, PartialDecisions
    from ...fit.storing import training_facts
    from ...optimality.sets import OptimalitySet

    problem, whole = dossier.plans.problem, dossier.plan.is_whole
    sets: Any
    if unknown:
        problem, sets = problem[rows], dossier.decisions[rows]
    else:
        known = {"form": given.form, "soft": SOFT if soft else None} if given else {}
        sets = OptimalitySet(problem, dossier.decisions, args.margin, **known)[rows]
    solver = LBFGS(max_iter=args.max_iter)
    if whole:
        solver.set_params(tol=WHOLE_TOL)
    common: dict[str, Any] = {"margin": args.margin, "solver": solver}
    common["noise"] = "auto" if args.noise is None else args.noise
    if given is not None:
        common["cost_map"] = given.form
        if args.noise is None and given.has_unit:
            common["noise"] = given.usual_noise
    common |= {"random_state": args.seed, "verbose": verbose}
    if unknown:
        common |= {"unknown_limits": unknown_of(unknown), "decision_tol": 0.0}
    clear = np.flatnonzero(~dossier.has_gaps[rows])
    model = "linear" if args.model == "auto" else args.model
    ridge, choice = "auto" if args.ridge is None else args.ridge, None
    est: Any = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the command says it in its own words
        if args.ridge is None and len(clear) >= FEWEST and not whole:
            jobs = -1 if dossier.decisions.size >= LARGE else None
            est = InverseRegressorCV(problem, model=args.model, cv=FOLDS, n_jobs=jobs, **common)
        if dossier.cells is not None and len(clear) < len(rows):
            if est is not None:
                est.fit(dossier.contexts[rows[clear]], sets[clear])
                model, ridge, choice, est = est.chosen_model_, est.ridge_, est.choice_, None
            common["decision_tol"] = 0.0 if half_unit is None else half_unit
            problem, sets = problem[rows], PartialDecisions(dossier.cells[rows])
        if est is None:
            est = InverseRegressor(problem, model=model, ridge=ridge, **common)
        est.fit(dossier.contexts[rows], sets)
    if unknown:
        est.certificate_ = _by_name(est.certificate_, unknown)
    facts = training_facts(est) | {"samples": len(rows), "solver": "lbfgs"}
    if whole:
        facts |= _asked(est, args)
    facts["in_part"] = None
    if len(clear) < len(rows):
        turns = est.gaps_
        facts["choice"] = facts["choice"] or choice
        facts["in_part"] = InPart(len(rows) - len(clear), len(turns), float(turns[-1]))._asdict()
    coef, intercept = est.coef_, est.intercept_
    if given is not None:
        coef, intercept = given.spread(coef, intercept)
    return Trained(facts["kind"], coef, intercept, facts, est.limits_)


def _by_name(certificate: Any, unknown: tuple[Limit, ...]) -> Any:
    """The certificate of learned limits, by the names that the planner has for them."""
    names = [f"the limit {limit.name!r}" for limit in unknown]
    return replace(certificate, limits=replace(certificate.limits, names=names))


def _asked(est: Any, args: argparse.Namespace) -> dict[str, Any]:
    """What a fit to whole decisions took, and what was not chosen by cross-validation."""
    calls = int(est.history_.rows[-1]["calls"]) if est.history_.rows else 0
    if args.ridge is not None and args.model != "auto":
        return {"calls": calls, "choice": None}
    return {
        "calls": calls,
        "choice": f"{est.model if isinstance(est.model, str) else 'linear'} features and ridge "
        f"{est.ridge_:.2g} without cross-validation, which would ask the solver many times more. "
        "--model and --ridge set others.",
    }


def loss_of(training: dict[str, Any]) -> DistanceLoss:
    """The loss that a stored model was fitted with."""
    from ...fit import DistanceLoss

    return DistanceLoss.read(training)
