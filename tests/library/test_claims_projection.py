"""Nothing is called solved that is wrong, whatever the scales, dust, dtypes or curves."""

import numpy as np
import pytest
import torch
from exact_reference import error_of, exact_projection, hostile_problem

import revealed as rv
from revealed import ProjectionStatus
from revealed.optimality.qualification import QualificationWarning
from revealed.projection import plain
from revealed.projection.cpu.analysis import analyze
from revealed.projection.cpu.exact import exact_projection as own_exact
from revealed.projection.cpu.spread import HARMLESS

WRONG = 1e-6
EXTREME = rv.LinearProgram(A_eq=[[1e6, 1e-6]], b_eq=[1e-6], lb=[0.0, -np.inf])


def false_claims(seeds):
    """Seeds of problems called solved far from the truth, and the share that is not solved."""
    wrong, missed = [], 0
    for seed in seeds:
        sets, cost = hostile_problem(seed)
        p = rv.project(cost, sets)
        missed += not p.solved[0]
        truth = exact_projection(sets, 0, cost[0], p.point[0])
        error = error_of(p.point[0], truth, cost[0], sets.margins[0])
        if p.solved[0] and not error <= WRONG:
            wrong.append((seed, error))
    return wrong, missed / len(seeds)


@pytest.mark.parametrize("method", ["auto", "kernel", "clarabel", "reference", "exact"])
def test_a_cost_that_explains_with_a_huge_multiplier_is_its_own_projection(method):
    sets = rv.OptimalitySet(EXTREME, [[0.0, 1.0]], 0.0)
    p = rv.project([[1.0, -1.0]], sets, method=method)
    assert not p.solved[0] or p.distance[0] <= 1e-12
    if method in ("auto", "exact"):
        assert p.solved[0]
        np.testing.assert_allclose(p.point, [[1.0, -1.0]], rtol=0, atol=1e-12)


def test_hostile_problems_meet_no_false_claim(record_property):
    wrong, share = false_claims(range(900))
    record_property("not solved", f"{share:.1%}")
    assert not wrong
    assert share <= 0.01


def test_floating_point_alone_claims_nothing_false_either(monkeypatch, record_property):
    monkeypatch.setattr(plain, "exact_projection", lambda *_: None)
    wrong, share = false_claims(range(900, 1800))
    record_property("not solved", f"{share:.1%}")
    assert not wrong
    assert share <= 0.2


def test_without_proof_some_claims_would_be_false(monkeypatch):
    monkeypatch.setattr(plain, "_prove_doubtful", lambda *_: None)
    monkeypatch.setattr(plain, "exact_projection", lambda *_: None)
    assert false_claims(range(300))[0], "the problems are not hostile any more"


@pytest.mark.parametrize("seed", range(40))
def test_the_exact_answer_is_that_of_trying_every_active_set(seed):
    sets, cost = hostile_problem(10_000 + seed)
    truth = exact_projection(sets, 0, cost[0])
    found = own_exact(sets, cost[0], 0)
    assert error_of(found.point, truth, cost[0], sets.margins[0]) <= 1e-12


def test_larger_problems_of_mixed_scales_agree_with_exact_arithmetic(monkeypatch):
    """Too large to try every active set, small enough for the library's exact method."""
    monkeypatch.setattr(plain, "exact_projection", lambda *_: None)
    solved = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        A = rng.integers(-3, 4, (5, 15)) * 10.0 ** rng.uniform(-8, 8, 15)
        state = rng.random(15)
        lb, ub = np.where(state < 0.5, 0.0, -np.inf), np.where(state > 0.8, 0.0, np.inf)
        problem = rv.LinearProgram(A_eq=A, b_eq=np.zeros(5), lb=lb, ub=ub)
        sets = rv.OptimalitySet(problem, np.zeros((1, 15)), 1.0)
        cost = rng.normal(size=(1, 15))
        p = rv.project(cost, sets)
        truth = own_exact(sets, cost[0], 0).point
        denominator = max(np.linalg.norm(truth - cost), 1e-3 * np.linalg.norm(cost))
        solved += p.solved[0]
        assert not p.solved[0] or np.linalg.norm(p.point - truth) <= WRONG * denominator
    assert solved, "nothing is proved"


def test_ordinary_problems_are_not_looked_at_twice():
    for problem in (rv.problems.grid_shortest_path(4, 4), rv.problems.assignment(4, 4)):
        X = problem.solve(np.random.default_rng(0).random((2, problem.n_variables)) + 0.5).x
        assert analyze(rv.OptimalitySet(problem, X)).spread.max() <= HARMLESS


def test_dust_between_rows_is_seen():
    a, b = 0.3, 0.1 + 0.2
    for second, doubtful in (([2.0, 2 * a], False), ([1.0, b], True)):
        problem = rv.LinearProgram(A_eq=[[1.0, a], second], b_eq=[0.0, 0.0], lb=None)
        spread = analyze(rv.OptimalitySet(problem, [[0.0, 0.0]])).spread[0]
        assert (spread > HARMLESS) == doubtful


def test_a_device_does_not_claim_what_it_cannot_prove():
    sets = rv.OptimalitySet(EXTREME, [[0.0, 1.0]], 0.0)
    from revealed.projection.triton import project_on_device

    p = project_on_device(torch.tensor([[1.0, -1.0]]).double(), sets.to("cpu"), method="torch")
    assert not p.solved[0] or p.distance[0] <= 1e-9
    assert bool(p.solved[0]) == (int(p.status[0]) == ProjectionStatus.SOLVED)


# --- dtypes -----------------------------------------------------------------------------------


def grid_sets(margin):
    problem = rv.problems.grid_shortest_path(3, 3)
    return rv.OptimalitySet(problem, problem.solve(np.ones((1, problem.n_variables))).x, margin)


@pytest.mark.parametrize(
    "dtype, size, fits",
    [
        (torch.float16, 1e5, False),
        (torch.float16, 1e-7, False),
        (torch.float16, 1.0, True),
        (torch.bfloat16, 1e5, True),
        (torch.float32, 1e5, True),
        (torch.float32, 3e38, False),
        (torch.float64, 3e38, True),
    ],
)
@pytest.mark.parametrize("place", [lambda sets: sets, lambda sets: sets.to("cpu")])
def test_an_answer_is_judged_in_the_dtype_it_comes_in(dtype, size, fits, place):
    sets = grid_sets(size)
    costs = torch.full((1, sets.problem.n_variables), 0.5 * min(size, 1e5)).to(dtype)
    p = rv.project(costs, place(sets))
    assert p.point.dtype == dtype
    assert bool(p.solved[0]) == fits
    assert int(p.status[0]) == (ProjectionStatus.SOLVED if fits else ProjectionStatus.OUT_OF_RANGE)
    assert "float64" in ProjectionStatus.OUT_OF_RANGE.sentence


# --- curved constraints -----------------------------------------------------------------------


def ball(*center):
    return lambda x: ((x - torch.tensor(center, dtype=torch.float64)) ** 2).sum() - 1.0


def linear(x, w):
    return (w * x).sum()


def convex(*inequalities, **rows):
    return rv.ConvexProgram(linear, 2, 2, inequalities=inequalities, **rows)


def test_balls_that_touch_leave_the_set_in_doubt():
    problem = convex(ball(1.0, 0.0), ball(-1.0, 0.0))
    with pytest.warns(QualificationWarning, match="Decision 0"):
        sets = rv.OptimalitySet(problem, [[0.0, 0.0]], 0.0)
    assert "more costs than their sets" in sets.report()
    p = rv.project([[0.3, 2.0]], sets)
    assert not p.solved[0]
    assert p.status[0] == ProjectionStatus.UNQUALIFIED
    inside = rv.project([[0.3, 0.0]], sets)  # multipliers explain it, and that is proof
    assert inside.solved[0]
    assert not sets[[0]].qualified[0]


def test_a_ball_that_touches_a_row_leaves_the_set_in_doubt():
    problem = convex(ball(1.0, 0.0), A_ub=[[1.0, 0.0]], b_ub=[0.0])
    with pytest.warns(QualificationWarning):
        rv.OptimalitySet(problem, [[0.0, 0.0]], 0.0)


@pytest.mark.parametrize(
    "problem, decisions",
    [
        (convex(ball(0.0, 0.0)), [[1.0, 0.0]]),  # one gradient
        (convex(ball(0.0, 0.0)), [[1.0, 0.0], [0.0, 1.0]]),  # a mean inside
        (convex(ball(0.5, 0.0), ball(-0.5, 0.0)), [[0.0, 0.75**0.5]]),  # independent gradients
        (convex(ball(0.0, 0.0), ball(0.0, 0.0)), [[1.0, 0.0]]),  # twice the same
        (convex(ball(0.0, 0.0), ball(0.2, 0.0), lb=[-0.8, -2.0]), [[-0.8, 0.0]]),  # and a bound
        (convex(ball(0.0, 0.0), A_eq=[[0.0, 1.0]], b_eq=[0.0]), [[1.0, 0.0]]),
        (convex(ball(0.0, 0.0)), [[0.2, 0.3]]),  # nothing active
    ],
)
def test_ordinary_curves_are_qualified_without_a_word(problem, decisions):
    sets = rv.OptimalitySet(problem, decisions, 0.0)
    assert sets.qualified.all()
    p = rv.project(np.full((len(decisions), 2), 0.5), sets)
    assert p.solved.all()


def test_corners_of_cones_are_qualified_where_the_cone_has_an_interior():
    cone = rv.SecondOrderCone(np.eye(3)[1:], c=[1.0, 0.0, 0.0])
    tip = rv.ConvexProgram(linear, 3, 3, cones=[cone])
    assert rv.OptimalitySet(tip, [[0.0, 0.0, 0.0]], 0.0).qualified.all()
    flat = rv.ConvexProgram(linear, 3, 3, cones=[cone], A_eq=[[1.0, 0.0, 0.0]], b_eq=[0.0])
    with pytest.warns(QualificationWarning):
        rv.OptimalitySet(flat, [[0.0, 0.0, 0.0]], 0.0)
