"""A model on disk: the same numbers back, and nothing else gets in."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from revealed.cli.plans import find_limits, from_catalogue
from revealed.cli.store import FittedModel, Samples, load_model, save_model
from revealed.cli.tables import Feature, FeatureMap
from revealed.errors import InputError

KEPT = Path(__file__).parents[1] / "data" / "model_v1"
"""A model saved by the first version of the format, which every later version must read."""


def made(seed=0):
    plan = from_catalogue("grid_shortest_path(3, 3, directed='right-down')")
    features = FeatureMap((Feature("load", 0.3, 1.7), Feature("day", levels=("Mon", "Tue", "Wed"))))
    rng = np.random.default_rng(seed)
    n, d = plan.problem.n_variables, len(features.names)
    costs = rng.uniform(1, 2, (4, n))
    samples = Samples(
        ("a", "b", "c", "d"),
        rng.standard_normal((4, d)),
        np.asarray(plan.problem.solve(costs).x),
        np.array([1, 0, 0, 0]),
    )
    coef, intercept = rng.standard_normal((n, d)), rng.standard_normal(n)
    return FittedModel(plan, features, coef, intercept, 1.0, "date", {"h": 0.5}, samples)


@pytest.fixture
def folder(tmp_path):
    return save_model(made(), tmp_path / "model")


def index_of(folder):
    return json.loads((folder / "model.json").read_text())


def rewrite(folder, change):
    """Let a change through to what stands behind the checksum of the index."""
    index = index_of(folder)
    del index["sha256"]
    change(index)
    (folder / "model.json").write_text(json.dumps(index))


def test_a_loaded_model_predicts_bit_for_bit_the_same(folder):
    model, again = made(), load_model(folder)
    Z = np.random.default_rng(1).standard_normal((50, 3))
    assert (again.costs(Z) == model.costs(Z)).all()
    x, y = (m.plan.problem.solve(m.costs(Z)).x for m in (model, again))
    assert np.array_equal(x, y, equal_nan=True)
    assert again.features == model.features
    assert again.plan.variables == model.plan.variables
    assert (again.key, again.margin, again.training) == ("date", 1.0, {"h": 0.5})
    assert again.samples is not None
    assert (again.samples.contexts == model.samples.contexts).all()


def test_saving_twice_gives_the_same_bytes(folder, tmp_path):
    other = save_model(made(), tmp_path / "other")
    for name in ("model.json", "tensors.safetensors"):
        assert (folder / name).read_bytes() == (other / name).read_bytes()


def test_a_model_of_the_first_version_is_still_read():
    model = load_model(KEPT)
    told = json.loads((KEPT / "expected.json").read_text())
    assert list(model.features.names) == told["features"]
    assert model.costs(np.array(told["contexts"])).tolist() == told["costs"]
    decided = model.plan.problem.solve(model.costs(np.array(told["contexts"]))).x
    assert np.asarray(decided).tolist() == told["decisions"]


HOSTILE = {
    "another format": (lambda index: index.update(format="pickle"), "something else"),
    "a later version": (lambda index: index.update(version=6), "version 6.*reads 1 to 5"),
    "whole without variables": (lambda index: index.update(version=4), "has whole variables"),
    "one of Python's": (lambda index: index.update(version=3), "saved in Python without names"),
    "a version that is true": (lambda index: index.update(version=True), "version True"),
    "no features": (lambda index: index.pop("features"), "'features' must be a list"),
    "a feature without a name": (lambda index: index["features"][0].pop("name"), "'name' must be"),
    "a scale of 0": (lambda index: index["features"][0].update(scale=0), "'scale' must be above 0"),
    "words twice": (
        lambda index: index["features"][1].update(levels=["a", "a"]),
        "different words",
    ),
    "a kind we do not know": (lambda index: index["model"].update(kind="code"), "not 'code'"),
    "a negative margin": (lambda index: index["model"].update(margin=-1), "at least 0"),
    "a call that is not in the catalogue": (
        lambda index: index["problem"].update(catalogue="__import__('os').system('true')"),
        "not understood",
    ),
    "a call of something else": (
        lambda index: index["problem"].update(catalogue="eval('1')"),
        "not in the catalogue",
    ),
    "another problem than is stored": (
        lambda index: index["problem"].update(catalogue="grid_shortest_path(3, 3)"),
        "not the one that",
    ),
    "a problem that fills the memory": (
        lambda index: index["problem"].update(
            catalogue="assignment(n_workers=90000, n_tasks=90000)"
        ),
        "too large to be intended",
    ),
    "a node that does": (
        lambda index: index["problem"].update(
            catalogue="shortest_path([[0, 1], [1, 3000000000]], source=0, target=1)"
        ),
        "too many to be intended",
    ),
    "nodes that do": (
        lambda index: index["problem"].update(
            catalogue="shortest_path([[0, 1]], source=0, target=1, n_nodes=3000000000)"
        ),
        "too many to be intended",
    ),
    "an endless capacity": (
        lambda index: index["problem"].update(catalogue=f"knapsack([1], 1{'0' * 400})"),
        "capacity|too large",
    ),
    "too few variables": (lambda index: index["problem"]["variables"].pop(), "expected float64"),
    "the same variable twice": (
        lambda index: index["problem"]["variables"].__setitem__(0, "r1c1>r2c1"),
        "same name",
    ),
    "tensors elsewhere": (
        lambda index: index["tensors"].update(file="../../etc/passwd"),
        "tensors.safetensors",
    ),
    "another checksum": (lambda index: index["tensors"].update(sha256="0" * 64), "checksum"),
    "an endless integer": (lambda index: index["model"].update(margin=10**400), "401 digits"),
    "a longer one": (lambda index: index["training"].update(seed=10**4200), "4,201 digits"),
    "a large integer": (lambda index: index["model"].update(margin=10**90), "too large a number"),
    "large row numbers": (
        lambda index: index["problem"].update(at_least=[2**70]),
        "list of whole numbers",
    ),
    "a ridge in words": (lambda index: index["training"].update(ridge="none"), "'ridge' must be"),
    "a negative noise": (lambda index: index["training"].update(noise=-1), "at least 0"),
    "endless draws": (lambda index: index["training"].update(draws=10**9), "between 0 and 4,096"),
    "odd draws": (lambda index: index["training"].update(draws=3), "even number"),
    "a power that is a list": (lambda index: index["training"].update(power=[]), "'power' must"),
    "a seed that is half": (lambda index: index["training"].update(seed=0.5), "'seed' must be"),
    "training that is a list": (lambda index: index.update(training=[]), "'training' must be"),
    "a sample too many": (lambda index: index["samples"].append("e"), "samples.contexts"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_what_does_not_fit_together_is_refused_with_a_sentence(folder, case):
    change, message = HOSTILE[case]
    rewrite(folder, change)
    with pytest.raises(InputError, match=message):
        load_model(folder)


# --- limits --------------------------------------------------------------------------------------


def limited(values=((np.nan, 1.0), (9.0, np.nan), (20.0, 0.5), (np.inf, 1.0))):
    """A model whose samples bring a budget and a bound."""
    plan = from_catalogue("knapsack([3.0, 5.0, 2.0], 6.0)")
    limits = find_limits(plan, ["ub1=budget", "upper:x2=most"], ["budget", "most"])
    rng, names, own = np.random.default_rng(0), ("a", "b", "c", "d"), np.array(values)
    samples = Samples(names, rng.normal(size=(4, 1)), np.zeros((4, 3)), np.zeros(4, int), own)
    coef, intercept = rng.normal(size=(3, 1)), -np.ones(3)
    features = FeatureMap((Feature("load"),))
    return FittedModel(plan, features, coef, intercept, 1.0, None, {}, samples, limits)


@pytest.fixture
def limited_folder(tmp_path):
    return save_model(limited(), tmp_path / "limited")


def test_limits_come_back_as_they_were(limited_folder):
    again = load_model(limited_folder)
    assert index_of(limited_folder)["version"] == 2
    assert again.limits == limited().limits
    assert np.array_equal(again.samples.limits, limited().samples.limits, equal_nan=True)


def first(index):
    return index["limits"][0]


HOSTILE_LIMITS = {
    "an entry that is not there": (
        lambda index: first(index).update(index=7),
        "number 7 of 'b_ub'",
    ),
    "a negative entry": (lambda index: first(index).update(index=-1), "number -1 of 'b_ub'"),
    "an entry that is true": (lambda index: first(index).update(index=True), "'index' must be"),
    "an entry that is half": (lambda index: first(index).update(index=0.5), "'index' must be"),
    "an endless entry": (lambda index: first(index).update(index=10**400), "401 digits"),
    "another vector": (lambda index: first(index).update(part="lb"), "is not number 0 of 'lb'"),
    "an attribute": (lambda index: first(index).update(part="_cache"), "'_cache'"),
    "another name": (lambda index: first(index).update(name="upper:x1"), "'upper:x1' is not"),
    "no column": (lambda index: first(index).pop("column"), "'column' must be"),
    "a column that is learned from": (
        lambda index: first(index).update(column="load"),
        "both a feature and a limit",
    ),
    "the same limit twice": (
        lambda index: index["limits"].__setitem__(1, dict(first(index))),
        "different ones",
    ),
    "no list": (lambda index: index.update(limits="ub1"), "'limits' must be a list"),
    "no objects": (lambda index: index.update(limits=["ub1"]), "must be an object"),
    "none": (lambda index: index.update(limits=[]), "at least one"),
    "nothing": (lambda index: index.pop("limits"), "version 2 has 'limits'"),
    "null": (lambda index: index.update(limits=None), "version 2 has 'limits'"),
    "the version before": (lambda index: index.update(version=1), "version 1 has none"),
    "one limit fewer": (lambda index: index["limits"].pop(), "samples.limits.*expected"),
    "a sample fewer": (lambda index: index["samples"].pop(), "expected float64"),
}


@pytest.mark.parametrize("case", HOSTILE_LIMITS)
def test_limits_that_do_not_fit_the_plan_are_refused(limited_folder, case):
    change, message = HOSTILE_LIMITS[case]
    rewrite(limited_folder, change)
    with pytest.raises(InputError, match=message):
        load_model(limited_folder)


@pytest.mark.parametrize("own", [None, np.zeros((4, 1))])
def test_samples_of_a_model_with_limits_have_theirs(own):
    model = limited()
    samples = dataclasses.replace(model.samples, limits=own)
    with pytest.raises(InputError, match=r"`limits` of shape \(4, 2\)"):
        dataclasses.replace(model, samples=samples)


@pytest.mark.parametrize(
    "place, value, message",
    [
        ((1, 0), -np.inf, "Sample 'b': budget is -inf, which ub1 can never be"),
        ((2, 1), -1.0, "Sample 'c': most: x2 may then be no less than 0 and no more than -1"),
    ],
)
def test_numbers_of_samples_that_no_limit_can_be_are_refused(tmp_path, place, value, message):
    own = limited().samples.limits.copy()
    own[place] = value
    save_model(limited(own), tmp_path / "m")
    with pytest.raises(InputError, match=message):
        load_model(tmp_path / "m")


@pytest.mark.parametrize("name", ["model.json", "tensors.safetensors"])
def test_a_truncated_file_is_refused(folder, name):
    whole = (folder / name).read_bytes()
    for size in range(0, len(whole) - 1, max(1, len(whole) // 50)):
        (folder / name).write_bytes(whole[:size])
        with pytest.raises(InputError):
            load_model(folder)


def test_no_changed_digit_of_the_index_goes_unseen(folder):
    whole = (folder / "model.json").read_text()
    own = whole.rindex('"sha256"')  # under another name it says nothing, and changes nothing
    at = [k for k, letter in enumerate(whole) if letter.isdigit() and not 0 <= k - own < 8]
    assert len(at) > 100
    for k in at:
        other = str((int(whole[k]) + 1) % 10)
        (folder / "model.json").write_text(whole[:k] + other + whole[k + 1 :])
        assert was_refused(folder), whole[k - 40 : k + 10]


def test_an_index_without_checksum_is_read_as_those_of_earlier_versions(folder):
    before = load_model(folder)
    rewrite(folder, lambda index: None)
    assert "sha256" not in index_of(folder)
    assert np.array_equal(load_model(folder).coef, before.coef)


@pytest.mark.parametrize("name", ["model.json", "tensors.safetensors"])
def test_a_folder_without_one_of_its_files_is_refused(folder, name):
    (folder / name).unlink()
    with pytest.raises(InputError, match=name):
        load_model(folder)


@pytest.mark.parametrize("which", ["folder", "limited_folder"])
def test_changed_bytes_never_crash_the_loader(which, request):
    """A checksum catches every change of the tensors; without it, the checks behind it must."""
    import hashlib

    folder, rng = request.getfixturevalue(which), np.random.default_rng(0)
    names = ("model.json", "tensors.safetensors")
    whole = {name: (folder / name).read_bytes() for name in names}
    refused = 0
    for round_ in range(300):
        name = names[round_ % 2]
        spoiled = bytearray(whole[name])
        for at in rng.integers(0, len(spoiled), rng.integers(1, 5)):
            spoiled[at] = rng.integers(0, 256)
        content = whole | {name: bytes(spoiled)}
        if name == "tensors.safetensors":  # let the change through to what stands behind
            index = json.loads(whole["model.json"])
            del index["sha256"]
            index["tensors"]["sha256"] = hashlib.sha256(bytes(spoiled)).hexdigest()
            content["model.json"] = json.dumps(index).encode()
        for each in names:
            (folder / each).write_bytes(content[each])
        refused += was_refused(folder)
    assert refused > 100


def was_refused(folder):
    try:
        load_model(folder)
    except InputError:
        return True
    return False


@pytest.mark.parametrize(
    "old, new, message",
    [
        ('"margin": 1.0', '"margin": NaN', "NaN is not a number"),
        ('"margin": 1.0', '"margin": -Infinity', "-Infinity is not a number"),
        ('"margin": 1.0', '"margin": 1e400', "1e400 is too large"),
        ('"margin": 1.0', '"margin": 1.0, "margin": 2.0', "'margin' is there twice"),
    ],
)
def test_what_is_not_strict_json_is_refused(folder, old, new, message):
    text = (folder / "model.json").read_text()
    assert old in text
    (folder / "model.json").write_text(text.replace(old, new))
    with pytest.raises(InputError, match=message):
        load_model(folder)


def test_facts_that_are_not_finite_do_not_lose_a_model(tmp_path):
    model = dataclasses.replace(made(), training={"gap": np.inf, "held": {"share": [np.nan, 1.0]}})
    told = load_model(save_model(model, tmp_path / "m")).training
    assert told == {"gap": None, "held": {"share": [None, 1.0]}}


def test_a_deep_index_is_refused(folder):
    (folder / "model.json").write_text("[" * 200_000)
    with pytest.raises(InputError, match="not JSON"):
        load_model(folder)


def test_a_model_must_fit_its_plan():
    model = made()
    with pytest.raises(InputError, match="needs `coef`"):
        FittedModel(model.plan, model.features, model.coef[:-1], model.intercept, 1.0)
    with pytest.raises(InputError, match="not all finite"):
        FittedModel(model.plan, model.features, model.coef * np.nan, model.intercept, 1.0)


# --- places where something is already -----------------------------------------------------------


def another():
    model = made()
    return dataclasses.replace(model, intercept=model.intercept + 1.0)


def stopped_at(monkeypatch, step):
    """Let a writer be interrupted when it is about to move its `step`-th file."""
    whole, moved = os.replace, []

    def move(old, new):
        moved.append(new)
        if len(moved) > step:
            raise KeyboardInterrupt
        whole(old, new)

    monkeypatch.setattr(os, "replace", move)


@pytest.mark.parametrize("step", [0, 1, 2])
def test_a_model_outlives_any_interrupted_replacement_of_it(folder, monkeypatch, step):
    Z = np.ones((1, 3))
    for _ in range(2):  # twice, for the second finds what the first left
        with monkeypatch.context() as patch:
            stopped_at(patch, step)
            with pytest.raises(KeyboardInterrupt):
                save_model(another(), folder)
        assert (load_model(folder).costs(Z) == made().costs(Z)).all()
        assert not list(folder.glob("*.new"))
    save_model(another(), folder)
    assert (load_model(folder).costs(Z) == another().costs(Z)).all()
    assert sorted(path.name for path in folder.iterdir()) == ["model.json", "tensors.safetensors"]


DIES = """if True:
    import os, signal, sys
    from revealed.cli.store import save_model
    from test_store import another
    whole, moved = os.replace, []
    def move(old, new):
        moved.append(new)
        if len(moved) > int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)
        whole(old, new)
    os.replace = move
    save_model(another(), sys.argv[1])
"""


def killed_at(step, folder):
    """Let a writer be killed when it is about to move its `step`-th file; it cleans up nothing."""
    paths = [str(Path(__file__).parent), *sys.path]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-c", DIES, str(folder), str(step)]
    assert subprocess.run(command, env=environment, check=False).returncode == -9


@pytest.mark.parametrize("step", [0, 1, 2])
def test_a_killed_writer_loses_no_model_and_its_leftovers_go(folder, step):
    killed_at(step, folder)
    assert list(folder.glob("*.new"))
    assert (load_model(folder).intercept == made().intercept).all()
    save_model(another(), folder)
    assert (load_model(folder).intercept == another().intercept).all()
    assert sorted(path.name for path in folder.iterdir()) == ["model.json", "tensors.safetensors"]


@pytest.mark.parametrize("step", [0, 1])
def test_a_first_writer_that_was_killed_does_not_bar_the_next(tmp_path, step):
    folder = tmp_path / "model"
    for _ in range(2):
        killed_at(step, folder)
        with pytest.raises(InputError, match=r"no model\.json"):
            load_model(folder)
    save_model(made(), folder)
    assert (load_model(folder).intercept == made().intercept).all()
    assert sorted(path.name for path in folder.iterdir()) == ["model.json", "tensors.safetensors"]


TAKES_TURNS = """if True:
    import dataclasses, sys
    from revealed.cli.store import save_model
    from test_store import made
    model = made()
    for k in range(40):
        save_model(dataclasses.replace(model, intercept=model.intercept + k), sys.argv[1])
"""


def test_two_writers_and_a_reader_meet_nothing_but_whole_models(folder):
    paths = [str(Path(__file__).parent), *sys.path]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-c", TAKES_TURNS, str(folder)]
    writers = [subprocess.Popen(command, env=environment) for _ in range(2)]
    readings = 0
    while any(writer.poll() is None for writer in writers):
        assert load_model(folder).intercept.shape == made().intercept.shape
        readings += 1
    assert [writer.wait() for writer in writers] == [0, 0]
    assert readings
    assert (load_model(folder).intercept == made().intercept + 39).all()
    assert sorted(path.name for path in folder.iterdir()) == ["model.json", "tensors.safetensors"]


def test_a_reader_between_the_two_moves_of_a_writer_looks_again(folder, monkeypatch):
    """It finds the new tensors under the old index, and no old ones aside yet."""
    whole, looks = Path.read_bytes, []

    def read(path):
        if path.name == "tensors.safetensors" and not looks:
            looks.append(path)
            save_model(another(), folder)
            return whole(path)
        return whole(path)

    monkeypatch.setattr(Path, "read_bytes", read)
    assert (load_model(folder).intercept == another().intercept).all()


def test_a_writer_who_never_ends_is_named(folder, monkeypatch):
    from revealed._common.disk import held

    monkeypatch.setattr("revealed.io.folder.WAIT", 0.0)
    with held(folder, wait=0.0, busy=""):
        with pytest.raises(InputError, match="Another process is writing a model"):
            save_model(another(), folder)
    save_model(another(), folder)


@pytest.mark.parametrize("name", ["model.json", "tensors.safetensors"])
def test_a_file_that_is_not_ours_is_left_alone(tmp_path, name):
    (tmp_path / name).write_bytes(b"mine")
    with pytest.raises(InputError, match="left alone"):
        save_model(made(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_bytes() == b"mine"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with a name")
@pytest.mark.parametrize("name", ["model.json", "tensors.safetensors"])
def test_a_pipe_in_place_of_a_file_is_not_waited_for(folder, name):
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(InputError, match=name):
        load_model(folder)
    if name == "model.json":
        with pytest.raises(InputError, match="left alone"):
            save_model(another(), folder)


def test_a_full_disk_is_told_in_a_sentence_and_loses_nothing(folder, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(InputError, match=r"cannot be written to .*: No space left on device"):
            save_model(another(), folder)
    assert (load_model(folder).intercept == made().intercept).all()
    assert not list(folder.glob("*.new"))


def test_names_of_older_models_are_read_as_tables_are(folder):
    rewrite(folder, lambda index: index["features"][0].update(name="cafe\u0301"))
    assert load_model(folder).features.names[0] == "caf\u00e9"
