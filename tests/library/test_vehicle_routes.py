"""Routes of vehicles: every decision is a set of routes, and the cheapest one."""

import numpy as np
import pytest

import revealed as rv
from revealed.oracles import routes
from revealed.oracles.route_cuts import solve_by_cuts
from revealed.problems.solution import SolveStatus


def _problem(seed, customers=9, room=18.0, vehicles=5):
    demands = np.random.default_rng(seed).uniform(0, 10, customers)
    return rv.problems.vehicle_routing(demands, room, vehicles)


@pytest.mark.parametrize("shift", [0.0, 2.0], ids=["any sign", "positive"])
@pytest.mark.parametrize("seed", range(2))
def test_pricing_all_routes_and_cuts_find_the_same_cost(seed, shift):
    problem = _problem(seed)
    C = np.random.default_rng(seed).normal(size=(3, problem.n_variables)) + shift
    found = problem.solve(C)
    assert found.optimal.all()
    assert (problem.constraint_violation(found.x) == 0).all()
    for cost, value in zip(C, found.objective, strict=True):
        x, status, _ = solve_by_cuts(_problem(seed), cost, np.inf, None)
        assert status == SolveStatus.OPTIMAL
        assert cost @ x == pytest.approx(value, abs=1e-8)


def test_routes_serve_every_customer_once_within_capacity():
    problem = _problem(0)
    C = np.random.default_rng(1).uniform(0.5, 1.5, (5, problem.n_variables))
    for x in problem.solve(C).x:
        found = rv.problems.routes_of(x)
        assert sorted(i for route in found for i in route) == list(range(1, 10))
        assert len(found) <= 5
        loads = [problem.structure.demands[np.array(route) - 1].sum() for route in found]
        assert max(loads) <= 18.0
        assert min(len(route) for route in found) >= 2


def test_the_answer_does_not_depend_on_costs_before_it():
    problem = _problem(3)
    C = np.random.default_rng(2).normal(size=(6, problem.n_variables))
    together = problem.solve(C).x
    alone = np.concatenate([_problem(3).solve(c[None]).x for c in C])
    np.testing.assert_array_equal(together, alone)


def test_too_many_sets_of_customers_are_left_to_cuts(monkeypatch):
    monkeypatch.setattr(routes, "MOST_SETS", 10)
    problem, same = _problem(1, customers=6), _problem(1, customers=6)
    C = np.random.default_rng(0).normal(size=(2, problem.n_variables))
    by_cuts = problem.solve(C)
    monkeypatch.undo()
    np.testing.assert_allclose(by_cuts.objective, same.solve(C).objective)


def test_a_problem_without_feasible_routes_is_named():
    # Three customers of 6 in vehicles of 10, two at most: one would carry two of them.
    problem = rv.problems.vehicle_routing([6.0, 6.0, 6.0], 10.0, 2)
    assert problem.solve(np.ones((1, 6))).status[0] == SolveStatus.INFEASIBLE


def test_circles_and_overloaded_routes_violate():
    problem = rv.problems.vehicle_routing([3.0, 3.0, 3.0, 3.0], 6.0, 2)
    edges = list(zip(*np.triu_indices(5, 1), strict=True))

    def decision(*used):
        return [float(edge in used) for edge in edges]

    good = decision((0, 1), (1, 2), (0, 2), (0, 3), (3, 4), (0, 4))
    heavy = decision((0, 1), (1, 2), (2, 3), (3, 4), (0, 4))
    circle = decision((0, 1), (0, 1), (1, 2), (2, 3), (3, 4), (1, 4))
    violation = problem.constraint_violation([good, heavy, circle])
    assert violation[0] == 0
    assert (violation[1:] > 0).all()
    assert rv.problems.routes_of(good) == [[1, 2], [3, 4]]
    with pytest.raises(rv.InputError, match="no set of routes"):
        rv.problems.routes_of(circle)


@pytest.mark.parametrize(
    "arguments, told",
    [
        (([1.0], 3.0, 1), "two customers or more"),
        (([1.0, -1.0], 3.0, 1), "for customer 1"),
        (([1.0, 4.0], 3.0, 2), "hold the largest demand, 4"),
        (([3.0, 3.0, 3.0], 4.0, 2), "more than 2 vehicles"),
    ],
)
def test_routes_that_cannot_be_are_refused_in_one_sentence(arguments, told):
    with pytest.raises(rv.InputError, match=told):
        rv.problems.vehicle_routing(*arguments)
