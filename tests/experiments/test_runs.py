"""A run is data: its configuration, its file, what it tells, and how it ends when it goes wrong."""

import json
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from run_helpers import CONFIG, figures, several

import revealed as rv
from revealed.datasets import paper_paths
from revealed_experiments.bench.sweeps import run_one, runs
from revealed_experiments.bench.sweeps.runs import RunConfig, read_runs, run_file

OTHERS = [
    {"part": "other"},
    {"label": "theirs"},
    {"data": CONFIG.data | {"side": 4}},
    {"method": CONFIG.method | {"margin": 0.6}},
    {"model": CONFIG.model | {"start": "zero"}},
    {"optimiser": "sgd"},
    {"step": 0.2},
    {"step": None},
    {"epochs": 4},
    {"batch_size": 6},
    {"seed": 1},
    {"needs_true_costs": True},
    {"training": {"decay": 1.0}},
]


# --- configurations and files --------------------------------------------------------------------


def test_a_configuration_survives_json():
    assert RunConfig.read(json.loads(json.dumps(CONFIG.plain()))) == CONFIG
    assert RunConfig.read({"config": CONFIG.plain(), "status": "finished"}) == CONFIG


@pytest.mark.parametrize(
    "kept, schedule", [(True, "linear"), (False, "constant"), (1.0, 1.0), (0.0, 0.0), (None, None)]
)
def test_a_configuration_trains_in_the_words_of_the_library(kept, schedule):
    """Those on disk are older: keys are made of them, so they stay."""
    training = {"views": "all"} | ({} if kept is None else {"decay": kept})
    settings = replace(CONFIG, training=training).settings
    found = settings.pop("schedule", None)
    assert (type(found), found) == (type(schedule), schedule)
    assert settings == {
        "optimizer": CONFIG.optimiser,
        "lr": CONFIG.step,
        "max_epochs": CONFIG.epochs,
        "batch_size": CONFIG.batch_size,
        "seed": CONFIG.seed,
        "views": "all",
    }
    assert {"optimiser", "step", "epochs", "training"} < {*CONFIG.plain()}


def test_tuples_and_lists_are_the_same_configuration():
    data = CONFIG.data | {"sizes": (12, 5, 6)}
    assert replace(CONFIG, data=data).key == CONFIG.key
    assert replace(CONFIG, data=data).plain() == CONFIG.plain()


@pytest.mark.parametrize("change", OTHERS, ids=str)
def test_whatever_is_changed_has_another_key(change):
    assert replace(CONFIG, **change).key != CONFIG.key


def test_a_key_is_a_file_name_that_tells_what_it_is_of():
    key = replace(CONFIG, label="SPO+ (α/β)", seed=42).key
    assert key.startswith("tiny-spo-plus-adam-step-0.1-seed-42-")
    assert key.isascii()
    assert runs.seed_in(key) == 42
    assert runs.seed_in("nothing") is None


@pytest.mark.parametrize(
    "content, words",
    [
        ([1], "must be a JSON object"),
        ({"part": "x"}, "'label' is missing"),
        (CONFIG.plain() | {"stepp": 1}, "'stepp' is not known"),
        (CONFIG.plain() | {"method": "st"}, "must be an object with the entry 'name'"),
        (CONFIG.plain() | {"data": {}}, "must be an object with the entry 'generator'"),
    ],
)
def test_what_is_no_configuration_is_refused(content, words):
    with pytest.raises(rv.InputError, match=words):
        RunConfig.read(content)


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "deep" / "file.json"
    runs.write_whole(path, "old")

    def fail(*_):
        raise OSError("the disk is gone")

    monkeypatch.setattr(runs.os, "replace", fail)
    with pytest.raises(OSError, match="disk"):
        runs.write_whole(path, "new")
    assert path.read_text("utf-8") == "old"


def test_numbers_that_json_does_not_have_become_null(tmp_path):
    run = {"config": CONFIG.plain(), "status": "finished", "seconds": np.float64("nan")}
    runs.write_run(tmp_path, run | {"final": {"test": [np.inf, np.int64(3), 1 / 3]}})
    text = run_file(tmp_path, CONFIG.key).read_text("utf-8")
    assert json.loads(text, parse_constant=pytest.fail)["final"] == {"test": [None, 3, 0.333333]}


def test_a_folder_without_runs_is_named(tmp_path):
    with pytest.raises(rv.InputError, match="must hold finished runs"):
        read_runs(tmp_path)


# --- one run -------------------------------------------------------------------------------------


@pytest.mark.parametrize("epochs", [0, 1, 7, 12, 13, 20, 150, 1000])
def test_runs_are_judged_at_both_ends_and_now_and_then(epochs):
    points = run_one.evaluation_epochs(epochs)
    assert {0, epochs} <= points
    assert min(points) == 0
    assert max(points) == epochs
    assert len(points) <= 15


@pytest.mark.parametrize("optimiser", ["pocs", "armijo", "adam", "preconditioned"])
def test_a_run_tells_what_was_found_and_when(optimiser):
    run = run_one.perform(replace(CONFIG, optimiser=optimiser, step=None, epochs=20))
    assert (run["status"], run["message"], run["warnings"]) == ("finished", "", [])
    assert [row["epoch"] for row in run["epochs"]] == sorted(run_one.evaluation_epochs(20))
    for row in run["epochs"]:
        assert {"train", "valid", "test", "loss", "seconds"} <= row.keys()
    last = run["epochs"][-1]
    assert run["final"] == {split: last[split] for split in run_one.SPLITS}
    assert last["loss"] < run["epochs"][0]["loss"]
    assert 0 < run["epoch_seconds"] < run["seconds"]
    assert RunConfig.read(run) == replace(CONFIG, optimiser=optimiser, step=None, epochs=20)


def test_the_figures_are_those_of_the_metrics():
    """Trained here once more, by the library's own functions."""
    run = run_one.perform(CONFIG)
    data = paper_paths((12, 5, 6), side=3, seed=0)
    model = run_one._model(CONFIG, data)
    sets = rv.OptimalitySet(data.problem, data.train.decisions, margin=0.5)
    settings = {"optimizer": "adam", "lr": 0.1, "max_epochs": 3, "batch_size": 5, "tol": 0.0}
    history = rv.fit.erm(model, data.train.contexts, sets, **settings)
    assert [row["loss"] for row in run["epochs"]] == pytest.approx(history["loss"])
    for name in run_one.SPLITS:
        split = getattr(data, name)
        given = {"costs": model.predict_cost(split.contexts), "decisions": split.decisions}
        truth = {"true_costs": split.costs}
        assert run["final"][name] == pytest.approx(
            {
                "decision_loss": rv.metrics.decision_loss(data.problem, **given).mean(),
                "estimate_loss": rv.metrics.estimate_loss(data.problem, **given, **truth).mean(),
                "relative_regret": rv.metrics.relative_regret(data.problem, **given, **truth),
                "gamma": rv.metrics.suboptimality(data.problem, **given).mean(),
                "gamma_relative": rv.metrics.relative_suboptimality(data.problem, **given).mean(),
            }
        )


def test_epochs_are_timed_without_the_judging(monkeypatch):
    judged = []

    def slow(model, data, whole=True):  # an hour by both clocks below
        judged.append(3600.0)
        return {"test": {}}

    clock = SimpleNamespace(
        perf_counter=lambda: time.perf_counter() + sum(judged),
        process_time=lambda: time.process_time() + sum(judged),
    )
    monkeypatch.setattr(run_one, "judge", slow)
    monkeypatch.setattr(run_one, "time", clock)
    run = run_one.perform(CONFIG)
    assert run["seconds"] > sum(judged) > 0
    assert max(row["seconds"] for row in run["epochs"]) < 3600.0


def test_a_run_that_has_learned_all_stays_where_it_is():
    config = replace(CONFIG, data=CONFIG.data | {"sizes": [1, 5, 6]}, optimiser="pocs", epochs=50)
    run = run_one.perform(config)
    assert run["status"] == "finished"
    assert run["epochs"][-1]["epoch"] == 50
    assert run["final"]["train"]["decision_loss"] == 0.0
    before, last = (run["epochs"][k]["test"] for k in (-2, -1))
    assert before.items() <= last.items()  # the last has Gamma too


def test_methods_start_alike_and_repeat_themselves():
    ours, st, _ = (run_one.perform(config) for config in several(3))
    assert ours["epochs"][0]["test"] == st["epochs"][0]["test"]
    assert figures(run_one.perform(several(1)[0])) == figures(ours)
    other = run_one.perform(replace(CONFIG, seed=1))
    assert other["epochs"][0]["test"] != ours["epochs"][0]["test"]


def test_divergence_is_a_status():
    run = run_one.perform(replace(CONFIG, optimiser="sgd", step=1e100, epochs=20))
    assert run["status"] == "diverged"
    assert "diverged" in run["message"]
    assert run["final"] is None
    assert run["epochs"][0]["epoch"] == 0


@pytest.mark.parametrize(
    "change, words",
    [
        ({"method": {"name": "nonsense"}}, "nonsense"),
        ({"method": {"name": "projection", "margin": -1.0}}, "margin"),
        ({"model": {"kind": "oracle"}}, "must be of kind"),
        ({"data": {"generator": "nonsense", "sizes": [1, 1, 1]}}, "must be one of noisy_paths"),
        ({"optimiser": "nonsense"}, "must be one of"),
        ({"method": {"name": "spo+"}}, "`needs_true_costs` must be True"),
        ({"method": {"name": "st"}, "needs_true_costs": True}, "must be False"),
        ({"training": {"nonsense": 1}}, "nonsense"),
        ({"method": {"name": "st"}, "optimiser": "pocs"}, "needs another optimiser"),
    ],
)
def test_what_cannot_be_done_is_a_status_with_a_sentence(change, words):
    run = run_one.perform(replace(CONFIG, **change))
    assert run["status"] == "failed"
    assert words in run["message"]


def test_a_run_takes_one_thread_and_gives_the_others_back(monkeypatch):
    import torch

    seen = []

    def judge(*_, **__):
        seen.append(torch.get_num_threads())
        return {}

    monkeypatch.setattr(run_one, "judge", judge)
    torch.set_num_threads(2)
    try:
        run_one.perform(CONFIG)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
    assert set(seen) == {1}
