"""What a fit has reached: how far from the minimum, and how far from explaining every decision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._common.words import every
from ..optimality.protocol import CostSet as Sets
from .evaluation import Evaluation, Evaluator, Summary
from .history import StopReason
from .limits.model import LimitCertificate
from .models import CostModel

PROJECTION = 1e-8
"""What projections are exact to, so what `tol` cannot go below."""


@dataclass(frozen=True, kw_only=True)
class Convergence:
    """How far the loss that was minimized is from its minimum."""

    value: float
    """The loss reached, penalty included."""
    lower_bound: float
    """A number that no model of this kind can go below, proved; 0 where there is no better one."""
    converged: bool
    convex: bool = True
    """False for a loss whose minimum may be a local one."""
    evaluations: int = 0
    """Of the loss and its gradient."""
    projections: int = 0

    @property
    def sentence(self) -> str:
        """What is known of the minimum, in words."""
        spent = f"after {self.evaluations} evaluations"
        if self.converged and not self.convex:
            return f"Converged: loss {self.value:.4g} {spent}, a minimum that may be a local one."
        share = (self.value - self.lower_bound) / self.value if self.value else 0.0
        if self.converged and share <= 1.0 - 1e-9 and self.lower_bound > 0:
            return (
                f"Converged: the loss, {self.value:.4g}, is proved to be within {share:.1e} of its "
                f"minimum {spent}."
            )
        if self.converged:
            if self.value <= 1e-12:
                return f"Converged: the loss is 0 {spent}."
            return (
                f"Converged: loss {self.value:.4g} {spent}, its gradient nearly 0. Without a ridge "
                "nothing proves how near the minimum is."
            )
        proved = (
            f"the minimum is at least {self.lower_bound:.4g}"
            if self.lower_bound > 0
            else "no bound on the minimum is proved"
        )
        return f"Not converged: loss {self.value:.4g} {spent}, {proved}."


@dataclass(frozen=True)
class Certificate:
    """Two convex sets face each other: the costs that explain the decisions, and the costs that the
    model can predict. They meet, or this is their distance. Print it for a summary.
    """

    interpolates: bool
    """Every predicted cost explains its decision with the margin, to a relative distance of
    `tol`."""
    h: float
    """The mean of 1/2 distance^2."""
    mean_distance: float
    """Over samples, of predicted costs from the costs that explain the decision."""
    max_distance: float
    """The largest of these distances."""
    set_distance: float
    """sqrt(2 B h): the distance of the two sets if h is at its minimum, else a bound from above."""
    inside: int
    """Predicted costs that lie in their set, to `tol`."""
    samples: int
    """How many were learned from."""
    unsolved: int
    """Projections that missed their tolerance: their distances are bounds from above."""
    trivial: bool
    """All predicted costs are 0, which explains anything where no margin is asked for."""
    reason: StopReason
    """Why the fit ended."""
    convergence: Convergence | None = None
    """How far from the minimum; None for training that has no one loss to minimize."""
    limits: LimitCertificate | None = None
    """What is known of limits that were learned along with the costs. All else is said of the costs
    given which limits are active where."""

    @classmethod
    def of(
        cls,
        evaluation: Evaluation | Summary,
        tol: float,
        reason: StopReason,
        convergence: Convergence | None = None,
    ) -> Certificate:
        done = evaluation.summary(inside_at(tol))
        return cls(
            interpolates=done.inside == done.samples,
            h=done.squared,
            mean_distance=done.mean_distance,
            max_distance=done.max_distance,
            set_distance=float(np.sqrt(done.sum_of_squares)),
            inside=done.inside,
            samples=done.samples,
            unsolved=done.unsolved,
            trivial=done.trivial,
            reason=reason,
            convergence=convergence,
        )

    # What DESIGN calls by these names; NaN and None where nothing was minimized as a whole.

    @property
    def value(self) -> float:
        """The loss that was minimized, penalty included."""
        return np.nan if self.convergence is None else self.convergence.value

    @property
    def lower_bound(self) -> float:
        """What no model of this kind can go below."""
        return 0.0 if self.convergence is None else self.convergence.lower_bound

    @property
    def gap(self) -> float:
        """How far the loss can be above its minimum at most; `value` itself where nothing better
        is proved."""
        return self.value - self.lower_bound

    @property
    def relative_gap(self) -> float:
        """`gap` as a share of `value`; 0 for a loss of 0."""
        return self.gap / self.value if self.value else 0.0

    @property
    def converged(self) -> bool:
        """Whether the minimum was reached, to `tol`."""
        return self.convergence is not None and self.convergence.converged

    def __str__(self) -> str:
        sentences = [self._verdict()]
        if self.convergence is not None:
            sentences.append(self.convergence.sentence)
        # Minibatches are measured while the model moves, and the best model on validation data may
        # be an earlier one: then what ended the training is not said of the model that was kept.
        elif self.interpolates or self.reason is not StopReason.INTERPOLATED:
            sentences.append(self.reason.sentence)
        if self.trivial and self.interpolates:
            sentences.append(
                "All predicted costs are 0, which explains anything: ask for a margin above 0."
            )
        if self.unsolved:
            sentences.append(
                f"{self.unsolved} projections missed their tolerance, so their distances are only "
                "bounds from above."
            )
        if self.limits is not None:
            sentences.append(str(self.limits))
        return " ".join(sentences)

    def _verdict(self) -> str:
        if self.interpolates:
            return f"The model explains {every(self.samples, 'decision')} with the margin."
        return (
            f"{self.inside} of {self.samples} predicted costs explain their decision with the "
            f"margin; on average they are {self.mean_distance:.3g} away from explaining it, at "
            f"most {self.max_distance:.3g} (h = {self.h:.4g})."
        )


def inside_at(tol: float) -> float:
    """The relative distance up to which a cost counts as inside its set."""
    return max(tol, PROJECTION)


def describe(
    model: CostModel, features: Any, sets: Sets, *, threads: int | None = None
) -> Evaluation:
    """The plain distances of a model that is not changed any more."""
    return Evaluator(sets, warm_start=False, threads=threads).look(model, features)
