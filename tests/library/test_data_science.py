"""The estimator among scikit-learn's tools: scorers, pipelines, DataFrames, pictures, reprs."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import revealed as rv
from revealed.errors import InputError, MissingDependencyError, ShapeError
from revealed.theory import delta_lemma

mpl.use("agg")
PROBLEM = rv.problems.grid_shortest_path(3, 3, directed="right-down")
ROADS = [f"road {j}" for j in range(PROBLEM.n_variables)]


def draw(size=60, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((size, 2))
    costs = np.maximum(2 + Z @ np.random.default_rng(7).random((2, PROBLEM.n_variables)), 0.1)
    return Z, PROBLEM.solve(costs * rng.uniform(0.7, 1.3, costs.shape)).x


Z, X = draw()
EST = rv.InverseRegressor(PROBLEM, ridge=0.01)
FITTED = clone(EST).fit(Z, X)


def pipeline():
    return make_pipeline(StandardScaler(), "passthrough", clone(EST))


# --- scorers -------------------------------------------------------------------------------------


def test_scorers_are_the_metrics_they_name():
    costs = FITTED.predict_cost(Z)
    exact = np.mean(rv.metrics.accuracy(PROBLEM, costs=costs, decisions=X))
    assert rv.fit.scorer("accuracy")(FITTED, Z, X) == pytest.approx(exact)
    away = rv.project(costs, rv.OptimalitySet(PROBLEM, X)).distance.mean()
    assert rv.fit.scorer("distance")(FITTED, Z, X) == pytest.approx(-away)
    assert rv.fit.scorer("decision_loss")(FITTED, Z, X) == FITTED.score(Z, X)
    extra = rv.metrics.relative_suboptimality(PROBLEM, costs=costs, decisions=X).mean()
    assert rv.fit.scorer("extra_cost")(FITTED, Z, X) == pytest.approx(-extra)


@pytest.mark.parametrize("name", ["accuracy", "extra_cost", "distance", "decision_loss"])
def test_searches_take_scorers(name):
    scores = cross_val_score(clone(EST), Z, X, cv=2, scoring=rv.fit.scorer(name))
    assert np.isfinite(scores).all()
    sets = rv.OptimalitySet(PROBLEM, X)
    assert np.allclose(cross_val_score(EST, Z, sets, cv=2, scoring=rv.fit.scorer(name)), scores)


def test_a_search_over_a_pipeline_predicts_costs():
    grid = {"inverseregressor__ridge": [0.001, 0.1]}
    search = GridSearchCV(pipeline(), grid, cv=2, scoring=rv.fit.scorer("accuracy")).fit(Z, X)
    costs = rv.fit.predict_cost(search, Z)
    assert np.array_equal(PROBLEM.solve(costs).x, search.predict(Z))


def test_costs_come_through_a_pipeline():
    fitted = pipeline().fit(Z, X)
    scaled = fitted[0].transform(Z)
    assert np.array_equal(rv.fit.predict_cost(fitted, Z), fitted[-1].predict_cost(scaled))


def test_bad_names_and_models_are_refused():
    with pytest.raises(InputError, match="must be one of accuracy"):
        rv.fit.scorer("r2")
    with pytest.raises(InputError, match="must be an InverseRegressor"):
        rv.fit.predict_cost(StandardScaler(), Z)
    assert repr(rv.fit.scorer("accuracy")) == "scorer('accuracy')"


# --- tables --------------------------------------------------------------------------------------


def frames():
    days = pd.Index([f"day {b}" for b in range(len(Z))])
    contexts = pd.DataFrame(Z, index=days, columns=["rain", "wind"])
    return contexts, pd.DataFrame(X, index=days, columns=ROADS)


def test_predictions_have_the_names_of_the_variables():
    contexts, decisions = frames()
    est = clone(EST).set_output(transform="pandas").fit(contexts, decisions)
    for found in (est.predict(contexts), est.predict_cost(contexts)):
        assert list(found.columns) == ROADS
        assert found.index.equals(contexts.index)
    plain = clone(EST).fit(contexts, decisions)
    assert np.array_equal(est.predict(contexts).to_numpy(), plain.predict(contexts))
    assert est.score(contexts, decisions) == plain.score(contexts, decisions)


def test_output_is_kept_by_clones_and_can_be_set_for_all():
    contexts, decisions = frames()
    told = clone(clone(EST).set_output(transform="pandas")).fit(Z, X)
    assert list(told.predict(Z).columns) == [f"x{j}" for j in range(PROBLEM.n_variables)]
    assert isinstance(told.set_output(transform="default").predict(Z), np.ndarray)
    plain = clone(EST).fit(contexts, decisions)
    with config_context(transform_output="pandas"):
        assert list(plain.predict(contexts).columns) == ROADS
    with pytest.raises(InputError, match="must be one of default, pandas"):
        told.set_output(transform="polars")


# --- the doctor ----------------------------------------------------------------------------------


def test_the_doctor_finds_what_the_command_finds():
    contexts, decisions = frames()
    contexts["always"] = 1.0
    found = rv.diagnose(PROBLEM, contexts, decisions)
    codes = {finding.code for finding in found}
    assert any("always" in finding.what for finding in found), codes
    assert found.ok
    assert "60 samples, 3 features, 12 variables" in repr(found)
    assert found._repr_html_().count("<tr>") == len(found)


def test_the_doctor_names_decisions_that_break_the_constraints():
    broken = X.copy()
    broken[3] = 0.0
    found = rv.diagnose(PROBLEM, Z, broken)
    assert not found.ok
    assert "3" in found.findings[0].samples


def test_the_doctor_escapes_names():
    found = rv.diagnose(PROBLEM, np.ones((60, 1)), X, features=["<script>"])
    assert "<script>" in repr(found)
    assert "<script>" not in found._repr_html_()


def test_the_doctor_refuses_what_it_cannot_read():
    with pytest.raises(ShapeError, match=r"`X` \(B, 12\)"):
        rv.diagnose(PROBLEM, Z, X[:-1])
    with pytest.raises(InputError, match="row 0 is not"):
        rv.diagnose(PROBLEM, Z * np.nan, X)


# --- pictures ------------------------------------------------------------------------------------


def test_pictures_show_what_they_say():
    axes = rv.plot.distances(FITTED, Z, X, bins=4)
    shares = axes.lines[0].get_ydata()
    assert np.mean(shares) == pytest.approx(rv.fit.scorer("accuracy")(FITTED, Z, X), abs=1e-6)
    axes = rv.plot.decisions(X[0], 1 - X[0], names=ROADS, most=5)
    assert [bar.get_width() for bar in axes.patches[:5]] == X[0][:5].tolist()
    assert [label.get_text() for label in axes.get_yticklabels()] == ROADS[:5]
    search = rv.InverseRegressorCV(PROBLEM, cv=2, model="linear", ridges=[0.01, 0.1]).fit(Z, X)
    assert rv.plot.ridges(search).get_xlabel() == "ridge"


def test_intervals_are_drawn_or_their_absence_is_said():
    more, taken = draw(200, seed=3)
    est = clone(EST).fit(more, taken)
    found = est.intervals(more, taken, refits=5)
    if np.isfinite(found.low[:, -1]).any():
        assert len(rv.plot.intervals(found).get_yticks()) == np.isfinite(found.low[:, -1]).sum()
    with pytest.raises(ShapeError, match="`names` must be 12"):
        rv.plot.intervals(found, names=["a"])


def test_pictures_without_matplotlib_say_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(MissingDependencyError, match=r"revealed\[plot\]"):
        rv.plot.decisions(X[0], X[0])


# --- short reprs ---------------------------------------------------------------------------------


def results():
    sets = rv.OptimalitySet(PROBLEM, X)
    data = rv.datasets.noisy_paths((5, 5, 5))
    return [
        PROBLEM.solve(np.ones(X.shape)),
        rv.project(np.ones(X.shape), sets),
        FITTED.certificate_,
        FITTED.history_,
        FITTED.loss_,
        FITTED,
        FITTED.intervals(Z, X, refits=2),
        rv.optimality.identified(sets),
        data,
        data.train,
        delta_lemma(sets),
        rv.ConformalDecisions(FITTED).calibrate(Z, X),
    ]


@pytest.mark.parametrize("result", results(), ids=lambda result: type(result).__name__)
def test_reprs_fit_on_a_screen(result):
    text = repr(result)
    assert text.startswith(type(result).__name__)
    assert len(text) < 700
    assert "array(" not in text


def test_reprs_count_the_statuses():
    bad = rv.LinearProgram(A_eq=[[1.0, 1.0]], b_eq=[[1.0], [5.0]], ub=1.0)
    assert repr(bad.solve(np.ones((2, 2)))) == (
        "Solution(2 decisions of 2 variables: 1 OPTIMAL, 1 INFEASIBLE)"
    )
    assert "60 SOLVED" in repr(rv.project(np.ones(X.shape), rv.OptimalitySet(PROBLEM, X)))
