"""OptimalitySet: what it reads in a decision, what it refuses, and membership of costs."""

import numpy as np
import pytest
import torch

import revealed as rv
from helpers import catalogue, inside_costs, per_instance_matrices, predictions, tiny_path
from revealed import EntryState
from revealed.errors import InfeasibleDecisionError, InputError, ShapeError

INF = np.inf
FREE, LOWER, UPPER, FIXED = EntryState
CASES = catalogue()
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)

STATES = [
    (0.0, INF, 0.0, LOWER),
    (0.0, INF, 1.0, FREE),
    (0.0, 1.0, 1.0, UPPER),
    (0.0, 1.0, 0.5, FREE),
    (2.0, 2.0, 2.0, FIXED),
    (-3.0, -3.0, -3.0, FIXED),
    (0.0, 1e-6, 0.0, FIXED),  # no choice to speak of
    (0.0, 1e-6, 1e-6, FIXED),
    (-INF, INF, 0.0, FREE),
    (-INF, INF, 1e9, FREE),
    (-INF, INF, -5.0, FREE),
    (-INF, 3.0, 3.0, UPPER),
    (-INF, 3.0, 0.0, FREE),
    (-INF, 0.0, 0.0, UPPER),
    (-2.0, INF, -2.0, LOWER),
    (0.0, 1.0, 5e-6, LOWER),
    (0.0, 1.0, -5e-6, LOWER),
    (0.0, 1.0, 1 - 5e-6, UPPER),
    (0.0, 1.0, 1 + 5e-6, UPPER),
    (0.0, 1.0, 1.1e-5, FREE),
    (0.0, 1.0, 1 - 2.1e-5, FREE),  # relative to 1 + |bound|
    (1000.0, INF, 1000.009, LOWER),
    (1000.0, INF, 1000.02, FREE),
    (0.0, 3e-5, 1e-6, LOWER),  # near both bounds: the nearer one
    (0.0, 3e-5, 2.9e-5, UPPER),
]


@pytest.mark.parametrize("lb, ub, x, state", STATES)
def test_the_state_of_an_entry(lb, ub, x, state):
    """In a problem of size 1, which the second entry sees to."""
    shared = rv.LinearProgram(lb=[lb, 0.0], ub=[ub, 1.0])
    own = rv.LinearProgram(lb=[[lb, 0.0], [0.0, 0.0]], ub=[[ub, 1.0], [1.0, 1.0]])
    assert rv.OptimalitySet(shared, [[x, 0.5]]).entry_state.tolist() == [[state, FREE]]
    read = rv.OptimalitySet(own, [[x, 0.5], [0.0, 1.0]]).entry_state.tolist()
    assert read == [[state, FREE], [LOWER, UPPER]]


@pytest.mark.parametrize("s", [1e-9, 1e-6, 1e-3, 1.0])
def test_small_problems_are_read_like_large_ones(s):
    """Right-hand sides, bounds and decisions of any size below 1 tell the same states."""
    rng = np.random.default_rng(5)
    A, b, ub = rng.random((3, 6)), np.array([1.0, 1.3, 9.0]), 0.8
    X = rv.LinearProgram(A_ub=A, b_ub=b, ub=ub).solve(rng.normal(size=(8, 6))).x
    large = rv.OptimalitySet(rv.LinearProgram(A_ub=A, b_ub=b, ub=ub), X)
    problem = rv.LinearProgram(A_ub=A, b_ub=s * b, ub=s * ub)
    small = rv.OptimalitySet(problem, s * X)
    assert (small.entry_state == large.entry_state).all()
    assert (small.row_active == large.row_active).all()
    with pytest.raises(InfeasibleDecisionError, match="relative violation"):
        rv.OptimalitySet(problem, s * (X + 1e-3))
    assert np.abs(problem.solve(rng.normal(size=(8, 6))).x).max() <= s * (ub + 1e-9)


ROWS = [
    ([1.0, 1.0], 2.0, [1.0, 1.0], True),
    ([1.0, 1.0], 3.0, [1.0, 1.0], False),
    ([1.0, 1.0], INF, [1.0, 1.0], False),
    ([1.0, 1.0], 2.0, [1.0, 1 - 1e-5], True),  # 1e-5 of terms that add up to 5
    ([1.0, 1.0], 2.0, [1.0, 1 + 1e-5], True),
    ([1.0, 1.0], 2.0, [1.0, 1 - 1e-4], False),
    ([1e6, 1e6], 2e6, [1.0, 1 - 1e-5], True),  # units of a row change nothing
    ([1e-6, 1e-6], 2e-6, [1.0, 1 - 1e-4], False),
    ([1.0, -1.0], 0.0, [1.0, 1.0], True),
    ([0.0, 0.0], 0.0, [1.0, 1.0], True),
    ([0.0, 0.0], 1.0, [1.0, 1.0], False),
]


@pytest.mark.parametrize("row, b, x, active", ROWS)
def test_whether_a_row_binds(row, b, x, active):
    problem = rv.LinearProgram(A_ub=[row], b_ub=[b], ub=5.0)
    assert rv.OptimalitySet(problem, [x]).row_active.tolist() == [[active]]


def test_the_tolerance_is_the_callers():
    problem = rv.LinearProgram(lb=[0.0], ub=[1.0])
    for tol, state in ((0.0, FREE), (1e-9, FREE), (1e-7, LOWER), (1e-3, LOWER)):
        assert rv.OptimalitySet(problem, [[1e-8]], tol=tol).entry_state.tolist() == [[state]]


def test_it_says_what_it_decided():
    problem = rv.LinearProgram(A_ub=[[1.0, 1.0, 0.0]], b_ub=[9.0], lb=0.0, ub=[1.0, 1.0, 0.0])
    sets = rv.OptimalitySet(problem, [[3e-6, 0.4, 0.0], [1.0, 2e-4, 0.0]])
    np.testing.assert_allclose(sets.snapped, [3e-6, 0.0])
    # 0.4 is 0.6 from its upper bound, and 0.6 / (1 + 1) is nearer than 0.4 / (1 + 0).
    np.testing.assert_allclose(sets.nearest_free, [0.3, 2e-4])
    words = sets.report()
    for phrase in ("2 decisions of 3 entries", "2 free", "1 at lower", "1 at upper", "2 fixed"):
        assert phrase in words
    for phrase in ("0 of 2 inequalities bind", "1e-05", "3e-06", "0.0002", "deserves a look"):
        assert phrase in words
    calm = rv.OptimalitySet(problem, [[0.0, 0.4, 0.0]]).report()
    assert "deserves a look" not in calm


def test_nothing_free_is_infinitely_far():
    sets = rv.OptimalitySet(rv.LinearProgram(lb=[0.0, 1.0], ub=[1.0, 1.0]), [[0.0, 1.0]])
    assert sets.nearest_free.tolist() == [INF]
    assert sets.snapped.tolist() == [0.0]
    assert sets.report().endswith(".")


def test_the_representation_names_size_and_margin():
    problem = tiny_path()
    assert "2 decisions, margin 0.5" in repr(rv.OptimalitySet(problem, [[0, 0, 1]] * 2, 0.5))
    assert "2 values" in repr(rv.OptimalitySet(problem, [[0, 0, 1]] * 2, [0.5, 1.0]))


@pytest.mark.parametrize("size", [1e-6, 2e-6, 5e-6])
@each_case
def test_interior_point_output_is_read_as_its_vertex(case, size):
    # What an interior point stops at: feasible, and a little of every other vertex mixed in.
    exact = case.problem.solve(case.costs).x
    rng = np.random.default_rng(0)
    sign = np.sign(case.costs.mean())
    others = [case.problem.solve(sign * rng.uniform(0.5, 1.5, exact.shape)).x for _ in range(8)]
    inexact = (1 - size) * exact + size * np.mean(others, axis=0)
    assert (inexact != exact).any()
    sets, noisy = (rv.OptimalitySet(case.problem, X) for X in (exact, inexact))
    np.testing.assert_array_equal(noisy.entry_state, sets.entry_state)
    np.testing.assert_array_equal(noisy.row_active, sets.row_active)
    assert 0 < noisy.snapped.max() <= size
    np.testing.assert_array_equal(sets.snapped.round(12), 0.0)


@pytest.mark.parametrize("size", [1e-6, 2e-6])
@each_case
def test_noise_on_every_entry_is_read_through(case, size):
    exact = case.problem.solve(case.costs).x
    noise = size * np.random.default_rng(1).uniform(-1, 1, exact.shape)
    sets, noisy = (rv.OptimalitySet(case.problem, X) for X in (exact, exact + noise))
    np.testing.assert_array_equal(noisy.entry_state, sets.entry_state)
    np.testing.assert_array_equal(noisy.row_active, sets.row_active)


BOX = {"A_eq": [[1.0, 1.0]], "b_eq": [2.0], "A_ub": [[1.0, -1.0]], "b_ub": [1.0], "ub": 3.0}
REFUSED = [
    ([[1, 1], [1, 2]], "Decision 1 breaks equality row 0: it gives 3, b_eq is 2.*1 of 2 decisions"),
    ([[2, 0]], "Decision 0 breaks inequality row 0: it gives 2, b_ub is 1"),
    ([[-0.5, 2.5]], "Decision 0 breaks the lower bound of entry 0: it gives -0.5, lb is 0"),
    (
        [[-2, 4]],
        "breaks the lower bound of entry 0: it gives -2|upper bound of entry 1: it gives 4",
    ),
    ([[1, 1], [1, 1.001]], "Decision 1 .* a relative violation of 0.000.* where 1e-05 is allowed"),
]


@pytest.mark.parametrize("decisions, phrase", REFUSED)
def test_infeasible_decisions_are_refused_by_name(decisions, phrase):
    with pytest.raises(InfeasibleDecisionError, match=phrase) as caught:
        rv.OptimalitySet(rv.LinearProgram(**BOX), np.array(decisions, float))
    assert str(caught.value).endswith(".")
    assert isinstance(caught.value, ValueError)


def test_the_upper_bound_is_named_too():
    with pytest.raises(InfeasibleDecisionError, match=r"bound of entry 1: .* 7, ub is 3"):
        rv.OptimalitySet(rv.LinearProgram(lb=[0.0, 0.0], ub=[9.0, 3.0]), [[1.0, 7.0]])


def test_a_decision_is_judged_by_its_own_constraints():
    problem = rv.LinearProgram(A_eq=[[1.0, 1.0]], b_eq=[[1.0], [2.0]])
    rv.OptimalitySet(problem, [[1.0, 0.0], [1.0, 1.0]])
    with pytest.raises(InfeasibleDecisionError, match=r"Decision 1 .* it gives 1, b_eq is 2"):
        rv.OptimalitySet(problem, [[1.0, 0.0], [0.0, 1.0]])
    with pytest.raises(ShapeError, match="`decisions` must have 2 rows; got 3"):
        rv.OptimalitySet(problem, np.ones((3, 2)))


# tiny_path with the direct edge taken: reduced costs of the other two add up to c0 + c1 - c2.
# "row": x0 + x1 <= 1 binds at (1, 0), so mu = -c0 and the reduced cost of entry 1 is c1 - c0.
ROW = rv.LinearProgram(A_ub=[[1.0, 1.0]], b_ub=[1.0])
FLAT = rv.LinearProgram(lb=[0.0, 0.0], ub=[2.0, 2.0])
SLACKS = [
    (tiny_path(), [0, 0, 1], [1.0, 2.0, 1.0], 1.0),
    (tiny_path(), [0, 0, 1], [0.0, 0.0, 2.0], -1.0),
    (tiny_path(), [0, 0, 1], [1.0, 1.0, 2.0], 0.0),
    (tiny_path(), [1, 1, 0], [1.0, 1.0, 5.0], 3.0),
    (ROW, [1, 0], [-2.0, -1.0], 1.0),
    (ROW, [1, 0], [-2.0, 5.0], 2.0),
    (ROW, [1, 0], [1.0, 0.0], -1.0),
    (ROW, [0.25, 0.5], [0.0, 0.0], INF),  # nothing at a bound, and the cost fits
    (ROW, [0.25, 0.5], [0.0, 1.0], -INF),
    (FLAT, [1, 0], [1.0, 1.0], -INF),  # the free entry wants a cost of 0
    (FLAT, [1, 0], [0.0, 1.0], 1.0),
    (FLAT, [2, 0], [-3.0, 4.0], 3.0),
    (FLAT, [2, 0], [3.0, 4.0], -3.0),
]


@pytest.mark.parametrize("problem, x, cost, expected", SLACKS)
@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_slack_by_hand(problem, x, cost, expected, unit):
    sets = rv.OptimalitySet(problem, [x], margin=0.5)
    slack = sets.max_margin(unit * np.array([cost]))
    np.testing.assert_allclose(slack, [unit * expected], atol=1e-7 * unit)
    if np.isfinite(expected):
        chi = abs(expected) * unit
        inside = rv.OptimalitySet(problem, [x], margin=chi / 2).contains(unit * np.array([cost]))
        assert inside.tolist() == [expected >= 0]
        outside = rv.OptimalitySet(problem, [x], margin=chi + unit)
        assert not outside.contains(unit * np.array([cost])).any()


@pytest.mark.parametrize("margin", [0.0, 0.01, 1.0])
@each_case
def test_projections_are_inside_with_their_margin(case, margin):
    sets = rv.OptimalitySet(case.problem, case.problem.solve(case.costs).x, margin)
    point = rv.project(predictions("random", sets, np.random.default_rng(0)), sets).point
    assert sets.contains(point).all()
    assert (sets.max_margin(point) >= margin - 1e-6).all()


@each_case
def test_members_are_contained_and_costs_of_other_decisions_are_not(case):
    rng = np.random.default_rng(1)
    sets = rv.OptimalitySet(case.problem, case.problem.solve(case.costs).x, 0.1)
    assert sets.contains(inside_costs(sets, rng)).all()
    assert (sets.max_margin(inside_costs(sets, rng)) >= 0.1 - 1e-9).all()
    other = case.problem.solve(-case.costs) if case.name.startswith("grid right") else None
    other = case.problem.solve(case.costs[:, ::-1]) if other is None else other
    differs = (other.x != sets.decisions).any(axis=1)
    assert differs.any()
    wrong = rv.OptimalitySet(case.problem, other.x, 0.0)
    assert not wrong.contains(case.costs)[differs].any()
    assert (wrong.max_margin(case.costs)[differs] < 0).all()


def test_membership_takes_its_own_tolerance():
    sets = rv.OptimalitySet(FLAT, [[1.0, 0.0]], margin=0.0)
    assert not sets.contains([[1e-5, 1.0]]).any()
    assert sets.contains([[1e-5, 1.0]], tol=1e-4).all()


def test_torch_in_torch_out():
    sets = rv.OptimalitySet(tiny_path(), torch.tensor([[0.0, 0.0, 1.0]]), torch.tensor(0.5))
    costs = torch.tensor([[1.0, 2.0, 1.0]], dtype=torch.float32)
    assert sets.contains(costs).tolist() == [True]
    assert sets.contains(costs).dtype == torch.bool
    assert sets.max_margin(costs).dtype == torch.float32


INDICES = [0, -1, 2, slice(1, 4), slice(None, None, -1), [3, 0, 0], np.array([4, 1]), []]
INDICES += [np.array([True, False, True, False, True]), torch.tensor([2, 2]), slice(0, 0)]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_indexing_chooses_sets(index):
    problem = rv.LinearProgram(**per_instance_matrices())
    rng = np.random.default_rng(2)
    X = problem.solve(rng.uniform(-1, 1, (5, problem.n_variables))).x
    sets = rv.OptimalitySet(problem, X, [0.0, 1.0, 2.0, 3.0, 4.0])
    part = sets[index]
    empty = isinstance(index, list) and not index  # numpy takes [] for an array of floats
    chosen = np.atleast_1d(np.arange(5)[slice(0, 0) if empty else index])
    assert len(part) == len(chosen)
    fresh = rv.OptimalitySet(problem[chosen], X[chosen], sets.margins[chosen])
    names = ("decisions", "margins", "entry_state", "row_active", "snapped", "nearest_free")
    for name in names:
        np.testing.assert_array_equal(getattr(part, name), getattr(fresh, name))
    costs = inside_costs(sets, rng)
    assert part.contains(costs[chosen]).all()


def test_indices_that_do_not_exist():
    sets = rv.OptimalitySet(tiny_path(), [[0, 0, 1.0]] * 3)
    assert len(list(sets)) == 3  # the sequence ends
    with pytest.raises(IndexError, match="Index 3 is outside the 3"):
        sets[3]
    with pytest.raises(ShapeError, match="mask"):
        sets[np.array([True])]
    for index in ([[1], [2, 3]], slice(0.5, 2)):
        with pytest.raises(InputError, match="must hold integers"):
            sets[index]
    with pytest.raises(InputError, match="integers"):
        sets["a"]


def test_one_margin_or_one_for_each():
    X = [[0, 0, 1.0]] * 2
    assert rv.OptimalitySet(tiny_path(), X).margin == 1.0
    assert rv.OptimalitySet(tiny_path(), X, [0.5, 0.5]).margin == 0.5
    mixed = rv.OptimalitySet(tiny_path(), X, [0.5, 2.0])
    with pytest.raises(InputError, match="read `margins` instead"):
        _ = mixed.margin
    assert mixed[1].margin == 2.0
    together = rv.project(np.zeros((2, 3)), mixed).point
    alone = [rv.project(np.zeros((1, 3)), mixed[b]).point[0] for b in range(2)]
    np.testing.assert_allclose(together, alone, atol=1e-12)
    assert mixed.max_margin(together) == pytest.approx([0.5, 2.0])


def test_an_empty_batch_is_a_batch():
    sets = rv.OptimalitySet(tiny_path(), np.zeros((0, 3)))
    assert len(sets) == 0
    assert sets.contains(np.zeros((0, 3))).shape == (0,)
    assert sets.max_margin(np.zeros((0, 3))).shape == (0,)
    assert "0 decisions" in sets.report()
    assert "0 decisions" in repr(sets)


def test_a_long_batch_is_read_part_by_part_with_the_same_result(monkeypatch):
    """Also where every instance has right-hand sides and bounds of its own."""
    from revealed.problems import linear as module

    rng = np.random.default_rng(0)
    capacity = rng.uniform(3, 8, 30)
    problem = rv.problems.knapsack(rng.uniform(1, 4, 6), capacity)
    decisions = problem.solve(-rng.uniform(1, 2, (30, 6))).x
    whole = rv.OptimalitySet(problem, decisions)
    monkeypatch.setattr(module, "PART", 7)
    parts = rv.OptimalitySet(problem, decisions)
    for name in ("entry_state", "row_active", "snapped", "nearest_free"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(parts, name))
    off = decisions.copy()
    off[20] += 1.0
    with pytest.raises(rv.errors.InfeasibleDecisionError, match="Decision 20"):
        rv.OptimalitySet(problem, off)
