"""Projections onto sets of parameters: nothing is called solved or empty that is not, whatever the
units of rows, columns and features. `python experiments/scripts/claims_sets.py` runs thousands."""

from fractions import Fraction
from importlib import import_module

import numpy as np
import pytest
from hostile_sets import _conditions, exact_parameters, hostile_set, is_false

import revealed as rv
from revealed import CostForm, OptimalitySet, ProjectionStatus

CLAIMS = (ProjectionStatus.SOLVED, ProjectionStatus.EMPTY)


def false_claims(seeds, **options):
    """The false claims, and the share of sets that got no answer."""
    wrong, missed = [], 0
    for seed in seeds:
        case = hostile_set(seed)
        p = rv.project(case.q[None], case.sets, **options)
        said = is_false(case, p.status[0], p.point[0])
        wrong += [(seed, said)] if said else []
        missed += p.status[0] not in CLAIMS
    return wrong, missed / len(seeds)


@pytest.mark.parametrize("method, most", [("auto", 0.01), ("kernel", 0.2), ("clarabel", 0.2)])
def test_hostile_sets_meet_no_false_claim(method, most, record_property):
    wrong, share = false_claims(range(400), method=method)
    record_property("not answered", f"{share:.1%}")
    assert not wrong
    assert share <= most


def test_floating_point_alone_claims_nothing_false_either(monkeypatch, record_property):
    module = import_module("revealed.projection.parametric.dispatch")
    monkeypatch.setattr(module, "settle_exactly", lambda *_: None)
    wrong, share = false_claims(range(400, 700))
    record_property("not answered", f"{share:.1%}")
    assert not wrong
    assert share <= 0.2


def test_without_proof_some_claims_would_be_false(monkeypatch):
    module = import_module("revealed.projection.parametric.dispatch")
    monkeypatch.setattr(module._Answer, "prove", lambda *_, **__: None)
    assert false_claims(range(600, 700))[0], "the sets are not hostile any more"


@pytest.mark.parametrize("seed", range(60))
def test_the_truth_about_hostile_sets_is_true(seed):
    """Nothing that obeys the conditions is nearer: the gradient at the truth leads nowhere lower.
    By the definition, in exact arithmetic."""
    case = hostile_set(20_000 + seed)
    truth = exact_parameters(case)
    if truth is None:
        return
    w, square = truth
    if case.soft is None:
        move = sum((a - Fraction(float(b))) ** 2 for a, b in zip(w, case.q, strict=True))
        assert move == square
    rows, start, _, _, q = _conditions(case, 0.0)
    for row, offset, bound, sign in case.limits:
        value = sum((Fraction(float(a)) * b for a, b in zip(row, w, strict=True)), Fraction(0))
        assert sign * (value + Fraction(float(offset)) - Fraction(float(bound))) >= 0
    assert len(rows) == len(start)
    assert len(q) == len(w)


def test_a_decision_without_choice_is_explained_by_anything():
    """Every entry is fixed, so that exact arithmetic has nothing to solve."""
    problem = rv.LinearProgram(A_ub=[[1.0, 1.0]], b_ub=[9.0], lb=[1.0, 2.0], ub=[1.0, 2.0])
    form = CostForm.features(np.array([[0.0], [-3.0]]))
    sets = OptimalitySet(problem, [[1.0, 2.0]], 1e-6, form=form, soft=2.0**20)
    near = rv.project([[2.2]], sets)
    assert near.solved.all()
    np.testing.assert_array_equal(near.point, [[2.2]])


def features_in_odd_units(rng, units):
    """A grid whose edges have four features in these units, and sets of paths."""
    grid = rv.problems.grid_shortest_path(4, 4)
    S = (rng.random((grid.n_variables, 4)) + 0.1) * units
    form = CostForm.features(S, offset=0.05)
    w = (rng.random((6, 4)) + 0.5) / units
    X = grid.solve(form.costs(w)).x
    return OptimalitySet(grid, X, 0.01, form=form), w


@pytest.mark.parametrize("reach", [0, 2, 4])
def test_features_in_odd_units_are_still_answered(reach):
    """Too large for exact arithmetic: what residuals hide, the system of what binds confirms."""
    rng = np.random.default_rng(reach)
    units = 10.0 ** np.linspace(-reach, reach, 4)
    sets, w = features_in_odd_units(rng, units)
    near = rv.project(w * (1.0 + 0.3 * rng.normal(size=w.shape)), sets)
    answered = np.isin(near.status, CLAIMS)
    assert answered.mean() >= 0.5
    again = rv.project(near.point[near.solved], sets[near.solved])
    size = np.linalg.norm(near.point[near.solved], axis=1)
    assert (again.distance <= 1e-6 * size).all()
