"""The decision of a quadratic program, differentiated through its KKT conditions as they stand.

Letters: B samples, n cost entries, m rows, N entries of the standard form.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ...problems.linear import LinearProgram
from .._options import check_criterion, check_positive, judge
from ..base import Batch, DecisionLoss
from .interior import Point, central_point, check_solved
from .standard_form import Form, standard_form, with_slacks

SMALL = 1e-11
"""The barrier weight at which the interior point stands for the solution, as a share of costs."""
SHARP = 1e-2
"""How exactly it is the point of that weight, so that it does not depend on the batch."""
RIDGE = 1e-12
"""Taken from the diagonal of the multipliers' block, which dependent rows make singular; only a
multiplier on which nothing depends feels it."""


class OptNetLoss(DecisionLoss):
    """What the decision of a regularized program is worth, by implicit differentiation.

        x^ = argmin <c, x> + tau/2 |x|^2   over the same decisions

        criterion="decision"    1/2 |x^ - x*|^2
        criterion="regret"      <c*, x^ - x*>

    The KKT conditions hold at x^ with multipliers lambda of the bounds and nu of the rows. Their
    derivative is one linear system in (dx, dlambda, dnu), solved once for each sample with the
    gradient of the worth on its right side:

        [ tau I   G^T diag(lambda)   A^T ] [ dx      ]     [ gradient ]
        [ G       -diag(gap)         0   ] [ dlambda ] = - [ 0        ]
        [ A       0                  0   ] [ dnu     ]     [ 0        ]

    and dx is the gradient in c. Where no bound is tight with a multiplier of 0 that is the
    derivative of `QPTLLoss`, which is this method applied to linear programs; there the tight
    bounds are decided first, and here the system is taken as the interior point leaves it.

    Needs true costs for "regret" only. No oracle call; one quadratic program for each sample and
    one dense system of N + N + m unknowns, so it is for small problems.

    Source: Amos and Kolter, *OptNet: Differentiable Optimization as a Layer in Neural Networks*
    (ICML 2017).

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

    name = "optnet"
    oracle_calls = "none; one quadratic program and one dense system"

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
        point = central_point(form, with_slacks(costs, form), mu, sharp=SHARP)
        check_solved(point, "constraints that no decision meets")
        n = costs.shape[1]
        value, gradient = judge(self.criterion, point.z[:, :n], batch)
        return value, _implicit(form, point, with_slacks(gradient, form))[:, :n]

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, tau={self.tau:g}, criterion={self.criterion!r}"


def _implicit(form: Form, point: Point, gradient: Tensor) -> Tensor:
    """(B, N): dx of the system above, for a gradient (B, N) in x^.

    Only one bound of an entry can push, so each entry has one row of G: the bound that does.
    """
    B, N = gradient.shape
    m = form.rows.shape[1]
    at_low = point.reduced >= 0
    gap = torch.where(at_low, point.z - form.low, form.high - point.z)
    fixed = form.low == form.high
    # A bound that is not there never pushes: any finite gap says so.
    gap = torch.where(fixed, 0.0, torch.where(gap.isfinite(), gap.clamp_min(0.0), 1.0))
    force = torch.where(fixed, 1.0, point.reduced.abs())
    side = torch.where(at_low, -1.0, 1.0).to(gradient)
    system = gradient.new_zeros(B, 2 * N + m, 2 * N + m)
    x, bounds, rows = slice(0, N), slice(N, 2 * N), slice(2 * N, None)
    system[:, x, x].diagonal(dim1=1, dim2=2).copy_(form.curve.expand(B, N))
    system[:, x, bounds].diagonal(dim1=1, dim2=2).copy_(side * force)
    system[:, bounds, x].diagonal(dim1=1, dim2=2).copy_(side)
    system[:, bounds, bounds].diagonal(dim1=1, dim2=2).copy_(-gap)
    system[:, x, rows] = form.rows.transpose(1, 2)
    system[:, rows, x] = form.rows
    system[:, rows, rows].diagonal(dim1=1, dim2=2).fill_(-RIDGE)
    right = gradient.new_zeros(B, 2 * N + m)
    right[:, x] = -gradient
    return torch.linalg.solve(system, right)[:, x]
