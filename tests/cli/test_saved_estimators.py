"""Python reads what `revealed fit` wrote, and the command line what `est.save` wrote."""

import json
from pathlib import Path

import numpy as np
import pytest

import revealed as rv
from revealed.cli import build_parser, main
from revealed.cli.commands import explore
from revealed.cli.explorer import Explorer
from revealed.cli.store import load_model
from revealed.cli.tables import open_table, write_table
from revealed.errors import InputError
from revealed.fit import InverseRegressor, KernelModel

pandas = pytest.importorskip("pandas")
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

CALL = "grid_shortest_path(3, 3, directed='right-down')"
KEPT = Path(__file__).parents[1] / "data" / "model_v1"
PROBLEM = rv.problems.grid_shortest_path(3, 3, directed="right-down")


def frames(B=60):
    """Contexts with a number and a category of two words, and routes by name."""
    rng = np.random.default_rng(1)
    Z = np.column_stack([rng.uniform(3, 9, B), rng.integers(0, 2, B)])
    W = rng.random((2, PROBLEM.n_variables)) * [[0.2], [2.0]]
    names = [f"edge {k}" for k in range(PROBLEM.n_variables)]
    X = pandas.DataFrame(PROBLEM.solve(1.0 + Z @ W).x, columns=names)
    return pandas.DataFrame(Z, columns=["load", "wet"]), X


@pytest.fixture
def tables(tmp_path):
    Z, X = frames()
    write_table(tmp_path / "c.csv", list(Z.columns), Z.to_numpy())
    write_table(tmp_path / "d.csv", list(X.columns), X.to_numpy())
    return tmp_path


@pytest.mark.parametrize("kind", ["linear", "quadratic"])
def test_the_command_line_reads_a_model_with_names(tables, capsys, kind):
    Z, X = frames()
    est = InverseRegressor(PROBLEM, model=kind, noise=0.5, random_state=0).fit(Z, X)
    folder = est.save(tables / "model")
    model = load_model(folder)
    assert model.plan.variables == tuple(X.columns)
    assert model.features.names == ("load", "wet")
    np.testing.assert_allclose(model.costs(Z.to_numpy()), est.predict_cost(Z), rtol=1e-9)
    assert type(model.plan.problem.structure) is type(PROBLEM.structure)
    given = ["--contexts", str(tables / "c.csv")]
    out = tables / "plans.csv"
    assert main(["predict", str(folder), *given, "--out", str(out)]) == 0
    plans = open_table(out).read(list(X.columns)).numbers
    assert np.array_equal(plans, est.predict(Z))
    capsys.readouterr()
    judged = [*given, "--decisions", str(tables / "d.csv")]
    assert main(["explain", str(folder), *judged, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert len(Z) in _numbers(told)
    args = build_parser().parse_args(["explore", str(folder), *judged])
    assert len(explore.samples_of(model, args)) == len(Z)
    Explorer(model, explore.samples_of(model, args))


def _numbers(told):
    """All numbers in a tree of facts."""
    parts = told.values() if isinstance(told, dict) else told if isinstance(told, list) else []
    own = {told} if isinstance(told, int | float) else set()
    return own.union(*map(_numbers, parts))


def test_names_may_be_given(tables):
    Z, X = (frame.to_numpy() for frame in frames())
    est = InverseRegressor(PROBLEM, random_state=0).fit(Z, X)
    est.save(tables / "m")
    with pytest.raises(InputError, match=r"save\(folder, features=\[...\], variables=\[...\]\)"):
        load_model(tables / "m")
    names = [f"x{k}" for k in range(PROBLEM.n_variables)]
    est.save(tables / "m", features=["load", "wet"], variables=names)
    assert load_model(tables / "m").plan.variables == tuple(names)
    assert np.array_equal(rv.load(tables / "m").predict(Z), est.predict(Z))
    other = InverseRegressor(PROBLEM, model=KernelModel(), random_state=0).fit(Z, X)
    other.save(tables / "m", features=["load", "wet"], variables=names)
    with pytest.raises(InputError, match="no linear or quadratic model"):
        load_model(tables / "m")


@pytest.mark.parametrize("kind", ["linear", "quadratic"])
def test_python_reads_what_fit_wrote(tables, kind):
    Z, X = frames()
    words = np.where(Z["wet"] > 0, "rain", "dry")
    rows = ["date,load,sky", *(f"{i},{Z['load'][i]},{words[i]}" for i in range(len(Z)))]
    (tables / "c.csv").write_text("\n".join(rows) + "\n")
    plan = load_plan_names()
    write_table(tables / "d.csv", plan, X.to_numpy())
    call = ["fit", "--problem", CALL, "--contexts", str(tables / "c.csv")]
    call += ["--decisions", str(tables / "d.csv"), "--out", str(tables / "m")]
    assert main([*call, "--model", kind, "--ridge", "0.01", "--noise", "0.5"]) == 0
    model, est = load_model(tables / "m"), rv.load(tables / "m")
    assert list(est.feature_names_in_) == list(model.features.names)
    encoded, _ = model.read_contexts(open_table(tables / "c.csv"))
    plain = pandas.DataFrame(0.0, index=range(len(Z)), columns=list(model.features.names))
    for name in plain.columns:
        number = name in ("load", "date")
        source = Z["load"] if name == "load" else np.arange(len(Z))
        plain[name] = source if number else (words == name.partition("=")[2]).astype(float)
    np.testing.assert_allclose(est.predict_cost(plain), model.costs(encoded), rtol=1e-8, atol=1e-9)
    assert np.array_equal(est.predict(plain), model.plan.problem.solve(model.costs(encoded)).x)
    assert (est.ridge_, est.loss_.noise) == (0.01, 0.5)
    with pytest.raises(ValueError, match="feature names"):
        est.predict(plain[plain.columns[::-1]])


def load_plan_names():
    from revealed.cli.plans import from_catalogue

    return from_catalogue(CALL).variables


def test_python_reads_a_model_of_the_first_version():
    est, told = rv.load(KEPT), json.loads((KEPT / "expected.json").read_text())
    assert list(est.feature_names_in_) == told["features"]
    encoded = np.array(told["contexts"])
    model = load_model(KEPT)
    mean = np.array([f.mean for f in model.features.features[:1]] + [0.0, 0.0])
    scale = np.array([f.scale for f in model.features.features[:1]] + [1.0, 1.0])
    plain = encoded * scale + mean
    with pytest.warns(UserWarning, match="feature names"):
        np.testing.assert_allclose(est.predict_cost(plain), told["costs"], rtol=1e-12, atol=1e-12)
