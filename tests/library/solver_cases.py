"""Shared by the tests of losses that solve something: problems, second opinions, slopes."""

import numpy as np
import pytest
import torch

import revealed as rv
from helpers import Case, catalogue, per_instance_matrices


def random_program(B=3, seed=0, last=-np.inf):
    """Every kind of constraint at once: entries with two bounds, one, none (the last, if its lower
    one is -inf) or no choice, and a row that never binds; costs for which it is bounded."""
    rng = np.random.default_rng(seed)
    A_eq, A_ub = rng.integers(-2, 3, (2, 9)) * 1.0, rng.integers(-2, 3, (4, 9)) * 1.0
    lb = np.array([0, 0, -1, -np.inf, -2, 0.5, 0, 0, last])
    ub = np.array([1, np.inf, 2, 3, 4, 0.5, 2, 1, np.inf])
    x = np.array([0.4, 1.0, 0.3, 1.0, 0.7, 0.5, 1.2, 0.6, 0.2])
    b_ub = A_ub @ x + 1.0
    b_ub[2] = np.inf
    problem = rv.LinearProgram(A_eq, A_eq @ x, A_ub, b_ub, lb, ub)
    s = rng.uniform(0.2, 1, (B, 9)) * np.sign(rng.standard_normal((B, 9)))
    s = np.where(np.isinf(ub), np.abs(s), np.where(np.isinf(lb), -np.abs(s), s))
    s[:, np.isinf(lb) & np.isinf(ub)] = 0
    mu = rng.random((B, 4)) * np.isfinite(b_ub)
    return Case("random", problem, s + rng.standard_normal((B, 2)) @ A_eq - mu @ A_ub)


def own_matrices():
    parts = per_instance_matrices(B=3)
    rng = np.random.default_rng(1)
    return Case("own matrices", rv.LinearProgram(**parts), rng.standard_normal((3, 7)))


CASES = [*catalogue(), random_program(), own_matrices()]
INSIDE = [*catalogue(), random_program(last=-1.0)]
"""Problems with points strictly inside, and a bound for every entry."""


@pytest.fixture(autouse=True)
def one_thread():
    """Batches this small leave a second thread nothing but waiting."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def paths():
    problem = rv.problems.grid_shortest_path(4, 4, directed="right-down")
    rng = np.random.default_rng(2)
    truth = 1 + rng.random((6, problem.n_variables))
    costs = torch.from_numpy(truth + 0.3 * rng.standard_normal(truth.shape))
    return problem, problem.solve(truth).x, truth, costs


def name_of(case):
    return case.name


def decided(case, seed=0, noise=0.3):
    """Decisions under the costs of a case, and costs nearby as a leaf to differentiate by."""
    noise = noise * np.random.default_rng(seed).standard_normal(case.costs.shape)
    costs = torch.tensor(case.costs + noise, requires_grad=True)
    return case.problem.solve(case.costs).x, costs


def limits_of(problem, b):
    vectors = (problem.b_eq, problem.b_ub, problem.lb, problem.ub)
    matrices = (A[b] if isinstance(A, tuple) else A for A in (problem.A_eq, problem.A_ub))
    return *(A.toarray() for A in matrices), *(v[b] if v.ndim == 2 else v for v in vectors)


def slopes_agree(loss, costs, X, step=1e-5, rel=1e-5, **options):
    """The gradient against central differences of the values."""
    value = loss(costs, X, **options).sum()
    (gradient,) = torch.autograd.grad(value, costs)
    rng = np.random.default_rng(3)
    for _ in range(4):
        way = torch.from_numpy(rng.standard_normal(costs.shape))
        up, down = (loss(costs.detach() + k * step * way, X, **options).sum() for k in (1, -1))
        found, told = (up - down).item() / (2 * step), (gradient * way).sum().item()
        assert found == pytest.approx(told, rel=rel, abs=1e-7)
