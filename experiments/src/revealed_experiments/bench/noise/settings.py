"""The data sets of `revealed bench noise`: a setting and a seed give one of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from revealed.datasets import general_knapsacks, noisy_knapsacks, noisy_paths, paper_paths
from revealed.datasets.dataset import DataSet
from revealed.problems.linear import LinearProgram

NOISE = 0.5
TRIES = 20
"""Draws of a decision that costs a little more than the best one."""


@dataclass(frozen=True)
class Setting:
    """How a data set is drawn, and what is wrong with its decisions."""

    name: str
    kind: str
    """"noisy", or the name of an exact problem."""
    degree: int = 4
    samples: int = 1000
    noise: float = 0.0
    """Half-width of the noise on costs: each is multiplied by a uniform number in 1 +- this."""
    random: float = 0.0
    """Share of decisions replaced by those of random costs."""
    suboptimal: float = 0.0
    """Extra cost that any decision may have, as a share of the best."""
    chosen: bool = False
    """Whether models that choose their features are compared too."""

    @property
    def corrupted(self) -> bool:
        """Whether decisions are not those of the true costs."""
        return bool(self.random or self.suboptimal)


NOISY = (
    *(Setting(f"degree {k}", "noisy", noise=NOISE, degree=k, chosen=True) for k in (1, 2, 4, 6, 8)),
    *(Setting(f"{k} samples", "noisy", noise=NOISE, samples=k) for k in (50, 100, 200)),
    Setting("10% random", "noisy", noise=NOISE, random=0.1),
    Setting("20% random", "noisy", noise=NOISE, random=0.2),
    Setting("5% suboptimal", "noisy", noise=NOISE, suboptimal=0.05),
)
EXACT = (
    Setting("paths, 100 samples", "paths", samples=100),
    Setting("knapsacks, 100 samples", "knapsacks", degree=2, samples=100),
    Setting("PyEPO's knapsacks, 300 samples", "pyepo", samples=300),
    Setting("PyEPO's knapsacks with noise, 300 samples", "pyepo", samples=300, noise=NOISE),
)


def draw(setting: Setting, seed: int, test: int = 1000) -> DataSet:
    """The data set of a seed, its training decisions as the setting asks."""
    sizes = (setting.samples, setting.samples, test)
    if setting.kind == "paths":
        return paper_paths(sizes, degree=setting.degree, seed=seed)
    if setting.kind == "knapsacks":
        return general_knapsacks(sizes, degree=setting.degree, seed=seed)
    drawn = {"degree": setting.degree, "noise": setting.noise, "seed": seed}
    if setting.kind == "pyepo":
        return noisy_knapsacks(sizes, **drawn)
    data = noisy_paths((setting.samples, 0, test), **drawn)
    rng = np.random.default_rng([seed, 1])
    decisions = data.train.decisions
    if setting.random:
        decisions = _randomized(data.problem, decisions, setting.random, rng)
    if setting.suboptimal:
        decisions = _worsened(data.problem, decisions, data.train.costs, setting.suboptimal, rng)
    return data.with_train_decisions(decisions)


def mean_costs(setting: Setting, seed: int, test: int = 1000) -> np.ndarray:
    """(test, n) expected costs of the test contexts: what a perfect model of the context knows."""
    sizes = (setting.samples, 0, test)
    return noisy_paths(sizes, degree=setting.degree, noise=0.0, seed=seed).test.costs


def _randomized(
    problem: LinearProgram, decisions: np.ndarray, share: float, rng: np.random.Generator
) -> np.ndarray:
    """Decisions of which a share is optimal under costs that have nothing to do with the data."""
    chosen = rng.permutation(len(decisions))[: round(share * len(decisions))]
    result = decisions.copy()
    result[chosen] = problem.solve(rng.random((len(chosen), problem.n_variables))).x
    return result


def _worsened(
    problem: LinearProgram,
    decisions: np.ndarray,
    costs: np.ndarray,
    extra: float,
    rng: np.random.Generator,
) -> np.ndarray:
    """Decisions that cost up to a share `extra` more than the best ones."""
    result, best = decisions.copy(), (costs * decisions).sum(axis=1)
    for _ in range(TRIES):
        other = problem.solve(costs * np.exp(0.3 * rng.standard_normal(costs.shape))).x
        allowed = (costs * other).sum(axis=1) <= (1.0 + extra) * best
        taken = allowed & (rng.random(len(best)) < 0.5)
        result[taken] = other[taken]
    return result
