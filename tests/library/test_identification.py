"""What decisions cannot tell changes no verdict, what they tell does, and both are counted."""

import numpy as np
import pytest

import revealed as rv
from revealed.optimality import identified

RNG = np.random.default_rng(0)


def blending(days=40, seed=0):
    """Amounts under two rows in very different units that every decision reaches, one that some
    reach, a variable without a choice and one that is never worth its place."""
    rng = np.random.default_rng(seed)
    A = np.array([[1, 2, 3, 1, 1, 1.0], [2e3, 1e3, 3e3, 1e3, 0, 1e3], [0, 0, 1, 1, 0, 0.0]])
    problem = rv.LinearProgram(
        A_ub=A, b_ub=[20, 1.6e4, 7], lb=[0, 0, 0, 0, 2, 0], ub=[5, 5, 5, 5, 2, 5]
    )
    worth = A[:2].T @ [10, 0.02] + rng.uniform(-5, 5, (days, 6))
    worth[:, 5] = 1.0
    return problem, np.asarray(problem.solve(-worth).x), -worth


def test_every_kind_of_direction_is_counted_once():
    problem, X, _ = blending()
    known = identified(rv.OptimalitySet(problem, X))
    assert (known.fixed.tolist(), known.still.tolist()) == ([4], [5])
    assert known.reached.tolist() == [0, 1]
    assert (known.n_lines, known.n_one_sided, known.n_identified) == (1, 3, 2)
    assert known.entries.tolist() == [True] * 4 + [False] * 2


def test_what_is_not_told_changes_no_verdict():
    problem, X, costs = blending()
    sets = rv.OptimalitySet(problem, X, 0.0)
    known = identified(sets)
    assert sets.contains(costs, tol=1e-6).all()
    rows = problem.A_ub.toarray()[known.reached] / [[1.0], [1e3]]
    moved = costs - rows.T @ RNG.uniform(0, 9, len(rows))
    moved[:, known.still] += 3.0
    moved[:, known.fixed] -= 5.0
    assert sets.contains(moved, tol=1e-6).all()
    assert known.canonical(moved.T) == pytest.approx(known.canonical(costs.T), abs=1e-9)


def test_what_is_told_can_be_contradicted():
    """Along every direction that decisions tell, costs moved far enough explain some no more."""
    problem, X, costs = blending()
    sets = rv.OptimalitySet(problem, X, 0.0)
    known = identified(sets)
    told = known.canonical(RNG.standard_normal((6, 20))).T
    for direction in told / np.linalg.norm(told, axis=1, keepdims=True):
        one, other = (sets.contains(costs + 1e3 * way * direction) for way in (-1, 1))
        assert not one.all()
        assert not other.all()


def test_paths_leave_open_a_potential_for_each_node_but_one():
    problem = rv.problems.grid_shortest_path(3, 3, directed="right-down")
    X = np.asarray(problem.solve(RNG.uniform(1, 2, (400, 12))).x)
    known = identified(rv.OptimalitySet(problem, X))
    assert (known.n_lines, known.n_one_sided, known.n_identified) == (8, 0, 4)


def test_the_scale_of_rows_does_not_matter():
    problem, X, _ = blending()
    scaled = rv.LinearProgram(
        A_ub=problem.A_ub.toarray() * [[1e-7], [1e5], [1.0]],
        b_ub=problem.b_ub * [1e-7, 1e5, 1.0],
        lb=problem.lb,
        ub=problem.ub,
    )
    one, other = (identified(rv.OptimalitySet(p, X)) for p in (problem, scaled))
    c = RNG.standard_normal(6)
    assert one.canonical(c) == pytest.approx(other.canonical(c), abs=1e-9)


def test_rows_that_differ_by_instance_count_where_they_are_the_same():
    problem, X, _ = blending()
    A = np.repeat(problem.A_ub.toarray()[None], len(X), axis=0)
    b = np.repeat(problem.b_ub[None], len(X), axis=0)
    same = rv.LinearProgram(A_ub=A, b_ub=b, lb=problem.lb, ub=problem.ub)
    assert identified(rv.OptimalitySet(same, X)).reached.tolist() == [0, 1]
    assert identified(rv.OptimalitySet(same, X)).n_identified == 2
    A[:, 1] *= 1.0 + np.arange(len(X))[:, None]
    b[:, 1] *= 1.0 + np.arange(len(X))
    longer = rv.LinearProgram(A_ub=A, b_ub=b, lb=problem.lb, ub=problem.ub)
    assert identified(rv.OptimalitySet(longer, X)).n_identified == 2
    A[:, 0, 0] += np.arange(len(X))
    b[:, 0] += np.arange(len(X)) * X[:, 0]
    other = rv.LinearProgram(A_ub=A, b_ub=b, lb=problem.lb, ub=problem.ub)
    known = identified(rv.OptimalitySet(other, X))
    assert (known.n_identified, known.reached.tolist()) == (3, [1])


def test_features_that_follow_from_others_are_not_told():
    problem, X, _ = blending()
    z = RNG.standard_normal((40, 3))
    Z = np.column_stack([z, np.full(40, 7.0), 1 + 2 * z[:, 0]])
    known = identified(rv.OptimalitySet(problem, X), Z)
    assert known.features.tolist() == [False, True, True, False, False]


def test_curved_problems_are_refused():
    problem = rv.QuadraticProgram(Q=np.eye(2), sense="min", A_eq=[[1.0, 1.0]], b_eq=[1.0])
    with pytest.raises(rv.InputError, match="LinearProgram"):
        identified(rv.OptimalitySet(problem, [[0.5, 0.5]]))
