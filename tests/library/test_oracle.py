"""Oracles: right statuses, exact vertices, one answer in any batch, honest when a solver lies."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from scipy import sparse
from scipy.optimize import linprog

from revealed import problems
from revealed.errors import InputError, ShapeError
from revealed.oracles import general
from revealed.oracles.claims import Claim
from revealed.oracles.fallback import Doubtful
from revealed.oracles.highs import HighsSolver
from revealed.problems.linear import LinearProgram
from revealed.problems.solution import Solution, SolveStatus

OPTIMAL, INFEASIBLE, UNBOUNDED, LIMIT, FAILED = SolveStatus
INF = np.inf
DUST = 0.1 + 0.2 - 0.3


def random_program(seed):
    """Small integer programs with free, fixed, one-sided and boxed entries; many ties."""
    rng = np.random.default_rng(seed)
    n, m_eq, m_ub = rng.integers(1, 9), rng.integers(0, 4), rng.integers(0, 5)
    A_eq, A_ub = (
        (rng.integers(-3, 4, (m, n)) * (rng.random((m, n)) < 0.7)).astype(float)
        for m in (m_eq, m_ub)
    )
    x = rng.integers(-2, 4, n).astype(float)
    b_eq, b_ub = A_eq @ x, A_ub @ x + rng.integers(0, 2, m_ub)
    if rng.random() < 0.3:  # most of these are infeasible
        b_eq, b_ub = rng.integers(-3, 4, m_eq), rng.integers(-3, 4, m_ub)
    lb = np.where(rng.random(n) < 0.3, -INF, x - rng.integers(0, 3, n))
    ub = np.where(rng.random(n) < 0.5, INF, x + rng.integers(0, 3, n))
    return LinearProgram(A_eq, b_eq, A_ub, b_ub, lb, ub), rng.integers(-3, 4, (5, n)).astype(float)


def reference(problem, cost, i=0):
    """Status and optimal value of instance i, by scipy; infeasible first, as costs hide it."""

    def pick(array):
        return array[i] if array.ndim == 2 else array

    def run(c):
        return linprog(
            c,
            A_ub=problem.ub_rows.matrix(i),
            b_ub=pick(problem.b_ub),
            A_eq=problem.eq_rows.matrix(i),
            b_eq=pick(problem.b_eq),
            bounds=np.column_stack([pick(problem.lb), pick(problem.ub)]),
        )

    if run(np.zeros_like(cost)).status == 2:
        return INFEASIBLE, np.nan
    result = run(cost)
    return (OPTIMAL, result.fun) if result.status == 0 else (UNBOUNDED, np.nan)


def is_vertex(problem, x):
    """Whether the rows and bounds active at x leave no direction, up to free lines."""
    A = np.vstack([problem.A_eq.toarray(), problem.A_ub.toarray()])
    active = np.concatenate(
        [np.ones(len(problem.b_eq), bool), problem.A_ub @ x >= problem.b_ub - 1e-9]
    )
    on_bound = (x == problem.lb) | (x == problem.ub)
    bounded = np.isfinite(problem.lb) | np.isfinite(problem.ub)
    normals = np.vstack([A[active], np.eye(len(x))[on_bound]])
    every = np.vstack([A, np.eye(len(x))[bounded]])
    return np.linalg.matrix_rank(normals) == np.linalg.matrix_rank(every)


@pytest.mark.parametrize("seed", range(60))
def test_random_programs_agree_with_scipy(seed):
    problem, costs = random_program(seed)
    solution = problem.solve(costs, threads=1)
    for i, cost in enumerate(costs):
        status, value = reference(problem, cost)
        assert solution.status[i] == status
        np.testing.assert_allclose(solution.objective[i], value, rtol=1e-9, atol=1e-9)
        if status == OPTIMAL:
            assert is_vertex(problem, solution.x[i])
            assert solution.objective[i] == (cost * solution.x[i]).sum()
        else:
            assert np.isnan(solution.x[i]).all()
    assert problem.constraint_violation(solution.x[solution.optimal]).max(initial=0.0) < 1e-12


@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_batch_order_threads_and_company_change_nothing(seed):
    problem, costs = random_program(seed)
    together = problem.solve(costs, threads=1).x
    backwards = problem.solve(costs[::-1], threads=3).x[::-1]
    np.testing.assert_array_equal(backwards, together)
    for cost, x in zip(costs, together, strict=True):
        fresh = LinearProgram(
            problem.A_eq, problem.b_eq, problem.A_ub, problem.b_ub, problem.lb, problem.ub
        )
        np.testing.assert_array_equal(fresh.solve(cost[None]).x[0], x)


@pytest.mark.parametrize("part", ["b_eq", "b_ub", "lb and ub", "A_eq", "A_ub", "everything"])
def test_instances_with_parts_of_their_own(part):
    rng = np.random.default_rng(7)
    B, n = 6, 7
    x = rng.random((B, n))
    own = {"A_eq": rng.standard_normal((B, 2, n)), "A_ub": rng.standard_normal((B, 3, n))}
    own["b_eq"] = np.einsum("bmn,bn->bm", own["A_eq"], x)
    own["b_ub"] = np.einsum("bmn,bn->bm", own["A_ub"], x) + rng.random((B, 3))
    own["lb"], own["ub"] = x - rng.random((B, n)), x + rng.random((B, n))
    shared = {name: array[0] for name, array in own.items()}
    if part == "A_eq":
        own["A_eq"] = [sparse.csc_array(A) for A in own["A_eq"]]
    chosen = own if part == "everything" else {k: own[k] for k in part.split(" and ")}
    problem = LinearProgram(**{**shared, **chosen})
    costs = rng.standard_normal((B, n))
    solution = problem.solve(costs)
    for i, cost in enumerate(costs):
        status, value = reference(problem, cost, i)
        assert solution.status[i] == status
        np.testing.assert_allclose(solution.objective[i], value, rtol=1e-9)
        np.testing.assert_array_equal(problem[i].solve(cost[None]).x[0], solution.x[i])
    order = rng.permutation(B)
    np.testing.assert_array_equal(problem[order].solve(costs[order]).x, solution.x[order])


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.coo_matrix, sparse.dok_array])
def test_sparse_and_dense_give_the_same_decisions(form):
    rng = np.random.default_rng(8)
    A, x = rng.integers(-2, 3, (3, 6)).astype(float), rng.random(6)
    costs = rng.standard_normal((5, 6))
    dense = LinearProgram(A_eq=A, b_eq=A @ x, ub=1.0).solve(costs)
    np.testing.assert_array_equal(
        LinearProgram(A_eq=form(A), b_eq=A @ x, ub=1.0).solve(costs).x, dense.x
    )


def test_every_status_of_a_linear_program():
    costs = np.array([[1.0, 1.0], [-1.0, 0.0], [0.0, 0.0]])
    open_above = LinearProgram(A_ub=[[-1.0, -1.0]], b_ub=[-1.0])
    assert open_above.solve(costs).status.tolist() == [OPTIMAL, UNBOUNDED, OPTIMAL]
    assert open_above.solve(costs).optimal.tolist() == [True, False, True]
    empty = LinearProgram(A_ub=[[1.0, 1.0]], b_ub=[-1.0])
    assert empty.solve(costs).status.tolist() == [INFEASIBLE] * 3
    mixed = LinearProgram(
        A_ub=[[1.0, -1.0]], b_ub=[[-1.0], [0.0], [-5.0]], ub=[[9, 0], [9, INF], [9, 9]]
    )
    assert mixed.solve(costs).status.tolist() == [INFEASIBLE, OPTIMAL, OPTIMAL]
    assert open_above.solve(costs, time_limit=0).status.tolist() == [LIMIT] * 3
    for status in SolveStatus:
        assert status.sentence.endswith(".")


def test_infeasible_wins_over_unbounded():
    both = dict(A_ub=[[0.0, 1.0], [0.0, -1.0]], lb=None)
    costs = np.array([[-1.0, 0.0]])
    assert LinearProgram(**both, b_ub=[0.0, -1.0]).solve(costs).status[0] == INFEASIBLE
    assert LinearProgram(**both, b_ub=[[0.0, -1.0]]).solve(costs).status[0] == INFEASIBLE
    assert LinearProgram(**both, b_ub=[[0.0, 0.0]]).solve(costs).status[0] == UNBOUNDED


def test_a_limit_inside_highs_leaves_no_trace():
    problem, solver = problems.grid_shortest_path(6, 6), HighsSolver()
    cost = np.random.default_rng(0).random(problem.n_variables)
    assert solver.solve(problem, 0, cost, 1e-9) == Claim(LIMIT)
    claim = solver.solve(problem, 0, cost, INF)
    assert claim.status == OPTIMAL
    np.testing.assert_array_equal(claim.x, problem.solve(cost[None]).x[0])


@pytest.mark.parametrize(
    "problem", [problems.knapsack([1.0, 2.0], 1.0), problems.grid_matching(2, 2)], ids=repr
)
def test_special_oracles_stop_at_the_limit_too(problem):
    solution = problem.solve(np.ones((3, problem.n_variables)), time_limit=0.0)
    assert solution.status.tolist() == [LIMIT] * 3
    assert np.isnan(solution.objective).all()


def test_negative_costs_on_a_graph_with_cycles():
    edges = [(0, 1), (1, 2), (2, 1), (2, 3), (4, 4)]
    problem = problems.shortest_path(edges, source=0, target=3)
    costs = np.array(
        [
            [1.0, 1.0, 1.0, 1.0, 1.0],
            [1.0, -2.0, 3.0, -1.0, 1.0],  # negative edges, no negative cycle
            [1.0, -2.0, 1.0, 1.0, 1.0],  # 1 -> 2 -> 1 costs -1 a round
            [1.0, 1.0, 1.0, 1.0, -1.0],  # so does the loop at 4, which the program does not forbid
        ]
    )
    solution = problem.solve(costs)
    assert solution.status.tolist() == [OPTIMAL, OPTIMAL, UNBOUNDED, UNBOUNDED]
    np.testing.assert_array_equal(solution.x[1], [1, 1, 0, 1, 0])
    assert solution.objective[1] == -2.0


def test_no_path_is_infeasible():
    graph = [(0, 1), (2, 1), (1, 0)]
    both = problems.shortest_path(graph, source=[0, 0, 2], target=[1, 2, 0])
    assert both.solve(np.ones((3, 3))).status.tolist() == [OPTIMAL, INFEASIBLE, OPTIMAL]
    acyclic = problems.shortest_path(graph[:2], source=0, target=[1, 2])
    assert acyclic.solve(-np.ones((2, 2))).status.tolist() == [OPTIMAL, INFEASIBLE]


def test_large_batches_go_through_threads_block_by_block():
    problem = problems.grid_shortest_path(12, 12, neighbors=8)
    costs = np.random.default_rng(0).random((150, problem.n_variables))
    alone = problem.solve(costs, threads=1)
    np.testing.assert_array_equal(problem.solve(costs, threads=4).x, alone.x)
    some = slice(60, 70)
    np.testing.assert_array_equal(problem.solve(costs[some]).x, alone.x[some])
    assert set(np.unique(alone.x)) == {0.0, 1.0}


def test_a_problem_may_be_solved_from_many_threads_at_once():
    problem, costs = random_program(4)
    expected = problem.solve(costs).x
    with ThreadPoolExecutor(4) as pool:
        for x in pool.map(lambda _: problem.solve(costs, threads=2).x, range(12)):
            np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("exponent", [-200, -30, 0, 30, 200])
@pytest.mark.parametrize("special", [True, False])
def test_the_scale_of_the_costs_does_not_matter(special, exponent):
    for problem in (problems.grid_shortest_path(4, 4), problems.knapsack([3.0, 1.0, 2.0], 3.5)):
        if not special:
            problem = LinearProgram(
                problem.A_eq, problem.b_eq, problem.A_ub, problem.b_ub, problem.lb, problem.ub
            )
        costs = np.random.default_rng(1).random((8, problem.n_variables)) + 0.1
        costs = costs if problem.b_eq.size else -costs
        plain, scaled = problem.solve(costs), problem.solve(costs * 10.0**exponent)
        np.testing.assert_array_equal(scaled.x, plain.x)
        np.testing.assert_allclose(scaled.objective, plain.objective * 10.0**exponent, rtol=1e-12)


def test_costs_at_the_edge_of_float64():
    problem = problems.grid_shortest_path(2, 3, directed="right-down")
    costs = np.array([np.full(7, 1.7e308), np.full(7, 5e-324), np.zeros(7)])
    costs[0, 0] = 1e300
    solution = problem.solve(costs)
    assert solution.optimal.all()
    assert solution.objective.tolist() == [INF, 3 * 5e-324, 0.0]  # 3.4e308 is beyond float64
    mixed = LinearProgram(A_eq=[[1.0, 1.0, 1.0]], b_eq=1.0).solve([[1e300, -1e300, 1e-300]])
    np.testing.assert_array_equal(mixed.x, [[0, 1, 0]])


@pytest.mark.parametrize("scale", [1e-300, 1e-15, 1.0, 1e15, 1e250])
def test_the_scale_of_the_rows_does_not_matter(scale):
    A = np.array([[1.0, 2.0, 0.5], [0.0, 1.0, 1.0]])
    problem = LinearProgram(A_eq=A[:1] * scale, b_eq=scale, A_ub=A[1:] * scale, b_ub=0.25 * scale)
    solution = problem.solve([[1.0, 1.0, 1.0]])
    np.testing.assert_allclose(solution.x, [[0.5, 0.25, 0.0]], rtol=1e-12)


def test_huge_bounds_are_not_taken_for_infinite():
    problem = LinearProgram(lb=[-1e25, 0.0], ub=[1e25, 1e22])
    solution = problem.solve([[1.0, -1.0], [-1.0, 1.0]])
    np.testing.assert_array_equal(solution.x, [[-1e25, 1e22], [1e25, 0.0]])


def test_zero_duplicate_and_dependent_rows():
    A = np.array([[1.0, 1.0], [1.0, 1.0], [0.0, 0.0], [2.0, 2.0]])
    good = LinearProgram(A_eq=A, b_eq=[1.0, 1.0, 0.0, 2.0])
    np.testing.assert_array_equal(good.solve([[1.0, 2.0]]).x, [[1.0, 0.0]])
    for b in ([1.0, 1.0, 1.0, 2.0], [1.0, 2.0, 0.0, 2.0]):
        assert LinearProgram(A_eq=A, b_eq=b).solve([[1.0, 2.0]]).status[0] == INFEASIBLE
    never = LinearProgram(A_ub=[[1.0, 1.0]], b_ub=INF, ub=2.0)
    np.testing.assert_array_equal(never.solve([[-1.0, 1.0]]).x, [[2.0, 0.0]])


def test_right_hand_sides_rounded_in_the_ninth_digit():
    A = np.array([[1.0, 1.0], [1.0, 1.0]])
    solution = LinearProgram(A_eq=A, b_eq=[1.0, 1.0 + 2e-9]).solve([[1.0, 2.0]])
    assert solution.status[0] == OPTIMAL
    np.testing.assert_allclose(solution.x, [[1.0, 0.0]], atol=1e-8)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_tensors_in_tensors_out(dtype):
    problem = problems.grid_shortest_path(3, 3)
    costs = torch.rand(4, problem.n_variables, dtype=dtype, requires_grad=True)
    solution = problem.solve(costs)
    assert solution.x.dtype == solution.objective.dtype == dtype
    assert solution.status.dtype == torch.int8
    assert solution.optimal.dtype == torch.bool
    assert bool(solution.optimal.all())
    np.testing.assert_array_equal(solution.x, problem.solve(costs.detach().numpy()).x)


@pytest.mark.parametrize(
    "problem",
    [
        LinearProgram(A_eq=[[1.0, 1.0]], b_eq=1.0),
        LinearProgram(A_eq=[[1.0, 1.0]], b_eq=np.ones((0, 1))),
        problems.shortest_path([(0, 1), (1, 0)], source=0, target=1),
        problems.knapsack([1.0, 1.0], np.ones(0)),
        problems.assignment(1, 2),
    ],
    ids=repr,
)
def test_an_empty_batch(problem):
    solution = problem.solve(np.zeros((0, 2)))
    assert solution.x.shape == (0, 2)
    assert len(solution) == 0


BAD_CALLS = [
    (
        {"costs": np.ones((1, 2))},
        ShapeError,
        "each of 3 instances, so `costs` must have 3 rows; got 1",
    ),
    ({"costs": np.ones(2)}, ShapeError, r"For one instance use `costs\[None\]`"),
    ({"costs": np.ones((3, 5))}, ShapeError, r"`costs` must have shape \(B, 2\)"),
    ({"costs": np.full((3, 2), np.nan)}, InputError, "got nan in row 0, column 0"),
    ({"time_limit": -1.0}, InputError, "`time_limit` must be None or seconds"),
    ({"time_limit": np.nan}, InputError, "`time_limit` must be None or seconds"),
    ({"time_limit": "1"}, InputError, "`time_limit` must be None or seconds"),
    ({"threads": 0}, InputError, "`threads` must be a positive integer; got 0"),
    ({"threads": 1.5}, InputError, "`threads` must be a positive integer"),
]


@pytest.mark.parametrize("call, error, phrase", BAD_CALLS)
def test_bad_calls_meet_a_sentence(call, error, phrase):
    problem = LinearProgram(A_eq=[[1.0, 1.0]], b_eq=np.ones((3, 1)))
    with pytest.raises(error, match=phrase):
        problem.solve(**{"costs": np.ones((3, 2)), **call})


def test_one_instance_is_not_spread_over_many_costs():
    problem = LinearProgram(A_eq=[[1.0, 1.0]], b_eq=np.ones((1, 1)))
    with pytest.raises(ShapeError, match="each of 1 instances, so `costs` must have 1 rows; got 4"):
        problem.solve(np.ones((4, 2)))


@pytest.fixture
def without_highspy(monkeypatch):
    monkeypatch.setitem(sys.modules, "highspy", None)
    monkeypatch.delitem(sys.modules, "revealed.oracles.highs", raising=False)
    assert type(general._new_solver()).__name__ == "LinprogSolver"


@pytest.mark.usefixtures("without_highspy")
@pytest.mark.parametrize("seed", range(8))
def test_without_highspy_the_answers_are_the_same(seed):
    problem, costs = random_program(seed)
    solution = problem.solve(costs)
    for i, cost in enumerate(costs):
        status, value = reference(problem, cost)
        assert solution.status[i] == status
        np.testing.assert_allclose(solution.objective[i], value, rtol=1e-9, atol=1e-9)


@pytest.mark.usefixtures("without_highspy")
def test_without_highspy_instances_limits_and_infinite_rows():
    problem = LinearProgram(
        A_ub=np.ones((2, 1, 2)), b_ub=[[INF], [1.0]], ub=[[2.0, 1.0], [3.0, 3.0]]
    )
    solution = problem.solve([[-1.0, -1.0], [-2.0, -1.0]])
    np.testing.assert_array_equal(solution.x, [[2.0, 1.0], [1.0, 0.0]])
    assert problem.solve(np.ones((2, 2)), time_limit=0.0).status.tolist() == [LIMIT, LIMIT]


class FixedAnswer:
    """A solver that makes the same claim of whatever it is given."""

    def __init__(self, status, **proof):
        self.claim = Claim(status, **{name: np.array(part) for name, part in proof.items()})

    def solve(self, problem, instance, cost, seconds):
        return self.claim

    def once(self, at, cost, seconds, way):
        return self.claim if len(cost) == 2 else Claim(FAILED)

    def stop(self):
        pass


def said(monkeypatch, problem, cost, status, **proof):
    """What comes of a claim about a problem with two variables."""
    monkeypatch.setattr(general, "_new_solver", lambda: FixedAnswer(status, **proof))
    return LinearProgram(**problem).solve([cost])


SHARES = dict(A_eq=[[1.0, 1.0]], b_eq=1.0)


@pytest.mark.parametrize(
    "x, y, status",
    [
        ([1.0, 0.0], [0.5], OPTIMAL),
        ([0.5, 0.6], [0.5], FAILED),
        ([1.5, -0.5], [0.5], FAILED),
        ([np.nan, 1.0], [0.5], FAILED),
        ([INF, -INF], [0.5], FAILED),
        ([0.5, 0.5], [0.5], FAILED),  # feasible, but not the cheapest
        ([1.0, 0.0], [0.6], FAILED),  # the cheapest, but this does not prove it
        ([1.0, 0.0], [np.nan], FAILED),
    ],
)
def test_a_decision_is_believed_only_with_its_proof(monkeypatch, x, y, status):
    solution = said(monkeypatch, SHARES, [0.5, 0.75], OPTIMAL, x=x, y=y)
    assert solution.status[0] == status
    assert np.isnan(solution.x).all() == (status == FAILED)


@pytest.mark.parametrize(
    "problem, w, status",
    [
        (dict(A_eq=[[1.0, 1.0]], b_eq=-1.0), [1.0], INFEASIBLE),
        (dict(A_eq=[[1.0, 1.0]], b_eq=-1.0, lb=[0, -INF]), [1.0], FAILED),
        (dict(A_eq=[[1.0, 1.0]], b_eq=-1.0), [0.0], FAILED),
        (dict(A_eq=[[1.0, 1.0]], b_eq=-1.0), [np.nan], FAILED),
        (dict(A_eq=[[1.0, 1.0]], b_eq=5.0, ub=2.0), [1.0], INFEASIBLE),  # either sign will do
        (dict(A_eq=[[1.0, 1.0]], b_eq=5.0, ub=3.0), [1.0], FAILED),
        (dict(A_eq=[[1, -1], [1, -1]], b_eq=[1.0, 2.0], lb=None), [1.0, -1.0], INFEASIBLE),
        (dict(A_eq=[[1, -1], [1, -1]], b_eq=[1.0, 1.0 + 1e-10], lb=None), [1.0, -1.0], FAILED),
        (dict(A_eq=[[1, -1], [1, -1.001]], b_eq=[1.0, 2.0], lb=None), [1.0, -1.0], FAILED),
        (dict(A_eq=[[1, -1], [1, -1], [1, 1]], b_eq=[0, DUST, 9]), [1.0, -1.0, 0.0], FAILED),
    ],
)
def test_infeasible_is_believed_only_with_multipliers(monkeypatch, problem, w, status):
    assert said(monkeypatch, problem, [1.0, 2.0], INFEASIBLE, y=w).status[0] == status


@pytest.mark.parametrize(
    "problem, cost, ray, status",
    [
        (dict(A_eq=[[1.0, -1.0]], b_eq=0.0), [1.0, -2.0], [1.0, 1.0], UNBOUNDED),
        (dict(A_eq=[[1.0, -1.0]], b_eq=0.0), [1.0, -2.0], [1.0, 1.0 + 1e-9], UNBOUNDED),  # refined
        (dict(A_eq=[[1.0, -1.0]], b_eq=0.0), [2.0, -1.0], [1.0, 1.0], FAILED),
        (dict(A_eq=[[1.0, -1.0]], b_eq=0.0), [1.0, -2.0], [-1.0, 1.0], FAILED),
        (dict(A_eq=[[1.0, -1.0]], b_eq=0.0, ub=[INF, 9.0]), [1.0, -2.0], [1.0, 1.0], FAILED),
        (dict(A_eq=[[1.0, 1.0]], b_eq=0.0), [1.0, -2.0], [-1.0, 1.0], FAILED),
        (dict(A_ub=[[1.0, -1.0]], b_ub=0.0), [1.0, -2.0], [1.0, 1.0], UNBOUNDED),
        (dict(A_ub=[[1.0, -1.0]], b_ub=0.0), [-1.0, 2.0], [1.0, 0.4], FAILED),
    ],
)
def test_unbounded_is_believed_only_with_a_ray(monkeypatch, problem, cost, ray, status):
    monkeypatch.setattr(Doubtful, "_is_feasible", lambda self: True)
    assert said(monkeypatch, problem, cost, UNBOUNDED, ray=ray).status[0] == status


def test_unbounded_needs_a_decision_to_begin_at(monkeypatch):
    problem = dict(A_ub=[[1.0, 0.0]], b_ub=-1.0)
    solution = said(monkeypatch, problem, [0.0, -1.0], UNBOUNDED, ray=[0.0, 1.0])
    assert solution.status[0] == FAILED
    monkeypatch.undo()
    assert LinearProgram(**problem).solve([[0.0, -1.0]]).status[0] == INFEASIBLE


def test_rounding_is_snapped_to_a_bound_only_where_that_is_feasible(monkeypatch):
    shares = dict(A_eq=[[1.0, 1.0]], b_eq=1.0, ub=1.0)
    solution = said(monkeypatch, shares, [1.0, 0.0], OPTIMAL, x=[1e-12, 1.0 - 1e-12], y=[0.0])
    np.testing.assert_array_equal(solution.x, [[0.0, 1.0]])
    # Here 1e-12 is a hundredth of what the row asks for, not rounding.
    steep = dict(A_eq=[[1e10, 1.0]], b_eq=1.0)
    solution = said(monkeypatch, steep, [1.0, 0.0], OPTIMAL, x=[1e-12, 0.99], y=[0.0])
    np.testing.assert_array_equal(solution.x, [[1e-12, 0.99]])


def test_another_user_of_highs_with_other_threads_does_no_harm():
    code = """
import highspy, numpy as np
other = highspy.Highs()
other.setOptionValue("output_flag", False)
other.setOptionValue("threads", 2)
other.addVar(0.0, 1.0)
other.run()
from revealed.problems.linear import LinearProgram
solution = LinearProgram(A_eq=[[1.0, 1.0]], b_eq=1.0).solve(np.array([[1.0, 2.0]]))
assert solution.optimal.all() and solution.x.tolist() == [[1.0, 0.0]], solution
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""


def test_a_solution_is_frozen():
    solution = LinearProgram(lb=[0.0]).solve([[1.0]])
    assert isinstance(solution, Solution)
    with pytest.raises(AttributeError):
        solution.x = None  # type: ignore[misc]


@pytest.mark.parametrize("solver", ["highspy", "scipy"])
@pytest.mark.parametrize("s", [1e-9, 1e-6, 1e6, 1e9])
def test_no_choice_of_units_moves_the_best_decision(s, solver, monkeypatch):
    """Solvers' tolerances are absolute; right-hand sides and bounds need not be near 1."""
    if solver == "scipy":
        monkeypatch.setitem(sys.modules, "highspy", None)
        monkeypatch.delitem(sys.modules, "revealed.oracles.highs", raising=False)
    rng = np.random.default_rng(0)
    A, x = rng.normal(size=(4, 9)), rng.random((20, 9))
    b, c = x @ A.T + 0.1, rng.normal(size=(20, 9))
    plain = LinearProgram(A_ub=A, b_ub=b, ub=x + 1.0).solve(c)
    found = LinearProgram(A_ub=A, b_ub=s * b, ub=s * (x + 1.0)).solve(c)
    assert found.optimal.all()
    np.testing.assert_allclose(found.x / s, plain.x, rtol=0, atol=1e-9)
