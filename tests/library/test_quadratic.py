"""Quadratic programs: c, (c, Q) and (c, Q) semidefinite, against CVXPY and the definition."""

import warnings

import cvxpy as cp
import numpy as np
import pytest
from second_opinion import Explained, symmetric

import revealed as rv
from revealed import InputError, ProjectionStatus, ShapeError
from revealed.fit.solvers import SOLVERS

AGREE = 1e-6
GAMMA = 1.7
SENSES = {"max": -1.0, "min": 1.0}


def portfolio(rng, n=6, **more):
    """Rows, binding inequalities and an upper bound, so that every kind of normal takes part."""
    A_ub = rng.random((2, n))
    limits = {"A_eq": np.ones((1, n)), "b_eq": [1.0], "A_ub": A_ub, "ub": 0.5}
    return limits | {"b_ub": 0.9 * A_ub.mean(axis=1) + 0.05} | more


def risk(rng, n=6, count=None):
    L = rng.normal(size=(n, n) if count is None else (count, n, n))
    return L @ np.swapaxes(L, -1, -2) / n + 0.1 * np.eye(n)


def opinion(problem, x, w, c, Q, margin):
    """The second opinion for one decision of a `portfolio`."""
    sign = SENSES[problem.sense]
    told = Explained(w, sign * c + problem.gamma * (Q @ x), margin)
    told.equality(np.ones(len(x)))
    A = problem.ub_rows.matrix(0).toarray()
    for row, b in zip(A, problem.b_ub, strict=True):
        if abs(row @ x - b) <= 1e-7:
            told.binding(row)
    return told.bounds(x, np.zeros(len(x)), np.full(len(x), 0.5))


def cases(sense, *, B=6, n=6, seed=0, **more):
    rng = np.random.default_rng(seed)
    limits, Q = portfolio(rng, n), risk(rng, n)
    known = rv.QuadraticProgram(GAMMA, Q, sense, **limits)
    X = known.solve(rng.normal(size=(B, n)), threads=1).x
    problem = known if not more else rv.QuadraticProgram(GAMMA, None, sense, **limits, **more)
    return rng, problem, Q, X


@pytest.mark.parametrize("sense", SENSES)
@pytest.mark.parametrize("margin", [0.0, 0.1])
def test_known_curvature_agrees_with_cvxpy(sense, margin):
    rng, problem, Q, X = cases(sense)
    sets = rv.OptimalitySet(problem, X, margin)
    q = rng.normal(size=X.shape)
    near = rv.project(q, sets)
    assert near.solved.all()
    assert sets.row_active.any(), "no inequality binds, so nothing is tested of them"
    for b, x in enumerate(X):
        w = cp.Variable(len(x))
        trusted = opinion(problem, x, w, w, Q, margin).nearest(q[b])
        assert np.abs(near.point[b] - trusted).max() <= AGREE
    assert np.abs(problem.solve(near.point).x - X).max() <= AGREE


@pytest.mark.parametrize("sense", SENSES)
def test_unknown_curvature_agrees_with_cvxpy(sense):
    rng, problem, Q, X = cases(sense, semidefinite=False)
    n = X.shape[1]
    sets = rv.OptimalitySet(problem, X, 0.1)
    q = problem.pack(rng.normal(size=X.shape), Q + np.eye(n))
    q += 0.1 * rng.normal(size=q.shape)
    near = rv.project(q, sets, method="kernel")
    assert near.solved.all()
    for b, x in enumerate(X):
        w = cp.Variable(n + 21)
        trusted = opinion(problem, x, w, w[:n], symmetric(w, n), 0.1).nearest(q[b])
        assert np.abs(near.point[b] - trusted).max() <= AGREE
        assert near.distance[b] == pytest.approx(np.linalg.norm(trusted - q[b]), abs=AGREE)
    convex = np.linalg.eigvalsh(problem.unpack(near.point)[1])[:, 0] > 1e-3
    assert convex.any()
    assert np.abs(problem[convex].solve(near.point[convex]).x - X[convex]).max() <= AGREE


@pytest.mark.parametrize("shift", [0.5, -0.2])
def test_semidefinite_curvature_agrees_with_cvxpy(shift):
    rng, problem, Q, X = cases("max", semidefinite=True)
    n = X.shape[1]
    sets = rv.OptimalitySet(problem, X, 0.1)
    q = problem.pack(rng.normal(size=X.shape), Q - shift * np.eye(n))
    near = rv.project(q, sets)
    assert near.solved.all()
    assert np.linalg.eigvalsh(problem.unpack(near.point)[1]).min() >= -1e-7
    for b, x in enumerate(X):
        w = cp.Variable(n + 21)
        Q_w = symmetric(w, n)
        trusted = opinion(problem, x, w, w[:n], Q_w, 0.1).nearest(q[b], Q_w >> 0)
        assert np.abs(near.point[b] - trusted).max() <= AGREE
    assert np.abs(problem.solve(near.point).x - X).max() <= AGREE


def test_the_kernel_and_the_conic_solver_agree():
    rng, problem, _, X = cases("max", semidefinite=False)
    sets = rv.OptimalitySet(problem, X, 0.3)
    q = rng.normal(size=(len(X), problem.n_parameters))
    kernel, conic = (rv.project(q, sets, method=name) for name in ("kernel", "clarabel"))
    assert kernel.solved.all()
    assert conic.solved.all()
    assert np.abs(kernel.point - conic.point).max() <= AGREE
    assert np.allclose(kernel.distance, conic.distance, atol=AGREE)


def test_projection_is_idempotent_and_a_slice_gives_the_same():
    rng, problem, Q, X = cases("max", semidefinite=True)
    sets = rv.OptimalitySet(problem, X)
    q = problem.pack(rng.normal(size=X.shape), Q - 0.4 * np.eye(X.shape[1]))
    near = rv.project(q, sets)
    again = rv.project(near.point, sets)
    assert np.abs(again.point - near.point).max() <= AGREE
    part = rv.project(q[[4, 1]], sets[[4, 1]])
    assert np.abs(part.point - near.point[[4, 1]]).max() <= AGREE


def test_a_curvature_of_its_own_for_each_instance():
    rng = np.random.default_rng(3)
    Q, limits = risk(rng, 5, count=4), portfolio(rng, 5)
    problem = rv.QuadraticProgram(GAMMA, Q, **limits)
    c = rng.normal(size=(4, 5))
    X = problem.solve(c).x
    q = rng.normal(size=(4, 5))
    near = rv.project(q, rv.OptimalitySet(problem, X, 0.1))
    for b in range(4):
        alone = rv.QuadraticProgram(GAMMA, Q[b], **limits)
        assert np.allclose(alone.solve(c[b : b + 1]).x[0], X[b], atol=1e-8)
        own = rv.project(q[b : b + 1], rv.OptimalitySet(alone, X[b : b + 1], 0.1))
        assert np.allclose(own.point[0], near.point[b], atol=1e-8)
        assert np.allclose(problem[[b]].solve(near.point[[b]]).x[0], X[b], atol=AGREE)


def test_solve_finds_the_minimum_of_the_whole_objective():
    rng = np.random.default_rng(1)
    problem = rv.QuadraticProgram(GAMMA, risk(rng), **portfolio(rng))
    c = rng.normal(size=(3, 6))
    answer = problem.solve(c)
    assert answer.optimal.all()
    others = rng.dirichlet(np.ones(6), size=4000)
    others = others[np.asarray(problem.constraint_violation(others)) <= 1e-9]
    assert len(others) > 5
    for b in range(3):
        rest = problem.objective(np.repeat(c[b : b + 1], len(others), axis=0), others)
        assert rest.max() <= answer.objective[b] + 1e-9
        x, Q = answer.x[b], problem.Q
        assert answer.objective[b] == pytest.approx(c[b] @ x - 0.5 * GAMMA * x @ Q @ x)


def test_without_clarabel_the_answers_are_the_same(monkeypatch):
    _, problem, _, _ = cases("max")
    c = np.random.default_rng(4).normal(size=(5, 6))
    with_it = problem.solve(c, threads=1)
    monkeypatch.setattr("revealed.oracles.quadratic.has_clarabel", lambda: False)
    without = problem.solve(c, threads=1)
    assert without.optimal.all()
    assert np.abs(without.x - with_it.x).max() <= 1e-7
    nobody = rv.QuadraticProgram(1.0, np.eye(2), A_eq=np.ones((1, 2)), b_eq=[-1.0])
    assert nobody.solve(np.ones((1, 2))).status[0] == rv.SolveStatus.INFEASIBLE


def test_threads_leave_the_warnings_of_the_process_alone(monkeypatch):
    from revealed._common import polish as _polish

    before, seen = warnings.filters, []  # the list itself: catch_warnings puts another in its place
    factor = _polish.splu
    monkeypatch.setattr(
        _polish, "splu", lambda matrix: seen.append(warnings.filters) or factor(matrix)
    )
    monkeypatch.setattr("revealed.oracles.quadratic.EXACT", -1.0)  # every answer is polished
    _, problem, _, _ = cases("max")
    problem.solve(np.random.default_rng(4).normal(size=(40, 6)), threads=4)
    assert len(seen) >= 40
    assert all(filters is before for filters in seen)


def test_a_form_of_returns_agrees_with_cvxpy():
    rng, problem, Q, X = cases("max")
    phi = rng.normal(size=(len(X), 6, 7))
    forms = {
        "features": rv.CostForm.features(phi, offset=0.1),
        "not below 0": rv.CostForm.identity(6, lower=0.0),
    }
    for form in forms.values():
        sets = rv.OptimalitySet(problem, X, 0.1, form=form)
        q = rng.normal(size=(len(X), form.n_parameters))
        near = rv.project(q, sets)
        assert near.solved.all()
        for b, x in enumerate(X):
            w = cp.Variable(form.n_parameters)
            is_plain = form.n_instances is None
            c, limits = (w, [w >= 0]) if is_plain else (phi[b] @ w + 0.1, [])
            trusted = opinion(problem, x, w, c, Q, 0.1).nearest(q[b], *limits)
            assert np.abs(near.point[b] - trusted).max() <= AGREE
        assert np.abs(problem.solve(form.costs(near.point)).x - X).max() <= AGREE


def test_an_empty_batch_stays_empty():
    _, problem, _, _ = cases("max", semidefinite=True)
    sets = rv.OptimalitySet(problem, np.zeros((0, 6)))
    assert rv.project(np.zeros((0, problem.n_parameters)), sets).point.shape == (0, 27)
    assert problem.solve(np.zeros((0, 27))).x.shape == (0, 6)


def test_pack_keeps_lengths_and_unpack_reverses_it():
    rng = np.random.default_rng(0)
    problem = rv.QuadraticProgram(1.0, None, lb=np.zeros(4))
    c, Q = rng.normal(size=(3, 4)), risk(rng, 4, count=3)
    w = problem.pack(c, Q)
    assert np.allclose((w**2).sum(axis=1), (c**2).sum(axis=1) + (Q**2).sum(axis=(1, 2)))
    for got, expected in zip(problem.unpack(w), (c, Q), strict=True):
        assert np.allclose(got, expected)


@pytest.mark.parametrize("status", ["INFEASIBLE", "UNBOUNDED"])
def test_a_program_without_a_best_decision_says_so(status):
    bounds = {"A_eq": np.ones((1, 2)), "b_eq": [-1.0]} if status == "INFEASIBLE" else {"lb": None}
    problem = rv.QuadraticProgram(1.0, np.zeros((2, 2)), "min", **bounds)
    answer = problem.solve(np.ones((1, 2)))
    assert rv.SolveStatus(int(answer.status[0])).name == status
    assert np.isnan(answer.x).all()
    assert np.isnan(answer.objective).all()


def test_bad_input_meets_a_sentence():
    with pytest.raises(InputError, match="symmetric"):
        rv.QuadraticProgram(1.0, np.array([[1.0, 2.0], [0.0, 1.0]]))
    with pytest.raises(InputError, match="positive semidefinite"):
        rv.QuadraticProgram(1.0, -np.eye(2))
    with pytest.raises(InputError, match="sense"):
        rv.QuadraticProgram(1.0, np.eye(2), "maximize")
    with pytest.raises(InputError, match="gamma"):
        rv.QuadraticProgram(0.0, np.eye(2))
    with pytest.raises(ShapeError, match="agree"):
        rv.QuadraticProgram(1.0, np.stack([np.eye(2)] * 3), lb=np.zeros((2, 2)))
    with pytest.raises(ShapeError, match=r"\(n, n\) or \(B, n, n\); got shape \(\)"):
        rv.QuadraticProgram(Q=3.0)
    several = rv.QuadraticProgram(1.0, np.stack([np.eye(2)] * 3))
    with pytest.raises(ShapeError, match="`parameters` must have 3 rows; got 2"):
        several.unpack(np.ones((2, 2)))
    with pytest.raises(ShapeError, match="one for each of the 2 rows of `c`; got 3"):
        rv.problems.portfolio(n_assets=2).pack(np.ones((2, 2)), np.stack([np.eye(2)] * 3))
    problem = rv.QuadraticProgram(1.0, np.eye(2))
    with pytest.raises(ShapeError, match="3 costs and 2 decisions"):
        problem.objective(np.ones((3, 2)), np.ones((2, 2)))
    with pytest.raises(ShapeError):
        problem.solve(np.ones((1, 3)))
    with pytest.raises(InputError, match="LinearProgram"):
        rv.losses.SPOPlusLoss(problem)


@pytest.mark.parametrize("solver", ["lbfgs", "pocs", "armijo"])
def test_the_estimator_learns_returns(solver):
    rng = np.random.default_rng(5)
    problem = rv.QuadraticProgram(GAMMA, risk(rng, 4), A_eq=np.ones((1, 4)), b_eq=[1.0])
    Z, W = rng.normal(size=(40, 2)), rng.normal(size=(4, 2))
    X = problem.solve(Z @ W.T, threads=1).x
    solver = SOLVERS[solver](max_iter=600)
    est = rv.InverseRegressor(problem, solver=solver, margin=0.0, threads=1)
    est.fit(Z, X)
    before = np.linalg.norm(problem.solve(np.zeros((40, 4)), threads=1).x - X, axis=1).mean()
    after = np.linalg.norm(est.predict(Z) - X, axis=1).mean()
    assert after <= 0.1 * before


def test_the_loss_differentiates_parameters():
    import torch

    rng, problem, Q, X = cases("max", semidefinite=True)
    sets = rv.OptimalitySet(problem, X, 0.1)
    start = problem.pack(rng.normal(size=X.shape), Q - 0.2 * np.eye(X.shape[1]))
    w = torch.tensor(start, requires_grad=True)
    loss_fn = rv.ProjectionLoss(problem, margin=0.1, reduction="sum")
    loss_fn(w, X).backward()
    assert w.grad is not None
    near = rv.project(start, sets)
    assert np.allclose(w.grad.numpy(), start - near.point, atol=1e-8)
    assert loss_fn(w, sets).item() == pytest.approx(0.5 * (near.distance**2).sum())
    assert (near.status == ProjectionStatus.SOLVED).all()


WRONG = {
    "not feasible": ([0.6, 0.6], [-0.6, 0.0, 0.0]),
    "gradient left over": ([0.75, 0.25], [-0.5, 0.0, 0.0]),
    "multipliers of rows that do not bind": ([0.75, 0.25], [-0.75, 0.0, -0.5]),
    "multipliers of the wrong sign": ([1.0, 0.0], [-1.0, 0.0, -1.0]),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_a_solver_calls_optimal_is_not_believed(monkeypatch, name):
    from revealed.oracles import quadratic

    x, z = (np.array(part) for part in WRONG[name])
    answer = (rv.SolveStatus.OPTIMAL, x, z)
    monkeypatch.setattr(quadratic, "_attempt", lambda *given: answer)
    problem = rv.QuadraticProgram(1.0, np.eye(2), "min", A_eq=np.ones((1, 2)), b_eq=[1.0])
    assert problem.solve(np.zeros((1, 2))).status[0] == rv.SolveStatus.FAILED


def test_the_right_answer_with_its_multipliers_is_believed():
    from revealed.oracles.first_order import Program, left_over
    from revealed.oracles.quadratic import polyhedron_rows

    polyhedron = rv.LinearProgram(A_eq=np.ones((1, 2)), b_eq=[1.0])
    program = Program.of(np.eye(2), np.zeros(2), *polyhedron_rows(polyhedron))
    assert left_over(program, np.array([0.5, 0.5]), 2.0 * np.array([-0.5, 0.0, 0.0])) == 0.0


SCALED = {  # what is multiplied by s -> Q, rows, right-hand sides and bounds, c; and x with them
    "b and c": lambda s: (1.0, 1.0, s, s, s),
    "b, and Q divided": lambda s: (1.0 / s, 1.0, s, 1.0, s),
    "Q and c": lambda s: (s, 1.0, 1.0, s, 1.0),
    "rows": lambda s: (1.0, s, 1.0, 1.0, 1.0),
    "everything": lambda s: (s, s, s, s * s, s),
}


@pytest.mark.parametrize("what", SCALED)
@pytest.mark.parametrize("s", [1e-9, 1e-6, 1e6, 1e9])
def test_no_choice_of_units_moves_the_best_decision(what, s):
    rng = np.random.default_rng(4)
    limits, Q, c = portfolio(rng), risk(rng), rng.normal(size=(4, 6))
    on_Q, on_rows, on_sides, on_c, on_x = SCALED[what](s)
    factors = {"A_eq": on_rows, "A_ub": on_rows, "ub": on_sides}
    factors |= {"b_eq": on_rows * on_sides, "b_ub": on_rows * on_sides}
    given = {name: factors[name] * np.asarray(part) for name, part in limits.items()}
    found = rv.QuadraticProgram(GAMMA, on_Q * Q, "min", **given).solve(on_c * c, threads=1)
    known = rv.QuadraticProgram(GAMMA, Q, "min", **limits).solve(c, threads=1)
    assert found.optimal.all()
    assert np.abs(found.x / on_x - known.x).max() <= 1e-10


@pytest.mark.parametrize("s", [1e-6, 1.0, 1e6])
def test_without_clarabel_answers_are_as_exact_in_any_units(monkeypatch, s):
    from revealed.oracles import quadratic

    rng = np.random.default_rng(6)
    A, c = rng.normal(size=(4, 8)), rng.normal(size=(10, 8))
    limits = {"A_ub": A, "b_ub": s * np.full(4, 0.3), "ub": s}
    problem = rv.QuadraticProgram(1.0, risk(rng, 8) / s, "min", **limits)
    trusted = problem.solve(c, threads=1)
    monkeypatch.setattr(quadratic, "has_clarabel", lambda: False)
    found = problem.solve(c, threads=1)
    assert (trusted.optimal & found.optimal).all()
    assert np.abs(found.x - trusted.x).max() <= 1e-10 * s


@pytest.mark.parametrize("s", [1e-9, 1e-6, 1e-3, 1e3, 1e6, 1e9])
def test_what_is_wrong_is_wrong_in_any_units(monkeypatch, s):
    """A hundredth of x off, in programs of x = s: each part of the proof must see it."""
    from revealed.oracles import quadratic

    off = np.array([0.51, 0.49])
    for x, z in ((1.01 * off, [-0.5, 0, 0]), (off, [-0.5, 0, 0]), (off, [-0.51, 0, 0.02])):
        answer = (rv.SolveStatus.OPTIMAL, s * np.asarray(x), 2.0 * s * np.asarray(z))
        monkeypatch.setattr(quadratic, "_attempt", lambda *given, answer=answer: answer)
        problem = rv.QuadraticProgram(1.0, np.eye(2), "min", A_eq=np.ones((1, 2)), b_eq=[s])
        assert problem.solve(np.zeros((1, 2))).status[0] == rv.SolveStatus.FAILED


@pytest.mark.parametrize("s", [1e-9, 1e-6, 1.0, 1e6, 1e9])
def test_programs_without_a_best_decision_are_told_apart_in_any_units(s):
    row = np.array([[1.0, 2.0]])
    none = {"A_ub": np.vstack([row, -row]), "b_ub": [s, -1.05 * s]}
    one = rv.QuadraticProgram(1.0, np.eye(2), "min", **none).solve(np.ones((1, 2)))
    assert one.status[0] == rv.SolveStatus.INFEASIBLE
    flat = rv.QuadraticProgram(1.0, s * np.diag([1.0, 0.0]), "min", A_ub=-row, b_ub=[-s])
    assert flat.solve([[1.0, -1.0]]).status[0] == rv.SolveStatus.UNBOUNDED


def test_a_curvature_that_is_all_rounding_counts_as_none():
    """-1e-11 beside costs of 1: what a projection onto semidefinite Q leaves of a Q that is 0."""
    problem = rv.QuadraticProgram(1.0, None, "min", ub=[1.0, 1.0], semidefinite=True)
    flat = problem.pack([[1.0, -1.0]], -1e-11 * np.eye(2))
    assert problem.solve(flat).x.tolist() == [[0.0, 1.0]]
    assert problem.solve(problem.pack([[1.0, -1.0]], -np.eye(2))).status[0] == rv.SolveStatus.FAILED
