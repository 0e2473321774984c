"""Limits that differ from sample to sample: named on the command line, read from the contexts,
obeyed wherever the plan is."""

import csv
import json

import numpy as np
import pytest

import revealed as rv
from revealed.cli import main
from revealed.errors import InputError
from revealed.explorer import Explorer
from revealed.plans import find_limits, read_limits, read_plan, with_limits
from revealed.store import load_model
from revealed.tables import open_table

FOODS = ("oats", "wheat", "soy", "corn", "fish")
PROTEIN, FAT = np.array([0.1, 0.2, 0.4, 0.15, 0.3]), np.array([0.3, 0.1, 0.05, 0.2, 0.1])
LIMITS = ("total=orders", "protein", "upper:fish=stock", "upper:salt=salt_most")
DAYS = 90


def blend():
    """A model file with every kind of row: an equality, one of each sense, and a range."""
    lines = ["NAME blend", "ROWS", " N cost", " E total", " G protein", " L fat", " L salt"]
    lines += ["COLUMNS"]
    for name, protein, fat in zip(FOODS, PROTEIN, FAT, strict=True):
        lines += [f" {name} cost 1 total 1", f" {name} protein {protein} fat {fat}"]
        lines += [f" {name} salt {fat}"]
    lines += ["RHS", " RHS total 100 protein 20", " RHS fat 20 salt 30", "RANGES", " RNG salt 29"]
    lines += ["BOUNDS", *(f" UP BND {name} 60" for name in FOODS), "ENDATA", ""]
    return "\n".join(lines)


def problem(orders, protein, stock, salt):
    """The same, built by hand: one instance a day."""
    days = len(orders)
    return rv.LinearProgram(
        np.ones((1, 5)),
        orders[:, None],
        np.stack([-PROTEIN, FAT, FAT, -FAT]),
        np.column_stack([-protein, np.full(days, 20.0), salt, np.full(days, -1.0)]),
        0.0,
        np.column_stack([np.full((days, 4), 60.0), stock]),
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A plan, contexts with four columns of limits, and decisions that are best under them."""
    place = tmp_path_factory.mktemp("limits")
    (place / "blend.mps").write_text(blend())
    rng = np.random.default_rng(3)
    Z = rng.normal(size=(DAYS, 2)).round(4)
    orders = rng.integers(80, 120, DAYS).astype(float)
    protein = (orders * rng.uniform(0.18, 0.25, DAYS)).round(2)
    stock = rng.integers(20, 60, DAYS).astype(float)
    salt = rng.integers(14, 20, DAYS).astype(float)
    costs = 3.0 + Z @ rng.normal(size=(2, 5))
    answer = problem(orders, protein, stock, salt).solve(costs)
    assert np.asarray(answer.optimal).all()
    rows = zip(Z.tolist(), orders, protein, stock, salt, strict=True)
    write(
        place / "contexts.csv",
        ["day", "rain", "wind", "orders", "protein", "stock", "salt_most"],
        [[f"d{b}", *z, *own] for b, (z, *own) in enumerate(rows)],
    )
    taken = np.asarray(answer.x)
    write(
        place / "decisions.csv",
        ["day", *FOODS],
        [[f"d{b}", *taken[b].tolist()] for b in range(DAYS)],
    )
    assert main([*fit(place), "--out", str(place / "model")]) == 0
    return place


def write(path, names, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([names, *rows])


def tables(place):
    return [
        *("--contexts", str(place / "contexts.csv")),
        *("--decisions", str(place / "decisions.csv")),
    ]


def fit(place, limits=LIMITS, command="fit"):
    asked = [word for limit in limits for word in ("--limit", limit)]
    return [command, "--problem", str(place / "blend.mps"), *tables(place), *asked]


def words(captured):
    return " ".join("".join(captured.readouterr()).split())


def own_limits(place):
    plan, file = read_plan(place / "blend.mps"), open_table(place / "contexts.csv")
    limits = find_limits(plan, LIMITS, file.names)
    return plan, limits, read_limits(file, plan, limits)


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


def test_the_doctor_names_the_limit_and_is_content_once_it_is_given(folder, capsys):
    assert main(fit(folder, LIMITS[1:], "doctor")) == 1
    told = words(capsys)
    assert "total equals the column orders" in told
    assert "--limit total=orders" in told
    assert main([*fit(folder, LIMITS, "doctor"), "--json"]) == 0
    found = {finding["code"] for finding in json.loads(capsys.readouterr().out)["findings"]}
    assert not found & {"infeasible", "moving-limit", "named-like-a-row"}
    main([*fit(folder, LIMITS[:1], "doctor"), "--json"])
    found = json.loads(capsys.readouterr().out)["findings"]
    named = next(finding for finding in found if finding["code"] == "named-like-a-row")
    assert named["details"]["columns"] == ["protein"]


def test_days_that_only_differ_in_a_limit_do_not_conflict(folder, tmp_path, capsys):
    spoilt = copied(folder, tmp_path)
    rows = read(spoilt / "contexts.csv")
    for row in rows[2:]:
        row[1:3] = rows[1][1:3]
    write(spoilt / "contexts.csv", rows[0], rows[1:])
    main([*fit(spoilt, LIMITS, "doctor"), "--json"])
    codes = {finding["code"] for finding in json.loads(capsys.readouterr().out)["findings"]}
    assert "conflict" not in codes


def test_a_fit_learns_under_every_days_own_limits(folder, capsys):
    assert main([*fit(folder), "--out", str(folder / "again"), "--json"]) == 0
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
    spoilt = copied(folder, tmp_path)
    edit(spoilt / "contexts.csv", 2, "protein", "900")
    call = ["predict", str(folder / "model"), "--contexts", str(spoilt / "contexts.csv")]
    assert main([*call, "--out", str(tmp_path / "next.csv")]) == 1
    told = words(capsys)
    assert "1 context has limits that no decision meets" in told
    assert "falls without limit" not in told
    X = open_table(tmp_path / "next.csv").read(FOODS).numbers
    assert np.flatnonzero(np.isnan(X).any(axis=1)).tolist() == [1]
    assert main(fit(spoilt, LIMITS, "doctor")) == 1
    assert "1 sample has limits that no decision meets: d1" in words(capsys)


def test_the_broken_limit_of_a_day_is_named_with_its_own_number(folder, tmp_path, capsys):
    spoilt = copied(folder, tmp_path)
    edit(spoilt / "contexts.csv", 5, "orders", "95.5")
    edit(spoilt / "decisions.csv", 5, "wheat", "0")
    assert main([*fit(spoilt), "--out", str(tmp_path / "m")]) == 2
    assert "decisions.csv, line 6: the decision breaks the plan" in words(capsys)
    assert main(fit(spoilt, LIMITS, "doctor")) == 1
    assert "it must be 95.5" in words(capsys)


def test_explain_knows_the_tables_and_the_limits_again(folder, capsys):
    call = ["explain", str(folder / "model"), *tables(folder), "--rounds", "3", "--json"]
    assert main([*call, "--sample", "d3"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["held"]["samples"] == 18
    assert told["all"]["without_decision"] == 0
    assert told["all"]["repeated_share"] >= 0.8
    assert min(value for value in told["room"] if value is not None) >= -1e-6


def test_other_limits_are_other_tables(folder, tmp_path, capsys):
    spoilt = copied(folder, tmp_path)
    row = read(spoilt / "contexts.csv")[1]
    edit(spoilt / "contexts.csv", 1, "salt_most", str(float(row[6]) + 5.0))
    call = ["explain", str(folder / "model"), *tables(spoilt), "--rounds", "0", "--json"]
    assert main(call) == 0
    assert json.loads(capsys.readouterr().out)["held"] is None


def test_the_explorer_moves_limits_like_features(folder):
    model = load_model(folder / "model")
    page = Explorer(model, model.samples)
    last = page.describe()["features"][-4:]
    assert [control["name"] for control in last] == ["orders", "protein", "stock", "salt_most"]
    assert [control["limits"] for control in last] == [text.split("=")[0] for text in LIMITS]
    sample = page.sample(0)
    assert set(sample["context"]) == {"rain", "wind", "orders", "protein", "stock", "salt_most"}
    assert sum(sample["predicted"]) == pytest.approx(sample["context"]["orders"])
    moved = page.decide(sample["context"] | {"orders": 90.0}, 0)
    assert sum(moved["predicted"]) == pytest.approx(90.0)
    for other in moved["alternatives"]:
        assert sum(other["decision"]) == pytest.approx(90.0)
    kept = page.decide(sample["context"] | {"orders": None}, 0)
    assert kept["predicted"] == sample["predicted"]
    nobody = page.decide(sample["context"] | {"protein": 900.0}, 0)
    assert nobody["impossible"]
    assert not nobody["solved"]
    with pytest.raises(InputError, match="orders must be a number"):
        page.decide(sample["context"] | {"orders": "many"}, 0)


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
    spoilt = copied(folder, tmp_path)
    edit(spoilt / "contexts.csv", 3, column, value)
    with pytest.raises(InputError, match=match):
        own_limits(spoilt)


def test_a_reader_of_the_first_version_will_not_take_it(folder, tmp_path):
    index = json.loads((folder / "model" / "model.json").read_text())
    assert index["version"] == 2
    assert main([*fit(folder, ()), "--out", str(tmp_path / "plain")]) == 2  # breaks the plan
    index["limits"][0]["index"] = 7
    (tmp_path / "hostile").mkdir()
    (tmp_path / "hostile" / "model.json").write_text(json.dumps(index))
    tensors = (folder / "model" / "tensors.safetensors").read_bytes()
    (tmp_path / "hostile" / "tensors.safetensors").write_bytes(tensors)
    with pytest.raises(InputError, match="there is no 'b_eq' number 7 in the plan"):
        load_model(tmp_path / "hostile")


def read(path):
    with path.open(newline="") as file:
        return list(csv.reader(file))


def edit(path, row, column, value):
    rows = read(path)
    rows[row][rows[0].index(column)] = value
    write(path, rows[0], rows[1:])


def copied(folder, place):
    for name in ("blend.mps", "contexts.csv", "decisions.csv"):
        (place / name).write_bytes((folder / name).read_bytes())
    return place
