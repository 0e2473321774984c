"""Costs that are known, limited or equal beforehand, from the command line to the page."""

import json
from html import unescape

import numpy as np
import pytest

import revealed as rv
from revealed.cli import main
from revealed.cli.explain import explaining, nearest_costs
from revealed.cli.explorer.views import Explorer
from revealed.cli.plans import find_costs, plain_given, read_plan
from revealed.cli.store import load_model
from revealed.cli.tables import open_table, write_table
from revealed.errors import InputError
from revealed.fit.defaults import default_loss, default_ridge
from revealed.optimality.cost_form import CostForm

ROADS = "grid_shortest_path(3, 3, directed='right-down')"
QUICK = ["--ridge", "0.01", "--model", "linear"]

MODEL = """NAME  SHOP
ROWS
 N  cost
 G  need
 L  room
COLUMNS
    fuel  cost  3.5  need  1
    fuel  room  1
    gas   cost  -2   need  1
    wood  cost  4    need  2
    wood  room  1
RHS
    rhs  need  6  room  4
BOUNDS
 UP bnd  fuel  5
 UP bnd  gas   5
 UP bnd  wood  5
ENDATA
"""


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    path = tmp_path_factory.mktemp("plan") / "shop.mps"
    path.write_text(MODEL)
    return read_plan(str(path))


@pytest.fixture(scope="module")
def maximized(tmp_path_factory):
    path = tmp_path_factory.mktemp("plan") / "shop.mps"
    path.write_text(MODEL.replace("ROWS", "OBJSENSE\n MAX\nROWS", 1))
    return read_plan(str(path))


def roads(folder, seed=0, size=60):
    """Tables of drivers whose costs are positive, some known, limited or equal."""
    rng = np.random.default_rng(seed)
    plan = read_plan(ROADS)
    Z = rng.standard_normal((size, 2))
    slopes = rng.uniform(-1, 1, (2, len(plan.variables)))
    costs = np.maximum(2 + Z @ slopes, 0.2)
    costs[:, 0] = 2.0
    costs[:, 1] = np.clip(costs[:, 1], 1.0, 1.5)
    costs[:, 5] = costs[:, 3]
    X = plan.problem.solve(costs).x
    days = [f"day {b}" for b in range(size)]
    write_table(folder / "z.csv", ["rain", "hour"], Z, key=("day", days))
    write_table(folder / "x.csv", plan.variables, X, key=("day", days))
    return plan


def files(folder, problem=ROADS):
    tables = ["--contexts", str(folder / "z.csv"), "--decisions", str(folder / "x.csv")]
    return ["--problem", problem, *tables]


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A model with a known cost, two equal ones, and none below 0."""
    folder = tmp_path_factory.mktemp("given")
    names = roads(folder).variables
    asked = ["--cost", "*=0..", "--cost", f"{names[0]}=2", "--cost", f"{names[1]}=1..1.5"]
    table = folder / "costs.csv"
    table.write_text(f"variable,same\n{names[3]},alike\n{names[5]},alike\n")
    asked += ["--cost-table", str(table)]
    args = ["fit", *files(folder), *asked, *QUICK, "--out", str(folder / "m"), "--json"]
    assert main(args) == 0
    return folder, names


def words(captured):
    return " ".join(captured.readouterr().out.split())


def of(given, plan):
    return {each.pop("variable"): each for each in plain_given(given, plan)}


def test_options_say_values_limits_and_what_is_in_the_plan(plan):
    given = find_costs(plan, ["fuel=plan", "gas=-3..", "wood=1e0..2.5"])
    assert of(given, plan) == {
        "fuel": {"known": 3.5},
        "gas": {"lower": -3.0},
        "wood": {"lower": 1.0, "upper": 2.5},
    }


def test_a_named_variable_counts_for_more_than_a_pattern(plan):
    given = find_costs(plan, ["gas=-7", "*=0..", "wood=-1.."])
    assert of(given, plan) == {
        "fuel": {"lower": 0.0},
        "gas": {"known": -7.0},
        "wood": {"lower": -1.0},
    }


def test_values_of_a_planner_who_maximizes_are_turned(maximized):
    given = find_costs(maximized, ["fuel=plan", "gas=0..2", "wood=..4"])
    assert given.known[0] == -3.5
    assert (given.lower[1], given.upper[1]) == (-2.0, 0.0)
    assert (given.lower[2], given.upper[2]) == (-4.0, np.inf)
    assert of(given, maximized)["gas"] == {"lower": 0.0, "upper": 2.0}
    assert "gas between 0 and 2" in given.describe(maximized)


def test_a_table_says_the_same_as_options(plan, tmp_path):
    path = tmp_path / "costs.csv"
    path.write_text("variable;known;lower;upper;same\nfuel;3,5;;;\ngas;;0;;g\nwood;;;9;g\n")
    table = find_costs(plan, [], [], open_table(path))
    options = find_costs(plan, ["fuel=3.5", "gas=0..", "wood=..9"])
    assert of(table, plan)["fuel"] == of(options, plan)["fuel"] == {"known": 3.5}
    both = {"lower": 0.0, "upper": 9.0, "same_as": "gas"}  # equal costs share their limits
    assert of(table, plan)["gas"] == of(table, plan)["wood"] == both


@pytest.mark.parametrize(
    "asked, same, said",
    [
        (["fuel"], [], "a variable and what is known of its cost were expected"),
        (["fuel=.."], [], "were expected"),
        (["fuel=1_0"], [], "were expected"),
        (["fuel=cheap"], [], "were expected"),
        (["fule=1"], [], "did you mean 'fuel'?"),
        (["fuel=1", "fuel=2"], [], "is given 2 here and 1 by --cost fuel=1"),
        (["fuel=3..1"], [], "cannot be at least 3 and at most 1"),
        (["fuel=1", "gas=2"], ["*"], "are to have the same cost, but 1 and 2 are given"),
        (["*=1"], [], "Every cost is given"),
        ([], ["fuel"], "at least two variables were expected"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(plan, asked, same, said):
    with pytest.raises(InputError) as caught:
        find_costs(plan, asked, same)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "text, said",
    [
        ("variable,known\nfuell,1\n", "line 2, column 'variable': shop.mps has no variable"),
        ("variable,known\nfuel,1\nfuel,1\n", "is there before"),
        ("variable,price\nfuel,1\n", "its columns are variable, price"),
        ("variable,known\nfuel,dear\n", "line 2, column 'known'"),
    ],
)
def test_a_table_that_cannot_be_used_names_the_place(plan, tmp_path, text, said):
    path = tmp_path / "costs.csv"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        find_costs(plan, [], [], open_table(path))
    assert said in str(caught.value)


def test_nothing_said_is_nothing_given(plan):
    assert find_costs(plan, []) is None


def test_predicted_costs_keep_to_what_is_given(fitted, tmp_path):
    folder, names = fitted
    rng = np.random.default_rng(1)
    write_table(tmp_path / "new.csv", ["rain", "hour"], 30 * rng.standard_normal((40, 2)))
    args = ["--contexts", str(tmp_path / "new.csv"), "--out", str(tmp_path / "c.csv")]
    assert main(["predict", str(folder / "m"), *args, "--costs"]) == 0
    costs = open_table(tmp_path / "c.csv").read(names).numbers
    assert (costs >= 0).all()
    assert (costs[:, 0] == 2).all()
    assert ((costs[:, 1] >= 1) & (costs[:, 1] <= 1.5)).all()
    assert (costs[:, 3] == costs[:, 5]).all()
    assert costs[:, 2].std() > 0


def test_a_stored_model_is_read_with_what_was_given(fitted, capsys):
    folder, names = fitted
    model = load_model(folder / "m")
    told = of(model.given, model.plan)
    assert told[names[0]] == {"known": 2.0}
    assert told[names[3]]["same_as"] == told[names[5]]["same_as"] == names[3]
    assert model.margin == 0.0  # a unit of its own would rule out true costs
    with pytest.raises(InputError, match="known or limited beforehand"):
        rv.load(folder / "m")


def test_most_held_out_decisions_are_repeated(fitted):
    held = load_model(fitted[0] / "m").training["held"]
    assert held["repeated_share"] >= 0.6
    assert held["without_decision"] == 0


def test_explain_report_and_explorer_keep_to_it_too(fitted, capsys):
    folder, names = fitted
    tables = files(folder)[2:]
    assert main(["explain", str(folder / "m"), *tables]) == 0
    told = words(capsys)
    assert f"Given costs: 1 known ({names[0]} = 2)" in told
    assert "none: intervals are available only where no costs are given" in told
    page = folder / "r.html"
    assert main(["report", str(folder / "m"), "--out", str(page)]) == 0
    assert f"1 known ({names[0]} = 2)" in unescape(page.read_text())
    model = load_model(folder / "m")
    explorer = Explorer(model, model.samples)
    assert "1 known" in explorer.describe()["given"]
    sample = explorer.sample(0)
    assert sample["costs"][0] == 2.0
    json.dumps(sample, allow_nan=False)


def test_what_costs_would_have_to_be_keeps_to_it(fitted):
    model = load_model(fitted[0] / "m")
    given, problem = model.given, model.plan.problem
    rng = np.random.default_rng(3)
    X = problem.solve(rng.uniform(1, 2, (20, problem.n_variables))).x
    costs = given.within(given.form.costs(rng.uniform(0, 3, (20, given.form.n_parameters))))
    near = nearest_costs(explaining(problem, X, given), costs, given)
    there = np.isfinite(near.distance)
    assert there.sum() >= 15
    points = near.costs[there]
    assert np.allclose(given.within(points), points, atol=1e-7)
    assert np.allclose(points[:, 0], 2.0)
    assert np.allclose(points[:, 3], points[:, 5])
    optimal = (problem.solve(points).x * points).sum(axis=1)
    assert np.allclose((X[there] * points).sum(axis=1), optimal, atol=1e-6)
    plain = nearest_costs(explaining(problem, X, None), costs, None)
    assert (near.distance >= plain.distance - 1e-9).all()


def test_moving_costs_to_their_limits_brings_them_no_farther(fitted):
    model = load_model(fitted[0] / "m")
    given, problem = model.given, model.plan.problem
    rng = np.random.default_rng(4)
    X = problem.solve(rng.uniform(1, 2, (30, problem.n_variables))).x
    sets = rv.OptimalitySet(problem, X, 0.0, form=given.form)
    free = rng.uniform(-2, 3, (30, given.form.n_parameters))
    moved = given.parameters(given.within(given.form.costs(free)))
    before, after = (rv.project(each, sets).distance for each in (free, moved))
    known = np.isfinite(before)
    assert (after[known] <= before[known] + 1e-9).all()
    assert (after[known] < before[known] - 1e-3).any()


def test_signs_stop_drivers_from_going_in_circles(tmp_path, capsys):
    """On roads in both directions a negative cost lets the total fall without limit."""
    rng = np.random.default_rng(5)
    plan = read_plan("grid_shortest_path(3, 3)")
    rv_costs = rng.uniform(0.5, 3.0, (12, len(plan.variables)))
    write_table(tmp_path / "z.csv", ["rain", "hour"], rng.standard_normal((12, 2)))
    write_table(tmp_path / "x.csv", plan.variables, plan.problem.solve(rv_costs).x)
    base = ["fit", *files(tmp_path, "grid_shortest_path(3, 3)"), *QUICK, "--holdout", "0"]
    new = tmp_path / "new.csv"
    write_table(new, ["rain", "hour"], 20 * rng.standard_normal((20, 2)))
    ask = ["--contexts", str(new), "--out", str(tmp_path / "o.csv")]
    main([*base, "--out", str(tmp_path / "free")])
    main([*base, "--out", str(tmp_path / "signs"), "--cost", "*=0.."])
    capsys.readouterr()
    assert main(["predict", str(tmp_path / "free"), *ask]) == 1
    assert "If no cost can be negative, fit again with --cost '*=0..'." in words(capsys)
    assert main(["predict", str(tmp_path / "signs"), *ask]) == 0
    told = words(capsys)
    assert "lie beyond the given limits" in told
    assert "no best decision" not in told


def test_contradictions_are_named_and_count_by_how_far_they_miss(tmp_path, capsys):
    plan = roads(tmp_path)
    X = open_table(tmp_path / "x.csv").read(plan.variables).numbers
    problem = plan.problem
    first = X[0] > 0  # every other edge free, those of the first decision expensive
    asked = [f"{name}={9 if on else 0}" for name, on in zip(plan.variables, first, strict=True)]
    at = int(np.flatnonzero(~first & (X > 0).any(axis=0))[0])
    asked = [text for j, text in enumerate(asked) if j != at]
    options = [word for text in asked for word in ("--cost", text)]
    assert main(["doctor", *files(tmp_path), *options]) == 0
    told = words(capsys)
    assert "The given costs contradict" in told
    assert "day 0" in told
    main(["fit", *files(tmp_path), *options, *QUICK, "--out", str(tmp_path / "m")])
    told = words(capsys)
    assert "Warning The given costs contradict" in told
    given = load_model(tmp_path / "m").given
    empty = rv.project(np.zeros((1, 1)), rv.OptimalitySet(problem, X[:1], 0.0, form=given.form))
    assert not empty.solved.any()


def test_whole_decisions_and_many_files_are_refused(tmp_path, capsys):
    path = tmp_path / "shop.mps"
    path.write_text(MODEL.replace(" UP bnd  gas   5", " UI bnd  gas   5"))
    with pytest.raises(InputError, match="--relax"):
        find_costs(read_plan(str(path)), ["*=0.."])
    roads(tmp_path)
    args = ["fit", *files(tmp_path), "--memory", "1GB", "--cost", "*=0..", "--out"]
    assert main([*args, str(tmp_path / "m")]) == 2
    assert "are for tables in memory" in " ".join(capsys.readouterr().err.split())


def test_signs_and_equal_costs_leave_the_unit_free_and_numbers_set_it():
    problem = rv.problems.grid_shortest_path(3, 3, directed="right-down")
    n = problem.n_variables
    rng = np.random.default_rng(0)
    X = problem.solve(rng.uniform(1, 2, (30, n))).x
    limits = CostForm.identity(n, lower=0.0)
    plain, signs = (rv.OptimalitySet(problem, X, 1.0, form=form) for form in (None, limits))
    assert default_loss(signs).noise > 0
    assert default_ridge(signs) == default_ridge(plain)
    known = CostForm.known(np.r_[2.0, np.full(n - 1, np.nan)])
    upper = CostForm.identity(n, upper=3.0)
    for form in (known, upper):
        assert default_loss(rv.OptimalitySet(problem, X, 0.0, form=form)).noise == 0
