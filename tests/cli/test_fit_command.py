"""How `revealed fit` chooses its model, what it keeps, and what it says of its minimum."""

import json
from pathlib import Path

import numpy as np
import pytest

from revealed.cli import main
from revealed.cli.plans import from_catalogue
from revealed.cli.store import FittedModel, load_model, save_model
from revealed.cli.tables import Feature, FeatureMap, open_table, write_table
from revealed.fit import InverseRegressor

CALL = "grid_shortest_path(3, 3, directed='right-down')"
TERMS = ("a", "b", "a²", "a x b", "b²")
KEPT = Path(__file__).parents[1] / "data" / "model_v1"


@pytest.fixture(scope="module")
def days(tmp_path_factory):
    """Decisions under noisy costs that depend on squares and products of two features. Without
    noise many costs explain them all, and no coefficient has an interval."""
    folder = tmp_path_factory.mktemp("days")
    rng = np.random.default_rng(4)
    Z = rng.standard_normal((240, 2))
    T = np.column_stack([Z, Z[:, 0] ** 2, Z[:, 0] * Z[:, 1], Z[:, 1] ** 2])
    plan = from_catalogue(CALL)
    costs = 9 + T @ rng.standard_normal((5, plan.problem.n_variables))
    X = plan.problem.solve(costs + rng.standard_normal(costs.shape)).x
    write(folder, plan, Z, np.asarray(X))
    return folder


def write(folder, plan, Z, X):
    write_table(folder / "c.csv", ["a", "b"], Z)
    write_table(folder / "d.csv", plan.variables, X)


def tables(folder):
    return ["--contexts", str(folder / "c.csv"), "--decisions", str(folder / "d.csv")]


def fit(folder, out):
    return ["fit", "--problem", CALL, *tables(folder), "--out", str(out)]


def words(captured):
    return " ".join("".join(captured.readouterr()).split())


@pytest.fixture(scope="module")
def squares(days):
    """A quadratic model of them, from all samples."""
    out = days / "quadratic"
    chosen = ["--model", "quadratic", "--ridge", "0.01", "--noise", "0.5", "--holdout", "0"]
    assert main([*fit(days, out), *chosen]) == 0
    return out


def test_a_quadratic_model_is_kept_as_it_was_fitted(days, squares):
    model = load_model(squares)
    assert (model.kind, model.training["kind"], model.terms) == ("quadratic", "quadratic", TERMS)
    Z, _ = model.read_contexts(open_table(days / "c.csv"))
    X = open_table(days / "d.csv").read(model.plan.variables).numbers
    chosen = {"model": "quadratic", "ridge": 0.01, "noise": 0.5, "random_state": 0}
    est = InverseRegressor(model.plan.problem, **chosen).fit(Z, X)
    # The same numbers, added up in the order of another memory layout.
    np.testing.assert_allclose(model.costs(Z), est.predict_cost(Z), rtol=1e-9, atol=1e-9)


def test_a_loaded_quadratic_model_predicts_bit_for_bit_the_same(tmp_path):
    plan, rng = from_catalogue(CALL), np.random.default_rng(0)
    features = FeatureMap((Feature("a", 0.3, 1.7), Feature("b")))
    coef, intercept = rng.standard_normal((12, 5)), rng.standard_normal(12)
    model = FittedModel(plan, features, coef, intercept, 1.0, kind="quadratic")
    again = load_model(save_model(model, tmp_path / "m"))
    Z = rng.standard_normal((50, 2))
    assert (again.kind, again.terms) == ("quadratic", TERMS)
    assert (again.costs(Z) == model.costs(Z)).all()
    a, b = Z.T
    by_hand = np.column_stack([a, b, a * a, a * b, b * b]) @ coef.T + intercept
    np.testing.assert_allclose(again.costs(Z), by_hand, rtol=1e-12, atol=1e-12)


def test_decisions_are_predicted_by_a_quadratic_model(days, squares, tmp_path, capsys):
    out = tmp_path / "p.csv"
    call = ["predict", str(squares), "--contexts", str(days / "c.csv"), "--out", str(out)]
    assert main(call) == 0
    model = load_model(squares)
    Z, _ = model.read_contexts(open_table(days / "c.csv"))
    written = open_table(out).read(model.plan.variables).numbers
    np.testing.assert_array_equal(written, model.plan.problem.solve(model.costs(Z)).x)


def test_explain_lists_the_terms_of_a_quadratic_model(days, squares, capsys):
    explain = ["explain", str(squares), *tables(days), "--rounds", "8"]
    assert main([*explain, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["coefficients"]
    assert told["features"] == [*TERMS, "(mean cost)"]
    assert np.shape(told["value"]) == (12, 6)
    low, high = np.array(told["low"], float), np.array(told["high"], float)  # None becomes NaN
    clear = ((low > 1e-6) | (high < -1e-6))[:, :-1].any(axis=0)
    assert clear[2:].any()  # squares and products are in the data
    assert main(explain) == 0
    lines = capsys.readouterr().out.splitlines()
    for term, is_clear in zip(TERMS, clear, strict=True):
        assert any(line.strip().startswith(f"{term}  ") for line in lines) == is_clear, term


def test_a_fit_that_is_cut_off_says_so_and_how_to_allow_more(days, tmp_path, capsys):
    call = [*fit(days, tmp_path / "m"), "--ridge", "0.01", "--model", "linear", "--max-iter", "2"]
    assert main(call) == 1
    told = words(capsys)
    assert "Not converged" in told
    assert "Allow more with --max-iter 500." in told
    kept = load_model(tmp_path / "m").training  # written all the same
    assert kept["converged"] is False
    assert kept["evaluations"] <= 3  # the first measures the model that the fit starts with
    assert main([*call, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["converged"] is False


@pytest.mark.parametrize("model", ["auto", "linear", "quadratic"])
def test_a_ridge_that_is_given_is_taken_and_nothing_chosen(days, tmp_path, capsys, model):
    call = [*fit(days, tmp_path / "m"), "--ridge", "0.02", "--noise", "0.5", "--model", model]
    assert main(call) == 0
    told = words(capsys)
    assert "Learned from 192 samples" in told
    assert "Chose" not in told
    kept = load_model(tmp_path / "m")
    assert kept.kind == ("linear" if model == "auto" else model)
    facts = [kept.training[name] for name in ("ridge", "noise", "choice")]
    assert facts == [0.02, 0.5, None]


@pytest.mark.parametrize("samples, chosen", [(19, False), (20, True)])
def test_few_samples_are_fitted_without_cross_validation(
    days, tmp_path, monkeypatch, capsys, samples, chosen
):
    """With fewer, each of the folds would be judged on a sample or two."""
    from revealed.fit import InverseRegressorCV

    asked, fit_of_cv = [], InverseRegressorCV.fit

    def counted(self, Z, *args, **options):
        asked.append(len(Z))
        return fit_of_cv(self, Z, *args, **options)

    monkeypatch.setattr(InverseRegressorCV, "fit", counted)
    plan = from_catalogue(CALL)
    Z = open_table(days / "c.csv").read(["a", "b"]).numbers[:samples]
    write(tmp_path, plan, Z, open_table(days / "d.csv").read(plan.variables).numbers[:samples])
    assert main([*fit(tmp_path, tmp_path / "m"), "--holdout", "0"]) == 0
    assert ("Chose" in words(capsys)) == chosen
    assert asked == [samples] * chosen
    kept = load_model(tmp_path / "m")
    assert (kept.training["choice"] is not None) == chosen
    assert kept.training["samples"] == samples


@pytest.mark.parametrize("option", ["--ridge", "--noise"])
@pytest.mark.parametrize("text", ["1_0", "-1", "nan", "inf", "much", ""])
def test_a_strength_that_is_no_number_is_refused(days, tmp_path, capsys, option, text):
    with pytest.raises(SystemExit) as left:
        main([*fit(days, tmp_path / "m"), option, text])
    assert left.value.code == 2
    sentence = f"argument {option}: expected a finite number of at least 0, got {text!r}"
    assert sentence in words(capsys)
    assert not (tmp_path / "m").exists()


def test_a_model_of_the_first_version_is_still_explained(tmp_path, capsys):
    """It knows nothing of kinds, noise or a ridge."""
    model = load_model(KEPT)
    assert model.kind == "linear"
    rng, loads = np.random.default_rng(2), np.linspace(-3, 4, 30)
    X = np.asarray(model.plan.problem.solve(5 + rng.standard_normal((30, 12))).x)
    lines = [f"d{k},{load:.3f},{('Mon', 'Tue', 'Wed')[k % 3]}" for k, load in enumerate(loads)]
    (tmp_path / "c.csv").write_text("\n".join(["date,load,day", *lines]))
    key = ("date", [f"d{k}" for k in range(30)])
    write_table(tmp_path / "d.csv", model.plan.variables, X, key=key)
    explain = ["explain", str(KEPT), *tables(tmp_path), "--rounds", "3"]
    assert main([*explain, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["coefficients"]["features"] == ["load", "day=Tue", "day=Wed", "(mean cost)"]
    assert np.shape(told["coefficients"]["low"]) == (12, 4)
    assert told["coefficients"]["refits"] == 3
    assert main(explain) == 0
    told = words(capsys)
    for heading in ("All rows", "Intervals"):
        assert heading in told
