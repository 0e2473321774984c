"""Conformal cones have the coverage they state, and robust decisions the least worst cost."""

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

import revealed as rv
from revealed.errors import InputError
from revealed.fit.conformal import (
    conformal_cone,
    decide,
    explanation_angles,
    worst_costs,
)
from revealed.optimality.lines import without_lines


def paths():
    return rv.problems.grid_shortest_path(3, 3, directed="right-down")


def knapsack():
    return rv.problems.knapsack([3.0, 5.0, 4.0, 2.0, 6.0], 9.0)


def with_fixed_entry():
    """Rows of every kind, and an entry that never moves."""
    return rv.LinearProgram(
        A_eq=[[1.0, 1.0, 1.0, 1.0]], b_eq=2.0, A_ub=[[1.0, -1.0, 0.0, 2.0]], b_ub=1.0,
        lb=[0.0, 0.0, 0.5, 0.0], ub=[1.0, 1.0, 0.5, np.inf],
    )  # fmt: skip


def own_matrices():
    rows = 1.0 + np.random.default_rng(5).random((40, 1, 4))
    return rv.LinearProgram(A_eq=rows, b_eq=1.0, ub=1.0)


PROBLEMS = [paths, knapsack, with_fixed_entry]
NAMES = [make.__name__ for make in PROBLEMS]


def instance(make, size=40, seed=0):
    rng = np.random.default_rng(seed)
    problem = make()
    sign = -1.0 if make is knapsack else 1.0
    costs = sign * (0.2 + rng.random((size, problem.n_variables)))
    seen = problem.solve(costs * rng.uniform(0.5, 1.5, costs.shape)).x
    return problem, costs, seen


@pytest.mark.parametrize("make", [*PROBLEMS, own_matrices])
def test_what_no_decision_depends_on_is_removed(make):
    problem, costs, seen = instance(make)
    left = without_lines(problem, costs)
    assert np.allclose(without_lines(problem, left), left, atol=1e-12)
    other = problem.solve(-costs).x
    # The part removed costs every decision alike.
    assert np.allclose(((costs - left) * (seen - other)).sum(axis=1), 0.0, atol=1e-9)
    assert np.linalg.norm(left, axis=1).max() <= np.linalg.norm(costs, axis=1).max()


@pytest.mark.parametrize("make", [*PROBLEMS, own_matrices])
def test_the_angle_is_to_the_nearest_cost_that_explains(make):
    problem, costs, seen = instance(make)
    angle = explanation_angles(problem, costs, seen)
    axes = without_lines(problem, costs)
    sets = rv.OptimalitySet(problem, seen, 0.0)
    near = np.asarray(rv.project(axes, sets).point)
    cosine = (near * axes).sum(1) / np.linalg.norm(near, axis=1) / np.linalg.norm(axes, axis=1)
    some = np.isfinite(angle) & (angle > 0)
    assert some.any()
    assert np.allclose(np.cos(angle[some]), cosine[some], atol=1e-6)
    # No cost of the set that comes from elsewhere is at a smaller angle.
    far = np.asarray(rv.project(np.random.default_rng(1).standard_normal(axes.shape), sets).point)
    far = without_lines(problem, far)
    size = np.linalg.norm(far, axis=1)
    other = (far * axes).sum(1) / np.where(size == 0, np.inf, size) / np.linalg.norm(axes, axis=1)
    assert (np.cos(np.minimum(angle, np.pi / 2)) >= other - 1e-6)[size > 1e-9].all()


@pytest.mark.parametrize("make", PROBLEMS)
def test_angles_do_not_depend_on_scale_or_on_what_no_decision_depends_on(make):
    problem, costs, seen = instance(make)
    angle = explanation_angles(problem, costs, seen)
    assert (explanation_angles(problem, costs, problem.solve(costs).x) == 0).all()
    assert np.allclose(explanation_angles(problem, 1e4 * costs, seen), angle, atol=1e-7)
    shifted = (
        costs + 3.0 * problem.eq_rows.matrix().sum(axis=0) if problem.eq_rows.shape[0] else costs
    )
    assert np.allclose(explanation_angles(problem, shifted, seen), angle, atol=1e-6)


def test_a_decision_that_only_zero_explains_has_no_angle():
    square = rv.LinearProgram(A_ub=[[1.0, 1.0]], b_ub=5.0, lb=0.0, ub=1.0)
    assert np.isinf(explanation_angles(square, [[1.0, 1.0]], [[0.5, 0.5]])).all()
    assert np.isinf(explanation_angles(square, [[1.0, 1.0]], [[1.0, 1.0]])).all()  # 90° or more


@pytest.mark.parametrize("size, level, rank", [(19, 0.9, 18), (9, 0.9, 9), (99, 0.95, 95)])
def test_the_quantile_is_the_conformal_one(size, level, rank):
    angles = np.arange(1, size + 1) / 1000
    assert conformal_cone(angles[::-1], level).angle == angles[rank - 1]
    assert conformal_cone(angles, level).explained == 0


def test_cones_that_say_nothing_are_called_vacuous():
    few = conformal_cone(np.full(8, 0.1), 0.9)
    assert few.is_vacuous
    assert "Vacuous" in few.statement
    assert "8 calibration samples" in few.statement
    assert not conformal_cone(np.full(8, 0.1), few.best_level).is_vacuous
    bad = conformal_cone([0.1, np.inf, np.nan, 2.0], 0.5)
    assert bad.is_vacuous
    assert bad.best_level == pytest.approx(1 / 5)
    assert "No level" in conformal_cone([np.inf, 2.0], 0.5).statement


def draw(problem, size, rng):
    Z = rng.standard_normal((size, 3))
    costs = 2.0 + Z @ np.random.default_rng(0).random((3, problem.n_variables))
    noisy = np.maximum(costs, 0.1) * rng.uniform(0.5, 1.5, costs.shape)
    return Z, problem.solve(noisy).x


def test_coverage_is_the_level_over_many_splits():
    problem, rng = paths(), np.random.default_rng(1)
    est = rv.InverseRegressor(problem, ridge=0.01).fit(*draw(problem, 60, rng))
    Z, X = draw(problem, 6_000, rng)
    angles = explanation_angles(problem, est.predict_cost(Z), X)
    assert 0.01 < (angles > 0).mean()
    level = 1 - 0.5 * (angles > 0).mean()  # above the share of decisions that are explained
    shares = []
    for _ in range(400):
        order = rng.permutation(len(angles))
        cone = conformal_cone(angles[order[:150]], level)
        shares.append(1.0 if cone.is_vacuous else (angles[order[150:]] <= cone.angle).mean())
    error = np.std(shares) / np.sqrt(len(shares))
    # Angles of one decision may tie, which only adds to the coverage.
    assert level - 4 * error <= np.mean(shares) <= level + 1 / 151 + 4 * error


@pytest.mark.parametrize("make", PROBLEMS, ids=NAMES)
def test_worst_cost_is_that_of_the_worst_cost_in_the_cone(make):
    problem, costs, seen = instance(make, size=5)
    angle, rng = 0.4, np.random.default_rng(2)
    worst = worst_costs(problem, costs, seen, angle)
    axes, X = without_lines(problem, costs), without_lines(problem, seen)
    reached = np.full(5, -np.inf)
    for b in range(5):
        size = np.linalg.norm(axes[b])
        steps = [*rng.standard_normal((200, problem.n_variables)), X[b]]
        for u in without_lines(problem[np.zeros(1, int)], np.array(steps)):
            u = u - (u @ axes[b]) * axes[b] / size**2
            length = np.linalg.norm(u)
            if length > 1e-9:
                c = axes[b] + np.tan(angle) * size * u / length
                cosine = c @ axes[b] / np.linalg.norm(c) / size
                assert cosine == pytest.approx(np.cos(angle))
                reached[b] = max(reached[b], c @ X[b])
    assert np.allclose(reached, worst, atol=1e-9)  # the direction of X itself reaches it


@pytest.mark.parametrize("make", PROBLEMS, ids=NAMES)
def test_robust_decisions_have_the_least_worst_cost(make):
    problem, costs, _ = instance(make, size=4)
    angle = 0.35
    answer = decide(problem, costs, angle)
    assert answer.optimal.all()
    assert (np.asarray(problem.constraint_violation(answer.x)) <= 1e-7).all()
    assert np.allclose(answer.objective, worst_costs(problem, costs, answer.x, angle), atol=1e-6)
    plain = worst_costs(problem, costs, problem.solve(costs).x, angle)
    assert (answer.objective <= plain + 1e-7).all()
    for b in range(4):
        assert answer.objective[b] == pytest.approx(_least(problem, costs[b], angle), abs=2e-4)


def _least(problem, cost, angle):
    """The same minimum by scipy, over mixtures of vertices."""
    rng = np.random.default_rng(3)
    n = problem.n_variables
    corners = np.unique(np.round(problem.solve(rng.standard_normal((600, n))).x, 9), axis=0)

    def worst(weights):
        x = weights @ corners / weights.sum()
        return float(worst_costs(problem, cost[None], x[None], angle)[0])

    start = np.full(len(corners), 1.0 / len(corners))
    rows = {"type": "eq", "fun": lambda w: w.sum() - 1}
    bounds = [(0.0, 1.0)] * len(corners)
    found = [
        minimize(worst, s, bounds=bounds, constraints=rows, options={"maxiter": 300, "ftol": 1e-12})
        for s in (start, np.eye(len(corners))[0] * 0.9 + start * 0.1)
    ]
    return min(each.fun for each in found)


def test_at_angle_zero_decisions_are_the_plain_ones():
    problem, costs, _ = instance(paths)
    assert np.array_equal(decide(problem, costs, 0.0).x, problem.solve(costs).x)


def test_an_impossible_instance_is_proved_impossible_and_others_are_solved():
    problem = rv.LinearProgram(A_eq=[[1.0, 1.0]], b_eq=[[1.0], [5.0]], lb=0.0, ub=1.0)
    assert linprog([1, 1], A_eq=[[1, 1]], b_eq=[5], bounds=(0, 1)).status == 2
    answer = decide(problem, np.array([[1.0, 2.0], [1.0, 2.0]]), 0.3)
    assert [rv.SolveStatus(s).name for s in answer.status] == ["OPTIMAL", "INFEASIBLE"]
    assert np.isnan(answer.x[1]).all()


def fitted():
    problem, rng = paths(), np.random.default_rng(1)
    return rv.InverseRegressor(problem, ridge=0.01).fit(*draw(problem, 60, rng)), rng


def test_the_estimator_says_what_it_guarantees():
    est, rng = fitted()
    robust = rv.ConformalDecisions(est, level=0.8)
    assert "not calibrated" in repr(robust)
    Z, X = draw(est.problem, 100, rng)
    robust.calibrate(Z, X)
    assert "at least 0.8" in repr(robust)
    assert robust.covers(Z, X).mean() >= 0.8
    sets = rv.OptimalitySet(est.problem, X, margin=1.0)
    assert robust.calibrate(Z, sets).angle_ == robust.calibrate(Z, X).angle_
    decisions = robust.predict(Z[:5])
    plain = est.predict(Z[:5])
    assert (robust.worst_cost(Z[:5], decisions) <= robust.worst_cost(Z[:5], plain) + 1e-7).all()


def test_bad_input_gets_a_sentence():
    est, rng = fitted()
    Z, X = draw(est.problem, 5, rng)
    with pytest.raises(InputError, match="`level` must be between 0 and 1"):
        rv.ConformalDecisions(est, level=90)
    with pytest.raises(InputError, match="Call `calibrate"):
        rv.ConformalDecisions(est).predict(Z)
    with pytest.raises(InputError, match=r"There is no robust decision\. Vacuous"):
        rv.ConformalDecisions(est, level=0.99).calibrate(Z, X).predict(Z)
    whole = rv.IntegerProgram(A_ub=[[1.0, 1.0]], b_ub=1.0, ub=1.0, integer=[True, True])
    with pytest.raises(InputError, match="are for LinearProgram"):
        explanation_angles(whole, [[1.0, 1.0]], [[0.0, 0.0]])
