"""Two-stage learning: fit the costs, and think of decisions only afterwards.

Letters: B samples, n cost entries.
"""

from __future__ import annotations

from torch import Tensor

from ...problems.protocol import LinearObjective
from ..base import Batch, DecisionLoss


class RegressionLoss(DecisionLoss):
    """Half the squared distance from the true cost.

        1/2 |c - c*|^2        gradient  c - c*

    Needs true costs. Calls no oracle; decisions are checked like those of any other loss, but not
    used. The mean is over samples, not over entries: it is n/2 times `torch.nn.MSELoss`.

    It is what every decision-focused loss has to beat: cheapest of all, and the best there is
    where the model can be right about the costs themselves.

    Parameters
    ----------
    problem : LinearProgram or other problem with linear costs
        What the decision maker may do.
    reduction : "mean", "sum" or "none"
        "none" returns one loss for each sample, (B,).
    """

    name = "two-stage"
    oracle_calls = "none"
    works_on_device = True
    accepts = LinearObjective
    needs_true_costs = True

    def per_sample(self, batch: Batch) -> tuple[Tensor, Tensor]:
        assert batch.true_costs is not None  # needed, so the base class has asked for them
        gap = batch.costs - batch.true_costs
        return 0.5 * gap.square().sum(1), gap
