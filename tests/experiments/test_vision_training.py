"""Training from pictures: any loss, the same numbers again, and what judges them."""

import dataclasses
import json
import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import revealed as rv
from revealed import metrics
from revealed.errors import InputError
from revealed.fit.optimizers import set_lr, state_of
from revealed.losses import make_loss
from revealed.optimality.sets import OptimalitySet
from revealed_experiments.images import digit_boards, terrain
from revealed_experiments.vision import (
    DeviceSplit,
    TrainSettings,
    build_model,
    judge,
    predict,
    train,
    training,
)
from revealed_experiments.vision.optimizers import AdaGrad, make_optimizer
from revealed_experiments.vision.stepping import Step, _Kept, can_capture, make_observed

ON_CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
METHODS = {
    "projection": {},
    "smoothed": {"margin": 1.0, "n_samples": 2},
    "st": {},
    "mom": {},
    "bb": {"floor": 0.01},
    "pfyl": {"n_samples": 2, "floor": 0.01},
    "spo+": {"floor": 0.01},
    "two-stage": {},
}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def maps():
    return terrain((24, 4, 12), side=4, seed=3, unique=True)


@pytest.fixture(scope="module")
def boards():
    return digit_boards((12, 2, 4), side=4, pixels=8, seed=3, unique=True)


def learn(data, name="projection", options=None, device="cpu", **settings):
    """A small network after training, with what `train` tells."""
    channels = data.train.images.shape[3]
    net = build_model("small", data.problem, channels=channels, seed=5)
    split = DeviceSplit.of(data.train, device, torch.float64)
    test = DeviceSplit.of(data.test, device, torch.float64)
    loss = make_loss(name, data.problem, **(METHODS[name] if options is None else options))

    def monitor(epoch, model):
        return {"test": judge(model, data.problem, test)}

    given = {"batch_size": 8, "max_epochs": 3, "lr": 3e-3, "monitor": monitor}
    return net, train(net, split, loss, **(given | settings))


def figures(rows):
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]


def assert_same(one, other):
    (net, result), (again, repeated) = one, other
    assert figures(result.rows) == figures(repeated.rows)
    for name, tensor in net.state_dict().items():
        assert torch.equal(tensor, again.state_dict()[name]), name


# --- learning ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("kind", ["maps", "boards"])
def test_every_loss_trains(request, kind, name):
    data = request.getfixturevalue(kind)
    options = {k: v for k, v in METHODS[name].items() if kind == "maps" or k != "floor"}
    net, result = learn(data, name, options, max_epochs=2)
    assert [row["epoch"] for row in result.rows] == [0, 1, 2]
    assert result.finished
    start = build_model("small", data.problem, channels=data.train.images.shape[3], seed=5)
    moved = [
        not torch.equal(a, b) for a, b in zip(net.parameters(), start.parameters(), strict=True)
    ]
    assert all(moved)


def test_ours_learns_to_explain_the_maps_it_sees(maps):
    _, result = learn(maps, max_epochs=15, lr=1e-2)
    losses = [row["loss"] for row in result.rows[1:]]
    assert losses[-1] < 0.5 * losses[0]


@pytest.mark.parametrize("optimizer", ["adam", "adagrad"])
def test_a_seed_gives_the_same_numbers_and_another_one_others(maps, optimizer):
    one, other = (learn(maps, "pfyl", optimizer=optimizer, max_epochs=2) for _ in range(2))
    assert_same(one, other)
    third = learn(maps, "pfyl", optimizer=optimizer, max_epochs=2, seed=1)
    assert figures(third[1].rows) != figures(one[1].rows)


def test_an_epoch_takes_whole_batches_of_samples_that_differ(maps):
    class Watching(rv.ProjectionLoss):
        def evaluate(self, costs, decisions, **rest):
            seen.append(decisions.decisions)
            return super().evaluate(costs, decisions, **rest)

    seen: list[np.ndarray] = []
    net = build_model("small", maps.problem, seed=5)
    split = DeviceSplit.of(maps.train, "cpu", torch.float64)
    train(net, split, Watching(maps.problem), max_epochs=1, batch_size=10, lr=1e-3)
    assert [len(batch) for batch in seen] == [10, 10]  # of 24
    order = np.random.default_rng([0, 1]).permutation(24)[:20]
    assert np.array_equal(np.concatenate(seen), maps.train.decisions[order])


@pytest.mark.parametrize("name", METHODS)
def test_every_loss_learns_from_all_views(maps, name):
    _, seen = learn(maps, name, max_epochs=2, views="all")
    _, plain = learn(maps, name, max_epochs=2)
    assert seen.finished
    assert seen.rows[0]["test"] == plain.rows[0]["test"]
    assert seen.rows[1]["loss"] != plain.rows[1]["loss"]


def test_raw_decisions_and_sets_built_before_are_the_same(maps):
    sets = OptimalitySet(maps.problem, maps.train.decisions, 1.0)
    assert_same(learn(maps, sets=sets, max_epochs=1), learn(maps, max_epochs=1))


def test_bfloat16_changes_the_numbers_a_little(maps):
    (_, half), (_, full) = (learn(maps, max_epochs=1, half=flag) for flag in (True, False))
    assert half.rows[1]["loss"] != full.rows[1]["loss"]
    assert half.rows[1]["loss"] == pytest.approx(full.rows[1]["loss"], rel=0.05)


def test_a_training_that_leaves_all_bounds_says_so(maps):
    with pytest.raises(InputError):
        learn(maps, "two-stage", lr=1e30, max_epochs=3)


def test_settings_that_make_no_sense_are_refused(maps):
    for wrong in ({"max_epochs": -1}, {"batch_size": 0}, {"lr": 0.0}, {"schedule": "cosine"}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            TrainSettings(**wrong)
    with pytest.raises(InputError, match="adagrad"):
        learn(maps, optimizer="sgd")


def test_no_pictures_are_refused(maps):
    nothing = DeviceSplit.of(maps.train[:0], "cpu")
    net = build_model("small", maps.problem)
    with pytest.raises(InputError, match="learn from"):
        train(net, nothing, rv.ProjectionLoss(maps.problem))
    with pytest.raises(InputError, match="judge"):
        judge(net, maps.problem, nothing)


# --- optimizers ----------------------------------------------------------------------------------


def walk(make, steps=6):
    torch.manual_seed(0)
    net = nn.Linear(5, 3)
    optimizer = make(net.parameters())
    inputs = torch.randn(steps, 7, 5)
    for k, batch in enumerate(inputs):
        set_lr(optimizer, 0.1 if k < 3 else 0.01)
        optimizer.zero_grad()
        net(batch).square().sum().backward()
        optimizer.step()
    return torch.cat([p.detach().flatten() for p in net.parameters()])


@pytest.mark.parametrize(
    "name, theirs", [("adam", torch.optim.Adam), ("adagrad", torch.optim.Adagrad)]
)
def test_optimizers_move_as_those_of_torch(name, theirs):
    ours = walk(lambda parameters: make_optimizer(name, parameters, 0.1))
    torch.testing.assert_close(ours, walk(lambda p: theirs(p, lr=0.1)), rtol=1e-5, atol=1e-7)


def test_a_parameter_without_gradient_stays():
    p, q = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2))
    optimizer = AdaGrad([p, q], 0.5)
    p.sum().backward()
    optimizer.step()
    assert p.tolist() == [0.5, 0.5]
    assert q.tolist() == [1.0, 1.0]


def test_the_rate_falls_in_a_straight_line_where_asked(maps, monkeypatch):
    made = []

    def make(*given):
        made.append(make_optimizer(*given))
        return made[-1]

    def rates(**settings):
        found = []

        def monitor(epoch, model):
            found.append(made[-1].param_groups[0]["lr"])
            return {}

        learn(maps, lr=2e-3, max_epochs=4, monitor=monitor, **settings)
        return found[1:]

    monkeypatch.setattr(training, "make_optimizer", make)
    assert rates(schedule="linear") == pytest.approx([2e-3, 1.5e-3, 1e-3, 0.5e-3])
    assert rates(schedule=1.0) == pytest.approx([2e-3, 1e-3, 2e-3 / 3, 0.5e-3])
    assert rates() == [2e-3] * 4


@pytest.mark.parametrize("optimizer", ["adam", "adagrad"])
@pytest.mark.parametrize("before", [0, 2])
def test_steps_tried_for_a_capture_are_taken_back(maps, optimizer, before):
    net = build_model("small", maps.problem, seed=5).train()
    split = DeviceSplit.of(maps.train, "cpu", torch.float64)
    loss = rv.ProjectionLoss(maps.problem)
    sets = OptimalitySet(maps.problem, maps.train.decisions, 1.0)
    moving = make_optimizer(optimizer, net.parameters(), 1e-3)
    step = Step(net, split, loss, moving, make_observed(loss, split, sets))

    def now():
        return [part.clone() for part in (*net.state_dict().values(), step.total)]

    for k in range(before):
        step(torch.arange(8) + k)
    kept, found = _Kept(step), now()
    memory = {name: part.clone() for name, part in state_of(moving).items()}
    for _ in range(3):
        step(torch.arange(8))
    assert not all(torch.equal(a, b) for a, b in zip(found, now(), strict=True))
    kept.restore(step)
    assert all(torch.equal(a, b) for a, b in zip(found, now(), strict=True))
    for name, part in state_of(moving).items():
        # Where there was nothing before the first step there are zeros now.
        assert torch.equal(part, memory.get(name, torch.zeros_like(part))), name


def test_what_a_graph_can_hold():
    paths = rv.problems.grid_shortest_path(4, 4, neighbors=8)
    pairs = rv.problems.grid_matching(4, 4)
    on_paths = [name for name in METHODS if can_capture(make_loss(name, paths))]
    on_pairs = [name for name in METHODS if can_capture(make_loss(name, pairs))]
    assert on_paths == list(METHODS)
    assert on_pairs == ["projection", "smoothed", "mom", "two-stage"]
    assert not can_capture(make_loss("mom", paths, basis="true"))
    assert not can_capture(make_loss("qptl", paths))


# --- the same numbers after an interruption ------------------------------------------------------


def stop_after(epochs):
    """A `stop` that lets this many epochs pass."""
    asked = iter(range(1000))
    return lambda: next(asked) >= epochs


@pytest.mark.parametrize("optimizer", ["adam", "adagrad"])
@pytest.mark.parametrize("name", ["projection", "smoothed", "pfyl"])
def test_a_run_that_was_stopped_ends_with_the_same_numbers(maps, tmp_path, optimizer, name):
    settings = {"optimizer": optimizer, "max_epochs": 4, "schedule": "linear"}
    whole = learn(maps, name, **settings)
    _, part = learn(maps, name, checkpoint=tmp_path, stop=stop_after(2), **settings)
    assert not part.finished
    assert len(part.rows) == 3
    assert_same(whole, learn(maps, name, checkpoint=tmp_path, **settings))


def test_warm_starts_between_checkpoints_do_not_spoil_that(maps, tmp_path):
    settings = {"max_epochs": 4, "checkpoint_every": 2}
    whole = learn(maps, **settings)
    learn(maps, checkpoint=tmp_path, stop=stop_after(3), **settings)
    assert_same(whole, learn(maps, checkpoint=tmp_path, **settings))


def test_a_run_does_not_start_from_what_another_has_left_in_the_loss(maps):
    class Counting(rv.ProjectionLoss):
        def evaluate(self, costs, decisions, **rest):
            value = super().evaluate(costs, decisions, **rest)
            counts.append(self.steps)
            return value

    def steps_of(loss, stop=None):
        counts.clear()
        net = build_model("small", maps.problem, seed=5)
        split = DeviceSplit.of(maps.train, "cpu", torch.float64)
        settings = {"max_epochs": 2, "batch_size": 8, "lr": 3e-3, "checkpoint_every": 10}
        train(net, split, loss, stop=stop, **settings)
        return list(counts)

    counts: list[int] = []
    shared = Counting(maps.problem)
    steps_of(shared, stop_after(1))
    assert steps_of(shared) == steps_of(Counting(maps.problem))


@pytest.mark.parametrize("every", [1, 2])
def test_a_finished_run_is_not_repeated(maps, tmp_path, every):
    one = learn(maps, checkpoint=tmp_path, checkpoint_every=every)
    again = learn(maps, checkpoint=tmp_path, checkpoint_every=every)
    assert [row["seconds"] for row in one[1].rows] == [row["seconds"] for row in again[1].rows]


@pytest.mark.parametrize(
    "change", [{"lr": 1e-2}, {"seed": 1}, {"name": "st"}, {"views": "mirrored"}]
)
def test_the_checkpoint_of_another_run_is_refused(maps, tmp_path, change):
    learn(maps, checkpoint=tmp_path, max_epochs=1)
    with pytest.raises(InputError, match="another run"):
        learn(maps, checkpoint=tmp_path, max_epochs=1, **change)


def test_a_checkpoint_of_other_data_or_another_network_is_refused(maps, tmp_path):
    """Whichever picture, decision or cost differs, and if only in one byte."""

    def run(name="small", change=None):
        split = DeviceSplit.of(maps.train, "cpu", torch.float64)
        if change is not None:
            array = getattr(split, change).clone()
            array[1].view(-1)[3] += 1
            split = dataclasses.replace(split, **{change: array})
        settings = {"max_epochs": 1, "batch_size": 8, "checkpoint": tmp_path}
        return train(
            build_model(name, maps.problem), split, rv.ProjectionLoss(maps.problem), **settings
        )

    run()
    for part in ("images", "decisions", "costs"):
        with pytest.raises(InputError, match="these differ: data"):
            run(change=part)
    with pytest.raises(InputError, match="these differ: model") as found:
        run("truncated")
    assert len(str(found.value)) < 1000
    assert run().finished


def test_a_damaged_checkpoint_is_refused(maps, tmp_path):
    learn(maps, checkpoint=tmp_path, max_epochs=1)
    for path in list(tmp_path.iterdir()):
        whole = path.read_bytes()
        spoiled = bytearray(whole)
        spoiled[len(whole) // 2] ^= 1
        path.write_bytes(spoiled)
        with pytest.raises(InputError, match="cannot be used"):
            learn(maps, checkpoint=tmp_path, max_epochs=2)
        path.write_bytes(whole)


KILLED = """
import sys
sys.path[:0] = [{source!r}, {tests!r}]
import torch
torch.set_num_threads(1)
import test_vision_training as t
data = t.terrain((24, 4, 12), side=4, seed=3, unique=True)
def monitor(epoch, model):
    print("epoch", epoch, flush=True)
    return {{"loss again": 0.0}}
t.learn(data, max_epochs=12, optimizer={optimizer!r}, checkpoint={folder!r}, monitor=monitor,
        checkpoint_every={every}, views={views!r}, shift={shift})
"""


@pytest.mark.parametrize(
    "optimizer, every, views, shift",
    [
        ("adam", 1, None, 0),
        ("adam", 4, "all", 1),
        ("adagrad", 1, "mirrored", 0),
        ("adagrad", 4, None, 0),
    ],
)
def test_a_run_that_was_killed_ends_with_the_same_numbers(
    maps, tmp_path, optimizer, every, views, shift
):
    here = Path(__file__).parent
    root = here.parents[1]
    code = KILLED.format(
        source=os.pathsep.join([str(root / "src"), str(root / "experiments/src")]),
        tests=str(here),
        optimizer=optimizer,
        folder=str(tmp_path / "run"),
        every=every,
        views=views,
        shift=shift,
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if line == "epoch 6\n":
            os.kill(process.pid, signal.SIGKILL)
            break
    process.stdout.close()
    assert process.wait() == -signal.SIGKILL

    def monitor(epoch, model):
        return {"loss again": 0.0}

    settings = {"max_epochs": 12, "optimizer": optimizer, "monitor": monitor, "views": views}
    settings |= {"checkpoint_every": every, "shift": shift}
    assert json.loads((tmp_path / "run" / "checkpoint.json").read_text())["epoch"] < 12
    resumed = learn(maps, checkpoint=tmp_path / "run", **settings)
    assert_same(resumed, learn(maps, **settings))


# --- judging -------------------------------------------------------------------------------------


def test_measures_are_those_of_the_metrics(maps):
    net, _ = learn(maps, max_epochs=1)
    split = DeviceSplit.of(maps.test, "cpu", torch.float64)
    found = judge(net, maps.problem, split)
    costs = predict(net, split.images).double().numpy()
    given = {"costs": costs, "decisions": maps.test.decisions}
    truth = {"true_costs": maps.test.costs}
    expected = {
        "decision_loss": metrics.decision_loss(maps.problem, **given).mean(),
        "estimate_loss": metrics.estimate_loss(maps.problem, **given, **truth).mean(),
        "relative_regret": metrics.relative_regret(maps.problem, **given, **truth),
    }
    for name, value in expected.items():
        assert found[name] == pytest.approx(value)
    decided = maps.problem.solve(costs).x
    assert found["exact"] == (decided == maps.test.decisions).all(axis=1).mean()


class Told(nn.Module):
    """Predicts the costs that it was given."""

    def __init__(self, costs):
        super().__init__()
        self.costs = nn.Parameter(torch.from_numpy(costs))

    def forward(self, images):
        return self.costs[: len(images)]


def test_ties_are_optimal_but_not_exact():
    data = terrain((1, 0, 40), side=5, seed=1)
    # Costs a little off in another way for each edge choose another one of equally short paths.
    rng = np.random.default_rng(0)
    costs = data.test.costs + rng.uniform(0, 1e-4, data.test.costs.shape)
    found = judge(Told(costs), data.problem, DeviceSplit.of(data.test, "cpu", torch.float64))
    assert found["optimal"] == 1.0
    assert found["exact"] < 1.0
    assert found["estimate_loss"] == pytest.approx(0.0, abs=1e-9)


def test_where_nothing_costs_anything_every_decision_is_optimal(maps):
    net, _ = learn(maps, max_epochs=0)
    split = DeviceSplit.of(maps.test, "cpu", torch.float64)
    free = DeviceSplit(split.images, split.decisions, torch.zeros_like(split.costs))
    found = judge(net, maps.problem, free)
    assert (found["optimal"], found["estimate_loss"]) == (1.0, 0.0)
    assert math.isnan(found["relative_regret"])  # a share of nothing


def test_judging_leaves_a_network_as_it_was(maps):
    net, _ = learn(maps, max_epochs=0)
    net.train()
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    judge(net, maps.problem, DeviceSplit.of(maps.test, "cpu"))
    assert net.training
    assert all(torch.equal(before[name], tensor) for name, tensor in net.state_dict().items())


# --- on a GPU ------------------------------------------------------------------------------------


@ON_CUDA
@pytest.mark.parametrize("views", [None, "all"])
@pytest.mark.parametrize("name", METHODS)
def test_one_graph_takes_the_same_steps(maps, name, views):
    captured, eager = (
        learn(maps, name, device="cuda", capture=flag, optimizer="adagrad", views=views, shift=1)
        for flag in (True, False)
    )
    assert captured[1].captured
    assert not eager[1].captured
    assert_same(captured, eager)


@ON_CUDA
@pytest.mark.parametrize("every, views", [(1, None), (2, None), (2, "all")])
@pytest.mark.parametrize("name", METHODS)
def test_a_stopped_run_ends_alike_on_the_gpu(maps, tmp_path, name, every, views):
    settings = {"device": "cuda", "max_epochs": 5, "checkpoint_every": every, "views": views}
    settings["shift"] = 2 if views else 0
    whole = learn(maps, name, **settings)
    learn(maps, name, checkpoint=tmp_path, stop=stop_after(3), **settings)
    assert_same(whole, learn(maps, name, checkpoint=tmp_path, **settings))
