"""Made-up data whose true costs are a known function of the context.

A hidden 0/1 matrix B (n, d) says which features an entry's cost listens to; a power makes the
dependence curved, so that a linear model can fit the decisions well but never exactly. Each
function draws from one `numpy.random.Generator`: the same seed gives the same data.

Letters: d context features, n cost entries.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .._common.checks import check_number, check_whole, positive_int
from ..errors import InputError
from ..problems import grid_shortest_path, knapsack, standard_form_knapsack
from ..problems.linear import LinearProgram
from .dataset import DataSet, split_by_size

Seed = int | np.random.Generator
Sizes = tuple[int, int, int]
"""Samples for training, validation and test."""


def noisy_paths(
    sizes: Sizes = (1000, 100, 1000),
    *,
    degree: int = 4,
    noise: float = 0.5,
    n_features: int = 5,
    side: int = 5,
    seed: int = 42,
) -> DataSet:
    """Right-down grid paths under noisy costs, number for number as PyEPO draws them.

        c = (((B z) / sqrt(d) + 3)^degree + 1) / 3.5^degree * u,   z normal, B Bernoulli(1/2),
        u uniform in [1 - noise, 1 + noise], drawn afresh for every edge of every sample

    The noise is in the costs, so a decision is optimal under costs that no function of the context
    can know. A seed gives the features and costs of PyEPO's `shortestpath.genData` for as many
    samples as there are in all, with the edges in our own order (`grid_shortest_path`): what is
    published about that generator (CaVE's tables) can be set beside ours.

    Parameters
    ----------
    sizes : (int, int, int)
        Samples for training, validation and test.
    degree : int
        Of the power; 1 is linear in the context.
    noise : float
        How far each cost is off, as a share below 1: factors are uniform in 1 - noise to 1 + noise.
    n_features : int
        d.
    side : int
        Nodes in a row and in a column of the grid.
    seed : int
        The same number gives the same data.

    Returns
    -------
    DataSet
    """
    sizes = checked_sizes(sizes)
    check_number(noise, "noise")
    if noise >= 1:
        raise InputError(f"`noise` must be at least 0 and below 1; got {noise!r}.")
    check_whole(seed, "seed", 0)
    problem = grid_shortest_path(side, side, directed="right-down")
    d, n, total = positive_int(n_features, "n_features"), problem.n_variables, sum(sizes)
    rng = np.random.RandomState(seed)  # the old generator, since theirs is
    listens = rng.binomial(1, 0.5, (n, d))
    contexts = rng.normal(0.0, 1.0, (total, d))
    costs = _power_costs(contexts, listens, degree) / 3.5 ** float(degree)
    costs *= rng.uniform(1.0 - noise, 1.0 + noise, costs.shape)
    name = f"path {side}x{side}, degree {degree}, noise {noise:g}"
    return split_by_size(name, problem, contexts, costs[:, _row_by_row(problem)], sizes)


def noisy_knapsacks(
    sizes: Sizes = (1000, 100, 1000),
    *,
    degree: int = 4,
    noise: float = 0.5,
    n_features: int = 5,
    n_items: int = 32,
    capacities: tuple[float, ...] = (20.0, 20.0),
    seed: int = 42,
) -> DataSet:
    """Fractional knapsacks with several budgets, number for number as PyEPO draws them.

        value = ceil(5 (((B z) / sqrt(d) + 3)^degree + 1) / 3.5^degree * u),   costs are -values

    with z, B and u as in `noisy_paths`, and weights uniform between 3 and 8 in every budget.
    Relaxed: a part of an item may be taken.

    Parameters
    ----------
    sizes : (int, int, int)
        Samples for training, validation and test.
    degree : int
        Of the power; 1 is linear in the context.
    noise : float
        How far each cost is off, as a share: factors are uniform in 1 - noise to 1 + noise.
    n_features : int
        d.
    n_items : int
        Items to choose from.
    capacities : tuple of float
        One for each budget.
    seed : int
        The same number gives the same data.

    Returns
    -------
    DataSet
    """
    sizes = checked_sizes(sizes)
    check_number(noise, "noise")
    check_whole(seed, "seed", 0)
    d, n = positive_int(n_features, "n_features"), positive_int(n_items, "n_items")
    rng = np.random.RandomState(seed)
    weights = rng.choice(np.arange(300, 800), size=(len(capacities), n)) / 100
    listens = rng.binomial(1, 0.5, (n, d))
    contexts = rng.normal(0.0, 1.0, (sum(sizes), d))
    values = 5.0 * _power_costs(contexts, listens, degree) / 3.5 ** float(degree)
    values *= rng.uniform(1.0 - noise, 1.0 + noise, values.shape)
    problem = LinearProgram(A_ub=weights, b_ub=np.array(capacities), lb=0.0, ub=1.0)
    name = f"knapsack of {n} items, degree {degree}, noise {noise:g}"
    return split_by_size(name, problem, contexts, -np.ceil(values), sizes)


def _row_by_row(problem: LinearProgram) -> np.ndarray:
    """(n,): the place of each of our edges in an order that has, row after row of the grid, first
    the edges to the right and then those down."""
    tails, heads = problem.structure.tails, problem.structure.heads
    cols = problem.structure.grid_shape[1]
    is_down = heads - tails == cols
    order = np.lexsort((tails, is_down, tails // cols))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return place


def paper_paths(
    sizes: Sizes = (100, 100, 100), *, degree: int = 4, side: int = 5, seed: Seed = 0
) -> DataSet:
    """The paper's synthetic paths: six features, the last of them always 1, and no noise.

    c = ((B z) / sqrt(6) + 3)^degree + 1,   B Bernoulli(1/2)

    Parameters
    ----------
    sizes : (int, int, int)
        Samples for training, validation and test.
    degree : int
        Of the power; 1 is linear in the context.
    side : int
        Nodes in a row and in a column of the grid.
    seed : int or numpy Generator
        The same number gives the same data.

    Returns
    -------
    DataSet
    """
    sizes, rng = checked_sizes(sizes), _generator(seed)
    problem = grid_shortest_path(side, side, directed="right-down")
    listens = rng.binomial(1, 0.5, (problem.n_variables, 6))
    contexts = _with_constant(rng.standard_normal((sum(sizes), 5)))
    costs = _power_costs(contexts, listens, degree)
    return split_by_size(f"paper's path {side}x{side}", problem, contexts, costs, sizes)


def paper_knapsacks(
    sizes: Sizes = (100, 100, 100), *, n_items: int = 10, degree: int = 2, seed: Seed = 0
) -> DataSet:
    """The paper's fractional knapsacks: values that jump to four times as much under attack.

        value = (B z)^degree (1 + 3 [z_1 > 0.5]),   z uniform in [-1, 1]^4 and a last feature 1,
        weights whole numbers below 1000, capacity uniform between the largest weight and the sum
        of all less a uniform share of the largest

    In standard form, as the paper has it: 2 n_items + 1 costs are predicted, and the true costs of
    the slacks are 0. `general_knapsacks` is the form without slacks.

    Parameters
    ----------
    sizes : (int, int, int)
        Samples for training, validation and test.
    n_items : int
        Items to choose from.
    degree : int
        Of the power of the values.
    seed : int or numpy Generator
        The same number gives the same data.

    Returns
    -------
    DataSet
    """
    rng = _generator(seed)
    weights = _knapsack_weights(n_items, rng)
    high = weights.sum() - rng.uniform() * weights.max()
    capacity = weights.max() + rng.uniform() * (high - weights.max())
    contexts, costs = _values_under_attack(checked_sizes(sizes), len(weights), degree, rng)
    costs = np.pad(costs, ((0, 0), (0, len(weights) + 1)))
    problem = standard_form_knapsack(weights, capacity)
    return split_by_size("paper's knapsack", problem, contexts, costs, sizes)


def general_knapsacks(
    sizes: Sizes = (100, 100, 100), *, n_items: int = 10, degree: int = 2, seed: Seed = 0
) -> DataSet:
    """The values of `paper_knapsacks` in general form: one cost (minus the value) for each item, no
    slack to predict, and a capacity that is a uniform share of the sum of the weights.

    Parameters
    ----------
    sizes : (int, int, int)
        Samples for training, validation and test.
    n_items : int
        Items to choose from.
    degree : int
        Of the power of the values.
    seed : int or numpy Generator
        The same number gives the same data.

    Returns
    -------
    DataSet
    """
    rng = _generator(seed)
    weights = _knapsack_weights(n_items, rng)
    problem = knapsack(weights, rng.uniform() * weights.sum())
    contexts, costs = _values_under_attack(checked_sizes(sizes), len(weights), degree, rng)
    return split_by_size("knapsack in general form", problem, contexts, costs, sizes)


def _knapsack_weights(n_items: int, rng: np.random.Generator) -> np.ndarray:
    return rng.integers(1, 1000, positive_int(n_items, "n_items")).astype(float)


def _values_under_attack(
    sizes: Sizes, n: int, degree: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Contexts (B, 5) and costs (B, n), which are minus the values."""
    degree = positive_int(degree, "degree")
    listens = rng.binomial(1, 0.5, (n, 5))
    contexts = _with_constant(rng.uniform(-1.0, 1.0, (sum(sizes), 4)))
    attacked = contexts[:, :1] > 0.5
    return contexts, -((contexts @ listens.T) ** float(degree)) * (1.0 + 3.0 * attacked)


def _power_costs(contexts: np.ndarray, listens: np.ndarray, degree: int) -> np.ndarray:
    """(B, n): ((B z) / sqrt(d) + 3)^degree + 1."""
    positive_int(degree, "degree")
    return (contexts @ listens.T / np.sqrt(contexts.shape[1]) + 3.0) ** float(degree) + 1.0


def _generator(seed: Seed) -> np.random.Generator:
    if not isinstance(seed, np.random.Generator):
        check_whole(seed, "seed", 0)
    return np.random.default_rng(seed)


def _with_constant(contexts: np.ndarray) -> np.ndarray:
    return np.column_stack([contexts, np.ones(len(contexts))])


def checked_sizes(sizes: Sizes) -> Sizes:
    given = list(sizes) if isinstance(sizes, Iterable) else []
    whole = [isinstance(size, int | np.integer) and size >= 0 for size in given]
    if len(given) != 3 or not all(whole) or given[0] == 0:
        raise InputError(
            "`sizes` must be three whole numbers (train, valid, test) with at least one training "
            f"sample; got {sizes!r}."
        )
    return tuple(int(size) for size in given)  # type: ignore[return-value]
