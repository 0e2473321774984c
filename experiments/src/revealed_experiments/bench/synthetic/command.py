"""`revealed bench synthetic`: every method on the paper's synthetic problems and CaVE's yardstick.

What is run is in `experiments`, how in `run_one` and `sweep`, what is told in `synthetic_tables`.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from revealed.cli.commands.options import positive
from revealed.errors import InputError

from ..record import surroundings
from ..sweeps.choose import chosen, dropped
from ..sweeps.progress import clock
from ..sweeps.run_one import add_where
from ..sweeps.runs import (
    FAILED,
    FINISHED,
    Run,
    RunConfig,
    pack_runs,
    read_runs,
    set_aside,
    write_whole,
)
from ..sweeps.runs import rounded as as_plain
from ..sweeps.sweep import sweep
from ..tables import show, show_targets
from .experiments import PARTS, Part, experiment, with_settings
from .tables import tables, targets

OUT, OUT_QUICK = Path("out/bench/synthetic"), Path("out/bench/synthetic-quick")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `revealed bench synthetic`."""
    parser.add_argument(
        "--quick",
        action="store_true",
        help="one seed, few candidates, few epochs: proves that everything runs, claims nothing",
    )
    parser.add_argument("--only", metavar="TEXT", help="only parts whose name contains this")
    parser.add_argument(
        "--seeds", type=positive, metavar="N", help="in each part (5; CaVE's yardstick 10)"
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help=f"folder of the runs; those it has are not repeated ({OUT}, quick: {OUT_QUICK})",
    )
    add_where(parser)


def run(args: argparse.Namespace) -> int:
    """Perform what is missing, choose, print the tables; 1 if a run failed or a target missed."""
    parts = experiment(quick=args.quick, seeds=args.seeds, only=args.only)
    searched = [part for part in parts if part.settings_of is None]
    configs = _seed_by_seed(searched)
    folder: Path = args.out or (OUT_QUICK if args.quick else OUT)
    content = _enter(folder, _command(args), _settings(args, parts))
    set_aside(folder, {part.name for part in searched}, {config.key for config in configs})
    began = time.perf_counter()
    where = {"jobs": args.jobs, "scheduler": args.scheduler, "by_key": True}
    runs = sweep(configs, folder, **where)
    follow = [part for part in parts if part.settings_of is not None]
    if follow:
        more = _with_chosen_settings(follow, folder)
        set_aside(folder, {part.name for part in follow}, {config.key for config in more})
        runs += sweep(more, folder, **where)
    taken = time.perf_counter() - began
    choices = chosen(runs)
    # One seed and a few epochs support no claim.
    content["targets"] = [] if args.quick else targets(choices)
    _write(folder, content)
    packed = _pack(folder)
    show(tables(choices, dropped(runs)))
    _show_claims(folder)
    show_targets(content["targets"])
    _tell_failures(runs)
    print(f"{len(runs)} runs in {clock(taken)}; written to {folder}, all together in {packed}")
    failed = any(each["status"] == FAILED for each in runs)
    return 1 if failed or not all(t["holds"] for t in content["targets"]) else 0


def _seed_by_seed(parts: Sequence[Part]) -> list[RunConfig]:
    """All runs, the first seed of every part first: a sweep cut short has whole comparisons."""
    numbered = [
        (part.seeds.index(config.seed), config) for part in parts for config in part.configs()
    ]
    return [config for _, config in sorted(numbered, key=lambda pair: pair[0])]


def _with_chosen_settings(parts: Sequence[Part], folder: Path) -> list[RunConfig]:
    """The runs of parts that take their settings from others, which the folder must hold."""
    choices = chosen(read_runs(folder)) if (folder / "runs").is_dir() else []
    configs = []
    for part in parts:
        there = [choice for choice in choices if choice.part == part.settings_of]
        if not there:
            raise InputError(
                f"The part {part.name!r} takes its settings from {part.settings_of!r}, of which "
                f"{str(folder)!r} has no runs. Run that part first, or both: leave out --only."
            )
        found = {(choice.label, choice.optimiser): choice.config for choice in there}
        configs += with_settings(part, found)
    return sorted(configs, key=lambda config: config.seed)


def _settings(args: argparse.Namespace, parts: Sequence[Part]) -> dict[str, Any]:
    return {
        "quick": args.quick,
        "seeds": {part.name: list(part.seeds) for part in parts},
        "epochs": {part.name: part.epochs for part in parts},
    }


def _enter(folder: Path, command: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Take the folder for this sweep, beside parts that were run before; the facts of both."""
    try:
        before = json.loads((folder / "sweep.json").read_text("utf-8"))
    except (FileNotFoundError, ValueError):
        before = {}
    known = before.get("settings", {})
    kinds = {False: "full", True: "quick"}
    if known.get("quick", settings["quick"]) != settings["quick"]:
        raise InputError(
            f"{str(folder)!r} holds a {kinds[known['quick']]} sweep, and this one is "
            f"{kinds[settings['quick']]}. Give another folder with --out."
        )
    for name in ("seeds", "epochs"):
        settings[name] = known.get(name, {}) | settings[name]
    content = {"experiment": "synthetic", **surroundings(command, settings)}
    content["parts"] = [part.name for part in PARTS if part.name in settings["seeds"]]
    _write(folder, content)
    return content


def _pack(folder: Path) -> Path:
    """All runs of the folder in one file, with what the page reads of them."""
    runs = read_runs(folder)
    keep = {key for choice in chosen(runs) for key in choice.keys}
    return pack_runs(folder, [_slim(run, RunConfig.read(run).key in keep) for run in runs], keep)


_FOLLOWING = {part.name for part in PARTS if part.settings_of is not None}
_CURVES = ("decision_loss", "estimate_loss", "relative_regret")


def _slim(run: Run, is_chosen: bool) -> Run:
    """Of a chosen run its end, its curves on train and test where settings were searched; of others
    what the choice read."""
    told = {name: run[name] for name in ("config", "status", "message")}
    if run["status"] != FINISHED:
        return told | {"command": run["command"], "final": None}
    if not is_chosen:
        seen = {split: run["final"][split]["decision_loss"] for split in ("train", "valid")}
        return told | {"final": {split: {"decision_loss": v} for split, v in seen.items()}}
    follows = run["config"]["part"] in _FOLLOWING  # many seeds, whose curves are much alike
    curves = [
        {"epoch": row["epoch"]}
        | {s: {m: v for m, v in row[s].items() if m in _CURVES} for s in ("train", "test")}
        for row in ([] if follows else run.get("epochs", ()))
    ]
    kept = {name: run[name] for name in ("epoch_seconds", "final", "command")}
    return told | kept | {"epochs": curves}


def _write(folder: Path, content: dict[str, Any]) -> None:
    text = json.dumps(as_plain(content), indent=1, allow_nan=False)
    write_whole(folder / "sweep.json", text + "\n")


def _command(args: argparse.Namespace) -> str:
    """The command as typed, without what depends on the machine."""
    words = ["revealed bench synthetic", *(["--quick"] if args.quick else [])]
    words += [f"--only {args.only!r}"] if args.only else []
    return " ".join([*words, f"--seeds {args.seeds}"] if args.seeds else words)


def _show_claims(folder: Path) -> None:
    """The paper's claims with their verdicts, as the report judges them."""
    from ...report.claims import judge
    from ...report.reading import read_folder
    from ...report.study import gather

    for claim in judge(gather(read_folder(folder), [])):
        print(f"{claim.verdict}: {claim.sentence}")


def _tell_failures(runs: Sequence[Run]) -> None:
    failed: dict[str, list[Run]] = {}
    for each in runs:
        if each["status"] == FAILED:
            failed.setdefault(each["message"], []).append(each)
    for message, group in failed.items():
        config = group[0]["config"]
        more = f" and {len(group) - 1} more" if len(group) > 1 else ""
        print(f"failed: {config['part']}, {config['label']}{more}: {message}")
