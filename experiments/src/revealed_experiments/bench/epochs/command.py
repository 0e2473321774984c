"""`revealed bench epochs`: how long an epoch of training takes, for every method on every problem.

Ours, every rival in the library and plain regression train the same linear model with Adam; with
`--pyepo` PyEPO trains the same in an environment of its own, turn by turn with ours.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from revealed.cli.commands.options import positive

from ..pages import Page, publish, verdicts
from ..record import surroundings
from ..tables import Table, target

FASTER_THAN_PYEPO = 4.0
OF_REGRESSION = 2.0
MAIN = "path 5x5"
REGRESSION = "two-stage"
PYEPO_METHODS = {"spo+": "SPO+", "pfyl": "PFYL", "cave": "CaVE", "cave+": "CaVE+"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `revealed bench epochs`."""
    parser.add_argument(
        "--pyepo",
        metavar="PYTHON",
        help="Python of PyEPO's environment (experiments/pyepo/setup makes .venv-pyepo/bin/python)",
    )
    parser.add_argument("--rounds", type=positive, default=5, help="turns of every method (5)")
    parser.add_argument("--epochs", type=positive, default=5, help="at most, in a turn (5)")
    parser.add_argument("--only", metavar="TEXT", help="only problems whose name holds this")
    parser.add_argument("--quick", action="store_true", help="smoke test: tiny sizes, no claims")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("experiments/results/epochs.json"),
        help="JSON file to write, with a page of the same name beside it (%(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    """Measure, print the tables, write the JSON and the page; 1 if a target was missed."""
    from .partner import Partner

    rounds, epochs = (1, 2) if args.quick else (args.rounds, args.epochs)
    content = surroundings(_command(args), {"rounds": rounds, "epochs": epochs})
    content |= {"benchmark": "epochs", "notes": []}
    with ExitStack() as stack:
        partner = stack.enter_context(Partner(args.pyepo)) if args.pyepo else None
        if partner is None:
            content["notes"].append("PyEPO was not timed: no --pyepo.")
        else:
            content["pyepo"] = partner.versions
        content["rows"] = _measure(args, partner, rounds, epochs)
    # A smoke test is too short to support a claim about speed.
    content["targets"] = [] if args.quick else find_targets(content["rows"])
    return publish(content, make_page, args.out)


def make_page(content: dict[str, Any]) -> Page:
    """What is shown of a run that is kept."""
    findings = verdicts(content["targets"], ".2g")
    return Page("Time for an epoch", findings, make_tables(content["rows"]), _method(content))


def _measure(args: argparse.Namespace, partner: Any, rounds: int, epochs: int) -> list[Any]:
    from revealed.errors import InputError

    from .tasks import TASKS, methods
    from .turns import enter_method, enter_plain_loop, take_turns

    rows = []
    for build, samples, few in TASKS:
        task = build(few if args.quick else samples)
        if args.only and args.only not in task.name:
            continue
        _say(f"{task.name}, {len(task)} samples")
        entrants = [enter_method(task, method) for method in methods()]
        entrants.append(enter_plain_loop(task))
        if partner is not None and (task.name == MAIN or not args.quick):
            entrants += _enter_pyepo(partner, task)
        take_turns(entrants, task.batch_size, rounds, epochs)
        facts = {"problem": task.name, "samples": len(task), "batch_size": task.batch_size}
        facts["costs"] = task.problem.n_variables
        rows.append(facts | {"methods": [entrant.report() for entrant in entrants]})
    if not rows:
        raise InputError(f"--only {args.only!r} matches none of the problems.")
    return rows


def _enter_pyepo(partner: Any, task: Any) -> list[Any]:
    """Every method of PyEPO that is timed, on one process and on two where it solves anything."""
    from .partner import pyepo_order
    from .turns import enter_partner

    order = pyepo_order(task.problem)
    place = partner.send(
        task.name.replace(" ", "_"),
        kind=task.name,
        contexts=task.contexts,
        costs=task.true_costs[:, order],
        coef=task.coef[order],
        intercept=task.intercept[order],
        **_constraints(task.problem),
    )
    found = [enter_partner(partner, task, place, "two-stage", "two-stage", 0)]
    for processes in (1, 2):
        for method, label in PYEPO_METHODS.items():
            found.append(enter_partner(partner, task, place, method, label, processes))
    return found


def _constraints(problem: Any) -> dict[str, Any]:
    """The constraints as plain arrays, from which the other side builds a model of its own."""
    return {
        "A_eq": problem.A_eq.toarray(),
        "b_eq": problem.b_eq,
        "A_ub": problem.A_ub.toarray(),
        "b_ub": problem.b_ub,
        "lb": problem.lb,
        "ub": problem.ub,
    }


# --- what the figures say ------------------------------------------------------------------------


def find_targets(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Ours against the fastest rival everywhere, and on the main problem against the yardsticks.

    Of the three forms of ours the slowest counts; the smoothed one, which is as slow as it has
    draws, is not among them.
    """
    found = []
    for row in rows:
        timed = [m for m in row["methods"] if "median_s" in m]
        ours = max(m["median_s"] for m in timed if m["kind"] == "ours")
        rivals = [m for m in timed if m["kind"] in ("rival", "PyEPO")]
        if rivals:
            best = min(rivals, key=lambda m: m["median_s"])
            words = f"{row['problem']}: ours over the fastest rival ({best['label']})"
            found.append(target(words, ours / best["median_s"], 1.0))
        if row["problem"] == MAIN:
            found += _main_targets(timed, ours)
    return found


def _main_targets(timed: list[dict[str, Any]], ours: float) -> list[dict[str, Any]]:
    found = []
    for method in timed:
        ratio = ours / method["median_s"]
        if method["label"] == REGRESSION:
            found.append(target(f"{MAIN}: ours over plain regression", ratio, OF_REGRESSION))
        if method["kind"] == "PyEPO":
            words = f"{MAIN}: times faster than {method['label']}"
            found.append(target(words, 1 / ratio, FASTER_THAN_PYEPO, at_least=True))
    return found


def make_tables(rows: list[dict[str, Any]]) -> list[Table]:
    """One table for each problem, fastest first."""
    return [_table(row) for row in rows]


def _table(row: dict[str, Any]) -> Table:
    timed = sorted((m for m in row["methods"] if "median_s" in m), key=lambda m: m["median_s"])
    ours = next(m["median_s"] for m in timed if m["kind"] == "ours")
    lines, starred = [], False
    for m in timed:
        part = m["samples_timed"] < row["samples"]
        starred |= part
        lines.append(
            [
                m["label"],
                "yes" if m["needs_true_costs"] else "no",
                f"{1e3 * m['median_s']:.1f}" + (" *" if part else ""),
                f"{1e3 * m['first_s']:.1f}",
                f"{1e6 * m['median_s'] / row['samples']:.1f}",
                f"{m['median_s'] / ours:.2f}",
            ]
        )
    notes = ["* timed on part of the data and scaled."] if starred else []
    notes += [f"{m['label']} failed: {m['failure']}" for m in row["methods"] if m["failure"]]
    title = f"{row['problem']}: {row['costs']} costs, {row['samples']} samples"
    headings = ["method", "needs true costs", "ms an epoch", "the first", "us a sample", "of ours"]
    return Table(title, headings, lines, 2, " ".join(notes))


def _method(content: dict[str, Any]) -> str:
    settings, batch = content["settings"], content["rows"][0]["batch_size"]
    return f"""
A linear model trained with Adam on batches of {batch}: the median time of an epoch, and that of
the first, when nothing is warm. All methods start from the same model and take turns,
{settings["rounds"]} rounds of up to {settings["epochs"]} epochs each, in one process. Rivals run on
the library's own batched oracles, which is why they are far faster here than elsewhere; sampling
losses draw once for each sample (our own smoothed one as often as it does by default, and the
targets leave it out).

"two-stage" is regression on true costs in the same training loop as all the others, "plain torch
loop" the same without it, as one would write it by hand. "of ours" is the time over that of the
fastest form of ours.

{_pyepo_words(content)}
"""


def _pyepo_words(content: dict[str, Any]) -> str:
    if "pyepo" not in content:
        return "PyEPO was not timed in this run."
    versions = ", ".join(f"{name} {version}" for name, version in content["pyepo"].items())
    return (
        "PyEPO runs in an environment and a process of its own, turn by turn with ours, on the "
        f"same data, through its own data sets, loaders and losses ({versions})."
    )


def _command(args: argparse.Namespace) -> str:
    """The command as typed, without the folders of this machine."""
    words = ["revealed bench epochs"]
    if args.pyepo:
        words.append("--pyepo .venv-pyepo/bin/python")
    words.append(f"--rounds {args.rounds} --epochs {args.epochs}")
    words += [f"--only {args.only!r}"] if args.only else []
    return " ".join([*words, "--quick"] if args.quick else words)


def _say(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)
