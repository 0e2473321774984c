"""The observed decision against every other decision that was ever seen.

Letters: S decisions in the pool, B samples, n cost entries.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..._common.arrays import as_costs
from ...errors import InfeasibleDecisionError
from ...optimality.sets import OptimalitySet
from ...problems.linear import LinearProgram
from .._options import check_share
from .._random import RandomLoss
from ..base import Batch

DIGITS = 1e6
"""Decisions that agree when multiplied by this and rounded are one decision."""
FEASIBLE = 1e-5
"""The largest relative violation with which a decision still counts as one that can be taken."""


class ContrastiveLoss(RandomLoss):
    """How much more the observed decision costs than those of a pool, on average.

        1/S sum_k <c, x* - x_k>,   x_1 ... x_S the pool        gradient  x* - mean of the pool

    Linear in c between two additions to the pool, so it has no least value: what ends the descent
    is that decisions which have become too cheap enter the pool.

    The pool starts as `pool` (decisions (S, n) or an OptimalitySet; None: empty). Every call adds
    the decisions observed and, with probability `solve_ratio`, those optimal under the predicted
    costs; each decision is in it once. `forget` makes it what it was at the start. Where
    constraints differ by instance, a sample is held only against decisions open to it, and each
    call tries all S on each of B samples.

    Needs no true costs. `solve_ratio` oracle calls for each sample, on average.

    Source: Mulamba, Mandi, Diligenti, Lombardi, Bucarey and Guns, *Contrastive Losses and
    Solution Caching for Predict-and-Optimize* (IJCAI 2021).

    Parameters
    ----------
    problem : LinearProgram
        What the decision maker may do.
    solve_ratio : float
        Probability, from 0 to 1, with which a call solves for the predicted costs.
    pool : (S, n) array, OptimalitySet or None
        Decisions to start with; None for an empty pool.
    seed : int
        Of the draws.
    reduction : "mean", "sum" or "none"
        "none" returns one loss for each sample, (B,).
    """

    name = "nce"
    oracle_calls = "solve_ratio on average"
    works_on_device = True

    def __init__(
        self,
        problem: LinearProgram,
        *,
        solve_ratio: float = 1.0,
        pool: Any = None,
        seed: int = 0,
        reduction: str = "mean",
    ) -> None:
        super().__init__(problem, seed=seed, reduction=reduction)
        self.solve_ratio = check_share(solve_ratio, "solve_ratio")
        self._start = _starting_pool(problem, pool)
        self.forget()

    @property
    def pool(self) -> Tensor:
        """(S, n): the decisions so far, each once."""
        return self._pool.decisions

    def per_sample(self, batch: Batch) -> tuple[Tensor, Tensor]:
        seen = batch.decisions
        if torch.rand((), generator=self.generator) < self.solve_ratio:
            seen = torch.cat([seen, batch.decide(batch.costs)])
        self._pool.add(seen)
        gap = batch.decisions - self._pool.mean(batch.problem)
        return (batch.costs * gap).sum(1), gap

    def forget(self) -> None:
        """Go back to the pool of the start, as a run resumed from a checkpoint does."""
        self._pool = Pool(self.problem.n_variables)
        self._pool.add(self._start)

    def extra_repr(self) -> str:
        return (
            f"{super().extra_repr()}, solve_ratio={self.solve_ratio:g}, "
            f"pool of {len(self._start)} at the start"
        )


class Pool:
    """Decisions, each once: a key for each row shows whether it is new."""

    def __init__(self, n: int) -> None:
        whole = torch.iinfo(torch.int64)
        fixed = torch.Generator().manual_seed(0)
        # A row's key is its product with random numbers modulo 2^64: rows of 0s and 1s that differ
        # share a key with probability 2^-58.
        self._factors = torch.randint(whole.min, whole.max, (n,), generator=fixed)
        self._known: set[int] = set()
        self._parts = [torch.empty(0, n, dtype=torch.float64)]
        self._total = torch.zeros(n, dtype=torch.float64)

    @property
    def decisions(self) -> Tensor:
        """(S, n)"""
        self._parts = [torch.cat(self._parts)]
        return self._parts[0]

    def add(self, decisions: Tensor) -> None:
        """Take in those of (B, n) that are not there yet."""
        self._move(decisions.device)
        keys = ((decisions * DIGITS).round().long() * self._factors).sum(1).tolist()
        if self._known.issuperset(keys):
            return
        place = {key: row for row, key in enumerate(keys) if key not in self._known}
        added = decisions[list(place.values())]
        self._known.update(place)
        self._parts.append(added)
        self._total = self._total + added.sum(0)

    def mean(self, problem: LinearProgram) -> Tensor:
        """The mean decision, (n,); (B, n) where instances have constraints of their own."""
        if problem.n_instances is None:
            return self._total / len(self._known)
        taken = self._open_to(problem).to(self._total)  # (B, S)
        count = taken.sum(1, keepdim=True)
        if not bool(count.all()):
            raise InfeasibleDecisionError(
                f"The decision of sample {int(count.argmin())} breaks its own constraints, so "
                "there is nothing to hold it against. rv.OptimalitySet(problem, decisions) says "
                "which constraint."
            )
        return taken @ self.decisions / count

    def _open_to(self, problem: LinearProgram) -> Tensor:
        """(B, S): whether the constraints of a sample allow a decision of the pool."""
        assert problem.n_instances is not None
        B, S = problem.n_instances, len(self._known)
        every = problem[torch.arange(B).repeat_interleave(S)]
        return every.constraint_violation(self.decisions.repeat(B, 1)).view(B, S) <= FEASIBLE

    def _move(self, device: torch.device) -> None:
        if self._total.device != device:
            self._factors, self._total = self._factors.to(device), self._total.to(device)
            self._parts = [part.to(device) for part in self._parts]


def _starting_pool(problem: LinearProgram, pool: Any) -> Tensor:
    """(S, n), checked; where constraints are shared, decisions that break them are refused."""
    n = problem.n_variables
    if pool is None:
        return torch.empty(0, n, dtype=torch.float64)
    decisions = pool.decisions if isinstance(pool, OptimalitySet) else pool
    array = as_costs(decisions, n, "pool")[0]
    if problem.n_instances is None:
        OptimalitySet(problem, array)  # for its checks
    return torch.tensor(array)
