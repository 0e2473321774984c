"""`revealed predict --robust`: decisions of least worst cost over cones calibrated by `fit`."""

import json

import numpy as np
import pytest

from revealed.cli import main
from revealed.cli.plans.catalogue import from_catalogue
from revealed.cli.store import load_model
from revealed.cli.tables import open_table, write_table
from revealed.fit.conformal import conformal_cone, worst_costs

CALL = "grid_shortest_path(3, 3, directed='right-down')"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model of noisy decisions, half of which were held out."""
    folder = tmp_path_factory.mktemp("noisy")
    rng, problem = np.random.default_rng(4), from_catalogue(CALL)
    Z = rng.standard_normal((160, 2))
    costs = 4 + Z @ rng.standard_normal((2, problem.problem.n_variables))
    X = problem.problem.solve(costs * rng.uniform(0.4, 1.6, costs.shape)).x
    write_table(folder / "c.csv", ["a", "b"], Z)
    write_table(folder / "d.csv", problem.variables, np.asarray(X))
    tables = ["--contexts", str(folder / "c.csv"), "--decisions", str(folder / "d.csv")]
    chosen = ["--model", "linear", "--ridge", "0.1"]
    for out, held in (("model", "0.5"), ("unheld", "0")):
        place = ["--out", str(folder / out), "--holdout", held]
        assert main(["fit", "--problem", CALL, *tables, *chosen, *place]) == 0
    return folder


def predict(folder, out, *options):
    asked = ["predict", str(folder / "model"), "--contexts", str(folder / "c.csv")]
    return main([*asked, "--out", str(folder / out), *options])


def read(path):
    return np.loadtxt(path, delimiter=",", skiprows=1)


def test_robust_decisions_have_a_smaller_worst_cost(folder, capsys):
    assert predict(folder, "plain.csv") == 0
    capsys.readouterr()
    assert predict(folder, "robust.csv", "--robust", "0.8") == 0
    assert "With probability at least 0.8" in " ".join(capsys.readouterr().out.split())
    model = load_model(folder / "model")
    assert len(model.training["angles"]) == 80
    cone = conformal_cone(np.radians([a or 0.0 for a in model.training["angles"]]), 0.8)
    costs = model.costs(model.read_contexts(open_table(folder / "c.csv"))[0])
    plain, robust = (
        worst_costs(model.plan.problem, costs, read(folder / name), cone.angle)
        for name in ("plain.csv", "robust.csv")
    )
    assert (robust <= plain + 1e-6).all()
    assert robust.sum() < plain.sum() - 0.1


def test_machines_are_told_the_angle(folder, capsys):
    assert predict(folder, "robust.csv", "--robust", "0.8", "--json") == 0
    told = json.loads(capsys.readouterr().out)["robust"]
    assert told["level"] == 0.8
    assert told["calibration_samples"] == 80
    assert 0 < told["angle"] < 90


@pytest.mark.parametrize(
    "level, sentence",
    [("0.999", "There is no robust decision. Vacuous"), ("90", "`level` must be between 0 and 1")],
)
def test_a_level_that_cannot_be_had_is_refused(folder, capsys, level, sentence):
    assert predict(folder, "robust.csv", "--robust", level) == 2
    assert sentence in capsys.readouterr().err


def test_a_model_without_held_out_samples_is_refused(folder, capsys):
    asked = ["predict", str(folder / "unheld"), "--contexts", str(folder / "c.csv")]
    assert main([*asked, "--out", str(folder / "x.csv"), "--robust", "0.8"]) == 2
    assert "--robust needs angles of samples held out" in capsys.readouterr().err


def test_costs_are_not_robust(folder, capsys):
    assert predict(folder, "x.csv", "--costs", "--robust", "0.8") == 2
    assert "leave out --costs" in capsys.readouterr().err
