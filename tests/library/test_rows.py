"""Rows: every way to give a matrix ends in the same pattern and values."""

import numpy as np
import pytest
import torch
from scipy import sparse

from revealed._common.rows import Rows
from revealed.errors import InputError, ShapeError

DENSE = np.array([[1.0, 0.0, -2.0], [0.0, 0.0, 0.0], [0.0, 3.0, 4.0]])

SAME_MATRIX = {
    "dense": DENSE,
    "fortran order": np.asfortranarray(DENSE),
    "nested lists": DENSE.tolist(),
    "integers": DENSE.astype(np.int8),
    "float32": DENSE.astype(np.float32),
    "read-only": np.broadcast_to(DENSE, (3, 3)),
    "torch": torch.tensor(DENSE, requires_grad=True),
    "bsr": sparse.bsr_array(DENSE),
    "coo": sparse.coo_array(DENSE),
    "csc": sparse.csc_matrix(DENSE),
    "dia": sparse.dia_array(DENSE),
    "lil": sparse.lil_array(DENSE),
    "duplicates": sparse.coo_array(
        ([0.5, 0.5, -2.0, 3.0, 4.0], ([0, 0, 0, 2, 2], [0, 0, 2, 1, 2])), shape=(3, 3)
    ),
    "boolean duplicates and stored zeros": sparse.coo_array(
        ([1.0, 0.0, -2.0, 3.0, 5.0, -1.0], ([0, 1, 0, 2, 2, 2], [0, 1, 2, 1, 2, 2])), shape=(3, 3)
    ),
    "unsorted": sparse.csr_array(([-2.0, 1.0, 4.0, 3.0], [2, 0, 2, 1], [0, 2, 2, 4])),
}


@pytest.mark.parametrize("given", SAME_MATRIX.values(), ids=SAME_MATRIX.keys())
def test_every_form_gives_the_same_rows(given):
    rows = Rows.build(given, "A")
    assert rows.shape == (3, 3)
    assert not rows.per_instance
    np.testing.assert_array_equal(rows.indptr, [0, 2, 2, 4])
    np.testing.assert_array_equal(rows.indices, [0, 2, 1, 2])
    np.testing.assert_array_equal(rows.data, [[1.0, -2.0, 3.0, 4.0]])
    np.testing.assert_array_equal(rows.matrix().toarray(), DENSE)
    np.testing.assert_array_equal(rows.largest, [[2.0, 0.0, 4.0]])
    np.testing.assert_array_equal(rows.magnitude.matrix().toarray(), np.abs(DENSE))
    assert rows.indices.dtype == rows.indptr.dtype == np.int64


def test_boolean_duplicates_are_summed_as_numbers():
    twice = sparse.coo_array(([True, True], ([0, 0], [0, 0])), shape=(1, 1))
    assert Rows.build(twice, "A").data.tolist() == [[2.0]]


def test_the_input_is_neither_changed_nor_kept():
    given = sparse.csr_array(([2.0, 1.0, 0.0], [1, 0, 0], [0, 2, 3]), shape=(2, 2))
    before = given.copy()
    rows = Rows.build(given, "A")
    given.data[:] = 9.0
    np.testing.assert_array_equal(rows.matrix().toarray(), before.toarray())
    assert given.nnz == 3
    dense = np.eye(2)
    rows = Rows.build(dense, "A")
    dense[:] = 7.0
    np.testing.assert_array_equal(rows.matrix().toarray(), np.eye(2))


@pytest.mark.parametrize("form", ["stack", "dense list", "sparse tuple", "torch list", "mixed"])
def test_one_matrix_for_each_instance(form):
    rng = np.random.default_rng(0)
    stack = rng.integers(-2, 3, (4, 3, 5)) * (rng.random((4, 3, 5)) < 0.5).astype(float)
    given = {
        "stack": stack,
        "dense list": list(stack),
        "sparse tuple": tuple(sparse.csc_array(part) for part in stack),
        "torch list": [torch.tensor(part) for part in stack],
        "mixed": [stack[0], sparse.coo_array(stack[1]), stack[2].tolist(), stack[3]],
    }[form]
    rows = Rows.build(given, "A", n=5)
    assert rows.per_instance
    assert rows.n_instances == 4
    X = rng.standard_normal((4, 5))
    np.testing.assert_allclose(rows.times(X), np.einsum("bmn,bn->bm", stack, X), atol=1e-14)
    np.testing.assert_array_equal(rows.largest, np.abs(stack).max(axis=2))
    for i in range(4):
        assert rows.matrix(i).nnz == np.count_nonzero(stack[i])
        np.testing.assert_array_equal(rows.matrix(i).toarray(), stack[i])
    part = rows.take(np.array([2, 0]))
    np.testing.assert_allclose(part.times(X[:2])[0], stack[2] @ X[0], atol=1e-14)


def test_shared_rows_times_any_batch_and_empty_shapes():
    rows = Rows.build(DENSE, "A")
    X = np.random.default_rng(1).standard_normal((7, 3))
    np.testing.assert_allclose(rows.times(X), X @ DENSE.T)
    assert rows.times(X[:0]).shape == (0, 3)
    assert rows.take(np.array([0])) is rows
    none = Rows.build(None, "A", n=3)
    assert none.shape == (0, 3)
    assert none.times(X).shape == (7, 0)
    assert none.largest.shape == (1, 0)
    no_instances = Rows.build(np.zeros((0, 2, 3)), "A")
    assert no_instances.times(X[:0]).shape == (0, 2)


def test_rows_are_read_only():
    rows = Rows.build(DENSE, "A")
    for array in (rows.data, rows.indices, rows.indptr, rows.largest):
        with pytest.raises(ValueError, match="read-only"):
            array[..., 0] = 1
    with pytest.raises(AttributeError):
        rows.shape = (1, 1)  # type: ignore[misc]


REFUSED = [
    (np.array([[1.0, np.nan]]), InputError, "got nan in row 0, column 1"),
    (sparse.csr_array(([1.0, np.inf], [0, 1], [0, 1, 2])), InputError, "inf in row 1, column 1"),
    (np.array([[[1.0]], [[-np.inf]]]), InputError, r"`A\[1\]` must be finite; got -inf in row 0"),
    ([np.eye(2), np.full((2, 2), np.nan)], InputError, "must be finite; got nan"),
    ([np.eye(2), np.eye(3)], ShapeError, r"`A\[0\]` is \(2, 2\), `A\[1\]` is \(3, 3\)"),
    ([sparse.eye_array(2), np.ones(2)], ShapeError, r"`A\[1\]` must be an \(m, n\) matrix"),
    (np.ones(3), ShapeError, r"For one row use `A\[None\]`"),
    (np.ones((1, 1, 1, 1)), ShapeError, r"got shape \(1, 1, 1, 1\)"),
    ([[1.0], [1.0, 2.0]], ShapeError, "rows of different lengths"),
    (np.array([["a"]]), InputError, "must hold real numbers"),
    (np.eye(2) * 1j, InputError, "must hold real numbers; got dtype complex128"),
    (sparse.eye_array(2) * 1j, InputError, "must hold real numbers; got dtype complex128"),
    (np.array([[None]]), InputError, "got dtype object"),
    (np.ma.masked_equal(np.eye(2), 0.0), InputError, "2 masked entries"),
    (torch.eye(2).to_sparse(), InputError, "dense tensor"),
    (None, ShapeError, "number of columns must be given"),
]


@pytest.mark.parametrize("given, error, phrase", REFUSED)
def test_bad_matrices_meet_a_sentence(given, error, phrase):
    with pytest.raises(error, match=phrase):
        Rows.build(given, "A")


def test_wrong_widths_and_batches_are_named():
    with pytest.raises(ShapeError, match="must have 4 columns"):
        Rows.build(DENSE, "A", n=4)
    with pytest.raises(ShapeError, match="hold 2 instances; got 3 vectors"):
        Rows.build(np.ones((2, 1, 3)), "A").times(np.ones((3, 3)))
