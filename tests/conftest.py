"""Set-up shared by all tests: hypothesis without a clock, and kernels compiled once."""

import os

import numpy as np
from hypothesis import HealthCheck, settings

# No deadline: the first call of a kernel compiles it. Derandomized: the same examples on every run,
# so that a failure seen once is seen again; HYPOTHESIS_PROFILE=explore looks for new ones. Nor may
# a busy machine fail a test because examples were slow to make.
patient = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow], "print_blob": True}
settings.register_profile("revealed", derandomize=True, **patient)
settings.register_profile("explore", max_examples=1000, **patient)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "revealed"))


def pytest_configure(config):
    """Compile the kernels before the workers of pytest-xdist start.

    Numba keeps compiled code in `__pycache__`. Workers that find it empty would all compile the
    same kernels at once, and two processes that save different signatures of one function at the
    same moment can mix up its cache. A warm cache is only read.
    """
    if not hasattr(config, "workerinput") and config.getoption("numprocesses", default=None):
        _compile_kernels()


def _compile_kernels():
    """Touch every form of the kernels: shared or own matrices, a batch or a lone large instance,
    rows that repeat each other."""
    import revealed as rv

    rng = np.random.default_rng(0)
    acyclic = rv.problems.grid_shortest_path(3, 3, directed="right-down")
    rows = 1 + rng.random((9, 1, 4))
    own = rv.LinearProgram(A_eq=rows, b_eq=1.0, A_ub=rows[:, :, ::-1], b_ub=3.0, ub=1.0)
    lone = rv.problems.grid_shortest_path(12, 12, neighbors=8)
    repeated = rv.LinearProgram(A_eq=np.tile(rows[0, :, :3], (40, 1)), b_eq=1.0, ub=1.0)
    for problem, size in ((acyclic, 9), (own, 9), (lone, 1), (repeated, 9)):
        costs = 1 + rng.random((size, problem.n_variables))
        sets = rv.OptimalitySet(problem, problem.solve(costs).x)
        rv.project(1 + rng.random(costs.shape), sets)
    _compile_bases(acyclic)


def _compile_bases(problem):
    """The one rival with a kernel of its own."""
    import torch

    from revealed.losses import OptimalityMarginLoss

    costs = torch.ones((1, problem.n_variables), dtype=torch.float64)
    OptimalityMarginLoss(problem)(costs, problem.solve(costs).x)
