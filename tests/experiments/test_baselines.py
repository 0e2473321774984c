"""The estimators of section 2 against other programs, brute force and their definitions."""

import itertools

import numpy as np
import pytest

import revealed as rv
from revealed import metrics
from revealed_experiments.baselines import (
    circumcenter,
    circumcenter_costs,
    robust_inverse,
    worst_case,
)

PROBLEMS = {
    "path": rv.problems.grid_shortest_path(3, 3, directed="right-down"),
    "knapsack": rv.problems.knapsack([3.0, 1.0, 2.0, 4.0], 5.0),
    "knapsack, standard form": rv.problems.standard_form_knapsack([3.0, 1.0, 2.0, 4.0], 5.0),
}


def sample(problem, seed, size=12):
    """Contexts, and decisions of costs that are no linear function of them."""
    rng = np.random.default_rng(seed)
    Z = np.column_stack([rng.standard_normal((size, 2)), np.ones(size)])
    C = Z @ rng.standard_normal((3, problem.n_variables)) + rng.standard_normal(
        (size, problem.n_variables)
    )
    return Z, problem.solve(C).x


@pytest.mark.parametrize("radius", [0.0, 0.1, 0.7])
@pytest.mark.parametrize("name", PROBLEMS)
def test_the_value_is_that_of_the_worst_distribution(name, radius):
    problem = PROBLEMS[name]
    Z, X = sample(problem, 1)
    fit = robust_inverse(problem, Z, X, radius=radius)
    worst = worst_case(problem, fit.coef, Z, X, radius=radius)
    assert fit.value == pytest.approx(worst, abs=1e-7)
    if radius == 0:
        given = {"costs": fit.predict_cost(Z), "decisions": X}
        assert worst == pytest.approx(metrics.suboptimality_loss(problem, **given).mean(), abs=1e-7)


@pytest.mark.parametrize("name", PROBLEMS)
def test_no_other_coefficients_have_a_smaller_worst_case(name):
    problem, radius = PROBLEMS[name], 0.2
    Z, X = sample(problem, 2)
    fit = robust_inverse(problem, Z, X, radius=radius)
    normal = (X.mean(0) - X).T @ Z / len(Z)
    assert (fit.coef * normal).sum() == pytest.approx(1.0)
    rng = np.random.default_rng(3)
    for size in (1e-3, 0.1, 3.0):
        other = fit.coef + size * rng.standard_normal(fit.coef.shape)
        other += normal * (1.0 - (other * normal).sum()) / (normal**2).sum()
        assert worst_case(problem, other, Z, X, radius=radius) >= fit.value - 1e-8


def test_a_larger_ball_has_a_larger_worst_case():
    problem = PROBLEMS["path"]
    Z, X = sample(problem, 4)
    values = [robust_inverse(problem, Z, X, radius=r).value for r in (0.0, 0.3, 1.0, 50.0)]
    assert (np.diff(values) > 0).all()


def test_decisions_of_a_linear_model_are_explained():
    problem, rng = PROBLEMS["path"], np.random.default_rng(5)
    Z = np.column_stack([rng.standard_normal((60, 2)), np.ones(60)])
    X = problem.solve(Z @ rng.standard_normal((3, problem.n_variables))).x
    fit = robust_inverse(problem, Z, X, radius=0.0)
    assert fit.value == pytest.approx(0.0, abs=1e-8)


def test_what_cannot_be_learned_from_is_refused():
    problem = PROBLEMS["path"]
    Z, X = sample(problem, 6)
    with pytest.raises(rv.InputError, match="do not vary"):
        robust_inverse(problem, Z, np.tile(X[:1], (len(Z), 1)), radius=0.1)
    with pytest.raises(rv.InputError, match="at least 0"):
        robust_inverse(problem, Z, X, radius=-1.0)


# --- the circumcenter ----------------------------------------------------------------------------


@pytest.mark.parametrize("p", [2, 3, 4])
def test_the_circumcenter_is_nearest_to_the_farthest(p):
    rng = np.random.default_rng(p)
    true = rng.standard_normal(p)
    rows = rng.standard_normal((40, p))
    rows *= np.sign(rows @ true)[:, None]
    found = circumcenter(rows)
    inside = rng.standard_normal((200_000, p)) * 0.5 + true
    inside = inside[(inside @ rows.T >= 0).all(axis=1)]
    inside /= np.linalg.norm(inside, axis=1)[:, None]
    assert len(inside) > 20
    angles = np.arccos(np.clip(inside @ found.direction, -1, 1))
    assert angles.max() <= found.angle + 1e-7
    assert (rows @ found.rays.T >= -1e-7).all()
    for size in (1e-3, 0.03, 0.5):  # no direction does better
        others = found.direction + size * rng.standard_normal((300, p))
        others /= np.linalg.norm(others, axis=1)[:, None]
        worst = np.arccos(np.clip(others @ found.rays.T, -1, 1)).max(axis=1)
        assert worst.min() >= found.angle - 1e-9


def test_the_circumcenter_of_the_positive_orthant():
    found = circumcenter(np.eye(3))
    np.testing.assert_allclose(found.direction, np.ones(3) / np.sqrt(3), atol=1e-12)
    assert found.angle == pytest.approx(np.arccos(1 / np.sqrt(3)))


def test_what_decisions_say_is_a_cone_around_the_truth():
    """It holds the true coefficients, shrinks with more decisions, and its center decides well."""
    problem, rng = rv.problems.grid_shortest_path(3, 3, directed="right-down"), None
    paths = every_path(problem)
    rng = np.random.default_rng(7)
    true = np.array([0.5, 0.3, 0.8])
    true /= np.linalg.norm(true)
    F = rng.random((60, problem.n_variables, 3))
    X = problem.solve(F @ true).x
    angles = []
    for size in (5, 20, 60):
        found = circumcenter_costs(F[:size], X[:size], paths)
        assert np.arccos(found.direction @ true) <= found.angle + 1e-9
        angles.append(found.angle)
    assert angles == sorted(angles, reverse=True)
    assert angles[-1] < 0.2


def every_path(problem):
    """(V, n): all vertices of the 3x3 right-down grid, as optima of many random costs."""
    costs = np.random.default_rng(0).standard_normal((3000, problem.n_variables))
    found = np.unique(problem.solve(costs).x.round(), axis=0)
    assert len(found) == 6  # 4 choose 2
    return found


def test_cones_without_a_center_are_refused():
    with pytest.raises(rv.InputError, match="no extreme ray"):
        circumcenter(np.array([[1.0, 0.0, 0.0]]))
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=2)))
    with pytest.raises(rv.InputError, match="no extreme ray"):
        circumcenter(signs)  # only 0 is left
