"""The decision made smooth by a quadratic term, and then differentiated through its conditions.

Letters: B samples, n cost entries.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ...problems.linear import LinearProgram
from .._options import check_criterion, check_positive, judge
from ..base import Batch, DecisionLoss
from .interior import Point, central_point, check_solved, factorize, pull_back, solve_with
from .standard_form import Form, standard_form, times, times_transposed, with_slacks

SMALL = 1e-8
"""The barrier weight at which the interior point is near enough to show which bounds are tight, as
a share of the costs."""
NEAR = 1e-3
"""How far from the interior point the solution on the face it points to can be, as a share of the
right-hand side."""
ROUNDING = 1e-9
"""By how much that solution may break a constraint, likewise."""
LOOSE = 1e12
"""Softness of a slack that is not tight, in units of an entry's: its row asks for nothing."""


class QPTLLoss(DecisionLoss):
    """What the decision of a quadratic program near the linear one is worth.

        x^ = argmin <c, x> + tau/2 |x|^2   over the same decisions

        criterion="decision"    1/2 |x^ - x*|^2
        criterion="regret"      <c*, x^ - x*>

    The quadratic term makes x^ unique and piecewise linear in c. Its derivative comes from the
    conditions of optimality, differentiated at x^: with P the projection onto the directions that
    keep every tight constraint tight, dx^ = -1/tau P dc. A larger `tau` smooths more and draws x^
    to the shortest decision.

    Needs true costs for "regret" only. No oracle call; one quadratic program for each sample, all
    at once by an interior-point method.

    Source: Wilder, Dilkina and Tambe, *Melding the Data-Decisions Pipeline: Decision-Focused
    Learning for Combinatorial Optimization* (AAAI 2019).

    Parameters
    ----------
    problem : LinearProgram
        What the decision maker may do.
    tau : float
        Weight of the quadratic term, above 0. A larger one smooths more.
    criterion : "decision" or "regret"
        How the decision is judged: by its distance from the observed one, or by the true cost.
        "regret" needs `true_costs` in every call.
    reduction : "mean", "sum" or "none"
        "none" returns one loss for each sample, (B,).
    """

    name = "qptl"
    oracle_calls = "none; one quadratic program"

    def __init__(
        self,
        problem: LinearProgram,
        *,
        tau: float = 1.0,
        criterion: str = "decision",
        reduction: str = "mean",
    ) -> None:
        super().__init__(problem, reduction=reduction)
        self.needs_true_costs = check_criterion(criterion)
        self.criterion, self.tau = criterion, check_positive(tau, "tau")

    def per_sample(self, batch: Batch) -> tuple[Tensor, Tensor]:
        costs = batch.costs
        if not len(costs):
            return costs.sum(1), costs
        form = standard_form(batch.problem, self.tau, costs.device)
        mu = SMALL * (costs.abs().amax(1) + self.tau)
        point = central_point(form, with_slacks(costs, form), mu, sharp=10.0)
        check_solved(point, "constraints that no decision meets")
        chosen, soft = _finished(form, costs, point)
        value, gradient = judge(self.criterion, chosen, batch)
        return value, pull_back(form, soft, with_slacks(gradient, form))[:, : costs.shape[1]]

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, tau={self.tau:g}, criterion={self.criterion!r}"


def _finished(form: Form, costs: Tensor, point: Point) -> tuple[Tensor, Tensor]:
    """Decisions (B, n) and the softness (B, N) of their entries, to the last digit.

    On the face of the tight constraints the problem is a system of linear equations. Its solution
    replaces the interior point, unless it breaks a constraint or is somewhere else: the face was
    the wrong one then, which happens where a constraint is tight and its multiplier 0.
    """
    n = costs.shape[1]
    tau = form.curve[:, :1]
    soft = torch.where(point.tight, 0.0, 1.0 / tau)
    soft[:, n:] *= LOOSE
    held = torch.where(point.tight, point.snapped, 0.0)
    shift = soft * with_slacks(costs, form)
    y = solve_with(factorize(form, soft), form.rhs - times(form.rows, held - shift))
    x = (held + soft * times_transposed(form.rows, y) - shift)[:, :n]
    found, size = point.z[:, :n], 1.0 + form.rhs.abs().amax(1)
    near = (x - found).abs().amax(1) <= NEAR * size
    exact = (near & (_broken(form, x) <= ROUNDING * size))[:, None]
    return torch.where(exact, x, found), torch.where(exact, soft, point.soft)


def _broken(form: Form, x: Tensor) -> Tensor:
    """(B,): by how much decisions break their constraints at most."""
    left = form.rhs - times(form.rows, with_slacks(x, form))
    left, slacks = left.split([left.shape[1] - form.slacks, form.slacks], dim=1)
    z = torch.cat([x, slacks], dim=1)
    return torch.cat([left.abs(), form.low - z, z - form.high], dim=1).amax(1)
