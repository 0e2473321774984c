"""A convex upper bound of the regret, from true costs.

Letters: B samples, n cost entries.
"""

from __future__ import annotations

from torch import Tensor

from ...problems.linear import LinearProgram
from ...problems.protocol import LinearObjective
from .._options import check_floor, raised
from ..base import Batch, DecisionLoss


class SPOPlusLoss(DecisionLoss):
    """How far the observed decision is from optimal under the cost 2c - c*.

        max_x <c* - 2c, x> + 2 <c, x*> - <c*, x*>  =  <s, x* - x(s)>,   s = 2c - c*

        gradient  2 (x* - x(s)), a subgradient where x(s) is not unique

    Convex in c, never negative, and at least the regret <c*, x(c) - x*>, if x* is optimal under
    c*; then it is 0 at c = c*. A decision that is not (one observed with noise) still gives a
    convex loss, but no longer such a bound.

    Needs true costs. One oracle call for each sample. With `floor` the oracle and the value see s
    raised to it, for graphs with cycles, where a shift below 0 has no shortest path; the gradient
    is that of the loss without it.

    Source: Elmachtoub and Grigas, *Smart "Predict, then Optimize"* (Management Science 2022).

    Parameters
    ----------
    problem : LinearProgram or other problem with linear costs
        What the decision maker may do.
    floor : float or None
        Raise costs to at least this before the oracle sees them; None leaves them as they are.
    reduction : "mean", "sum" or "none"
        "none" returns one loss for each sample, (B,).
    """

    name = "spo+"
    oracle_calls = "one"
    works_on_device = True
    accepts = LinearObjective
    needs_true_costs = True

    def __init__(
        self, problem: LinearProgram, *, floor: float | None = None, reduction: str = "mean"
    ) -> None:
        super().__init__(problem, reduction=reduction)
        self.floor = check_floor(floor)

    def per_sample(self, batch: Batch) -> tuple[Tensor, Tensor]:
        assert batch.true_costs is not None  # needed, so the base class has asked for them
        shifted = raised(2.0 * batch.costs - batch.true_costs, self.floor)
        gap = batch.decisions - batch.decide(shifted)
        return (shifted * gap).sum(1), 2.0 * gap

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, floor={self.floor}"
