"""Forms and limits by the kernel: the same answers, residuals and proofs as the conic solver's."""

import numpy as np
import pytest
from test_forms import AGREE, EMPTY, FORMS, GRID, KNOWN, N, decisions

import revealed as rv
from revealed import CostForm, InputError, OptimalitySet, ProjectionStatus
from revealed._common.conic import ConicAnswer
from revealed.projection.lifting import lifting_of
from revealed.projection.parametric import dispatch
from revealed.projection.parametric.conditions import Conditions, matrix_of
from revealed.projection.parametric.conic import build_program, residual_of


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("soft", [None, 30.0])
def test_the_kernel_serves_forms_as_exactly_as_the_conic_solver(name, soft):
    form = FORMS[name]
    X, q = decisions(form, np.random.default_rng(21))
    sets = OptimalitySet(GRID, X, 0.02, form=form, soft=soft)
    kernel, conic = (rv.project(q, sets, method=m) for m in ("kernel", "clarabel"))
    assert np.array_equal(kernel.status, conic.status)
    assert kernel.solved.any()
    assert np.allclose(kernel.point, conic.point, rtol=0, atol=1e-7, equal_nan=True)
    both = kernel.solved
    assert np.allclose(kernel.distance[both], conic.distance[both], rtol=0, atol=1e-7)
    warm = rv.project(q + 1e-3, sets, method="kernel", warm_start=kernel)
    cold = rv.project(q + 1e-3, sets, method="clarabel")
    assert np.allclose(warm.point, cold.point, rtol=0, atol=1e-7, equal_nan=True)


def test_the_residual_of_a_batch_is_that_of_the_conic_solver():
    form, rng = FORMS["vertices, costs not below 0.1"], np.random.default_rng(22)
    X, q = decisions(form, rng)
    for soft in (None, 5.0):
        sets = OptimalitySet(GRID, X, 0.05, form=form, soft=soft)
        own = Conditions.of(sets, matrix_of(sets))
        x, forces = rng.normal(size=(5, own.matrix.shape[1])), rng.normal(size=own.offset.shape)
        residual, distance = own.residual(q, x, forces)
        for b in range(5):
            one = sets[[b]]
            program = build_program(one, q[b], 1.0)
            y = own.take(np.array([b])).allowed(forces[[b]])[0]
            size = max(np.linalg.norm(q[b]), 0.05)
            answer = as_conic_answer(program, one, x[b], y)
            assert residual_of(program, answer, size) == pytest.approx(residual[b], rel=1e-9)
            move = np.sum((x[b, :12] - q[b]) ** 2) + np.sum(y[:N] ** 2) / (soft or np.inf)
            assert distance[b] == pytest.approx(np.sqrt(move))


def as_conic_answer(program, one, x, y):
    """Points and forces in the order of the conic solver's program: free entries, entries at their
    lower bound, limits; where soft, with the miss that the forces ask for."""
    state = one.entry_state[0]
    z = np.concatenate([-y[:N][state == 0], y[:N][state == 1], y[N:]])
    miss = [] if one.soft is None else y[:N] / one.soft
    return ConicAnswer(np.concatenate([x, miss]), z, False, False, False, 0)


def test_an_empty_set_is_proven_empty_without_the_conic_solver():
    rng = np.random.default_rng(23)
    form = CostForm.known(KNOWN, lower=0.0, upper=0.3)
    X = GRID.solve(rng.random((30, N)) + 0.1).x
    q = rng.random((30, form.n_parameters))
    sets = OptimalitySet(GRID, X, 0.1, form=form)
    kernel, conic = (rv.project(q, sets, method=m) for m in ("kernel", "clarabel"))
    empty = conic.status == EMPTY
    assert empty.any()
    assert not empty.all()
    assert np.array_equal(kernel.status == EMPTY, empty)
    assert np.isnan(kernel.point[empty]).all()
    assert np.isinf(kernel.distance[empty]).all()
    assert kernel.solved[~empty].all()


def test_many_parameters_may_miss_softly():
    big = rv.problems.grid_shortest_path(4, 5)
    form, rng = CostForm.vertices(big), np.random.default_rng(24)
    X = big.solve(rng.random((6, big.n_variables)) + 0.1).x
    sets = OptimalitySet(big, X, 0.3, form=form, soft=100.0)
    assert lifting_of(sets) is None, "few enough parameters to be told by directions"
    q = rng.random((6, 20))
    kernel, conic = (rv.project(q, sets, method=m) for m in ("kernel", "clarabel"))
    assert kernel.solved.all()
    assert np.abs(kernel.point - conic.point).max() <= 1e-7
    assert np.allclose(kernel.distance, conic.distance, atol=1e-7)


def test_inequalities_under_a_form():
    rng = np.random.default_rng(25)
    sack = rv.problems.knapsack(rng.random((2, 8)) + 0.2, [1.5, 1.8])
    form = CostForm.features(-rng.random((8, 3)) - 0.1, cost_upper=-0.05)
    X = sack.solve(form.costs(rng.random((10, 3)) + 0.2)).x
    q = rng.normal(size=(10, 3))
    sets = OptimalitySet(sack, X, 0.01, form=form)
    assert sets.row_active.any()
    kernel, conic = (rv.project(q, sets, method=m) for m in ("kernel", "clarabel"))
    assert np.array_equal(kernel.status, conic.status)
    assert kernel.solved.any()
    assert np.allclose(kernel.point, conic.point, rtol=0, atol=1e-7, equal_nan=True)


def test_no_time_is_said_so():
    X, q = decisions(FORMS["vertices"], np.random.default_rng(26))
    near = rv.project(q, OptimalitySet(GRID, X, form=FORMS["vertices"]), time_limit=0.0)
    assert (near.status == ProjectionStatus.TIME_LIMIT).all()
    assert not near.solved.any()


def test_cones_under_a_form_are_not_for_the_kernel():
    joint = rv.QuadraticProgram(A_eq=np.ones((1, 3)), b_eq=[1.0], semidefinite=True)
    form = CostForm.features(np.random.default_rng(29).random((joint.n_parameters, 2)))
    sets = OptimalitySet(joint, np.full((1, 3), 1 / 3), form=form)
    with pytest.raises(InputError, match="cones"):
        rv.project(np.ones((1, 2)), sets, method="kernel")


def test_a_long_wait_is_announced_once(monkeypatch):
    dispatch._tell_once.cache_clear()
    monkeypatch.setattr(dispatch, "MANY", 5)
    monkeypatch.setattr(
        dispatch._Answer, "by_augmented_lagrangian", lambda *_: None
    )  # as if none had settled
    X, q = decisions(FORMS["vertices"], np.random.default_rng(27))
    sets = OptimalitySet(GRID, X, 0.0, form=FORMS["vertices"])
    with pytest.warns(UserWarning, match="soft=100"):
        rv.project(q, sets)
    rv.project(q, sets)  # a second warning would be an error here


def test_a_form_that_only_moves_keeps_the_metric():
    joint = rv.QuadraticProgram(2.0, A_eq=np.ones((1, 3)), b_eq=[1.0])
    p, rng = joint.n_parameters, np.random.default_rng(28)
    Q = np.eye(3) + 0.2
    X = joint.solve(joint.pack(rng.normal(size=(4, 3)), np.repeat(Q[None], 4, axis=0))).x
    moved = CostForm(2.0 * np.eye(p), rng.normal(size=p))
    plain, formed_ = OptimalitySet(joint, X, 0.1), OptimalitySet(joint, X, 0.1, form=moved)
    alpha, four = (lifting_of(sets).metric.alpha for sets in (plain, formed_))
    assert np.allclose(four, 4.0 * alpha)
    q = rng.normal(size=(4, p))
    near = rv.project(moved.costs(q), plain)
    again = rv.project(q, formed_)
    assert np.abs(moved.costs(again.point) - near.point).max() <= AGREE
