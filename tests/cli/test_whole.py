"""Plans with whole variables on the command line: decisions stay whole, from the doctor on."""

import dataclasses
import itertools
import json

import numpy as np
import pandas
import pytest
from whole_files import FEATURES, Crew

import revealed as rv
from revealed.cli import main
from revealed.cli.commands.cleaning import _as_meant
from revealed.cli.doctor import Case
from revealed.cli.doctor.whole import check_whole
from revealed.cli.explain import cost_ranges, stable_changes
from revealed.cli.explorer import Explorer
from revealed.cli.plans import Plan, read_plan
from revealed.cli.store import FittedModel, Samples, load_model, save_model
from revealed.cli.tables import Feature, FeatureMap
from revealed.problems.integer import IntegerProgram
from revealed.problems.solution import IntegerSolution, SolveStatus

LEARN, WEEKS = 80, 110


@pytest.fixture(scope="module")
def crew(tmp_path_factory):
    """A folder with the files of a crew plan, and what only its generator knows."""
    made = Crew(WEEKS)
    made.folder = tmp_path_factory.mktemp("crew")
    made.write(made.folder, LEARN)
    return made


def files(folder, decisions="decisions.csv"):
    named = {"problem": "plan.mps", "contexts": "contexts.csv", "decisions": decisions}
    return [word for name, file in named.items() for word in (f"--{name}", str(folder / file))]


@pytest.fixture(scope="module")
def fitted(crew):
    """A model of whole decisions; `--max-iter` keeps the test short of convergence."""
    out = crew.folder / "whole"
    options = ["--noise", "4", "--ridge", "0.005", "--max-iter", "150", "--holdout", "0"]
    assert main(["fit", *files(crew.folder), *options, "--out", str(out)]) == 1
    return out


@pytest.fixture(scope="module")
def relaxed(crew):
    out = crew.folder / "relaxed"
    options = ["--relax", "--ridge", "0.005", "--holdout", "0"]
    assert main(["fit", *files(crew.folder), *options, "--out", str(out)]) == 0
    return out


def predicted(crew, model, *options):
    out = crew.folder / "predicted.csv"
    asked = ["--contexts", str(crew.folder / "next.csv"), "--out", str(out)]
    code = main(["predict", str(model), *asked, *options])
    return np.genfromtxt(out, delimiter=",", skip_header=1), code


def words(capsys):
    return " ".join("".join(capsys.readouterr()).split())


# --- the whole way -------------------------------------------------------------------------------


def test_decisions_are_whole_and_much_better_than_those_of_the_relaxation(crew, fitted, relaxed):
    weeks = slice(LEARN, WEEKS)
    X, code = predicted(crew, fitted)
    assert code == 0
    assert (X == np.round(X)).all()
    assert (crew.problem.constraint_violation(X) == 0).all()
    loose, _ = predicted(crew, relaxed)
    assert (loose != np.round(loose)).any()
    up = np.ceil(loose - 1e-6)
    assert (crew.problem.constraint_violation(up) == 0).all()
    assert 4 * crew.regret(weeks, X) < crew.regret(weeks, up)


def test_the_doctor_says_what_will_be_learned(crew, capsys):
    assert main(["doctor", *files(crew.folder), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["whole"] == 28
    found = {finding["code"]: finding for finding in told["findings"]}
    assert "28 of 28 variables must be whole numbers" in found["whole"]["what"]
    assert "each decision is the best whole one" in found["whole"]["what"]
    assert found["whole"]["details"]["not_a_corner"] > 0
    assert "not-a-vertex" not in found


def test_the_doctor_warns_of_the_relaxation_where_it_is_asked_for(crew, capsys):
    assert main(["doctor", *files(crew.folder), "--relax", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    found = {finding["code"]: finding for finding in told["findings"]}
    assert found["relaxed"]["severity"] == "warning"
    assert told["whole"] == 0


def test_a_relaxed_model_says_so_wherever_it_is_used(crew, relaxed, capsys):
    predicted(crew, relaxed)
    assert "was fitted to the relaxation" in words(capsys)
    tables = files(crew.folder)[2:]
    assert main(["explain", str(relaxed), *tables, "--rounds", "0"]) == 0
    assert "which --relax ignores" in words(capsys)


def test_explain_withholds_intervals_and_shows_ranges(crew, fitted, capsys):
    tables = files(crew.folder)[2:]
    assert main(["explain", str(fitted), *tables, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert "coefficients" not in told
    assert main(["explain", str(fitted), *tables, "--sample", "line 3"]) == 0
    said = words(capsys)
    assert "Intervals none" in said
    assert "28 of 28 variables must be whole" in said


# --- bad input -----------------------------------------------------------------------------------


def spoiled(crew, name, value):
    """The decisions with one entry of the second row replaced."""
    lines = (crew.folder / "decisions.csv").read_text().splitlines()
    cells = lines[2].split(",")
    cells[crew.names.index(name)] = value
    lines[2] = ",".join(cells)
    (crew.folder / "spoiled.csv").write_text("\n".join([*lines, ""]))
    return files(crew.folder, "spoiled.csv")


@pytest.mark.parametrize(
    "value, said",
    [
        ("2.5", "line 3: the decision breaks the plan: five_mon is 2.5, it must be whole"),
        ("99", "line 3: the decision breaks the plan: five_mon is 99, it must not be above 12"),
    ],
)
def test_a_decision_that_cannot_be_is_refused_in_one_sentence(crew, capsys, value, said):
    asked = [*spoiled(crew, "five_mon", value), "--out", str(crew.folder / "never")]
    assert main(["fit", *asked]) == 2
    told = words(capsys)
    assert said in told
    assert "--infeasible repair" not in told
    assert main(["fit", *asked, "--infeasible", "repair"]) == 2
    assert "--infeasible repair is for plans without whole variables" in words(capsys)


def test_the_doctor_names_fractions(crew, capsys):
    assert main(["doctor", *spoiled(crew, "five_mon", "2.5"), "--json"]) == 1
    found = {f["code"]: f for f in json.loads(capsys.readouterr().out)["findings"]}
    assert found["fractions"]["severity"] == "error"
    assert found["fractions"]["samples"] == ["line 3"]


def test_no_time_is_no_time_limit(crew, fitted, capsys):
    with pytest.raises(SystemExit):
        predicted(crew, fitted, "--time-limit", "0")
    assert "expected a number of seconds above 0, got 0" in words(capsys)


def test_what_a_time_limit_leaves_open_is_written_and_said(crew, fitted, capsys, monkeypatch):
    def stopped(self, costs, **options):
        X = np.repeat(crew.X[:1], len(costs), axis=0)
        X[0] = np.nan
        status = np.full(len(costs), SolveStatus.LIMIT, np.int8)
        none = np.full(X.shape, np.nan)
        return IntegerSolution(none, none[:, 0], status, X, 0.9 * (costs * X).sum(axis=1))

    monkeypatch.setattr(IntegerProgram, "solve", stopped)
    X, code = predicted(crew, fitted, "--time-limit", "1")
    assert code == 1
    assert np.isnan(X[0]).all()
    assert (X[1:] == crew.X[0]).all()
    said = words(capsys)
    assert "29 decisions are the cheapest found in time, not proved" in said
    assert "No decision was found in time for 1 context" in said


def test_a_total_that_falls_without_limit_is_said(tmp_path, capsys):
    problem = rv.IntegerProgram(A_ub=[[-1.0, -1.0]], b_ub=[-2.0])
    plan = Plan(problem, ("a", "b"), (), ("need",), integers=("a", "b"))
    features = FeatureMap((Feature("z"),))
    model = FittedModel(plan, features, np.zeros((2, 1)), np.array([1.0, -1.0]), 1.0)
    save_model(model, tmp_path / "m")
    (tmp_path / "z.csv").write_text("z\n1\n")
    asked = ["--contexts", str(tmp_path / "z.csv"), "--out", str(tmp_path / "x.csv")]
    assert main(["predict", str(tmp_path / "m"), *asked]) == 1
    assert "1 context has no best decision" in words(capsys)


# --- what is stored ------------------------------------------------------------------------------


def test_a_stored_model_stays_whole(crew, fitted):
    model = load_model(fitted)
    assert model.plan.is_whole
    assert model.plan.integers == crew.names
    assert json.loads((fitted / "model.json").read_text())["version"] == 4
    est = rv.load(fitted)
    assert isinstance(est.problem, IntegerProgram)
    X = est.predict(pandas.DataFrame(crew.Z[LEARN:][:5], columns=list(FEATURES)))
    assert (X == np.round(X)).all()
    np.testing.assert_array_equal(X, predicted(crew, fitted)[0][:5])


def test_a_model_of_an_earlier_version_is_one_of_the_relaxation(relaxed):
    told = json.loads((relaxed / "model.json").read_text())
    assert told["version"] == 1
    assert "whole" not in told["problem"]  # as versions without whole decisions wrote it
    model = load_model(relaxed)
    assert not model.plan.is_whole
    assert len(model.plan.integers) == 28


def test_an_estimator_of_whole_decisions_is_saved_and_read_by_the_command_line(tmp_path):
    rng = np.random.default_rng(0)
    problem = rv.IntegerProgram(
        A_ub=[[3.0, 5.0, 4.0]], b_ub=7.5, ub=1.0, integer=[True, True, False]
    )
    Z = rng.standard_normal((30, 2))
    X = problem.solve(-1.0 - 0.5 * np.abs(Z @ rng.standard_normal((2, 3)))).x
    est = rv.InverseRegressor(problem, ridge=0.1, solver=rv.fit.LBFGS(tol=1e-2, max_iter=50))
    est.fit(Z, X)
    named = est.save(tmp_path / "named", features=["a", "b"], variables=["x", "y", "w"])
    model = load_model(named)
    assert model.plan.integers == ("x", "y")
    np.testing.assert_allclose(model.costs(Z), est.predict_cost(Z))
    for folder in (named, est.save(tmp_path / "unnamed")):
        again = rv.load(folder)
        assert (again.problem.integer == problem.integer).all()
        np.testing.assert_array_equal(again.predict(Z), est.predict(Z))


# --- rounding, ranges, alternatives --------------------------------------------------------------


def test_the_rest_of_a_mixed_decision_is_read_at_its_vertex():
    """Whole entries are fixed; the others, rounded to two decimals, stand for a vertex."""
    problem = rv.IntegerProgram(
        A_eq=[[1.0, 1.0, 0.0]], b_eq=[1.0 / 3], A_ub=[[1.0, 0.0, -1.0]], b_ub=[0.0],
        integer=[False, False, True],
    )  # fmt: skip
    plan = Plan(problem, ("a", "b", "open"), ("sum",), ("link",), integers=("open",))
    rng = np.random.default_rng(0)
    C = np.column_stack([rng.uniform(0, 1, (20, 2)), rng.uniform(0, 0.3, 20)])
    X = problem.solve(C).x
    found = _as_meant(plan, np.round(X, 2), 0.005, vertices=True)
    np.testing.assert_allclose(found.decisions, X, atol=1e-9)


def small(seed):
    """A knapsack of yes and no, all of its decisions, and costs."""
    rng = np.random.default_rng(seed)
    weights = rng.uniform(1, 5, 6)
    problem = rv.IntegerProgram(A_ub=weights[None], b_ub=9.0, ub=1.0)
    names = tuple("abcdef")
    plan = Plan(problem, names, (), ("room",), integers=names)
    points = np.array(list(itertools.product((0.0, 1.0), repeat=6)))
    return plan, points[points @ weights <= 9.0], -rng.uniform(0.1, 1.0, 6)


def test_the_doctor_counts_decisions_at_a_distance_from_every_row():
    """A sack that is not full: the relaxation would say that what stays out is worth nothing."""
    plan, points, _ = small(2)
    rng = np.random.default_rng(0)
    X = points[(points @ -rng.uniform(0.1, 1.0, (6, 30))).argmin(axis=0)]
    samples = [f"day {b}" for b in range(len(X))]
    case = Case(plan, np.zeros((len(X), 1)), ("z",), X, samples)
    told = next(f for f in check_whole(case, np.ones(len(X), bool)) if f.code == "whole")
    assert told.details["at_no_row"] == len(X)  # no weights add up to 9
    assert "at a distance from every row" in told.advice


@pytest.mark.parametrize("seed", range(5))
def test_a_decision_stays_the_best_up_to_the_ends_of_a_range(seed):
    plan, points, cost = small(seed)
    best = points[(points @ cost).argmin()]
    steps = points - best
    for j, found in enumerate(cost_ranges(plan, cost, best)):
        saved, moved = steps @ cost, steps[:, j]
        low = max((-saved[moved > 0] / moved[moved > 0]).tolist(), default=-np.inf)
        high = min((-saved[moved < 0] / moved[moved < 0]).tolist(), default=np.inf)
        assert found.low == pytest.approx(cost[j] + low, abs=1e-6)
        assert found.high == pytest.approx(cost[j] + high, abs=1e-6)


def test_a_range_ends_where_the_total_would_fall_without_limit():
    problem = rv.IntegerProgram(A_ub=[[-2.0, -3.0]], b_ub=[-7.0])
    plan = Plan(problem, ("a", "b"), (), ("need",), integers=("a", "b"))
    cost, best = np.array([1.0, 1.3]), np.array([2.0, 1.0])
    a, b = cost_ranges(plan, cost, best)
    assert np.isnan(
        stable_changes(plan, cost[None], best[None])
    ).all()  # entries may move up or down
    # Against (4, 0), (1, 2) and (0, 3): 3.3 <= 4 a, a + 2.6, 3.9 where b is 1.3.
    assert (a.low, a.high) == pytest.approx((0.65, 1.3), abs=1e-6)
    assert (b.low, b.high) == pytest.approx((1.0, 2.0), abs=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_all_costs_may_change_by_the_least_saving_for_each_entry(seed):
    plan, points, cost = small(seed)
    best = points[(points @ cost).argmin()]
    steps = points[(points != best).any(axis=1)] - best
    least = (steps @ cost / np.abs(steps).sum(axis=1)).min()
    found = stable_changes(plan, cost[None], best[None])
    assert found[0] == pytest.approx(least, abs=1e-6)


def test_the_explorer_shows_the_second_best_decision(tmp_path):
    plan, points, cost = small(1)
    features = FeatureMap((Feature("z"),))
    best = points[(points @ cost).argmin()]
    samples = Samples(("day",), np.zeros((1, 1)), best[None], np.ones(1, int))
    model = FittedModel(plan, features, np.ones((6, 1)), cost, 1.0, samples=samples)
    again = load_model(save_model(model, tmp_path / "m"))
    explorer = Explorer(again, dataclasses.replace(samples))
    assert explorer.describe()["whole"]
    told = explorer.sample(0)
    assert (told["predicted"], told["proved"]) == (best.tolist(), True)
    extra = np.sort((points - best) @ cost)
    assert told["alternatives"][0]["extra"] == pytest.approx(extra[1], abs=1e-9)
    assert all(np.isin(one["decision"], (0, 1)).all() for one in told["alternatives"])


def test_a_model_file_without_whole_variables_is_a_linear_program(tmp_path):
    (tmp_path / "p.mps").write_text(
        "NAME p\nROWS\n N cost\n E sum\nCOLUMNS\n x sum 1\n y sum 1\nRHS\n R sum 1\nENDATA\n"
    )
    assert isinstance(read_plan(tmp_path / "p.mps").problem, rv.LinearProgram)
