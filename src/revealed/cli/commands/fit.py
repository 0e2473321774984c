"""`revealed fit`: from a model file and two tables to a cost model in a folder."""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from ... import __version__
from ..._common.words import count
from ..plans import find_unknown, plain_given
from ..store import FittedModel, Samples, check_target, save_model
from .baselines import baselines
from .cleaning import cleaned
from .dossier import Dossier, add_files, plans_at, read_dossier
from .explanation import tell_given, tell_whole, tell_without_decision
from .given import add_given, read_given, unexplained, unexplained_sentence
from .headline import tell_baselines, tell_figures, unconvincing
from .judging import fingerprint, judge
from .large import add_large, fit_large, is_large
from .options import number, signed, whole
from .partial import InPart, gap_note, refuse_contradicted, refuse_with_gaps
from .ranges import ranges_of
from .reading import reading_of
from .robust import angles_of
from .telling import tell, tell_json
from .training import train
from .words import words_for

EVALUATIONS, WHOLE_EVALUATIONS = 500, 5_000
"""Of the loss at most; over the cuts known of whole decisions one takes little beside the solver's
questions, and there is a new minimum to go to with every round of cuts."""
NONE = np.zeros(0, int)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `revealed fit`."""
    add_files(parser, problem=True)
    add_given(parser)
    parser.add_argument(
        "--out",
        required=True,
        type=Path,
        metavar="DIR",
        help="folder for the model; a model that is there is replaced",
    )
    parser.add_argument(
        "--holdout",
        type=signed,
        default=0.2,
        metavar="SHARE",
        help="share of the samples held out to judge the model (0.2)",
    )
    parser.add_argument(
        "--margin",
        type=signed,
        help="how clearly costs must favor the decision, in units of cost (1; 0 where a cost other "
        "than 0 is given)",
    )
    parser.add_argument(
        "--model",
        choices=("auto", "linear", "quadratic"),
        default="auto",
        help="how costs depend on the context: linear, with squares and products too, or the one "
        "of these that does better in cross-validation (auto)",
    )
    parser.add_argument(
        "--ridge",
        type=number,
        help="penalty on coefficients, against overfitting (chosen by cross-validation)",
    )
    parser.add_argument(
        "--noise",
        type=number,
        help="noise on predicted costs that the loss is averaged over, for decisions that are "
        "not always optimal; 0 for the plain distance (5 times the unit of costs; a fifth of the "
        "size of the given costs where there are any other than 0)",
    )
    parser.add_argument(
        "--max-iter",
        type=whole,
        metavar="N",
        help=f"largest number of evaluations of the loss ({EVALUATIONS}; {WHOLE_EVALUATIONS} where "
        "decisions are whole)",
    )
    parser.add_argument(
        "--keep",
        type=whole,
        default=500,
        metavar="N",
        help="samples stored with the model for `revealed explore` and `revealed report`, "
        "held-out ones first (500)",
    )
    parser.add_argument(
        "--seed", type=whole, default=0, help="random seed that chooses the held-out samples (0)"
    )
    add_large(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Fit, judge, save; 1 if the fit did not converge or a projection missed its tolerance."""
    replaced = check_target(args.out)
    if is_large(args):
        return fit_large(args, replaced)
    how = reading_of(args)
    dossier = read_dossier(args)
    unknown = find_unknown(dossier.plan, args.unknown_limit, dossier.limits)
    refuse_with_gaps(dossier, unknown)
    if dossier.has_gaps.any():
        dossier = replace(dossier, notes=(*dossier.notes, gap_note(dossier)))
    dossier, half_unit, _, warning = cleaned(dossier.opened(unknown), how, vertices=not unknown)
    given = read_given(args, dossier.plan)
    if args.margin is None:
        args.margin = 0.0 if given is not None and given.has_unit else 1.0
    if args.max_iter is None:
        args.max_iter = WHOLE_EVALUATIONS if dossier.plan.is_whole else EVALUATIONS
    learn, held = dossier.split(args.holdout, args.seed)
    began = time.perf_counter()
    clear = learn[~dossier.has_gaps[learn]]
    odd = unexplained(given, dossier.plans[clear], dossier.decisions[clear]) if given else NONE
    if odd.size and len(clear) < len(learn):
        refuse_contradicted(dossier, int(clear[odd[0]]))
    trained = train(dossier, learn, args, unknown, given, soft=bool(odd.size), half_unit=half_unit)
    learned = None
    if trained.limits is not None:
        learned = trained.limits.arrays()
        dossier = dossier.with_learned(unknown, trained.limits)
    whole = dossier.keep(np.flatnonzero(~dossier.has_gaps)) if len(clear) < len(learn) else dossier
    facts = trained.facts | {
        "seconds": time.perf_counter() - began,
        "held_out": args.holdout,
        "seed": args.seed,
        "data": fingerprint(whole.tables),
        "reading": how.plain(half_unit),
        "units": dossier.context_table.units,
        "ranges": ranges_of(dossier.features, dossier.contexts[learn]),
        "made_by": f"revealed {__version__}",
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    kept = _some_samples(dossier, held, args.keep)
    model = FittedModel(
        dossier.plan,
        dossier.features,
        trained.coef,
        trained.intercept,
        args.margin,
        dossier.key,
        facts,
        kept,
        dossier.limits,
        trained.kind,
        learned,
        given,
    )
    plans = plans_at(model, dossier)
    for name, rows in (("seen", clear), ("held", held)):
        Z, taken = dossier.contexts[rows], dossier.decisions[rows]
        facts[name] = judge(model, plans[rows], Z, taken, quiet=args.json).plain()
    shown = held if held.size else clear
    facts["angles"] = angles_of(model, dossier, held, args.seed)
    facts["baselines"] = baselines(model, dossier, clear, shown, facts["noise"])
    save_model(model, args.out)
    warnings = [warning] if warning else []
    if odd.size:
        warnings.append(unexplained_sentence(dossier, clear[odd], len(clear)))
    facts["warnings"] = [*warnings, *unconvincing(facts)]
    if args.json:
        output = {"model": str(args.out), "replaced": replaced, "limits": dossier.plain_limits()}
        output["given"] = plain_given(given, dossier.plan)
        tell_json(output | dossier.plain_assumed() | facts)
    else:
        _tell(model, dossier, facts, args, replaced)
    return 1 if facts["unsolved"] or not facts["converged"] else 0


def _some_samples(dossier: Dossier, held: np.ndarray, most: int) -> Samples | None:
    """A few samples to look at later, those that were held out first."""
    first = np.zeros(len(dossier), int)
    first[held] = 1
    order = np.argsort(-first, kind="stable")
    rows = order[~dossier.has_gaps[order]][:most]
    if not rows.size:
        return None
    names = tuple(dossier.sample(int(b)) for b in rows)
    return Samples(
        names,
        dossier.contexts[rows],
        dossier.decisions[rows],
        first[rows],
        dossier.limits_of(rows),
    )


def _choice(sentence: str) -> str:
    """The choice behind its heading, which says the first word already."""
    return sentence.removeprefix("Chose ")


def _questions(facts: dict[str, Any]) -> str:
    """How often the solver was asked, where decisions are whole."""
    return f" with {facts['calls']:,} questions to the solver" if facts.get("calls") else ""


def _tell(
    model: FittedModel,
    dossier: Dossier,
    facts: dict[str, Any],
    args: argparse.Namespace,
    replaced: bool,
) -> None:
    plan = dossier.plan
    tell(
        "Read",
        f"{count(len(dossier), 'sample')}: {count(len(dossier.features.names), 'feature')} of the "
        f"context, {count(len(plan.variables), 'variable')} of {plan.name}.",
    )
    dossier.tell_limits()
    dossier.tell_assumed()
    tell_whole(plan)
    tell_given(model)
    if facts["choice"]:
        tell("Chose", _choice(facts["choice"]))
    tell(
        "Learned",
        f"from {count(facts['samples'], 'sample')}, {facts['held']['samples']:,} held out, in "
        f"{facts['seconds']:.1f} s{_questions(facts)}. {facts['certificate']}",
    )
    if facts["in_part"]:
        tell("", InPart(**facts["in_part"]).sentence())
    if not facts["converged"]:
        usual = WHOLE_EVALUATIONS if plan.is_whole else EVALUATIONS
        tell("", f"Allow more with --max-iter {max(usual, 4 * args.max_iter)}.")
    for heading, name in (("Seen", "seen"), ("Held out", "held")):
        tell_figures(heading, facts[name], words_for(plan))
    tell_baselines(facts["baselines"], words_for(plan))
    for warning in facts["warnings"]:
        tell("Warning", warning)
    empty = facts["seen"]["without_decision"] + facts["held"]["without_decision"]
    tell_without_decision(empty, plan, limits=model.given is None)
    place = f"{args.out}, in place of the model that was there" if replaced else f"{args.out}"
    tell("Written", f"{place}. Next: revealed explain {args.out} with the same tables.")
