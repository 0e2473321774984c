"""What `revealed bench steps` times: random pictures with true decisions, and two steps in turns.

Letters: B samples of a batch, n cost entries.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from revealed.losses import ProjectionLoss
from revealed.optimality.sets import OptimalitySet
from revealed.problems import grid_matching, grid_shortest_path
from revealed.problems.linear import LinearProgram
from revealed.projection import project

from ...vision.inputs import DeviceSplit
from ...vision.models import build_model
from ...vision.optimizers import make_optimizer
from ...vision.stepping import CapturedStep, Step

STILL = 1e-7
"""The learning rate: the network is to stay what it is while it is timed."""
FAINT = 1e-6
"""Share of the network's own costs where they come from elsewhere."""
LARGE = 10.0
"""Costs midway through training, in terms of the true ones of this benchmark, whose size is that of
the margin; by then decisions have asked for it."""
UNSURE = 0.1
"""How far they are off, entry by entry and anew for each pass. Chosen by hand, to look like costs
recorded from a training on 12x12 terrain: how far they move, how many entries bind."""
ALMOST = 1e-3
"""How far the late costs are from explaining their decisions, in lengths of the cost."""
CHANGE = 0.3
"""How far they move from one pass to the next, as a share of that."""


@dataclass(frozen=True)
class Kind:
    """A task, and how much more than regression a step on a GPU may take."""

    name: str
    problem: Callable[[int], LinearProgram]
    side: int
    pixels: int
    """Of a cell's side."""
    channels: int
    bound: float


TASKS = (
    Kind("terrain 12x12", lambda k: grid_shortest_path(k, k, neighbors=8), 12, 8, 3, 1.05),
    Kind("terrain 18x18", lambda k: grid_shortest_path(k, k, neighbors=8), 18, 8, 3, 1.10),
    Kind("matching 12x12", lambda k: grid_matching(k, k), 12, 12, 1, 1.10),
)
QUICK_SIDE = 4


@dataclass(frozen=True)
class Regime:
    """Which costs are projected, and from where."""

    name: str
    costs: str
    """"own" costs of the network, or from a table: costs "midway" through training or "late"."""
    warm: bool


REGIMES = (
    Regime("early", "own", warm=False),
    Regime("midway", "midway", warm=True),
    Regime("late", "late", warm=True),
    Regime("late, cold", "late", warm=False),
)


@dataclass(frozen=True, eq=False)
class Task:
    """Pictures and the decisions that belong to them, on one device."""

    kind: Kind
    data: DeviceSplit
    sets: OptimalitySet
    points: Tensor
    """(samples, n) costs that explain the decisions."""

    @classmethod
    def draw(cls, kind: Kind, device: Any, samples: int, *, small: bool = False) -> Task:
        side = QUICK_SIDE if small else kind.side
        problem, rng = kind.problem(side), np.random.default_rng(0)
        true = rng.uniform(0.0, 2.0, (samples, problem.n_variables))
        decisions = problem.solve(true).x
        sets = OptimalitySet(problem, decisions)
        pixels = side * kind.pixels
        pictures = rng.integers(0, 256, (samples, pixels, pixels, kind.channels), np.uint8)
        device = torch.device(device)
        parts = (pictures, decisions.astype(np.float32), true.astype(np.float32))
        data = DeviceSplit(*(torch.from_numpy(part).to(device) for part in parts))
        others = torch.from_numpy(rng.uniform(0.0, 2.0, true.shape)).to(device)
        return cls(kind, data, sets, project(others, sets.to(device)).point.float())


class Squared(nn.Module):
    """Plain regression, in the place of a loss."""

    needs_true_costs = True

    def forward(self, costs: Tensor, decisions: Any, *, true_costs: Tensor, index: Any) -> Tensor:
        return nn.functional.mse_loss(costs.float(), true_costs)

    def forget(self) -> None:
        """Nothing was kept."""


class Moved(nn.Module):
    """A loss of costs that come from a table, with the network's own as a faint disturbance."""

    def __init__(self, loss: Any, table: Tensor) -> None:
        super().__init__()
        self.loss, self.table, self.needs_true_costs = loss, table, loss.needs_true_costs

    def forward(self, costs: Tensor, decisions: Any, *, true_costs: Any, index: Tensor) -> Tensor:
        costs = torch.add(self.table[index], costs, alpha=FAINT)
        return self.loss(costs, decisions, true_costs=true_costs, index=index)

    def forget(self) -> None:
        self.loss.forget()


class Entrants:
    """The step of either loss on the same task, ready to take turns."""

    def __init__(self, task: Task, regime: Regime, model: str, batch: int, captured: bool) -> None:
        self.task, self.regime, self.captured = task, regime, captured
        self.batch = batch
        self.device = task.points.device
        self.table = task.points.clone()
        self.noise = torch.randn_like(self.table)
        self.ours = ProjectionLoss(task.sets.problem, warm_start=regime.warm)
        self.steps = {
            "squared": self._make(Squared(), model),
            "ours": self._make(self.ours, model),
        }

    def _make(self, loss: Any, model: str) -> Callable[[Tensor], None]:
        net = build_model(model, self.task.sets.rows, channels=self.task.kind.channels)
        net.to(self.device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        on_device = self.task.sets.to(self.device)
        told: Any = loss if self.regime.costs == "own" else Moved(loss, self.table)
        step = Step(
            net,
            self.task.data,
            told,
            make_optimizer("adam", net.parameters(), STILL),
            lambda index: on_device[index],
            half=self.device.type == "cuda",
            warm_starts=True,
        )
        return CapturedStep(step, self.batch) if self.captured else step

    def take_turns(self, rounds: int) -> dict[str, Any]:
        """Passes over the data by turns, the first of each not counted."""
        times: dict[str, list[float]] = {"squared": [], "ours": []}
        counts = []
        for k in range(rounds + 2):
            self._draw()
            for name in ("squared", "ours") if k % 2 else ("ours", "squared"):
                times[name].append(self._pass(name))
            counts.append(self.ours.steps / self.batch)
        squared, ours = (np.array(times[name][2:]) for name in ("squared", "ours"))
        quarter, ratio, three = np.percentile(ours / squared, (25, 50, 75))
        return {
            "task": self.task.kind.name,
            "regime": self.regime.name,
            "launches": self._launches(),
            "squared_ms": 1e3 * float(np.median(squared)),
            "ours_ms": 1e3 * float(np.median(ours)),
            "ratio": float(ratio),
            "lowest": float(quarter),
            "highest": float(three),
            "steps_mean": float(np.mean(counts[2:])),
            "unsolved": self.ours.unsolved,
        }

    def _launches(self) -> str:
        if self.device.type == "cpu":
            return "CPU"
        return "graph" if self.captured else "eager"

    def _draw(self) -> None:
        """New costs for the pass, in place, for a captured graph reads them there."""
        if self.regime.costs == "midway":
            true = self.task.data.costs
            self.table.copy_(LARGE * true * (1.0 + UNSURE * torch.randn_like(true)))
        elif self.regime.costs == "late":
            points = self.task.points
            # Stays normal with variance 1, whatever the share.
            self.noise.mul_((1 - CHANGE**2) ** 0.5).add_(torch.randn_like(points), alpha=CHANGE)
            length = torch.linalg.vector_norm(points, dim=1, keepdim=True)
            self.table.copy_(points + ALMOST * length / points.shape[1] ** 0.5 * self.noise)

    def _pass(self, name: str) -> float:
        """Seconds of a step, over one pass."""
        step = self.steps[name]
        batches = torch.randperm(len(self.table), device=self.device).split(self.batch)
        batches = [batch for batch in batches if len(batch) == self.batch]
        self._wait()
        begin = time.perf_counter()
        for batch in batches:
            step(batch)
        self._wait()
        return (time.perf_counter() - begin) / len(batches)

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()
