"""The angle between a predicted cost and the cone of costs that explain the decision.

Letters: B samples, n cost entries.
"""

from __future__ import annotations

import warnings

import numpy as np
import torch
from torch import Tensor

from ..._common.checks import positive_int
from ...errors import InputError
from ...optimality.sets import OptimalitySet
from ...problems.linear import LinearProgram
from ...projection import project
from .._options import check_share
from .._random import RandomLoss
from ..base import Batch
from ..projection import UnsolvedProjectionWarning
from .cone import inner_projection, mean_generator

VARIANTS = ("exact", "plus", "hybrid")
NOTHING = 1e-7
"""A projection shorter than this share of the cost is 0."""


class CaveLoss(RandomLoss):
    """One minus the cosine of the angle between the predicted cost and a target in the cone.

        1 - <c, t> / (|c| |t|)        gradient  -(t/|t| - cos c/|c|) / |c|,  t held fixed

    The cone holds the costs under which the decision is optimal: our OptimalitySet with margin 0,
    whatever the margin of the sets that are given. The variants differ in the target t:

        "exact"     the projection of c onto the cone. It lies on the edge, where decisions tie.
                    The gradient is that of the loss even if t moves with c. A cost that is
                    opposite to the cone has t = 0: loss 1, gradient 0.
        "plus"      an interior-point method on its way to the projection, stopped after
                    `max_iter` steps: inside the cone. The authors stop Clarabel after 3. Its steps
                    differ in detail (on 5x5 paths the two targets are 2 to 13 degrees apart), and
                    here the cost is first scaled to entries of size 1, so that the loss depends
                    on its direction alone.
        "hybrid"    that with probability `solve_ratio`, drawn once a call; else
                    (1 - inner_ratio) c/|c| + inner_ratio a, with a the mean of the directions
                    that generate the cone: one for each entry at a bound and each binding
                    inequality, two opposite ones for each equality.

    The authors treat decisions as binary: an entry of 1 counts as at its upper bound. Give the
    problem `ub=1.0` for the same cone; on acyclic graphs and for matchings it is the same anyway.

    Needs no true costs. No oracle call; one projection for each sample, or a part of one.

    Source: Tang and Khalil, *CaVE: A Cone-Aligned Approach for Fast Predict-then-Optimize with
    Binary Linear Programs* (CPAIOR 2024).

    Parameters
    ----------
    problem : LinearProgram
        What the decision maker may do.
    variant : "exact", "plus" or "hybrid"
        Which target, as above.
    max_iter : int
        Steps of the interior-point method of "plus" and "hybrid".
    solve_ratio : float
        Probability, from 0 to 1, with which a call of "hybrid" takes the target of "plus".
    inner_ratio : float
        Weight, from 0 to 1, of the mean direction in the other target of "hybrid".
    seed : int
        Of the draws.
    reduction : "mean", "sum" or "none"
        "none" returns one loss for each sample, (B,).
    """

    name = "cave"
    oracle_calls = "none; one projection"

    def __init__(
        self,
        problem: LinearProgram,
        *,
        variant: str = "exact",
        max_iter: int = 3,
        solve_ratio: float = 0.3,
        inner_ratio: float = 0.2,
        seed: int = 0,
        reduction: str = "mean",
    ) -> None:
        super().__init__(problem, seed=seed, reduction=reduction)
        if variant not in VARIANTS:
            raise InputError(f"`variant` must be 'exact', 'plus' or 'hybrid'; got {variant!r}.")
        self.variant = variant
        self.max_iter = positive_int(max_iter, "max_iter")
        self.solve_ratio = check_share(solve_ratio, "solve_ratio")
        self.inner_ratio = check_share(inner_ratio, "inner_ratio")
        self._has_warned = False

    def per_sample(self, batch: Batch) -> tuple[Tensor, Tensor]:
        if not len(batch.costs):
            return batch.costs.sum(1), batch.costs
        return _cosine_loss(batch.costs, self.target(batch))

    def target(self, batch: Batch) -> Tensor:
        """(B, n): what each cost should be turned to; only its direction matters."""
        sets, costs = _cones(batch), batch.costs
        if self.variant == "exact":
            return self._projection(costs, sets)
        if self.variant == "plus" or self._solves():
            return inner_projection(costs, sets, self.max_iter)
        middle = self.inner_ratio * mean_generator(sets).to(costs)
        return middle + (1.0 - self.inner_ratio) * _directions(costs)

    def extra_repr(self) -> str:
        return (
            f"{super().extra_repr()}, variant={self.variant!r}, max_iter={self.max_iter}, "
            f"solve_ratio={self.solve_ratio:g}, inner_ratio={self.inner_ratio:g}"
        )

    def _solves(self) -> bool:
        return float(torch.rand((), generator=self.generator)) < self.solve_ratio

    def _projection(self, costs: Tensor, sets: OptimalitySet) -> Tensor:
        p = project(costs.cpu().numpy(), sets)
        if not p.solved.all() and not self._has_warned:
            self._has_warned = True
            warnings.warn(
                f"{int((~p.solved).sum())} of {len(sets)} projections are not exact; they are used "
                "as they are, and this is not said again.",
                UnsolvedProjectionWarning,
                stacklevel=2,
            )
        point = torch.from_numpy(p.point).to(costs.device)
        # What rounding leaves of a projection that is 0 has a direction, but no meaning.
        size, whole = (
            torch.linalg.vector_norm(part, dim=1, keepdim=True) for part in (point, costs)
        )
        return point.where(size > NOTHING * whole, 0.0)


def _cones(batch: Batch) -> OptimalitySet:
    """The sets of the decisions, without a margin."""
    if batch.sets is None:
        return OptimalitySet(batch.problem, batch.decisions, 0.0)
    return batch.sets.replaced(margins=np.zeros(len(batch.sets)))


def _cosine_loss(costs: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    length = torch.linalg.vector_norm(costs, dim=1, keepdim=True)
    here, there = _directions(costs), _directions(target)
    cosine = (here * there).sum(1, keepdim=True)
    gradient = (cosine * here - there) / length.where(length > 0, 1.0)
    return 1.0 - cosine[:, 0], gradient


def _directions(rows: Tensor) -> Tensor:
    """Rows of length 1; a row of zeros has no direction and stays."""
    length = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
    return rows / length.where(length > 0, 1.0)
