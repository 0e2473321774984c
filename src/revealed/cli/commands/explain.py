"""`revealed explain`: whether to believe a model, on tables whose decisions are known."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError
from ...optimality.identification import LARGEST
from ...optimality.sets import OptimalitySet
from ..explain import (
    Miss,
    cost_ranges,
    explaining,
    find_misses,
    nearest_costs,
    needed,
    stable_changes,
)
from ..store import FittedModel, load_model
from ..tables.names import did_you_mean, plain_name
from .cleaning import cleaned
from .deciding import decide
from .dossier import Dossier, add_files, dossier_for, learned_limits, plans_at
from .explanation import Explanation, OneSample, tell_all
from .judging import fingerprint, judge
from .learned import limit_facts
from .options import whole
from .reading import reading_for
from .telling import tell_json, waiting
from .training import loss_of

if TYPE_CHECKING:
    from ...fit import CoefficientIntervals

FEWEST = 10
"""Decisions that must leave a limit, and that must reach it, before intervals count it as moving;
as in `coefficient_intervals`."""
SENSITIVITY_SAMPLES = 200
"""Explained samples whose sensitivity is computed: one linear program each."""
GUESSED = 10_000
"""Samples among which a name that was probably meant is looked for."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `revealed explain`."""
    parser.add_argument("model", type=Path, metavar="MODEL", help="folder written by revealed fit")
    add_files(parser, problem=False)
    parser.add_argument(
        "--sample",
        type=plain_name,
        metavar="NAME",
        help="show the sensitivity range of every cost of this sample",
    )
    parser.add_argument("--top", type=whole, default=5, metavar="N", help="misses to show (5)")
    parser.add_argument(
        "--rounds",
        type=whole,
        default=50,
        metavar="N",
        help="refits that intervals come from, at least 2; 0 for none (50)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Print what the model explains and what it misses."""
    model = load_model(args.model)
    how = reading_for(model.training, args)
    read = dossier_for(model, args.contexts, args.decisions, args.id, how)
    dossier = cleaned(read, how).dossier
    costs = model.costs(dossier.contexts)
    quiet, plans = args.json, plans_at(model, dossier)
    verdict = judge(model, plans, dossier.contexts, dossier.decisions, quiet=quiet)
    learn, held = _parts(model, dossier)
    facts: dict[str, Any] = {
        "training": model.training,
        "same_tables": model.training.get("data") == fingerprint(dossier.tables),
        "few": len(learn) if len(learn) < 2 * FEWEST else None,
        "all": verdict.plain(),
        "held": verdict.of(held).plain() if held.size else None,
        **dossier.plain_assumed(),
    }
    if model.learned is not None:
        facts["limits"] = limit_facts(model, learned_limits(model), dossier)
    misses = _misses(model, dossier, costs, np.flatnonzero(verdict.solved & ~verdict.as_good))
    looked = np.flatnonzero(verdict.as_good)[:SENSITIVITY_SAMPLES]
    changes = stable_changes(dossier.plans[looked], costs[looked], dossier.decisions[looked])
    small = model.plan.problem.n_variables <= LARGEST and not model.plan.is_whole
    small = small and model.given is None
    known = len(learn) >= 2 * FEWEST  # with fewer, every limit counts as nearly always reached
    sure = _coefficients(model, dossier, learn, args) if args.rounds and small and known else None
    one = None
    if args.sample is not None:
        one = _one_sample(model, dossier, costs, verdict.as_good, args)
    explanation = Explanation(model, dossier, facts, misses, changes, sure, one, args.rounds)
    if args.json:
        tell_json(explanation.plain())
    else:
        tell_all(explanation, args.top)
    return 0


def _misses(
    model: FittedModel, dossier: Dossier, costs: np.ndarray, rows: np.ndarray
) -> list[Miss]:
    """What is missed in these rows, and what would have been cheaper."""
    plan, taken = dossier.plans[rows], dossier.decisions[rows]
    own = decide(plan.problem, costs[rows], quiet=True).decisions
    found = find_misses(plan, costs[rows], taken, own, model.given)
    return [miss._replace(sample=int(rows[miss.sample])) for miss in found]


def _parts(model: FittedModel, dossier: Dossier) -> tuple[np.ndarray, np.ndarray]:
    """Rows the model learned from and rows held out, if these are the tables it was fitted on."""
    training = model.training
    try:
        learn, held = dossier.split(float(training["held_out"]), int(training["seed"]))
    except (KeyError, TypeError, ValueError):
        return np.arange(len(dossier)), np.zeros(0, int)
    in_part = training.get("in_part") or {}
    same = training.get("samples") == len(learn) + in_part.get("decisions", 0)
    if "data" in training:  # models of the first days have only the number of samples to go by
        same = same and training["data"] == fingerprint(dossier.tables)
    return (learn, held) if same else (np.arange(len(dossier)), np.zeros(0, int))


def _coefficients(
    model: FittedModel, dossier: Dossier, rows: np.ndarray, args: argparse.Namespace
) -> CoefficientIntervals:
    from ...fit import coefficient_intervals

    sets = OptimalitySet(dossier.plans[rows].problem, dossier.decisions[rows], model.margin)
    with waiting("Refits", args.rounds, quiet=args.json) as step:
        return coefficient_intervals(
            dossier.contexts[rows],
            sets,
            kind=model.kind,
            loss=loss_of(model.training),
            ridge=float(model.training.get("ridge", 0.0)),
            refits=max(args.rounds, 2),
            step=step,
        )


def _one_sample(
    model: FittedModel,
    dossier: Dossier,
    costs: np.ndarray,
    explained: np.ndarray,
    args: argparse.Namespace,
) -> OneSample:
    name = args.sample
    b = next((b for b in range(len(dossier)) if dossier.sample(b) == name), None)
    if b is None:
        names = [dossier.sample(b) for b in (0, len(dossier) - 1)]
        near = did_you_mean(name, map(dossier.sample, range(min(len(dossier), GUESSED))))
        raise InputError(
            f"There is no sample {name!r}{near}; they are called {names[0]!r}, {names[1]!r} and so "
            "on."
        )
    if explained[b]:
        with waiting("Ranges", len(model.plan.variables), quiet=args.json) as step:
            ranges = cost_ranges(dossier.plans[[b]], costs[b], dossier.decisions[b], step)
        return OneSample(name, ranges, None)
    taken = dossier.decisions[[b]]
    sets = explaining(dossier.plans[[b]].problem, taken, model.given)
    nearest = nearest_costs(sets, costs[[b]], model.given).costs[0]
    if np.isnan(nearest).any():
        return OneSample(name, None, None)
    return OneSample(name, None, needed(model.plan, costs[b], taken[0], nearest))
