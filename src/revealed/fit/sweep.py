"""One pass over a data set: predicted costs, their projections, and how far apart they are."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..mixed import Sets
from ..projection import project
from ..projection.result import refuse_empty
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
    h: float
    """The mean of 1/2 distance^2, samples counted by their weights."""

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
        self._squares, self._counted = 0.0, 0.0
        self._unsolved = 0
        self.projecting = 0.0
        """Seconds spent in projections; whoever projects adds to it."""

    def add(self, near: Any, size: Any, weights: Any) -> None:
        """Count a batch: a Projection, the length of each cost or its margin if that is more, and
        what each sample counts.

        A size of 0 is that of a cost of 0 with no margin.
        """
        self._distance.append(near.distance)
        self._size.append(size)
        self._squares += float(weights @ near.distance**2)
        self._counted += float(weights.sum())
        if not near.solved.all():
            self._unsolved += int(np.sum(~near.solved))

    def sweep(self) -> Sweep:
        """The batches in the order in which they came."""
        distance, size = np.concatenate(self._distance), np.concatenate(self._size)
        # A cost of 0 has no size of its own; where it does not explain its decision (no linear
        # program's, but a quadratic one's) the distance itself is what is left to go by.
        relative = np.divide(distance, size, out=distance.copy(), where=size > 0)
        rest = self.seconds()["fit_seconds"]
        trivial, h = not (size.any() or distance.any()), 0.5 * self._squares / self._counted
        return Sweep(distance, relative, self._unsolved, trivial, self.projecting, rest, h)

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
    sets: Sets,
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
        refuse_empty(near)
        warm.put(part, near.multipliers)
        model.add(features[part], costs, _targets(costs, near.point, own.weights))
        size = np.sqrt(np.einsum("ij,ij->i", costs, costs))
        tally.add(near, np.maximum(size, own.margins), own.weights)
    return tally.sweep()


def _targets(costs: np.ndarray, points: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """What the model is fitted to: the points, or as much of the way there as a sample counts."""
    if (weights == 1.0).all():
        return points
    return costs + weights[:, None] * (points - costs)
