"""Shared by the tests of rivals that ask an oracle: the losses, samples, and calls on them."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

import revealed as rv
from revealed.losses._random import PerturbingLoss
from revealed.losses.base import DecisionLoss
from revealed.losses.rivals.blackbox import BlackboxLoss
from revealed.losses.rivals.contrastive import ContrastiveLoss
from revealed.losses.rivals.fenchel_young import FenchelYoungLoss
from revealed.losses.rivals.perturbed import PerturbedLoss
from revealed.losses.rivals.regression import RegressionLoss
from revealed.losses.rivals.spo_plus import SPOPlusLoss
from revealed.losses.rivals.straight_through import StraightThroughLoss
from revealed.losses.smoothed import SmoothedProjectionLoss

K = 4
"""Draws of the losses that draw."""
SIGMA = 0.3


@dataclass(frozen=True)
class Rival:
    """A loss with options, how many decisions it asks for each sample, and what it must be told."""

    label: str
    kind: type[DecisionLoss]
    calls: int
    needs_true_costs: bool
    options: dict[str, Any] = field(default_factory=dict)

    def __call__(self, problem, *, noise=None, **options):
        loss = self.kind(problem, **self.options | options)
        if noise is not None and hasattr(loss, "noise"):
            loss.noise = lambda shape, device=None: torch.from_numpy(noise)
        return loss


DRAWS = {"n_samples": K, "sigma": SIGMA, "seed": 1}
REGRET = {"criterion": "regret"}
ALL = [
    Rival("st", StraightThroughLoss, 1, False),
    Rival("st, regret", StraightThroughLoss, 1, True, REGRET),
    Rival("st, mean", StraightThroughLoss, 1, False, {"normalize": "mean"}),
    Rival("st, norm", StraightThroughLoss, 1, False, {"normalize": "norm"}),
    Rival("st, std", StraightThroughLoss, 1, False, {"normalize": "std"}),
    Rival("bb", BlackboxLoss, 2, False, {"lam": 0.7}),
    Rival("bb, regret", BlackboxLoss, 2, True, {"lam": 0.7, **REGRET}),
    Rival("spo+", SPOPlusLoss, 1, True),
    Rival("dpo", PerturbedLoss, K, False, DRAWS),
    Rival("dpo, regret", PerturbedLoss, K, True, {**DRAWS, **REGRET}),
    Rival("dpo, baseline", PerturbedLoss, K, False, {**DRAWS, "baseline": True}),
    Rival("pfyl", FenchelYoungLoss, K, False, DRAWS),
    Rival("nce", ContrastiveLoss, 1, False),
    Rival("two-stage", RegressionLoss, 0, True),
    # Ours, but it draws like those and keeps the same promises.
    Rival("smoothed", SmoothedProjectionLoss, 0, False, {"margin": 1.0, **DRAWS}),
    Rival("smoothed, 1", SmoothedProjectionLoss, 0, False, {"margin": 1.0, "power": 1, **DRAWS}),
]
RIVALS = {rival.label: rival for rival in ALL}
RANDOM = [rival for rival in ALL if issubclass(rival.kind, PerturbingLoss)]
CONVEX = [RIVALS[label] for label in ("spo+", "pfyl", "two-stage", "smoothed")]
SHIFTING = [rival for rival in ALL if rival.kind in (BlackboxLoss, SPOPlusLoss)] + RANDOM


@dataclass(frozen=True)
class Samples:
    """Predicted costs, observed decisions, true costs, and noise (K, B, n), of B samples."""

    problem: rv.LinearProgram
    costs: torch.Tensor
    decisions: np.ndarray
    truth: np.ndarray
    noise: np.ndarray

    def ask(self, rival, *, decisions=None, costs=None, call=(), **options):
        """Value and gradient of a loss built anew with `options`, called with those of `call`."""
        loss = rival(self.problem, noise=self.noise, **options)
        q = self.costs if costs is None else costs
        x = self.decisions if decisions is None else decisions
        return value_and_gradient(loss, q, x, true_costs=self.truth, **dict(call))

    def __getitem__(self, part):
        return Samples(
            self.problem[part],
            self.costs[part],
            self.decisions[part],
            self.truth[part],
            self.noise[:, part],
        )


def samples_of(problem, truth, seed=0):
    """Samples with optimal decisions, and predictions of the size and sign of the truth."""
    rng = np.random.default_rng(seed)
    costs = np.sign(truth) * rng.uniform(0.5, 1.5, truth.shape)
    noise = rng.standard_normal((K, *truth.shape))
    return Samples(problem, torch.from_numpy(costs), problem.solve(truth).x, truth, noise)


def path_samples():
    """Seven on a 3x3 grid: 12 edges, 6 paths."""
    problem = rv.problems.grid_shortest_path(3, 3, directed="right-down")
    return samples_of(problem, np.random.default_rng(1).uniform(0.5, 1.5, (7, 12)))


def knapsack_samples():
    """Five, each with a capacity of its own."""
    problem = rv.problems.knapsack(np.array([3.0, 5, 4, 7]), np.array([6.0, 9, 11, 14, 7]))
    return samples_of(problem, -np.random.default_rng(1).uniform(0.5, 1.5, (5, 4)))


def value_and_gradient(loss, costs, decisions, **options):
    q = costs.detach().clone().requires_grad_()
    value = loss(q, decisions, **options)
    value.sum().backward()
    return value.detach(), q.grad


def label_of(rival):
    return rival.label
