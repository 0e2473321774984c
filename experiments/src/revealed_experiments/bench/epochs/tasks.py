"""What `revealed bench epochs` trains: four forward problems with data, and every method there is.

Letters: B samples, d context features, n cost entries.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from revealed.datasets import general_knapsacks, noisy_paths
from revealed.optimality.sets import OptimalitySet
from revealed.problems import grid_matching, grid_shortest_path
from revealed.problems.linear import LinearProgram

MARGIN = 1.0
BATCH = 32
FEATURES = 5
FLOOR = 0.05
"""Least cost shown to an oracle where a negative one could send a path round and round for ever."""


@dataclass(frozen=True, eq=False)
class Task:
    """A data set to train a linear model on, the same for every method."""

    name: str
    problem: LinearProgram
    contexts: np.ndarray
    """(B, d)"""
    decisions: np.ndarray
    """(B, n)"""
    true_costs: np.ndarray
    """(B, n)"""
    coef: np.ndarray
    """(n, d), where every training starts."""
    intercept: np.ndarray
    """(n,)"""
    floor: float | None = None
    batch_size: int = BATCH

    def __len__(self) -> int:
        return len(self.contexts)

    def sets(self) -> OptimalitySet:
        """What the decisions tell about the costs."""
        return OptimalitySet(self.problem, self.decisions, MARGIN)


def path_5x5(samples: int) -> Task:
    """The grid of CaVE's tables: 40 edges, degree 4, noise 0.5."""
    data = noisy_paths((samples, 0, 0), seed=42)
    return _task("path 5x5", data.problem, data.train.contexts, data.train.costs)


def paper_knapsack(samples: int) -> Task:
    """The paper's fractional knapsack of ten items."""
    data = general_knapsacks((samples, 0, 0), seed=0)
    return _task("paper's knapsack", data.problem, data.train.contexts, data.train.costs)


def path_12x12(samples: int) -> Task:
    """A grid as large as the Warcraft maps: 144 cells, 8 neighbors, 1012 edges, cycles."""
    return _on_grid("path 12x12, 8 neighbors", grid_shortest_path(12, 12, neighbors=8), samples)


def matching_12x12(samples: int) -> Task:
    """Perfect matchings of 144 cells along 264 edges."""
    return _on_grid("matching 12x12", grid_matching(12, 12), samples)


Build = Callable[[int], Task]
TASKS: tuple[tuple[Build, int, int], ...] = (
    (path_5x5, 1000, 64),
    (paper_knapsack, 1000, 64),
    (path_12x12, 192, 32),
    (matching_12x12, 192, 32),
)
"""How to build each, its samples, and its samples in a smoke test."""


def _on_grid(name: str, problem: LinearProgram, samples: int) -> Task:
    """Costs that are a power of a hidden linear function of the context, times noise."""
    rng = np.random.default_rng(42)
    listens = rng.binomial(1, 0.5, (problem.n_variables, FEATURES))
    contexts = rng.standard_normal((samples, FEATURES))
    base = ((contexts @ listens.T / np.sqrt(FEATURES) + 3.0) / 3.5) ** 4 + 3.5**-4
    cyclic = getattr(problem.structure, "order", "none") is None
    costs = base * rng.uniform(0.5, 1.5, base.shape)
    return _task(name, problem, contexts, costs, FLOOR if cyclic else None)


def _task(
    name: str,
    problem: LinearProgram,
    contexts: np.ndarray,
    costs: np.ndarray,
    floor: float | None = None,
) -> Task:
    """Start where every cost has the right sign and size, and no two are equal.

    All costs equal is where oracles meet ties everywhere and losses that look at angles only are
    undefined; it is the one start that no training has again.
    """
    rng = np.random.default_rng(7)
    n, d = costs.shape[1], contexts.shape[1]
    mean = float(costs.mean())
    coef = 0.05 * abs(mean) * rng.standard_normal((n, d))
    intercept = mean * rng.uniform(0.9, 1.1, n)
    decisions = np.asarray(problem.solve(costs).x)
    return Task(name, problem, contexts, decisions, costs, coef, intercept, floor)


# --- methods -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Method:
    """A loss of ours or a rival's, by the name it has in the registry."""

    label: str
    name: str
    options: dict[str, Any]

    @property
    def kind(self) -> str:
        """ "ours", "ours, drawn" (the form that projects several times), "regression", "rival"."""
        known = {"projection": "ours", "smoothed": "ours, drawn", "two-stage": "regression"}
        return known.get(self.name, "rival")

    def loss(self, task: Task) -> Any:
        """A new loss for this task; the floor goes to those that look below costs of 0."""
        from revealed.losses import LOSSES, make_loss

        options = dict(self.options)
        kind = LOSSES.get(self.name)
        if task.floor is not None and kind and "floor" in inspect.signature(kind).parameters:
            options["floor"] = task.floor
        return make_loss(self.name, task.problem, **options)


OURS = (
    Method("ours, power 2", "projection", {"margin": MARGIN, "power": 2}),
    Method("ours, power 1", "projection", {"margin": MARGIN, "power": 1}),
    Method("ours, Huber", "projection", {"margin": MARGIN, "power": "huber"}),
)
LABELS = {
    "smoothed": "ours, smoothed",
    "two-stage": "two-stage",
    "spo+": "SPO+",
    "pfyl": "PFYL",
    "dpo": "DPO",
    "st": "ST",
    "bb": "BB",
    "nce": "NCE",
    "mom": "MOM",
    "qptl": "QPTL",
    "optnet": "OptNet",
    "intopt": "log barrier",
    "cave": "CaVE",
    "cave+": "CaVE+",
}
ONE_DRAW = {"n_samples": 1}
"""The least that a sampling loss can do, as in CaVE's experiments."""
OPTIONS: dict[str, dict[str, Any]] = {
    "pfyl": ONE_DRAW,
    "dpo": ONE_DRAW,
    "smoothed": {"margin": MARGIN},
}
FORMS = {"cave": ("cave", "cave+")}
"""Losses that `make_loss` knows under several names."""


def methods() -> list[Method]:
    """Ours in its three forms, then everything else in the registry."""
    from revealed.losses import LOSSES

    names = [name for base in LOSSES for name in FORMS.get(base, (base,))]
    rest = [name for name in names if name != "projection"]
    return [*OURS, *(Method(LABELS.get(name, name), name, OPTIONS.get(name, {})) for name in rest)]
