"""The catalogue: sizes, documented orders, refusals, and every entry against scipy's linprog."""

import sys

import networkx as nx
import numpy as np
import pytest
import torch
from scipy.optimize import linprog

from revealed import problems
from revealed.errors import InputError, ShapeError
from revealed.problems.linear import LinearProgram

RNG = np.random.default_rng(5)
B = 12
DIGRAPH = RNG.integers(0, 12, (40, 2))  # with cycles, self-loops, parallel edges, dead ends
DAG = np.sort(RNG.choice(12, (40, 2)), axis=1)
DAG = DAG[DAG[:, 0] < DAG[:, 1]]

# name -> (problem, lowest cost drawn); paths with cycles stay non-negative here
CATALOGUE = {
    "grid 4": (problems.grid_shortest_path(4, 5), 0.0),
    "grid 8": (problems.grid_shortest_path(5, 4, neighbors=8), 0.0),
    "grid right-down": (problems.grid_shortest_path(5, 5, directed="right-down"), -1.0),
    "grid column": (problems.grid_shortest_path(6, 1), 0.0),
    "digraph": (problems.shortest_path(DIGRAPH, source=0, target=7, n_nodes=12), 0.0),
    "digraph, own ends": (
        problems.shortest_path(
            DIGRAPH, source=RNG.integers(0, 12, B), target=RNG.integers(0, 12, B), n_nodes=12
        ),
        0.0,
    ),
    "acyclic, own targets": (
        problems.shortest_path(DAG, source=0, target=RNG.integers(0, 12, B), n_nodes=12),
        -1.0,
    ),
    "knapsack": (problems.knapsack(RNG.random(15), 3.0), -1.0),
    "knapsack, own capacities": (
        problems.knapsack(RNG.integers(0, 5, 15), RNG.integers(-1, 20, B)),
        -1.0,
    ),
    "knapsack, three resources": (problems.knapsack(RNG.random((3, 15)), [2.0, 3.0, 1.0]), -1.0),
    "knapsack, standard form": (
        problems.standard_form_knapsack(RNG.integers(1, 9, 6), 14.0),
        -1.0,
    ),
    "grid matching": (problems.grid_matching(4, 5), -1.0),
    "assignment": (problems.assignment(4, 4), -1.0),
    "assignment, spare tasks": (problems.assignment(3, 5), -1.0),
    "scheduling": (
        problems.scheduling(
            [2, 3, 1], [0, 1, 2], [6, 7, 8], n_periods=8, usage=[1.0, 2.0, 2.0], capacity=3.0
        ),
        -1.0,
    ),
    "markov decision process": (
        problems.markov_decision_process(RNG.dirichlet(np.ones(4), (4, 3)), 0.9),
        -1.0,
    ),
}


def reference(problem, i, cost):
    """Optimal value of instance i by scipy, or None when it has no optimum."""

    def pick(array):
        return array[i] if array.ndim == 2 else array

    result = linprog(
        cost,
        A_ub=problem.A_ub,
        b_ub=pick(problem.b_ub),
        A_eq=problem.A_eq,
        b_eq=pick(problem.b_eq),
        bounds=np.column_stack([pick(problem.lb), pick(problem.ub)]),
    )
    return result.fun if result.status == 0 else None


@pytest.mark.parametrize("ties", [False, True], ids=["random", "ties"])
@pytest.mark.parametrize("name", CATALOGUE)
def test_special_oracles_agree_with_scipy(name, ties):
    problem, low = CATALOGUE[name]
    rng = np.random.default_rng(len(name))
    costs = rng.uniform(low, 1.0, (B, problem.n_variables))
    costs = np.round(2 * costs) if ties else costs
    solution = problem.solve(costs)
    for i, cost in enumerate(costs):
        value = reference(problem, i, cost)
        assert solution.optimal[i] == (value is not None)
        if value is not None:
            assert solution.objective[i] == pytest.approx(value, rel=1e-9, abs=1e-9)
    ok = np.flatnonzero(solution.optimal)
    assert problem[ok].constraint_violation(solution.x[ok]).max() < 1e-12


@pytest.mark.parametrize("name", CATALOGUE)
def test_special_and_general_oracles_give_the_same_decisions(name):
    problem, low = CATALOGUE[name]
    parts = (problem.A_eq, problem.b_eq, problem.A_ub, problem.b_ub, problem.lb, problem.ub)
    costs = np.random.default_rng(2).uniform(low, 1.0, (B, problem.n_variables))
    special, general = problem.solve(costs), LinearProgram(*parts).solve(costs)
    np.testing.assert_array_equal(special.status, general.status)
    np.testing.assert_allclose(special.x, general.x, atol=1e-12)


@pytest.mark.parametrize("name", CATALOGUE)
def test_ties_fall_the_same_way_in_any_batch(name):
    problem, low = CATALOGUE[name]
    costs = np.round(np.random.default_rng(3).uniform(2 * low, 2.0, (B, problem.n_variables)))
    together = problem.solve(costs)
    order = np.random.default_rng(4).permutation(B)
    mixed = problem[order].solve(costs[order], threads=3)
    np.testing.assert_array_equal(mixed.x, together.x[order])
    for i in range(B):
        np.testing.assert_array_equal(problem[[i]].solve(costs[[i]]).x[0], together.x[i])


def test_sizes_of_the_classic_problems():
    grid = problems.grid_shortest_path
    assert grid(12, 12, neighbors=8).n_variables == 1012
    assert grid(12, 12, neighbors=8).A_eq.shape == (144, 1012)
    assert grid(5, 5, directed="right-down").n_variables == 40
    assert grid(5, 5).n_variables == 80
    assert problems.grid_matching(4, 4).n_variables == 24
    assert problems.assignment(3, 3).A_eq.shape == (6, 9)
    assert problems.assignment(2, 3).A_ub.shape == (3, 6)


def test_grid_edges_come_in_the_documented_order():
    grid = problems.grid_shortest_path(2, 2, neighbors=8).structure
    edges = list(zip(grid.tails.tolist(), grid.heads.tolist(), strict=True))
    assert edges == [
        *[(0, 1), (0, 2), (0, 3)],  # right, down, down-right
        *[(1, 3), (1, 0), (1, 2)],  # down, left, down-left
        *[(2, 3), (2, 0), (2, 1)],  # right, up, up-right
        *[(3, 2), (3, 1), (3, 0)],  # left, up, up-left
    ]
    assert grid.grid_shape == (2, 2)
    matching = problems.grid_matching(2, 2).structure
    assert matching.tails.tolist() == [0, 0, 1, 2]
    assert matching.heads.tolist() == [1, 2, 3, 3]


def test_the_incidence_matrix_is_plus_at_the_tail():
    problem = problems.shortest_path([(0, 1), (1, 2), (2, 2), (0, 1)], source=0, target=2)
    expected = [[1, 0, 0, 1], [-1, 1, 0, -1], [0, -1, 0, 0]]
    np.testing.assert_array_equal(problem.A_eq.toarray(), expected)
    np.testing.assert_array_equal(problem.b_eq, [1, 0, -1])
    np.testing.assert_array_equal(problem.ub, np.full(4, np.inf))


def test_source_at_the_target_is_the_empty_path():
    problem = problems.shortest_path([(0, 1), (1, 0)], source=[0, 0], target=[1, 0])
    np.testing.assert_array_equal(problem.b_eq, [[1, -1], [0, 0]])
    np.testing.assert_array_equal(problem.solve(np.ones((2, 2))).x, [[1, 0], [0, 0]])


def test_networkx_graphs_keep_their_names_and_order():
    graph = nx.DiGraph([("home", "shop"), ("shop", "work"), ("home", "work")])
    problem = problems.shortest_path(graph, source="home", target="work")
    cost = {("home", "shop"): 1.0, ("shop", "work"): 1.0, ("home", "work"): 3.0}
    x = problem.solve(np.array([[cost[edge] for edge in graph.edges]])).x[0]
    used = {edge for edge, flow in zip(graph.edges, x, strict=True) if flow}
    assert used == {("home", "shop"), ("shop", "work")}
    each = problems.shortest_path(graph, source=["home", "shop"], target="work")
    assert each.n_instances == 2
    grid = nx.grid_2d_graph(3, 3, create_using=nx.DiGraph)  # nodes are tuples
    assert problems.shortest_path(grid, source=(0, 0), target=(2, 2)).solve(
        np.ones((1, grid.number_of_edges()))
    ).objective == pytest.approx([4.0])


def test_numbers_of_networkx_nodes_need_not_be_positions():
    graph = nx.DiGraph([(10, 20), (20, 30)])
    sources = torch.tensor([10, 20])
    problem = problems.shortest_path(graph, source=sources, target=np.int64(30))
    np.testing.assert_array_equal(problem.solve(np.ones((2, 2))).objective, [2.0, 1.0])


def test_knapsack_takes_by_value_for_weight_and_leaves_what_costs():
    problem = problems.knapsack([1.0, 2.0, 3.0, 0.0, 1.0], 3.0)
    x = problem.solve(-np.array([[1.0, 1.0, 9.0, 0.5, -4.0], [2.0, 4.0, 3.0, 0.0, 0.0]])).x
    np.testing.assert_array_equal(x, [[0, 0, 1, 1, 0], [1, 1, 0, 0, 0]])


@pytest.mark.parametrize("seed", range(5))
def test_standard_form_decides_as_any_solver_does_whatever_the_slacks_cost(seed):
    rng = np.random.default_rng(seed)
    problem = problems.standard_form_knapsack(rng.integers(1, 1000, 7), rng.uniform(200, 3000))
    plain = LinearProgram(A_eq=problem.A_eq, b_eq=problem.b_eq, lb=0.0)  # without the structure
    costs = rng.standard_normal((40, problem.n_variables))
    costs[::2, 7] *= 1e-3  # else the budget's slack, in units of weight, decides alone
    np.testing.assert_allclose(problem.solve(costs).x, plain.solve(costs).x, atol=1e-7)


def test_knapsack_filled_exactly_leaves_no_crumbs():
    problem = problems.knapsack([0.1, 0.2, 0.3, 0.4], [0.3, 0.6, 0.0, np.inf])
    x = problem.solve(np.tile([-0.4, -0.6, -0.6, -0.4], (4, 1))).x
    np.testing.assert_array_equal(x, [[1, 1, 0, 0], [1, 1, 1, 0], [0, 0, 0, 0], [1, 1, 1, 1]])


@pytest.mark.parametrize("own", [False, True], ids=["shared", "own capacities"])
@pytest.mark.parametrize("rows, giving_up", [(2, [528, 1115, 1362]), (3, [303, 750, 1430])])
def test_knapsacks_on_which_the_primal_method_gives_up(rows, giving_up, own):
    """HiGHS 1.15's primal simplex ends these with status unknown, up to 0.2% above the optimum."""
    rng = np.random.default_rng(0)
    weights, costs = rng.uniform(1, 5, (rows, 50)), rng.uniform(-2, -0.1, (2000, 50))
    costs = costs[[i + d for i in giving_up for d in (0, 1)]]  # each with one that is no trouble
    capacity = np.full((len(costs), rows) if own else rows, 50.0)
    problem = problems.knapsack(weights, capacity)
    solution = problem.solve(costs, threads=1)
    assert solution.optimal.all()
    assert problem.constraint_violation(solution.x).max() < 1e-12
    for i, cost in enumerate(costs):
        assert solution.objective[i] == pytest.approx(reference(problem, i, cost), rel=1e-12)
        assert ((solution.x[i] > 0) & (solution.x[i] < 1)).sum() <= rows  # a vertex
    backwards = problem[::-1].solve(costs[::-1], threads=1)
    np.testing.assert_array_equal(backwards.x[::-1], solution.x)


REFUSED = [
    (lambda p: p.grid_shortest_path(0, 5), InputError, "`rows` must be a positive integer; got 0"),
    (lambda p: p.grid_shortest_path(5, 2.0), InputError, "`cols` must be a positive integer"),
    (lambda p: p.grid_shortest_path(True, 2), InputError, "`rows` must be a positive integer"),
    (lambda p: p.grid_shortest_path(1, 1), InputError, "at least two cells"),
    (lambda p: p.grid_shortest_path(3, 3, neighbors=6), InputError, "must be 4 or 8; got 6"),
    (lambda p: p.grid_shortest_path(3, 3, directed="up"), InputError, "\"right-down\"; got 'up'"),
    (
        lambda p: p.grid_shortest_path(3, 3, neighbors=8, directed="right-down"),
        InputError,
        "has no diagonals",
    ),
    (
        lambda p: p.shortest_path([(0, 1)], source=2, target=1),
        InputError,
        "`source` must be a node",
    ),
    (lambda p: p.shortest_path([(0, 1)], source=0, target=[1, -1]), InputError, "at instance 1"),
    (lambda p: p.shortest_path([(0, 1)], source=0.0, target=1), InputError, "integer node numbers"),
    (
        lambda p: p.shortest_path([(0, 1)], source=[0, 0], target=[1, 1, 1]),
        ShapeError,
        "same length; got 2 and 3",
    ),
    (lambda p: p.shortest_path([(0, 1)], source=[[0]], target=1), ShapeError, "node or a .B,."),
    (lambda p: p.shortest_path([], source=0, target=0), ShapeError, "at least one edge"),
    (lambda p: p.shortest_path([(0, 1, 2)], source=0, target=1), ShapeError, r"shape \(1, 3\)"),
    (lambda p: p.shortest_path([(0, 1), (2,)], source=0, target=1), ShapeError, "rectangular"),
    (lambda p: p.shortest_path([(0, -1)], source=0, target=0), InputError, r"edge 0 is \(0, -1\)"),
    (
        lambda p: p.shortest_path([(0, 5)], source=0, target=1, n_nodes=3),
        InputError,
        "raise `n_nodes`",
    ),
    (
        lambda p: p.shortest_path(nx.Graph([(0, 1)]), source=0, target=1),
        InputError,
        "must be directed",
    ),
    (
        lambda p: p.shortest_path(nx.DiGraph([("a", "b")]), source="c", target="b"),
        InputError,
        "`source` must be a node of the graph; got 'c'",
    ),
    (
        lambda p: p.shortest_path(nx.DiGraph([(0, 1)]), source=0, target=1, n_nodes=5),
        InputError,
        "the graph has 2 nodes",
    ),
    (
        lambda p: p.shortest_path(nx.empty_graph(2, nx.DiGraph), source=0, target=1),
        ShapeError,
        "networkx graph has none",
    ),
    (lambda p: p.knapsack([1.0, -2.0], 1.0), InputError, r"not negative; got -2.0 at entry \(1,\)"),
    (lambda p: p.knapsack([1.0, np.inf], 1.0), InputError, "`weights` must be finite"),
    (lambda p: p.knapsack([], 1.0), ShapeError, "at least one item"),
    (lambda p: p.knapsack([1.0], np.nan), InputError, "`capacity` must be a number"),
    (lambda p: p.knapsack([1.0], -np.inf), InputError, r"must be a number or \+inf; got -inf"),
    (lambda p: p.knapsack([1.0], [[1.0]]), ShapeError, r"a scalar or \(B,\)"),
    (
        lambda p: p.standard_form_knapsack(np.ones((2, 3)), 1.0),
        ShapeError,
        "one number in standard",
    ),
    (lambda p: p.standard_form_knapsack([1.0], -1.0), InputError, "finite and not negative"),
    (lambda p: p.knapsack(np.ones((2, 3)), np.ones(3)), ShapeError, r"\(2,\) or \(B, 2\)"),
    (lambda p: p.grid_matching(3, 5), InputError, "even number of cells; 3 x 5 has 15"),
    (lambda p: p.assignment(3, 2), InputError, "3 workers and 2 tasks"),
    (lambda p: p.assignment(0, 2), InputError, "`n_workers` must be a positive integer"),
]


@pytest.mark.parametrize("build, error, phrase", REFUSED)
def test_bad_arguments_meet_a_sentence(build, error, phrase):
    with pytest.raises(error, match=phrase):
        build(problems)


def test_functions_of_the_catalogue_hide_no_module():
    assert callable(problems.integer_schedules)
    for name in ("scheduling", "portfolio", "knapsack", "shortest_path", "assignment"):
        assert f"revealed.problems.{name}" not in sys.modules
