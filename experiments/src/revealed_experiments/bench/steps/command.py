"""`revealed bench steps`: what a training step with our loss takes, in steps of plain regression.

A ResNet-18 on random pictures, batches of 100, the trainer's own step: with the squared error
against true costs and with the projection loss against decisions, pass by pass in turns. On a GPU
in bfloat16 where the trainer uses it, as one CUDA graph and as ordinary launches.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from revealed.cli.commands.options import positive

from ..pages import Page, publish, verdicts
from ..record import chosen_device, surroundings, write_json
from ..tables import Table, target

SAMPLES = {"cuda": 1000, "cpu": 100}
ROUNDS = {"cuda": 20, "cpu": 7}
CPU_BOUND = 1.10
MEANINGS = {
    "early": "the network's own first costs, starts from nothing",
    "midway": "costs that explain most decisions, ten times the size of the margin and moved by "
    "10% anew for each pass, from the multipliers of the pass before",
    "late": "points of the sets moved by 0.1% of their length, a move that changes by 30% from "
    "pass to pass, from the multipliers of the pass before",
    "late, cold": "the same, starts from nothing",
    "graph": "the step as one CUDA graph, which is how the trainer runs it",
    "eager": "launch by launch",
}
"""Of regimes and ways to launch, for the page."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `revealed bench steps`."""
    parser.add_argument("--device", help="cuda or cpu (the GPU where there is one)")
    parser.add_argument("--model", default="resnet18", help="network (%(default)s)")
    parser.add_argument("--rounds", type=positive, help="passes of either loss (20, on a CPU 7)")
    parser.add_argument("--threads", type=positive, default=2, help="on a CPU (%(default)s)")
    parser.add_argument("--only", metavar="TEXT", help="only tasks whose name holds this")
    parser.add_argument(
        "--quick", action="store_true", help="smoke test: a small network, no claims"
    )
    parser.add_argument(
        "--out",
        type=Path,
        help="JSON file to write, with a page of the same name beside it "
        "(experiments/results/steps_cuda.json or steps_cpu.json)",
    )


def run(args: argparse.Namespace) -> int:
    """Measure, print the table, write the JSON and the page; 1 if a target was missed.

    The JSON is written after every row, so that a limit on time loses only the rest.
    """
    import torch

    device = chosen_device(args.device)
    kind = torch.device(device).type
    out = args.out or Path(f"experiments/results/steps_{kind}.json")
    content = surroundings(_command(args, device), _settings(args, kind))
    content |= {"benchmark": "steps", "rows": [], "targets": []}
    if kind == "cuda":
        content["hardware"]["gpu"] = torch.cuda.get_device_name()
    for row in measure(args, device, content["settings"]):
        content["rows"].append(row)
        content["targets"] = [] if args.quick else find_targets(content["rows"])
        write_json(out, content)
    return publish(content, make_page, out)


def make_page(content: dict[str, Any]) -> Page:
    """What is shown of a run that is kept."""
    findings = verdicts(content["targets"], ".3f")
    table = make_table(content["rows"])
    return Page("The price of regression", findings, [table], _method(content))


def _settings(args: argparse.Namespace, kind: str) -> dict[str, Any]:
    few = {"samples": 20, "batch": 10, "rounds": 1, "model": "small"}
    full = {
        "samples": SAMPLES[kind],
        "batch": 100,
        "rounds": args.rounds or ROUNDS[kind],
        "model": args.model,
    }
    return (few if args.quick else full) | {"threads": args.threads}


def measure(args: argparse.Namespace, device: str, settings: dict[str, Any]) -> Iterator[dict]:
    """One row for each task, regime and way of launching."""
    import torch

    from revealed.errors import InputError

    from .tasks import REGIMES, TASKS, Entrants, Task

    if device == "cpu":
        torch.set_num_threads(args.threads)
    kinds = [kind for kind in TASKS if not args.only or args.only in kind.name]
    if not kinds:
        raise InputError(f"--only {args.only!r} matches none of the tasks.")
    for kind in kinds:
        task = Task.draw(kind, device, settings["samples"], small=args.quick)
        for regime in REGIMES:
            for captured in _ways_to_launch(torch.device(device).type, regime):
                pair = Entrants(task, regime, settings["model"], settings["batch"], captured)
                row = pair.take_turns(settings["rounds"]) | {"bound": _bound(kind, device)}
                _say(row)
                yield row


def _ways_to_launch(kind: str, regime: Any) -> tuple[bool, ...]:
    """Whether as a graph; launch by launch too where training spends most of its time."""
    if kind != "cuda":
        return (False,)
    return (True, False) if regime.warm else (True,)


def _bound(kind: Any, device: str) -> float:
    return CPU_BOUND if device == "cpu" else kind.bound


# --- what the figures say ------------------------------------------------------------------------


def find_targets(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every regime with the starts that training has in it; launches as the trainer makes them."""
    return [
        target(
            f"{row['task']}, {row['regime']}: a step over one of regression", row["ratio"], bound
        )
        for row in rows
        if (bound := row["bound"]) and (row["launches"] != "eager")
    ]


def make_table(rows: list[dict[str, Any]]) -> Table:
    """Every row, in the order measured."""
    lines = [
        [
            row["task"],
            row["regime"],
            row["launches"],
            f"{row['squared_ms']:.3f}",
            f"{row['ours_ms']:.3f}",
            f"{row['ratio']:.3f}",
            f"{row['lowest']:.3f} to {row['highest']:.3f}",
            f"{row['steps_mean']:.1f}",
            f"{row['unsolved']}",
        ]
        for row in rows
    ]
    headings = ["task", "costs", "launches", "squared error, ms", "ours, ms", "ratio"]
    headings += ["quarter to three quarters", "Newton steps", "unsolved"]
    return Table("A training step", headings, lines, 3)


def _method(content: dict[str, Any]) -> str:
    settings = content["settings"]
    used = {row[name] for row in content["rows"] for name in ("regime", "launches")}
    meanings = "\n".join(f"- *{name}*: {MEANINGS[name]}" for name in MEANINGS if name in used)
    return f"""
One step of training ({settings["model"]}, batch {settings["batch"]}): gather the batch, predict,
loss, gradient, Adam. Times are medians over {settings["rounds"]} passes of each loss, in turns; the
ratio is the median of the passes' ratios.

{meanings}
"""


def _command(args: argparse.Namespace, device: str) -> str:
    words = [f"revealed bench steps --device {device}"]
    words += [f"--model {args.model}"] if args.model != "resnet18" else []
    words += [f"--rounds {args.rounds}"] if args.rounds else []
    words += [f"--only {args.only!r}"] if args.only else []
    return " ".join([*words, "--quick"] if args.quick else words)


def _say(row: dict[str, Any]) -> None:
    words = f"{row['task']:15} {row['regime']:10} {row['launches']:6}"
    times = f"squared {row['squared_ms']:9.3f} ms  ours {row['ours_ms']:9.3f} ms"
    found = f"ratio {row['ratio']:.3f}  steps {row['steps_mean']:.1f}"
    print(f"  {words} {times}  {found}", file=sys.stderr, flush=True)
