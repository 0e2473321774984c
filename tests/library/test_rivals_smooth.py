"""QPTL and the log barrier against CVXPY, closed forms and finite differences."""

import cvxpy as cp
import numpy as np
import pytest
import torch
from solver_cases import (
    CASES,
    INSIDE,
    decided,
    limits_of,
    name_of,
    random_program,
    slopes_agree,
)
from solver_cases import one_thread as one_thread
from solver_cases import paths as paths

import revealed as rv
from helpers import catalogue
from revealed.losses import BarrierLoss, OptNetLoss, QPTLLoss


def constraints(x, A_eq, A_ub, b_eq, b_ub, lb, ub):
    binds, low, high = np.isfinite(b_ub), np.isfinite(lb), np.isfinite(ub)
    parts = [(A_eq @ x == b_eq, len(b_eq)), (A_ub[binds] @ x <= b_ub[binds], binds.any())]
    parts += [(x[low] >= lb[low], low.any()), (x[high] <= ub[high], high.any())]
    return [part for part, is_there in parts if is_there]


def quadratic_decision(problem, b, cost, tau):
    x = cp.Variable(len(cost))
    objective = cp.Minimize(cost @ x + tau / 2 * cp.sum_squares(x))
    tight = {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}
    program = cp.Problem(objective, constraints(x, *limits_of(problem, b)))
    program.solve(solver=cp.CLARABEL, **tight)
    return x.value


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")  # asked for more than 1e-12
@pytest.mark.parametrize("tau", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_qptl_is_what_cvxpy_finds(case, tau):
    X, costs = decided(case)
    loss, q = QPTLLoss(case.problem, tau=tau, reduction="none"), costs.detach().numpy()
    values = loss(costs, X)
    values.sum().backward()
    way, step = np.random.default_rng(4).standard_normal(q.shape), 1e-4

    def worth(b, cost):
        return 0.5 * ((quadratic_decision(case.problem, b, cost, tau) - X[b]) ** 2).sum()

    for b in range(len(X)):
        assert values[b].item() == pytest.approx(worth(b, q[b]), rel=1e-6, abs=1e-7)
    up, down = worth(0, q[0] + step * way[0]), worth(0, q[0] - step * way[0])
    assert costs.grad[0].numpy() @ way[0] == pytest.approx((up - down) / (2 * step), abs=1e-4)


@pytest.mark.parametrize("criterion", ["decision", "regret"])
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_qptl_gradient(case, criterion):
    X, costs = decided(case, seed=1)
    loss = QPTLLoss(case.problem, tau=2.0, criterion=criterion, reduction="none")
    slopes_agree(loss, costs, X, true_costs=case.costs)


def test_qptl_between_bounds_alone_is_a_clipped_cost():
    problem = rv.LinearProgram(lb=[0, -1, -np.inf, 2], ub=[1, np.inf, np.inf, 2])
    q = torch.tensor([[-0.6, 3.0, 0.8, 5.0], [-9.0, -3.0, -0.8, 5.0]], dtype=torch.float64)
    q.requires_grad_()
    x = torch.tensor([[0.3, -1.0, -0.4, 2.0], [1.0, 1.5, 0.4, 2.0]], dtype=torch.float64)
    values = QPTLLoss(problem, tau=2.0, reduction="none")(q, torch.zeros(2, 4))
    values.sum().backward()
    np.testing.assert_allclose(values.detach(), 0.5 * x.square().sum(1), rtol=1e-10)
    free = torch.tensor([[1, 0, 1, 0], [0, 1, 1, 0]])
    np.testing.assert_allclose(q.grad, -x / 2 * free, atol=1e-10)


def test_the_method_does_not_go_in_circles():
    """A cost of a training run on which corrected steps alone went up and down for ever."""
    problem = rv.problems.grid_shortest_path(5, 5, directed="right-down")
    thousandths = """345 930 -578 -190 -627 -270 -374 948 -1243 150 -769 -403 456 -934 560 -590 149
        926 -1010 -623 1182 337 -1513 -204 906 -542 104 164 -173 168 -866 -573 -974 1220 464 -586
        -1063 799 -141 -1295"""
    row = np.array(thousandths.split(), float)[None] / 1000
    rng = np.random.default_rng(5)
    for costs in (row, rng.standard_normal((300, 40)), 10 * rng.standard_normal((300, 40))):
        X, costs = problem.solve(costs).x, torch.from_numpy(costs)
        for mu in (1e-4, 1e-2, 1.0):
            assert torch.isfinite(BarrierLoss(problem, mu=mu)(costs, X))
        assert torch.isfinite(QPTLLoss(problem, tau=0.01)(costs, X))


def test_a_knapsack_on_which_guessed_steps_go_round_for_ever():
    weights = [473.0, 512.0, 755.0, 950.0, 35.0, 145.0, 823.0, 948.0, 249.0, 312.0]
    costs = [-2.7643, 2.2891, -2.2366, 2.4752, -1.5157, 2.0827, 1.0009, -0.2284, -1.6254, -3.5545]
    problem = rv.problems.knapsack(np.array(weights), 2202.1442)
    q = torch.tensor([costs], dtype=torch.float64)
    found = quadratic_decision(problem, 0, np.array(costs), 1.0)
    observed = problem.solve(q).x
    value = float(QPTLLoss(problem, tau=1.0)(q, observed))
    expected = 0.5 * ((found - observed[0].numpy()) ** 2).sum()
    assert value == pytest.approx(expected, rel=1e-6, abs=1e-7)  # as for the cases above


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_qptl_at_hostile_scales(paths, scale):
    problem, X, _, costs = paths
    near = QPTLLoss(problem, tau=1.0, reduction="none")(costs, X)
    far = QPTLLoss(problem, tau=scale, reduction="none")(scale * costs, X)
    np.testing.assert_allclose(far, near, rtol=1e-7)


# --- implicit differentiation ------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("tau", [0.3, 2.0])
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_optnet_is_what_cvxpy_finds(case, tau):
    X, costs = decided(case, seed=6)
    q = costs.detach().numpy()
    values = OptNetLoss(case.problem, tau=tau, reduction="none")(costs, X)
    values.sum().backward()
    way, step = np.random.default_rng(8).standard_normal(q.shape), 1e-4

    def worth(b, cost):
        return 0.5 * ((quadratic_decision(case.problem, b, cost, tau) - X[b]) ** 2).sum()

    for b in range(len(X)):
        assert values[b].item() == pytest.approx(worth(b, q[b]), rel=1e-5, abs=1e-6)
    up, down = worth(1, q[1] + step * way[1]), worth(1, q[1] - step * way[1])
    assert costs.grad[1].numpy() @ way[1] == pytest.approx((up - down) / (2 * step), abs=1e-3)


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_optnet_and_qptl_are_the_same_derivative_where_no_bound_is_weakly_tight(case):
    X, costs = decided(case, seed=3)
    found = []
    for kind in (OptNetLoss, QPTLLoss):
        q = costs.detach().clone().requires_grad_()
        options = {"tau": 1.0, "criterion": "regret", "reduction": "none"}
        kind(case.problem, **options)(q, X, true_costs=case.costs).sum().backward()
        found.append(q.grad.numpy())
    size = np.abs(found[1]).max()
    np.testing.assert_allclose(found[0], found[1], atol=1e-4 * size)


# --- log barrier ---------------------------------------------------------------------------------


def barrier_decision(problem, b, cost, mu):
    A_eq, A_ub, b_eq, b_ub, lb, ub = limits_of(problem, b)
    x = cp.Variable(len(cost))
    gaps = [
        (b_ub - A_ub @ x, np.isfinite(b_ub)),
        (x - lb, np.isfinite(lb)),
        (ub - x, np.isfinite(ub)),
    ]
    logs = sum(cp.sum(cp.log(gap[there])) for gap, there in gaps if there.any())
    free = (lb < ub) | ~np.isfinite(lb)
    program = cp.Problem(cp.Minimize(cost @ x - mu * logs), [A_eq @ x == b_eq] if len(b_eq) else [])
    assert free.all()
    program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return x.value


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("case", catalogue(), ids=name_of)
def test_intopt_is_what_cvxpy_finds(case):
    X, costs = decided(case, noise=0.1)
    loss = BarrierLoss(case.problem, mu=0.1, reduction="none")
    values, q = loss(costs, X).detach().numpy(), costs.detach().numpy()
    theirs = [
        0.5 * ((barrier_decision(case.problem, b, q[b], 0.1) - X[b]) ** 2).sum()
        for b in range(len(X))
    ]
    np.testing.assert_allclose(values, theirs, rtol=2e-5, atol=2e-5)  # their cone is an exponential


@pytest.mark.parametrize("mu", [1e-4, 0.1, 5.0])
@pytest.mark.parametrize("case", INSIDE, ids=name_of)
def test_intopt_gradient_and_limit(case, mu):
    X, costs = decided(case, noise=0.05)
    step = min(1e-5, 0.01 * mu)
    slopes_agree(BarrierLoss(case.problem, mu=mu, reduction="none"), costs, X, step)
    regret = BarrierLoss(case.problem, mu=mu, criterion="regret", reduction="none")
    slopes_agree(regret, costs, X, step, true_costs=case.costs)
    # On the central path no more is lost than mu for each bound and each inequality.
    at_truth = regret(torch.from_numpy(case.costs), X, true_costs=case.costs)
    for b in range(len(X)):
        _, _, _, b_ub, lb, ub = limits_of(case.problem, b)
        count = np.isfinite(b_ub).sum() + (np.isfinite(np.stack([lb, ub])) & (lb < ub)).sum()
        assert 0 < at_truth[b].item() <= mu * count


def test_intopt_with_an_entry_without_bounds():
    case = random_program()
    X, costs = decided(case, noise=0.05)
    slopes_agree(BarrierLoss(case.problem, reduction="none"), costs, X, rel=1e-3)


def test_intopt_of_one_entry_is_a_fraction():
    """min c x - mu log x is at mu / c."""
    problem = rv.LinearProgram(lb=[0.0])
    q = torch.tensor([[0.5], [4.0]], dtype=torch.float64, requires_grad=True)
    values = BarrierLoss(problem, mu=0.2, reduction="none")(q, np.zeros((2, 1)))
    values.sum().backward()
    np.testing.assert_allclose(values.detach(), 0.5 * np.array([0.4, 0.05]) ** 2)
    np.testing.assert_allclose(q.grad[:, 0], -np.array([0.4, 0.05]) * 0.2 / np.array([0.25, 16]))


@pytest.mark.parametrize(
    "kind, problem, words",
    [
        (QPTLLoss, rv.LinearProgram(A_eq=[[1.0, 1.0]], b_eq=[-1.0]), "no decision meets"),
        (BarrierLoss, rv.LinearProgram(A_eq=[[1.0, 1.0]], b_eq=[-1.0]), "strictly inside"),
        (BarrierLoss, rv.LinearProgram(A_eq=[[1.0, 1.0]], b_eq=[0.0]), "strictly inside"),
        (BarrierLoss, rv.LinearProgram(A_eq=[[1.0, -1.0]], b_eq=[0.0]), "falls without limit"),
    ],
)
def test_problems_without_such_a_point_are_refused(kind, problem, words):
    costs = torch.tensor([[-1.0, -2.0]])
    with pytest.raises(rv.InputError, match=f"sample 0 .*{words}"):
        kind(problem)(costs, np.zeros((1, 2)))
