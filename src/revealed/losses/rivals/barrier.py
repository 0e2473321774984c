"""The decision made smooth by staying off its bounds, and then differentiated.

Letters: B samples, n cost entries.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ...problems.linear import LinearProgram
from .._options import check_criterion, check_positive, judge
from ..base import Batch, DecisionLoss
from .interior import central_point, check_solved, pull_back
from .standard_form import standard_form, with_slacks

SHARP = 1e-8
"""How exactly the point is that of `mu`."""


class BarrierLoss(DecisionLoss):
    """What the decision of an interior-point method that stops early is worth.

        x^ = argmin <c, x> - mu sum of the logarithms of all distances from bounds and inequalities

        criterion="decision"    1/2 |x^ - x*|^2
        criterion="regret"      <c*, x^ - x*>

    x^ is the point of the central path with parameter `mu`: smooth in c, the decision itself in the
    limit mu = 0. Its derivative comes from the conditions of optimality, differentiated at x^. This
    is the plain log-barrier form, with the point exactly that of `mu`, so that the gradient is the
    exact one of the value. IntOpt is its relative: Mandi and Guns stop the homogeneous self-dual
    method once its mu is below a limit and differentiate its equations. Some decision must
    be strictly inside all bounds and inequalities, and the cost must not fall without limit. An
    entry without any bound costs accuracy: five digits are left.

    Needs true costs for "regret" only. No oracle call; one barrier problem for each sample, all at
    once.

    Sources: Cameron, Hartford, Lundy and Leyton-Brown, *The Perils of Learning Before Optimizing*
    (AAAI 2022), to which the paper credits the plain form; Mandi and Guns, *Interior Point Solving
    for LP-based prediction+optimization* (NeurIPS 2020), the homogeneous one.

    Parameters
    ----------
    problem : LinearProgram
        What the decision maker may do.
    mu : float
        Weight of the barrier, above 0. A larger one smooths more.
    criterion : "decision" or "regret"
        How the decision is judged: by its distance from the observed one, or by the true cost.
        "regret" needs `true_costs` in every call.
    reduction : "mean", "sum" or "none"
        "none" returns one loss for each sample, (B,).
    """

    name = "intopt"
    oracle_calls = "none; one barrier problem"

    def __init__(
        self,
        problem: LinearProgram,
        *,
        mu: float = 0.1,
        criterion: str = "decision",
        reduction: str = "mean",
    ) -> None:
        super().__init__(problem, reduction=reduction)
        self.needs_true_costs = check_criterion(criterion)
        self.criterion, self.mu = criterion, check_positive(mu, "mu")

    def per_sample(self, batch: Batch) -> tuple[Tensor, Tensor]:
        costs = batch.costs
        if not len(costs):
            return costs.sum(1), costs
        form = standard_form(batch.problem, 0.0, costs.device)
        mu = torch.full_like(costs[:, 0], self.mu)
        point = central_point(form, with_slacks(costs, form), mu, sharp=SHARP)
        check_solved(
            point, "no decision strictly inside its constraints, or a cost that falls without limit"
        )
        n = costs.shape[1]
        value, gradient = judge(self.criterion, point.z[:, :n], batch)
        return value, pull_back(form, point.soft, with_slacks(gradient, form))[:, :n]

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, mu={self.mu:g}, criterion={self.criterion!r}"
