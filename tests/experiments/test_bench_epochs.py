"""The epoch benchmark and the comparison with PyEPO run end to end; nothing asserts a time.

PyEPO itself is needed by one test only, which is skipped where its environment is missing: a small
stand-in that speaks the same language takes its place in the others.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import pytest

import revealed as rv
from revealed_experiments.bench.epochs import command as epochs
from revealed_experiments.bench.epochs import partner as epochs_partner
from revealed_experiments.bench.epochs import pyepo
from revealed_experiments.bench.epochs import tasks as epochs_tasks
from revealed_experiments.bench.epochs import turns as epochs_turns
from revealed_experiments.bench.epochs.partner import Partner, PartnerError, pyepo_order

pytest.importorskip("torch")
pytest.importorskip("rich")

ROOT = Path(__file__).parents[2]
PYEPO_PYTHON = ROOT / ".venv-pyepo" / "bin" / "python"
REFERENCE = Path(__file__).parents[1] / "data" / "pyepo_reference.json"

STAND_IN = """
import json, sys
import numpy as np

def answer(q):
    if q["ask"] == "versions":
        return {"versions": {"pyepo": "0"}}
    if q["ask"] == "train":
        if q["method"] == "cave":
            return {"error": "ValueError: not binary"}
        return {"seconds": [0.5] * q["epochs"]}
    if q["ask"] == "generate":
        rng = np.random.default_rng(q["seed"])
        contexts = rng.standard_normal((q["samples"], 5))
        np.savez(q["answer"], contexts=contexts, costs=rng.uniform(1, 2, (q["samples"], 40)))
        return {"file": q["answer"]}
    if q["ask"] == "fit":
        with np.load(q["data"]) as file:
            costs = file["test_contexts"] @ file["coef"].T + file["intercept"]
        np.savez(q["answer"], costs=costs)
        return {"file": q["answer"]}
    print("dying words", file=sys.stderr)
    sys.exit(1)

for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), flush=True)
"""


def run_command(module, *words):
    parser = argparse.ArgumentParser()
    module.add_arguments(parser)
    return module.run(parser.parse_args([str(word) for word in words]))


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    path = tmp_path / "serve.py"
    path.write_text(STAND_IN, "utf-8")
    monkeypatch.setattr(epochs_partner, "SERVER", path)
    return path


# --- the other process ---------------------------------------------------------------------------


def test_partner_passes_arrays_and_reports_failures(stand_in):
    with Partner(sys.executable) as partner:
        assert partner.versions == {"pyepo": "0"}
        place = partner.send("some", test_contexts=np.eye(2), coef=np.eye(2), intercept=np.ones(2))
        answer = partner.ask("fit", data=place, answer=f"{partner.folder}/out.npz")
        np.testing.assert_array_equal(partner.fetch(answer["file"])["costs"], np.eye(2) + 1)
        with pytest.raises(PartnerError, match="not binary"):
            partner.ask("train", method="cave", epochs=1)
        with pytest.raises(PartnerError, match="dying words"):
            partner.ask("nonsense")
        folder = Path(partner.folder)
    assert not folder.exists()


def test_partner_needs_its_python_and_its_script(tmp_path):
    with pytest.raises(rv.InputError, match="experiments/pyepo/setup"):
        Partner(tmp_path / "python")
    with pytest.raises(rv.InputError, match="root of the repository"):
        Partner(sys.executable, tmp_path / "serve.py")


def test_edges_are_put_into_pyepos_order():
    arcs = json.loads(REFERENCE.read_text("utf-8"))["problems"]["path"]["arcs"]
    structure = rv.problems.grid_shortest_path(5, 5, directed="right-down").structure
    order = pyepo_order(rv.problems.grid_shortest_path(5, 5, directed="right-down"))
    found = np.stack([structure.tails, structure.heads], axis=1)[order]
    assert found.tolist() == arcs
    knapsack = rv.problems.knapsack([1.0, 2.0, 3.0], 3.0)
    assert pyepo_order(knapsack).tolist() == [0, 1, 2]


# --- taking turns --------------------------------------------------------------------------------


def entrant(train, samples=100):
    return epochs_turns.Entrant("some", "rival", False, train, samples)


def test_turns_are_taken_and_counted():
    rounds = []

    def train(epochs, samples):
        rounds.append((epochs, samples))
        return [3e-3] + [1e-3] * (epochs - 1)

    quick = entrant(train)
    epochs_turns.take_turns([quick], batch_size=32, rounds=3, epochs=4)
    assert rounds == [(1, 32), (2, 32)] + [(4, 100)] * 3
    report = quick.report()
    assert report["epochs_timed"] == 12
    assert report["samples_timed"] == 100
    assert (report["first_s"], report["median_s"], report["best_s"]) == (3e-3, 1e-3, 1e-3)


def test_the_slowest_are_timed_on_part_of_the_data_and_excused():
    seen = []

    def train(epochs, samples):
        seen.append((epochs, samples))
        return [15.0] * epochs

    slow = entrant(train)
    epochs_turns.take_turns([slow], batch_size=10, rounds=5, epochs=4)
    assert seen == [(1, 10)] * 3  # once to see how slow it is, and two turns of one epoch each
    assert slow.report()["median_s"] == pytest.approx(150.0)


def test_a_method_that_fails_says_why():
    def train(epochs, samples):
        raise rv.InputError("no way")

    broken = entrant(train)
    epochs_turns.take_turns([broken], batch_size=10, rounds=2, epochs=1)
    assert broken.report()["failure"] == "no way"
    assert "median_s" not in broken.report()


@pytest.mark.parametrize("build, few", [(task[0], task[2]) for task in epochs_tasks.TASKS])
def test_every_task_trains_ours_and_plain_regression(build, few):
    task = build(few)
    assert len(task) == few
    assert (task.floor is None) == ("8 neighbors" not in task.name)
    for make in (
        lambda: epochs_turns.enter_method(task, epochs_tasks.OURS[0]),
        lambda: epochs_turns.enter_plain_loop(task),
    ):
        seconds = make().train(2, few)
        assert len(seconds) == 2
        assert min(seconds) > 0


def test_every_method_of_the_registry_takes_part():
    found = epochs_tasks.methods()
    assert {method.name.rstrip("+") for method in found} == {
        name.rstrip("+") for name in rv.losses.LOSSES
    }
    assert "cave+" in {method.name for method in found}
    assert [method.label for method in found if method.kind == "ours"] == [
        "ours, power 2",
        "ours, power 1",
        "ours, Huber",
    ]
    assert len({method.label for method in found}) == len(found)
    assert [method.name for method in found if method.kind == "regression"] == ["two-stage"]


# --- the commands --------------------------------------------------------------------------------


def read(path, folder):
    """The JSON of a benchmark, which must be strict and hold no path of this machine."""
    text = path.read_text("utf-8")
    assert str(folder) not in text
    content = json.loads(text)
    assert {"command", "settings", "hardware", "versions", "targets"} <= set(content)
    return content


def test_epochs_command(tmp_path, stand_in, capsys):
    out = tmp_path / "deep" / "epochs.json"
    words = ("--quick", "--only", "path 5x5", "--pyepo", sys.executable, "--out", out)
    assert run_command(epochs, *words) == 0
    content = read(out, tmp_path)
    assert content["targets"] == []  # a smoke test claims nothing
    (row,) = content["rows"]
    methods = {m["label"]: m for m in row["methods"]}
    assert {"ours, power 2", "two-stage", "SPO+", "PyEPO SPO+, 2 processes"} <= set(methods)
    failed = [label for label, m in methods.items() if m["failure"]]
    assert failed == ["PyEPO CaVE, 1 process", "PyEPO CaVE, 2 processes"]
    assert methods["two-stage"]["needs_true_costs"]
    assert not methods["ours, power 1"]["needs_true_costs"]
    page = out.with_suffix(".md").read_text("utf-8")
    for words in ("| ours, power 2 | no |", "not binary", "pyepo 0", "Do not edit"):
        assert words in page
    assert str(tmp_path) not in page
    assert "path 5x5: 40 costs, 64 samples" in capsys.readouterr().out


def test_epochs_command_without_pyepo_says_so(tmp_path, capsys):
    out = tmp_path / "epochs.json"
    run_command(epochs, "--quick", "--only", "knapsack", "--out", out)
    assert "PyEPO was not timed" in capsys.readouterr().out
    with pytest.raises(rv.InputError, match="matches none"):
        run_command(epochs, "--quick", "--only", "nothing", "--out", out)


def row_of(**seconds):
    kinds = {"ours": "ours", "bare": "ours", "two-stage": "regression", "SPO+": "rival"}
    methods = [
        {"label": name, "kind": kinds.get(name, "PyEPO"), "median_s": s, "failure": ""}
        for name, s in seconds.items()
    ]
    methods.append({"label": "broken", "kind": "rival", "failure": "why"})
    return {"problem": "path 5x5", "methods": methods}


def test_epoch_targets_take_the_slowest_of_ours():
    row = row_of(ours=0.5, bare=1.0, **{"two-stage": 0.6, "SPO+": 1.5, "PyEPO SPO+": 3.0})
    found = {t["name"]: t for t in epochs.find_targets([row])}
    assert found["path 5x5: ours over the fastest rival (SPO+)"]["value"] == pytest.approx(2 / 3)
    assert found["path 5x5: ours over plain regression"]["value"] == pytest.approx(1 / 0.6)
    assert found["path 5x5: times faster than PyEPO SPO+"]["value"] == pytest.approx(3.0)
    assert [t["holds"] for t in found.values()] == [True, True, False]
    other = row | {"problem": "another"}
    assert len(epochs.find_targets([other])) == 1


def test_pyepo_command(tmp_path, stand_in, capsys):
    """The stand-in does not train, so nothing need agree; the columns must be filled."""
    out = tmp_path / "pyepo.json"
    assert run_command(pyepo, "--quick", "--pyepo", sys.executable, "--out", out) == 0
    content = read(out, tmp_path)
    assert [m["label"] for m in content["methods"]] == [pair.label for pair in pyepo.PAIRS]
    for method in content["methods"]:
        assert len(method["ours"]) == len(method["pyepo"]) == 1
    assert len({method["pyepo"][0] for method in content["methods"]}) == 1  # the start, untrained
    assert "| SPO+ | nothing |" in out.with_suffix(".md").read_text("utf-8")
    with pytest.raises(rv.InputError, match="matches none"):
        run_command(pyepo, "--quick", "--only", "nothing", "--pyepo", sys.executable)


@pytest.mark.parametrize("differs_in, shift, holds", [
    ("draws", 0.1, True), ("draws", 0.9, False), ("", 0.0, True), ("", 0.1, False),
])  # fmt: skip
def test_pyepo_targets(differs_in, shift, holds):
    """A standard error of 0.58 for what is drawn, hardly anything for what is not."""
    row = {"label": "a", "differs_in": differs_in, "pyepo": [1.0, 2.0, 3.0]}
    row["ours"] = [value + shift for value in row["pyepo"]]
    (found,) = pyepo.find_targets([row])
    assert found["holds"] is holds


def test_both_sides_take_the_samples_in_the_order_of_erm():
    from revealed.fit.training import TrainSettings, _batches

    settings = TrainSettings(batch_size=32, seed=5)
    orders = pyepo.batch_orders(5, 3, 100)
    for epoch, order in enumerate(orders):
        assert np.concatenate(_batches(100, epoch, settings)).tolist() == order.tolist()


@pytest.mark.skipif(
    not PYEPO_PYTHON.exists(), reason="no .venv-pyepo; experiments/pyepo/setup makes it"
)
def test_the_same_training_in_pyepo_ends_at_the_same_regret(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    out = tmp_path / "pyepo.json"
    words = ("--quick", "--only", "SPO+", "--pyepo", PYEPO_PYTHON, "--out", out)
    assert run_command(pyepo, *words) == 0
    (method,) = json.loads(out.read_text("utf-8"))["methods"]
    assert method["ours"] == pytest.approx(method["pyepo"], abs=0.05)
