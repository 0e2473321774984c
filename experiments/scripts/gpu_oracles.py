"""Oracles for costs on a GPU, and losses that ask them.

    python experiments/scripts/gpu_oracles.py

Paths: the kernel on batches of 100 (replays of a captured graph), 1,000 and 10,000, beside the
floor by bytes (costs read once, decisions written once) and the CPU's oracle on all cores.
Matchings, which go by the CPU: how the time falls with the threads. Losses: value and gradient of
a batch of 100 from sets on the device, captured in a graph, and how far they are from the CPU's.
Letters: B batch, n cost entries.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gpu_clocks import captured, copy_rate, milliseconds, surroundings, wall
from torch import Tensor

import revealed as rv
from revealed import metrics
from revealed.oracles.gpu import Launch, solve_paths_on_device

SIDES = (12, 18)
BATCHES = (100, 1000, 10_000)
DECISIONS = 2000
K = 10
FEW = 10
"""Samples of a batch that are compared with the CPU, whose bases take long to find."""
LOSSES: dict[str, dict[str, Any]] = {
    "two-stage": {},
    "st": {},
    "bb": {"floor": 0.0},
    "spo+": {"floor": 0.0},
    "dpo": {"floor": 0.0, "n_samples": K},
    "pfyl": {"floor": 0.0, "n_samples": K},
    "mom": {},
}


# --- oracles -------------------------------------------------------------------------------------


def paths(side: int, launch: Launch, rate: float, device: torch.device) -> list[dict[str, Any]]:
    problem = rv.problems.grid_shortest_path(side, side, neighbors=8)
    draw = torch.Generator(device=device).manual_seed(side)
    lines = []
    for batch in BATCHES:
        shape = (batch, problem.n_variables)
        costs = torch.rand(shape, generator=draw, device=device, dtype=torch.float64)

        def work(costs: Tensor = costs) -> Any:
            return solve_paths_on_device(problem, costs, launch=launch)

        elapsed = milliseconds(captured(work).replay)
        moved = 2 * costs.numel() * 8
        lines.append(
            {
                "problem": f"grid {side}x{side}, 8 neighbors",
                "batch": batch,
                "milliseconds": elapsed,
                "milliseconds_uncaptured": wall(work),
                "floor_milliseconds_by_bytes": 1e3 * moved / rate,
                "optimal": float(work().optimal.double().mean()),
                "launch": vars(launch),
            }
        )
        print(lines[-1], flush=True)
    return lines


def paths_on_cpu(side: int) -> dict[str, Any]:
    problem = rv.problems.grid_shortest_path(side, side, neighbors=8)
    costs = np.random.default_rng(side).random((1000, problem.n_variables))
    return {
        "problem": f"grid {side}x{side}, 8 neighbors",
        "batch": 1000,
        "milliseconds_on_the_cpu": wall(lambda: problem.solve(costs)),
        "milliseconds_on_one_core": wall(lambda: problem.solve(costs, threads=1), 3),
    }


def matchings(device: torch.device) -> list[dict[str, Any]]:
    problem = rv.problems.grid_matching(12, 12)
    lines = []
    for batch in BATCHES[:2]:
        costs = np.random.default_rng(0).integers(0, 100, (batch, problem.n_variables)) / 1.0
        there = torch.as_tensor(costs, device=device)
        alike = problem.solve(there).x.cpu() == torch.as_tensor(problem.solve(costs).x)
        counts = [c for c in (1, 2, 4, 8, 16) if c <= (os.cpu_count() or 1)]
        lines.append(
            {
                "problem": "matching 12x12",
                "batch": batch,
                "milliseconds_by_threads": {
                    c: wall(lambda c=c, x=costs: problem.solve(x, threads=c)) for c in counts
                },
                "milliseconds_from_the_device_and_back": wall(lambda x=there: problem.solve(x)),
                "agrees": bool(alike.all()),
            }
        )
        print(lines[-1], flush=True)
    return lines


# --- losses --------------------------------------------------------------------------------------


def losses(side: int, device: torch.device) -> list[dict[str, Any]]:
    problem = rv.problems.grid_shortest_path(side, side, neighbors=8)
    rng = np.random.default_rng(side)
    truth = rng.uniform(0.5, 2.0, (DECISIONS, problem.n_variables))
    sets = rv.OptimalitySet(problem, problem.solve(truth).x)
    uploaded = sets.to(device)
    lines = []
    for name, options in LOSSES.items():
        loss = rv.losses.make_loss(name, problem, reduction="none", **options)
        begin = time.perf_counter()
        step = Step(loss, uploaded, truth, rng.uniform(0.5, 2.0, (100, truth.shape[1])))
        step()
        torch.cuda.synchronize()
        first = time.perf_counter() - begin
        graph = captured(step)
        elapsed = milliseconds(graph.replay)
        off = step.compare(graph, name, options, sets)
        lines.append(
            {
                "loss": name,
                "problem": f"grid {side}x{side}, 8 neighbors",
                "batch": 100,
                "milliseconds": elapsed,
                "seconds_first_call": first,
                "reads_nothing_back": step.reads_nothing_back(),
                **off,
            }
        )
        print(lines[-1], flush=True)
    return lines


class Step:
    """The loss of a batch of 100 and its gradient, from buffers that stay where they are."""

    def __init__(self, loss: Any, sets: Any, truth: np.ndarray, costs: np.ndarray) -> None:
        device = sets.device
        self.loss, self.sets = loss, sets
        self.truth = torch.as_tensor(truth, device=device)
        self.index = torch.arange(100, device=device)
        self.costs = torch.as_tensor(costs, device=device).requires_grad_()
        self.value = torch.zeros(len(costs), dtype=torch.float64, device=device)
        self.gradient = torch.zeros_like(self.costs)

    def __call__(self) -> None:
        value = self.loss(self.costs, self.sets[self.index], true_costs=self.truth[self.index])
        (gradient,) = torch.autograd.grad(value.sum(), self.costs)
        self.value.copy_(value.detach())
        self.gradient.copy_(gradient)

    def reads_nothing_back(self) -> bool:
        torch.cuda.set_sync_debug_mode("error")
        try:
            self()
        except RuntimeError as error:
            print(error)
            return False
        finally:
            torch.cuda.set_sync_debug_mode("default")
        return True

    def compare(
        self, graph: torch.cuda.CUDAGraph, name: str, options: dict[str, Any], sets: Any
    ) -> dict[str, float]:
        """A replay on other samples against the CPU and against an ordinary call."""
        with torch.no_grad():
            self.costs.mul_(1.1)
        self.index.add_(7)
        self.loss.begin_epoch(3, 1)
        graph.replay()
        replayed = self.value.clone(), self.gradient.clone()
        self.loss.begin_epoch(3, 1)
        self()
        again = max(_off(new, old) for new, old in zip(self._now(), replayed, strict=True))
        other = rv.losses.make_loss(name, self.loss.problem, reduction="none", **options)
        if hasattr(other, "noise"):
            self.loss.begin_epoch(3, 1)
            noise = self.loss.noise((K, *self.costs.shape), self.costs.device)[:, :FEW].cpu()
            other.noise = lambda shape, device: noise
        costs = self.costs.detach()[:FEW].cpu().requires_grad_()
        places = self.index[:FEW].cpu().numpy()
        value = other(costs, sets[places], true_costs=self.truth[self.index[:FEW]].cpu())
        value.sum().backward()
        trusted = value.detach(), costs.grad
        off = max(_off(new[:FEW].cpu(), old) for new, old in zip(replayed, trusted, strict=True))
        return {"off_cpu": off, "off_uncaptured": again}

    def _now(self) -> tuple[Tensor, Tensor]:
        return self.value, self.gradient


def _off(got: Tensor, trusted: Tensor) -> float:
    return float((got - trusted).norm() / trusted.norm().clamp_min(1e-300))


def measures(side: int, device: torch.device) -> dict[str, Any]:
    problem = rv.problems.grid_shortest_path(side, side, neighbors=8)
    draw = torch.Generator(device=device).manual_seed(1)
    shape = (10_000, problem.n_variables)
    truth, costs = (
        torch.rand(shape, generator=draw, device=device, dtype=torch.float64) for _ in range(2)
    )
    x = problem.solve(truth).x
    told = {"costs": costs, "decisions": x}
    return {
        "problem": f"grid {side}x{side}, 8 neighbors",
        "batch": 10_000,
        "decision_loss_milliseconds": wall(lambda: metrics.decision_loss(problem, **told)),
        "relative_regret_milliseconds": wall(
            lambda: metrics.relative_regret(problem, **told, true_costs=truth)
        ),
        "optimal_milliseconds": wall(lambda: metrics.optimal(problem, **told, true_costs=truth)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    beside = Path(__file__).parents[1] / "results"
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", beside)))
    parser.add_argument("--launches", default="", help="warps,chunk,per_processor ...; 0: default")
    chosen = parser.parse_args()
    device = torch.device("cuda", torch.cuda.current_device())
    words = [tuple(map(int, word.split(","))) for word in chosen.launches.split()]
    layouts = [Launch(warps or None, chunk or None, per) for warps, chunk, per in words]
    rate = copy_rate(device)
    report: dict[str, Any] = {
        "surroundings": surroundings("python experiments/scripts/gpu_oracles.py"),
        "bytes_per_second": rate,
    }
    print(report, flush=True)
    lists: dict[str, Callable[[], list[dict[str, Any]]]] = {
        "paths": lambda: [
            line
            for launch in [Launch(), *layouts]
            for side in SIDES
            for line in paths(side, launch, rate, device)
        ],
        "losses": lambda: [line for side in SIDES for line in losses(side, device)],
        "matchings": lambda: matchings(device),
        "paths_on_cpu": lambda: [paths_on_cpu(side) for side in SIDES],
        "metrics": lambda: [measures(side, device) for side in SIDES],
    }
    chosen.out.mkdir(parents=True, exist_ok=True)
    for name, work in lists.items():  # written after each, so that a limit loses only the rest
        report[name] = work()
        (chosen.out / "gpu_oracles.json").write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report["paths_on_cpu"] + report["metrics"]))


if __name__ == "__main__":
    main()
