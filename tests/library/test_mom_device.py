"""Bases found on a device, where they are found by other steps than those of the catalogue:
dense columns, a matrix for each decision, several blocks, no rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import revealed as rv
from helpers import per_instance_matrices
from revealed.losses.rivals import device_basis as _device_basis
from revealed.losses.rivals.basis import bases_of
from revealed.losses.rivals.standard_form import dense_rows

CPU = torch.device("cpu")
problems = rv.problems


def dense(rows, n):
    """A knapsack of many rows: more entries in a column than are gone through one by one."""
    assert rows > _device_basis.FEW
    weights = np.random.default_rng(0).uniform(1.0, 5.0, (rows, n))
    return problems.knapsack(weights, n)


PROBLEMS = {
    "paths": lambda: problems.grid_shortest_path(4, 4),
    "paths of 8 neighbors": lambda: problems.grid_shortest_path(6, 6, neighbors=8),
    "matching": lambda: problems.grid_matching(4, 4),
    "two knapsacks": lambda: problems.knapsack([[1.0, 2.0, 3.0, 2.5], [2.0, 1.0, 1.5, 3.0]], 4.0),
    "dense columns": lambda: dense(12, 30),
    "own matrices": lambda: rv.LinearProgram(**per_instance_matrices()),
}
NETWORKS = ("paths", "paths of 8 neighbors", "matching")


def sets_of(problem, B=7):
    """Sets of decisions under random costs; those of knapsacks are values, so below 0."""
    shape = (problem.n_instances or B, problem.n_variables)
    costs = np.random.default_rng(1).uniform(0.1, 2.0, shape)
    if problem.eq_rows.shape[0] == 0:
        costs = -costs
    return rv.OptimalitySet(problem, problem.solve(costs).x)


@pytest.fixture(params=PROBLEMS)
def case(request):
    """A name and its sets."""
    return request.param, sets_of(PROBLEMS[request.param]())


def check(name, own, other):
    assert torch.equal(own.columns, other.columns)
    assert torch.equal(own.side, other.side)
    tolerance = 0.0 if name in NETWORKS else 1e-9
    torch.testing.assert_close(own.inverse, other.inverse, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    "few", [0, _device_basis.FEW, 1000], ids=["multiplied", "as it comes", "one by one"]
)
def test_each_way_finds_the_bases_of_the_cpu(case, few, monkeypatch):
    name, sets = case
    monkeypatch.setattr(_device_basis, "FEW", few)
    check(name, _device_basis.bases_on_device(sets.to("cpu")), bases_of(sets, None, CPU))


def test_blocks_do_not_show(case, monkeypatch):
    name, sets = case
    m, n = dense_rows(sets.problem, CPU).shape[1:]
    monkeypatch.setattr(_device_basis, "BLOCK", 2 * (m * m + _device_basis.LINES * (n + m)))
    check(name, _device_basis.bases_on_device(sets.to("cpu")), bases_of(sets, None, CPU))


def test_the_inverse_is_that_of_the_basic_columns(case):
    _, sets = case
    bases = _device_basis.bases_on_device(sets.to("cpu"))
    rows = dense_rows(sets.problem, CPU)
    m = rows.shape[1]
    whole = torch.cat([rows, torch.eye(m).to(rows).expand(len(rows), m, m)], dim=2)
    whole = whole.expand(len(sets), -1, -1)
    basic = whole.gather(2, bases.columns[:, None].expand(-1, m, -1))
    one = torch.eye(m).to(rows).expand(len(sets), m, m)
    torch.testing.assert_close(bases.inverse @ basic, one, rtol=0.0, atol=1e-9)


def test_of_equal_entries_the_first_is_the_pivot_and_rank_goes_before_size():
    row = torch.tensor([[0.0, 1.0, -1.0, 5.0, 7.0], [1e-10, 0.0, 0.0, 3.0, 9.0], [0.0] * 5])
    states = rv.EntryState
    at, free, fixed = states.AT_LOWER, states.FREE, states.FIXED
    state = torch.tensor([[free, free, free, at, at], [free, at, at, fixed, 4], [free] * 5])
    price = _device_basis._prices(state)
    assert _device_basis._pivot(row.double(), price, 99).tolist() == [1, 3, 99]


def test_without_rows_nothing_is_basic():
    problem = rv.LinearProgram(lb=np.zeros(3), ub=np.ones(3))
    sets = rv.OptimalitySet(problem, np.array([[0.0, 1.0, 0.0]]))
    bases = _device_basis.bases_on_device(sets.to("cpu"))
    assert bases.inverse.shape == (1, 0, 0)
    assert bases.side.tolist() == [[1, -1, 1]]
