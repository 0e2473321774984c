"""Whole decisions: exact sets from an oracle, with bounds from both sides."""

import itertools
import time

import numpy as np
import pytest
from listed_programs import KINDS, is_member, listed, nearest_by_list

import revealed as rv
from revealed.optimality.protocol import ProjectionOptions
from revealed.optimality.tight_rows import tight_rows
from revealed.problems.solution import SolveStatus
from revealed.projection.cutting_planes.project import project_inner

SEEDS = range(8)


def _case(kind, seed, size=3):
    """A listed program, costs to project and decisions that are the best under other costs."""
    problem, points = listed(kind, seed)
    rng = np.random.default_rng(1000 + seed)
    sign = -1.0 if kind == "knapsack" else 1.0
    true = sign * rng.uniform(0.2, 1.0, (size, problem.n_variables))
    if kind == "general":
        true = rng.normal(size=true.shape)
    X = points[(true @ points.T).argmin(axis=1)]
    return problem, points, X, true + rng.normal(size=true.shape)


def _by_list(points, **options):
    def cheapest(cost):
        return points[(points @ cost).argmin()]

    return rv.OracleProblem(cheapest, points.shape[1], **options)


# --- right ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", KINDS)
def test_decisions_are_the_cheapest_of_the_list(kind, seed):
    problem, points, _, C = _case(kind, seed)
    found = problem.solve(C)
    assert found.optimal.all()
    np.testing.assert_allclose(found.objective, (C @ points.T).min(axis=1), atol=1e-9)
    np.testing.assert_allclose(found.bound, found.objective)


@pytest.mark.parametrize("margin", [0.0, 0.7])
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", KINDS)
def test_projection_is_that_onto_all_listed_alternatives(kind, seed, margin):
    problem, points, X, q = _case(kind, seed)
    found = rv.project(q, rv.OptimalitySet(problem, X, margin))
    assert found.solved.all()
    assert (found.lower_bound <= found.distance).all()
    for b in range(len(q)):
        nearest = nearest_by_list(problem, q[b], X[b], points, margin)
        np.testing.assert_allclose(found.point[b], nearest, atol=1e-6)
        assert is_member(problem, found.point[b], X[b], points, margin, 1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_a_function_that_decides_gives_the_same_sets(kind):
    problem, points, X, q = _case(kind, 3)
    own = _by_list(points, lb=problem.lb, ub=problem.ub)
    near = rv.project(q, rv.OptimalitySet(problem, X, 0.5))
    again = rv.project(q, rv.OptimalitySet(own, X, 0.5))
    assert again.solved.all()
    np.testing.assert_allclose(again.point, near.point, atol=1e-6)


def test_batch_equals_loop():
    problem, _, X, q = _case("knapsack", 5, size=12)
    whole = rv.project(q, rv.OptimalitySet(problem, X))
    for b in range(len(q)):
        fresh, _ = listed("knapsack", 5)
        alone = rv.project(q[b : b + 1], rv.OptimalitySet(fresh, X[b : b + 1]))
        np.testing.assert_allclose(alone.point[0], whole.point[b], atol=1e-7)


def test_constraints_of_each_instance_are_its_own():
    rng = np.random.default_rng(2)
    weights, room = rng.uniform(1, 8, (2, 8)), rng.uniform(8, 20, (6, 2))
    problem = rv.problems.binary_knapsack(weights, room)
    C, q = -rng.uniform(0.2, 1, (6, 8)), -rng.uniform(0, 1, (6, 8))
    X = problem.solve(C).x
    near = rv.project(q, rv.OptimalitySet(problem, X))
    assert near.solved.all()
    for b in range(6):
        alone = rv.problems.binary_knapsack(weights, room[b])
        single = rv.project(q[b : b + 1], rv.OptimalitySet(alone, X[b : b + 1]))
        np.testing.assert_allclose(near.point[b], single.point[0], atol=1e-7)


def test_tours_are_as_short_as_dynamic_programming_finds():
    n, rng = 10, np.random.default_rng(4)
    problem = rv.problems.traveling_salesman(n)
    C = rng.normal(size=(6, problem.n_variables))
    found = problem.solve(C)
    assert found.optimal.all()
    for cost, value in zip(C, found.objective, strict=True):
        assert value == pytest.approx(_held_karp(cost, n), abs=1e-9)


def _held_karp(cost, n):
    c = np.zeros((n, n))
    c[np.triu_indices(n, 1)] = cost
    c += c.T
    best = {(1 << k, k): c[0, k] for k in range(1, n)}
    for size in range(2, n):
        for some in itertools.combinations(range(1, n), size):
            bits = sum(1 << k for k in some)
            for k in some:
                rest = bits & ~(1 << k)
                best[bits, k] = min(best[rest, m] + c[m, k] for m in some if m != k)
    full = (1 << n) - 2
    return min(best[full, k] + c[k, 0] for k in range(1, n))


def test_ties_among_tours_are_proved_too():
    problem = rv.problems.traveling_salesman(9)
    C = np.random.default_rng(0).integers(1, 4, (5, problem.n_variables)).astype(float)
    found = problem.solve(C)
    assert found.optimal.all()
    for cost, value in zip(C, found.objective, strict=True):
        assert value == pytest.approx(_held_karp(cost, 9), abs=1e-9)


def test_branching_needs_no_subtour_to_begin_with():
    """Two triangles joined by three free edges: the relaxation halves the triangles, and no set of
    nodes is left by less than two edges."""
    from revealed.oracles.subtours import SubtourSolver

    problem = rv.problems.traveling_salesman(6)
    shape = problem.structure
    cost = np.full(problem.n_variables, 10.0)
    for e, (i, j) in enumerate(zip(shape.tails, shape.heads, strict=True)):
        if i // 3 == j // 3:
            cost[e] = 1.0
        elif j - i == 3:
            cost[e] = 0.0
    around = np.isin(shape.tails * 6 + shape.heads, [1, 8, 15, 22, 29, 5]).astype(float)
    tour, status, bound = SubtourSolver(problem).solve(cost, around, np.inf)
    assert status == rv.SolveStatus.OPTIMAL
    assert cost @ tour == pytest.approx(4.0)
    assert bound == pytest.approx(4.0)
    assert shape.violation(tour[None])[0] == 0


# --- bounds, budgets, memory ----------------------------------------------------------------------


@pytest.mark.parametrize("budget", [1, 2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_a_budget_leaves_bounds_on_both_sides(kind, budget):
    problem, points, X, q = _case(kind, 1, size=6)
    found = rv.project(q, rv.OptimalitySet(problem, X), max_iter=budget)
    assert (found.calls <= budget).all()
    for b in range(len(q)):
        nearest = nearest_by_list(problem, q[b], X[b], points, 1.0)
        truth = np.linalg.norm(nearest - q[b])
        assert found.lower_bound[b] <= truth + 1e-6
        assert truth <= found.distance[b] + 1e-6
        assert is_member(problem, found.point[b], X[b], points, 1.0, 1e-8)
        if found.solved[b]:
            assert found.distance[b] == pytest.approx(truth, abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", KINDS)
def test_tight_rows_hold_for_every_listed_decision_with_equality_at_the_observed(kind, seed):
    problem, points, X, _ = _case(kind, seed)
    for x in X:
        G = tight_rows(problem, x, 0)
        assert (points @ G.T <= G @ x + 1e-9).all()


@pytest.mark.parametrize("kind", ["knapsack", "tour", "routes"])
def test_tight_rows_bring_the_bound_from_above_down(kind):
    plain = tight = 0.0
    for seed in SEEDS:
        problem, _, X, q = _case(kind, seed)
        sets = rv.OptimalitySet(problem, X, 0.0)
        relaxed = rv.OptimalitySet(problem.relaxation, X, 0.0)
        near = project_inner(q, sets, ProjectionOptions())
        far = rv.project(q, relaxed).distance
        exact = rv.project(q, sets).distance
        found = np.linalg.norm(near - q, axis=1)
        assert (exact <= found + 1e-6).all()
        assert (found <= far + 1e-6).all()
        plain, tight = plain + far.sum(), tight + found.sum()
    assert tight < plain - 1e-3


def test_cuts_are_kept_for_slices_and_later_sets():
    problem, _, X, q = _case("tour", 2, size=10)
    sets = rv.OptimalitySet(problem, X)
    first = rv.project(q, sets)
    again = rv.project(q[3:6], sets[3:6])
    anew = rv.project(q, rv.OptimalitySet(problem, X))
    assert first.calls.mean() > 2
    assert (again.calls == 1).all()
    assert (anew.calls == 1).all()
    np.testing.assert_allclose(anew.point, first.point, atol=1e-8)


def test_the_least_explaining_cost_is_the_margin_itself_where_all_alternatives_differ_by_it():
    problem = rv.IntegerProgram(ub=np.ones(4))  # every 0/1 vector is feasible
    X = np.array([[0.0, 1.0, 1.0, 0.0]])
    near = rv.project(np.zeros((1, 4)), rv.OptimalitySet(problem, X, 2.0))
    np.testing.assert_allclose(near.point, [[2.0, -2.0, -2.0, 2.0]], atol=1e-8)


def test_torch_comes_back_as_torch():
    import torch

    problem, _, X, q = _case("cover", 0)
    near = rv.project(torch.tensor(q), rv.OptimalitySet(problem, X))
    assert isinstance(near.point, torch.Tensor)
    assert isinstance(near.lower_bound, torch.Tensor)
    np.testing.assert_allclose(near.point, rv.project(q, rv.OptimalitySet(problem, X)).point)


def test_problems_with_the_same_rows_share_no_alternatives():
    rows = rv.LinearProgram(A_ub=[[2.0, 2.0]], b_ub=3.0, ub=1.0)
    real = rv.IntegerProgram.of(rows, [True, False])
    whole = rv.IntegerProgram.of(rows, True)
    X, q = np.array([[1.0, 0.0]]), np.array([[-1.0, -0.4]])
    assert rv.project(q, rv.OptimalitySet(real, [[1.0, 0.5]], 0.0)).solved.all()
    fresh = rv.IntegerProgram(A_ub=[[2.0, 2.0]], b_ub=3.0, ub=1.0)
    near, alone = (rv.project(q, rv.OptimalitySet(p, X, 0.0)) for p in (whole, fresh))
    np.testing.assert_allclose(near.lower_bound, alone.lower_bound, atol=1e-8)
    np.testing.assert_allclose(near.point, alone.point, atol=1e-8)


# --- oracles that fail ---------------------------------------------------------------------------


def _liars(points, rng):
    """Functions that do not return the cheapest decision, or not always."""
    constant = points[len(points) // 2]

    def always_the_same(cost):
        return constant

    def second_best(cost):
        return points[np.argsort(points @ cost)[min(1, len(points) - 1)]]

    def of_other_costs(cost):
        return points[(points @ (cost + rng.normal(size=len(cost)))).argmin()]

    def sometimes_nothing(cost):
        return None if rng.random() < 0.5 else points[(points @ cost).argmin()]

    def raises(cost):
        raise RuntimeError("no license")

    def infeasible(cost):
        return np.where(cost < 0, 1.0, 0.0)

    def not_a_number(cost):
        return np.full(len(cost), np.nan)

    return [v for v in locals().values() if callable(v)]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["knapsack", "cover", "tour"])
def test_nothing_is_called_solved_because_an_oracle_lied(kind, seed):
    problem, points, X, q = _case(kind, seed, size=6)
    known = {bytes(x) for x in points}
    for liar in _liars(points, np.random.default_rng(seed)):
        own = rv.OracleProblem(
            liar,
            problem.n_variables,
            feasible=lambda x: bytes(x) in known,
            on_error="fail",
        )
        found = rv.project(q, rv.OptimalitySet(own, X, 0.5))
        for b in np.flatnonzero(found.solved):
            nearest = nearest_by_list(problem, q[b], X[b], points, 0.5)
            np.testing.assert_allclose(found.point[b], nearest, atol=1e-6, err_msg=liar.__name__)
        for b in range(len(q)):
            nearest = nearest_by_list(problem, q[b], X[b], points, 0.5)
            assert found.lower_bound[b] <= np.linalg.norm(nearest - q[b]) + 1e-6


def test_no_time_proves_nothing():
    problem, _, X, q = _case("general", 0)
    assert (problem.solve(q, time_limit=0).status == SolveStatus.LIMIT).all()
    found = rv.project(q, rv.OptimalitySet(problem, X), time_limit=0)
    assert not found.solved.any()
    assert (found.status == rv.ProjectionStatus.TIME_LIMIT).all()
    assert (found.lower_bound <= found.distance).all()


def test_a_gap_leaves_a_feasible_decision_with_a_proved_bound():
    rng = np.random.default_rng(0)
    problem = rv.problems.set_cover(rng.random((60, 80)) < 0.06)
    C = rng.uniform(1, 2, (4, 80))
    exact, near = problem.solve(C), problem.solve(C, gap=0.5)
    assert exact.optimal.all()
    stopped = near.status == SolveStatus.LIMIT
    assert stopped.any()
    cost = (C * near.incumbent).sum(axis=1)
    assert (near.bound <= exact.objective + 1e-9).all()
    assert (exact.objective <= cost + 1e-9).all()
    assert (problem.constraint_violation(near.incumbent) <= 1e-9).all()
    with pytest.raises(rv.InputError, match="`gap` must be a finite number of at least 0"):
        problem.solve(C, gap=-1.0)


def test_a_slow_function_has_no_answer():
    with pytest.raises(rv.InputError, match="more than 0 seconds"):
        rv.OracleProblem(lambda c: c, 3, time_limit=0)
    own = rv.OracleProblem(lambda c: time.sleep(30), 3, time_limit=0.05)
    assert (own.solve(np.ones((2, 3))).status == SolveStatus.LIMIT).all()


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer, told",
    [
        ([0.5, 0.0, 1.0], "must be whole"),
        ([np.nan, 0.0, 1.0], "must be finite"),
        ([0.0, 1.0], "shape"),
        ([0.0, 2.0, 1.0], "breaks a constraint"),
        ("no", "one number for each cost entry"),
    ],
)
def test_an_answer_that_cannot_be_right_is_refused_in_one_sentence(answer, told):
    own = rv.OracleProblem(lambda c: answer, 3)
    with pytest.raises(rv.InputError, match=told):
        own.solve(np.ones((1, 3)))
    assert (
        rv.OracleProblem(lambda c: answer, 3, on_error="fail")
        .solve(np.ones((2, 3)))
        .status.tolist()
        == [SolveStatus.FAILED] * 2
    )


def test_an_exception_of_the_function_is_told_with_its_instance():
    def breaks(cost):
        raise ZeroDivisionError("by zero")

    with pytest.raises(rv.InputError, match="ZeroDivisionError for instance 0: by zero"):
        rv.OracleProblem(breaks, 3).solve(np.ones((1, 3)))


def test_decisions_that_are_not_whole_or_not_feasible_are_refused():
    problem = rv.problems.binary_knapsack([2.0, 3.0, 4.0], 5.0)
    with pytest.raises(rv.InfeasibleDecisionError, match=r"1 is not whole: entry 2 is 0\.5"):
        rv.OptimalitySet(problem, [[1, 1, 0], [0, 1, 0.5]])
    with pytest.raises(rv.InfeasibleDecisionError, match="Decision 0 breaks its constraints"):
        rv.OptimalitySet(problem, [[1, 1, 1]])
    tours = rv.problems.traveling_salesman(6)
    two = np.zeros((6, 6))
    for i, j in [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)]:
        two[i, j] = 1
    with pytest.raises(rv.InfeasibleDecisionError, match="Decision 0 breaks its constraints"):
        rv.OptimalitySet(tours, two[np.triu_indices(6, 1)][None])


def test_an_unbounded_problem_is_named():
    problem = rv.IntegerProgram(A_ub=[[1.0, -1.0]], b_ub=1.0)
    assert problem.solve([[-1.0, -1.0]]).status[0] == SolveStatus.UNBOUNDED
    assert problem.solve([[1.0, 1.0]]).status[0] == SolveStatus.OPTIMAL


def test_a_projection_that_the_oracle_finds_unbounded_is_not_called_solved():
    problem = rv.IntegerProgram(A_ub=[[-2.0, -3.0]], b_ub=[-7.0])
    near = rv.project([[-1.0, 1.0]], rv.OptimalitySet(problem, [[2.0, 1.0]]))
    assert not near.solved.any()
    assert near.lower_bound[0] <= near.distance[0]
    status = rv.projection.ProjectionStatus(int(near.status[0]))
    assert "bound the variables" in status.sentence


def test_an_infeasible_problem_is_named():
    problem = rv.IntegerProgram(A_eq=[[2.0, 2.0]], b_eq=3.0, ub=2.0)
    assert problem.solve([[1.0, 1.0]]).status[0] == SolveStatus.INFEASIBLE


def test_forms_and_soft_sets_are_refused():
    problem = rv.problems.binary_knapsack([2.0, 3.0, 4.0], 5.0)
    with pytest.raises(rv.InputError, match="never empty"):
        rv.OptimalitySet(problem, [[1, 1, 0]], soft=100.0)


@pytest.mark.parametrize("integer", [[True, False], [0, 2, 1], "all"])
def test_a_mask_that_is_none_is_refused(integer):
    with pytest.raises(rv.InputError, match="integer"):
        rv.IntegerProgram(ub=np.ones(3), integer=integer)


def test_tours_are_read_as_orders():
    problem = rv.problems.traveling_salesman(5)
    x = problem.solve(np.random.default_rng(0).random((1, 10))).x[0]
    order = rv.problems.tour_of(x)
    assert sorted(order) == list(range(5))
    edges = {tuple(sorted((int(order[k - 1]), int(order[k])))) for k in range(5)}
    pairs = list(zip(*np.triu_indices(5, 1), strict=True))
    assert edges == {tuple(map(int, p)) for p, used in zip(pairs, x, strict=True) if used}
    with pytest.raises(rv.InputError, match="no tour"):
        rv.problems.tour_of(np.zeros(10))


def test_facilities_serve_every_customer_from_open_ones_within_capacity():
    problem = rv.problems.facility_location(3, 4, capacity=2.0)
    rng = np.random.default_rng(1)
    x = problem.solve(rng.uniform(1, 2, (1, 15))).x[0]
    opened, serves = x[:3], x[3:].reshape(3, 4)
    assert (serves.sum(axis=0) == 1).all()
    assert (serves.sum(axis=1) <= 2 * opened).all()
