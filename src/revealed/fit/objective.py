"""What a solver asks of the data it minimizes over, wherever they are.

`Evaluator` is the mean loss over samples in memory. `partitioned.PartitionedObjective` is the same
over partitions that workers hold: in threads, in processes, on a cluster. Solvers know neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from .models import ConvexModel, CostModel

if TYPE_CHECKING:
    from .evaluation import DistanceLoss, Evaluation, Evaluator, Summary


class DualTotals(NamedTuple):
    """Sums over samples and draws that prove a bound on the minimum; see `bound`."""

    gram: np.ndarray
    """(r, r) of the lifts of all y that may become longer, by their weights."""
    sums: np.ndarray
    """(r,) of the lifts: what must be 0."""
    weight: float
    """Of all samples and draws."""
    along: float
    """Sum of <y, noise + offset - projection>, averaged over draws."""
    square: float
    """Sum of |y|^2, likewise."""
    longest: float
    """Length of the longest y."""
    pull: np.ndarray
    """What the y together pull the weights of the model with."""

    def plus(self, other: DualTotals) -> DualTotals:
        """Those of both groups of samples."""
        both: list[Any] = [a + b for a, b in zip(self, other, strict=True)]
        both[5] = max(self.longest, other.longest)
        return DualTotals(*both)


class Objective(Protocol):
    """The mean loss of models over one data set."""

    loss: DistanceLoss
    evaluations: int
    """Passes over the data that evaluated the loss."""
    projections: int
    threads: int | None

    def __len__(self) -> int:
        """How many samples there are."""
        ...

    @property
    def n_parameters(self) -> int: ...

    def __call__(self, model: CostModel, features: Any) -> Evaluation | Summary:
        """Evaluate, and let the model take in what moves it down: costs less gradients."""
        ...

    def look(self, model: CostModel, features: Any) -> Evaluation | Summary:
        """Evaluate a model that learns nothing from it."""
        ...

    def describe(self, model: CostModel, features: Any) -> Evaluation | Summary:
        """The plain distances of a model that is not changed any more."""
        ...

    def pace(self) -> dict[str, Any]:
        """Columns of a History on how fast evaluations are; empty where nobody waits for them."""
        ...

    def part(self, features: Any, least: int) -> tuple[Any, Objective] | None:
        """About a tenth of the samples, at least `least`, to begin a fit on; None where that would
        save nothing."""
        ...

    def in_memory(self, features: Any) -> tuple[Any, Evaluator]:
        """All samples, or as many of them as are held in memory to be looked at one by one."""
        ...

    @property
    def keeps_duals(self) -> bool:
        """Whether the gradients of all samples may be kept in memory."""
        ...

    def dual_totals(
        self, model: ConvexModel, moved: ConvexModel, features: Any, pushes: list[np.ndarray]
    ) -> DualTotals:
        """Sums over gradients at `model`, scaled as the step to `moved` and `pushes` say."""
        ...
