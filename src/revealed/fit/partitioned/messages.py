"""What a driver and its workers tell each other. Letters: n cost entries, p features."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from ...datasets.partitions import Partitions
from ..draws import Place
from ..evaluation import DistanceLoss, Evaluation, Summary
from ..least_squares import RowFactor


@dataclass(frozen=True)
class Orders:
    """How partitions are to be read."""

    data: Partitions
    margin: float
    infeasible: str
    decision_tol: Any
    center: bool
    """Whether the model has an intercept."""
    budget: float
    """Bytes of a share that stay in memory."""
    scratch: str | None
    token: str
    """Tells this fit from others that the same workers serve."""
    entries: np.ndarray | None = None
    """(n, p) features of the entries, for a model of these instead of contexts."""

    def only(self, k: int) -> Orders:
        """Those for partition k, to be sent to who reads it."""
        return replace(self, data=self.data.only(k))


@dataclass
class Found:
    """What a share has found in its partition."""

    samples: int
    rows: RowFactor
    row_used: np.ndarray
    heaviest: float
    weight: float
    squares: float
    """Of weights."""
    in_memory: int
    on_disk: int
    infeasible: int = 0
    """Decisions left out because they break their constraints."""
    repaired: int = 0
    """Decisions moved to the nearest that obey their constraints."""
    left_out: int = 0
    """Rows left out because their features cannot be used."""
    skipped: list[str] = field(default_factory=list)
    seconds: float = 0.0
    peak: int = 0
    """Bytes: the most memory that the process has had."""


class Whole(NamedTuple):
    """What the partitions of a data set have in common, known once all are read."""

    row_used: np.ndarray
    """(m_ub,) whether each inequality binds anywhere."""
    heaviest: float
    """The largest weight, in units of which samples count."""


class Question(NamedTuple):
    """What is asked about a model: how far its costs are from the sets."""

    model: Any
    loss: DistanceLoss
    whole: Whole
    place: Place
    learn: bool
    tol: float
    """Relative distance up to which samples are counted as inside."""


class DualQuestion(NamedTuple):
    """What is asked for a bound on the minimum, see `bound.totals_of`."""

    model: Any
    moved: Any
    pushes: list[np.ndarray]
    loss: DistanceLoss
    whole: Whole
    place: Place


class Answer(NamedTuple):
    """Sums over samples."""

    taken: tuple[np.ndarray, ...] | None
    """What the model took in."""
    value: float
    weight: float
    squared: float
    distance: float
    squares: float
    max_distance: float
    max_relative: float
    samples: int
    inside: int
    unsolved: int
    trivial: bool
    projecting: float
    seconds: float
    """By the clock, those of all threads added."""
    processor: float
    """Seconds of the processor."""
    peak: int

    @classmethod
    def of(cls, done: Evaluation, tol: float, **spent: Any) -> Answer:
        """What samples were evaluated to; those within a relative `tol` are counted as inside, and
        `spent` are the last four fields, and what the model took in."""
        told, weight = done.summary(tol), float(done.weights.sum())
        return cls(
            value=told.h * weight,
            weight=weight,
            squared=told.squared * weight,
            distance=told.mean_distance * told.samples,
            squares=told.sum_of_squares,
            max_distance=told.max_distance,
            max_relative=told.max_relative,
            samples=told.samples,
            inside=told.inside,
            unsolved=told.unsolved,
            trivial=told.trivial,
            projecting=told.projection_seconds,
            **spent,
        )

    def plus(self, other: Answer) -> Answer:
        """Those of both groups of samples."""
        taken = None
        if self.taken is not None and other.taken is not None:
            taken = tuple(a + b for a, b in zip(self.taken, other.taken, strict=True))
        both: list[Any] = [a + b for a, b in zip(self[1:], other[1:], strict=True)]
        result = Answer(taken, *both)
        return result._replace(
            max_distance=max(self.max_distance, other.max_distance),
            max_relative=max(self.max_relative, other.max_relative),
            trivial=self.trivial and other.trivial,
            peak=max(self.peak, other.peak),
        )

    def summary(self) -> Summary:
        """What solvers read."""
        return Summary(
            samples=self.samples,
            h=self.value / self.weight,
            squared=self.squared / self.weight,
            mean_distance=self.distance / self.samples,
            max_distance=self.max_distance,
            max_relative=self.max_relative,
            sum_of_squares=self.squares,
            inside=self.inside,
            unsolved=self.unsolved,
            trivial=self.trivial,
            projection_seconds=self.projecting,
            fit_seconds=self.seconds - self.projecting,
        )
