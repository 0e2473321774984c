"""`revealed explain`: whether to believe a model, on tables whose decisions are known."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..explain import Coefficients, Miss, bootstrap, cost_ranges, find_misses, room_inside
from ..store import FittedModel, load_model
from .dossier import Dossier, add_files, dossier_for
from .holdout import fingerprint, split_rows
from .judging import judge
from .options import whole
from .telling import count, percent, table, tell, tell_json

ROOM_SAMPLES = 200
"""Samples whose room is computed: one linear program each."""
CHANGES = 2
"""Entries of a cheaper decision that are shown, so that a line holds them."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `revealed explain`."""
    parser.add_argument("model", type=Path, metavar="MODEL", help="folder written by revealed fit")
    add_files(parser, problem=False)
    parser.add_argument(
        "--sample", metavar="NAME", help="show the room of every cost of this sample"
    )
    parser.add_argument("--top", type=whole, default=5, metavar="N", help="misses to show (5)")
    parser.add_argument(
        "--rounds", type=whole, default=50, metavar="N", help="of the bootstrap; 0 for none (50)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Print what the model explains and what it misses."""
    model = load_model(args.model)
    dossier = dossier_for(model.plan, model.features, args.contexts, args.decisions, args.id)
    costs = model.costs(dossier.contexts)
    verdict = judge(model, dossier.contexts, dossier.decisions)
    own = np.asarray(model.plan.problem.solve(costs).x)
    learn, held = _parts(model, dossier)
    facts: dict[str, Any] = {
        "training": model.training,
        "all": verdict.plain(),
        "held": judge(model, dossier.contexts[held], dossier.decisions[held]).plain()
        if held.size
        else None,
    }
    misses = find_misses(model.plan, costs, dossier.decisions, own)
    explained = np.flatnonzero(verdict.as_good)
    rooms = room_inside(
        model.plan, costs[explained[:ROOM_SAMPLES]], dossier.decisions[explained[:ROOM_SAMPLES]]
    )
    firm = _coefficients(model, dossier, learn, args) if args.rounds else None
    one = _one_sample(model, dossier, costs, args.sample) if args.sample else None
    if args.json:
        tell_json(_plain(facts, misses, rooms, firm, one, model, dossier))
    else:
        _tell(facts, misses, rooms, firm, one, model, dossier, args)
    return 0


def _parts(model: FittedModel, dossier: Dossier) -> tuple[np.ndarray, np.ndarray]:
    """Rows the model learnt from and rows held out, where these are the tables it was fitted on."""
    told = model.training
    try:
        learn, held = split_rows(len(dossier), float(told["held_out"]), int(told["seed"]))
    except (KeyError, TypeError, ValueError):
        return np.arange(len(dossier)), np.zeros(0, int)
    same = told.get("samples") == len(learn)
    if "data" in told:  # models of the first days have only the number of samples to go by
        same = same and told["data"] == fingerprint(dossier.contexts, dossier.decisions)
    return (learn, held) if same else (np.arange(len(dossier)), np.zeros(0, int))


def _coefficients(
    model: FittedModel, dossier: Dossier, rows: np.ndarray, args: argparse.Namespace
) -> Coefficients:
    from ..fit.progress import progress

    show = not args.json and sys.stderr.isatty()
    with progress("Bootstrap", args.rounds, verbose=show) as step:
        return bootstrap(
            model.plan,
            dossier.contexts[rows],
            dossier.decisions[rows],
            np.column_stack([model.coef, model.intercept]),
            margin=model.margin,
            ridge=float(model.training.get("ridge", 0.0)),
            rounds=args.rounds,
            step=lambda k: step({"iteration": k, "h": np.nan}),
        )


def _one_sample(model: FittedModel, dossier: Dossier, costs: np.ndarray, name: str) -> Any:
    names = [dossier.sample(b) for b in range(len(dossier))]
    if name not in names:
        raise InputError(
            f"There is no sample {name!r}; they are called {names[0]!r}, {names[-1]!r} and so on."
        )
    b = names.index(name)
    return cost_ranges(model.plan, costs[b], dossier.decisions[b])


# --- words ---------------------------------------------------------------------------------------


def _tell(
    facts: dict[str, Any],
    misses: list[Miss],
    rooms: np.ndarray,
    firm: Coefficients | None,
    one: Any,
    model: FittedModel,
    dossier: Dossier,
    args: argparse.Namespace,
) -> None:
    certificate = model.training.get("certificate")
    if isinstance(certificate, str):
        tell("Fit", certificate)
    if facts["held"] is None:
        tell(
            "Note",
            "Which of these rows are new to the model is not known: it was fitted on other tables, "
            "or with nothing held out.",
        )
    for heading, figures in (("Held out", facts["held"]), ("All rows", facts["all"])):
        if figures:
            low, high = figures["interval"]
            tell(
                heading,
                f"{figures['repeated']:,} of {count(figures['samples'], 'decision')} repeated "
                f"exactly ({percent(figures['repeated_share'])}, 95% interval {percent(low)} to "
                f"{percent(high)}); {figures['explained']:,} are optimal under the learned costs.",
            )
    _tell_misses(misses, dossier, args.top)
    _tell_room(rooms, model)
    if firm is not None:
        _tell_coefficients(firm, model)
    if one is not None:
        print(f"\nRoom of every cost on {args.sample}, the others unchanged:")
        rows = [
            [r.variable, f"{r.taken:g}", _cost(r.cost), _cost(r.low), _cost(r.high)] for r in one
        ]
        print(table(["variable", "taken", "cost", "may fall to", "may rise to"], rows))


def _tell_misses(misses: list[Miss], dossier: Dossier, top: int) -> None:
    if not misses:
        tell("Misses", "none: every decision is the cheapest under the learned costs.")
        return
    tell(
        "Misses",
        f"{count(len(misses), 'decision is', 'decisions are')} not the cheapest under the learned "
        f"costs; the {min(top, len(misses))} farthest from it:",
    )
    rows = []
    for miss in misses[:top]:
        shown, hidden = miss.changes[:CHANGES], len(miss.changes[CHANGES:])
        moved = ", ".join(f"{name} {a:g} → {b:g}" for name, a, b in shown)
        rest = f" and {hidden} more" if hidden else ""
        name = dossier.sample(miss.sample)
        rows.append([name, f"{miss.distance:.3g}", f"{miss.saving:.3g}", moved + rest])
    print(table(["sample", "distance", "saving", "cheaper, as the learned costs see it"], rows, 12))


def _tell_room(rooms: np.ndarray, model: FittedModel) -> None:
    finite = rooms[np.isfinite(rooms)]
    if not finite.size:
        return
    low, middle, high = np.percentile(finite, [10, 50, 90])
    tell(
        "Room",
        f"Explained decisions stay the cheapest while every cost changes by less than about "
        f"{middle:.2g} (half of them; one in ten bears less than {max(low, 0):.2g}, one in ten "
        f"more than {high:.2g}). The margin asked for was {model.margin:g}. With --sample NAME, "
        "cost by cost.",
    )


def _tell_coefficients(firm: Coefficients, model: FittedModel) -> None:
    names = [*model.features.names, "(intercept)"]
    firsts = [f"{f.name}={f.levels[0]}" for f in model.features.features if f.levels]
    instead = f", or of a word in place of {', '.join(firsts)}" if firsts else ""
    clear = firm.clear
    tell(
        "Firmness",
        f"{int(clear.sum()):,} of {clear.size:,} coefficients have a 95% interval without 0 "
        f"({firm.rounds} bootstrap rounds). What makes which variable dearer or cheaper, against "
        f"its alternatives: the effect of one standard deviation of a number{instead}:",
    )
    rows = []
    for k, name in enumerate(names[:-1]):
        order = np.argsort(-np.abs(firm.value[:, k]) * clear[:, k], kind="stable")
        for j in [j for j in order[:2] if clear[j, k]]:
            rows.append(
                [
                    name,
                    model.plan.variables[j],
                    f"{model.plan.sign * firm.value[j, k]:+.3f}",
                    _interval(model.plan.sign, firm.low[j, k], firm.high[j, k]),
                ]
            )
    print(table(["feature", "variable", "effect", "95% interval"], rows, 12))


def _interval(sign: float, low: float, high: float) -> str:
    a, b = sorted((sign * low, sign * high))
    return f"{a:+.3f} to {b:+.3f}"


def _cost(value: float) -> str:
    return "no limit" if np.isinf(value) else f"{value:.4g}"


def _plain(
    facts: dict[str, Any],
    misses: list[Miss],
    rooms: np.ndarray,
    firm: Coefficients | None,
    one: Any,
    model: FittedModel,
    dossier: Dossier,
) -> dict[str, Any]:
    told = facts | {
        "misses": [miss._asdict() | {"sample": dossier.sample(miss.sample)} for miss in misses],
        "room": rooms,
    }
    if firm is not None:
        told["coefficients"] = {
            "variables": list(model.plan.variables),
            "features": [*model.features.names, "(intercept)"],
            "value": firm.value,
            "low": firm.low,
            "high": firm.high,
            "rounds": firm.rounds,
        }
    if one is not None:
        told["ranges"] = [room._asdict() for room in one]
    return told
