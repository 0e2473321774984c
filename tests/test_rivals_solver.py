"""MOM, QPTL, IntOpt and CaVE against their definitions, CVXPY, scipy and finite differences."""

import copy

import cvxpy as cp
import numpy as np
import pytest
import torch
from scipy.optimize import nnls

import revealed as rv
from helpers import Case, catalogue, parts_of, per_instance_matrices, tiny_path
from revealed.losses import BarrierLoss, CaveLoss, OptimalityMarginLoss, QPTLLoss, make_loss
from revealed.losses import _basis as basis_module


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

LOSSES = {
    "mom": (OptimalityMarginLoss, {"margin": 0.7}),
    "mom true": (OptimalityMarginLoss, {"basis": "true"}),
    "qptl": (QPTLLoss, {"tau": 0.5}),
    "qptl regret": (QPTLLoss, {"criterion": "regret"}),
    "intopt": (BarrierLoss, {"mu": 0.3}),
    "intopt regret": (BarrierLoss, {"criterion": "regret"}),
    "cave": (CaveLoss, {}),
    "cave+": (CaveLoss, {"variant": "plus"}),
    "cave hybrid": (CaveLoss, {"variant": "hybrid", "solve_ratio": 0.0}),
}


@pytest.fixture(autouse=True)
def _one_thread():
    """Batches this small leave a second thread nothing but waiting."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def name_of(case):
    return case.name


@pytest.fixture(params=LOSSES)
def build(request):
    """One of the losses, still to be told its problem."""
    kind, options = LOSSES[request.param]
    return lambda problem, **more: kind(problem, **(options | more))


@pytest.fixture
def paths():
    problem = rv.problems.grid_shortest_path(4, 4, directed="right-down")
    rng = np.random.default_rng(2)
    truth = 1 + rng.random((6, problem.n_variables))
    costs = torch.from_numpy(truth + 0.3 * rng.standard_normal(truth.shape))
    return problem, problem.solve(truth).x, truth, costs


def decided(case, seed=0, noise=0.3):
    """Decisions under the costs of a case, and costs nearby as a leaf to differentiate by."""
    noise = noise * np.random.default_rng(seed).standard_normal(case.costs.shape)
    costs = torch.tensor(case.costs + noise, requires_grad=True)
    return case.problem.solve(case.costs).x, costs


def limits_of(problem, b):
    vectors = (problem.b_eq, problem.b_ub, problem.lb, problem.ub)
    matrices = (A[b] if isinstance(A, tuple) else A for A in (problem.A_eq, problem.A_ub))
    return *(A.toarray() for A in matrices), *(v[b] if v.ndim == 2 else v for v in vectors)


def slopes_agree(loss, costs, X, step=1e-5, **options):
    """The gradient against central differences of the values."""
    value = loss(costs, X, **options).sum()
    (gradient,) = torch.autograd.grad(value, costs)
    rng = np.random.default_rng(3)
    for _ in range(4):
        way = torch.from_numpy(rng.standard_normal(costs.shape))
        up, down = (loss(costs.detach() + k * step * way, X, **options).sum() for k in (1, -1))
        found, told = (up - down).item() / (2 * step), (gradient * way).sum().item()
        assert found == pytest.approx(told, rel=1e-5, abs=1e-7)


# --- maximum optimality margin -------------------------------------------------------------------


def standard_form(problem, b, basic, state):
    """A, and a basis, of the form A z = b, z >= 0 in which every finite upper bound is a row.

    z holds entries less their lower bounds, slacks of the inequalities, slacks of upper bounds.
    """
    A_eq, A_ub, _, _, _, ub = limits_of(problem, b)
    m_eq, m_ub, n, above = len(A_eq), len(A_ub), problem.n_variables, np.isfinite(ub)
    A = np.block(
        [
            [A_eq, np.zeros((m_eq, m_ub + above.sum()))],
            [A_ub, np.eye(m_ub), np.zeros((m_ub, above.sum()))],
            [np.eye(n)[above], np.zeros((above.sum(), m_ub)), np.eye(above.sum())],
        ]
    )
    entry = basic[:n] | (state == rv.EntryState.AT_UPPER)
    upper = basic[:n] | (state == rv.EntryState.AT_LOWER)
    return A, np.concatenate([entry, basic[n + m_eq :], upper[above]])


def margin_by_hand(problem, b, cost, basic, state, margin):
    """The authors' formula: sum of max(0, margin - reduced cost) over nonbasic columns."""
    A, basis = standard_form(problem, b, basic, state)
    c = np.concatenate([cost, np.zeros(A.shape[1] - len(cost))])
    y, _, rank, _ = np.linalg.lstsq(A[:, basis].T, c[basis], rcond=None)
    assert rank == basis.sum() == np.linalg.matrix_rank(A)
    reduced = c - A.T @ y
    np.testing.assert_allclose(reduced[basis], 0, atol=1e-9)
    return np.maximum(0, margin - reduced[~basis]).sum()


STANDARD = [case for case in CASES if case.name != "random"]  # with lower bounds, nothing fixed


@pytest.mark.parametrize("basis", ["decision", "true"])
@pytest.mark.parametrize("case", STANDARD, ids=name_of)
def test_mom_is_the_formula_of_its_authors(case, basis):
    X, costs = decided(case, noise=1.0)
    loss = OptimalityMarginLoss(case.problem, margin=0.8, basis=basis, reduction="none")
    values = loss(costs, X, true_costs=case.costs)
    bases = loss.bases(loss._batch(costs, X, case.costs, None))
    state = rv.OptimalitySet(case.problem, X).entry_state
    for b in range(len(X)):
        basic = np.zeros(bases.side.shape[1], bool)
        basic[bases.columns[b].numpy()] = True
        by_hand = margin_by_hand(case.problem, b, costs[b].detach().numpy(), basic, state[b], 0.8)
        assert values[b].item() == pytest.approx(by_hand, rel=1e-9)
    slopes_agree(loss, costs, X, true_costs=case.costs)


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_mom_with_the_true_basis_accepts_the_true_costs(case):
    """The basis proves the decision optimal, however degenerate that is."""
    X, _ = decided(case)
    loss = OptimalityMarginLoss(case.problem, margin=0.0, basis="true", reduction="none")
    truth = torch.from_numpy(case.costs)
    np.testing.assert_allclose(loss(truth, X, true_costs=case.costs), 0, atol=1e-8)


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_mom_bases_hold_the_free_columns_and_can_be_inverted(case):
    X, costs = decided(case)
    loss = OptimalityMarginLoss(case.problem)
    bases = loss.bases(loss._batch(costs, X, None, None))
    sets = rv.OptimalitySet(case.problem, X)
    for b, columns in enumerate(bases.columns.numpy()):
        A_eq, A_ub, *_ = limits_of(case.problem, b)
        rows = np.vstack([A_eq, A_ub])
        full = np.hstack([rows, np.eye(len(rows))])
        np.testing.assert_allclose(
            bases.inverse[b].numpy() @ full[:, columns], np.eye(len(rows)), atol=1e-9
        )
        free = np.flatnonzero(sets.entry_state[b] == rv.EntryState.FREE)
        free = np.concatenate(
            [free, full.shape[1] - len(A_ub) + np.flatnonzero(~sets.row_active[b])]
        )
        rank = np.linalg.matrix_rank(full[:, free]) if free.size else 0
        assert np.isin(free, columns).sum() == rank
    assert not (bases.side == basis_module.BOTH).any()  # vertices leave no free column out


def test_mom_on_a_path_worked_by_hand():
    """The direct way is taken. Row 0 takes it into the basis, row 1 the first of the two others,
    0 -> 1; row 2 depends on them. What remains is c(0 -> 1) + c(1 -> 2) - c(0 -> 2)."""
    problem, X = tiny_path(), np.array([[0.0, 0.0, 1.0]])
    q = torch.tensor([[0.4, 0.3, 0.6]], dtype=torch.float64, requires_grad=True)
    loss = OptimalityMarginLoss(problem)
    value = loss(q, X)
    value.backward()
    assert loss.bases(loss._batch(q, X, None, None)).columns.tolist() == [[2, 0, 5]]
    assert value.item() == pytest.approx(1 - 0.1)
    assert q.grad.tolist() == [[-1.0, -1.0, 1.0]]
    assert loss(torch.tensor([[1.0, 1.0, 1.0]]), X).item() == 0


def test_mom_of_a_decision_between_vertices_asks_for_reduced_costs_of_0():
    problem = rv.LinearProgram(A_eq=np.ones((1, 3)), b_eq=[1.0])
    loss = OptimalityMarginLoss(problem)
    q = torch.tensor([[1.0, 3.0, 1.5]], dtype=torch.float64, requires_grad=True)
    loss(q, np.array([[0.5, 0.5, 0.0]])).backward()
    assert loss(q, np.array([[0.5, 0.5, 0.0]])).item() == pytest.approx(2 + 0.5)
    assert q.grad.tolist() == [[0.0, 1.0, -1.0]]


def test_mom_asks_nothing_of_fixed_entries_and_the_opposite_at_upper_bounds():
    problem = rv.LinearProgram(A_ub=np.ones((1, 3)), b_ub=[5.0], lb=[0, 0, 1], ub=[2, 2, 1])
    q = torch.tensor([[0.3, -0.4, 9.0]], dtype=torch.float64)
    value = OptimalityMarginLoss(problem)(q, np.array([[0.0, 2.0, 1.0]]))
    assert value.item() == pytest.approx(0.7 + 0.6)


def test_mom_without_any_row_looks_at_the_costs_themselves():
    problem = rv.LinearProgram(lb=[0.0, 0.0], ub=[1.0, 1.0])
    q = torch.tensor([[0.2, 0.5]], dtype=torch.float64)
    assert OptimalityMarginLoss(problem)(q, np.array([[0.0, 1.0]])).item() == 0.8 + 1.5


def test_mom_finds_each_basis_once(paths, monkeypatch):
    problem, X, truth, costs = paths
    found = []

    def counting(sets, *rest):
        found.append(len(sets))
        return basis_module.bases_of(sets, *rest)

    monkeypatch.setattr("revealed.losses.optimality_margin.bases_of", counting)
    for options in ({}, {"basis": "true"}):
        loss, call = OptimalityMarginLoss(problem, **options), {"true_costs": truth}
        first = loss(costs, X, **call)
        assert loss(costs, rv.OptimalitySet(problem, X), **call) == first
        part = loss(costs[[4, 1]], X[[4, 1]], true_costs=truth[[4, 1]])
        assert found == [6]
        alone = OptimalityMarginLoss(problem, **options)
        assert part == alone(costs[[4, 1]], X[[4, 1]], true_costs=truth[[4, 1]])
        loss.forget()
        assert loss(costs, X, **call) == first
        found.clear()


def test_mom_without_room_to_keep_bases(paths, monkeypatch):
    problem, X, _, costs = paths
    whole = OptimalityMarginLoss(problem, reduction="none")(costs, X)
    monkeypatch.setattr(basis_module, "MOST_KEPT", 3 * 16**2)
    loss = OptimalityMarginLoss(problem, reduction="none")
    for rows in ([0, 1], [2, 3, 0], [4, 5, 1], [0, 1], range(6)):
        np.testing.assert_allclose(loss(costs[list(rows)], X[list(rows)]), whole[list(rows)])


# --- QPTL ----------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_qptl_at_hostile_scales(paths, scale):
    problem, X, _, costs = paths
    near = QPTLLoss(problem, tau=1.0, reduction="none")(costs, X)
    far = QPTLLoss(problem, tau=scale, reduction="none")(scale * costs, X)
    np.testing.assert_allclose(far, near, rtol=1e-7)


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


# --- CaVE ----------------------------------------------------------------------------------------


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
        assert (sets.slack(target) > 0).all()
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


# --- what holds for all of them ------------------------------------------------------------------


def test_reductions_weights_and_sets(build, paths):
    problem, X, truth, costs = paths
    weights = np.array([0.0, 1.0, 2.0, 0.5, 1.5, 3.0])
    each = build(problem, reduction="none")(costs, X, true_costs=truth)
    for margin in (0.0, 1.0):  # a margin of the sets is none of their business
        sets = rv.OptimalitySet(problem, X, margin)
        same = build(problem, reduction="none")(costs, sets, true_costs=truth)
        np.testing.assert_allclose(same, each)
    mean, total = (build(problem, reduction=r) for r in ("mean", "sum"))
    call = {"true_costs": truth, "weights": weights}
    assert mean(costs, X, **call).item() == pytest.approx(np.average(each, weights=weights))
    assert total(costs, X, **call).item() == pytest.approx((weights * each.numpy()).sum())
    q = costs.clone().requires_grad_()
    mean(q, X, **call).backward()
    alone = costs.clone().requires_grad_()
    (
        build(problem, reduction="none")(alone, X, true_costs=truth) @ torch.from_numpy(weights)
    ).backward()
    np.testing.assert_allclose(q.grad, alone.grad / weights.sum(), atol=1e-12)


def test_batch_equals_loop(build, paths):
    problem, X, truth, costs = paths
    loss = build(problem, reduction="none")
    whole = loss(costs, X, true_costs=truth)
    for b in range(6):
        alone = build(problem)(costs[[b]], X[[b]], true_costs=truth[[b]])
        assert alone.item() == pytest.approx(whole[b].item(), rel=1e-8, abs=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_dtypes(build, paths, dtype):
    problem, X, truth, costs = paths
    q = costs.to(dtype).requires_grad_()
    value = build(problem)(q, torch.from_numpy(X).float(), true_costs=truth)
    value.backward()
    assert value.dtype == torch.float32
    assert q.grad.dtype == dtype
    assert torch.isfinite(q.grad).all()
    exact = build(problem)(q.detach().double(), X, true_costs=truth)
    assert value.item() == pytest.approx(exact.item(), rel=1e-5)


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_an_empty_batch(build, paths, reduction):
    problem, X, truth, costs = paths
    q = costs[:0].clone().requires_grad_()
    value = build(problem, reduction=reduction)(q, X[:0], true_costs=truth[:0])
    value.sum().backward()
    assert value.shape == (() if reduction == "mean" else (0,))
    assert value.sum() == 0
    assert q.grad.shape == q.shape


@pytest.mark.parametrize("own", ["right-hand sides", "matrices"])
def test_instances_with_their_own_constraints(build, own):
    rng = np.random.default_rng(0)
    if own == "matrices":
        weights = rng.integers(2, 7, (5, 1, 4)) * 1.0
        problem = rv.LinearProgram(A_ub=weights, b_ub=8.0, ub=1.0)
    else:
        problem = rv.problems.knapsack(np.array([3.0, 5, 4, 7]), np.array([6.0, 9, 11, 14, 7]))
    truth = -0.2 - rng.random((5, 4))
    X, costs = problem.solve(truth).x, torch.from_numpy(-0.2 - rng.random((5, 4)))
    loss = build(problem, reduction="none")
    whole = loss(costs, X, true_costs=truth)
    some = np.array([3, 0, 4])
    for part in (X[some], rv.OptimalitySet(problem, X)[some]):
        again = loss(costs[some], part, true_costs=truth[some], index=some)
        np.testing.assert_allclose(again, whole[some], rtol=1e-7, atol=1e-9)
    for b in range(5):
        alone = build(problem[[b]])(costs[[b]], X[[b]], true_costs=truth[[b]])
        assert alone.item() == pytest.approx(whole[b].item(), rel=1e-7, abs=1e-9)
    with pytest.raises(rv.ShapeError, match="5 instances"):
        loss(costs[some], X[some], true_costs=truth[some])


def test_no_oracle_is_called(build, paths, monkeypatch):
    problem, X, truth, costs = paths
    loss = build(problem)
    if getattr(loss, "basis", "") == "true":
        loss(costs, X, true_costs=truth)  # the first time it is
    monkeypatch.setattr(rv.LinearProgram, "solve", lambda *args, **options: 1 / 0)
    assert torch.isfinite(loss(costs, X, true_costs=truth))


def test_true_costs_are_asked_for_where_they_are_needed(build, paths):
    problem, X, _, costs = paths
    loss = build(problem)
    if loss.needs_true_costs:
        with pytest.raises(rv.InputError, match="learns from true costs"):
            loss(costs, X)
    else:
        assert torch.isfinite(loss(costs, X))


def test_they_are_modules_without_state(build, paths):
    problem, X, truth, costs = paths
    loss = build(problem)
    value = loss(costs, X, true_costs=truth)
    assert loss.state_dict() == {}
    assert copy.deepcopy(loss)(costs, X, true_costs=truth) == value
    for _, option in LOSSES.values():
        for name in option.keys() & vars(loss).keys():
            assert f"{name}=" in repr(loss)


@pytest.mark.parametrize(
    "kind, options, complaint",
    [
        (OptimalityMarginLoss, {"margin": -1.0}, "at least 0"),
        (OptimalityMarginLoss, {"margin": True}, "at least 0"),
        (OptimalityMarginLoss, {"basis": "optimal"}, "'decision', read off"),
        (QPTLLoss, {"tau": 0.0}, "above 0"),
        (QPTLLoss, {"criterion": "cost"}, "'regret'"),
        (BarrierLoss, {"mu": np.inf}, "above 0"),
        (BarrierLoss, {"criterion": None}, "'regret'"),
        (CaveLoss, {"variant": "inner"}, "'exact', 'plus' or 'hybrid'"),
        (CaveLoss, {"max_iter": 0}, "max_iter"),
        (CaveLoss, {"solve_ratio": 1.5}, "from 0 to 1"),
        (CaveLoss, {"inner_ratio": -0.1}, "from 0 to 1"),
        (CaveLoss, {"seed": -1}, "at least 0"),
        (QPTLLoss, {"reduction": "average"}, "mean, sum, none"),
    ],
)
def test_bad_settings_meet_a_sentence(paths, kind, options, complaint):
    with pytest.raises(rv.InputError, match=complaint):
        kind(paths[0], **options)


def test_infeasible_decisions_are_refused_where_their_states_matter(paths):
    problem, X, _, costs = paths
    for name in ("mom", "cave", "cave+"):
        with pytest.raises(rv.InfeasibleDecisionError, match="Decision 0 breaks"):
            make_loss(name, problem)(costs, X + 0.2)
