"""A run goes on from a checkpoint only with the data and constraints that it began with."""

import errno
import hashlib
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch
from safetensors import torch as safetensors
from test_erm import PROBLEM, routes

import revealed as rv
from revealed.fit import LinearModel, checkpoint, erm


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
    erm(LinearModel(), Z, sets, max_epochs=2, **settings)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}

    words = r"these differ: constraints \(.*, now .*\)\. Choose another folder"
    with pytest.raises(rv.InputError, match=words):
        erm(LinearModel(), Z, program(kind, change), max_epochs=3, **settings)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert len(erm(LinearModel(), Z, program(kind), max_epochs=3, **settings)) == 4


def test_a_checkpoint_under_other_validation_is_refused(tmp_path):
    Z, sets = routes()
    settings = {"checkpoint": tmp_path, "checkpoint_every": 1, "max_epochs": 2}
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
    erm(LinearModel(), Z, sets, max_epochs=2, **settings)
    resealed(tmp_path, index=lambda index: index["run"].pop("constraints"))
    words = r"constraints \(not recorded, now 24 variables, 16 equalities, 0 inequalities, "
    with pytest.raises(rv.InputError, match=words):
        erm(LinearModel(), Z, sets, max_epochs=3, **settings)


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


# --- damage and forgery --------------------------------------------------------------------------

SETTINGS = {"optimizer": "adam", "checkpoint_every": 1}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A checkpoint of epoch 3, with validation."""
    folder = tmp_path_factory.mktemp("run") / "checkpoints"
    Z, sets = routes()
    erm(
        LinearModel(),
        Z,
        sets,
        validation=routes(seed=1),
        max_epochs=3,
        checkpoint=folder,
        **SETTINGS,
    )
    return folder


@pytest.fixture
def folder(written, tmp_path):
    shutil.copytree(written, tmp_path / "checkpoints")
    return tmp_path / "checkpoints"


def resumed(folder):
    """Go on to epoch 5; the model, as it is then."""
    (Z, sets), model = routes(), LinearModel()
    settings = SETTINGS | {"max_epochs": 5, "checkpoint": folder}
    assert len(erm(model, Z, sets, validation=routes(seed=1), **settings)) == 6
    return model.coef


def index_of(folder):
    return json.loads((folder / checkpoint.INDEX).read_text())


def resealed(folder, index=lambda index: None, tensors=lambda tensors: None):
    """Change a checkpoint and write the checksums anew, as someone would who means it."""
    facts = index_of(folder)
    path = folder / facts["tensors"]["file"]
    parts = safetensors.load(path.read_bytes())
    tensors(parts)
    path.write_bytes(safetensors.save(parts))
    facts["tensors"]["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    index(facts)
    facts.pop("sha256", None)
    facts["sha256"] = checkpoint._checksum(facts)
    (folder / checkpoint.INDEX).write_text(json.dumps(facts))


def refused(folder, words):
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    with pytest.raises(rv.InputError, match=rf"(?s)cannot be used: .*{words}") as found:
        resumed(folder)
    assert "\n" not in str(found.value)
    assert {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()} == before


def test_every_flipped_byte_is_seen(folder):
    rng = np.random.default_rng(0)
    for path in list(folder.iterdir()):
        whole = path.read_bytes()
        for at in {0, len(whole) - 1, *rng.integers(0, len(whole), 40).tolist()}:
            spoiled = bytearray(whole)
            spoiled[at] ^= 1 << rng.integers(8)
            path.write_bytes(spoiled)
            if path.suffix == ".json" and _same_json(spoiled, whole):
                continue  # a blank that became another blank
            refused(folder, "")
        path.write_bytes(whole)
    resumed(folder)


def _same_json(one, other):
    try:
        return json.loads(one) == json.loads(other)
    except ValueError:
        return False


@pytest.mark.parametrize("size", [0, 1, 100, -1])
def test_a_file_cut_short_is_seen(folder, size):
    for path in list(folder.iterdir()):
        whole = path.read_bytes()
        path.write_bytes(whole[:size])
        refused(folder, path.name)
        path.write_bytes(whole)


TEXTS = {
    "nothing": ("", "not JSON"),
    "no JSON": ("{", "not JSON"),
    "a list": ("[]", "no checksum"),
    "a word": ('"checkpoint"', "no checksum"),
    "too deep": ("[" * 200_000, "nested too deeply"),
    "an endless integer": ('{"epoch": 1' + "0" * 400 + "}", "401 digits"),
    "a longer one": ('{"epoch": 1' + "0" * 9000 + "}", "9,001 digits"),
    "not a number": ('{"rows": [{"loss": NaN}]}', "NaN"),
    "infinity": ('{"rows": [{"loss": 1e999}]}', "too large"),
    "an entry twice": ('{"epoch": 1, "epoch": 2}', "'epoch' is there twice"),
}


@pytest.mark.parametrize("case", TEXTS)
def test_an_index_that_is_no_strict_json_is_refused(folder, case):
    text, words = TEXTS[case]
    (folder / checkpoint.INDEX).write_text(text)
    refused(folder, words)


def removed(name):
    def change(tensors):
        for key in [key for key in tensors if key.startswith(name)]:
            del tensors[key]

    return change


def put(name, value):
    return lambda tensors: tensors.__setitem__(name, value)


INDICES = {
    "rows cut short": (lambda index: index["rows"].pop(), "not have all its rows"),
    "a row too many": (lambda index: index["rows"].append({"loss": 1.0}), "not have all its rows"),
    "no rows": (lambda index: index.pop("rows"), "'rows' must be"),
    "rows of numbers": (lambda index: index.update(rows=[1, 2, 3]), "'rows' must be"),
    "a row without a loss": (lambda index: index["rows"][1].pop("loss"), "no loss"),
    "no epoch": (lambda index: index.pop("epoch"), "'epoch' must be"),
    "another epoch": (lambda index: index.update(epoch=2), "not have all its rows"),
    "a negative epoch": (lambda index: index.update(epoch=-1), "'epoch' must be"),
    "an epoch that is true": (lambda index: index.update(epoch=True), "'epoch' must be"),
    "a run that is a list": (lambda index: index.update(run=[]), "'run' must be"),
    "no tensors": (lambda index: index.pop("tensors"), "'tensors' must"),
    "a name alone": (lambda index: index.update(tensors="epoch"), "'tensors' must"),
    "a number for a file": (lambda index: index["tensors"].update(file=3), "same folder"),
    "another version": (lambda index: index.update(version=1), "version 2"),
    "no best epoch": (lambda index: index.pop("best_epoch"), "did best"),
    "a best loss in words": (lambda index: index.update(best_loss="low"), "did best"),
}


@pytest.mark.parametrize("case", INDICES)
def test_an_index_with_other_entries_is_refused_whatever_its_checksum(folder, case):
    change, words = INDICES[case]
    resealed(folder, index=change)
    refused(folder, words)


@pytest.mark.parametrize(
    "path",
    ["../elsewhere.safetensors", "{folder}/../elsewhere.safetensors", "sub/{name}", "/{name}"],
)
def test_tensors_are_read_from_the_folder_alone(folder, path):
    name = index_of(folder)["tensors"]["file"]
    (folder / "sub").mkdir()
    for place in (folder.parent / "elsewhere.safetensors", folder / "sub" / name):
        shutil.copy(folder / name, place)
    elsewhere = path.format(folder=folder, name=name)
    resealed(folder, index=lambda index: index["tensors"].update(file=elsewhere))
    refused(folder, "same folder")


PARTS = {
    "no weights": (removed("model"), "model.bias is missing, expected float64"),
    "one of them": (removed("model.bias"), "model.bias is missing, expected float64"),
    "weights of another shape": (
        put("model.bias", torch.zeros(2, dtype=torch.float64)),
        r"model.bias is float64 of shape \(2,\), expected",
    ),
    "weights of another type": (put("model.bias", torch.zeros(24)), "model.bias is float32"),
    "one more": (put("model.more", torch.zeros(1)), "model.more is float32.*expected missing"),
    "no state": (removed("optimizer"), "optimizer is not complete"),
    "a part of it": (removed("optimizer.0.exp_avg"), "optimizer is not complete"),
    "state of no parameter": (put("optimizer.9.step", torch.zeros(())), "no parameter"),
    "state without a number": (put("optimizer.x.step", torch.zeros(())), "no parameter"),
    "state of another shape": (put("optimizer.0.exp_avg", torch.zeros(3)), "no parameter"),
    "no best weights": (removed("best"), "best.bias is missing"),
}


@pytest.mark.parametrize("case", PARTS)
def test_tensors_that_do_not_fit_are_refused_whatever_their_checksum(folder, case):
    change, words = PARTS[case]
    resealed(folder, tensors=change)
    refused(folder, words)


def test_numbers_that_json_lacks_come_back_as_they_were(tmp_path):
    rows = [{"iteration": 0, "loss": np.float32(0.5), "ratio": np.nan, "all": (np.inf, -np.inf, 1)}]
    facts = {"epoch": 1, "run": {"tol": np.inf}, "rows": rows}
    checkpoint.save(tmp_path, checkpoint.Checkpoint({"model.w": torch.ones(2)}, facts))
    found = checkpoint.load(tmp_path, {"tol": np.inf})
    assert np.isnan(found.facts["rows"][0].pop("ratio"))
    assert found.facts["rows"] == [{"iteration": 0, "loss": 0.5, "all": [np.inf, -np.inf, 1]}]
    with pytest.raises(rv.InputError, match=r"tol .*now 1\.0"):
        checkpoint.load(tmp_path, {"tol": 1.0})


def test_what_json_cannot_hold_is_named(tmp_path):
    facts = {"epoch": 1, "run": {}, "rows": [{"iteration": 0, "costs": np.ones(3)}]}
    with pytest.raises(rv.InputError, match="the checkpoint, rows, costs is a ndarray"):
        checkpoint.save(tmp_path, checkpoint.Checkpoint({}, facts))


# --- full disks, two runs, killed runs -----------------------------------------------------------


@pytest.mark.parametrize("call", ["fsync", "open", "replace"])
@pytest.mark.parametrize("file", [1, 2])
def test_a_full_disk_is_one_sentence_and_keeps_the_last_checkpoint(
    written, folder, tmp_path, monkeypatch, call, file
):
    whole, calls = getattr(os, call), []

    def full(*args, **kwargs):
        if call != "open" or str(args[0]).endswith(".new"):
            calls.append(args)
            if len(calls) >= {"fsync": 2 * file - 1}.get(call, file):
                raise OSError(errno.ENOSPC, "No space left on device")
        return whole(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(os, call, full)
        with pytest.raises(rv.InputError, match=r"epoch 4 cannot be written .*No space left"):
            resumed(folder)
    assert sorted(os.listdir(folder)) == sorted(os.listdir(written))
    assert index_of(folder) == index_of(written)
    other = shutil.copytree(written, tmp_path / "other")
    assert (resumed(folder) == resumed(other)).all()


def test_a_log_that_cannot_be_written_is_one_sentence(tmp_path):
    Z, sets = routes()
    (tmp_path / "file").write_text("")
    with pytest.raises(rv.InputError, match=r"The log .* cannot be written"):
        erm(LinearModel(), Z, sets, max_epochs=1, log=tmp_path / "file" / "log.jsonl")


def test_two_runs_do_not_share_a_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "WAIT", 0.0)
    Z, sets = routes()
    settings = {"max_epochs": 1, "checkpoint": tmp_path, "checkpoint_every": 1}

    def second(model):
        with pytest.raises(rv.InputError, match="Another run keeps its checkpoints"):
            erm(LinearModel(), Z, sets, **settings)
        return {}

    erm(LinearModel(), Z, sets, monitor=second, **settings)
    erm(LinearModel(), Z, sets, **settings)  # the first has ended


def test_a_killed_run_frees_its_folder_and_its_leftovers_go(folder):
    code = """if True:
        import os, signal, sys
        from pathlib import Path
        from revealed.fit import checkpoint
        with checkpoint.claimed(sys.argv[1]):
            for name in ("checkpoint.json", "epoch_000004-0123456789abcdef.safetensors"):
                Path(sys.argv[1], name + ".77-abcd.new").write_bytes(b"half")
            os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run([sys.executable, "-c", code, str(folder)], check=False)
    assert done.returncode == -9
    assert len(list(folder.glob("*.new"))) == 2
    resumed(folder)
    assert len(list(folder.iterdir())) == 2
