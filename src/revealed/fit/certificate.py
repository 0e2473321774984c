"""Whether a fitted model explains the decisions it has seen, and if not, how far off it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .history import StopReason
from .sweep import Sweep

PROJECTION = 1e-8
"""What projections are exact to, so what `tol` cannot go below."""


@dataclass(frozen=True)
class Certificate:
    """Two convex sets face each other: the costs that explain the decisions, and the costs that the
    model can predict. They meet, or this is how far apart they are. Print it to read it.
    """

    interpolates: bool
    """Every predicted cost explains its decision with the margin, to a relative distance of
    `tol`."""
    h: float
    """The mean of 1/2 distance^2."""
    mean_distance: float
    max_distance: float
    set_distance: float
    """sqrt(2 B h): the distance of the two sets if h is at its minimum, else a bound from above."""
    inside: int
    """Predicted costs that lie in their set, to `tol`."""
    samples: int
    unsolved: int
    """Projections that missed their tolerance: their distances are bounds from above."""
    trivial: bool
    """All predicted costs are 0, which explains anything where no margin is asked for."""
    reason: StopReason

    @classmethod
    def of(cls, done: Sweep, tol: float, reason: StopReason) -> Certificate:
        inside = int((done.relative <= max(tol, PROJECTION)).sum())
        return cls(
            interpolates=inside == len(done.distance),
            h=done.h,
            mean_distance=float(done.distance.mean()),
            max_distance=float(done.distance.max()),
            set_distance=float(np.sqrt((done.distance**2).sum())),
            inside=inside,
            samples=len(done.distance),
            unsolved=done.unsolved,
            trivial=done.trivial,
            reason=reason,
        )

    def __str__(self) -> str:
        told = [self._verdict()]
        # Minibatches are measured while the model moves, and the best model on validation data may
        # be an earlier one: then what ended the training is not said of the model that was kept.
        if self.interpolates or self.reason is not StopReason.INTERPOLATED:
            told.append(self.reason.sentence)
        if self.trivial and self.interpolates:
            told.append(
                "All predicted costs are 0, which explains anything: ask for a margin above 0."
            )
        if self.unsolved:
            told.append(
                f"{self.unsolved} projections missed their tolerance, so their distances are only "
                "bounds from above."
            )
        return " ".join(told)

    def _verdict(self) -> str:
        if self.interpolates:
            return f"The model explains all {self.samples} decisions with the margin."
        how = (
            f"{self.inside} of {self.samples} predicted costs explain their decision with the "
            f"margin; the others miss their set, by up to {self.max_distance:.3g} and on average "
            f"over all by {self.mean_distance:.3g} (h = {self.h:.4g})."
        )
        between = "The distance between what the model can predict and what explains the decisions"
        if self.reason is StopReason.NO_PROGRESS:
            ending = "has stopped closing: no model of this kind seems to explain them all."
            return f"{how} {between} is about {self.set_distance:.3g} and {ending}"
        return f"{how} {between} is at most {self.set_distance:.3g}."
