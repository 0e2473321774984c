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
from ..plans import Plan
from ..store import FittedModel, load_model
from ..tables.names import did_you_mean, plain_name
from .cleaning import cleaned
from .deciding import decide
from .dossier import Dossier, add_files, dossier_for, learned_limits, plans_at
from .explain_parts import findings_of, is_same, joined
from .explanation import Explanation, OneSample, tell_all
from .judging import fingerprint, judge
from .large import many_files
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
    large = many_files(args.contexts) or many_files(args.decisions)
    explanation = _of_parts(args, model) if large else _of_table(args, model)
    if args.json:
        tell_json(explanation.plain())
    else:
        tell_all(explanation, args.top)
    return 0


def _of_table(args: argparse.Namespace, model: FittedModel) -> Explanation:
    how = reading_for(model.training, args)
    read = dossier_for(model, args.contexts, args.decisions, args.id, how)
    dossier = cleaned(read, how).dossier
    costs = model.costs(dossier.contexts)
    verdict = judge(
        model, plans_at(model, dossier), dossier.contexts, dossier.decisions, quiet=args.json
    )
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
    sure = None
    if _has_intervals(model, len(learn), args):
        rows = dossier.plans[learn], dossier.contexts[learn], dossier.decisions[learn]
        sure = _coefficients(model, *rows, args)
    one = None
    if args.sample is not None:
        b = _asked(dossier, args.sample)
        rows = dossier.plans[[b]], costs[b], dossier.decisions[b]
        one = _one_sample(model, *rows, bool(verdict.as_good[b]), args)
    return Explanation(model, dossier, facts, misses, len(misses), changes, sure, one, args.rounds)


def _of_parts(args: argparse.Namespace, model: FittedModel) -> Explanation:
    """The same of many files, which are read once."""
    found = findings_of(args, model, SENSITIVITY_SAMPLES)
    many = not found.learned
    facts: dict[str, Any] = {
        "training": model.training,
        "same_tables": is_same(model, found.parts),
        "few": found.learn if found.learn < 2 * FEWEST else None,
        "many": found.learn if many else None,
        "all": found.all.plain(),
        "held": found.held.plain() if found.held.samples else None,
        **found.plain_assumed(),
    }
    changes, sure, one = np.zeros(0), None, None
    if found.looked:
        plan, Z, X = joined(model, found.looked)
        changes = stable_changes(plan, model.costs(Z), X)
    if not many and _has_intervals(model, found.learn, args):
        sure = _coefficients(model, *joined(model, found.learned), args)
    if args.sample is not None and not found.asked:
        raise InputError(f"There is no sample {args.sample!r} in these files.")
    if found.asked:
        plan, Z, X = joined(model, found.asked)
        one = _one_sample(model, plan, model.costs(Z)[0], X[0], found.explained, args)
    misses, missed = found.misses, found.missed
    return Explanation(model, found, facts, misses, missed, changes, sure, one, args.rounds)


def _has_intervals(model: FittedModel, learned: int, args: argparse.Namespace) -> bool:
    """Whether intervals are asked for and can be had from so many decisions: with fewer, every
    limit counts as nearly always reached."""
    small = model.plan.problem.n_variables <= LARGEST and not model.plan.is_whole
    return bool(args.rounds) and small and model.given is None and learned >= 2 * FEWEST


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
    model: FittedModel, plan: Plan, Z: np.ndarray, X: np.ndarray, args: argparse.Namespace
) -> CoefficientIntervals:
    from ...fit import coefficient_intervals

    with waiting("Refits", args.rounds, quiet=args.json) as step:
        return coefficient_intervals(
            Z,
            OptimalitySet(plan.problem, X, model.margin),
            kind=model.kind,
            loss=loss_of(model.training),
            ridge=float(model.training.get("ridge", 0.0)),
            refits=max(args.rounds, 2),
            step=step,
        )


def _asked(dossier: Dossier, name: str) -> int:
    """The number of the sample of this name."""
    b = next((b for b in range(len(dossier)) if dossier.sample(b) == name), None)
    if b is None:
        names = [dossier.sample(b) for b in (0, len(dossier) - 1)]
        near = did_you_mean(name, map(dossier.sample, range(min(len(dossier), GUESSED))))
        raise InputError(
            f"There is no sample {name!r}{near}; they are called {names[0]!r}, {names[1]!r} and so "
            "on."
        )
    return b


def _one_sample(
    model: FittedModel,
    plan: Plan,
    cost: np.ndarray,
    taken: np.ndarray,
    explained: bool,
    args: argparse.Namespace,
) -> OneSample:
    """What is known of one sample, with its `plan`, cost (n,) and decision (n,)."""
    name = args.sample
    if explained:
        with waiting("Ranges", len(model.plan.variables), quiet=args.json) as step:
            return OneSample(name, cost_ranges(plan, cost, taken, step), None)
    sets = explaining(plan.problem, taken[None], model.given)
    nearest = nearest_costs(sets, cost[None], model.given).costs[0]
    if np.isnan(nearest).any():
        return OneSample(name, None, None)
    return OneSample(name, None, needed(model.plan, cost, taken, nearest))
