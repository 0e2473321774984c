"""One pass over a data set: predicted costs, their projections, and how far apart they are."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..optimality import OptimalitySet
from ..projection import project
from .least_squares import chunks
from .models import CostModel


@dataclass(frozen=True)
class Sweep:
    """How far the costs of a model were from the sets, sample by sample."""

    distance: np.ndarray
    """(B,)"""
    relative: np.ndarray
    """(B,) distance over the length of the cost or, where that is more, the margin."""
    unsolved: int
    """Projections that missed their tolerance."""
    trivial: bool
    """Whether every predicted cost is 0 and so is the margin: such costs explain anything."""
    projection_seconds: float
    fit_seconds: float

    @property
    def h(self) -> float:
        """The mean of 1/2 distance^2."""
        return float(0.5 * np.mean(self.distance**2))

    def row(self) -> dict[str, Any]:
        """The columns of a History that come from a pass."""
        return {
            "h": self.h,
            "mean_distance": float(self.distance.mean()),
            "max_distance": float(self.distance.max()),
            "max_relative": float(self.relative.max()),
            "unsolved": self.unsolved,
            "projection_seconds": self.projection_seconds,
            "fit_seconds": self.fit_seconds,
        }


class Tally:
    """Gathers a Sweep batch by batch."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self._distance: list[np.ndarray] = []
        self._size: list[np.ndarray] = []
        self._unsolved = 0
        self.projecting = 0.0
        """Seconds spent in projections; whoever projects adds to it."""

    def add(self, near: Any, size: Any) -> None:
        """Count a batch: a Projection, and the length of each cost or its margin if that is more.

        A size of 0 is that of a cost of 0 with no margin.
        """
        self._distance.append(near.distance)
        self._size.append(size)
        if not near.solved.all():
            self._unsolved += int(np.sum(~near.solved))

    def sweep(self) -> Sweep:
        """The batches in the order in which they came."""
        distance, size = np.concatenate(self._distance), np.concatenate(self._size)
        relative = np.divide(distance, size, out=np.zeros_like(distance), where=size > 0)
        rest = self.seconds()["fit_seconds"]
        return Sweep(distance, relative, self._unsolved, not size.any(), self.projecting, rest)

    def seconds(self) -> dict[str, float]:
        """Time so far: in projections, or whatever else the loss asks of a solver, and beside."""
        rest = time.perf_counter() - self._started - self.projecting
        return {"projection_seconds": self.projecting, "fit_seconds": rest}


class WarmStart:
    """Multipliers of the last projection of every sample, (B, m); nothing before the first."""

    def __init__(self, size: int, *, keep: bool = True) -> None:
        self._size = size
        self._keep = keep
        self._multipliers: np.ndarray | None = None
        self._known = np.zeros(size, bool)

    def of(self, part: slice) -> np.ndarray | None:
        """The start for the samples of `part`, or None if one of them has none."""
        if self._multipliers is None or not self._known[part].all():
            return None
        return self._multipliers[part]

    def put(self, part: slice, multipliers: np.ndarray) -> None:
        if not self._keep:
            return
        if self._multipliers is None:
            self._multipliers = np.zeros((self._size, multipliers.shape[1]))
        self._multipliers[part], self._known[part] = multipliers, True


def sweep(
    model: CostModel,
    features: Any,
    sets: OptimalitySet,
    *,
    warm: WarmStart,
    threads: int | None = None,
) -> Sweep:
    """Project the model's costs chunk by chunk, and let the model take the projections in."""
    tally = Tally()
    for part in chunks(len(sets)):
        costs, own = model.cost(features[part]), sets[part]
        before = time.perf_counter()
        near = project(costs, own, warm_start=warm.of(part), threads=threads)
        tally.projecting += time.perf_counter() - before
        warm.put(part, near.multipliers)
        model.add(features[part], costs, near.point)
        size = np.sqrt(np.einsum("ij,ij->i", costs, costs))
        tally.add(near, np.maximum(size, own.margins))
    return tally.sweep()
