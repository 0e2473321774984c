"""CaVE against non-negative least squares, its own definitions and finite differences."""

import numpy as np
import pytest
import torch
from scipy.optimize import nnls
from solver_cases import CASES, decided, name_of, slopes_agree
from solver_cases import one_thread as one_thread
from solver_cases import paths as paths

import revealed as rv
from helpers import parts_of, tiny_path
from revealed.losses import CaveLoss
from revealed.losses.rivals import cave


def generators(problem, X, b):
    """(k, n): unit vectors whose cone holds the costs that explain decision b."""
    p = parts_of(rv.OptimalitySet(problem, X), b)
    unit = np.eye(X.shape[1])
    both = [p.A_eq, -p.A_eq, unit[p.fixed], -unit[p.fixed]]
    rows = np.vstack([*both, unit[p.lower], -unit[p.upper], -p.A_ub[p.active]])
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def cosine(a, b):
    return a @ b / np.linalg.norm(a) / np.linalg.norm(b)


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_cave_is_the_angle_to_the_cone_by_nnls(case):
    X, costs = decided(case, noise=1.0)
    loss = CaveLoss(case.problem, reduction="none")
    values = loss(costs, X)
    values.sum().backward()
    for b, q in enumerate(costs.detach().numpy()):
        rays = generators(case.problem, X, b)
        target = nnls(rays.T, q)[0] @ rays
        cos = cosine(q, target)
        assert values[b].item() == pytest.approx(1 - cos, abs=1e-9)
        slope = (cos * q / np.linalg.norm(q) - target / np.linalg.norm(target)) / np.linalg.norm(q)
        np.testing.assert_allclose(costs.grad[b], slope, atol=1e-8)
    slopes_agree(loss, costs, X)


@pytest.mark.parametrize("variant", ["exact", "plus", "hybrid"])
def test_cave_takes_binary_decisions_as_its_authors_do_if_told_so(paths, variant):
    """An entry of 1 at an upper bound of 1: on an acyclic graph the cone is the same."""
    problem, X, _, costs = paths
    bounded = rv.LinearProgram(problem.A_eq, problem.b_eq, ub=1.0)
    first, second = (
        CaveLoss(p, variant=variant, max_iter=50)(costs, X) for p in (problem, bounded)
    )
    allowed = {"exact": 1e-9, "plus": 1e-7, "hybrid": 0.02}[variant]  # the mean of the rays differs
    assert second.item() == pytest.approx(first.item(), abs=allowed)


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_cave_plus_aims_inside_the_cone(case):
    X, costs = decided(case, noise=1.0)
    sets = rv.OptimalitySet(case.problem, X, 0.0)
    angles = []
    for max_iter in (1, 2, 3, 40):
        loss = CaveLoss(case.problem, variant="plus", max_iter=max_iter, reduction="none")
        target = loss.target(loss._batch(costs, X, None, None)).numpy()
        assert (sets.max_margin(target) > 0).all()
        angles.append([cosine(*pair) for pair in zip(costs.detach().numpy(), target, strict=True)])
        scaled = loss(1e3 * costs, X)
        np.testing.assert_allclose(scaled.detach(), loss(costs, X).detach(), atol=1e-12)
    exact = 1 - CaveLoss(case.problem, reduction="none")(costs, X).detach().numpy()
    assert (np.array(angles) <= exact + 1e-12).all()
    np.testing.assert_allclose(angles[-1], exact, atol=1e-5)


def test_cave_where_there_is_no_angle():
    problem = rv.LinearProgram(lb=[0.0, 0.0])
    X = np.zeros((3, 2))
    q = torch.tensor([[1.0, 2.0], [-1.0, -1.0], [0.0, 0.0]], dtype=torch.float64)
    q.requires_grad_()
    values = CaveLoss(problem, reduction="none")(q, X)
    values.sum().backward()
    np.testing.assert_allclose(values.detach(), [0, 1, 1], atol=1e-15)
    np.testing.assert_allclose(q.grad, 0, atol=1e-15)
    plus = CaveLoss(problem, variant="plus", reduction="none")(q, X)
    assert 1 < plus[1].item() <= 2  # inside the cone, so it can say where to go
    assert plus[2].item() == 1


def test_cave_of_a_cost_opposite_to_a_cone_with_lines_in_it():
    """The direct way is taken and costs 3 more than the other, whatever the potentials."""
    q = torch.tensor([[-1.0, -1.0, 1.0]], dtype=torch.float64, requires_grad=True)
    value = CaveLoss(tiny_path())(q, np.array([[0.0, 0.0, 1.0]]))
    value.backward()
    assert value.item() == 1
    assert q.grad.tolist() == [[0.0, 0.0, 0.0]]


def test_cave_says_once_that_projections_are_not_exact(paths, monkeypatch):
    problem, X, _, costs = paths

    def first_two_unsolved(*args, **options):
        p = rv.project(*args, **options)
        p.solved[:2] = False
        return p

    monkeypatch.setattr(cave, "project", first_two_unsolved)
    loss = CaveLoss(problem)
    with pytest.warns(rv.losses.UnsolvedProjectionWarning, match="2 of 6 projections"):
        loss(costs, X)
    assert torch.isfinite(loss(costs, X))


def test_cave_hybrid_mixes_the_cost_with_the_mean_of_the_cone(paths):
    problem, X, _, costs = paths
    loss = CaveLoss(problem, variant="hybrid", solve_ratio=0.0, inner_ratio=0.4)
    target = loss.target(loss._batch(costs, X, None, None))
    for b, q in enumerate(costs.numpy()):
        middle = generators(problem, X, b).mean(axis=0)
        np.testing.assert_allclose(
            target[b], 0.6 * q / np.linalg.norm(q) + 0.4 * middle, atol=1e-12
        )
    always = CaveLoss(problem, variant="hybrid", solve_ratio=1.0)(costs, X)
    assert always == CaveLoss(problem, variant="plus")(costs, X)


def test_cave_hybrid_draws_alike_from_one_seed(paths):
    problem, X, _, costs = paths
    loss = CaveLoss(problem, variant="hybrid", solve_ratio=0.5, seed=3)

    def epoch(number):
        loss.begin_epoch(7, number)
        return [loss(costs, X).item() for _ in range(12)]

    first = epoch(0)
    assert len(set(first)) == 2
    assert epoch(0) == first
    assert any(epoch(k) != first for k in (1, 2, 3))
