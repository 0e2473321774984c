"""Maximum optimality margin against its authors' formula, bases worked by hand, and slopes."""

import numpy as np
import pytest
import torch
from solver_cases import CASES, decided, limits_of, name_of, slopes_agree
from solver_cases import one_thread as one_thread
from solver_cases import paths as paths

import revealed as rv
from helpers import tiny_path
from revealed.losses import OptimalityMarginLoss
from revealed.losses.rivals import basis as basis_module


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

    monkeypatch.setattr("revealed.losses.rivals.optimality_margin.bases_of", counting)
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
