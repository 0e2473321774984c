"""The decision differentiated by looking where it goes if the cost follows the gradient.

Letters: B samples, n cost entries.
"""

from __future__ import annotations

from torch import Tensor

from ...problems.linear import LinearProgram
from ...problems.protocol import LinearObjective
from .._options import check_criterion, check_floor, check_positive, judge, raised
from ..base import Batch, DecisionLoss


class BlackboxLoss(DecisionLoss):
    """What the decision x(c) is worth, with a finite difference of decisions for its gradient.

        criterion="decision"    1/2 |x(c) - x*|^2      g = x(c) - x*
        criterion="regret"      <c*, x(c) - x*>        g = c*

        gradient  (x(c + lam g) - x(c)) / lam

    For the regret that is the exact gradient of (min_x <c + lam c*, x> - min_x <c, x>) / lam, which
    is continuous and equals <c*, x(c)> wherever x(c + lam c*) = x(c); a larger `lam` smooths more.
    The other criterion is taken as linear around x(c).

    Needs true costs for "regret" only. Two oracle calls for each sample. With `floor` the oracle
    sees costs raised to it, for graphs with cycles, where a shift below 0 has no shortest path.

    Source: Vlastelica, Paulus, Musil, Martius and Rolínek, *Differentiation of Blackbox
    Combinatorial Solvers* (ICLR 2020).

    Parameters
    ----------
    problem : LinearProgram or other problem with linear costs
        What the decision maker may do.
    lam : float
        Length of the step along the gradient, above 0. A larger one smooths more.
    criterion : "decision" or "regret"
        How the decision is judged: by its distance from the observed one, or by the true cost.
        "regret" needs `true_costs` in every call.
    floor : float or None
        Raise costs to at least this before the oracle sees them; None leaves them as they are.
    reduction : "mean", "sum" or "none"
        "none" returns one loss for each sample, (B,).
    """

    name = "bb"
    oracle_calls = "two"
    works_on_device = True
    accepts = LinearObjective

    def __init__(
        self,
        problem: LinearProgram,
        *,
        lam: float = 10.0,
        criterion: str = "decision",
        floor: float | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(problem, reduction=reduction)
        self.needs_true_costs = check_criterion(criterion)
        self.criterion, self.lam = criterion, check_positive(lam, "lam")
        self.floor = check_floor(floor)

    def per_sample(self, batch: Batch) -> tuple[Tensor, Tensor]:
        chosen = batch.decide(raised(batch.costs, self.floor))
        value, gradient = judge(self.criterion, chosen, batch)
        shifted = batch.decide(raised(batch.costs + self.lam * gradient, self.floor))
        return value, (shifted - chosen) / self.lam

    def extra_repr(self) -> str:
        return (
            f"{super().extra_repr()}, lam={self.lam:g}, criterion={self.criterion!r}, "
            f"floor={self.floor}"
        )
