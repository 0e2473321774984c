"""LinearProgram as data, and the arrays that come in: what is accepted, refused and kept."""

import copy
import pickle

import numpy as np
import pytest
import torch
from scipy import sparse

from revealed._common.arrays import as_costs, as_index
from revealed.errors import InputError, RevealedError, ShapeError
from revealed.problems.linear import LinearProgram

NAN, INF = np.nan, np.inf
ONES = np.ones((1, 2))


def everything_per_instance(B=4, m=2, n=3):
    rng = np.random.default_rng(0)
    return LinearProgram(
        A_eq=rng.standard_normal((B, 1, n)),
        b_eq=rng.standard_normal((B, 1)),
        A_ub=[sparse.csr_array(rng.standard_normal((m, n))) for _ in range(B)],
        b_ub=rng.standard_normal((B, m)),
        lb=-rng.random((B, n)),
        ub=rng.random((B, n)),
    )


def test_defaults_and_infinite_bounds():
    problem = LinearProgram(A_eq=[[1.0, 2.0, 0.0]], b_eq=[3.0])
    assert problem.n_variables == 3
    assert problem.n_instances is None
    assert problem.A_eq.shape == (1, 3)
    assert problem.A_ub.shape == (0, 3)
    assert problem.b_ub.shape == (0,)
    np.testing.assert_array_equal(problem.lb, np.zeros(3))
    np.testing.assert_array_equal(problem.ub, np.full(3, INF))
    free = LinearProgram(A_ub=ONES, b_ub=1.0, lb=None, ub=[1.0, INF])
    np.testing.assert_array_equal(free.lb, [-INF, -INF])
    np.testing.assert_array_equal(free.ub, [1.0, INF])


@pytest.mark.parametrize(
    "parts, n",
    [
        ({"A_eq": np.ones((0, 3)), "b_eq": []}, 3),
        ({"A_ub": ONES, "b_ub": INF}, 2),
        ({"lb": [0.0, -INF, 1.0, 2.0]}, 4),
        ({"lb": None, "ub": np.ones((5, 3))}, 3),
        ({"A_eq": sparse.csr_array((2, 3)), "b_eq": np.zeros(2)}, 3),
        ({"A_eq": torch.ones(1, 2), "b_eq": torch.ones(1), "ub": torch.tensor(4)}, 2),
        ({"A_eq": ONES, "b_eq": 1, "lb": [1, 2], "ub": [1, 2]}, 2),
    ],
)
def test_the_number_of_variables_comes_from_whatever_has_it(parts, n):
    assert LinearProgram(**parts).n_variables == n


REFUSED = [
    ({}, ShapeError, "number of variables is unknown"),
    ({"lb": 0.0, "ub": 1.0}, ShapeError, "number of variables is unknown"),
    ({"lb": []}, ShapeError, "at least one variable"),
    ({"A_eq": ONES}, ShapeError, "`A_eq` has 1 rows but `b_eq` is missing"),
    ({"A_ub": ONES}, ShapeError, "`A_ub` has 1 rows but `b_ub` is missing"),
    ({"lb": [0.0], "b_eq": 1.0}, ShapeError, "`b_eq` came without rows"),
    ({"lb": [0.0], "b_ub": [1.0]}, ShapeError, r"`b_ub` must be a scalar, \(0,\)"),
    ({"A_eq": ONES, "b_eq": [1.0, 2.0]}, ShapeError, r"one entry for each row of `A_eq`"),
    ({"A_eq": np.eye(2), "b_eq": np.ones((2, 1))}, ShapeError, r"Use `np.ravel\(b_eq\)`"),
    ({"A_eq": ONES, "b_eq": np.ones((1, 1, 1))}, ShapeError, r"got shape \(1, 1, 1\)"),
    ({"A_eq": ONES, "b_eq": 1.0, "A_ub": np.eye(3), "b_ub": 1.0}, ShapeError, "have 2 columns"),
    ({"A_eq": ONES, "b_eq": 1.0, "lb": np.zeros(3)}, ShapeError, "`lb` must be a scalar"),
    ({"A_eq": ONES, "b_eq": 1.0, "ub": np.ones((4, 3))}, ShapeError, "`ub` must be a scalar"),
    ({"A_eq": np.ones(2), "b_eq": 1.0}, ShapeError, r"For one row use `A_eq\[None\]`"),
    ({"A_eq": [[1.0, NAN]], "b_eq": 1.0}, InputError, "`A_eq` must be finite; got nan in row 0"),
    ({"A_ub": [[INF, 1.0]], "b_ub": 1.0}, InputError, "`A_ub` must be finite; got inf"),
    ({"A_eq": ONES, "b_eq": NAN}, InputError, "`b_eq` must be finite; got nan at entry 0"),
    ({"A_eq": ONES, "b_eq": [[1.0], [INF]]}, InputError, "got inf at instance 1, entry 0"),
    ({"A_ub": ONES, "b_ub": -INF}, InputError, r"`b_ub` must be finite or \+inf"),
    ({"A_ub": ONES, "b_ub": NAN}, InputError, "`b_ub` must be finite or .* got nan"),
    ({"lb": [0.0, NAN]}, InputError, "`lb` must be finite or -inf; got nan at entry 1"),
    ({"lb": [INF]}, InputError, "`lb` must be finite or -inf; got inf"),
    ({"lb": [0.0], "ub": -INF}, InputError, r"`ub` must be finite or \+inf; got -inf"),
    ({"lb": [0.0, 2.0], "ub": 1.0}, InputError, "lb = 2.0, ub = 1.0 at entry 1"),
    (
        {"lb": [0.0, 0.0], "ub": [[1.0, 1.0], [1.0, -1.0]]},
        InputError,
        "ub = -1.0 at instance 1, entry 1",
    ),
    (
        {"A_eq": ONES, "b_eq": np.ones((3, 1)), "ub": np.ones((4, 2))},
        ShapeError,
        "`b_eq` has 3, `ub` has 4",
    ),
    (
        {"A_eq": np.ones((2, 1, 2)), "b_eq": np.ones((3, 1))},
        ShapeError,
        "`b_eq` has 3, `A_eq` has 2",
    ),
    ({"A_eq": "rows", "b_eq": 1.0}, InputError, "must hold real numbers"),
    ({"lb": ["0", "1"]}, InputError, "`lb` must hold real numbers"),
    ({"lb": [1j]}, InputError, "`lb` must hold real numbers; got dtype complex128"),
    ({"lb": [[0.0], [0.0, 1.0]]}, ShapeError, "`lb` must be a rectangular array"),
    ({"lb": sparse.eye_array(2)}, InputError, r"`lb` must be a dense array; .*toarray"),
    ({"lb": [0.0], "structure": "grid"}, InputError, "`structure` must be one of"),
]


@pytest.mark.parametrize("parts, error, phrase", REFUSED)
def test_bad_parts_meet_a_sentence(parts, error, phrase):
    with pytest.raises(error, match=phrase) as caught:
        LinearProgram(**parts)
    assert isinstance(caught.value, RevealedError)
    assert str(caught.value).endswith(".")


def test_a_problem_never_changes():
    b = np.array([1.0])
    problem = LinearProgram(A_eq=ONES, b_eq=b)
    b[0] = 5.0
    assert problem.b_eq[0] == 1.0
    for array in (problem.b_eq, problem.lb, problem.ub, problem.A_eq.data):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 2.0
    with pytest.raises(AttributeError, match="never changes; build a new one to set `b_eq`"):
        problem.b_eq = b
    with pytest.raises(TypeError, match="not iterable"):
        iter(problem)


INDICES = [
    slice(1, 3),
    slice(None, None, -1),
    [3, 0],
    np.array([-1, 1], dtype=np.int32),
    np.array([True, False, True, False]),
    torch.tensor([2, 2]),
    2,
    [],
    slice(0, 0),
]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_slices_hold_the_chosen_instances(index):
    problem = everything_per_instance()
    chosen = as_index(index, 4)
    part = problem[index]
    assert part.n_instances == len(chosen)
    for name in ("b_eq", "b_ub", "lb", "ub"):
        np.testing.assert_array_equal(getattr(part, name), getattr(problem, name)[chosen])
    assert len(part.A_eq) == len(part.A_ub) == len(chosen)
    for i, k in enumerate(chosen):
        np.testing.assert_array_equal(part.A_eq[i].toarray(), problem.A_eq[k].toarray())
        np.testing.assert_array_equal(part.A_ub[i].toarray(), problem.A_ub[k].toarray())


@pytest.mark.parametrize(
    "index, error, phrase",
    [
        (4, IndexError, "Index 4 is outside the 4 instances"),
        ([0, -5], IndexError, "Index -5 is outside"),
        ([True, False], ShapeError, "mask of instances must have 4 entries; got 2"),
        ([0.5], InputError, "must hold integers"),
        ([[0]], ShapeError, "one-dimensional"),
    ],
)
def test_bad_indices_are_refused(index, error, phrase):
    with pytest.raises(error, match=phrase):
        everything_per_instance()[index]


def test_a_shared_problem_is_its_own_slice():
    problem = LinearProgram(A_eq=ONES, b_eq=1.0)
    assert problem[3] is problem
    assert problem[np.array([True])] is problem


def test_analyzes_are_kept_and_shared_where_the_matrices_are():
    problem = LinearProgram(A_eq=ONES, b_eq=np.ones((3, 1)))
    built = problem.cached("key", list)
    assert problem.cached("key", lambda: pytest.fail("built twice")) is built
    assert problem[1:].cached("key", lambda: pytest.fail("built twice")) is built
    own = everything_per_instance()
    assert own.cached("key", list) is not own[:2].cached("key", list)


def test_copies_and_pickles_solve_alike():
    problem = LinearProgram(A_eq=ONES, b_eq=1.0)
    costs = np.array([[1.0, 2.0]])
    x = problem.solve(costs).x  # leaves a solver model behind, which cannot be pickled
    assert copy.deepcopy(problem) is problem
    again = pickle.loads(pickle.dumps(problem))
    np.testing.assert_array_equal(again.solve(costs).x, x)


def test_repr_tells_the_sizes():
    assert repr(everything_per_instance()) == (
        "LinearProgram(3 variables, 1 equalities, 2 inequalities, 4 instances)"
    )


def test_violation_is_relative_and_blind_to_row_scale():
    rows = np.array([[1.0, 1.0], [0.0, 0.0]])
    x = np.array([[0.5, 0.5], [0.5, 0.6], [1.5, -0.5]])
    for scale in (1e-200, 1.0, 1e200):
        problem = LinearProgram(A_eq=rows * scale, b_eq=np.array([1.0, 0.0]) * scale, ub=1.25)
        violation = problem.constraint_violation(x)
        np.testing.assert_allclose(violation, [0.0, 0.1 / 3.1, 0.5], atol=1e-15)
    beyond = LinearProgram(A_ub=rows, b_ub=[INF, 0.0], lb=None).constraint_violation(x * 1e300)
    np.testing.assert_array_equal(beyond, np.zeros(3))
    with pytest.raises(ShapeError, match="`decisions` must have 4 rows; got 3"):
        everything_per_instance().constraint_violation(np.zeros((3, 3)))


COSTS = np.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize(
    "given",
    [
        COSTS.tolist(),
        COSTS.astype(np.float16),
        COSTS.astype(np.int64),
        COSTS.astype(">f8"),
        COSTS.astype(np.longdouble),
        np.asfortranarray(COSTS),
        np.repeat(COSTS, 2, axis=1)[:, ::2],
        np.broadcast_to(COSTS, (2, 3)),
        np.ma.array(COSTS),
    ],
)
def test_costs_become_contiguous_float64(given):
    array, restore = as_costs(given, 3)
    np.testing.assert_array_equal(array, COSTS)
    assert array.dtype == np.float64
    assert array.dtype.isnative
    assert array.flags.c_contiguous
    assert restore(array) is array


def test_plain_costs_are_not_copied():
    assert as_costs(COSTS, 3)[0] is COSTS


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int32])
def test_tensors_come_back_as_tensors(dtype):
    tensor = torch.tensor(COSTS, dtype=dtype).T.contiguous().T
    array, restore = as_costs(tensor.requires_grad_(dtype.is_floating_point), 3)
    np.testing.assert_array_equal(array, COSTS)
    assert restore(array).dtype == (dtype if dtype.is_floating_point else torch.float64)
    assert restore(array > 1).dtype == torch.bool
    assert restore(np.zeros(2, dtype=np.int8)).dtype == torch.int8
    frozen = array.copy()
    frozen.setflags(write=False)
    assert restore(frozen).tolist() == COSTS.tolist()


@pytest.mark.parametrize(
    "given, error, phrase",
    [
        (COSTS[0], ShapeError, r"For one instance use `costs\[None\]`"),
        (COSTS.T, ShapeError, r"Transpose it: `costs.T`"),
        (COSTS[None], ShapeError, r"\(B, 3\).* got \(1, 2, 3\)"),
        (COSTS[:, :2], ShapeError, r"got \(2, 2\)"),
        (3.0, ShapeError, r"got \(\)"),
        (None, InputError, "got dtype object"),
        ([[1.0], [1.0, 2.0]], ShapeError, "rows of different lengths"),
        (np.where(COSTS == 4, NAN, COSTS), InputError, "got nan in row 1, column 1"),
        (np.where(COSTS >= 2, -INF, COSTS), InputError, "row 0, column 2 .4 such entries"),
        (COSTS.astype(np.longdouble) * np.longdouble("1e400"), InputError, "must be finite"),
        (COSTS * 1j, InputError, "got dtype complex128"),
        (COSTS.astype(str), InputError, "must hold real numbers"),
        (COSTS.astype("M8[s]"), InputError, "must hold real numbers"),
        (sparse.csr_array(COSTS), InputError, "must be a dense array"),
        (torch.tensor(COSTS).to_sparse(), InputError, "must be a dense tensor"),
        (torch.tensor(COSTS) * 1j, InputError, "must hold real numbers"),
        (torch.tensor([[1.0, NAN, 0.0]]), InputError, "got nan in row 0, column 1"),
        (torch.zeros(3), ShapeError, r"costs\[None\]"),
    ],
)
def test_bad_costs_meet_a_sentence(given, error, phrase):
    with pytest.raises(error, match=phrase):
        as_costs(given, 3)
