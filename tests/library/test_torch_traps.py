"""What a training loop may get wrong without noticing: margins, ties, the order of edges."""

import numpy as np
import pytest
import torch

import revealed as rv
from revealed.losses import ProjectionLoss, SmoothedProjectionLoss, TrivialCostWarning

GRID = rv.problems.grid_shortest_path(3, 4, directed="right-down")


def paths(seed=0, size=4):
    return GRID.solve(np.random.default_rng(seed).random((size, GRID.n_variables)) + 0.5).x


@pytest.mark.parametrize("kind", [ProjectionLoss, SmoothedProjectionLoss])
def test_losses_take_sets_of_the_usual_margin(kind):
    X = paths()
    costs = torch.ones(X.shape, dtype=torch.float64)
    assert float(kind(GRID)(costs, rv.OptimalitySet(GRID, X))) > 0


def test_margin_zero_gets_a_sentence_once():
    X, loss = paths(), ProjectionLoss(GRID, 0.0)
    costs = torch.zeros(X.shape, dtype=torch.float64)
    with pytest.warns(TrivialCostWarning, match="margin=1"):
        assert float(loss(costs, X)) == 0.0  # the trivial cost explains everything
    loss(costs, X)  # a second warning would be an error
    ProjectionLoss(GRID)(costs, X)
    SmoothedProjectionLoss(GRID, 0.0)(costs, X)


def test_margin_zero_is_nobodys_business_where_zero_explains_nothing():
    problem = rv.QuadraticProgram(Q=np.eye(3), sense="min", A_eq=np.ones((1, 3)), b_eq=[1.0])
    loss = ProjectionLoss(problem, 0.0)
    X = np.array([[1.0, 0.0, 0.0]])
    assert float(loss(torch.zeros(1, problem.n_parameters, dtype=torch.float64), X)) > 0


def test_a_tie_costs_what_the_page_says():
    """Two ways of five edges, equally long: k = 5 edges of the other one, N = 10 that differ."""
    first, second = np.r_[0, 2:6], np.r_[0, 6:10]
    edges = [*zip(first, np.r_[2:6, 1], strict=True), *zip(second, np.r_[6:10, 1], strict=True)]
    problem = rv.problems.shortest_path(edges, source=0, target=1)
    tie = np.ones((1, 10))
    loss = ProjectionLoss(problem)(torch.from_numpy(tie), problem.solve(tie).x)
    assert float(loss) == pytest.approx(1.25)


def test_pyepo_edges_come_row_by_row():
    expected = [(0, 1), (1, 2), (0, 3), (1, 4), (2, 5), (3, 4), (4, 5)]
    assert rv.problems.pyepo_edges(2, 3).tolist() == [list(edge) for edge in expected]


def test_the_permutation_brings_costs_and_decisions_to_our_order():
    order = rv.problems.pyepo_edge_order(3, 4)
    theirs = rv.problems.pyepo_edges(3, 4)
    own = np.stack([GRID.structure.tails, GRID.structure.heads], axis=1)
    assert np.array_equal(theirs[order], own)
    X = paths()
    assert np.array_equal(X[:, np.argsort(order)][:, order], X)


def test_decisions_in_their_order_are_recognized():
    X = paths(size=6)[:, np.argsort(rv.problems.pyepo_edge_order(3, 4))]
    with pytest.raises(rv.InfeasibleDecisionError, match="pyepo_edge_order"):
        rv.OptimalitySet(GRID, X)
    with pytest.raises(rv.InfeasibleDecisionError) as other:
        rv.OptimalitySet(GRID, np.ones((1, GRID.n_variables)))
    assert "pyepo" not in str(other.value)


def test_lists_of_other_edges_are_refused():
    edges = rv.problems.pyepo_edges(3, 4)
    with pytest.raises(rv.InputError, match="not in"):
        rv.problems.edge_order(GRID, edges[:, ::-1])
    with pytest.raises(rv.InputError, match="shape"):
        rv.problems.edge_order(GRID, edges[1:])
    with pytest.raises(rv.InputError, match="path problem"):
        rv.problems.edge_order(rv.problems.assignment(3, 3), edges)
