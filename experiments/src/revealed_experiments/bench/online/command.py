"""`revealed bench online`: decisions that come one after the other, and costs that drift."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from revealed.cli.commands.options import positive
from revealed.errors import InputError

from ..pages import publish
from ..record import surroundings
from ..tables import target
from . import page

PARTS = ("sphere", "paths", "drift")
NAME = "revealed bench online"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `revealed bench online`."""
    parser.add_argument(
        "--parts", default="sphere,paths,drift", help="separated by commas (%(default)s)"
    )
    parser.add_argument("--trials", type=positive, default=10, help="of sphere (10)")
    parser.add_argument("--dimension", type=positive, default=2, help="of sphere (2)")
    parser.add_argument("--rounds", type=positive, default=10_000, help="of sphere (10000)")
    parser.add_argument("--sizes", default="50,100,200,500,1000", help="of paths (%(default)s)")
    parser.add_argument("--seeds", type=positive, default=20, help="of paths (20)")
    parser.add_argument("--drift-seeds", type=positive, default=10, help="of drift (10)")
    parser.add_argument("--drift-rounds", type=positive, default=1000, help="of drift (1000)")
    parser.add_argument("--first-seed", type=int, default=8000, help="of all parts (8000)")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("experiments/results/online.json"),
        help="JSON file to write; parts that are in it and not run again stay (%(default)s)",
    )
    parser.add_argument(
        "--page", type=Path, default=Path("docs/online.md"), help="page to write (%(default)s)"
    )


def run(args: argparse.Namespace) -> int:
    """Run the parts asked for, print tables, write JSON, page and picture; 1 if a target is
    missed."""
    parts = args.parts.split(",")
    bad = [part for part in parts if part not in PARTS]
    if bad:
        raise InputError(f"`--parts` knows {', '.join(PARTS)}; got {bad[0]!r}.")
    content = surroundings(NAME, {})
    kept = json.loads(args.out.read_text("utf-8")) if args.out.exists() else {}
    content |= {"benchmark": "online", "parts": kept.get("parts", {})}
    for part in parts:
        content["parts"][part] = {"when": content["when"], **_RUN[part](args)}
    content["targets"] = _targets(content["parts"])
    return publish(content, page.make_page, args.out, args.page)


def _sphere(args: argparse.Namespace) -> dict[str, Any]:
    from .sphere import LEARNERS, play

    rows = []
    for name in LEARNERS:
        for seed in range(args.first_seed, args.first_seed + args.trials):
            regret, seconds = play(name, args.dimension, args.rounds, seed)
            rows.append(
                {
                    "learner": name,
                    "seed": seed,
                    "regret": float(regret[-1]),
                    "after": {str(k): float(regret[k - 1]) for k in (10, 100, args.rounds)},
                    "seconds": seconds,
                }
            )
        print(f"  sphere: {name}", file=sys.stderr)
    return {"dimension": args.dimension, "rounds": args.rounds, "rows": rows}


def _paths(args: argparse.Namespace) -> dict[str, Any]:
    from .streams import UNSEEN, repeated

    sizes = [positive(word) for word in args.sizes.split(",")]
    seeds = range(args.first_seed, args.first_seed + args.seeds)
    return {"unseen": UNSEEN, "rows": list(_told(repeated(sizes, seeds)))}


def _drift(args: argparse.Namespace) -> dict[str, Any]:
    from .streams import DRIFTS, follow

    seeds = range(args.first_seed, args.first_seed + args.drift_seeds)
    runs = (follow(kind, args.drift_rounds, seed) for kind in DRIFTS for seed in seeds)
    return {"rounds": args.drift_rounds, "rows": list(_told(runs))}


def _told(rows: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for row in rows:
        print(f"  {row.get('learner', row.get('kind'))}, seed {row['seed']}", file=sys.stderr)
        yield row


_RUN = {"sphere": _sphere, "paths": _paths, "drift": _drift}


def _targets(parts: dict[str, Any]) -> list[dict[str, Any]]:
    found = []
    if "sphere" in parts:
        regret = page.mean_regrets(parts["sphere"]["rows"])
        name = "regret on the sphere over that of cutting planes"
        found.append(target(name, regret["partial_fit"] / regret["cutting planes"], 1.0))
    if "paths" in parts:
        rows = parts["paths"]["rows"]
        sizes = {row["size"] for row in rows}
        size = 200 if 200 in sizes else max(sizes)
        share = page.mean_of(rows, "one by one", size) / page.mean_of(rows, "fit", size)
        name = f"decisions repeated after {size} updates, as a share of those of a fit"
        found.append(target(name, share, 0.95, at_least=True))
    if "drift" in parts:
        late = page.late_excess(parts["drift"]["rows"], "abrupt")
        name = "excess cost at the end of an abrupt change, over that without forgetting"
        found.append(target(name, late[page.QUICK] / late["nothing forgotten"], 0.75))
    return found
