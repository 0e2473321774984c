"""`revealed bench vision`: the experiments as tables, the choice of steps, runs that go on."""

import base64
import json
import shlex
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from run_helpers import figures

from revealed.cli import main
from revealed.errors import InputError
from revealed.losses import make_loss
from revealed_experiments.bench.sweeps.runs import (
    FAILED,
    FINISHED,
    UNFINISHED,
    RunConfig,
    read_run,
    read_runs,
    rounded,
)
from revealed_experiments.bench.vision import parts as vision_parts
from revealed_experiments.bench.vision import run as vision_run
from revealed_experiments.bench.vision.choice import (
    larger,
    pick,
    read_picks,
    shortlist,
    tried,
    write_picks,
)
from revealed_experiments.bench.vision.data import draw, load, prepare
from revealed_experiments.bench.vision.gallery import samples_of
from revealed_experiments.bench.vision.parts import (
    CHOOSING,
    OPTIMISERS,
    PARTS,
    QUICK_CHOOSING,
    QUICK_PARTS,
    Pick,
    candidates,
    decided,
    experiment,
    finals,
    network,
)
from revealed_experiments.bench.vision.run import Where, perform
from revealed_experiments.bench.vision.tables import tables, targets
from revealed_experiments.images import write_terrain
from revealed_experiments.vision import Averaged, DeviceSplit, build_model, judge, train

pytest.importorskip("rich")
pytest.importorskip("safetensors")

LABELS = ["Ours", "Ours, robust", "Ours, smoothed", "ST", "MOM", "BB", "PFYL", "SPO+", "two-stage"]
SMALL = {"generator": "terrain", "side": 4, "sizes": [12, 6, 6], "unique": True, "seed": 0}
MEASURES = {"decision_loss", "estimate_loss", "relative_regret", "optimal", "exact"}


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    """Quick parts so small that a run takes a moment."""
    parts = []
    for part in QUICK_PARTS:
        data = part.data | {"side": 4, "sizes": SMALL["sizes"]}
        parts.append(replace(part, data=data, epochs=2, batch_size=6))
    monkeypatch.setattr(vision_parts, "QUICK_PARTS", tuple(parts))
    choosing = replace(vision_parts.QUICK_CHOOSING, sizes=[6, 6, 6], epochs=1)
    monkeypatch.setattr("revealed_experiments.bench.vision.command.QUICK_CHOOSING", choosing)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def bench(folder, *options):
    words = ["bench", "vision", "--quick", "--jobs", "1", "--device", "cpu", "--out", str(folder)]
    return main([*words, *options])


def written(folder):
    """When the runs in a folder were, by path."""
    kept = [*folder.rglob("runs/*.json"), *folder.rglob("earlier/*.json")]
    return {path: path.stat().st_mtime_ns for path in kept}


# --- the tables ----------------------------------------------------------------------------------


def test_the_experiments_are_those_of_the_paper():
    assert [part.name for part in PARTS] == ["terrain 12x12", "terrain 18x18", "matching 12x12"]
    for part in PARTS:
        assert [method.label for method in part.methods] == LABELS
        assert (part.epochs, part.batch_size, list(part.seeds)) == (50, 100, [0, 1, 2, 3, 4])
        assert part.data["sizes"][0] == 10_000
        told = {method.label for method in part.methods if method.needs_true_costs}
        assert told == {"SPO+", "two-stage"}
        ours = [m.options for m in part.methods if m.name == "projection"]
        assert [o["power"] for o in ours] == [(2,), (1,)]
        assert all(o["margin"] == (1.0,) for o in ours)


def test_the_published_configuration_is_a_whole_resnet_on_pictures_as_they_are():
    for part in experiment(published=True):
        assert part.model["kind"] == "resnet18"
        assert "averaged" not in part.model
        assert part.data["unique"] is False
        assert [m.training for m in part.methods] == [{"decay": (False,)}] * len(LABELS)
    maps = experiment(published=True, warcraft=True)
    assert [part.name for part in maps] == ["warcraft 12x12", "warcraft 18x18"]
    assert all(part.data["generator"] == "warcraft" for part in maps)


def test_maps_of_a_folder_go_through_the_same_command(tiny, tmp_path, capsys):
    (part,) = experiment(quick=True, warcraft=True)
    side, sizes = part.data["side"], part.data["sizes"]
    maps = tmp_path / "maps"
    write_terrain(maps, tuple(sizes), side=side, seed=3)
    out = tmp_path / "out"
    assert bench(out, "--warcraft", str(maps), "--methods", "Ours;ST") in (0, 1)
    runs = read_runs(out)
    assert {run["config"]["part"] for run in runs} == {part.name}
    assert {run["status"] for run in runs} == {FINISHED}
    content = (out / "sweep.json").read_text("utf-8")
    assert "--warcraft DIR" in content
    assert str(tmp_path) not in content
    more = part.data | {"sizes": [1000, 1, 1]}
    with pytest.raises(InputError, match="must hold at least"):
        prepare(more, tmp_path / "more", warcraft=maps, jobs=1)
    with pytest.raises(InputError, match="give `--warcraft DIR`"):
        prepare(part.data, tmp_path / "none", jobs=1)


def test_the_published_configuration_refuses_what_the_paper_has_not(tmp_path, capsys):
    assert bench(tmp_path, "--published", "--views", "all") == 2
    assert "has no `--views`" in capsys.readouterr().err


def test_every_method_chooses_among_as_many_candidates():
    assert len(CHOOSING.steps) == 8
    for part in PARTS:
        configs = list(candidates(part, CHOOSING).configs())
        assert len({config.key for config in configs}) == len(configs)
        for label in LABELS:
            own = [(c.optimiser, c.step) for c in configs if c.label == label]
            assert sorted(own) == sorted((o, s) for o in OPTIMISERS for s in CHOOSING.steps)


def test_what_is_asked_for_is_what_is_run():
    (part,) = experiment(only="18", labels=["ours", "SPO+"], seeds=2, epochs=7, model="resnet18")
    assert part.name == "terrain 18x18"
    assert [method.label for method in part.methods] == ["Ours", "SPO+"]
    assert (list(part.seeds), part.epochs, part.model) == ([0, 1], 7, network("resnet18"))
    assert experiment(ties=True)[0].data["unique"] is False
    assert experiment(digits="mnist")[2].data["digits"] == "mnist"
    picks = {"terrain 18x18": {"Ours": Pick("adagrad", 0.05)}}
    assert [(c.label, c.optimiser, c.step, c.seed) for c in decided(part, picks).configs()] == [
        ("Ours", "adagrad", 0.05, 0),
        ("Ours", "adagrad", 0.05, 1),
    ]


@pytest.mark.parametrize(
    "wrong, told", [({"only": "moon"}, "terrain 12x12"), ({"labels": ["ours", "XY"]}, "'XY'")]
)
def test_what_does_not_exist_is_refused(wrong, told):
    with pytest.raises(InputError, match=told):
        experiment(**wrong)


# --- the choice ----------------------------------------------------------------------------------


def candidate(label, optimiser, step, loss, status=FINISHED, part="terrain 6x6", seed=0):
    config = RunConfig(
        part=part,
        label=label,
        data=SMALL,
        method={"name": "projection"},
        model={"kind": "small"},
        optimiser=optimiser,
        step=step,
        epochs=1,
        batch_size=6,
        seed=seed,
    )
    judged = {split: {"decision_loss": loss} for split in ("train", "valid", "test")}
    final = judged if status == FINISHED else None
    return {"config": config.plain(), "status": status, "final": final}


def test_the_best_validation_decisions_go_on_to_the_finals():
    runs = [
        candidate("Ours", "adam", 0.1, 3.0),
        candidate("Ours", "adam", 0.01, 2.0),
        candidate("Ours", "adagrad", 0.1, 1.5),
        candidate("Ours", "adagrad", 0.01, None, "diverged"),
        candidate("ST", "adam", 0.1, 1.0),
        candidate("ST", "adam", 0.01, None, UNFINISHED),
        candidate("BB", "adam", 0.1, None, "diverged"),
    ]
    runs[0]["final"]["test"]["decision_loss"] = 0.0  # has no say
    best = [Pick("adagrad", 0.1), Pick("adam", 0.01)]
    assert shortlist(runs, 2) == {"terrain 6x6": {"Ours": best, "BB": []}}
    assert shortlist(runs, 5)["terrain 6x6"]["Ours"] == [*best, Pick("adam", 0.1)]
    assert tried(runs)["terrain 6x6"]["Ours"][-2:] == [
        ["adagrad", 0.1, 1.5],
        ["adagrad", 0.01, "diverged"],
    ]


def test_equal_validation_decisions_leave_it_to_the_fit_and_then_to_the_smaller_step():
    runs = [candidate("Ours", "adam", step, 2.0) for step in (0.1, 0.01, 0.001)]
    runs[1]["final"]["train"] = {"decision_loss": 1.0}
    steps = [each.step for each in shortlist(runs, 3)["terrain 6x6"]["Ours"]]
    assert steps == [0.01, 0.001, 0.1]


def test_finalists_are_compared_with_all_of_their_seeds():
    finalists = {
        "terrain 6x6": {
            "Ours": [Pick("adam", 0.1), Pick("adam", 0.01)],
            "ST": [Pick("adam", 0.1)],
            "BB": [Pick("adam", 0.1), Pick("adam", 0.01)],
            "MOM": [],
        }
    }
    runs = [
        candidate("Ours", "adam", 0.1, 1.0, seed=0),
        candidate("Ours", "adam", 0.1, 9.0, seed=1),
        candidate("Ours", "adam", 0.01, 2.0, seed=0),
        candidate("Ours", "adam", 0.01, 2.5, seed=1),
        candidate("ST", "adam", 0.1, None, "diverged", seed=0),
        candidate("ST", "adam", 0.1, 1.0, seed=1),
        candidate("BB", "adam", 0.1, 1.0, seed=0),
        candidate("BB", "adam", 0.01, None, UNFINISHED, seed=1),
    ]
    # What has failed everywhere is run with the other seeds too, so that it is told.
    assert pick(runs, finalists) == {
        "terrain 6x6": {"Ours": Pick("adam", 0.01), "ST": Pick("adam", 0.1)}
    }
    assert tried(runs)["terrain 6x6"] == {
        "Ours": [["adam", 0.1, 5.0], ["adam", 0.01, 2.25]],
        "ST": [["adam", 0.1, "diverged"]],
    }


def test_a_larger_step_joins_the_finals_while_the_largest_is_best():
    trials = [
        candidate(label, "adam", step, loss)
        for label in ("Ours", "ST", "BB")
        for step, loss in ((0.1, 9.0), (0.05, 4.0), (0.01, 3.0), (0.005, 2.0))
    ]
    trials += [candidate("Ours", "adagrad", 0.1, 2.0)]

    def joining(label, losses, within=2.0):
        runs = [candidate(label, "adam", step, *ended) for step, *ended in losses]
        own = [Pick("adam", step) for step, *_ in losses]
        found = larger({"terrain 6x6": {label: own}}, trials, runs, within)["terrain 6x6"][label]
        assert found[: len(own)] == own
        return [each.step for each in found[len(own) :]]

    assert joining("Ours", [(0.01, 1.0), (0.005, 2.0)]) == [0.05]
    assert joining("Ours", [(0.01, 1.0), (0.005, 2.0)], within=1.9) == []  # 4 is more than 3.8
    assert joining("Ours", [(0.01, 2.0), (0.005, 1.0)]) == []  # was compared and is worse
    assert joining("Ours", [(0.05, 1.0), (0.005, 2.0)]) == []  # 0.1 had a bad trial
    assert joining("Ours", [(0.1, 1.0), (0.005, 2.0)]) == []  # there is none
    assert joining("Ours", [(0.1, 2.0), (0.005, 1.0)]) == [0.01]
    assert joining("ST", [(0.01, None, UNFINISHED), (0.005, 2.0)]) == []
    assert joining("BB", [(0.01, None, "diverged"), (0.005, None, "diverged")]) == []


def test_finals_are_runs_that_may_count():
    part = PARTS[0]
    finalists = {part.name: {"Ours": [Pick("adam", 0.1), Pick("adagrad", 0.01)]}}
    compared = list(finals(part, finalists, CHOOSING).configs())
    assert len(compared) == 4
    counting = list(decided(part, {part.name: {"Ours": Pick("adagrad", 0.01)}}).configs())
    assert {c.key for c in counting[:2]} <= {c.key for c in compared}
    few = replace(part, seeds=range(1))  # the choice does not depend on the seeds asked for
    assert list(finals(few, finalists, CHOOSING).configs()) == compared


def test_the_quick_choice_has_something_to_choose_by(tmp_path):
    """Steps must have led to different decisions, and the best to better ones than the start."""
    part = candidates(replace(QUICK_PARTS[0], methods=QUICK_PARTS[0].methods[:1]), QUICK_CHOOSING)
    prepare(part.data, tmp_path, jobs=1)
    where = Where("cpu", tmp_path)
    runs = [perform(config, where, thorough=False) for config in part.configs()]
    found = sorted(run["final"]["valid"]["decision_loss"] for run in runs)
    assert found[0] < found[1] < found[-1]
    untrained = replace(next(iter(part.configs())), epochs=0)
    start = perform(untrained, where, thorough=True)["final"]["valid"]["decision_loss"]
    assert found[0] < 0.9 * start


def test_choices_are_written_and_read(tmp_path):
    write_picks(tmp_path, {"a": {"Ours": Pick("adam", 0.1), "ST": Pick("adam", 0.2)}})
    write_picks(tmp_path, {"a": {"ST": Pick("adagrad", 0.3)}})
    assert read_picks(tmp_path / "chosen.json") == {
        "a": {"Ours": Pick("adam", 0.1), "ST": Pick("adagrad", 0.3)}
    }


@pytest.mark.parametrize(
    "text",
    [
        "[1]",
        "{",
        '{"a": {"Ours": {"step": 1}}}',
        '{"a": {"b": {"optimiser": "x", "step": 1}}}',
        '{"a": {"b": {"optimiser": "adam", "step": "0.1"}}}',
        '{"a": {"b": {"optimiser": "adam", "step": Infinity}}}',
    ],
)
def test_a_file_that_says_no_choices_is_refused(tmp_path, text):
    path = tmp_path / "steps.json"
    path.write_text(text, "utf-8")
    with pytest.raises(InputError, match=r"steps\.json must"):
        read_picks(path)


# --- the data ------------------------------------------------------------------------------------


def test_data_are_drawn_once_and_a_smaller_set_is_the_head_of_a_larger_one(tmp_path):
    prepare(SMALL, tmp_path, jobs=1)
    (place,) = tmp_path.iterdir()
    stamp = place.stat().st_mtime_ns
    again = prepare(SMALL | {"sizes": [5, 2, 1]}, tmp_path, jobs=1)
    assert place.stat().st_mtime_ns == stamp
    fresh = draw(SMALL | {"sizes": [5, 2, 1]})
    for name in ("train", "valid", "test"):
        kept, drawn = getattr(again, name), getattr(fresh, name)
        for kind in ("images", "decisions", "costs", "cells"):
            assert np.array_equal(getattr(kept, kind), getattr(drawn, kind))
    larger = prepare(SMALL | {"sizes": [13, 6, 6]}, tmp_path, jobs=1)
    assert len(larger.train) == 13
    assert len(load(SMALL, tmp_path).train) == 12


def test_an_unknown_generator_is_refused():
    with pytest.raises(InputError, match="digit_boards"):
        draw(SMALL | {"generator": "moons"})


# --- runs ----------------------------------------------------------------------------------------


def test_a_run_tells_what_the_page_needs(tmp_path):
    assert bench(tmp_path, "--only", "terrain", "--methods", "Ours;SPO+") == 0
    content = json.loads((tmp_path / "sweep.json").read_text("utf-8"))
    assert content["experiment"] == "vision"
    assert content["parts"] == ["terrain 6x6"]
    assert len(content["tried"]["terrain 6x6"]["Ours"]) == 4
    assert content["settings"]["choosing"]["finalists"] == 2
    compared = content["finals"]["terrain 6x6"]
    assert set(compared) == {"Ours", "SPO+"}
    assert all(2 <= len(found) <= 4 for found in compared.values())
    picks = read_picks(tmp_path / "chosen.json")["terrain 6x6"]
    for label, found in compared.items():
        best = min(loss for _, _, loss in found)
        assert [picks[label].optimiser, picks[label].step, best] in found
    runs = read_runs(tmp_path)
    assert sorted(run["config"]["label"] for run in runs) == ["Ours", "SPO+"]
    for run in runs:
        assert run["status"] == FINISHED
        assert [row["epoch"] for row in run["epochs"]] == [0, 1, 2]
        for split in ("train", "valid", "test"):
            assert set(run["final"][split]) == MEASURES
            assert run["final"][split] == run["epochs"][-1][split]
        assert run["epoch_seconds"] > 0
        assert run["surroundings"]["device"] == "cpu"
    assert not any((tmp_path / "checkpoints").glob("*"))


def test_the_same_command_repeats_nothing_and_more_seeds_add_to_it(tmp_path):
    asked = ("--only", "terrain", "--methods", "ST")
    bench(tmp_path, *asked)
    before = written(tmp_path)
    assert any((tmp_path / "earlier").iterdir())  # the finalists that were not chosen
    bench(tmp_path, *asked, "--seeds", "2")
    after = written(tmp_path)
    assert before.items() <= after.items()
    assert len(after) == len(before) + 1


@pytest.mark.parametrize("every, kept", [(1, 3), (2, 2)])
def test_a_time_limit_ends_it_and_the_same_command_goes_on(
    tmp_path, capsys, monkeypatch, every, kept
):
    monkeypatch.setitem(vision_run.CHECKPOINT_EVERY, "cpu", every)
    asked = ("--only", "terrain", "--methods", "Ours", "--epochs", "4")
    assert bench(tmp_path / "whole", *asked) == 0
    assert bench(tmp_path / "part", *asked, "--time-limit", "0") == 0
    assert "1 are left" in capsys.readouterr().out
    assert not (tmp_path / "part" / "runs").exists()
    # The clock strikes after three epochs of the run that counts; four candidates had one each.
    calls = iter(range(1000))
    monkeypatch.setattr(
        "revealed_experiments.bench.vision.run._Clock.is_up",
        lambda clock: clock._deadline is not None and next(calls) == 7,
    )
    bench(tmp_path / "part", *asked, "--time-limit", "1e9")
    (found,) = (tmp_path / "part" / "checkpoints").glob("*/checkpoint.json")
    assert json.loads(found.read_text("utf-8"))["epoch"] == kept
    assert bench(tmp_path / "part", *asked) == 0
    (whole,), (part,) = (read_runs(tmp_path / name) for name in ("whole", "part"))
    assert figures(whole) == figures(part)


def test_a_method_that_is_added_joins_the_others(tmp_path, capsys):
    for label in ("Ours", "ST"):
        bench(tmp_path, "--only", "terrain", "--methods", label)
    table = capsys.readouterr().out.rsplit("on test data", 1)[1]
    assert "Ours" in table
    assert "ST" in table
    gallery = json.loads((tmp_path / "gallery" / "terrain-6x6.json").read_text("utf-8"))
    assert [each["label"] for each in gallery["samples"][0]["methods"]] == ["Ours", "ST"]
    content = json.loads((tmp_path / "sweep.json").read_text("utf-8"))
    for name in ("tried", "finals"):
        assert set(content[name]["terrain 6x6"]) == {"Ours", "ST"}, name
    assert set(read_picks(tmp_path / "chosen.json")["terrain 6x6"]) == {"Ours", "ST"}


def test_a_method_that_was_run_otherwise_is_not_compared(tmp_path, capsys):
    bench(tmp_path, "--only", "terrain", "--methods", "ST")
    capsys.readouterr()
    bench(tmp_path, "--only", "terrain", "--methods", "Ours", "--views", "all")
    table = capsys.readouterr().out.rsplit("on test data", 1)[1]
    assert "Ours" in table
    assert " ST " not in table
    gallery = json.loads((tmp_path / "gallery" / "terrain-6x6.json").read_text("utf-8"))
    assert [each["label"] for each in gallery["samples"][0]["methods"]] == ["Ours"]


def test_a_run_says_how_it_is_performed_again(tmp_path):
    asked = ("--only", "terrain", "--methods", "Ours, robust", "--ties", "--half")
    bench(tmp_path, *asked, "--views", "all")
    (run,) = read_runs(tmp_path)
    words = shlex.split(run["command"])
    assert words[:2] == ["revealed", "bench"]
    before = written(tmp_path)
    assert main([*words[1:], "--jobs", "1", "--device", "cpu", "--out", str(tmp_path)]) == 0
    assert written(tmp_path) == before


def test_views_are_on_for_every_method_alike_and_told(tmp_path, capsys):
    asked = ("--only", "terrain", "--methods", "Ours;SPO+")
    bench(tmp_path / "plain", *asked)
    assert "mirrored" not in capsys.readouterr().out
    bench(tmp_path / "views", *asked, "--views", "all")
    assert "maps also mirrored and turned in training" in capsys.readouterr().out
    content = json.loads((tmp_path / "views" / "sweep.json").read_text("utf-8"))
    assert content["settings"]["steps"] == {"terrain 6x6": "chosen"}
    assert content["settings"]["views"] == {"terrain 6x6": "all"}
    assert content["command"].endswith("--views 'all'")
    plain, seen = (
        {run["config"]["label"]: run for run in read_runs(tmp_path / name)}
        for name in ("plain", "views")
    )
    for label, run in seen.items():
        assert run["config"]["training"]["views"] == "all"
        assert "--views all" in run["command"]
        assert "views" not in plain[label]["config"]["training"]  # known runs keep their names
        assert run["epochs"][-1]["loss"] != plain[label]["epochs"][-1]["loss"]


def test_networks_can_be_judged_from_all_sides_in_the_end(tmp_path, capsys):
    asked = ("--only", "terrain", "--methods", "Ours;SPO+", "--views", "all", "--shift", "1")
    bench(tmp_path, *asked)
    trials = {path: when for path, when in written(tmp_path).items() if "choice" in path.parts}
    capsys.readouterr()
    bench(tmp_path, *asked, "--average")
    told = " ".join(capsys.readouterr().out.split())
    assert "judged by the mean cost over all of these" in told
    assert trials.items() <= written(tmp_path).items()  # trials are of networks as they are
    content = json.loads((tmp_path / "sweep.json").read_text("utf-8"))
    assert content["settings"]["averaged"] == {"terrain 6x6": True}
    assert " --average " in content["command"]
    for run in read_runs(tmp_path):
        assert "--average" in run["command"]
        data = load(run["config"]["data"], tmp_path / "data")
        net, splits = _trained(run["config"], data)
        seen = Averaged(net, data.problem, "all", 1)
        for part, model in ((run["epochs"][-1], net), (run["final"], seen)):
            for name, split in splits.items():
                assert part[name] == rounded(judge(model, data.problem, split))
        assert run["samples"] == samples_of(seen, data) != samples_of(net, data)


def _trained(config, data):
    """A network trained again by hand, and the data."""
    net = build_model(config["model"]["kind"], data.problem, channels=3, seed=config["seed"])
    splits = {name: DeviceSplit.of(getattr(data, name), "cpu", torch.float64)
              for name in ("train", "valid", "test")}  # fmt: skip
    method = dict(config["method"])
    loss = make_loss(method.pop("name"), data.problem, **method)
    train(net, splits["train"], loss, **RunConfig.read(config).settings)
    return net, splits


def test_a_run_that_fails_at_its_very_end_has_no_figures(tmp_path, monkeypatch):
    def fail(*_):
        raise RuntimeError("no picture")

    monkeypatch.setattr(vision_run, "samples_of", fail)
    assert bench(tmp_path, "--only", "terrain", "--methods", "Ours") == 1
    (run,) = read_runs(tmp_path)
    assert (run["status"], run["final"]) == (FAILED, None)


def test_averaging_needs_something_to_average(tmp_path, capsys):
    assert bench(tmp_path, "--only", "terrain", "--average") == 2
    assert "give `--views` or `--shift` as well" in capsys.readouterr().err


def test_views_of_boards_are_told_as_such(tmp_path, capsys):
    assert bench(tmp_path, "--methods", "Ours", "--views", "all") == 0
    out = capsys.readouterr().out
    assert "maps also mirrored and turned in training" in out
    assert "boards also with rows and columns exchanged in training" in out


def test_shifts_are_on_for_every_method_and_told(tmp_path, capsys):
    bench(tmp_path, "--only", "terrain", "--methods", "Ours;SPO+", "--shift", "1")
    assert "pictures moved by up to 1 px in training" in capsys.readouterr().out
    content = json.loads((tmp_path / "sweep.json").read_text("utf-8"))
    assert content["settings"]["shift"] == {"terrain 6x6": 1}
    assert content["command"].endswith("--shift 1")
    for run in read_runs(tmp_path):
        assert run["config"]["training"]["shift"] == 1
        assert "--shift 1" in run["command"]


def test_unknown_views_are_refused_before_any_run(tmp_path, capsys):
    assert bench(tmp_path, "--views", "x") == 2
    assert "mirrored, all; got 'x'" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_parts_can_be_run_one_by_one_into_one_folder(tmp_path):
    """What is known of one, also where only its packed runs are left, outlives the other."""
    facts, one = tmp_path / "sweep.json", ("--methods", "Ours")
    assert bench(tmp_path, "--only", "terrain", *one) == 0
    before = json.loads(facts.read_text("utf-8"))
    known = {"name": "terrain 6x6: share of optimal paths", "value": 1.0, "holds": True}
    facts.write_text(json.dumps(before | {"targets": [known | {"bound": ">= 0.8"}]}), "utf-8")
    shutil.rmtree(tmp_path / "runs")
    assert bench(tmp_path, "--only", "matching", *one) == 0
    after = json.loads(facts.read_text("utf-8"))
    assert [run["config"]["part"] for run in read_runs(tmp_path)] == after["parts"][::-1]
    assert after["parts"] == ["terrain 6x6", "matching 6x6"]
    assert after["settings"]["jobs"] == {"terrain 6x6": 1, "matching 6x6": 1}
    assert after["command"].splitlines() == [after["commands"][name] for name in after["parts"]]
    assert after["commands"]["terrain 6x6"] == before["command"] != after["command"]
    assert [each["name"] for each in after["targets"]] == [known["name"]]
    shutil.rmtree(tmp_path / "runs")
    assert {run["config"]["part"] for run in read_runs(tmp_path)} == set(after["parts"])
    assert bench(tmp_path, "--only", "terrain", *one) == 0
    assert json.loads(facts.read_text("utf-8"))["targets"] == []


def test_steps_from_a_file_need_no_choice(tmp_path):
    path = tmp_path / "steps.json"
    path.write_text('{"terrain 6x6": {"Ours": {"optimiser": "adagrad", "step": 0.02}}}', "utf-8")
    bench(tmp_path / "out", "--only", "terrain", "--methods", "Ours", "--steps", str(path))
    (run,) = read_runs(tmp_path / "out")
    assert (run["config"]["optimiser"], run["config"]["step"]) == ("adagrad", 0.02)
    assert not (tmp_path / "out" / "choice").exists()
    content = json.loads((tmp_path / "out" / "sweep.json").read_text("utf-8"))
    assert content["settings"]["steps"] == {"terrain 6x6": "given"}


def test_a_folder_of_another_kind_is_refused(tmp_path, capsys):
    (tmp_path / "sweep.json").write_text('{"settings": {"quick": false}}', "utf-8")
    assert bench(tmp_path) == 2
    assert "holds a full sweep" in capsys.readouterr().err


def test_a_device_that_is_not_there_is_refused_before_any_run(tmp_path, capsys):
    assert bench(tmp_path, "--device", "gpu") == 2
    assert "`--device` must be cpu" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_leaves_all_bounds_has_diverged(tmp_path):
    prepare(SMALL, tmp_path, jobs=1)
    config = RunConfig.read(candidate("two-stage", "adam", 1e30, 0.0))
    config = replace(config, method={"name": "two-stage"}, needs_true_costs=True)
    run = perform(config, Where("cpu", tmp_path), thorough=False)
    assert run["status"] == "diverged"
    assert run["final"] is None


def test_runs_on_a_device_that_gave_way_are_left_for_another_time(tmp_path, monkeypatch, capsys):
    asked = ("--only", "terrain", "--methods", "Ours", "--seeds", "2")

    def broken(*args, **settings):
        raise RuntimeError("CUDA error: unspecified launch failure")

    with monkeypatch.context() as patched:
        patched.setattr("revealed_experiments.vision.train", broken)
        assert bench(tmp_path / "sound", *asked) == 0  # the device works: each candidate failed
        assert read_run(next((tmp_path / "sound").rglob("runs/*.json")))["status"] == FAILED
        patched.setattr(vision_run, "_works", lambda device: False)
        assert bench(tmp_path / "lost", *asked) == 0
        assert not list((tmp_path / "lost").rglob("runs/*.json"))
        assert "2 are left" in capsys.readouterr().out
    assert bench(tmp_path / "lost", *asked) == 0
    assert [run["status"] for run in read_runs(tmp_path / "lost")] == [FINISHED, FINISHED]


def test_a_device_is_asked_whether_it_still_works():
    assert vision_run._works("cpu")
    assert not vision_run._works("meta:0")  # computes nothing


# --- tables and targets --------------------------------------------------------------------------


def choice_of(label, name, loss, needs=False, part="terrain 12x12"):
    from revealed_experiments.bench.sweeps.choose import chosen

    run = candidate(label, "adam", 0.1, loss, part=part)
    run["config"] |= {"method": {"name": name}, "needs_true_costs": needs}
    figures_of = {"decision_loss": loss, "estimate_loss": loss / 10, "relative_regret": loss / 100}
    share = {"optimal": 1 - loss / 10, "exact": 0.5}
    run["final"] = {split: figures_of | share for split in ("train", "valid", "test")}
    return chosen([run | {"epoch_seconds": 1.0}])[0]


def test_targets_compare_ours_with_the_right_others():
    ours, rival = choice_of("Ours", "projection", 1.0), choice_of("ST", "st", 2.0)
    told = choice_of("SPO+", "spo+", 0.5, needs=True)
    found = {each["name"]: each for each in targets([ours, rival, told])}
    first, second, share, regret = found.values()
    assert first["value"] == pytest.approx(0.5)  # SPO+ decides better
    assert not first["holds"]
    assert second["value"] == pytest.approx(-0.1)  # but sees true costs
    assert second["holds"]
    assert share["holds"]
    assert regret["holds"]
    (table,) = tables([ours, rival, told])
    assert [row[0] for row in table.rows] == ["SPO+", "Ours", "ST"]
    assert table.title.endswith(", 1 seed")


def test_a_table_says_that_some_methods_have_fewer_seeds():
    ours, rival = choice_of("Ours", "projection", 1.0), choice_of("ST", "st", 2.0)
    more = replace(rival, runs={seed: rival.runs[0] for seed in range(3)})
    (table,) = tables([ours, more])
    assert table.title.endswith(", 1 to 3 seeds")


def test_validation_decides_which_of_ours_stands_for_ours():
    plain, robust = choice_of("Ours", "projection", 1.0), choice_of("Ours, robust", "projection", 2)
    for choice, loss in ((plain, 5.0), (robust, 4.0)):
        for run in choice.runs.values():  # validation prefers what test data do not
            run["final"]["valid"] = run["final"]["valid"] | {"decision_loss": loss}
    first, *_ = targets([plain, robust, choice_of("ST", "st", 1.5)])
    assert first["value"] == pytest.approx(0.5)
    assert not first["holds"]


# --- the gallery ---------------------------------------------------------------------------------


@pytest.mark.parametrize("part", ["terrain 6x6", "matching 6x6"])
def test_the_gallery_shows_what_was_seen_and_learned(tmp_path, part):
    bench(tmp_path, "--only", part, "--methods", "Ours;ST;BB;SPO+")
    content = json.loads(
        (tmp_path / "gallery" / f"{part.replace(' ', '-')}.json").read_text("utf-8")
    )
    assert content["part"] == part
    assert content["grid"] == [4, 4]
    for sample in content["samples"]:
        assert base64.b64decode(sample["image"])[:4] == b"\x89PNG"
        assert np.shape(sample["true_cells"]) == (4, 4)
        labels = [method["label"] for method in sample["methods"]]
        assert labels[0] == "Ours"
        assert len(labels) == 3  # and the two best rivals
        for method in sample["methods"]:
            assert np.shape(method["cells"]) == (4, 4)
            if part.startswith("terrain"):
                assert method["predicted"][0] == sample["observed"][0] == [0, 0]
                assert method["predicted"][-1] == sample["observed"][-1] == [3, 3]
            else:
                cells = sorted(tuple(cell) for pair in method["predicted"] for cell in pair)
                assert cells == [(r, c) for r in range(4) for c in range(4)]
