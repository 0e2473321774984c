"""The decision differentiated as if it were minus the cost.

Letters: B samples, n cost entries.
"""

from __future__ import annotations

from torch import Tensor

from ...errors import InputError
from ...problems.linear import LinearProgram
from ...problems.protocol import LinearObjective
from .._options import check_criterion, judge
from ..base import Batch, DecisionLoss

PROJECTIONS = (None, "mean", "norm", "std")


class StraightThroughLoss(DecisionLoss):
    """What the decision x(c) is worth, with -1 for its derivative in the cost.

        criterion="decision"    1/2 |x(c) - x*|^2      gradient  x* - x(c)
        criterion="regret"      <c*, x(c) - x*>        gradient  -c*

    The decision is piecewise constant in the cost and its derivative 0 or undefined; an entry
    that costs more is chosen less, and -I says no more than that. The first gradient is also that
    of <c, x* - x(c)>, the loss of the structured perceptron.

    Needs true costs for "regret" only. One oracle call for each sample.

    `normalize` takes out of the gradient g what cannot change the decision, by passing it through
    the derivative of a projection of the cost:

        "mean"    c - mean(c)            where all decisions have the same sum, as in matchings
        "norm"    c / |c|                always
        "std"     first one, then the other

    The oracle sees c itself, which has the same decision. None, the default, is what PyEPO does.

    Source: Sahoo, Paulus, Vlastelica, Musil, Kuleshov and Martius, *Backpropagation through
    Combinatorial Algorithms: Identity with Projection Works* (ICLR 2023; arXiv 2022).

    Parameters
    ----------
    problem : LinearProgram or other problem with linear costs
        What the decision maker may do.
    criterion : "decision" or "regret"
        How the decision is judged: by its distance from the observed one, or by the true cost.
        "regret" needs `true_costs` in every call.
    normalize : "mean", "norm", "std" or None
        Which projection of the cost the gradient passes through, as above.
    reduction : "mean", "sum" or "none"
        "none" returns one loss for each sample, (B,).
    """

    name = "st"
    oracle_calls = "one"
    works_on_device = True
    accepts = LinearObjective

    def __init__(
        self,
        problem: LinearProgram,
        *,
        criterion: str = "decision",
        normalize: str | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(problem, reduction=reduction)
        self.needs_true_costs = check_criterion(criterion)
        if normalize not in PROJECTIONS:
            raise InputError(
                f"`normalize` must be None, 'mean', 'norm' or 'std'; got {normalize!r}."
            )
        self.criterion, self.normalize = criterion, normalize

    def per_sample(self, batch: Batch) -> tuple[Tensor, Tensor]:
        value, gradient = judge(self.criterion, batch.decide(batch.costs), batch)
        return value, _through_projection(self.normalize, batch.costs, -gradient)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, criterion={self.criterion!r}, normalize={self.normalize!r}"


def _through_projection(name: str | None, c: Tensor, gradient: Tensor) -> Tensor:
    """The transposed derivative of the projection at c, times the gradient, (B, n)."""
    if name in ("mean", "std"):
        c, gradient = _centered(c), _centered(gradient)
    if name in ("norm", "std"):
        length = c.norm(dim=1, keepdim=True)
        unit = c / length
        gradient = (gradient - unit * (unit * gradient).sum(1, keepdim=True)) / length
        gradient = gradient.where(length > 0, 0.0)  # a cost without direction has none to turn
    return gradient


def _centered(rows: Tensor) -> Tensor:
    return rows - rows.mean(1, keepdim=True)
