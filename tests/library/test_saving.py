"""Every fitted model goes to disk and comes back, in Python and on the command line."""

import json

import numpy as np
import pytest
import torch
from fit_cases import PROBLEMS, contexts, entries
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.tree import DecisionTreeRegressor

import revealed as rv
from revealed import InputError
from revealed.fit import (
    LBFGS,
    POCS,
    SGD,
    Adam,
    DistanceLoss,
    Huber,
    InverseRegressor,
    InverseRegressorCV,
    KernelModel,
    LinearModel,
    SharedModel,
    TorchModel,
    Welsch,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

SHORT = {"solver": LBFGS(max_iter=15), "random_state": 3}
KINDS = {
    "linear": {},
    "no intercept": {"model": LinearModel(fit_intercept=False)},
    "quadratic": {"model": "quadratic"},
    "shared": {"model": "shared"},
    "given": {"model": SharedModel(given={0: 1.5, 2: -0.5}), "noise": 0.3},
    "kernel": {"model": KernelModel(gamma=0.5), "loss": Huber(delta=0.4), "noise": 0.2},
    "nystroem": {"model": KernelModel("poly", degree=2, n_components=5)},
}


def data(kind, name="knapsack"):
    return (entries if kind in ("shared", "given") else contexts)(name)


def network(n, d=3):
    torch.manual_seed(2)
    return torch.nn.Sequential(
        torch.nn.Linear(d, 7), torch.nn.BatchNorm1d(7), torch.nn.ReLU(), torch.nn.Linear(7, n)
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_loaded_model_predicts_the_same_bits_and_learns_on(kind, tmp_path):
    problem, Z, X = data(kind)
    est = InverseRegressor(problem, **(SHORT | KINDS[kind])).fit(Z, X)
    again = rv.load(est.save(tmp_path / "m"))
    assert np.array_equal(again.predict_cost(Z), est.predict_cost(Z))
    assert np.array_equal(again.predict(Z), est.predict(Z))
    assert np.array_equal(again.coef_, est.coef_)
    assert again.score(Z, X) == est.score(Z, X)
    assert str(again.certificate_) == str(est.certificate_)
    assert (again.loss_, again.ridge_) == (est.loss_, est.ridge_)
    assert again.history_["loss"].tolist() == est.history_["loss"].tolist()
    assert repr(again.get_params()) == repr(est.get_params())
    assert np.array_equal(clone(again).fit(Z, X).predict_cost(Z), est.predict_cost(Z))
    more = data(kind)[2][::-1]
    for one in (est, again):
        one.partial_fit(Z, more)
    assert np.array_equal(again.predict_cost(Z), est.predict_cost(Z))


@pytest.mark.parametrize("solver", [Adam(max_epochs=3), POCS(max_iter=2)])
def test_a_torch_module_comes_back_into_one_of_its_kind(solver, tmp_path):
    problem, Z, X = contexts("paths")
    given = TorchModel(network(problem.n_variables), inner_steps=5)
    est = InverseRegressor(problem, model=given, solver=solver, random_state=0).fit(Z, X)
    folder = est.save(tmp_path / "m")
    with pytest.raises(InputError, match=r"load\(folder, module=\.\.\.\)"):
        rv.load(folder)
    with pytest.raises(InputError, match="not of the kind that was saved"):
        rv.load(folder, module=torch.nn.Linear(3, problem.n_variables))
    again = rv.load(folder, module=network(problem.n_variables))
    assert np.array_equal(again.predict_cost(Z), est.predict_cost(Z))
    bare = InverseRegressor(problem, model=network(problem.n_variables), solver=SGD(max_epochs=1))
    bare.fit(Z, X).save(folder)
    again = rv.load(folder, module=network(problem.n_variables))
    assert np.array_equal(again.predict(Z), bare.predict(Z))


def test_a_model_in_the_words_of_an_earlier_version_is_read(tmp_path):
    """The schedule was `lr_decay`, the column lr `step`, and the Welsch loss "bounded"."""
    problem, Z, X = contexts("knapsack")
    solver = SGD(max_epochs=2, schedule="linear")
    est = InverseRegressor(problem, solver=solver, loss=Welsch(0.5), noise=0.0).fit(Z, X)
    path = est.save(tmp_path / "m") / "model.json"
    index = json.loads(path.read_text())
    index["training"]["power"] = index["estimator"]["fitted"]["loss_"]["power"] = "bounded"
    solver = index["estimator"]["settings"]["solver"]["settings"]
    solver["lr_decay"] = solver.pop("schedule")
    for row in index["estimator"]["history"][:-1]:
        row["step"] = row.pop("lr")
    del index["sha256"]  # which came later
    path.write_text(json.dumps(index))
    again = rv.load(path.parent)
    assert repr(again.get_params()) == repr(est.get_params())
    assert again.loss_ == est.loss_
    assert again.history_["lr"][:-1].tolist() == est.history_["lr"][:-1].tolist() == [0.1, 0.05]
    assert DistanceLoss.read(index["training"]) == est.loss_


def test_a_regressor_is_refused_in_a_sentence(tmp_path):
    problem, Z, X = contexts("paths")
    for solver in ("pocs", "boosting"):
        est = InverseRegressor(problem, model=DecisionTreeRegressor(max_depth=2), solver=solver)
        est.set_params(solver__max_iter=1).fit(Z, X)
        with pytest.raises(InputError, match="A DecisionTreeRegressor has no form on disk"):
            est.save(tmp_path / "m")
    with pytest.raises(NotFittedError):
        InverseRegressor(problem).save(tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_what_was_chosen_comes_back(tmp_path):
    problem, Z, X = contexts("knapsack", B=30)
    est = InverseRegressorCV(problem, cv=2, ridges=[0.01, 0.1], random_state=0).fit(Z, X)
    again = rv.load(est.save(tmp_path / "m"))
    assert type(again) is InverseRegressorCV
    assert (again.chosen_model_, again.ridge_) == (est.chosen_model_, est.ridge_)
    assert (again.choice_, again.best_score_) == (est.choice_, est.best_score_)
    assert set(again.cv_results_) == set(est.cv_results_)
    assert np.array_equal(again.cv_results_["mean_test_score"], est.cv_results_["mean_test_score"])
    assert np.array_equal(again.predict_cost(Z), est.predict_cost(Z))


# --- problems ------------------------------------------------------------------------------------


def own_matrices():
    rng = np.random.default_rng(1)
    A = [sparse.random_array((2, 4), density=0.7, rng=rng) + np.eye(2, 4) for _ in range(6)]
    return rv.LinearProgram(A_ub=A, b_ub=1 + rng.random((6, 2)), ub=rng.random((6, 4)) + 0.5)


PROGRAMS = {
    "path": rv.problems.grid_shortest_path(3, 3),
    "path, own ends": rv.problems.shortest_path(
        [[0, 1], [1, 2], [0, 2], [2, 3], [1, 3], [3, 0]], source=[0, 1, 0, 1, 0, 2], target=3
    ),
    "knapsack": rv.problems.knapsack([3.0, 5, 4, 7], 9.0),
    "knapsack, own room": rv.problems.knapsack([3.0, 5, 4, 7], np.arange(4.0, 10.0)),
    "two resources": PROBLEMS["knapsack"],
    "matching": rv.problems.grid_matching(2, 4),
    "assignment": rv.problems.assignment(2, 3),
    "own matrices": own_matrices(),
    "quadratic": rv.problems.portfolio(np.diag([0.5, 0.2, 0.9, 0.4])),
    "quadratic, Q unknown": rv.QuadraticProgram(2.0, sense="min", lb=-np.ones(3), ub=np.ones(3)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_problems_come_back_whole(name, tmp_path):
    problem, rng = PROGRAMS[name], np.random.default_rng(4)
    Z = rng.standard_normal((6, 2))
    C = 0.3 + rng.random((6, problem.n_parameters))
    if name == "quadratic, Q unknown":
        C = problem.pack(C[:, :3], np.eye(3))
    X = problem.solve(C if "knapsack" not in name and "own m" not in name else -C).x
    est = InverseRegressor(problem, **SHORT).fit(Z, X)
    again = rv.load(est.save(tmp_path / "m"))
    assert type(again.problem) is type(problem)
    assert type(again.problem.structure) is type(problem.structure)
    signs = -np.abs(C) if "knapsack" in name or "own m" in name else C
    assert np.array_equal(again.problem.solve(signs).x, problem.solve(signs).x, equal_nan=True)
    assert np.array_equal(again.predict_cost(Z), est.predict_cost(Z))


def test_a_problem_of_functions_is_given_again(tmp_path):
    def program():
        ball = rv.SecondOrderCone(np.eye(3), 0.0, 0.0, 1.0)
        return rv.ConvexProgram(lambda x, w: (w * x).sum(), 3, 3, cones=[ball])

    rng = np.random.default_rng(9)
    Z = rng.normal(size=(8, 2))
    w = 0.2 + Z @ rng.normal(size=(2, 3))
    est = InverseRegressor(program(), **SHORT).fit(Z, -w / np.linalg.norm(w, axis=1)[:, None])
    folder = est.save(tmp_path / "m")
    with pytest.raises(InputError, match=r"ConvexProgram.*load\(folder, problem=\.\.\.\)"):
        rv.load(folder)
    with pytest.raises(InputError, match="a problem of 3 variables; `problem` has 12"):
        rv.load(folder, problem=PROBLEMS["paths"])
    again = rv.load(folder, problem=program())
    assert np.array_equal(again.predict(Z), est.predict(Z))


N = PROBLEMS["paths"].n_variables
MAPS = {
    "units": np.linspace(0.5, 3.0, N),
    "limits": rv.CostForm.identity(N, lower=-5.0, cost_upper=9.0),
    "own": rv.CostForm.features(np.random.default_rng(0).random((16, N, 4))),
}


@pytest.mark.parametrize("name", MAPS)
def test_maps_of_costs_come_back(name, tmp_path):
    problem, Z, X = contexts("paths")
    est = InverseRegressor(problem, cost_map=MAPS[name], margin=0.1, **SHORT).fit(Z, X)
    again = rv.load(est.save(tmp_path / "m"))
    assert np.array_equal(again.predict_cost(Z), est.predict_cost(Z))
    assert np.array_equal(clone(again).fit(Z, X).predict_cost(Z), est.predict_cost(Z))


# --- damaged folders -----------------------------------------------------------------------------


def rewritten(folder, change):
    path = folder / "model.json"
    index = json.loads(path.read_text())
    del index["sha256"]  # let the change through to what stands behind
    change(index)
    path.write_text(json.dumps(index))


DAMAGE = {
    "another class": (lambda i: i["estimator"].update({"class": "os.system"}), "is not known"),
    "another object": (
        lambda i: i["estimator"]["settings"].update(solver={"object": "Popen", "settings": {}}),
        "is not known",
    ),
    "no such setting": (
        lambda i: i["estimator"]["settings"].update(depth=3),
        "does not fit together",
    ),
    "another model": (lambda i: i["model"].update(kind="pickle"), "is not known|are not known"),
    "kernel": (lambda i: i["model"].update(kind="kernel"), "no tensor 'coef'"),
    "another graph": (
        lambda i: i["problem"]["structure"].update(n_nodes=4),
        "is not that of the stored problem",
    ),
    "another structure": (
        lambda i: i["problem"]["structure"].update(kind="knapsack"),
        "no tensor 'problem.structure.weights'",
    ),
    "a problem of functions": (lambda i: i["problem"].update(kind="given"), "'type' must be"),
    "no fit": (lambda i: i["estimator"].pop("fitted"), "'fitted' must be"),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_what_does_not_fit_together_is_refused(case, tmp_path):
    problem, Z, X = contexts("paths")
    change, words = DAMAGE[case]
    folder = InverseRegressor(problem, **SHORT).fit(Z, X).save(tmp_path / "m")
    rewritten(folder, change)
    with pytest.raises(InputError, match=words):
        rv.load(folder)


@pytest.mark.parametrize("part", ["tails", "heads", "source", "target"])
def test_a_graph_that_is_not_that_of_the_problem_is_refused(part, tmp_path):
    """The oracle for paths trusts its graph, and would read beyond its arrays with another."""
    from safetensors.numpy import load_file, save

    from revealed.io import read_folder, write_folder

    problem, Z, X = contexts("paths")
    folder = InverseRegressor(problem, **SHORT).fit(Z, X).save(tmp_path / "m")
    facts, tensors = read_folder(folder)
    assert load_file(folder / "tensors.safetensors").keys() == tensors.keys()
    assert save(tensors)
    index = facts.content
    for wrong in (10**6, -1, 3):
        name = f"problem.structure.{part}"
        changed = tensors | {name: np.full_like(tensors[name], wrong)}
        own = {key: index[key] for key in ("problem", "model", "training", "estimator")}
        write_folder(tmp_path / "other", own, changed, version=3)
        with pytest.raises(InputError, match="is not that of the stored problem"):
            rv.load(tmp_path / "other")


def test_names_must_be_as_many_as_there_are(tmp_path):
    problem, Z, X = contexts("paths")
    est = InverseRegressor(problem, **SHORT).fit(Z, X)
    with pytest.raises(InputError, match="`features` must be 3 different names; got 2"):
        est.save(tmp_path, features=["a", "b"])
    with pytest.raises(InputError, match="`variables` must be 12 different names"):
        est.save(tmp_path, features=list("abc"), variables=["x"] * 12)


class Steep(LinearModel):
    """A model of someone else's: the same, under a name of its own."""


def test_a_model_of_ones_own_is_named_saved_and_loaded(tmp_path, monkeypatch):
    from revealed.fit.named_models import MODELS

    monkeypatch.setitem(MODELS, "steep", Steep)
    problem, Z, X = contexts("paths")
    est = InverseRegressor(problem, model="steep", **SHORT).fit(Z, X)
    again = rv.load(est.save(tmp_path / "m"))
    assert type(again.model_) is Steep
    assert np.array_equal(again.predict_cost(Z), est.predict_cost(Z))
    monkeypatch.delitem(MODELS, "steep")
    with pytest.raises(InputError, match="kind 'steep' are not known"):
        rv.load(tmp_path / "m")
    with pytest.raises(InputError, match="A Steep has no form on disk"):
        est.save(tmp_path / "m")


def test_changed_bytes_never_crash_the_loader(tmp_path):
    """Whatever byte of the index differs, the model is the same or is refused in a sentence."""
    problem, Z, X = contexts("paths")
    est = InverseRegressor(problem, **SHORT).fit(Z, X)
    folder = est.save(tmp_path / "m")
    path, rng = folder / "model.json", np.random.default_rng(0)
    whole = path.read_bytes()
    refused = 0
    for _ in range(300):
        changed = bytearray(whole)
        changed[rng.integers(len(whole))] = rng.integers(32, 127)
        path.write_bytes(bytes(changed))
        try:
            rv.load(folder)
        except InputError:
            refused += 1
        else:  # white space, or the same once more
            index = json.loads(bytes(changed))
            index.pop("sha256", None)
            assert index == {k: v for k, v in json.loads(whole).items() if k != "sha256"}
    assert refused > 200
