"""Small data sets that no model explains, for the tests of fits."""

import numpy as np

import revealed as rv

PROBLEMS = {
    "paths": rv.problems.grid_shortest_path(3, 3, directed="right-down"),
    "streets": rv.problems.grid_shortest_path(3, 2),
    "knapsack": rv.problems.knapsack([[3.0, 5, 4, 7, 2], [2, 1, 4, 3, 5]], [9.0, 8.0]),
}
UNITS = np.array([1.0, 10.0, 0.1])
"""Of the features."""
LOSSES = {2: "squared", 1: "distance", "huber": "huber", "welsch": "welsch"}
"""What the estimator calls a power."""


def costs_of(problem, shape, rng):
    """Costs that differ by instance and owe nothing to any context."""
    return (-1 if problem is PROBLEMS["knapsack"] else 1) * rng.uniform(0.5, 1.5, shape)


def contexts(name, B=16, seed=0):
    """A problem, features (B, 3) in units of their own, and decisions that owe little to them."""
    problem, rng = PROBLEMS[name], np.random.default_rng([seed, 7])
    Z = rng.standard_normal((B, 3)) * UNITS
    C = costs_of(problem, (B, problem.n_variables), rng)
    return problem, Z, problem.solve(C + 0.1 * C * (Z / UNITS)[:, :1]).x


def entries(name, B=16, seed=0, n=None):
    """The same with features (B, n, 3) of each cost entry."""
    problem, rng = PROBLEMS[name], np.random.default_rng([seed, 8])
    Z = costs_of(problem, (B, problem.n_variables if n is None else n, 3), rng) * UNITS
    return problem, Z, problem.solve(costs_of(problem, (B, problem.n_variables), rng)).x
