"""scipy's arguments as a model: the same answers as scipy's own solver gives."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

import revealed as rv
from revealed.errors import InputError, ShapeError
from revealed.importers import RelaxationWarning

A_ub, b_ub = np.array([[1.0, 2.0, 1.0], [3.0, 1.0, 0.0]]), np.array([4.0, 6.0])
A_eq, b_eq = np.array([[1.0, 0.0, 1.0]]), np.array([2.0])
COST = np.array([-1.0, -2.0, -0.5])
FORMS = [
    (0, None),
    None,
    [],
    [(0, 3)],
    (None, 3),
    [(0, 1), (None, None), (-1, 2)],
    np.array([[0.0, 1.0], [np.nan, 2.0], [-1.0, np.inf]]),
    [[0, 1], [0, 1], [0, 1]],
]


@pytest.mark.parametrize("bounds", FORMS, ids=str)
@pytest.mark.parametrize("as_matrix", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_the_answer_is_scipys(bounds, as_matrix):
    arguments = as_matrix(A_ub), b_ub, as_matrix(A_eq), b_eq
    model = rv.from_linprog(COST, *arguments, bounds)
    expected = linprog(COST, *arguments, bounds)
    answer = model.problem.solve(model.cost[None])
    assert answer.optimal.all() == (expected.status == 0)
    if expected.status == 0:
        assert answer.objective[0] == pytest.approx(expected.fun)
        assert model.objective(answer.x) == pytest.approx([expected.fun])


def test_variables_are_at_least_0_unless_told_otherwise():
    model = rv.from_linprog(A_ub=A_ub, b_ub=b_ub)
    np.testing.assert_array_equal(model.problem.lb, 0)
    np.testing.assert_array_equal(model.problem.ub, np.inf)
    assert model.cost is None
    with pytest.raises(InputError, match="no objective"):
        model.objective(np.zeros((1, 3)))


def test_scipys_bounds_object():
    model = rv.from_linprog(COST, bounds=Bounds([0, -1, -np.inf], 5))
    np.testing.assert_array_equal(model.problem.lb, [0, -1, -np.inf])
    np.testing.assert_array_equal(model.problem.ub, 5)


def test_bounds_alone_tell_how_many_variables_there_are():
    assert rv.from_linprog(bounds=[(0, 1)] * 4).problem.n_variables == 4
    with pytest.raises(ShapeError, match="number of variables is unknown"):
        rv.from_linprog(bounds=(0, 1))


def test_scipys_bounds_alone_tell_it_too():
    assert rv.from_linprog(bounds=Bounds([0, 0], [1, 1])).problem.n_variables == 2


def test_right_hand_sides_may_differ_by_instance():
    model = rv.from_linprog(COST, A_ub, np.array([[4.0, 6.0], [2.0, 3.0]]))
    both = model.problem.solve(np.tile(COST, (2, 1)))
    for k, b in enumerate(([4.0, 6.0], [2.0, 3.0])):
        assert both.objective[k] == pytest.approx(linprog(COST, A_ub, b).fun)


def test_names():
    model = rv.from_linprog(COST, A_ub, b_ub, A_eq, b_eq, names=["bread", "milk", "tea"])
    assert model.variable_names == ("bread", "milk", "tea")
    assert model.ub_names == ("ub0", "ub1")
    assert model.eq_names == ("eq0",)
    assert rv.from_linprog(COST).variable_names == ("x0", "x1", "x2")


def test_integers_are_relaxed_with_a_warning():
    with pytest.warns(RelaxationWarning, match="2 of 3 variables must be whole numbers and 1 of 3"):
        model = rv.from_linprog(COST, A_ub, b_ub, bounds=(1, 4), integrality=[1, 0, 3])
    assert model.integer.tolist() == [True, False, True]
    np.testing.assert_array_equal(model.problem.lb, [1, 1, 0])  # 3: whole, or 0
    with pytest.warns(RelaxationWarning, match="0 or above a threshold"):
        below = rv.from_linprog([1.0], bounds=(-5, -2), integrality=2)
    assert (below.problem.lb[0], below.problem.ub[0]) == (-5, 0)


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"bounds": [(0, 1)] * 2}, "3 pairs; got shape"),
        ({"bounds": np.zeros((2, 3))}, "Transpose"),
        ({"bounds": "all"}, "pairs"),
        ({"bounds": [(2, 1)]}, "must not exceed"),
        ({"c": [1.0, np.nan, 0.0]}, "`c` must be finite; got nan at entry 1"),
        ({"c": [[1.0, 0.0], [2.0, 0.0]]}, "one for each variable"),
        ({"integrality": [0, 1]}, "`integrality`"),
        ({"integrality": 5}, "`integrality`"),
        ({"names": ["a", "b"]}, "3 different names"),
        ({"names": ["a", "b", "a"]}, "3 different names"),
        ({"A_ub": np.ones((1, 4)), "b_ub": [1.0]}, "`A_ub` must have a column for each of the 3"),
    ],
    ids=str,
)
def test_wrong_arguments_meet_a_sentence(arguments, words):
    with pytest.raises(InputError, match=words):
        rv.from_linprog(**{"c": COST} | arguments)


def test_columns_are_laid_flat_and_what_tells_how_to_solve_is_left_out():
    """As scipy takes them: (n, 1) costs, (m, 1) right-hand sides, all of its keywords."""
    given = {"c": COST[:, None], "A_ub": A_ub, "b_ub": b_ub[:, None], "A_eq": A_eq, "b_eq": [[2.0]]}
    how = {"method": "highs", "callback": None, "options": {"presolve": True}, "x0": None}
    model = rv.from_linprog(**given, **how)
    answer = model.problem.solve(model.cost[None])
    assert answer.objective[0] == pytest.approx(linprog(**given, **how).fun)
    assert model.problem.n_instances in (None, 1)


def test_costs_for_other_variables_meet_a_sentence():
    with pytest.raises(ShapeError, match=r"`A_ub` must have a column for each of the 2 variables"):
        rv.from_linprog(COST[:2], A_ub, b_ub)


@pytest.mark.parametrize("rows", ["one", "tuple", "several"])
@pytest.mark.parametrize("bounds", [None, Bounds(0, 3), Bounds([0, -1, 0], [2, 4, 1.5])], ids=str)
def test_whole_decisions_are_those_of_milp(bounds, rows):
    one = LinearConstraint(sparse.csr_array(A_ub), [-np.inf, 1.0], b_ub)
    same = LinearConstraint(A_eq, b_eq, b_eq)
    constraints = {"one": one, "tuple": (A_ub, -np.inf, b_ub), "several": [one, same]}[rows]
    arguments = {"integrality": [1, 1, 0], "bounds": bounds, "constraints": constraints}
    with pytest.warns(RelaxationWarning):
        model = rv.from_milp(COST, **arguments)
    expected = milp(COST, **arguments)
    answer = model.integer_problem.solve(model.cost[None])
    assert answer.optimal.all()
    assert answer.objective[0] == pytest.approx(expected.fun)
    assert model.integer_problem.fraction(answer.x) == 0


def test_a_constraint_of_milp_that_is_none_is_refused():
    with pytest.raises(InputError, match="Constraint 0 must be a LinearConstraint or a tuple"):
        rv.from_milp(COST, constraints=[(A_ub, b_ub)])
