"""The decision made smooth by noise in the cost, and then differentiated.

Letters: K draws, B samples, n cost entries.
"""

from __future__ import annotations

from torch import Tensor

from ...errors import InputError
from ...problems.linear import LinearProgram
from .._options import check_criterion, judge
from .._random import PerturbingLoss
from ..base import Batch


class PerturbedLoss(PerturbingLoss):
    """What the mean decision under noisy costs is worth.

        x^ = E x(c + sigma xi),  xi standard normal;  the mean of `n_samples` draws stands for E

        criterion="decision"    1/2 |x^ - x*|^2      g = x^ - x*
        criterion="regret"      <c*, x^ - x*>        g = c*

        gradient  E xi <x(c + sigma xi), g> / sigma

    The expectation is smooth in c although the decision is not, and its derivative needs no more
    than the decisions (the score-function estimator). Value and gradient use the same K draws;
    for "decision" both carry a bias of order 1/K, as the square of a mean does.

    `baseline=True` takes from each draw's worth <x(c + sigma xi), g> the mean worth of the other
    draws: as E xi = 0 the expectation stays, and the variance falls, by much where all decisions
    are worth about the same. It needs two draws. The paper has none; PyEPO has one by default.

    Needs true costs for "regret" only. `n_samples` oracle calls for each sample. With `floor` the
    oracle sees costs raised to it, for graphs with cycles, where noise below 0 has no shortest
    path; the gradient takes no notice.

    Source: Berthet, Blondel, Teboul, Cuturi, Vert and Bach, *Learning with Differentiable
    Perturbed Optimizers* (NeurIPS 2020).

    Parameters
    ----------
    problem : LinearProgram or other problem with linear costs
        What the decision maker may do.
    n_samples : int
        Draws of noise for each sample of a call.
    sigma : float
        Standard deviation of the noise, above 0.
    seed : int
        Of the draws.
    criterion : "decision" or "regret"
        How the decision is judged: by its distance from the observed one, or by the true cost.
        "regret" needs `true_costs` in every call.
    baseline : bool
        Whether to take the mean worth of the other draws from each; needs `n_samples` of at least
        2.
    floor : float or None
        Raise costs to at least this before the oracle sees them; None leaves them as they are.
    reduction : "mean", "sum" or "none"
        "none" returns one loss for each sample, (B,).
    """

    name = "dpo"
    oracle_calls = "n_samples"

    def __init__(
        self,
        problem: LinearProgram,
        *,
        n_samples: int = 10,
        sigma: float = 1.0,
        seed: int = 0,
        criterion: str = "decision",
        baseline: bool = False,
        floor: float | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(
            problem,
            n_samples=n_samples,
            sigma=sigma,
            seed=seed,
            floor=floor,
            reduction=reduction,
        )
        self.needs_true_costs = check_criterion(criterion)
        self.criterion, self.baseline = criterion, bool(baseline)
        if self.baseline and self.n_samples < 2:
            raise InputError("baseline=True needs another draw to compare with: n_samples >= 2.")

    def per_sample(self, batch: Batch) -> tuple[Tensor, Tensor]:
        noise, _, chosen = self.perturb(batch)
        value, gradient = judge(self.criterion, chosen.mean(0), batch)
        worth = (chosen * gradient).sum(2, keepdim=True)  # (K, B, 1)
        if self.baseline:  # the mean of the others: w - (K m - w) / (K - 1) = (w - m) K / (K - 1)
            worth = (worth - worth.mean(0)) * (self.n_samples / (self.n_samples - 1))
        return value, (noise * worth).mean(0) / self.sigma

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, criterion={self.criterion!r}, baseline={self.baseline}"
