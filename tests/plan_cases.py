"""Plans as planners have them, with decisions that are best under costs linear in the context."""

import numpy as np

import revealed as rv


def production(seed, days=300, products=8, resources=5, features=4):
    """Machines with capacities in units of their own, and the most that can be sold."""
    rng = np.random.default_rng(seed)
    use = rng.uniform(0.2, 3.0, (resources, products)) * (rng.random((resources, products)) < 0.8)
    use *= 10.0 ** rng.integers(-1, 3, (resources, 1))
    most = rng.uniform(15, 60, products)
    capacity = use @ (most * rng.uniform(0.3, 0.6, products))
    problem = rv.LinearProgram(A_ub=use, b_ub=capacity, lb=0.0, ub=most)
    return _decided(problem, rng, days, features, -rng.uniform(5, 10, products), 2.0)


def transport(seed, days=300, depots=4, shops=6, features=4):
    """Demands that must be met from stocks that suffice."""
    rng = np.random.default_rng(seed)
    stock, demand = rng.uniform(50, 100, depots), rng.uniform(10, 40, shops)
    demand *= 0.8 * stock.sum() / demand.sum()
    problem = rv.LinearProgram(
        A_eq=np.tile(np.eye(shops), depots),
        b_eq=demand,
        A_ub=np.repeat(np.eye(depots), shops, axis=1),
        b_ub=stock,
    )
    return _decided(problem, rng, days, features, rng.uniform(5, 15, depots * shops), 1.5)


def blending(seed, days=300, kinds=7, features=3):
    """A mix of 100 with shares, parts per million and kilograms as rows."""
    rng = np.random.default_rng(seed)
    share, ppm = rng.uniform(0.01, 0.4, (3, kinds)), rng.uniform(50, 900, (1, kinds))
    weight = rng.uniform(500, 2000, (1, kinds))
    rows = np.vstack([-share[:2], share[2:], ppm, weight])
    limit = rows.mean(axis=1) * 100.0 * np.array([1.05, 1.05, 1.02, 1.05, 1.02])
    problem = rv.LinearProgram(np.ones((1, kinds)), [100.0], rows, limit, 0.0, 60.0)
    return _decided(problem, rng, days, features, rng.uniform(5, 10, kinds), 1.0)


PLANS = {"production": production, "transport": transport, "blending": blending}


def _decided(problem, rng, days, features, base, size):
    """The plan, contexts, and the best decisions."""
    Z = rng.normal(size=(days, features)).round(3)
    answer = problem.solve(base + size * Z @ rng.normal(size=(features, problem.n_variables)))
    assert np.asarray(answer.optimal).all()
    return problem, Z, np.asarray(answer.x)
