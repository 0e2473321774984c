"""Intervals cover what made the decisions, and are withheld where nothing tells it."""

import numpy as np
import pytest

import revealed as rv
from revealed.fit import coefficient_intervals

SIDES = np.vstack([np.kron(np.eye(3), np.ones((1, 3))), np.kron(np.ones((1, 3)), np.eye(3))])
ASSIGNMENT = rv.LinearProgram(A_eq=SIDES, b_eq=np.ones(6), ub=1.0)


def made(seed, size=150, noise=1.0):
    """True coefficients (9, 2), levels (9,), contexts and decisions of someone with noise."""
    rng = np.random.default_rng(seed)
    coef, level = rng.standard_normal((9, 2)), rng.uniform(-1, 1, 9)
    Z = rng.standard_normal((size, 2))
    C = Z @ coef.T + level + noise * rng.standard_normal((size, 9))
    return coef, level, Z, np.asarray(ASSIGNMENT.solve(C).x)


def covered(found, coef, level, Z):
    """Which intervals hold the true coefficients, at the length of the fit."""
    spread, told = np.append(Z.std(axis=0), 1.0), found.has_interval
    truth = np.column_stack([coef, level + coef @ Z.mean(axis=0)])
    truth = found.identified.canonical(truth)
    length = np.linalg.norm((found.value * spread)[told]) / np.linalg.norm((truth * spread)[told])
    return ((found.low <= length * truth) & (length * truth <= found.high))[told]


def test_intervals_cover():
    """Percentiles of a bootstrap with as many refits hold 86% of these."""
    hits = []
    for seed in range(40, 52):
        coef, level, Z, X = made(seed)
        found = coefficient_intervals(Z, rv.OptimalitySet(ASSIGNMENT, X), refits=25)
        assert found.converged == found.refits
        hits.append(covered(found, coef, level, Z))
    share = np.concatenate(hits).mean()
    assert 0.91 <= share <= 0.99


def test_intervals_narrow_as_decisions_come_in():
    widths = []
    for size in (150, 600):
        _, _, Z, X = made(3, size)
        found = coefficient_intervals(Z, rv.OptimalitySet(ASSIGNMENT, X), refits=25)
        widths.append(np.median((found.high - found.low) / np.abs(found.value).max()))
    assert widths[1] < 0.75 * widths[0]


def test_the_estimator_gives_them_in_the_units_of_the_features():
    _, _, Z, X = made(1)
    plain, scaled = (
        rv.InverseRegressor(ASSIGNMENT, random_state=0).fit(z, X).intervals(z, X, refits=10)
        for z in (Z, Z * [1.0, 1e4] + [0.0, 7.0])
    )
    assert scaled.low[:, 1] * 1e4 == pytest.approx(plain.low[:, 1], rel=1e-3, abs=1e-3)
    assert scaled.high[:, 2] == pytest.approx(plain.high[:, 2], rel=1e-3, abs=1e-3)


def test_nothing_is_said_of_what_decisions_do_not_tell():
    _, _, Z, X = made(2)
    X = np.column_stack([X, np.full(150, 2.0)])  # and a variable without a choice
    bounds = {"lb": np.append(np.zeros(9), 2.0), "ub": np.append(np.ones(9), 2.0)}
    rows = np.column_stack([SIDES, np.zeros(6)])
    problem = rv.LinearProgram(A_eq=rows, b_eq=np.ones(6), **bounds)
    Z = np.column_stack([Z, np.ones(150), Z[:, 1] - 2.0])
    found = coefficient_intervals(Z, rv.OptimalitySet(problem, X), refits=10)
    assert not found.has_interval[9].any()
    assert found.has_interval[:9].all(axis=0).tolist() == [True, False, False, False, True]


def test_decisions_without_noise_leave_the_size_of_coefficients_to_the_ridge():
    _, _, Z, X = made(5, noise=0.0)
    found = coefficient_intervals(Z, rv.OptimalitySet(ASSIGNMENT, X), refits=5)
    assert not found.has_interval.any()
    assert "No intervals" in str(found)


def test_a_quadratic_model_has_a_column_for_each_product():
    _, _, Z, X = made(6, 400)
    found = coefficient_intervals(Z, rv.OptimalitySet(ASSIGNMENT, X), kind="quadratic", refits=25)
    assert found.value.shape == (9, 2 + 3 + 1)
    products = found.has_interval[:, 2:5]
    assert products.all()
    assert found.clear[:, 2:5].mean() < 0.2  # they have no effect
    assert found.clear[:, :2].mean() > 0.4


@pytest.mark.parametrize("wrong", [{"level": 1.0}, {"refits": 1}, {"kind": "kernel"}])
def test_what_makes_no_sense_is_refused(wrong):
    _, _, Z, X = made(1, 20)
    with pytest.raises(rv.InputError):
        coefficient_intervals(Z, rv.OptimalitySet(ASSIGNMENT, X), **wrong)
