"""What `revealed explain` says: of costs and of values, of what is explained and what is missed."""

import json

import numpy as np
import pytest

from revealed.cli import main
from revealed.cli.plans import from_catalogue, read_plan
from revealed.cli.store import FittedModel, load_model, save_model
from revealed.cli.tables import Feature, FeatureMap, open_table, write_table
from revealed.optimality.sets import OptimalitySet

PLAN = """NAME          goods
OBJSENSE
  {sense}
ROWS
 N  worth
 L  room
COLUMNS
 a  worth  1  room  1
 b  worth  1  room  2
 c  worth  1  room  3
RHS
 r  room  4
BOUNDS
 UP u  a  2
 UP u  b  2
 UP u  c  2
ENDATA
"""


def files(folder, sense):
    """A plan that maximizes what it minimizes, or the other way round, and the same decisions."""
    folder.mkdir()
    (folder / "plan.mps").write_text(PLAN.format(sense=sense))
    rng = np.random.default_rng(1)
    Z = rng.standard_normal((60, 2))
    worth = 3 + Z @ rng.standard_normal((2, 3)) + 0.5 * rng.standard_normal((60, 3))
    X = np.asarray(read_plan(folder / "plan.mps").problem.solve(-worth).x)
    keys = ("day", [f"d{k}" for k in range(60)])
    write_table(folder / "c.csv", ["heat", "rain"], Z, key=keys)
    write_table(folder / "d.csv", ["a", "b", "c"], X, key=keys)
    tables = ["--contexts", str(folder / "c.csv"), "--decisions", str(folder / "d.csv")]
    fit = ["fit", "--problem", str(folder / "plan.mps"), *tables, "--out", str(folder / "model")]
    assert main([*fit, "--ridge", "0.01", "--model", "linear"]) == 0
    return ["explain", str(folder / "model"), *tables]


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    folder = tmp_path_factory.mktemp("goods")
    return {sense: files(folder / sense, sense) for sense in ("MIN", "MAX")}


def told(capsys, command):
    capsys.readouterr()
    assert main(command) == 0
    return capsys.readouterr().out


def test_a_planner_who_maximizes_is_told_of_values(both, capsys):
    printed = {
        sense: " ".join(told(capsys, [*both[sense], "--rounds", "3"]).split()) for sense in both
    }
    assert "cheapest" in printed["MIN"]
    assert "more or less expensive" in printed["MIN"]
    assert "value" not in printed["MIN"]
    for word in ("cheap", "expensive", "saving", " cost "):
        assert word not in printed["MAX"]
    assert "worth more or less" in printed["MAX"]


def rows_of(printed):
    """The table of a sample: by variable, its cost and the two ends of its range."""
    lines = printed[printed.index("Sensitivity range of every") :].splitlines()[2:]
    return {line.split()[0]: line.replace("no limit", "inf").split()[2:] for line in lines}


def test_the_room_of_a_value_is_that_of_the_cost_turned_round(both, capsys):
    ends = {}
    for sense, command in both.items():
        as_good = json.loads(told(capsys, [*command, "--rounds", "0", "--json"]))
        missed = {miss["sample"] for miss in as_good["misses"]}
        name = next(f"d{k}" for k in range(60) if f"d{k}" not in missed)
        ends[sense] = rows_of(told(capsys, [*command, "--rounds", "0", "--sample", name]))
    for variable, (cost, low, high) in ends["MIN"].items():
        value, least, most = map(float, ends["MAX"][variable])
        assert value == -float(cost)
        assert np.isinf(least) if high == "inf" else least == -float(high)
        assert np.isinf(most) if low == "inf" else most == -float(low)


def test_a_miss_has_no_room_but_costs_that_would_explain_it(both, capsys):
    command = [*both["MIN"], "--rounds", "0"]
    name = json.loads(told(capsys, [*command, "--json"]))["misses"][0]["sample"]
    printed = told(capsys, [*command, "--sample", name])
    assert f"The decision on {name} is not the cheapest" in printed
    assert "may fall to" not in printed
    lines = json.loads(told(capsys, [*command, "--sample", name, "--json"]))["needed"]
    model = load_model(both["MIN"][1])
    place = {name: j for j, name in enumerate(model.plan.variables)}
    b = int(name[1:])
    Z, _ = model.read_contexts(open_table(both["MIN"][3]))
    taken = open_table(both["MIN"][5]).read(model.plan.variables).numbers[b]
    costs = model.costs(Z[[b]])
    for line in lines:
        assert costs[0, place[line["variable"]]] == pytest.approx(line["cost"])
        costs[0, place[line["variable"]]] = line["nearest"]
    best = float(model.plan.problem.solve(costs).objective[0])
    assert costs[0] @ taken == pytest.approx(best, abs=1e-4)


def test_contexts_without_a_best_decision_are_counted(tmp_path, capsys):
    """A path that may go in circles, and costs that are below 0 wherever the feature is."""
    plan = from_catalogue("grid_shortest_path(3, 3)")
    n = plan.problem.n_variables
    X = np.asarray(plan.problem.solve(np.ones((6, n))).x)
    write_table(tmp_path / "c.csv", ["a"], np.array([[-2.0], [-1.0], [1.0], [2.0], [3.0], [4.0]]))
    write_table(tmp_path / "d.csv", plan.variables, X)
    features = FeatureMap((Feature("a"),))
    save_model(FittedModel(plan, features, np.ones((n, 1)), np.zeros(n), 1.0), tmp_path / "m")
    model, contexts = str(tmp_path / "m"), ["--contexts", str(tmp_path / "c.csv")]
    decisions = ["--decisions", str(tmp_path / "d.csv")]
    printed = told(capsys, ["explain", model, *contexts, *decisions, "--rounds", "0"])
    assert "2 contexts have no best decision" in printed
    assert main(["predict", model, *contexts, "--out", str(tmp_path / "p.csv")]) == 1
    assert "2 contexts have no best decision" in capsys.readouterr().out


@pytest.mark.parametrize("relax", [True, False])
def test_predicted_fractions_where_the_plan_asks_for_whole_numbers_are_told(
    tmp_path, capsys, relax
):
    whole = PLAN.format(sense="MAX").replace("COLUMNS", "COLUMNS\n M1 'MARKER' 'INTORG'")
    whole = whole.replace("RHS", " M2 'MARKER' 'INTEND'\nRHS").replace("room  4", "room  5")
    (tmp_path / "plan.mps").write_text(whole)
    plan = read_plan(tmp_path / "plan.mps", relax=relax)
    assert plan.integers == ("a", "b", "c")
    coef, worth = np.array([[0.0], [2.0], [0.0]]), np.array([9.0, 1.0, 1.0])
    model = FittedModel(plan, FeatureMap((Feature("z"),)), -coef, -worth, 1.0)
    save_model(model, tmp_path / "m")
    write_table(tmp_path / "c.csv", ["z"], np.array([[1.0], [2.0]]))
    predict = ["predict", str(tmp_path / "m"), "--contexts", str(tmp_path / "c.csv")]
    out = ["--out", str(tmp_path / "p.csv")]
    assert ("2 decisions have fractions" in told(capsys, [*predict, *out])) is relax
    found = json.loads(told(capsys, [*predict, *out, "--json"]))
    assert (found["with_fractions"], found["whole"]) == (2 * relax, not relax)


def test_names_without_end_leave_tables_readable(capsys):
    from revealed.cli.commands.telling import table

    names = [f"{'a name without end ' * 5}{k}" for k in range(2)]
    lines = table(["variable", "effect"], [[name, "1.5"] for name in names]).splitlines()
    assert max(map(len, lines)) < 50
    assert lines[1].split()[-2].endswith("0")
    assert lines[2].split()[-2].endswith("1")


@pytest.mark.parametrize(
    "pair, shown",
    [
        ((5.0, 0.0), ("5", "0")),
        ((1 / 3, 2.5), ("0.333333", "2.5")),
        ((1234567.0, 1234568.0), ("1234567", "1234568")),
        ((0.1234567, 0.1234568), ("0.1234567", "0.1234568")),
        ((1e20, float("inf")), ("1e+20", "inf")),
    ],
)
def test_numbers_that_differ_look_different(pair, shown):
    from revealed._common.words import apart

    assert apart(*pair) == shown


def test_of_many_effects_the_largest_are_shown(capsys):
    from revealed.cli.commands.explanation import EFFECTS, _tell_coefficients
    from revealed.fit import CoefficientIntervals
    from revealed.optimality.identification import identified

    plan = from_catalogue("knapsack([1, 2], 2)")
    features = FeatureMap(tuple(Feature(f"f{k}") for k in range(200)))
    value = np.arange(2.0 * 201).reshape(2, 201) + 1
    model = FittedModel(plan, features, value[:, :-1], value[:, -1], 1.0)
    known = identified(OptimalitySet(plan.problem, [[0.5, 0.75], [1.0, 0.5]]), np.eye(2))
    facts = {"level": 0.95, "identified": known, "ridge": 0.0, "growth": 1.0}
    sure = CoefficientIntervals(value, value - 0.5, value + 0.5, refits=50, converged=50, **facts)
    _tell_coefficients(sure, model)
    printed = capsys.readouterr().out
    lines = [
        line
        for line in printed.splitlines()
        if line.split()[:1] and line.split()[0][0] == "f" and line.split()[0][1:].isdigit()
    ]
    assert len(lines) == EFFECTS
    assert "the 24 largest of 400; --json lists all" in printed
    assert "+401 " in printed
    assert " +1 " not in printed
