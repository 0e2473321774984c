"""`revealed bench integer`: knapsacks and tours learned from whole decisions, beside rivals.

Every loss is trained in the same loop with the same oracle, so seconds per epoch compare. Each
finished run is kept in the JSON file and not repeated: stop and start again at will.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from revealed.cli.commands.options import positive

from ..pages import publish
from ..record import surroundings, write_json
from . import page

FIRST_SEED = 42
"""CaVE's seeds are 42 to 51."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `revealed bench integer`."""
    parser.add_argument("--problems", default="knapsack,tsp-20", help="such as %(default)s")
    parser.add_argument("--methods", default="", help="numbers of methods, such as 0,1,5 (all)")
    parser.add_argument(
        "--first", type=int, default=FIRST_SEED, help="the first seed (%(default)s)"
    )
    parser.add_argument("--seeds", type=positive, default=3, help="how many, from it on (3)")
    parser.add_argument("--train", type=positive, default=1000, help="training samples (1000)")
    parser.add_argument("--test", type=positive, default=1000, help="test samples (1000)")
    parser.add_argument("--epochs", type=positive, default=10, help="of the loop (10)")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("experiments/results/integer.json"),
        help="JSON file to write, and to go on from (%(default)s)",
    )
    parser.add_argument(
        "--labels",
        type=Path,
        default=Path("out/labels"),
        help="folder to keep labels in (%(default)s)",
    )
    parser.add_argument(
        "--page", type=Path, default=Path("docs/integer_results.md"), help="(%(default)s)"
    )


def run(args: argparse.Namespace) -> int:
    """Learn on every data set and write JSON and page."""
    from .data import build, draw
    from .learners import LEARNERS, settings_of

    names = list(LEARNERS)
    if args.methods:
        names = [names[int(k)] for k in args.methods.split(",")]
    results = json.loads(args.out.read_text("utf-8"))["results"] if args.out.is_file() else []
    size = {"train": args.train, "test": args.test, "epochs": args.epochs}
    done = {(r["problem"], r["seed"], r["method"]) for r in results if r["size"] == size}
    for problem in args.problems.split(","):
        for seed in range(args.first, args.first + args.seeds):
            left = [name for name in names if (problem, seed, name) not in done]
            data = draw(problem, seed, args.train, args.test, args.labels) if left else None
            for name in left:
                fresh = data._replace(problem=build(problem, seed))  # pyright: ignore
                found = LEARNERS[name](fresh, seed, args.epochs, settings_of(problem))
                row = {"problem": problem, "seed": seed, "method": name, "size": size}
                results.append(row | _judged(fresh, found))
                print(f"  {problem} {seed} {name}: {results[-1]['regret']:.2f}%", file=sys.stderr)
                write_json(args.out, _content(args, results))
    return publish(_content(args, results), page.make_page, args.out, args.page)


def _content(args: argparse.Namespace, results: list[dict[str, Any]]) -> dict[str, Any]:
    command = f"revealed bench integer --problems {','.join({r['problem']: 0 for r in results})}"
    content = surroundings(command, {"train": args.train, "test": args.test, "epochs": args.epochs})
    return content | {"benchmark": "integer", "results": results, "targets": page.targets(results)}


def _judged(data: Any, found: dict[str, Any]) -> dict[str, Any]:
    """What was found, with regret and the share of the same decisions."""
    costs = found.pop("costs")
    judged = found | _scores(data, costs, "")
    return judged | _scores(data, judged.pop("averaged", costs), "_averaged")


def _scores(data: Any, costs: Any, suffix: str) -> dict[str, float]:
    decided = data.problem.solve(costs, threads=1).x
    truth, best = data.test.costs, data.test.decisions
    regret = (truth * (decided - best)).sum() / np.abs((truth * best).sum())
    same = np.abs(decided - best).max(axis=1) < 0.5
    return {f"regret{suffix}": 100 * float(regret), f"same{suffix}": 100 * float(same.mean())}
