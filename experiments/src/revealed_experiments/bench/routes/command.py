"""`revealed bench routes`: what drivers' routes tell about the costs of roads.

Costs of moves between road links are learned from the routes of a training table, each with its own
origin and destination, and judged on the routes of another: beside the shortest by length, a
recursive logit and a path-size logit with the same features. The loss is chosen on a part of the
training table; nothing is chosen on the test table.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from revealed.cli.commands.options import positive, whole

from ..pages import publish
from ..record import surroundings
from ..tables import target
from .ours import Setting

OURS, LENGTH = "ours", "shortest by length"
RECURSIVE, SAMPLED = "recursive logit", "recursive logit, sampled"
PATH_SIZE = "path-size logit"
NAMED = ", named features only"
RIVALS = (LENGTH, RECURSIVE, PATH_SIZE)
LIMIT_S = 300
CORES = 2

SETTINGS = (
    Setting(2, 0.08),
    Setting("huber", 0.08, 0.3),
    Setting(1, 0.08),
    Setting(1, 0.2),
    Setting(2, 0.0, noise=0.3),
    Setting(2, 0.0, noise=0.5),
    Setting(2, 0.0, noise=0.8),
    *(Setting("bounded", margin, delta) for margin in (0.04, 0.08) for delta in (0.12, 0.2)),
)
"""Candidates; the best on validation routes is fitted to the whole training table."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `revealed bench routes`."""
    parser.add_argument(
        "--data", type=Path, required=True, metavar="DIR", help="folder with edge.txt and the rest"
    )
    parser.add_argument(
        "--train", default="train_CV0_size10000.csv", metavar="FILE", help="(%(default)s)"
    )
    parser.add_argument("--test", default="test_CV0.csv", metavar="FILE", help="(%(default)s)")
    parser.add_argument(
        "--tuning", type=positive, default=1500, help="routes on which candidates are fitted (1500)"
    )
    parser.add_argument(
        "--draws", type=positive, default=20, help="of the bootstrap, at least 2 (20)"
    )
    parser.add_argument("--seed", type=whole, default=0, help="of the validation part (0)")
    parser.add_argument("--threads", type=positive, help="for the projections (all cores)")
    parser.add_argument(
        "--quick", action="store_true", help="smoke test: few routes and steps, no claims"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("experiments/results/routes.json"),
        help="JSON file to write (%(default)s)",
    )
    parser.add_argument(
        "--page", type=Path, default=Path("docs/routes.md"), help="page to write (%(default)s)"
    )
    parser.add_argument(
        "--map",
        type=Path,
        default=Path("docs/routes.png"),
        help="map of the learned costs to draw (%(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    """Choose, fit, compare, print the tables, write JSON, page and map; 1 if a target is missed."""
    from revealed.datasets.routes import load_road_network, load_routes

    from . import runs
    from .map import draw_map
    from .page import make_page

    network = load_road_network(args.data)
    train = load_routes(args.data, args.train, network)
    test = load_routes(args.data, args.test, network)
    if args.quick:
        train, test = train[np.arange(min(60, len(train)))], test[np.arange(min(40, len(test)))]
    study = runs.Study(
        network, train, test, tuning=args.tuning, draws=max(2, args.draws), seed=args.seed,
        threads=args.threads, quick=args.quick, say=_say,
    )  # fmt: skip
    content = surroundings(
        _command(args), {"tuning": args.tuning, "draws": args.draws, "seed": args.seed}
    )
    content |= {"benchmark": "routes", "notes": []}
    content["data"] = study.describe()
    timed(content, "choose", lambda: study.choose(SETTINGS[:1] if args.quick else SETTINGS))
    timed(content, "learn", study.learn)
    timed(content, "errors", study.estimate_errors)
    timed(content, "choose_recursive", study.choose_recursive)
    timed(content, "recursive", study.fit_recursive)
    timed(content, "path_size", study.fit_path_size)
    timed(content, "judge", study.judge)
    content |= study.results()
    # A smoke test has too few routes for a claim.
    content["targets"] = [] if args.quick else _targets(content)
    draw_map(args.map, study)
    picture = os.path.relpath(args.map, args.page.parent)
    code = publish(content, partial(make_page, picture=picture), args.out, args.page)
    print(f"the map: {args.map}")
    return code


def timed(content: dict[str, Any], name: str, work: Callable[[], Any]) -> None:
    """Do the work and note seconds by the clock and of processor time."""
    _say(name.replace("_", "-"))
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    seconds = {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}
    content.setdefault("times", {})[name] = seconds


def _targets(content: dict[str, Any]) -> list[dict[str, Any]]:
    count, times = content["data"]["train"]["routes"], content["times"]
    learning = times["learn"]["wall_s"]
    learning_cpu = times["learn"]["cpu_s"] / CORES
    found = [
        target(f"{count:,} routes: seconds to learn", learning, LIMIT_S),
        target(f"the same, processor seconds over {CORES} cores", learning_cpu, LIMIT_S),
        target("projections not certified", content["ours"]["unsolved"], 0),
    ]
    for rival in RIVALS:
        for measure, words in (("links", "share of links"), ("exact", "share of exact routes")):
            gain = 100 * content["gains"][rival][measure]["low"]
            name = f"{words}: lower end of the lead over {rival}, in points"
            found.append(target(name, gain, 0, at_least=True))
    return found


def _command(args: argparse.Namespace) -> str:
    """The command as typed, without the folders of this machine."""
    words = [f"revealed bench routes --data {args.data.name} --train {args.train}"]
    words.append(f"--test {args.test} --tuning {args.tuning} --draws {args.draws}")
    words.append(f"--seed {args.seed}")
    return " ".join([*words, "--quick"] if args.quick else words)


def _say(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)
