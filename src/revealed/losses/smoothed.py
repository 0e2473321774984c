"""The distance loss for decisions that no cost of the model explains exactly.

Letters: K draws, B samples, n cost entries.
"""

from __future__ import annotations

from typing import NoReturn

import numpy as np
import torch
from torch import Tensor

from .._common.checks import positive_int
from ..errors import InputError
from ..optimality.sets import OptimalitySet
from ..problems.linear import LinearProgram
from ..problems.protocol import LinearObjective
from ..projection import project
from ..projection.distance import check_delta, check_power, length_of, value_and_gradient
from ..projection.triton import on_device, project_on_device
from ._device import COARSE, distance_on_device
from ._options import check_margin, check_positive
from ._questions import Questions
from ._random import RandomLoss
from .base import Batch


class SmoothedProjectionLoss(RandomLoss):
    """How far noisy predictions are from explaining the observed decision, on average.

        E 1/2 dist^2(c + sigma xi, C),   xi standard normal

        gradient  E [s - P(s)],  s = c + sigma xi;  the mean of `n_samples` draws stands for E

    Decisions are often taken under costs that vary around what the context predicts. A set C then
    holds the costs of one day, and the nearest point of C to the prediction is but the likeliest
    of them; the mean over draws is near to their average, as in an EM algorithm whose E-step
    perturbs and projects. Convex in c like the plain distance (`power=1` averages the distance
    itself), and no margin is needed to keep c = 0 out: the noise sets the scale, and only the ratio
    of margin to sigma changes what is learned. Half of sigma did a little better than 0 in trials.
    Draws come in pairs xi, -xi.

    Needs no true costs. No oracle call; `n_samples` projections for each sample.

    Parameters
    ----------
    problem : LinearProgram or other problem with linear costs
        What the decision maker may do.
    margin : float or None
        How clearly costs must favor the decision. It must agree with the margin of sets that are
        given. None takes that of the sets, and 0.5 for raw decisions.
    sigma : float
        Standard deviation of the noise, above 0.
    n_samples : int
        Draws of noise for each sample of a call.
    power : 1, 2, "huber" or "welsch"
        Of the distance that is averaged, as in `ProjectionLoss`.
    delta : float
        Where "huber" and "welsch" bend.
    seed : int
        Of the draws.
    fixed : bool
        Whether every call on the CPU draws the same numbers, as a line search on full batches
        needs.
    max_calls : int or None
        For whole decisions, the most questions to the oracle for each draw of a step, as in
        `ProjectionLoss`; `ask_every` likewise.
    ask_every : int
    threads : int or None
        Of the projections; None for every core.
    reduction : "mean", "sum" or "none"
        "none" returns one loss for each sample, (B,).
    """

    name = "smoothed"
    oracle_calls = "none"
    works_on_device = True
    accepts = LinearObjective

    def __init__(
        self,
        problem: LinearProgram,
        margin: float | None = None,
        *,
        sigma: float = 1.0,
        n_samples: int = 10,
        power: int | str = 2,
        delta: float = 1.0,
        seed: int = 0,
        fixed: bool = False,
        max_calls: int | None = None,
        ask_every: int = 1,
        threads: int | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(problem, seed=seed, reduction=reduction)
        check_power(power)
        check_delta(delta)
        self.margin = None if margin is None else check_margin(margin)
        self.power, self.delta, self.fixed = power, float(delta), fixed
        self.threads, self.questions = threads, Questions(max_calls, ask_every)
        self.sigma = check_positive(sigma, "sigma")
        self.n_samples = positive_int(n_samples, "n_samples")

    def noise(self, shape: tuple[int, ...], device: torch.device) -> Tensor:
        """(K, B, n) standard normal draws for one call, in pairs of opposite sign.

        To choose them, put a function in place of this one:
        `loss.noise = lambda shape, device: mine`.

        Parameters
        ----------
        shape : tuple of int
            (K, B, n): draws, samples, cost entries.
        device : torch.device
            That of the costs.

        Returns
        -------
        (K, B, n) Tensor
        """
        some = (-(-shape[0] // 2), *shape[1:])
        if device.type == "cuda":
            half = self.stream(device).draw(some)
        else:
            if self.fixed:
                self.generator.manual_seed(self.seed)
            half = torch.randn(some, generator=self.generator)
        return torch.cat([half, -half])[: shape[0]]

    def per_sample(self, batch: Batch) -> tuple[Tensor, Tensor]:
        shape = (self.n_samples, *batch.costs.shape)
        noise = self.noise(shape, batch.costs.device).to(batch.costs)
        costs = (batch.costs + self.sigma * noise).flatten(0, 1)
        there = batch.device_sets is not None or costs.is_cuda
        each = self._on_device if there else self._on_host
        value, gradient = each(batch, costs)
        return value.view(shape[:2]).mean(0), gradient.view_as(noise).mean(0)

    def _on_host(self, batch: Batch, costs: Tensor) -> tuple[Tensor, Tensor]:
        """Values and gradients of K rounds of the samples."""
        sets, q = self._sets(batch), costs.numpy()
        own = sets[np.tile(np.arange(len(sets)), self.n_samples)]
        p = project(q, own, threads=self.threads, **self.questions.options())
        each = value_and_gradient(q, p, length_of(q, own.margins), self.power, self.delta)
        return torch.from_numpy(each[0]), torch.from_numpy(each[1])

    def _on_device(self, batch: Batch, costs: Tensor) -> tuple[Tensor, Tensor]:
        sets = batch.device_sets
        if sets is None:
            sets = on_device(self._sets(batch), costs.device)
        if self.margin not in (None, sets.table.margin):
            self._refuse_margins()
        rounds = torch.arange(len(sets), device=sets.device).repeat(self.n_samples)
        own = sets[rounds]
        # Rounded to float32 or not, noise has made these costs: the coarse tolerance will do.
        p = project_on_device(costs, own, tol=COARSE, threads=self.threads)
        return distance_on_device(costs, own, p, self.power, self.delta)

    def _sets(self, batch: Batch) -> OptimalitySet:
        if batch.sets is None:
            margin = 0.5 if self.margin is None else self.margin
            return OptimalitySet(batch.problem, batch.decisions.cpu().numpy(), margin)
        if self.margin is not None and (batch.sets.margins != self.margin).any():
            self._refuse_margins()
        return batch.sets

    def _refuse_margins(self) -> NoReturn:
        raise InputError(
            f"The loss has margin {self.margin:g}, the sets have another. Build both with one, or "
            "the loss without a margin to take that of the sets."
        )

    def extra_repr(self) -> str:
        return (
            f"{super().extra_repr()}, margin={self.margin}, power={self.power!r}, "
            f"sigma={self.sigma:g}, n_samples={self.n_samples}"
        )
