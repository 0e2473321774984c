"""project() is right: kernel, reference and general QP solvers agree on every catalogue problem,
and the answer depends on nothing but the cost and the set."""

import threading
import time

import numpy as np
import pytest
import torch
from scipy import sparse

import revealed as rv
from helpers import (
    AGREEMENT,
    DIRECT_SOLVERS,
    MARGINS,
    PREDICTIONS,
    SCALES,
    assert_agrees,
    catalogue,
    direct_projection,
    every_trusted_point,
    per_instance_matrices,
    predictions,
    tiny_path,
)
from revealed import ProjectionStatus
from revealed.projection.cpu import kernel
from revealed.projection.cpu.reference import reference_projection

CASES = catalogue()
METHODS = ("auto", "kernel", "clarabel", "reference")
UNITS = [(scale, along) for scale in SCALES for along in (True, False) if along or scale != 1.0]
"""Scale of the costs, and whether the margin is in the same units."""
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def every_prediction(case, margin):
    """Sets and costs of one problem at one margin: all units x all predictions x its instances."""
    rng = np.random.default_rng(11)
    decisions = case.problem.solve(case.costs).x
    costs, margins = [], []
    for scale, along in UNITS:
        own = np.full(len(decisions), margin * scale if along else margin)
        sets = rv.OptimalitySet(case.problem, decisions, own)
        for kind in PREDICTIONS:
            costs.append(predictions(kind, sets, rng, scale))
            margins.append(own)
    repeat = np.tile(np.arange(len(decisions)), len(costs))
    sets = rv.OptimalitySet(case.problem[repeat], decisions[repeat], np.concatenate(margins))
    return sets, np.vstack(costs)


def some_sets(case, margin=1.0, B=12, seed=3):
    """B sets of a problem (its instances repeated) and random costs for them."""
    repeat = np.arange(B) % len(case.costs)
    decisions = case.problem.solve(case.costs).x[repeat]
    sets = rv.OptimalitySet(case.problem[repeat], decisions, margin)
    return sets, predictions("random", sets, np.random.default_rng(seed))


def hard_sets(B=6):
    """A 6x6 grid with almost-right costs: several steps for every instance."""
    problem = rv.problems.grid_shortest_path(6, 6, neighbors=8)
    rng = np.random.default_rng(5)
    decisions = problem.solve(rng.uniform(0.5, 1.5, (B, problem.n_variables))).x
    sets = rv.OptimalitySet(problem, decisions, 0.0)
    return sets, predictions("almost", sets, rng)


@pytest.mark.parametrize("margin", MARGINS)
@each_case
def test_kernel_reference_and_direct_solvers_agree(case, margin):
    sets, costs = every_prediction(case, margin)
    p = rv.project(costs, sets, method="kernel")
    assert p.solved.all()
    for b in range(len(sets)):
        for name, point in every_trusted_point(sets, b, costs[b]).items():
            assert_agrees(p.point[b], point, costs[b], sets.margins[b], f"instance {b}, {name}")


@pytest.mark.parametrize("margin", MARGINS)
@each_case
def test_the_decision_is_optimal_under_the_projected_cost(case, margin):
    sets, costs = every_prediction(case, margin)
    point = rv.project(costs, sets, method="kernel").point
    answer = sets.problem.solve(point)
    assert answer.optimal.all()
    own = (point * sets.decisions).sum(axis=1)
    size = np.abs(point).max(axis=1)
    assert (np.abs(own - answer.objective) <= 1e-8 * size * sets.decisions.sum(axis=1)).all()
    # With a margin the decision is the only one. An oracle can tell as long as the margin is not
    # lost among its tolerances: 1e-6 of the largest cost is ten times the usual 1e-7.
    clear = sets.margins > 1e-6 * size
    assert clear.any() == (margin > 0)
    np.testing.assert_allclose(answer.x[clear], sets.decisions[clear], atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
@each_case
def test_every_method_gives_the_same_point(case, method):
    sets, costs = some_sets(case, B=4)
    p = rv.project(costs, sets, method=method)
    assert p.solved.all()
    for b in range(len(sets)):
        trusted = direct_projection(sets, b, costs[b], DIRECT_SOLVERS[0])
        # An interior point stops at its tolerance; kernel and reference are exact.
        allowed = 1e-5 if method == "clarabel" else AGREEMENT
        assert_agrees(p.point[b], trusted, costs[b], 1.0, method, allowed=allowed)


@each_case
def test_batch_equals_loop_equals_reference(case):
    sets, costs = some_sets(case)
    together = rv.project(costs, sets)
    for b in range(len(sets)):
        alone = rv.project(costs[b : b + 1], sets[b])
        reference, _ = reference_projection(sets, costs[b], b)
        for point in (alone.point[0], reference):
            assert_agrees(together.point[b], point, costs[b], 1.0, f"instance {b}")
        assert alone.solved[0] == together.solved[b]


@each_case
def test_order_and_company_change_nothing(case):
    sets, costs = some_sets(case)
    order = np.random.default_rng(0).permutation(len(sets))
    together, shuffled = rv.project(costs, sets), rv.project(costs[order], sets[order])
    np.testing.assert_allclose(shuffled.point, together.point[order], rtol=0, atol=1e-9)


@each_case
def test_threads_give_the_same_bits(case):
    sets, costs = some_sets(case, B=40)
    one, two = (rv.project(costs, sets, threads=count) for count in (1, 2))
    for name in ("point", "distance", "residual", "multipliers", "iterations", "status"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))


@each_case
def test_the_same_call_gives_the_same_bits(case):
    sets, costs = some_sets(case)
    first, second = rv.project(costs, sets), rv.project(costs, sets)
    np.testing.assert_array_equal(first.point, second.point)


@each_case
def test_warm_starts_give_the_same_point_in_no_more_steps(case):
    for margin in (0.0, 1.0):
        sets, costs = some_sets(case, margin)
        cold = rv.project(costs, sets, method="kernel")
        for start in (cold, cold.multipliers):
            warm = rv.project(costs, sets, method="kernel", warm_start=start)
            assert warm.solved.all()
            assert (warm.iterations <= cold.iterations).all()
            for b in range(len(sets)):
                assert_agrees(warm.point[b], cold.point[b], costs[b], margin, f"instance {b}")


def test_warm_starts_help_where_steps_are_many():
    sets, costs = hard_sets()
    cold = rv.project(costs, sets, method="kernel")
    many = cold.iterations > 2
    assert many.sum() >= 3
    warm = rv.project(costs, sets, method="kernel", warm_start=cold)
    assert warm.solved.all()
    assert (warm.iterations[many] < cold.iterations[many]).all()


@each_case
def test_a_wrong_warm_start_costs_steps_not_accuracy(case):
    sets, costs = some_sets(case, B=4)
    cold = rv.project(costs, sets, method="kernel")
    rng = np.random.default_rng(1)
    for size in (0.0, 1.0, 1e6):
        start = size * rng.standard_normal(cold.multipliers.shape)
        warm = rv.project(costs, sets, warm_start=start)
        assert warm.solved.all()
        for b in range(len(sets)):
            assert_agrees(warm.point[b], cold.point[b], costs[b], 1.0, f"start of size {size}")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_torch_in_torch_out_computed_in_float64(dtype):
    sets, costs = some_sets(CASES[0])
    tensor = torch.tensor(costs, dtype=dtype)
    p = rv.project(tensor, sets)
    plain = rv.project(tensor.double().numpy(), sets)
    for name in ("point", "distance", "residual", "multipliers"):
        assert getattr(p, name).dtype == dtype
        expected = torch.tensor(getattr(plain, name)).to(dtype)
        torch.testing.assert_close(getattr(p, name), expected, rtol=0, atol=0)
    assert p.solved.dtype == torch.bool
    assert p.status.dtype == torch.int8
    assert not p.point.requires_grad


def test_float32_arrays_are_computed_in_float64():
    sets, costs = some_sets(CASES[0])
    rounded = costs.astype(np.float32)
    p = rv.project(rounded, sets)
    np.testing.assert_array_equal(p.point, rv.project(rounded.astype(float), sets).point)
    assert p.solved.all()


def own_right_hand_sides():
    rng = np.random.default_rng(2)
    A = rng.integers(-2, 3, (2, 6)).astype(float)
    x = rng.integers(0, 3, (5, 6)).astype(float)
    return rv.LinearProgram(A_eq=A, b_eq=x @ A.T, ub=6.0)


def own_bounds():
    rng = np.random.default_rng(3)
    lb = rng.integers(-2, 1, (5, 6)).astype(float)
    b = lb.sum(axis=1).max() + 4
    return rv.LinearProgram(A_eq=np.ones((1, 6)), b_eq=[b], lb=lb, ub=lb + 5 + b)


def own_dense_matrices():
    parts = per_instance_matrices()
    A_ub = np.array([part.toarray() for part in parts["A_ub"]])
    return rv.LinearProgram(**{**parts, "A_ub": A_ub})


OWN_PARTS = {
    "b": own_right_hand_sides,
    "bounds": own_bounds,
    "A dense and sparse": lambda: rv.LinearProgram(**per_instance_matrices()),
    "A dense": own_dense_matrices,
    "A_eq only": lambda: rv.LinearProgram(
        **{**per_instance_matrices(), "A_ub": None, "b_ub": None}
    ),
}


@pytest.mark.parametrize("build", OWN_PARTS.values(), ids=OWN_PARTS)
def test_constraints_of_their_own(build):
    problem = build()
    rng = np.random.default_rng(4)
    costs = rng.standard_normal((5, problem.n_variables))
    decisions = problem.solve(rng.uniform(-1, 1, costs.shape)).x
    sets = rv.OptimalitySet(problem, decisions, [0.0, 0.5, 1.0, 2.0, 5.0])
    p = rv.project(costs, sets, method="kernel")
    assert p.solved.all()
    for b in range(5):
        for name, point in every_trusted_point(sets, b, costs[b]).items():
            assert_agrees(p.point[b], point, costs[b], sets.margins[b], f"instance {b}, {name}")
    for index in (3, slice(1, 4), [4, 0, 0], np.array([True, False, False, True, True]), []):
        chosen = np.atleast_1d(np.arange(5)[index]).astype(int)
        part = rv.project(costs[chosen], sets[index], method="kernel")
        np.testing.assert_allclose(part.point, p.point[chosen], rtol=0, atol=1e-9)
        fresh = rv.OptimalitySet(problem[chosen], decisions[chosen], sets.margins[chosen])
        again = rv.project(costs[chosen], fresh, method="kernel")
        np.testing.assert_allclose(again.point, p.point[chosen], rtol=0, atol=1e-9)


EYE = np.eye(4)
ODD_PROBLEMS = {
    "no rows at all": {"lb": np.zeros(4), "ub": 2.0},
    "zero rows only": {"A_eq": np.zeros((2, 4)), "b_eq": [0.0, 0.0], "ub": 2.0},
    "a zero row": {"A_eq": [[1.0, 1, 1, 1], [0, 0, 0, 0]], "b_eq": [2.0, 0], "ub": 2.0},
    "a zero inequality": {"A_ub": [[1.0, 1, 1, 1], [0, 0, 0, 0]], "b_ub": [2.0, 0], "ub": 2.0},
    "duplicate rows": {"A_eq": np.ones((3, 4)), "b_eq": [2.0, 2, 2], "ub": 2.0},
    "opposite rows": {"A_eq": [[1.0, 1, 1, 1], [-2, -2, -2, -2]], "b_eq": [2.0, -4], "ub": 2.0},
    "equality and both inequalities": {
        "A_eq": np.ones((1, 4)),
        "b_eq": [2.0],
        "A_ub": [[1.0, 1, 1, 1], [-1, -1, -1, -1]],
        "b_ub": [2.0, -2],
        "ub": 2.0,
    },
    "rank-deficient": {
        "A_eq": [[1.0, 1, 0, 0], [0, 0, 1, 1], [1, 1, 1, 1]],
        "b_eq": [1.0, 1, 2],
    },
    "all entries fixed": {"A_eq": np.ones((1, 4)), "b_eq": [4.0], "lb": 1.0, "ub": 1.0},
    "all entries free": {"A_eq": EYE, "b_eq": [1.0, 2, 3, 4], "lb": None},
    "one feasible point": {"A_ub": np.vstack([EYE, -EYE]), "b_ub": np.r_[1.0, 1, 1, 1, [-1] * 4]},
    "rows of very different size": {
        "A_eq": [[1e6, 1e6, 0, 0], [0, 0, 1e-6, 1e-6]],
        "b_eq": [1e6, 1e-6],
    },
    "sparse": {"A_eq": sparse.coo_array([[1.0, 1, 1, 1]]), "b_eq": [2.0], "ub": 2.0},
}


@pytest.mark.parametrize("margin", MARGINS)
@pytest.mark.parametrize("parts", ODD_PROBLEMS.values(), ids=ODD_PROBLEMS)
def test_odd_problems(parts, margin):
    problem = rv.LinearProgram(**parts)
    rng = np.random.default_rng(6)
    # Costs in the span of the rows and of the bounds, so that nothing is unbounded.
    decisions = problem.solve(np.ones((8, 4))).x
    sets = rv.OptimalitySet(problem, decisions, margin)
    costs = np.vstack([predictions(kind, sets[:2], rng) for kind in PREDICTIONS])
    p = rv.project(costs, sets, method="kernel")
    assert p.solved.all()
    for b in range(8):
        for name, point in every_trusted_point(sets, b, costs[b]).items():
            assert_agrees(p.point[b], point, costs[b], margin, f"instance {b}, {name}")
    auto = rv.project(costs, sets)
    np.testing.assert_array_equal(auto.point, p.point)


@pytest.mark.parametrize("method", METHODS)
def test_empty_batch_and_batch_of_one(method):
    sets, costs = some_sets(CASES[0])
    none = rv.project(costs[:0], sets[:0], method=method)
    assert none.point.shape == (0, costs.shape[1])
    shapes = [getattr(none, name).shape for name in ("distance", "residual", "solved", "status")]
    assert shapes == [(0,)] * 4
    one = rv.project(costs[:1], sets[:1], method=method)
    assert one.solved.tolist() == [True]


def test_a_hand_computed_projection():
    # The direct edge is taken, so the detour must cost at least 1 more: c0 + c1 - c2 >= 1.
    sets = rv.OptimalitySet(tiny_path(), [[0.0, 0.0, 1.0]], margin=0.5)
    p = rv.project([[0.0, 0.0, 2.0]], sets)
    np.testing.assert_allclose(p.point, [[1.0, 1.0, 1.0]], atol=1e-9)
    np.testing.assert_allclose(p.distance, [np.sqrt(3)], atol=1e-9)


def test_the_step_limit_is_kept_and_admitted():
    sets, costs = hard_sets()
    # Tight: of these moves of 1e-11 and less, the first step leaves some at 1e-8 already.
    p = rv.project(costs, sets, method="kernel", max_iter=1, tol=1e-12)
    assert not p.solved.any()
    assert (p.status == ProjectionStatus.MAX_ITER).all()
    assert (p.iterations <= 1).all()
    assert (p.residual > 1e-12).all()
    assert rv.project(costs, sets, method="auto", max_iter=1).solved.all()  # handed on


@pytest.mark.parametrize("method", METHODS)
def test_no_time_at_all_is_admitted(method):
    # That it does not hang is shown in a process of its own, in test_robust.
    sets, costs = hard_sets(B=64)
    p = rv.project(costs, sets, method=method, time_limit=0)
    assert np.isin(p.status, [ProjectionStatus.TIME_LIMIT, ProjectionStatus.SOLVED]).all()
    np.testing.assert_array_equal(p.solved, p.status == ProjectionStatus.SOLVED)
    assert (p.residual[p.solved] <= 1e-8).all()
    assert sets.contains(p.point).all()  # not the nearest, but inside, as `Projection` promises


def test_an_interrupt_ends_the_threads_too(monkeypatch):
    begun, ended = threading.Event(), threading.Event()

    def work(analysis, job, work, ids, *, stop, **options):
        if ids[0] == 0:
            begun.wait()
            raise KeyboardInterrupt
        begun.set()
        while not stop[0]:  # as the kernels do; for ever, if nobody said so
            time.sleep(0.001)
        ended.set()

    monkeypatch.setattr(kernel, "_work_through", work)
    sets, costs = hard_sets(B=64)
    with pytest.raises(KeyboardInterrupt):
        rv.project(costs, sets, threads=2)
    assert ended.wait(60)


def test_every_status_is_a_sentence():
    for status in ProjectionStatus:
        assert status.sentence.endswith(".")
        assert " " in status.sentence
