"""`revealed bench limits`: unknown limits, learned together with costs."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from revealed.cli.commands.options import positive
from revealed.errors import InputError

from ..pages import publish
from ..record import surroundings
from ..tables import target
from .page import ENOUGH, make_page, recovered

PARTS = ("exactness", "recovery", "coverage", "hidden", "programs", "flows")
NAME = "revealed bench limits"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `revealed bench limits`."""
    parser.add_argument(
        "--parts", default="exactness,recovery,coverage", help="separated by commas (%(default)s)"
    )
    parser.add_argument("--data", type=Path, help="folder of shanghai_routes, for the part hidden")
    parser.add_argument(
        "--instances", type=positive, default=100, help="of programs and flows (100)"
    )
    parser.add_argument("--variables", default="2,10", help="of programs (%(default)s)")
    parser.add_argument("--rival", type=positive, default=5, help="of these for the rival (5)")
    parser.add_argument("--trips", type=positive, default=600, help="of hidden (600)")
    parser.add_argument("--tested", type=positive, default=2000, help="of hidden (2000)")
    parser.add_argument("--seeds", type=positive, default=3, help="of recoveries (3)")
    parser.add_argument("--first-seed", type=int, default=0, help="of all parts (0)")
    parser.add_argument("--sizes", default="200,1000", help="numbers of decisions (%(default)s)")
    parser.add_argument(
        "--tasks", default="transport,knapsack,production", help="of recovery (%(default)s)"
    )
    parser.add_argument("--problems", type=positive, default=300, help="of exactness (300)")
    parser.add_argument("--runs", type=positive, default=200, help="of coverage (200)")
    parser.add_argument(
        "--learned", type=positive, default=60, help="of these with costs learned too (60)"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("experiments/results/limits.json"),
        help="JSON file to write; parts that are in it and not run again stay (%(default)s)",
    )
    parser.add_argument(
        "--page",
        type=Path,
        default=Path("docs/unknown_limits.md"),
        help="page to write (%(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    """Run the parts asked for, print tables, write JSON and page; 1 if a target is missed."""
    parts = args.parts.split(",")
    bad = [part for part in parts if part not in PARTS]
    if bad:
        raise InputError(f"`--parts` knows {', '.join(PARTS)}; got {bad[0]!r}.")
    content = surroundings(NAME, {})
    kept = json.loads(args.out.read_text("utf-8")) if args.out.exists() else {}
    content |= {"benchmark": "limits", "parts": kept.get("parts", {})}
    for part in parts:
        found = {"when": content["when"], "first_seed": args.first_seed, **_RUN[part](args)}
        content["parts"][part] = _joined(content["parts"].get(part, {}), found)
    content["targets"] = _targets(content["parts"])
    return publish(content, make_page, args.out, args.page)


def _joined(before: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """A part with the rows that were there before and were not run again."""
    if "rows" not in found:
        return found
    new = {_key(row) for row in found["rows"]}
    rows = [row for row in before.get("rows", []) if _key(row) not in new] + found["rows"]
    return found | {"rows": sorted(rows, key=_key)}


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    names = (
        "variables",
        "facets",
        "equalities",
        "problem",
        "unknown",
        "size",
        "kind",
        "seed",
        "hidden",
        "costs",
    )
    return tuple(str(row.get(name, "")).rjust(8) for name in names)


_KEYS = (
    *("variables", "facets", "equalities"),
    *("problem", "unknown", "size", "kind", "seed"),
    *("hidden", "costs"),
)


def _exactness(args: argparse.Namespace) -> dict[str, Any]:
    from .exactness import compare

    return compare(args.problems, args.first_seed)


def _recovery(args: argparse.Namespace) -> dict[str, Any]:
    from .recovery import UNSEEN, recoveries

    seeds = range(args.first_seed, args.first_seed + args.seeds)
    rows = []
    for row in recoveries(args.tasks.split(","), _whole(args.sizes), seeds):
        rows.append(row)
        what = [str(row[key]) for key in ("problem", "unknown", "kind", "size", "seed")]
        print(f"  {' '.join(what)}: limits off by {row['limit_error']:.2g}", file=sys.stderr)
    return {"unseen": UNSEEN, "rows": rows}


def _coverage(args: argparse.Namespace) -> dict[str, Any]:
    from .coverage import LEVEL, NOISE, SIZE, coverages

    rows = list(coverages(args.tasks.split(","), args.runs, args.learned, args.first_seed))
    return {"level": LEVEL, "noise": NOISE, "size": SIZE, "rows": rows}


def _hidden(args: argparse.Namespace) -> dict[str, Any]:
    from .hidden import hidden_links

    if args.data is None:
        raise InputError("The part hidden needs `--data`, the folder of shanghai_routes.")
    return {"rows": list(hidden_links(args.data, args.trips, args.tested, args.first_seed))}


def _programs(args: argparse.Namespace) -> dict[str, Any]:
    from .programs import programs

    sizes, few = _whole(args.variables), args.rival
    return {"rows": list(programs(sizes, args.instances, few, args.first_seed))}


def _flows(args: argparse.Namespace) -> dict[str, Any]:
    from .flows import flows

    return flows(args.instances, args.rival, args.first_seed)


def _whole(text: str) -> list[int]:
    return [positive(word) for word in text.split(",")]


_RUN = {
    "exactness": _exactness,
    "recovery": _recovery,
    "coverage": _coverage,
    "hidden": _hidden,
    "programs": _programs,
    "flows": _flows,
}


def _targets(parts: dict[str, Any]) -> list[dict[str, Any]]:
    found = []
    if "exactness" in parts:
        worst = max(parts["exactness"]["worst"].values())
        found.append(target("difference from all guesses tried by the reference", worst, 1e-6))
    if "recovery" in parts:
        for name, share in recovered(parts["recovery"]["rows"]).items():
            found.append(
                target(
                    f"least accuracy on exact data, as a share of knowing the limits: {name}",
                    share,
                    ENOUGH,
                    at_least=True,
                )
            )
    if "coverage" in parts:
        held = [row["held"]["both"] for row in parts["coverage"]["rows"]]
        found.append(target("least coverage of intervals at 95%", min(held), 0.92, at_least=True))
        found.append(target("largest coverage of intervals at 95%", max(held), 0.98))
    return found
