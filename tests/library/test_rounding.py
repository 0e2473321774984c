"""Decisions that were rounded, and the vertices that they stand for."""

import numpy as np
import pytest

import revealed as rv
from plan_cases import PLANS, production, transport
from revealed.errors import InfeasibleDecisionError, InputError, ShapeError
from revealed.fit.observed import RoundedDecisionsWarning
from revealed.optimality.rounding import read_rounded


def recovered(found, X, size=1e-6):
    return (np.abs(found - X) <= size * (1 + np.abs(X))).all(axis=1)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("plan", PLANS)
def test_two_decimals_are_read_as_the_vertices_they_stand_for(plan, seed):
    problem, _, X = PLANS[plan](seed)
    reading = read_rounded(problem, X.round(2))
    assert "rounded to 2 decimals" in reading.sentence
    # Two vertices may round to the same numbers; no rule can tell those apart.
    assert recovered(reading.decisions, X).mean() >= 0.98
    assert (reading.half_unit == 0.005).all()
    assert (np.abs(reading.decisions - X.round(2)) <= 0.005 * (1 + 1e-5)).all()
    assert (problem.constraint_violation(reading.decisions) <= 1e-9).all()


@pytest.mark.parametrize("plan", PLANS)
def test_the_active_sets_of_rounded_decisions_are_those_of_the_exact_ones(plan):
    problem, _, X = PLANS[plan](7)
    exact = rv.OptimalitySet(problem, X)
    found = rv.OptimalitySet(problem, read_rounded(problem, X.round(2)).decisions)
    same = (exact.entry_state == found.entry_state).all(axis=1)
    same &= (exact.row_active == found.row_active).all(axis=1)
    assert same.mean() >= 0.99


@pytest.mark.parametrize("plan", PLANS)
def test_digits_that_were_cut_off_are_read_too(plan):
    problem, _, X = PLANS[plan](1)
    reading = read_rounded(problem, np.trunc(X * 100) / 100)
    assert "cut off after 2 decimals" in reading.sentence
    assert recovered(reading.decisions, X).mean() >= 0.95


@pytest.mark.parametrize("plan", PLANS)
def test_exact_decisions_are_left_bit_for_bit(plan):
    problem, _, X = PLANS[plan](0, days=60)
    reading = read_rounded(problem, X)
    assert reading.decisions is X
    assert reading.half_unit is None
    assert not reading.sentence


def test_counts_between_their_bounds_are_not_taken_for_rounded():
    problem = rv.LinearProgram(lb=np.zeros(2), ub=np.full(2, 6.0))
    X = np.random.default_rng(0).integers(0, 7, (80, 2)).astype(float)
    assert not read_rounded(problem, X).sentence


def test_compromises_between_vertices_are_not_taken_for_rounded():
    problem, _, X = transport(0)
    X = (0.5 * (X[:150] + X[150:])).round(2)
    reading = read_rounded(problem, X)
    assert not reading.sentence


def test_a_few_wrong_rows_are_no_sign_of_rounding():
    problem, _, X = transport(0, days=100)
    whole = rv.LinearProgram(
        problem.A_eq, problem.b_eq.round(), problem.A_ub, problem.b_ub.round(), 0.0
    )
    X = np.asarray(whole.solve(np.random.default_rng(0).random((100, 24))).x).round()
    X[3, np.argmax(X[3])] += 1.0
    assert not read_rounded(whole, X).sentence


def test_each_column_may_have_decimals_of_its_own():
    problem, _, X = production(3)
    places = np.array([0, 1, 2, 3, 2, 1, 2, 2])
    rounded = np.column_stack([X[:, j].round(k) for j, k in enumerate(places)])
    reading = read_rounded(problem, rounded)
    assert recovered(reading.decisions, X).mean() >= 0.9
    told = [len(np.unique(rounded[:, j])) > 7 for j in range(8)]  # else too few numbers to tell
    assert np.allclose(reading.half_unit[told], 0.5 * 10.0 ** -places[told])


@pytest.mark.parametrize("unit", [0.25, 0.02, 0.5])
def test_multiples_of_other_units_are_read_too(unit):
    problem, _, X = production(3)
    reading = read_rounded(problem, unit * np.rint(X / unit))
    assert f"rounded to multiples of {unit:g}" in reading.sentence
    assert recovered(reading.decisions, X).mean() >= 0.9


def test_tens_are_rounding_where_amounts_are_thousands():
    small, _, X = production(3)
    problem = rv.LinearProgram(A_ub=small.A_ub, b_ub=1e3 * small.b_ub, lb=0.0, ub=1e3 * small.ub)
    reading = read_rounded(problem, (1e3 * X).round(-1))
    assert "rounded to multiples of 10:" in reading.sentence
    assert recovered(reading.decisions, 1e3 * X).mean() >= 0.98


@pytest.mark.parametrize("plan", PLANS)
def test_significant_digits_are_told_from_decimals(plan):
    small, _, X = PLANS[plan](3)
    n = X.shape[1]
    size = 10.0 ** (np.arange(n) % 4 - 1)  # columns of very different size
    problem = rv.LinearProgram(
        *((small.A_eq / size, small.b_eq) if len(small.b_eq) else (None, None)),
        small.A_ub / size,
        small.b_ub,
        small.lb * size,
        small.ub * size,
    )
    exact = X * size
    rounded = np.array([[float(f"{x:.4g}") for x in row] for row in exact])
    reading = read_rounded(problem, rounded)
    assert "rounded to 4 significant digits" in reading.sentence
    assert recovered(reading.decisions, exact).mean() >= 0.95


def test_limits_of_each_day_are_those_of_the_day():
    shared, _, _ = production(2)
    rng = np.random.default_rng(1)
    capacity = shared.b_ub * rng.uniform(0.8, 1.2, (120, len(shared.b_ub)))
    problem = rv.LinearProgram(A_ub=shared.A_ub, b_ub=capacity, lb=0.0, ub=shared.ub)
    X = np.asarray(problem.solve(-rng.uniform(1, 10, (120, 8))).x)
    assert recovered(read_rounded(problem, X.round(2)).decisions, X).mean() >= 0.99


def test_what_rounding_does_not_explain_is_left_and_counted():
    problem, _, X = transport(0)
    X = X.round(2)
    X[5, 0] += 3.0
    reading = read_rounded(problem, X)
    assert "1 break their constraints by more than that explains" in reading.sentence
    assert (reading.decisions[5] == X[5]).all()


# --- the estimator -------------------------------------------------------------------------------


@pytest.mark.parametrize("plan", PLANS)
def test_a_fit_to_rounded_decisions_does_as_well_as_one_to_exact_ones(plan):
    problem, Z, X = PLANS[plan](11)
    learn, held = slice(0, 240), slice(240, 300)

    def share(decisions):
        est = rv.InverseRegressor(problem, random_state=0).fit(Z[learn], decisions[learn])
        return recovered(est.predict(Z[held]), X[held], 1e-5).mean(), est

    clean, est = share(X)
    assert est.decision_report_ == ""
    with pytest.warns(RoundedDecisionsWarning, match="rounded to 2 decimals"):
        rounded, est = share(X.round(2))
    assert abs(clean - rounded) <= 0.01
    assert "rounded to 2 decimals" in est.decision_report_


def test_a_precision_that_is_given_is_taken_without_a_warning():
    problem, Z, X = transport(1, days=60)
    est = rv.InverseRegressor(problem, ridge=0.1, decision_tol=0.005)
    est.fit(Z, X.round(2))
    assert "known to within 0.005" in est.decision_report_


def test_exact_by_request_means_exact():
    problem, Z, X = transport(1, days=60)
    with pytest.raises(InfeasibleDecisionError):
        rv.InverseRegressor(problem, decision_tol=0).fit(Z, X.round(2))


@pytest.mark.parametrize("kind", [rv.InverseRegressor, rv.InverseRegressorCV])
def test_infeasible_decisions_are_refused_repaired_or_skipped(kind):
    problem, Z, X = transport(2, days=60)
    X = X.copy()
    X[[4, 9], 0] += 5.0
    options = (
        {"solver": rv.fit.LBFGS(max_iter=300), "ridge": 0.01}
        if kind is rv.InverseRegressor
        else {"cv": 2}
    )
    options |= {"random_state": 0}
    if kind is rv.InverseRegressorCV:
        options |= {"model": "linear", "ridges": [0.01]}
    with pytest.raises(InfeasibleDecisionError, match="2 of 60"):
        kind(problem, **options).fit(Z, X)
    est = kind(problem, infeasible="repair", **options).fit(Z, X)
    assert "2 decisions broke their constraints and were moved" in est.decision_report_
    est = kind(problem, infeasible="skip", **options).fit(Z, X)
    assert "2 decisions break their constraints and are skipped" in est.decision_report_
    rest = np.setdiff1d(np.arange(60), [4, 9])
    alone = kind(problem, **options).fit(Z[rest], X[rest])
    assert np.allclose(est.coef_, alone.coef_, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "options, error, message",
    [
        ({"infeasible": "guess"}, InputError, "refuse, repair, weigh, skip"),
        ({"decision_tol": -1.0}, InputError, "at least 0"),
        ({"decision_tol": "fine"}, InputError, '"auto" or numbers'),
        ({"decision_tol": [0.1, 0.2]}, ShapeError, "24 entries"),
    ],
)
def test_options_that_mean_nothing_are_refused(options, error, message):
    problem, Z, X = transport(0, days=10)
    with pytest.raises(error, match=message):
        rv.InverseRegressor(problem, **options).fit(Z, X)


def test_a_precision_is_for_linear_programs():
    problem = rv.QuadraticProgram(Q=np.eye(2), sense="min", lb=0.0, ub=np.ones(2))
    with pytest.raises(InputError, match="LinearProgram"):
        rv.InverseRegressor(problem, decision_tol=0.1).fit(np.ones((3, 1)), np.ones((3, 2)))
