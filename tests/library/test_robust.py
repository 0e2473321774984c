"""Hostile input: a sentence or the right answer, never a crash, a hang or a silent wrong number."""

import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch

import revealed as rv
from helpers import (
    AGREEMENT,
    Subclass,
    disagreement,
    every_other,
    memory_mapped,
    read_only,
    tiny_path,
    with_entry,
)
from revealed.errors import InfeasibleDecisionError, InputError, RevealedError, ShapeError
from revealed.projection.cpu.reference import reference_projection

NAN, INF = np.nan, np.inf
PROBLEM = rv.problems.grid_shortest_path(3, 3)
N = PROBLEM.n_variables
RNG = np.random.default_rng(0)
X = PROBLEM.solve(RNG.uniform(0.5, 1.5, (4, N))).x
Q = RNG.standard_normal((4, N))
Q /= np.abs(Q).max()
BROKEN = InfeasibleDecisionError
M = PROBLEM.eq_rows.shape[0]


@dataclass(frozen=True)
class Row:
    """One hostile call. With `error` it must raise that, with `phrase` in the sentence; otherwise
    the answer must be that of the plain float64 costs."""

    name: str
    costs: Any = None
    X: Any = None
    margin: Any = 1.0
    tol: Any = 1e-5
    options: dict[str, Any] = field(default_factory=dict)
    error: type[RevealedError] | None = None
    phrase: str = ""

    def __str__(self):
        return self.name


def refused(name, error, phrase, costs=None, **parts):
    return Row(name, costs, error=error, phrase=phrase, **parts)


def option(name, value, phrase, error=InputError):
    shown = f"{value.flat[0]} {value.shape}" if isinstance(value, np.ndarray) else repr(value)
    return refused(f"{name}={shown}", error, phrase, options={name: value})


MIXED = np.where(np.arange(N) % 2, 1e300, 1e-300) * Q
SHAPE = rf"`costs` must have shape \(B, {N}\)"
REAL = "must hold real numbers"
# fmt: off
ROWS = [
    # costs: values
    refused("nan", InputError, "got nan in row 2, column 5", with_entry(Q, NAN)),
    refused("inf", InputError, "got inf in row 2, column 5", with_entry(Q, INF)),
    refused("-inf", InputError, "got -inf in row 2, column 5", with_entry(Q, -INF)),
    refused("nan in float16", InputError, "got nan", with_entry(Q, NAN).astype("f2")),
    refused("nan in torch", InputError, "got nan", torch.tensor(with_entry(Q, NAN))),
    refused("beyond float64", InputError, "inf", Q.astype("g") * np.longdouble(10) ** 400),
    Row("1e300", Q * 1e300),
    Row("1e300, margin 0", Q * 1e300, margin=0.0),
    Row("1e300, margin 1e300", Q * 1e300, margin=1e300),
    Row("1e300 by reference", Q * 1e300, options={"method": "reference"}),
    Row("1e300 by clarabel", Q * 1e300, options={"method": "clarabel"}),
    Row("1e-300", Q * 1e-300),
    Row("1e-300, margin 0", Q * 1e-300, margin=0.0),
    Row("1e-300, margin 1e-300", Q * 1e-300, margin=1e-300),
    Row("margin 1e300", Q, margin=1e300),
    Row("margin 1e-300", Q, margin=1e-300),
    Row("zeros", 0.0 * Q),
    Row("zeros, margin 0", 0.0 * Q, margin=0.0),
    Row("negative zeros", -0.0 * np.abs(Q), margin=0.0),
    Row("1e300 and 1e-300", MIXED),
    Row("1e300 and 1e-300, margin 0", MIXED, margin=0.0),
    Row("one instance of 1e300, others not", np.array([[1e300], [1], [1], [1e-300]]) * Q),
    Row("denormals", Q * 1e-310),
    Row("near the largest float", Q * 1e308),
    # costs: shapes
    refused("0-D", ShapeError, SHAPE, np.float64(3.0)),
    refused("a number", ShapeError, SHAPE, 3),
    refused("1-D", ShapeError, r"For one instance use `costs\[None\]`", Q[0]),
    refused("3-D", ShapeError, r"got \(1, 4, 24\)", Q[None]),
    refused("one column short", ShapeError, r"got \(4, 23\)", Q[:, :-1]),
    refused("one column more", ShapeError, r"got \(4, 25\)", np.hstack([Q, Q[:, :1]])),
    refused("transposed", ShapeError, "Transpose it", Q.T),
    refused("too few rows", ShapeError, "each of the 4 decisions; got 3", Q[:3]),
    refused("too many rows", ShapeError, "each of the 4 decisions; got 8", np.vstack([Q, Q])),
    refused("no rows", ShapeError, "each of the 4 decisions; got 0", Q[:0]),
    refused("ragged", ShapeError, "rows of different lengths", [[1.0], [1.0, 2.0]]),
    refused("empty list", ShapeError, SHAPE, []),
    # costs: types
    refused("complex", InputError, f"{REAL}; got dtype complex128", Q.astype(complex)),
    refused("object", InputError, f"{REAL}; got dtype object", Q.astype(object)),
    refused("str", InputError, REAL, Q.astype(str)),
    refused("a word", InputError, REAL, "costs"),
    refused("None inside", InputError, REAL, [[None] * N] * 4),
    refused("a dict", InputError, REAL, {"costs": Q}),
    refused("complex torch", InputError, REAL, torch.tensor(Q).to(torch.complex128)),
    refused("sparse torch", InputError, "to_dense", torch.tensor(Q).to_sparse()),
    Row("int", np.round(Q * 5).astype(int)),
    Row("unsigned bytes", np.round(np.abs(Q) * 200).astype(np.uint8)),
    Row("bool", Q > 0),
    Row("float16", Q.astype(np.float16)),
    Row("float32", Q.astype(np.float32)),
    Row("long double", Q.astype(np.longdouble)),
    Row("big endian", Q.astype(">f8")),
    Row("lists", Q.tolist()),
    Row("tuples", tuple(map(tuple, Q))),
    Row("a subclass", Q.view(Subclass)),
    Row("read-only", read_only(Q)),
    Row("every other entry", every_other(Q)),
    Row("Fortran order", np.asfortranarray(Q)),
    Row("negative strides", Q[::-1, ::-1].copy()[::-1, ::-1]),
    Row("one row repeated without a copy", np.broadcast_to(Q[0], Q.shape)),
    Row("memory-mapped", memory_mapped(Q)),
    Row("torch float64", torch.tensor(Q)),
    Row("torch int", torch.tensor(np.round(Q * 5).astype(np.int32))),
    Row("torch requires grad", torch.tensor(Q, requires_grad=True)),
    Row("torch transposed", torch.tensor(Q.T.copy()).T),
    # decisions
    refused("decisions nan", InputError, "`decisions` .* got nan in row 2", X=with_entry(X, NAN)),
    refused("decisions inf", InputError, "`decisions` must be finite", X=with_entry(X, INF)),
    refused("decisions 1-D", ShapeError, r"use `decisions\[None\]`", X=X[0]),
    refused("decisions of another size", ShapeError, "`decisions` must have shape", X=X[:, 1:]),
    refused("decisions of text", InputError, REAL, X=X.astype(str)),
    refused("decisions doubled", BROKEN, "row 0: it gives 2, b_eq is 1, a relative", X=2 * X),
    refused("decisions 1e300", BROKEN, "Decision 0 breaks equality row", X=1e300 * X),
    refused("one below its bound", BROKEN, r"Decision 2 .*\(1 of 4", X=with_entry(X, -1.0)),
    refused("all below their bounds", BROKEN, "the lower bound of entry", X=X - 1e-3),
    Row("decisions with noise of 5e-6", Q, X=X + 5e-6 * (np.arange(N) == 3)),
    Row("decisions in float32", Q, X=X.astype(np.float32)),
    Row("decisions bool", Q, X=X > 0.5),
    Row("decisions read-only", Q, X=read_only(X)),
    Row("decisions in torch", Q, X=torch.tensor(X)),
    # margin, and tolerance of the sets
    refused("margin nan", InputError, "`margin` must be finite and at least 0", margin=NAN),
    refused("margin inf", InputError, "`margin` must be finite", margin=INF),
    refused("margin negative", InputError, "at least 0; got -1", margin=-1.0),
    refused("one margin negative", InputError, "at least 0; got -2", margin=[1, 1, -2, 1]),
    refused("margins too few", ShapeError, r"one number or \(4,\)", margin=[1.0, 2.0]),
    refused("margin 2-D", ShapeError, r"got shape \(4, 1\)", margin=np.ones((4, 1))),
    refused("margin text", InputError, f"`margin` {REAL}", margin="one"),
    refused("margin None", InputError, f"`margin` {REAL}", margin=None),
    *(refused(f"sets with tol {t}", InputError, "`tol` must", tol=t) for t in (NAN, -1, 1, [0, 0])),
    Row("margin in torch", Q, margin=torch.tensor([1, 0, 2, 3])),
    Row("margin int", Q, margin=3),
    # options
    *(option("tol", v, "between 0 and 1") for v in (NAN, INF, 0, -1.0, 1, "a", None)),
    *(option("method", v, "must be one of auto, kernel") for v in ("newton", None, 3, ["auto"])),
    *(option("max_iter", v, "at least 1") for v in (0, -1, 1.5, None, "3")),
    *(option("threads", v, "at least 1") for v in (0, -2, 1.5, "2")),
    *(option("time_limit", v, "at least 0") for v in (-1.0, NAN, "3")),
    *(option("warm_start", np.full((4, M), v), "must be finite") for v in (NAN, INF, -INF)),
    option("warm_start", np.zeros((3, M)), r"shape \(4, 9\); got shape \(3, 9\)", ShapeError),
    option("warm_start", np.zeros(M), r"got shape \(9,\)", ShapeError),
    option("warm_start", "last", REAL),
    *(
        Row(f"warm start of {size:g}", Q, options={"warm_start": np.full((4, M), size)})
        for size in (1e-300, 1e6, 1e20, 1e300)
    ),
    Row("warm start in float32", Q, options={"warm_start": torch.zeros(4, M)}),
    Row("tol in float32", Q, options={"tol": np.float32(1e-8)}),
    Row("tol below any rounding", Q, options={"tol": 1e-300}),
    Row("max_iter beyond int64", Q, options={"max_iter": 10**30}),
    Row("more threads than instances", Q, options={"threads": 1000}),
    Row("time without end", Q, options={"time_limit": INF}),
    Row("time beyond the clock", Q, options={"time_limit": 1e300}),
    Row("time limit in float32", Q, options={"time_limit": np.float32(60)}),
]
# fmt: on


def call(row):
    costs = Q if row.costs is None else row.costs
    sets = rv.OptimalitySet(PROBLEM, X if row.X is None else row.X, row.margin, tol=row.tol)
    return costs, sets, rv.project(costs, sets, **row.options)


def snapshot(row):
    arrays = (row.costs, row.X, row.margin, *row.options.values(), Q, X)
    kept = [value.copy() for value in arrays if isinstance(value, np.ndarray)]
    tensors = [value for value in arrays if isinstance(value, torch.Tensor)]
    return kept + [value.detach().to_dense().clone().numpy() for value in tensors]


def plain_array(value):
    return np.asarray(value.detach().numpy() if isinstance(value, torch.Tensor) else value, float)


def test_the_table_is_long_enough():
    assert len(ROWS) >= 45
    assert len({row.name for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("row", [row for row in ROWS if row.error], ids=str)
def test_a_sentence(row):
    before = snapshot(row)
    with pytest.raises(row.error, match=row.phrase) as caught:
        call(row)
    assert str(caught.value).endswith(".")
    for was, now in zip(before, snapshot(row), strict=True):
        np.testing.assert_array_equal(was, now)


@pytest.mark.parametrize("row", [row for row in ROWS if not row.error], ids=str)
def test_the_right_answer(row):
    before = snapshot(row)
    costs, sets, p = call(row)
    for was, now in zip(before, snapshot(row), strict=True):
        np.testing.assert_array_equal(was, now)
    assert isinstance(p.point, torch.Tensor) == isinstance(costs, torch.Tensor)
    costs, points, solved = map(plain_array, (costs, p.point, p.solved))
    assert np.isfinite(points).all()
    assert solved.all() == (row.options.get("tol") != 1e-300)
    for b in range(len(sets)):
        unit = max(np.abs(costs[b]).max(), sets.margins[b]) or 1.0
        trusted = reference_projection(sets, costs[b], b)[0]
        four = (points[b] / unit, trusted / unit, costs[b] / unit, sets.margins[b] / unit)
        assert disagreement(*four) <= AGREEMENT


@pytest.mark.parametrize("sets", [None, "sets", X, PROBLEM, 3], ids=lambda v: type(v).__name__)
def test_sets_of_the_wrong_kind_meet_a_sentence(sets):
    with pytest.raises(InputError, match="`sets` must be"):
        rv.project(Q, sets)


@pytest.mark.parametrize("problem", [None, "grid", X], ids=lambda v: type(v).__name__)
def test_problems_of_the_wrong_kind_meet_a_sentence(problem):
    with pytest.raises(InputError, match="`problem` must be a LinearProgram"):
        rv.OptimalitySet(problem, X)


def test_sets_of_another_problem():
    other = rv.OptimalitySet(tiny_path(), [[0, 0, 1.0]] * 4)
    with pytest.raises(ShapeError, match=r"must have shape \(B, 3\)"):
        rv.project(Q, other)
    elsewhere = rv.project(np.ones((4, 3)), other)
    with pytest.raises(ShapeError, match="a Projection of the same sets"):
        rv.project(Q, rv.OptimalitySet(PROBLEM, X), warm_start=elsewhere)


@pytest.mark.parametrize("unit", [1e300, 1e-300])
def test_membership_at_the_ends_of_the_scale(unit):
    sets = rv.OptimalitySet(PROBLEM, X, 0.0)
    inside = rv.project(Q, sets).point
    assert sets.contains(inside * unit).all()
    assert not sets.contains(Q * unit).any()
    assert (sets.max_margin(Q * unit) < 0).all()


def test_an_answer_beyond_float64_is_not_called_solved():
    sets = rv.OptimalitySet(PROBLEM, X, 1.7e308)
    p = rv.project(Q * 1.7e308, sets)
    assert np.isfinite(p.point[p.solved]).all()


def test_the_answer_does_not_share_memory_with_the_question():
    sets = rv.OptimalitySet(PROBLEM, X)
    inside = rv.project(Q, sets).point
    p = rv.project(inside, sets)
    p.point[:] = 0.0
    assert (inside != 0).any()
    start = rv.project(Q, sets)
    kept = start.multipliers.copy()
    rv.project(2 * Q, sets, warm_start=start)
    np.testing.assert_array_equal(start.multipliers, kept)


def test_two_threads_at_once():
    sets = rv.OptimalitySet(PROBLEM, X)
    problem = rv.problems.knapsack([3.0, 4.0, 5.0], 7.0)
    values = -np.random.default_rng(1).uniform(1, 2, (9, 3))
    other = rv.OptimalitySet(problem, problem.solve(values).x)
    jobs = [(Q * k, sets) for k in range(1, 9)] + [(values * k, other) for k in range(1, 9)]
    alone = [rv.project(costs, own).point for costs, own in jobs]
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(lambda job: rv.project(*job, threads=2).point, jobs * 4))
    for k, point in enumerate(together):
        np.testing.assert_array_equal(point, alone[k % len(jobs)])


WORST = """
    import os, sys
    import numpy as np
    import revealed as rv
    problem = rv.problems.grid_shortest_path(4, 4, neighbors=8)
    rng = np.random.default_rng(0)
    X = problem.solve(rng.uniform(0.5, 1.5, (64, problem.n_variables))).x
    Q = rng.standard_normal(X.shape)
    sets = rv.OptimalitySet(problem, X)
    flat = rv.OptimalitySet(problem, X, 0.0)
    for unit in (1e308, 1e300, 1e-300, 1e-320, 0.0):
        rv.project(Q / np.abs(Q).max() * unit, sets)
        rv.project(Q / np.abs(Q).max() * unit, flat, tol=1e-300)
    rv.project(np.where(Q > 0, 1e300, 1e-300), flat)
    for size in (1e300, -1e300, 1e155):
        rv.project(Q, sets, warm_start=np.full((64, 16), size))
    for options in ({"time_limit": 0}, {"max_iter": 1}, {"threads": 64}, {"time_limit": 1e-9}):
        rv.project(Q, flat, **options)
    for bad in (np.nan, np.inf):
        try:
            rv.project(np.where(Q > 2, bad, Q), sets)
        except rv.InputError:
            pass
    rv.project(Q, sets, threads=2)
    child = os.fork() if hasattr(os, "fork") else -1
    if child == 0:  # threads do not survive a fork; the child must not wait for them
        rv.project(Q, sets, threads=2)
        os._exit(0)
    if child > 0:
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    print("still standing")
"""


def test_the_worst_in_a_process_of_their_own():
    command = [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(WORST)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=os.environ)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "still standing"
    assert "Exception" not in done.stderr
