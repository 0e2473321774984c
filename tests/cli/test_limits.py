"""Limits that differ from sample to sample: named on the command line, read from the contexts,
obeyed wherever the plan is."""

import json

import numpy as np
import pytest
from limit_files import (
    DAYS,
    FIXED,
    FOODS,
    LIMITS,
    blend_files,
    copied,
    edit,
    fit,
    own_limits,
    problem,
    read,
    tables,
    words,
    write,
)

import revealed as rv
from revealed.cli import main
from revealed.cli.plans import find_limits, from_catalogue, read_limits, read_plan, with_limits
from revealed.cli.store import load_model
from revealed.cli.tables import open_table
from revealed.errors import InputError
from revealed.problems.structures import KnapsackStructure, PathStructure


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return blend_files(tmp_path_factory.mktemp("limits"))


def test_the_plan_of_every_sample_is_the_one_built_by_hand(folder):
    plan, limits, values = own_limits(folder)
    theirs, ours = with_limits(plan, limits, values).problem, problem(*values.T)
    costs = np.random.default_rng(0).normal(size=(DAYS, 5))
    assert np.allclose(theirs.solve(costs).x, ours.solve(costs).x, atol=1e-9)


def test_an_empty_cell_is_the_plans_own(folder):
    plan, limits, values = own_limits(folder)
    values = values.copy()
    values[3] = np.nan
    limited = with_limits(plan, limits, values)[[3]].problem
    for part in ("b_eq", "b_ub", "lb", "ub"):
        assert np.array_equal(
            np.broadcast_to(getattr(limited, part), (1, len(getattr(plan.problem, part)))),
            getattr(plan.problem, part)[None],
        )


def test_a_fit_learns_under_every_days_own_limits(folder, capsys):
    assert main([*fit(folder), *FIXED, "--out", str(folder / "again"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["unsolved"] == 0
    assert told["seen"]["repeated_share"] >= 0.8
    model = load_model(folder / "again")
    assert [limit.column for limit in model.limits] == ["orders", "protein", "stock", "salt_most"]
    assert model.features.names == ("rain", "wind")


def test_predictions_obey_the_limits_of_their_day(folder, tmp_path, capsys):
    out = tmp_path / "next.csv"
    call = ["predict", str(folder / "model"), "--contexts", str(folder / "contexts.csv")]
    assert main([*call, "--out", str(out)]) == 0
    _, _, values = own_limits(folder)
    X = open_table(out).read(FOODS).numbers
    assert np.asarray(problem(*values.T).constraint_violation(X)).max() <= 1e-7
    model = load_model(folder / "model")
    Z, _ = model.read_contexts(open_table(folder / "contexts.csv"))
    assert np.allclose(X, problem(*values.T).solve(model.costs(Z)).x, atol=1e-7)


def test_a_day_whose_limits_no_decision_meets_is_told_and_left_empty(folder, tmp_path, capsys):
    spoiled = copied(folder, tmp_path)
    edit(spoiled / "contexts.csv", 2, "protein", "900")
    call = ["predict", str(folder / "model"), "--contexts", str(spoiled / "contexts.csv")]
    assert main([*call, "--out", str(tmp_path / "next.csv")]) == 1
    told = words(capsys)
    assert "1 context has limits that no decision meets" in told
    assert "falls without limit" not in told
    X = open_table(tmp_path / "next.csv").read(FOODS).numbers
    assert np.flatnonzero(np.isnan(X).any(axis=1)).tolist() == [1]
    assert main(fit(spoiled, LIMITS, "doctor")) == 1
    assert "1 sample has limits that no decision meets: d1" in words(capsys)


def test_the_broken_limit_of_a_day_is_named_with_its_own_number(folder, tmp_path, capsys):
    spoiled = copied(folder, tmp_path)
    edit(spoiled / "contexts.csv", 5, "orders", "95.5")
    edit(spoiled / "decisions.csv", 5, "wheat", "0")
    assert main([*fit(spoiled), "--out", str(tmp_path / "m")]) == 2
    assert "decisions.csv, line 6: the decision breaks the plan" in words(capsys)
    assert main(fit(spoiled, LIMITS, "doctor")) == 1
    assert "it must be 95.5" in words(capsys)


def test_explain_knows_the_tables_and_the_limits_again(folder, capsys):
    call = ["explain", str(folder / "model"), *tables(folder), "--rounds", "3", "--json"]
    assert main([*call, "--sample", "d3"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["held"]["samples"] == 18
    assert told["all"]["without_decision"] == 0
    assert told["all"]["repeated_share"] >= 0.8
    assert min(value for value in told["sensitivity"] if value is not None) >= -1e-6


def test_what_would_have_been_cheaper_obeys_the_limits_of_its_day(folder, capsys):
    call = ["explain", str(folder / "model"), *tables(folder), "--rounds", "0", "--json"]
    assert main(call) == 0
    told = json.loads(capsys.readouterr().out)
    assert len(told["misses"]) == told["all"]["samples"] - told["all"]["explained"] > 0
    days = [row[0] for row in read(folder / "decisions.csv")[1:]]
    X = open_table(folder / "decisions.csv").read(FOODS).numbers
    _, _, values = own_limits(folder)
    for miss in told["misses"]:
        b = days.index(miss["sample"])
        for name, before, after in miss["changes"]:
            assert X[b, FOODS.index(name)] == pytest.approx(before)
            X[b, FOODS.index(name)] = after
    assert np.asarray(problem(*values.T).constraint_violation(X)).max() <= 1e-7


def test_other_limits_are_other_tables(folder, tmp_path, capsys):
    spoiled = copied(folder, tmp_path)
    row = read(spoiled / "contexts.csv")[1]
    edit(spoiled / "contexts.csv", 1, "salt_most", str(float(row[6]) + 5.0))
    call = ["explain", str(folder / "model"), *tables(spoiled), "--rounds", "0", "--json"]
    assert main(call) == 0
    assert json.loads(capsys.readouterr().out)["held"] is None


ASKED = {
    "totl=orders": "no row of that name .did you mean 'total'",
    "fish": "a variable; say lower:fish or upper:fish",
    "lower:fat": "has no lower limit",
    "salt": "2 limits of that name; say lower:salt or upper:salt",
    "total=": "a row and a column were expected",
    "total=ordes": "no column 'ordes' .did you mean 'orders'",
    "q*": "no row of blend.mps has such a name",
    "total=day": "line 2, column 'day': expected a number",
}


@pytest.mark.parametrize("asked", ASKED)
def test_what_cannot_be_meant_meets_a_sentence(folder, asked):
    plan, file = read_plan(folder / "blend.mps"), open_table(folder / "contexts.csv")
    with pytest.raises(InputError, match=ASKED[asked]):
        read_limits(file, plan, find_limits(plan, [asked], file.names))


def test_a_star_takes_the_rows_that_have_a_column(folder):
    plan = read_plan(folder / "blend.mps")
    found = find_limits(plan, ["*"], ["rain", "protein", "fat"])
    assert {(limit.name, limit.column) for limit in found} == {
        ("protein", "protein"),
        ("fat", "fat"),
    }


def test_two_columns_for_one_limit_are_refused(folder):
    plan = read_plan(folder / "blend.mps")
    with pytest.raises(InputError, match="given twice, with the columns 'a' and 'b'"):
        find_limits(plan, ["total=a", "total=b"], ["a", "b"])


@pytest.mark.parametrize(
    "column, value, match",
    [
        ("orders", "inf", "line 4, column 'orders' is inf"),
        ("protein", "inf", "line 4, column 'protein' is inf"),
        ("stock", "-3", "line 4, column 'stock': fish may then be no less than 0 and no more"),
    ],
)
def test_numbers_that_no_limit_can_be_are_refused_with_their_place(
    folder, tmp_path, column, value, match
):
    spoiled = copied(folder, tmp_path)
    edit(spoiled / "contexts.csv", 3, column, value)
    with pytest.raises(InputError, match=match):
        own_limits(spoiled)


def test_a_reader_of_the_first_version_will_not_take_it(folder, tmp_path):
    index = json.loads((folder / "model" / "model.json").read_text())
    assert index["version"] == 2
    assert main([*fit(folder, ()), "--out", str(tmp_path / "plain")]) == 2  # breaks the plan
    del index["sha256"]
    index["limits"][0]["index"] = 7
    (tmp_path / "hostile").mkdir()
    (tmp_path / "hostile" / "model.json").write_text(json.dumps(index))
    tensors = (folder / "model" / "tensors.safetensors").read_bytes()
    (tmp_path / "hostile" / "tensors.safetensors").write_bytes(tensors)
    with pytest.raises(InputError, match="in the plan 'total' is not number 7 of 'b_eq'"):
        load_model(tmp_path / "hostile")


# --- names ---------------------------------------------------------------------------------------

ODD = """NAME odd
ROWS
 N cost
 E demand[1]
 E demand[2]
 L a=b
 L upper:x
COLUMNS
 x cost 1 demand[1] 1
 x a=b 1 upper:x 1
 y cost 1 demand[2] 1
 y a=b 1
RHS
 RHS demand[1] 5 demand[2] 6
 RHS a=b 20 upper:x 9
ENDATA
"""


def odd(place):
    (place / "odd.mps").write_text(ODD)
    return read_plan(place / "odd.mps")


@pytest.mark.parametrize(
    "asked, found",
    [
        ("demand[*]", {("demand[1]", "demand[1]"), ("demand[2]", "demand[2]")}),
        ("demand[*]=need_*", {("demand[1]", "need_1")}),
        ("demand[*]=need_1", {("demand[1]", "need_1"), ("demand[2]", "need_1")}),
        ("lower:*=least_*", {("lower:x", "least_x"), ("lower:y", "least_y")}),
        ("a=b", {("a=b", "a=b")}),
        ("a=b=c=d", {("a=b", "c=d")}),
        ("demand[1]=c=d", {("demand[1]", "c=d")}),
    ],
)
def test_names_are_understood_with_stars_brackets_and_marks_in_them(tmp_path, asked, found):
    columns = ["demand[1]", "demand[2]", "need_1", "least_x", "least_y", "a=b", "c=d"]
    limits = find_limits(odd(tmp_path), [asked], columns)
    assert {(limit.name, limit.column) for limit in limits} == found


def test_a_row_that_is_called_like_a_bound_is_the_row(tmp_path):
    (limit,) = find_limits(odd(tmp_path), ["upper:x"], ["upper:x"])
    assert limit.place == ("b_ub", 1)


@pytest.mark.parametrize(
    "asked, match",
    [
        ("demand[*]=r*_*", "every . of the column stands for one of demand"),
        ("demand[*]=r*", "a column of the contexts such as r.*the columns rain"),
        ("upper:demand[1]=rain", "an equality; say demand.1. alone"),
        ("", "a row and a column were expected"),
    ],
)
def test_names_that_cannot_be_meant_meet_a_sentence(tmp_path, asked, match):
    with pytest.raises(InputError, match=match):
        find_limits(odd(tmp_path), [asked], ["rain"])


def test_a_missing_column_is_named_with_what_it_is_for(folder, tmp_path, capsys):
    rows = read(folder / "contexts.csv")
    write(tmp_path / "short.csv", rows[0][:-1], [row[:-1] for row in rows[1:]])
    call = ["predict", str(folder / "model"), "--contexts", str(tmp_path / "short.csv")]
    assert main([*call, "--out", str(tmp_path / "x.csv")]) == 2
    assert "no column 'salt_most' that says what upper:salt is" in words(capsys)
    assert main([*call, "--out", str(tmp_path / "x.csv"), "--costs"]) == 0  # costs need no limits


# --- numbers -------------------------------------------------------------------------------------


def test_what_is_no_limit_in_a_model_file_is_none_in_a_table(folder, tmp_path):
    spoiled = copied(folder, tmp_path)
    edit(spoiled / "contexts.csv", 3, "salt_most", "1e30")
    _, _, values = own_limits(spoiled)
    assert values[2, 3] == np.inf
    edit(spoiled / "contexts.csv", 4, "protein", "1e20")
    with pytest.raises(InputError, match="line 5, column 'protein' is inf"):
        own_limits(spoiled)


@pytest.mark.parametrize("given", [[np.nan, 2.0, 5.0, 0.0], [np.inf, 1.0, -1.0, 3.0]])
def test_knapsacks_stay_fast_and_right(given):
    plan = from_catalogue("knapsack([1.0, 2.0, 3.0], 3.0)")
    limits = find_limits(plan, ["ub1=room"], ["room"])
    ours = with_limits(plan, limits, np.array(given)[:, None]).problem
    assert isinstance(ours.structure, KnapsackStructure)
    room = np.where(np.isnan(given), 3.0, given)
    theirs = rv.LinearProgram(A_ub=[[1.0, 2.0, 3.0]], b_ub=room[:, None], lb=0.0, ub=1.0)
    costs = -np.random.default_rng(0).uniform(1, 2, (4, 3))
    one, other = ours.solve(costs), theirs.solve(costs)
    assert np.array_equal(one.status, other.status)
    assert np.allclose(one.x, other.x, equal_nan=True)
    other = with_limits(plan, find_limits(plan, ["upper:x1=a"], ["a"]), np.ones((2, 1)))
    assert other.problem.structure is None


def test_paths_between_other_ends_stay_fast_and_right():
    plan = from_catalogue("grid_shortest_path(3, 3)")
    columns = list(plan.equalities)
    limits, rng = find_limits(plan, ["*"], columns), np.random.default_rng(1)
    flow = np.zeros((20, 9))
    for line in flow:
        line[rng.choice(9, 2, replace=False)] = 1.0, -1.0
    ours = with_limits(plan, limits, flow).problem
    assert isinstance(ours.structure, PathStructure)
    costs = rng.uniform(1, 2, (20, plan.problem.n_variables))
    theirs = rv.LinearProgram(plan.problem.A_eq, flow)
    assert np.allclose(ours.solve(costs).x, theirs.solve(costs).x, atol=1e-7)
    flow[3] *= 2.0  # no path any more
    twice = with_limits(plan, limits, flow).problem
    assert twice.structure is None
    assert np.allclose(twice.solve(costs).x[3], 2.0 * np.asarray(ours.solve(costs).x)[3])


def test_limits_are_told_to_people_and_to_machines(folder, tmp_path, capsys):
    pairs = [(text.split("=")[0], text.split("=")[-1]) for text in LIMITS]
    named = [{"name": name, "column": column} for name, column in pairs]
    learn = [*fit(folder), *FIXED, "--out", str(tmp_path / "m")]
    for call in (fit(folder, LIMITS, "doctor"), learn):
        assert main([*call, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["limits"] == named
        assert main(call) == 0
        said = words(capsys)
        assert "Limits total from the column orders, protein" in said
        assert "read for each sample. The model does not learn from these columns" in said
