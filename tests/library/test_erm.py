"""ERM: every method in one loop; early stopping, inner steps, runs that survive being killed."""

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import torch

import revealed as rv
from revealed import theory
from revealed.fit import (
    KernelModel,
    LinearModel,
    SharedModel,
    StopReason,
    TorchModel,
    TrainSettings,
    checkpoint,
    erm,
    pocs,
)
from revealed.losses import SPOPlusLoss, make_loss

METHODS = ["armijo", "preconditioned", "sgd", "adam", "adagrad"]
PROBLEM = rv.problems.grid_shortest_path(4, 4, directed="right-down")


def routes(B=40, d=4, seed=0, margin=1.0):
    """Routes of minimum cost where costs depend on the contexts, but not linearly."""
    rng = np.random.default_rng([7, seed])
    Z = rng.standard_normal((B, d)) / np.sqrt(d)
    W = np.random.default_rng(1).random((d, PROBLEM.n_variables))
    C = 0.2 + (Z @ W + 1.5) ** 2 * rng.uniform(0.7, 1.3, (B, PROBLEM.n_variables))
    return Z, rv.OptimalitySet(PROBLEM, PROBLEM.solve(C).x, margin)


def shared_routes(B=40):
    """Features of each edge, whose weights are the same everywhere."""
    Z = np.random.default_rng(3).random((B, PROBLEM.n_variables, 3))
    return Z, rv.OptimalitySet(PROBLEM, PROBLEM.solve(Z @ [1.0, 2.0, 0.5]).x)


def network(d=4, dropout=0.0, dtype=torch.float32):
    torch.manual_seed(5)
    layers = torch.nn.Linear(d, 12), torch.nn.Tanh(), torch.nn.Dropout(dropout)
    return torch.nn.Sequential(*layers, torch.nn.Linear(12, PROBLEM.n_variables)).to(dtype)


def mean_h(model, Z, sets):
    return float(0.5 * np.mean(rv.project(model.predict_cost(Z), sets).distance ** 2))


# --- the methods ---------------------------------------------------------------------------------


PAIRS = [(o, m) for m in (LinearModel, SharedModel, KernelModel, network) for o in METHODS]
PAIRS.remove(("preconditioned", network))  # refused, see below


@pytest.mark.parametrize("optimizer, build", PAIRS)
def test_every_method_lowers_the_loss_of_every_model(optimizer, build):
    Z, sets = shared_routes() if build is SharedModel else routes()
    model = TorchModel(network()) if build is network else build()
    history = erm(model, Z, sets, optimizer=optimizer, max_epochs=12)
    assert history["h"][-1] < 0.9 * history["h"][0]
    assert history["h"][-1] == pytest.approx(mean_h(model, Z, sets), rel=1e-5)


def test_preconditioned_with_step_one_is_pocs():
    Z, sets = routes()
    by_erm, by_pocs = LinearModel(), LinearModel()
    history = erm(by_erm, Z, sets, optimizer="preconditioned", max_epochs=30, tol=0.0)
    other = pocs(by_pocs, Z, sets, max_iter=30, tol=0.0)
    np.testing.assert_allclose(by_erm.coef, by_pocs.coef, rtol=0, atol=1e-9)
    np.testing.assert_allclose(by_erm.intercept, by_pocs.intercept, rtol=0, atol=1e-9)
    np.testing.assert_allclose(history["h"], other["h"], rtol=1e-9)


@pytest.mark.parametrize("ridge", [0.0, 0.05])
def test_armijo_ends_within_two_percent_of_pocs(ridge):
    Z, sets = routes(B=60)
    best = pocs(LinearModel(ridge=ridge), Z, sets, max_iter=150)["loss"][-1]
    armijo = erm(LinearModel(ridge=ridge), Z, sets, optimizer="armijo", max_epochs=150)["loss"]
    assert armijo[-1] <= 1.02 * best
    assert (np.diff(armijo) <= 1e-12 * armijo[0]).all()


def test_armijo_accepts_only_steps_that_fall_enough():
    Z, sets = routes()
    history = erm(LinearModel(), Z, sets, optimizer="armijo", max_epochs=40, tol=0.0)
    L = theory.smoothness(Z, intercept=True)
    assert (history["lr"][:-1] >= 0.5 / L).all()  # 1/L always falls enough; halving stops there


def test_gradient_descent_keeps_its_promised_rate():
    Z, sets = routes(B=4, d=6)
    L = theory.smoothness(Z)
    model = LinearModel(fit_intercept=False)
    h = erm(model, Z, sets, optimizer="sgd", lr=1 / L, batch_size=4, max_epochs=60, tol=0.0)["h"]
    promised = theory.expected_h(Z, h0=h[0], steps=len(h) - 1)
    assert theory.contraction(Z) < 1
    assert (h <= promised * (1 + 1e-9)).all()


def test_steps_decrease_as_asked():
    Z, sets = routes()
    s = {"optimizer": "sgd", "lr": 0.4, "batch_size": 40, "max_epochs": 4}
    constant = erm(LinearModel(), Z, sets, **s)["lr"][:-1]
    falling = erm(LinearModel(), Z, sets, **s, schedule=0.5)["lr"][:-1]
    line = erm(LinearModel(), Z, sets, **s, schedule="linear")["lr"][:-1]
    np.testing.assert_allclose(constant, 0.4)
    np.testing.assert_allclose(falling, 0.4 / np.sqrt([1, 2, 3, 4]))
    np.testing.assert_allclose(line, 0.4 * np.array([1, 0.75, 0.5, 0.25]))


@pytest.mark.parametrize("optimizer", ["sgd", "adam", "adagrad"])
def test_weight_decay_is_that_of_torch(optimizer):
    Z, sets = routes()
    plain, decayed = LinearModel(), LinearModel()
    settings = {"optimizer": optimizer, "max_epochs": 20, "tol": 0.0}
    erm(plain, Z, sets, **settings)
    erm(decayed, Z, sets, **settings, weight_decay=0.5)
    assert np.linalg.norm(decayed.coef) < 0.9 * np.linalg.norm(plain.coef)
    assert np.linalg.norm(decayed.intercept) < np.linalg.norm(plain.intercept)  # biases too


def test_several_updates_for_each_projection_reach_further():
    Z, sets = routes()
    settings = {"optimizer": "sgd", "lr": 0.2, "max_epochs": 6, "tol": 0.0}
    one = erm(LinearModel(), Z, sets, **settings)
    five = erm(LinearModel(), Z, sets, **settings, inner_steps=5)
    assert five["h"][-1] < one["h"][-1]


def test_many_inner_steps_on_all_data_approach_pocs():
    Z, sets = routes()
    model, other = LinearModel(), LinearModel()
    settings = {"optimizer": "sgd", "lr": 0.5, "batch_size": 40, "max_epochs": 3, "tol": 0.0}
    erm(model, Z, sets, **settings, inner_steps=1000)
    pocs(other, Z, sets, max_iter=3, tol=0.0)
    np.testing.assert_allclose(model.coef, other.coef, atol=1e-6)


@pytest.mark.parametrize("power", [1, 2, "huber", "welsch"])
def test_minimizes_the_loss_that_is_asked_for(power):
    Z, sets = routes()
    model = LinearModel()
    history = erm(model, Z, sets, optimizer="armijo", power=power, delta=0.5, max_epochs=25)
    loss = rv.losses.projection_loss(model.predict_cost(Z), sets, power=power, delta=0.5)
    assert history["loss"][-1] == pytest.approx(float(loss), rel=1e-9)
    assert history["loss"][-1] < 0.8 * history["loss"][0]


def test_the_same_seed_gives_the_same_model_whatever_the_callers_seed():
    Z, sets = routes()
    settings = {"optimizer": "adam", "max_epochs": 4, "batch_size": 8}
    nets = [network(dropout=0.3) for _ in range(3)]
    for k, net in enumerate(nets):
        torch.manual_seed(100 + k)  # must not matter
        erm(net, Z, sets, **settings, seed=0 if k < 2 else 1)
    weights = [net[0].weight.detach() for net in nets]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_callers_random_numbers_and_threads_are_left_alone():
    Z, sets = routes()
    threads = torch.get_num_threads()
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    erm(TorchModel(network()), Z, sets, max_epochs=2)
    torch.manual_seed(3)
    assert torch.equal(torch.rand(2), expected)
    assert torch.get_num_threads() == threads


# --- when it stops -------------------------------------------------------------------------------


def test_stops_when_every_cost_is_inside():
    Z, sets = routes(B=4, d=6)
    history = erm(LinearModel(), Z, sets, optimizer="armijo", max_epochs=2000, tol=1e-4)
    assert history.reason is StopReason.INTERPOLATED
    assert history.certificate.interpolates


def test_stops_when_nothing_is_gained():
    Z, sets = routes()
    history = erm(LinearModel(), Z, sets, optimizer="armijo", max_epochs=3000, tol=1e-2)
    assert history.reason is StopReason.NO_PROGRESS


@pytest.mark.parametrize("build", [LinearModel, lambda: TorchModel(network())])
def test_early_stopping_keeps_the_model_that_validates_best(build):
    (Z, sets), held = routes(B=12), routes(B=30, seed=1)
    model = build()
    settings = {"optimizer": "adam", "lr": 0.1, "max_epochs": 200, "patience": 8}
    history = erm(model, Z, sets, validation=held, **settings)
    assert history.reason is StopReason.VALIDATION
    assert len(history) < 200
    assert mean_h(model, *held) == pytest.approx(np.nanmin(history["validation"]), rel=1e-6)


def test_monitor_sees_the_model_that_the_row_is_about():
    Z, sets = routes()
    model = LinearModel()
    monitor = lambda m: {"own": mean_h(m, Z, sets)}  # noqa: E731
    history = erm(model, Z, sets, optimizer="armijo", max_epochs=5, tol=0.0, monitor=monitor)
    np.testing.assert_allclose(history["own"], history["h"], rtol=1e-7)


# --- on disk -------------------------------------------------------------------------------------

KILLED = """
    import os, sys
    import numpy as np
    sys.path.insert(0, sys.argv[1])
    from test_erm import RUNS, erm, routes

    name, folder, last = sys.argv[2], sys.argv[3], int(sys.argv[4])
    seen = []
    def monitor(model):
        seen.append(0)
        if len(seen) == last:
            os._exit(9)
        return {}
    Z, sets = routes()
    erm(RUNS[name]["model"](), Z, sets, monitor=monitor, checkpoint=folder,
        validation=routes(seed=1), **RUNS[name]["settings"])
"""

RUNS = {
    "network": {
        "model": lambda: TorchModel(network(dropout=0.2)),
        "settings": {"optimizer": "adam", "max_epochs": 15, "batch_size": 8, "checkpoint_every": 3},
    },
    "linear": {
        "model": LinearModel,
        "settings": {"optimizer": "armijo", "max_epochs": 15, "checkpoint_every": 3, "tol": 0.0},
    },
}


def parameters(model):
    return {name: t.detach().clone() for name, t in model.torch_module().state_dict().items()}


@pytest.mark.parametrize("name", RUNS)
def test_a_killed_run_goes_on_to_the_same_bits(name, tmp_path):
    Z, sets = routes()
    build, settings = RUNS[name]["model"], RUNS[name]["settings"]
    common = {"validation": routes(seed=1), **settings}
    straight, resumed = build(), build()
    expected = erm(straight, Z, sets, checkpoint=tmp_path / "straight", **common)

    last = {"network": 5, "linear": 14}[name]  # any epoch will do
    program = textwrap.dedent(KILLED)
    folder = str(tmp_path / "killed")
    arguments = [str(Path(__file__).parent), name, folder, str(last)]
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True)
    assert done.returncode == 9, done.stderr.decode()

    history = erm(resumed, Z, sets, checkpoint=folder, **common)
    for key, value in parameters(straight).items():
        assert torch.equal(parameters(resumed)[key], value), (key, last)
    for column in ("h", "loss", "validation"):
        assert np.array_equal(history[column], expected[column], equal_nan=True), (column, last)


def test_a_run_may_be_made_longer(tmp_path):
    Z, sets = routes()
    settings = {"optimizer": "adagrad", "checkpoint_every": 2, "log": tmp_path / "log.jsonl"}
    straight, pieces = LinearModel(), LinearModel()
    erm(straight, Z, sets, max_epochs=10, checkpoint=tmp_path / "a", **settings)
    lines = (tmp_path / "log.jsonl").read_text().splitlines()
    for epochs in (3, 6, 10):
        history = erm(pieces, Z, sets, max_epochs=epochs, checkpoint=tmp_path / "b", **settings)
    assert np.array_equal(straight.coef, pieces.coef)
    rows = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [row["iteration"] for row in rows] == list(range(11))
    assert [row["h"] for row in rows] == [json.loads(line)["h"] for line in lines]
    assert [row["h"] for row in rows] == list(history["h"])


def test_a_checkpoint_is_complete_or_not_there(tmp_path, monkeypatch):
    Z, sets = routes()
    settings = {"optimizer": "adam", "checkpoint_every": 2, "checkpoint": tmp_path}
    expected = LinearModel()
    erm(
        expected,
        Z,
        sets,
        optimizer="adam",
        checkpoint_every=2,
        checkpoint=tmp_path / "x",
        max_epochs=6,
    )

    written, replace = [], checkpoint.os.replace

    def dies_before_the_index(source, target):
        written.append(target)
        if len(written) == 4:  # the tensors of the second checkpoint are there, its index is not
            raise KeyboardInterrupt
        replace(source, target)

    monkeypatch.setattr(checkpoint.os, "replace", dies_before_the_index)
    with pytest.raises(KeyboardInterrupt):
        erm(LinearModel(), Z, sets, max_epochs=6, **settings)
    monkeypatch.undo()
    assert json.loads((tmp_path / checkpoint.INDEX).read_text())["epoch"] == 2
    model = LinearModel()
    erm(model, Z, sets, max_epochs=6, **settings)
    assert np.array_equal(model.coef, expected.coef)
    assert len(list(tmp_path.glob("*.safetensors"))) == 1


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    Z, sets = routes()
    settings = {"checkpoint": tmp_path, "checkpoint_every": 1, "max_epochs": 2}
    erm(LinearModel(), Z, sets, **settings)
    with pytest.raises(rv.InputError, match=r"another run; these differ: lr \(None, now 0.5\)"):
        erm(LinearModel(), Z, sets, lr=0.5, **settings)
    with pytest.raises(rv.InputError, match="these differ: data"):
        erm(LinearModel(), Z + 1, sets, **settings)
    for model in (LinearModel(ridge=0.5), LinearModel(fit_intercept=False)):
        with pytest.raises(rv.InputError, match=r"these differ: (ridge|model)"):
            erm(model, Z, sets, **settings)
    with pytest.raises(rv.InputError, match="these differ: validation"):
        erm(LinearModel(), Z, sets, validation=(Z, sets), **settings)


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"tensors": "gone", "run": {}, "rows": []}'])
def test_a_checkpoint_that_cannot_be_read_is_named(tmp_path, content):
    (tmp_path / checkpoint.INDEX).write_text(content)
    with pytest.raises(rv.InputError, match=r"cannot be used: checkpoint\.json"):
        erm(LinearModel(), *routes(), checkpoint=tmp_path, max_epochs=1)


def test_a_file_is_no_place_for_checkpoints(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(rv.InputError, match="must be a folder"):  # before the first epoch
        erm(LinearModel(), *routes(), checkpoint=tmp_path / "file", max_epochs=1)


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"optimizer": "newton"}, "armijo, preconditioned, sgd, adam, adagrad"),
        ({"max_epochs": -1}, "`max_epochs` must be a whole number of at least 0"),
        ({"batch_size": 0}, "`batch_size` must be a whole number of at least 1"),
        ({"lr": 0.0}, "above 0"),
        ({"lr": "a"}, "`lr` must be a finite number"),
        ({"batch_size": 2.5}, "`batch_size` must be a whole number"),
        ({"patience": 0}, "`patience` must be a whole number of at least 1"),
        ({"tol": "a"}, "`tol` must be a finite number"),
        ({"schedule": -1.0}, "at least 0"),
        ({"schedule": "cosine"}, 'a number or "constant" or "linear"'),
        ({"weight_decay": 0.1, "optimizer": "armijo"}, "give the model a `ridge`"),
        ({"power": 3}, "1, 2, 'huber', 'welsch'"),
        ({"patience": 5}, "validation"),
        ({"optimizer": "armijo", "inner_steps": 4}, "one step"),
        ({"validation": (np.zeros((3, 4)), routes()[1])}, "got 3"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings, words):
    with pytest.raises(rv.InputError, match=words):
        erm(LinearModel(), *routes(), **settings)


def test_a_step_that_diverges_is_named():
    with pytest.raises(rv.InputError, match="smaller `lr`"):
        erm(LinearModel(), *routes(), optimizer="sgd", lr=1e80, max_epochs=50)


def test_a_network_has_no_preconditioner():
    with pytest.raises(rv.InputError, match="linear in its parameters"):
        erm(network(), *routes(), optimizer="preconditioned")


def test_settings_are_keywords_with_defaults():
    with pytest.raises(TypeError):
        erm(LinearModel(), *routes(), learning_rate=1.0)
    assert TrainSettings().optimizer == "adam"


@pytest.mark.parametrize("optimizer", ["adam", "armijo", "preconditioned"])
def test_a_sample_of_weight_0_is_as_if_it_were_not_there(optimizer):
    Z, sets = routes()
    sets = sets.replaced(weights=np.where(np.arange(len(Z)) % 3, 1.0, 0.0))
    there, models = np.flatnonzero(sets.weights), (LinearModel(), LinearModel())
    truth = np.random.default_rng(0).uniform(1, 2, (len(Z), sets.problem.n_variables))
    for loss in (None, SPOPlusLoss(PROBLEM)):
        if loss is not None and optimizer == "preconditioned":
            continue
        for model, rows in zip(models, (np.arange(len(Z)), there), strict=True):
            erm(
                model,
                Z[rows],
                sets[rows],
                loss=loss,
                true_costs=None if loss is None else truth[rows],
                max_epochs=4,
                optimizer=optimizer,
            )
        assert (models[0].coef == models[1].coef).all()


def test_a_loss_that_measures_no_distance_shows_its_own_value(capsys):
    Z, sets = routes()
    loss = make_loss("pfyl", sets.problem, n_samples=2)
    history = erm(LinearModel(), Z, sets, loss=loss, max_epochs=2, verbose=True)
    first, last = history["loss"][[0, -1]]
    assert repr(history) == f"History(3 rows, loss {first:.3g} -> {last:.3g}, iteration cap)"
    assert f"loss {last:.4g}" in capsys.readouterr().err
