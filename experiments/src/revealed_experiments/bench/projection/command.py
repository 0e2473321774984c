"""`revealed bench projection`: our projection and the solvers others use, on the same work.

Every row of the table is one case: a family of problems and a regime of predictions. Everyone
gets the same batch, in one run, at equal accuracy as far as they can reach it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from revealed.cli.commands.options import positive, whole

from ..record import surroundings, write_json

Row = dict[str, Any]
QUICK_RIVALS = ("PIQP", "DAQP", "CVXPY + OSQP")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `revealed bench projection`."""
    parser.add_argument(
        "--netlib", type=Path, metavar="DIR", help="folder of NETLIB .mps.gz files; adds three"
    )
    parser.add_argument("--batch", type=positive, default=100, help="instances in a batch (100)")
    parser.add_argument("--rounds", type=positive, default=5, help="times each is timed (5)")
    parser.add_argument("--seed", type=whole, default=0)
    parser.add_argument("--only", metavar="TEXT", help="only problems whose name contains this")
    parser.add_argument(
        "--quick", action="store_true", help="smoke test: two small problems, few rivals, no claims"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("experiments/results/projection.json"),
        help="JSON file to write, with a page of Markdown beside it (%(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    """Time everything, print the tables, write the JSON; 1 if a target was missed."""
    from .page import page
    from .scaling import growth_with_batch, growth_with_side
    from .tables import print_tables, targets

    batch, rounds = (min(args.batch, 10), 2) if args.quick else (args.batch, args.rounds)
    content = surroundings(_command(args), {"batch": batch, "rounds": rounds, "seed": args.seed})
    rivals, notes = _rivals(args.quick)
    if args.netlib is None and not args.quick:
        notes.append("The three NETLIB problems were left out: no folder was given with --netlib.")
    rows = _time_all(args, batch, rounds, rivals, notes)
    content |= {"benchmark": "projection", "rows": rows, "notes": notes}
    if not args.quick and not args.only:
        _say("scaling with the grid's side and with the batch")
        content["time_by_side"] = growth_with_side(batch, rounds)
        content["memory_by_batch"] = growth_with_batch()
    # A smoke test is too short to support a claim about speed.
    content["targets"] = [] if args.quick else targets(content)
    kept = write_json(args.out, content)
    args.out.with_suffix(".md").write_text(page(kept), encoding="utf-8")
    print_tables(content, args.out)
    return 0 if all(target["holds"] for target in content["targets"]) else 1


def _time_all(
    args: argparse.Namespace,
    batch: int,
    rounds: int,
    rivals: dict[str, Callable],
    notes: list[str],
) -> list[Row]:
    from .cases import cases_of, standard_families

    budget_s = 0.05 if args.quick else 0.5
    rows: list[Row] = []
    for family in standard_families(args.netlib, quick=args.quick, only=args.only):
        for case in cases_of(family, batch, args.seed):
            _say(f"{case.name}, {case.regime}")
            rows.append(_time_case(case, rivals, rounds, budget_s, notes))
    return rows


def _time_case(
    case, rivals: dict[str, Callable], rounds: int, budget_s: float, notes: list[str]
) -> Row:
    from .timing import best_known, enter_ours, enter_rival, take_turns

    best = best_known(case)
    ours = [enter_ours(case, threads) for threads in (1, None)]
    entrants = {}
    for name, candidates in rivals.items():
        entrant = enter_rival(candidates(case), case, best, budget_s)
        if entrant is None:
            notes.append(f"{name} was left out of {case.name}: {case.n} columns are too many.")
        else:
            entrants[name] = entrant
    # Ours stands between the rivals, so that it meets the same weather as each of them.
    order = [entrant for rival in entrants.values() for entrant in (*ours, rival)]
    take_turns(order or ours, case, best, rounds)
    return {
        "case": case.name,
        "regime": case.regime,
        "columns": case.n,
        "rows": case.m_eq + case.m_ub,
        "batch": len(case),
        "margin": case.margin,
        "ours": {str(entrant.settings["threads"]): entrant.report() for entrant in ours},
        "rivals": {name: entrant.report() for name, entrant in entrants.items()},
    }


def _rivals(quick: bool) -> tuple[dict[str, Callable], list[str]]:
    """The rivals that are installed, and a sentence for each that is not."""
    from .paper_route import PAPER
    from .rivals import DIRECT, missing

    found: dict[str, Callable] = {}
    notes = []
    for name, (packages, candidates) in {**PAPER, **DIRECT}.items():
        absent = [package for package in packages if missing(package)]
        if absent:
            notes.append(f"{name} was left out: {' and '.join(absent)} not installed.")
        elif not quick or name in QUICK_RIVALS:
            found[name] = candidates
    return found, notes


def _command(args: argparse.Namespace) -> str:
    """The command as typed, without the folders of this machine."""
    words = ["revealed bench projection"]
    if args.netlib is not None:
        words.append(f"--netlib {args.netlib.name}")
    for name in ("batch", "rounds", "seed"):
        words.append(f"--{name} {getattr(args, name)}")
    if args.only:
        words.append(f"--only {args.only!r}")
    if args.quick:
        words.append("--quick")
    return " ".join(words)


def _say(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)
