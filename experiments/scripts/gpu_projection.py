"""Throughput and latency of the projection on one GPU.

    python experiments/scripts/gpu_projection.py

Five regimes of costs, four as in `revealed_experiments.bench.projection.cases`: cold (nothing to do
with the decisions), almost (a projection moved by 0.1%), near (the costs behind the decisions moved
by 1%, margin 0.01), warm (the cold costs moved by 1%, started from their multipliers); and late
(the almost right ones moved again, by 0.03%, started from their multipliers), as in training. Batch
10,000 for throughput, timed with device events; batch 100 for latency, as replays of a captured
graph. Beside every number stands the floor: the fewest bytes that must move and the fewest
multiply-adds that must be done, at rates measured in the same run. Letters: B batch, n cost
entries, m rows.
"""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gpu_clocks import captured, copy_rate, milliseconds, surroundings
from torch import Tensor

import revealed as rv
from revealed.cli.commands.options import positive, whole
from revealed.projection.triton import DeviceSets, Launch, project_on_device

FAMILIES = {
    "grid 12x12": lambda: rv.problems.grid_shortest_path(12, 12, neighbors=8),
    "grid 18x18": lambda: rv.problems.grid_shortest_path(18, 18, neighbors=8),
    "matching 12x12": lambda: rv.problems.grid_matching(12, 12),
}
DECISIONS = 2000
"""Different decisions; a larger batch has each of them several times, with costs of its own."""
TRIALS = 2
"""Line-search passes over the columns that a step takes at least: at the start and at its end."""


@dataclass(frozen=True)
class Regime:
    """One batch to project."""

    name: str
    costs: Tensor
    sets: DeviceSets
    start: Tensor | None = None

    def head(self, count: int) -> Regime:
        index = torch.arange(count, device=self.costs.device)
        start = None if self.start is None else self.start[:count].clone()
        return Regime(self.name, self.costs[:count].clone(), self.sets[index], start)

    def run(self, options: dict[str, Any]) -> Any:
        return project_on_device(self.costs, self.sets, warm_start=self.start, **options)


def regimes(name: str, batch: int, device: torch.device) -> list[Regime]:
    problem, rng = FAMILIES[name](), np.random.default_rng(0)
    true = rng.uniform(0.0, 2.0, (DECISIONS, problem.n_variables))
    decisions = problem.solve(true).x
    index = torch.arange(batch, device=device) % DECISIONS
    wide = DeviceSets.upload(rv.OptimalitySet(problem, decisions), device)[index]
    slight = DeviceSets.upload(rv.OptimalitySet(problem, decisions, margin=0.01), device)[index]
    draw = torch.Generator(device=device).manual_seed(0)

    def moved(points: Tensor, share: float) -> Tensor:
        noise = torch.randn(points.shape, device=device, dtype=torch.float64, generator=draw)
        length = torch.linalg.vector_norm(points, dim=1, keepdim=True)
        return points + share * length / points.shape[1] ** 0.5 * noise

    shape = (batch, problem.n_variables)
    cold = 2.0 * torch.rand(shape, device=device, dtype=torch.float64, generator=draw)
    answer = project_on_device(cold, wide)
    almost = moved(answer.point, 1e-3)
    behind = torch.as_tensor(true, device=device)[index]
    return [
        Regime("cold", cold, wide),
        Regime("almost", almost, wide),
        Regime("near", moved(behind, 1e-2), slight),
        Regime("warm", moved(cold, 1e-2), wide, answer.multipliers),
        Regime("late", moved(almost, 3e-4), wide, project_on_device(almost, wide).multipliers),
    ]


# --- floors --------------------------------------------------------------------------------------


def ceilings(device: torch.device) -> dict[str, float]:
    """Bytes a second of a copy, and float64 multiply-adds a second of a matrix product."""
    A = torch.rand(4096, 4096, device=device, dtype=torch.float64)
    product = milliseconds(lambda: A @ A, 5)
    return {
        "bytes_per_second": copy_rate(device),
        "float64_multiply_adds_per_second": 4096**3 / product * 1e3,
    }


def floor(sets: DeviceSets, steps: float, rates: dict[str, float]) -> dict[str, float]:
    """What a projection cannot do without, at the rates given.

    Bytes: cost and states in, point and multipliers out. Multiply-adds of a step: a band Cholesky
    factorization, two triangular solves, A^T v, A^T d, A r, the products in A D A^T, and the
    columns once for each line-search pass.
    """
    band = sets.plan.band
    assert band is not None
    n, m, w = sets.plan.n, len(sets.plan.source), band.bandwidth
    entries, pairs = len(sets.plan.columns.row), int((band.pairs.weight != 0).sum())
    moved = 8 * n + n + 8 * n + 8 * sets.plan.n_rows
    factor = m * w * (w + 1) / 2 + 2 * m * w
    work = steps * (factor + 4 * entries + pairs + TRIALS * 2 * n)
    return {
        "bytes": moved,
        "multiply_adds": work,
        "projections_per_second_by_bytes": rates["bytes_per_second"] / moved,
        "projections_per_second_by_arithmetic": rates["float64_multiply_adds_per_second"]
        / max(work, 1.0),
    }


# --- the table -----------------------------------------------------------------------------------


def measure(
    name: str, options: dict[str, Any], batch: int, repeats: int, rates: dict[str, float]
) -> list[dict[str, Any]]:
    lines = []
    for regime in regimes(name, batch, torch.device("cuda", torch.cuda.current_device())):
        answer = regime.run(options)
        elapsed = milliseconds(lambda regime=regime: regime.run(options), repeats)
        few = regime.head(100)
        small = few.run(options)
        graph = captured(lambda few=few: few.run(options))
        replay = milliseconds(graph.replay, 5 * repeats)
        steps = float(answer.iterations.double().mean())
        least = floor(regime.sets, steps, rates)
        speed = batch / elapsed * 1e3
        best = min(value for key, value in least.items() if key.startswith("projections"))
        lines.append(
            {
                "problem": name,
                "regime": regime.name,
                "precision": options.get("precision", "float64"),
                "batch": batch,
                "milliseconds": elapsed,
                "projections_per_second": speed,
                "times_the_floor": best / speed,
                "floor": least,
                "milliseconds_for_100": replay,
                "steps_mean": steps,
                "steps_most": int(answer.iterations.max()),
                "steps_most_of_100": int(small.iterations.max()),
                "solved": float(answer.solved.double().mean()),
                "residual_most": float(answer.residual.max()),
            }
        )
        show(lines[-1])
    return lines


def show(line: dict[str, Any]) -> None:
    print(
        f"{line['problem']:15} {line['precision']} {line['regime']:7} "
        f"{line['projections_per_second']:11,.0f}/s ({line['times_the_floor']:5.0f} x floor)  "
        f"100 in {line['milliseconds_for_100']:6.3f} ms  steps {line['steps_mean']:5.2f} "
        f"most {line['steps_most']}/{line['steps_most_of_100']}  solved {line['solved']:.4f}  "
        f"residual {line['residual_most']:.1e}",
        flush=True,
    )


def launches(words: str) -> list[Launch]:
    """Launches written as "warps,chunk,rows,programs per processor,registers", 0 for the default
    of the first and the last."""
    found = []
    for word in words.split():
        warps, chunk, rows, per, registers = (whole(part) for part in word.split(","))
        found.append(Launch(warps or None, chunk, rows, per, registers or None))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="problems whose name contains this")
    parser.add_argument("--batch", type=positive, default=10_000)
    parser.add_argument("--repeats", type=positive, default=7)
    parser.add_argument("--launches", default="", help=launches.__doc__)
    parser.add_argument("--precisions", default="float64,float32")
    beside = Path(__file__).parents[1] / "results"
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", beside)))
    chosen = parser.parse_args()
    rates = ceilings(torch.device("cuda", torch.cuda.current_device()))
    report: dict[str, Any] = {
        "surroundings": surroundings("python experiments/scripts/gpu_projection.py"),
        "ceilings": rates,
        "lines": [],
    }
    print(report["surroundings"], rates)
    for launch in launches(chosen.launches) or [Launch()]:
        print(launch)
        for precision in chosen.precisions.split(","):
            options = {"launch": launch, "precision": precision}
            for name in (name for name in FAMILIES if chosen.only in name):
                lines = measure(name, options, chosen.batch, chosen.repeats, rates)
                report["lines"] += [{**line, "launch": asdict(launch)} for line in lines]
                chosen.out.mkdir(parents=True, exist_ok=True)
                text = json.dumps(report, indent=1) + "\n"
                (chosen.out / "gpu_projection.json").write_text(text, "utf-8")


if __name__ == "__main__":
    main()
