"""Convex problems given as functions and cones, against CVXPY, and what is refused."""

import cvxpy as cp
import numpy as np
import pytest
import torch
from second_opinion import Explained

import revealed as rv
from revealed import ConvexProgram, InputError, OptimalitySet, SecondOrderCone, SemidefiniteCone
from revealed.fit.solvers import SOLVERS

AGREE = 1e-6
MARGIN = 0.05
N = 5
RNG = np.random.default_rng(21)
ROOT = RNG.normal(size=(N, N))
ROW = RNG.random(N)
ROOT_T = torch.tensor(ROOT)
ORDER = 3
PAIRS = [(i, j) for i in range(ORDER) for j in range(i + 1)]
UNITS = np.zeros((len(PAIRS), ORDER, ORDER))
for _k, (_i, _j) in enumerate(PAIRS):
    UNITS[_k, _i, _j] = UNITS[_k, _j, _i] = 1.0
TRACE = np.array([float(i == j) for i, j in PAIRS])


def linear(x, w):
    return (w * x).sum()


# --- the problems: how to build them, and what binds, written out for CVXPY -----------------------


def norm_problem():
    """A norm constraint as a cone, and bounds."""
    return ConvexProgram(linear, N, N, cones=[SecondOrderCone(ROOT, 0.1, ROW, 1.0)], lb=-0.3)


def norm_opinion(x, w):
    told = Explained(w, w, MARGIN)
    u = ROOT @ x + 0.1
    if abs(np.linalg.norm(u) - ROW @ x - 1.0) <= 1e-6:
        told.binding(ROOT.T @ u / np.linalg.norm(u) - ROW)
    return told.bounds(x, np.full(N, -0.3), np.full(N, np.inf), tol=1e-6)


def ball_problem():
    """The same shape as a smooth function, with an affine equality as a function."""
    return ConvexProgram(
        linear,
        N,
        N,
        inequalities=[lambda x: (ROOT_T @ x).square().sum() - 1.0],
        equalities=[lambda x: x.sum() - 0.1],
        lb=-0.5,
    )


def ball_opinion(x, w):
    told = Explained(w, w, MARGIN).equality(np.ones(N))
    if abs(np.sum((ROOT @ x) ** 2) - 1.0) <= 1e-6:
        told.binding(2 * ROOT.T @ ROOT @ x)
    return told.bounds(x, np.full(N, -0.5), np.full(N, np.inf), tol=1e-6)


def entropy_problem():
    """w weighs both a linear part and the entropy of each entry."""

    def phi(x, w):
        return -(w[:N] * x).sum() + (w[N:] * x * x.log()).sum()

    return ConvexProgram(
        phi, N, 2 * N, A_eq=np.ones((1, N)), b_eq=[1.0], A_ub=ROW[None], b_ub=[0.45], lb=0.0
    )


def entropy_opinion(x, w):
    slope = -w[:N] + cp.multiply(np.log(x) + 1, w[N:])
    told = Explained(w, slope, MARGIN).equality(np.ones(N))
    if abs(ROW @ x - 0.45) <= 1e-6:
        told.binding(ROW)
    return told.bounds(x, np.zeros(N), np.full(N, np.inf))


def semidefinite_problem():
    """The entries of a positive semidefinite matrix of trace 1, with a quadratic term."""

    def phi(x, w):
        return (w * x).sum() + 0.3 * x.square().sum()

    cones = [SemidefiniteCone(UNITS)]
    return ConvexProgram(phi, len(PAIRS), len(PAIRS), cones=cones, A_eq=TRACE[None], b_eq=[1.0])


def semidefinite_opinion(x, w):
    told = Explained(w, w + 0.6 * x, MARGIN).equality(TRACE)
    values, vectors = np.linalg.eigh(np.einsum("k,kij->ij", x, UNITS))
    V = vectors[:, values <= 1e-6]
    if V.shape[1]:
        Z = cp.Variable((V.shape[1], V.shape[1]), symmetric=True)
        told.rules.append(Z - MARGIN * np.eye(V.shape[1]) >> 0)
        told.gradient -= cp.hstack([cp.trace(V.T @ F @ V @ Z) for F in UNITS])
    told.rules.append(told.gradient == 0)
    return told


PROBLEMS = {
    "norm": (norm_problem, norm_opinion),
    "ball": (ball_problem, ball_opinion),
    "entropy": (entropy_problem, entropy_opinion),
    "semidefinite": (semidefinite_problem, semidefinite_opinion),
}


def parameters(problem, rng, B=5):
    w = rng.normal(size=(B, problem.n_parameters))
    if problem.n_parameters > problem.n_variables:  # weights of entropies keep phi convex
        w[:, N:] = 0.5 + rng.random((B, N))
    return w


@pytest.mark.parametrize("name", PROBLEMS)
def test_projection_agrees_with_cvxpy_and_the_decision_comes_back(name):
    build, opinion = PROBLEMS[name]
    problem, rng = build(), np.random.default_rng(2)
    answer = problem.solve(parameters(problem, rng), threads=1)
    assert answer.optimal.all()
    X, q = answer.x, parameters(problem, rng)
    near = rv.project(q, OptimalitySet(problem, X, MARGIN), threads=1)
    assert near.solved.all()
    for b, x in enumerate(X):
        trusted = opinion(x, cp.Variable(problem.n_parameters)).nearest(q[b])
        assert np.abs(near.point[b] - trusted).max() <= AGREE
        assert near.distance[b] == pytest.approx(np.linalg.norm(trusted - q[b]), abs=AGREE)
    convex = np.ones(len(X), bool)
    if name == "entropy":
        convex = (near.point[:, N:] > 0.05).all(axis=1)
        assert convex.sum() >= 3
    back = problem.solve(near.point[convex], threads=1)
    assert back.optimal.all()
    assert np.abs(back.x - X[convex]).max() <= AGREE


@pytest.mark.parametrize("name", PROBLEMS)
def test_solve_agrees_with_cvxpy(name):
    problem = PROBLEMS[name][0]()
    w = parameters(problem, np.random.default_rng(3), B=3)
    answer = problem.solve(w, threads=1)
    for b in range(3):
        x = cp.Variable(problem.n_variables)
        objective, rules = written_out(name, x, w[b])
        model = cp.Problem(cp.Minimize(objective), rules)
        model.solve(solver="CLARABEL")
        assert answer.objective[b] == pytest.approx(model.value, abs=1e-6)
        assert np.abs(answer.x[b] - x.value).max() <= 1e-4


def written_out(name, x, w):
    if name == "norm":
        return w @ x, [cp.norm(ROOT @ x + 0.1) <= ROW @ x + 1, x >= -0.3]
    if name == "ball":
        return w @ x, [cp.sum_squares(ROOT @ x) <= 1, cp.sum(x) == 0.1, x >= -0.5]
    if name == "entropy":
        return -w[:N] @ x - w[N:] @ cp.entr(x), [cp.sum(x) == 1, ROW @ x <= 0.45]
    matrix = sum(x[k] * UNITS[k] for k in range(len(PAIRS)))
    return w @ x + 0.3 * cp.sum_squares(x), [matrix >> 0, TRACE @ x == 1]


def test_the_tip_of_a_cone_is_explained_by_a_cone():
    # |x_1..x_4| <= x_0: with w inside the dual cone the tip, x = 0, is best.
    A = np.hstack([np.zeros((4, 1)), np.eye(4)])
    tip = ConvexProgram(linear, 5, 5, cones=[SecondOrderCone(A, 0.0, np.eye(5)[0], 0.0)])
    sets = OptimalitySet(tip, np.zeros((3, 5)), 0.2)
    q = np.random.default_rng(5).normal(size=(3, 5))
    near = rv.project(q, sets)
    assert near.solved.all()
    for b in range(3):
        w = cp.Variable(5)
        trusted = Explained(w, w).nearest(q[b], cp.norm(w[1:]) <= w[0] - 0.2)
        assert np.abs(near.point[b] - trusted).max() <= AGREE


def test_a_function_and_a_cone_tell_the_same():
    smooth = ConvexProgram(linear, N, N, inequalities=[lambda x: (x * x).sum() - 1.0])
    cone = ConvexProgram(linear, N, N, cones=[SecondOrderCone(np.eye(N), 0.0, 0.0, 1.0)])
    w = np.random.default_rng(6).normal(size=(4, N))
    X = -w / np.linalg.norm(w, axis=1)[:, None]
    for problem in (smooth, cone):
        assert np.abs(problem.solve(w, threads=1).x - X).max() <= 1e-6
    q = np.random.default_rng(7).normal(size=(4, N))
    # On a ball the explaining costs are the ray through -x, whatever describes the ball.
    expected = -X * np.maximum(-(q * X).sum(axis=1), 0.0)[:, None]
    for problem in (smooth, cone):
        near = rv.project(q, OptimalitySet(problem, X, 0.0))
        assert np.abs(near.point - expected).max() <= AGREE


def test_a_slice_gives_the_same():
    problem = semidefinite_problem()
    rng = np.random.default_rng(8)
    X, q = problem.solve(parameters(problem, rng), threads=1).x, parameters(problem, rng)
    sets = OptimalitySet(problem, X, MARGIN)
    assert sets.normals is not None
    assert sets.normals.present.any()
    assert np.allclose(rv.project(q, sets).point[[3, 1]], rv.project(q[[3, 1]], sets[[3, 1]]).point)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # POCS is slow here
@pytest.mark.parametrize("solver", ["lbfgs", "pocs", "armijo"])
def test_the_estimator_learns_a_norm_constrained_problem(solver):
    problem = ConvexProgram(linear, 3, 3, cones=[SecondOrderCone(np.eye(3), 0.0, 0.0, 1.0)])
    rng = np.random.default_rng(9)
    Z, W = rng.normal(size=(30, 2)), rng.normal(size=(2, 3))
    w = Z @ W + 0.2
    X = -w / np.linalg.norm(w, axis=1)[:, None]
    method = SOLVERS[solver](max_iter=300)
    est = rv.InverseRegressor(problem, solver=method, margin=0.3, threads=1)
    est.fit(Z, X)
    assert np.linalg.norm(est.predict(Z) - X, axis=1).mean() <= 0.1
    assert solver != "lbfgs" or est.certificate_.converged


def test_infeasible_decisions_are_refused_or_repaired():
    problem = ConvexProgram(linear, 2, 2, inequalities=[lambda x: (x * x).sum() - 1.0])
    X = np.array([[3.0, 4.0], [0.6, 0.8]])
    told = r"Decision 0 breaks curved constraint 0 .* its value is 24, where at most 0 obeys"
    with pytest.raises(rv.InfeasibleDecisionError, match=told):
        OptimalitySet(problem, X)
    sets = OptimalitySet(problem, X, infeasible="repair")
    assert np.abs(sets.decisions - [[0.6, 0.8], [0.6, 0.8]]).max() <= 1e-6
    assert sets.repaired == pytest.approx([4.0, 0.0], abs=1e-6)


def test_what_cannot_be_served_is_refused_with_the_reason():
    X = np.full((2, 2), 0.5)
    with pytest.raises(InputError, match="affine in the parameters"):
        OptimalitySet(ConvexProgram(lambda x, w: (w.square() * x).sum(), 2, 2, lb=0.0), X)
    with pytest.raises(InputError, match="affine in the parameters"):
        OptimalitySet(ConvexProgram(lambda x, w: (x * w).square().sum(), 2, 2, lb=0.0), X)
    with pytest.raises(InputError, match="equality must be an affine"):
        ConvexProgram(linear, 2, 2, equalities=[lambda x: (x * x).sum() - 1.0])
    bent = ConvexProgram(linear, 2, 2, inequalities=[lambda x: 0.5 - (x * x).sum()])
    with pytest.raises(InputError, match="not convex"):
        OptimalitySet(bent, np.array([[1.0, 0.0], [-1.0, 0.0]]))
    entropy = ConvexProgram(lambda x, w: (w * x * x.log()).sum(), 2, 2, lb=0.0)
    with pytest.raises(InputError, match="no finite gradient at decision 1, in entry 0"):
        OptimalitySet(entropy, np.array([[0.5, 0.5], [0.0, 1.0]]))
    logarithm = ConvexProgram(linear, 2, 2, inequalities=[lambda x: -x.log().sum()])
    with pytest.raises(InputError, match="SecondOrderCone"):
        OptimalitySet(logarithm, np.zeros((1, 2)))
    short = torch.tensor([1.0, 2.0])  # float32, as torch makes of lists
    with pytest.raises(InputError, match=r"`inequalities\[0\]` failed .* float64"):
        ConvexProgram(linear, 2, 2, inequalities=[lambda x: short @ x - 1.0])
    with pytest.raises(InputError, match=r"`objective` failed .* float64"):
        ConvexProgram(lambda x, w: (short @ x) * w.sum(), 2, 2)
    with pytest.raises(InputError, match=r"`inequalities\[0\]\(x\)` must return a tensor"):
        ConvexProgram(linear, 2, 2, inequalities=[lambda x: float(x[0]) - 1.0])
    with pytest.raises(rv.ShapeError, match="one number"):
        ConvexProgram(lambda x, w: w * x, 2, 2)
    with pytest.raises(rv.ShapeError, match="variables"):
        ConvexProgram(linear, 2, 2, cones=[SecondOrderCone(np.eye(3), 0.0, 0.0, 1.0)])
    with pytest.raises(InputError, match="symmetric"):
        SemidefiniteCone(np.array([[[0.0, 1.0], [0.0, 0.0]]]))


def test_problems_without_an_answer_say_so():
    empty = ConvexProgram(linear, 2, 2, A_eq=[[1.0, 1.0]], b_eq=[-1.0], lb=0.0)
    assert empty.solve(np.ones((1, 2))).status[0] == rv.SolveStatus.INFEASIBLE
    endless = ConvexProgram(linear, 2, 2, ub=0.0)
    assert endless.solve(np.ones((1, 2))).status[0] == rv.SolveStatus.UNBOUNDED


def test_a_maximum_is_not_called_optimal():
    problem = ConvexProgram(lambda x, w: (w * x * x).sum(), 1, 1, lb=-1.0, ub=1.0)
    answer = problem.solve(np.array([[-1.0], [1.0]]))
    assert answer.status.tolist() == [rv.SolveStatus.FAILED, rv.SolveStatus.OPTIMAL]


def test_equalities_join_rows_of_any_kind():
    tied = {"equalities": [lambda x: x[0] - x[1]]}
    for rows in (np.ones((1, 2)), np.ones((3, 1, 2))):
        for right in (2.0, np.full((3, 1), 2.0)):
            problem = ConvexProgram(linear, 2, 2, A_eq=rows, b_eq=right, **tied)
            assert problem.constraint_violation(np.ones((3, 2))).max() == 0
            assert problem.constraint_violation(np.array([[0.5, 1.5]] * 3)).min() > 0
    with pytest.raises(rv.ShapeError, match="`b_eq` is missing"):
        ConvexProgram(linear, 2, 2, A_eq=np.ones((1, 2)), **tied)


def test_as_many_parameters_as_decisions():
    with pytest.raises(rv.ShapeError, match="2 costs and 3 decisions"):
        ConvexProgram(linear, 2, 2).objective(np.ones((2, 2)), np.ones((3, 2)))


def in_units(name, s, h):
    """A problem whose x is of size s and whose phi is of size h."""

    def bowl(x, w):
        return h * ((w * x).sum() / s + (x / s).square().sum())

    def entropy(x, w):
        return h * ((w * x).sum() + (x * (x / s).log()).sum()) / s

    row = np.linspace(0.2, 1.0, 3)
    if name == "entropy":
        total = {"A_eq": np.ones((1, 3)), "b_eq": [s], "start": np.full(3, s / 3)}
        return ConvexProgram(entropy, 3, 3, **total)
    limits = {
        "ball": {"inequalities": [lambda x: (x * x).sum() - (s / 2) ** 2]},
        "cone": {"cones": [SecondOrderCone(np.eye(3), 0.1 * s, row, 0.3 * s)]},
        "matrix": {"cones": [SemidefiniteCone(UNITS[:3], s / 4 * np.eye(ORDER))], "lb": -s},
    }
    return ConvexProgram(bowl, 3, 3, A_ub=row[None], b_ub=[s], **limits[name])


@pytest.mark.parametrize("name", ["ball", "entropy", "cone", "matrix"])
@pytest.mark.parametrize("s, h", [(1e-6, 1.0), (1e6, 1.0), (1.0, 1e-6), (1e-6, 1e6)])
def test_no_choice_of_units_moves_the_best_decision(name, s, h):
    w = np.array([[1.0, -0.5, 2.0], [-2.0, 3.0, 0.1]])
    found = in_units(name, s, h).solve(w)
    assert found.optimal.all()
    assert np.abs(found.x / s - in_units(name, 1.0, 1.0).solve(w).x).max() <= 1e-6


def test_costs_that_nearly_cancel_with_a_row_are_followed_round_a_ball():
    """Long steps along the ball break it by their square, and must be taken all the same."""
    ball, total = [lambda x: x.square().sum() - 1.0], {"A_eq": np.ones((1, 3)), "b_eq": [0.05]}
    problem = ConvexProgram(linear, 3, 3, inequalities=ball, lb=-0.9, **total)
    small = 1e-3 * np.array([[1.0, -2.0, 0.5]])
    found = problem.solve(np.vstack([small, 1.0 + small, -1.0 + small]))
    assert found.optimal.all()
    assert np.abs(found.x - found.x[:1]).max() <= 1e-6


@pytest.mark.parametrize("s", [1e-6, 1e-3, 1.0])
@pytest.mark.parametrize("name", ["cone", "matrix"])
def test_a_small_cone_is_read_like_a_large_one(name, s):
    """The same corners and rows, and the decision comes back."""
    problem = in_units(name, s, 1.0)
    X = problem.solve(np.array([[1.0, -0.5, 2.0], [-2.0, 3.0, 0.1]])).x
    sets = OptimalitySet(problem, X, 0.01)
    large = OptimalitySet(in_units(name, 1.0, 1.0), X / s, 0.01)
    corners = [part.normals is not None and part.normals.present.tolist() for part in (sets, large)]
    assert corners[0] == corners[1]
    assert (sets.row_active == large.row_active).all()
    near = rv.project(np.zeros((2, 3)), sets)
    assert near.solved.all()
    assert np.abs(problem.solve(near.point).x - X).max() <= 1e-5 * s
