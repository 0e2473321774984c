"""Checkpoints of a minimization: a killed fit goes on as if it had not been.

Everything that decides the next step is kept: the point, its loss and gradient, the past steps that
L-BFGS remembers, and from where the curvature was sampled, which samples it again. So the fit that
goes on makes the same steps, bit for bit, as one that was never stopped.
"""

from __future__ import annotations

import os
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from .._common.optional import require
from .models import Slope
from .quasi_newton import MEMORY, Metric


class Point(NamedTuple):
    """A model in whitened coordinates, and the loss there."""

    x: np.ndarray
    value: float
    gradient: np.ndarray
    slope: Slope
    row: dict[str, Any]


class Drawn(NamedTuple):
    """Where the curvature was sampled: what it takes to sample it again."""

    x: np.ndarray
    steepness: float
    turn: int


@dataclass
class Standing:
    """Where a minimization stands."""

    here: Point
    due: float
    """Number of evaluations after which the curvature is sampled."""
    price: float | None = None
    """Evaluations that sampling it takes the time of; None before that is known."""
    metric: Metric | None = None
    drawn: Drawn | None = None
    pairs: deque[tuple[np.ndarray, np.ndarray]] = field(
        default_factory=lambda: deque(maxlen=MEMORY)
    )
    """Past steps, and by how much the gradient turned on each."""


class Keeper:
    """Keeps checkpoints of one fit in a folder; `found` is the one that was there, if any.

    Parameters
    ----------
    folder : path
    run : dict
        What two runs must have in common for one to go on from the other's checkpoint.
    every : float
        Seconds between checkpoints, at least.
    """

    def __init__(
        self, folder: str | os.PathLike[str], run: dict[str, Any], every: float = 30.0
    ) -> None:
        require("torch", "Keeping checkpoints", "torch")
        from . import checkpoint

        self.folder, self.run, self.every = folder, run, every
        self.found = checkpoint.load(folder, run)
        self._last = time.monotonic()

    def due(self) -> bool:
        """Whether it is time for a checkpoint."""
        return time.monotonic() - self._last >= self.every

    def keep(self, at: Standing, facts: dict[str, Any], rows: list[dict[str, Any]]) -> None:
        """Write where the fit stands; `facts` are more of what it needs to go on."""
        import torch

        from . import checkpoint

        here = at.here
        arrays = {"x": here.x, "gradient": here.gradient, "level": here.slope.level}
        if at.pairs:
            arrays["pairs"] = np.array([np.stack(pair) for pair in at.pairs])
        facts = facts | {
            "epoch": len(rows),
            "run": self.run,
            "rows": rows,
            "here": {"value": here.value, "weights": here.slope.weights, "row": here.row},
            "due": at.due,
            "price": at.price,
        }
        if at.drawn is not None:
            arrays["drawn"] = at.drawn.x
            facts |= {"steepness": at.drawn.steepness, "turn": at.drawn.turn}
        tensors = {
            f"state.{name}": torch.from_numpy(np.array(array)) for name, array in arrays.items()
        }
        checkpoint.save(self.folder, checkpoint.Checkpoint(tensors, facts))
        self._last = time.monotonic()

    def standing(self) -> tuple[Standing, dict[str, Any]]:
        """What `keep` was given; the metric is still to be sampled where there is one."""
        assert self.found is not None, "nothing was kept"
        arrays = {name: tensor.numpy() for name, tensor in self.found.part("state").items()}
        facts = self.found.facts
        try:
            told = facts["here"]
            slope = Slope(told["weights"], arrays["level"])
            here = Point(arrays["x"], told["value"], arrays["gradient"], slope, told["row"])
            at = Standing(here, facts["due"], facts["price"])
            if "drawn" in arrays:
                at.drawn = Drawn(arrays["drawn"], facts["steepness"], facts["turn"])
        except (KeyError, TypeError) as error:
            raise self.found.refusal(f"it does not say where the fit stood ({error})") from error
        at.pairs.extend((step, turn) for step, turn in arrays.get("pairs", ()))
        return at, facts
