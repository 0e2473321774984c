"""A run goes on from a checkpoint only with the data and constraints that it began with."""

import json

import numpy as np
import pytest
import torch

import revealed as rv
from revealed.fit import LinearModel, checkpoint, erm
from test_erm import PROBLEM, routes


def program(kind, change=None):
    """Sets of some kind, the same decisions every time; `change` alters what explains them."""
    rng = np.random.default_rng(2)
    A, X = rng.random((2, 4)), rng.random((6, 4)) * (rng.random((6, 4)) < 0.6)
    Q, form, soft = np.eye(4), None, None
    sides = {"A_ub": A, "b_ub": X @ A.T + 1.0}
    ub = 3.0 if change == "bound" else 2.0
    if change == "matrix":
        sides["A_ub"] = 0.5 * A
    if change == "right-hand side":
        sides["b_ub"][3, 1] = X[3] @ A[1]
    if kind == "per instance":
        sides["A_ub"] = np.repeat(A[None], 6, axis=0)
        sides["A_ub"][5, 0, 0] += 0.25 if change == "one matrix" else 0.0
    if kind == "form":
        form = rv.CostForm(np.eye(4), lower=-2.0 if change == "limit" else -1.0)
    if kind == "soft":
        soft = 50.0 if change == "price" else 100.0
    if kind == "quadratic":
        Q[0, 0] = 2.0 if change == "risk" else 1.0
        problem = rv.QuadraticProgram(Q=Q, lb=0.0, ub=ub, **sides)
    elif kind == "convex":
        factor, right = 2.0 if change == "objective" else 1.0, 5.0 if change == "function" else 4.0
        problem = rv.ConvexProgram(
            lambda x, w: (w * x).sum() + 0.5 * factor * (x * x).sum(),
            4,
            4,
            inequalities=[lambda x: (x * x).sum() - right],
            lb=0.0,
            ub=ub,
            **sides,
        )
    else:
        problem = rv.LinearProgram(lb=0.0, ub=ub, **sides)
    sets = rv.OptimalitySet(problem, X, form=form, soft=soft)
    if kind != "mixed":
        return sets
    last = rv.LinearProgram(ub=np.full(4, 1.5 if change == "last problem" else 2.0))
    return rv.OptimalitySet.concatenate([sets, rv.OptimalitySet(last, X)])[[0, 7, 3, 9, 5]]


CHANGES = {
    "plain": ["matrix", "right-hand side", "bound"],
    "per instance": ["one matrix", "right-hand side", "bound"],
    "form": ["matrix", "limit"],
    "soft": ["bound", "price"],
    "quadratic": ["matrix", "risk"],
    "convex": ["bound", "objective", "function"],
    "mixed": ["matrix", "last problem"],
}


@pytest.mark.parametrize("kind, change", [(k, c) for k, own in CHANGES.items() for c in own])
def test_a_checkpoint_under_other_constraints_is_refused(kind, change, tmp_path):
    sets = program(kind)
    Z = np.random.default_rng(4).standard_normal((len(sets), 3))
    settings = {"checkpoint": tmp_path, "checkpoint_every": 1, "log": tmp_path / "log.jsonl"}
    erm(LinearModel(), Z, sets, epochs=2, **settings)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}

    words = r"these differ: constraints \(.*, now .*\)\. Choose another folder"
    with pytest.raises(rv.InputError, match=words):
        erm(LinearModel(), Z, program(kind, change), epochs=3, **settings)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert len(erm(LinearModel(), Z, program(kind), epochs=3, **settings)) == 4


def test_a_checkpoint_under_other_validation_is_refused(tmp_path):
    Z, sets = routes()
    settings = {"checkpoint": tmp_path, "checkpoint_every": 1, "epochs": 2}
    erm(LinearModel(), Z, sets, validation=routes(seed=1), **settings)
    seen, watched = routes(seed=1)
    wider = rv.LinearProgram(PROBLEM.A_eq, PROBLEM.b_eq, ub=2.0)
    others = (seen + 1, watched), (seen, rv.OptimalitySet(wider, watched.decisions))
    for other in others:
        with pytest.raises(rv.InputError, match="these differ: validation"):
            erm(LinearModel(), Z, sets, validation=other, **settings)
    for same in (seen.tolist(), torch.from_numpy(seen)):
        erm(LinearModel(), Z, sets, validation=(same, watched), **settings)


def test_a_checkpoint_from_before_constraints_were_written_down_is_refused(tmp_path):
    Z, sets = routes()
    settings = {"checkpoint": tmp_path, "checkpoint_every": 1}
    erm(LinearModel(), Z, sets, epochs=2, **settings)
    index = json.loads((tmp_path / checkpoint.INDEX).read_text())
    del index["run"]["constraints"]
    (tmp_path / checkpoint.INDEX).write_text(json.dumps(index))
    words = r"constraints \(not told, now 24 variables, 16 equalities, 0 inequalities, "
    with pytest.raises(rv.InputError, match=words):
        erm(LinearModel(), Z, sets, epochs=3, **settings)


def test_the_checksum_knows_sets_by_what_they_hold():
    sets = program("per instance")
    again = sets[np.arange(len(sets))]
    assert checkpoint.constraints(again) == checkpoint.constraints(sets)
    assert checkpoint.fingerprint(again) == checkpoint.fingerprint(sets)
    dense = rv.LinearProgram(PROBLEM.A_eq.toarray(), PROBLEM.b_eq)  # and no structure
    given = routes()[1]
    assert checkpoint.constraints(given) == checkpoint.constraints(
        rv.OptimalitySet(dense, given.decisions)
    )
    large = np.arange(3 * checkpoint.chunks(9000)[0].stop, dtype=float).reshape(-1, 2)
    spread = np.repeat(large, 2, axis=1)[:, ::2]  # the same numbers, not next to each other
    assert checkpoint.fingerprint(given, large) == checkpoint.fingerprint(given, spread)
    assert checkpoint.fingerprint(given, large) != checkpoint.fingerprint(given, large + 1)
