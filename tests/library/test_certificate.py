"""Nothing is called solved that is not: the residual is that of the definition, for every method,
every tolerance, and for solvers that lie."""

import numpy as np
import pytest

import revealed as rv
from helpers import (
    MARGINS,
    PREDICTIONS,
    catalogue,
    definition_residual,
    inside_costs,
    nearly_repeated_rows,
    predictions,
    rounding,
)
from revealed import EntryState, ProjectionStatus
from revealed.projection.cpu.fallback import FALLBACKS

CASES = catalogue()
METHODS = ("auto", "kernel", "clarabel", "reference")
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def sets_and_costs(case, margin, seed=0):
    rng = np.random.default_rng(seed)
    repeat = np.arange(len(PREDICTIONS) * len(case.costs)) % len(case.costs)
    decisions = case.problem.solve(case.costs).x
    sets = rv.OptimalitySet(case.problem, decisions, margin)
    costs = np.vstack([predictions(kind, sets, rng) for kind in PREDICTIONS])
    return rv.OptimalitySet(case.problem[repeat], decisions[repeat], margin), costs


def residuals(sets, costs, p):
    """Our own residuals of a projection, and what rounding may add to each."""
    own, noise = [], []
    for b in range(len(sets)):
        own.append(definition_residual(sets, b, costs[b], p.point[b], p.multipliers[b]))
        noise.append(rounding(sets, b, costs[b], p.multipliers[b]))
    return np.array(own), np.array(noise)


def judged(monkeypatch, sets, costs, multipliers, **options):
    """What project() says when its solver claims these multipliers (B, m)."""
    liar = lambda sets, costs, b, tol: (multipliers[b], 1)  # noqa: E731
    monkeypatch.setitem(FALLBACKS, "reference", liar)
    return rv.project(costs, sets, method="reference", **options)


def random_multipliers(sets, rng):
    """Admissible, and nowhere near optimal."""
    m_eq, m_ub = sets.problem.eq_rows.shape[0], sets.row_active.shape[1]
    v = rng.standard_normal((len(sets), m_eq))
    mu = (sets.margins[:, None] + rng.random((len(sets), m_ub))) * sets.row_active
    return np.hstack([v, mu])


@pytest.mark.parametrize("tol", [1e-3, 1e-8, 1e-12])
@pytest.mark.parametrize("method", METHODS)
@each_case
def test_no_claim_is_false(case, method, tol):
    for margin in MARGINS:
        sets, costs = sets_and_costs(case, margin)
        p = rv.project(costs, sets, method=method, tol=tol)
        own, noise = residuals(sets, costs, p)
        assert np.isfinite(own).all()
        assert (np.abs(own - p.residual) <= 1e-6 * own + noise).all()
        assert (own[p.solved] <= tol + noise[p.solved]).all()
        np.testing.assert_array_equal(p.solved, p.residual <= tol)
        np.testing.assert_array_equal(p.solved, p.status == ProjectionStatus.SOLVED)


@each_case
def test_limits_make_no_false_claims_either(case):
    sets, costs = sets_and_costs(case, 0.0)
    for options in ({"max_iter": 1}, {"max_iter": 3}, {"time_limit": 0}):
        p = rv.project(costs, sets, method="kernel", **options)
        own, noise = residuals(sets, costs, p)
        assert (own[p.solved] <= 1e-8 + noise[p.solved]).all()
        assert (np.abs(own - p.residual) <= 1e-6 * own + noise).all()


@pytest.mark.parametrize("margin", MARGINS)
@each_case
def test_the_residual_is_the_one_of_the_definition(case, margin, monkeypatch):
    sets, costs = sets_and_costs(case, margin)
    claimed = random_multipliers(sets, np.random.default_rng(1))
    p = judged(monkeypatch, sets, costs, claimed)
    own, noise = residuals(sets, costs, p)
    np.testing.assert_array_equal(p.multipliers, claimed)
    np.testing.assert_allclose(p.residual, own, rtol=1e-9, atol=noise.max())
    np.testing.assert_allclose(p.distance, np.linalg.norm(p.point - costs, axis=1), rtol=1e-9)
    assert not p.solved[own > 1e-8].any()


def rows_there(sets):
    """For each set, the rows that have a multiplier: equalities and binding inequalities."""
    m_eq = sets.problem.eq_rows.shape[0]
    return [np.r_[np.arange(m_eq), m_eq + np.flatnonzero(active)] for active in sets.row_active]


def perturb_one(sets, multipliers, rng):
    size = np.abs(multipliers).max(axis=1) + 1.0
    for b, there in enumerate(rows_there(sets)):
        multipliers[b, rng.choice(there)] += 1e-3 * size[b]


def drop_the_sign(sets, multipliers, rng):
    bounded = multipliers[:, -sets.row_active.shape[1] :]
    bounded[sets.row_active] = -np.abs(bounded[sets.row_active]) - 1.0


def below_the_margin(sets, multipliers, rng):
    bounded = multipliers[:, -sets.row_active.shape[1] :]
    bounded[sets.row_active] = (
        0.5 * np.broadcast_to(sets.margins[:, None], bounded.shape)[sets.row_active]
    )


def zeros(sets, multipliers, rng):
    multipliers[:] = 0.0


def opposite(sets, multipliers, rng):
    multipliers *= -1.0


def huge(sets, multipliers, rng):
    multipliers *= 1e12


MUTATIONS = [perturb_one, drop_the_sign, below_the_margin, zeros, opposite, huge]
with_bounded = [case for case in CASES if case.problem.ub_rows.shape[0]]


@pytest.mark.parametrize("margin", [0.01, 1.0])
@pytest.mark.parametrize("mutate", MUTATIONS)
@each_case
def test_corrupted_multipliers_are_caught(case, mutate, margin, monkeypatch):
    if mutate in (drop_the_sign, below_the_margin) and case not in with_bounded:
        return  # nothing has a sign
    sets, costs = sets_and_costs(case, margin)
    multipliers = rv.project(costs, sets).multipliers
    mutate(sets, multipliers, np.random.default_rng(2))
    p = judged(monkeypatch, sets, costs, multipliers)
    own, noise = residuals(sets, costs, p)
    wrong = own > 1e-8 + noise
    assert wrong.any()  # the mutation did something
    assert not p.solved[wrong].any()
    assert not (p.status[wrong] == ProjectionStatus.SOLVED).any()


def test_a_bound_is_kept_even_where_the_move_does_not_feel_it(monkeypatch):
    # One row, x0 <= 1, binding; the cost is inside, so the move is 0 and orthogonal to every row.
    # A multiplier below the margin explains a point outside the set all the same.
    problem = rv.LinearProgram(A_ub=[[1.0, 0.0]], b_ub=[1.0], lb=[-np.inf, 0.0])
    sets = rv.OptimalitySet(problem, [[1.0, 0.0]], margin=1.0)
    assert sets.entry_state.tolist() == [[EntryState.FREE, EntryState.AT_LOWER]]
    for mu in (0.5, 0.0, -3.0):
        costs = np.array([[-mu, 2.0]])
        p = judged(monkeypatch, sets, costs, np.array([[mu]]))
        np.testing.assert_array_less(1e-8, p.residual)
        assert not p.solved.any()
    assert not judged(monkeypatch, sets, np.array([[-0.5, 2.0]]), np.array([[np.nan]])).solved.any()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
@each_case
def test_multipliers_that_are_not_numbers_prove_nothing(case, value, monkeypatch):
    sets, costs = sets_and_costs(case, 1.0)
    multipliers = rv.project(costs, sets).multipliers
    for b, there in enumerate(rows_there(sets)):
        multipliers[b, there[0]] = value
    p = judged(monkeypatch, sets, costs, multipliers)
    assert not p.solved.any()


@each_case
def test_a_solver_without_an_answer_leaves_an_honest_point(case, monkeypatch):
    sets, costs = sets_and_costs(case, 1.0)
    monkeypatch.setitem(FALLBACKS, "reference", lambda sets, costs, b, tol: (None, 0))
    p = rv.project(costs, sets, method="reference")
    own, _ = residuals(sets, costs, p)
    assert not p.solved[~(own <= 1e-8)].any()
    assert sets.contains(p.point).all()


@each_case
def test_a_worse_solver_does_not_spoil_a_better_answer(case, monkeypatch):
    sets, costs = sets_and_costs(case, 1.0)
    good = rv.project(costs, sets, method="kernel", tol=1e-30)  # never reached: all are handed on
    liar = lambda sets, costs, b, tol: (random_multipliers(sets[b], rng)[0], 1)  # noqa: E731
    rng = np.random.default_rng(0)
    for name in ("clarabel", "reference"):
        monkeypatch.setitem(FALLBACKS, name, liar)
    p = rv.project(costs, sets, method="auto", tol=1e-30)
    _, noise = residuals(sets, costs, p)
    assert (p.residual <= good.residual * (1 + 1e-6) + noise).all()
    np.testing.assert_allclose(p.point, good.point, rtol=0, atol=1e-8)


@each_case
def test_points_inside_have_residual_and_distance_zero(case):
    sets, _ = sets_and_costs(case, 1.0)
    costs = inside_costs(sets, np.random.default_rng(3))
    p = rv.project(costs, sets)
    size = np.linalg.norm(costs, axis=1)
    assert p.solved.all()
    assert (p.distance <= 1e-10 * size).all()


def test_a_projection_that_gave_up_still_explains_the_decision():
    problem = rv.problems.grid_shortest_path(6, 6, neighbors=8)
    rng = np.random.default_rng(5)
    decisions = problem.solve(rng.uniform(0.5, 1.5, (6, problem.n_variables))).x
    sets = rv.OptimalitySet(problem, decisions, 0.1)
    costs = predictions("almost", sets, rng)
    p = rv.project(costs, sets, method="kernel", max_iter=1)
    assert not p.solved.all()
    assert sets.contains(p.point).all()


@pytest.mark.parametrize("seed", range(3))
def test_a_move_that_is_all_rounding_needs_no_small_multipliers(seed):
    """Rows that nearly repeat each other ask for multipliers of 1e5, whose products with a move of
    1e-10 look like a gap; but a point of the set this near has nothing nearer to offer."""
    cost, sets = nearly_repeated_rows(seed)
    p = rv.project(cost, sets)
    assert p.solved.all()
    assert p.distance[0] <= 1e-10 * np.linalg.norm(cost)
    away = rv.project(cost + 1e-3 * np.random.default_rng(100 + seed).normal(size=20), sets)
    assert away.distance[0] > 1e-4, "a real move is judged as before"
