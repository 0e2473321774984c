"""A look at training from pictures on a GPU, in about two minutes.

    python experiments/scripts/gpu_vision.py --out gpu_vision.json

For each task and method: whether the step became one CUDA graph, the seconds that an epoch of
10,000 pictures takes so and step by step, and whether a run that was stopped ends with the same
numbers. With --device cpu and few pictures it runs anywhere, to see that it runs. --profile
shows instead which kernels a step of the first method spends its time in.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
import warnings
from itertools import count
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "experiments" / "src")]

from revealed.cli.commands.options import positive
from revealed.losses import make_loss
from revealed_experiments.bench.record import available_cores
from revealed_experiments.bench.vision.data import draw
from revealed_experiments.bench.vision.parts import experiment
from revealed_experiments.vision import DeviceSplit, build_model, judge, train

EPOCH = 10_000


def main() -> int:
    args = _arguments()
    device, began, rows = torch.device(args.device), time.perf_counter(), []
    if device.type == "cuda":
        device = torch.device("cuda", torch.cuda.current_device())
    for part in experiment(only=args.only, labels=args.methods):
        sizes = [args.pictures, 0, min(200, args.pictures)]
        data = draw(part.data | {"sizes": sizes}, jobs=available_cores())
        print(f"{part.name}: drawn after {time.perf_counter() - began:.0f} s", flush=True)
        if args.profile:
            _profile(part, data, device, args)
            continue
        rows += [_try(part, method, data, device, args) for method in part.methods]
        rows += _variants(part, data, device, args) if args.variants else []
    if args.out:
        args.out.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")
    wrong = [row for row in rows if row["wrong"]]
    for row in wrong:
        print(f"WRONG {row['part']}, {row['label']}: {row['wrong']}")
    print(f"{len(rows)} lines, {len(wrong)} wrong, {time.perf_counter() - began:.0f} s")
    return 1 if wrong else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--pictures", type=positive, default=1_000)
    parser.add_argument("--only", default="", help="part of a task's name")
    parser.add_argument("--methods", nargs="+", help="labels of some")
    parser.add_argument("--model", default="truncated")
    parser.add_argument("--variants", action="store_true", help="half precision and torch.compile")
    parser.add_argument("--profile", action="store_true", help="kernels of a step, and no more")
    parser.add_argument("--half", action="store_true", help="with --profile: in bfloat16")
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


def _try(part: Any, method: Any, data: Any, device: torch.device, args: Any) -> dict[str, Any]:
    """One method on one task: as a graph, step by step, and stopped in between."""
    options = {name: values[0] for name, values in method.options.items()}
    row = {"part": part.name, "label": method.label, "model": args.model, "wrong": ""}
    given = {"name": method.name, "options": options, "data": data, "device": device}
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            graph = _learn(**given, model=args.model)
            row |= {"captured": graph["captured"], "graph_s": graph["seconds"]}
            eager = _learn(**given, model=args.model, capture=False)
            row["eager_s"] = eager["seconds"]
            with tempfile.TemporaryDirectory() as folder:
                stopped = {"checkpoint": folder, "model": args.model}
                _learn(**given, **stopped, stop_after=2)
                again = _learn(**given, **stopped)
        if again["figures"] != graph["figures"]:
            row["wrong"] = f"resumed {again['figures'][-1]}, whole {graph['figures'][-1]}"
        if eager["figures"] != graph["figures"]:
            row["differs_by"] = f"eager {eager['figures'][-1]}, graph {graph['figures'][-1]}"
        row["final"], row["warnings"] = graph["figures"][-1], [str(w.message) for w in caught]
    except Exception as error:
        row["wrong"] = f"{type(error).__name__}: {error}"
    print(_line(row), flush=True)
    return row


def _variants(part: Any, data: Any, device: torch.device, args: Any) -> list[dict[str, Any]]:
    """What half precision and `torch.compile` bring, with ours."""
    rows = []
    for words, settings in (
        ("Ours, bfloat16", {"half": True}),
        ("Ours, compiled", {"compile": True}),
        ("Ours, both", {"half": True, "compile": True}),
    ):
        row = {"part": part.name, "label": words, "model": args.model, "wrong": ""}
        try:
            found = _learn("projection", {}, data, device, model=args.model, **settings)
            row |= {"captured": found["captured"], "graph_s": found["seconds"]}
            row["final"] = found["figures"][-1]
        except Exception as error:
            row["wrong"] = f"{type(error).__name__}: {error}"
        print(_line(row), flush=True)
        rows.append(row)
    return rows


def _profile(part: Any, data: Any, device: torch.device, args: Any) -> None:
    """The kernels of a few epochs, step by step, the longest first."""
    method = part.methods[0]
    options = {name: values[0] for name, values in method.options.items()}
    given = (method.name, options, data, device)
    settings = {"model": args.model, "capture": False, "half": args.half}
    _learn(*given, **settings)  # compiles
    kind = torch.profiler.ProfilerActivity
    activity = kind.CUDA if device.type == "cuda" else kind.CPU
    with torch.profiler.profile(activities=[activity]) as found:
        _learn(*given, **settings)
    print(f"{part.name}, {method.label}, {4 * args.pictures // 100} steps")
    column = "self_cuda_time_total" if device.type == "cuda" else "self_cpu_time_total"
    print(found.key_averages().table(sort_by=column, row_limit=24, max_name_column_width=70))


def _learn(
    name: str,
    options: dict[str, Any],
    data: Any,
    device: torch.device,
    *,
    model: str,
    stop_after: int | None = None,
    **settings: Any,
) -> dict[str, Any]:
    problem = data.problem
    split, test = (DeviceSplit.of(part, device, torch.float64) for part in (data.train, data.test))
    net = build_model(model, problem, channels=data.train.images.shape[3])
    calls = count()
    result = train(
        net,
        split,
        make_loss(name, problem, **options),
        max_epochs=4,
        lr=1e-3,
        monitor=lambda epoch, net: {"test": judge(net, problem, test)} if epoch == 4 else {},
        stop=None if stop_after is None else lambda: next(calls) >= stop_after,
        **settings,
    )
    rows = result.rows
    return {
        "captured": result.captured,
        "seconds": statistics.median(row["seconds"] for row in rows[1:]) * EPOCH / len(split),
        "figures": [[row["loss"], row.get("test", {}).get("decision_loss")] for row in rows[1:]],
    }


def _line(row: dict[str, Any]) -> str:
    if "graph_s" not in row:
        return f"{row['part']:15} {row['label']:15} {row['wrong']}"
    eager = f"step by step {row['eager_s']:6.2f} s" if "eager_s" in row else ""
    kind = "one graph" if row["captured"] else "no graph "
    told = [row["wrong"] and "WRONG", row.get("differs_by", ""), *row.get("warnings", [])]
    return (
        f"{row['part']:15} {row['label']:15} {kind} {row['graph_s']:6.2f} s an epoch {eager} "
        f"loss {row['final'][0]:.5g} {'; '.join(filter(None, told))}"
    )


if __name__ == "__main__":
    raise SystemExit(main())
