"""The synthetic experiment: its table is what was asked for, what it tells follows from runs."""

import argparse
import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import revealed as rv
from revealed import datasets
from revealed.losses import LOSSES, make_loss
from revealed_experiments.bench.sweeps import choose
from revealed_experiments.bench.sweeps.run_one import data_of, perform
from revealed_experiments.bench.sweeps.runs import RunConfig, read_runs
from revealed_experiments.bench.synthetic import command as synthetic
from revealed_experiments.bench.synthetic import experiments
from revealed_experiments.bench.synthetic import tables as synthetic_tables
from revealed_experiments.bench.synthetic.experiments import PARTS, Method, Part, experiment

pytest.importorskip("rich")

PAPER = [part for part in PARTS if part.name.startswith("paper")]
CAVE = [part for part in PARTS if part.name.startswith("cave")]


def run_command(*words):
    parser = argparse.ArgumentParser()
    synthetic.add_arguments(parser)
    return synthetic.run(parser.parse_args([str(word) for word in words]))


def fake(
    label="ST", part="paper path", step=0.1, seed=0, *, valid=1.0, test=2.0, train=0.5, **more
):
    """A finished run with the decision losses given; estimate loss and regret follow the test."""
    status, name = more.pop("status", "finished"), more.pop("name", label.lower())
    config = RunConfig(
        part=part,
        label=label,
        data={"generator": "paper_paths"},
        method={"name": name},
        model={"kind": "linear"},
        step=step,
        seed=seed,
        **{"optimiser": "adam", "epochs": 1, "batch_size": 1} | more,
    )
    given = {"train": train, "valid": valid, "test": test}
    measures = ("decision_loss", "estimate_loss", "relative_regret")
    final = {split: dict.fromkeys(measures, value) for split, value in given.items()}
    final = final if status == "finished" else None
    return {"config": config.plain(), "status": status, "final": final, "epoch_seconds": 1e-3}


# --- the table -----------------------------------------------------------------------------------


def test_the_parts_are_those_of_the_issue():
    kinds = ("paper", "seeds", "margins", "kernels")
    expected = [f"{what} {problem}" for what in kinds for problem in ("path", "knapsack")]
    expected += ["general knapsack", "cave degree 4", "cave degree 6"]
    assert [part.name for part in PARTS] == expected
    for part in PARTS[:9]:
        assert part.data["sizes"] == [100, 100, 100]
        if part.name.startswith("seeds"):
            assert len(part.seeds) == 30
            assert not {*part.seeds} & {*range(5)}
        else:
            assert list(part.seeds) == [0, 1, 2, 3, 4]
    knapsack = PARTS[1].data | {"sizes": [1, 0, 0]}
    assert datasets.paper_knapsacks((1, 0, 0)).problem.n_variables == 21
    assert knapsack["generator"] == "paper_knapsacks"
    for part, degree in zip(CAVE, (4, 6), strict=True):
        assert part.data["sizes"] == [1000, 100, 1000]
        assert (part.data["degree"], part.data["noise"]) == (degree, 0.5)
        assert list(part.seeds) == list(range(42, 52))
        assert (part.epochs, part.batch_size) == (10, 32)


@pytest.mark.parametrize("part", PAPER, ids=lambda part: part.name)
def test_the_papers_steps(part):
    searched = [method for method in part.methods if len(method.steps) > 1]
    for method in searched:
        assert method.steps == pytest.approx([10.0 * 10.0**-k for k in range(6)])
        smoothing = {"QPTL": "tau", "BB": "lam"}.get(method.label)
        if smoothing is not None:
            assert method.options[smoothing] == pytest.approx([100.0 * 10.0**-k for k in range(6)])
        assert len(part.candidates(method)) == (6 if smoothing is None else 36)
    by_line_search = {m.label for m in part.methods if m.optimiser == "armijo"}
    assert by_line_search == {"ours, ERM", "MOM", "MOM, true basis"}


@pytest.mark.parametrize("part", PAPER, ids=lambda part: part.name)
def test_our_estimator_of_today_is_one_row_that_nothing_else_shares(part):
    today, chosen_noise = [method for method in part.methods if method.optimiser == "lbfgs"]
    assert chosen_noise.training["noise_share"] == (1.0, 0.4, 0.0)
    assert set(chosen_noise.training["ridge"]) < set(today.training["ridge"])
    ridges = today.training["ridge"]
    default = 0.15 / part.data["sizes"][0]
    assert min(abs(np.log(np.array(ridges) / default))) < 1e-9  # the usual one is among them
    assert [m.label for m in part.methods].count(today.label) == 1
    config = replace(part.candidates(today)[0], data={**part.data, "sizes": [12, 4, 4]})
    run = perform(config)
    assert run["status"] == "finished"
    assert {"gamma", "gamma_relative"} <= run["final"]["test"].keys()


@pytest.mark.parametrize("part", PAPER, ids=lambda part: part.name)
def test_every_loss_takes_part(part):
    assert {method.name for method in part.methods} == {*LOSSES, "cave+"}
    powers = [m.options.get("power", (2,))[0] for m in part.methods if m.name == "projection"]
    assert set(powers) == {2, 1, "huber"}


@pytest.mark.parametrize("part", CAVE, ids=lambda part: part.name)
def test_everyone_has_as_many_candidates_on_the_yardstick(part):
    counts = {method.label: len(part.candidates(method)) for method in part.methods}
    assert len(set(counts.values())) == 1, counts
    epochs = {method.label: method.epochs or part.epochs for method in part.methods}
    assert {label for label, count in epochs.items() if count == 20} == {"NCE", "two-stage"}
    assert set(epochs.values()) == {10, 20}
    assert {*synthetic_tables.CAVE_RIVALS, "SPO+"} <= epochs.keys()


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_methods_say_truly_whether_they_see_true_costs(part):
    problem = rv.problems.grid_shortest_path(2, 2, directed="right-down")
    for method in part.methods:
        for config in part.candidates(method):
            options = dict(config.method)
            loss = make_loss(options.pop("name"), problem, **options)
            assert loss.needs_true_costs is config.needs_true_costs, config.label


def test_no_two_runs_are_the_same():
    for quick in (False, True):
        configs = [config for part in experiment(quick=quick) for config in part.configs()]
        assert max(Counter(config.key for config in configs).values()) == 1


def test_rows_of_a_table_have_different_names():
    for part in PARTS:
        names = Counter((method.label, method.optimiser) for method in part.methods)
        assert max(names.values()) == 1


def test_the_quick_experiment_has_everyone_and_little_else():
    whole, quick = experiment(), experiment(quick=True)
    for part, small in zip(whole, quick, strict=True):
        assert [m.label for m in small.methods] == [m.label for m in part.methods]
        assert len(small.seeds) == 1
        assert small.epochs < part.epochs
    count = sum(len(list(part.configs())) for part in quick)
    assert 100 < count < sum(len(list(part.configs())) for part in whole) / 20


def test_parts_and_seeds_can_be_chosen():
    (only,) = experiment(only="cave degree 6", seeds=3)
    assert list(only.seeds) == [42, 43, 44]
    with pytest.raises(rv.InputError, match="matches none of paper path"):
        experiment(only="nothing")


@pytest.mark.parametrize("quick", [False, True])
def test_a_run_is_found_by_its_key(quick):
    for part in experiment(quick=quick, seeds=11):
        config = list(part.configs())[-1]
        assert experiments.find(config.key) == config


# --- the choice ----------------------------------------------------------------------------------


def test_the_least_validation_loss_over_all_seeds_is_chosen():
    runs = [
        fake(step=0.1, seed=0, valid=1.0, test=9.0),
        fake(step=0.1, seed=1, valid=2.0, test=9.0),
        fake(step=0.2, seed=0, valid=0.0, test=0.0),
        fake(step=0.2, seed=1, valid=4.0, test=0.0),
    ]
    (choice,) = choose.chosen(runs)
    assert choice.config["step"] == 0.1
    assert "seed" not in choice.config
    assert choice.seeds == [0, 1]
    assert list(choice.runs.values()) == runs[:2]
    assert choice.n_candidates == 2
    assert choice.settings == {"step": 0.1}
    np.testing.assert_array_equal(choice.final("test", "decision_loss"), [9.0, 9.0])
    (other_order,) = choose.chosen(runs[::-1])
    assert other_order.runs == choice.runs


@pytest.mark.parametrize("status", ["diverged", "failed"])
def test_who_went_wrong_once_is_not_eligible(status):
    runs = [fake(step=0.1, seed=s, valid=5.0) for s in (0, 1)]
    runs += [fake(step=0.2, seed=0, valid=0.0), fake(step=0.2, seed=1, status=status)]
    (choice,) = choose.chosen(runs)
    assert choice.config["step"] == 0.1
    assert choose.dropped(runs) == []
    (gone,) = choose.dropped(runs[2:])
    assert (gone.label, gone.n_candidates, gone.n_runs) == ("ST", 1, {"finished": 1, status: 1})
    assert choose.chosen(runs[2:]) == []


def test_a_candidate_that_lacks_a_seed_is_not_eligible():
    runs = [fake(step=0.1, seed=s, valid=5.0) for s in (0, 1)]
    (choice,) = choose.chosen([*runs, fake(step=0.2, seed=0, valid=0.0)])
    assert choice.config["step"] == 0.1


def test_ties_go_to_the_better_fit_and_then_to_the_smaller_step():
    (choice,) = choose.chosen([fake(step=0.1, train=2.0), fake(step=0.2, train=1.0)])
    assert choice.config["step"] == 0.2
    (choice,) = choose.chosen([fake(step=0.2), fake(step=0.1), fake(step=0.3)])
    assert choice.config["step"] == 0.1


def test_labels_parts_and_optimisers_are_chosen_apart():
    runs = [fake(), fake("BB"), fake(part="paper knapsack"), fake(optimiser="sgd")]
    found = [(c.part, c.label, c.optimiser) for c in choose.chosen(runs)]
    assert found == [
        ("paper path", "ST", "adam"),
        ("paper path", "BB", "adam"),
        ("paper knapsack", "ST", "adam"),
        ("paper path", "ST", "sgd"),
    ]


# --- the targets ---------------------------------------------------------------------------------


def holds(runs):
    return [t["holds"] for t in synthetic_tables.targets(choose.chosen(runs))]


def test_targets_of_the_yardstick():
    def runs(ours, rival):
        part = "cave degree 4"
        found = [fake("ours", part, name="projection", seed=s, test=ours + s) for s in (0, 1)]
        found += [fake("PFYL", part, seed=s, test=rival + s) for s in (0, 1)]
        return [*found, *(fake("MOM", part, seed=s, test=0.0) for s in (0, 1))]

    assert holds(runs(1.0, 1.0)) == [True]
    assert holds(runs(1.1, 1.0)) == [False]
    (found,) = synthetic_tables.targets(choose.chosen(runs(0.02, 0.03)))
    assert found["value"] == pytest.approx(-1.0)
    assert "ours less that of PFYL" in found["name"]


def test_no_part_no_claim():
    assert synthetic_tables.targets([]) == []
    assert synthetic_tables.tables([], []) == []


# --- the command ---------------------------------------------------------------------------------

TINY = {"generator": "paper_paths", "sizes": [8, 4, 4], "side": 3}


@pytest.fixture
def tiny(monkeypatch):
    """The whole experiment, every part of it, on a few samples and with few candidates."""
    parts = []
    for part in PARTS:
        data = part.data | {"sizes": [8, 4, 4]}
        few = {"epochs": None}
        methods = [
            replace(m, steps=m.steps[:2], models=m.models and m.models[:2], **few)
            for m in part.methods
        ]
        small = {"epochs": 2, "seeds": part.seeds[:2], "data": data, "methods": methods[:4]}
        parts.append(replace(part, **small))
    monkeypatch.setattr(experiments, "PARTS", tuple(parts))
    return parts


def test_the_command(tiny, tmp_path, capsys):
    folder = tmp_path / "deep" / "out"
    assert run_command("--out", folder, "--jobs", "1") in (0, 1)  # so few samples prove nothing
    out = capsys.readouterr().out
    for words in ("The paper's path, 2 seeds", "The paper's knapsack", "Margins", "kernel models"):
        assert words in out
    assert "CaVE's yardstick, degree 6" in out
    assert "ERM by Armijo has lower test estimate loss" in out  # a claim, with its verdict
    content = json.loads((folder / "sweep.json").read_text("utf-8"))
    assert content["experiment"] == "synthetic"
    assert content["parts"] == [part.name for part in tiny]
    assert {"command", "when", "hardware", "versions", "settings", "targets"} <= content.keys()
    runs = read_runs(folder)
    assert Counter(run["status"] for run in runs)["failed"] == 0
    assert {run["command"] for run in runs} == {
        f"revealed bench run {RunConfig.read(run).key}" for run in runs
    }
    assert str(tmp_path) not in "".join(p.read_text("utf-8") for p in folder.rglob("*.json*"))


def test_the_command_repeats_nothing_and_keeps_kinds_apart(tiny, tmp_path, capsys):
    words = ("--out", tmp_path, "--jobs", "1", "--only")
    run_command(*words, "margins path")
    before = {path: path.stat().st_ino for path in (tmp_path / "runs").iterdir()}
    assert len(before) == 8
    run_command(*words, "margins")
    assert {path: path.stat().st_ino for path in before} == before
    content = json.loads((tmp_path / "sweep.json").read_text("utf-8"))
    assert content["parts"] == ["margins path", "margins knapsack"]
    with pytest.raises(rv.InputError, match="holds a full sweep, and this one is quick"):
        run_command(*words, "margins", "--quick")


def test_parts_with_more_seeds_run_what_was_chosen_and_nothing_else(tiny, tmp_path, capsys):
    words = ("--out", tmp_path, "--jobs", "1", "--only")
    with pytest.raises(rv.InputError, match="takes its settings from 'paper path'"):
        run_command(*words, "seeds path")
    run_command(*words, "paper path")
    run_command(*words, "seeds path")
    runs = read_runs(tmp_path)
    chosen = {c.part: {} for c in choose.chosen(runs)}
    for choice in choose.chosen(runs):
        chosen[choice.part][choice.label, choice.optimiser] = choice
    assert chosen["seeds path"].keys() == chosen["paper path"].keys()
    for name, choice in chosen["seeds path"].items():
        assert choice.n_candidates == 1
        assert choice.config | {"part": ""} == chosen["paper path"][name].config | {"part": ""}
        assert choice.seeds == [100, 101]
        found = RunConfig(**(choice.config | {"seed": 101}))
        assert experiments.find(found.key) == found


def test_edited_candidates_are_not_mixed_with_the_old_ones(tiny, tmp_path, capsys, monkeypatch):
    words = ("--out", tmp_path, "--jobs", "1", "--only")
    run_command(*words, "margins")
    runs, earlier = tmp_path / "runs", tmp_path / "earlier"
    before = {path.name: path.stat().st_ino for path in runs.iterdir()}
    (part,) = experiment(only="margins path")
    fewer = replace(part, methods=part.methods[1:])
    edited = tuple(fewer if each.name == part.name else each for each in tiny)
    monkeypatch.setattr(experiments, "PARTS", edited)
    run_command(*words, "margins path")
    assert len(list(earlier.iterdir())) == 2  # one method, two seeds
    assert len(list(runs.iterdir())) == len(before) - 2
    assert {c.label for c in choose.chosen(read_runs(tmp_path)) if c.part == part.name} == {
        method.label for method in fewer.methods
    }
    monkeypatch.setattr(experiments, "PARTS", tuple(tiny))
    run_command(*words, "margins path")
    assert {path.name: path.stat().st_ino for path in runs.iterdir()} == before


def test_the_quick_command_claims_nothing_but_that_it_runs(tiny, tmp_path, capsys, monkeypatch):
    words = ("--quick", "--jobs", "1", "--only", "paper path")
    assert run_command(*words, "--out", tmp_path / "a") == 0
    assert json.loads((tmp_path / "a" / "sweep.json").read_text("utf-8"))["targets"] == []
    bad = replace(tiny[0], methods=[Method(label="bad", name="nonsense")])
    monkeypatch.setattr(experiments, "PARTS", (bad,))
    assert run_command(*words, "--out", tmp_path / "b") == 1
    out = capsys.readouterr().out
    assert "failed: paper path, bad" in out
    assert "Methods without a candidate" in out


def test_packed_runs_give_the_same_choice(tiny, tmp_path, capsys):
    run_command("--out", tmp_path, "--jobs", "1", "--only", "paper path")
    single = choose.chosen(read_runs(tmp_path))
    (tmp_path / "runs").rename(tmp_path / "elsewhere")
    packed = choose.chosen(read_runs(tmp_path))
    assert {c.label: c.keys for c in packed} == {c.label: c.keys for c in single}
    for choice in packed:
        assert all(run["epochs"] for run in choice.runs.values())
        assert choice.n_candidates in (1, 2)


# --- small promises ------------------------------------------------------------------------------


def test_kernel_models_learn_what_a_linear_one_cannot():
    """On the paper's knapsack, whose values jump: the training decisions are explained better."""
    part = next(part for part in PARTS if part.name == "kernels knapsack")
    linear, _, gaussian = (perform(part.candidates(method)[0]) for method in part.methods)
    loss = [run["final"]["train"]["decision_loss"] for run in (linear, gaussian)]
    assert loss[1] < loss[0]


def test_data_are_drawn_once_for_all_runs():
    part = Part(
        name="x", data=TINY, model={"kind": "linear"}, epochs=1, batch_size=1, seeds=[3], methods=[]
    )
    one, other = (part.candidates(Method(label=name, name=name))[0] for name in ("st", "bb"))
    assert data_of(one) is data_of(other)
