"""What the doctor says of limits: which ones move, which nobody can meet, and nothing needless."""

import json

import numpy as np
import pytest
from limit_files import (
    DAYS,
    LIMITS,
    blend_files,
    copied,
    edit,
    findings,
    fit,
    read,
    tables,
    words,
    write,
)

import revealed as rv
from revealed.cli import main
from revealed.cli.plans import from_catalogue


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return blend_files(tmp_path_factory.mktemp("limits"))


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
    spoiled = copied(folder, tmp_path)
    rows = read(spoiled / "contexts.csv")
    for row in rows[2:]:
        row[1:3] = rows[1][1:3]
    write(spoiled / "contexts.csv", rows[0], rows[1:])
    main([*fit(spoiled, LIMITS, "doctor"), "--json"])
    codes = {finding["code"] for finding in json.loads(capsys.readouterr().out)["findings"]}
    assert "conflict" not in codes


SHIFTS = """NAME shifts
ROWS
 N cost
 E day
 E night
 L hours
COLUMNS
 a cost 1 day 1
 a hours 1
 b cost 1 day 1
 c cost 1 night 1
 c hours 1
 d cost 1 night 1
RHS
 RHS day 7 night 7
 RHS hours 3
RANGES
 RNG hours 2
ENDATA
"""


def test_the_doctor_names_all_limits_that_move_each_as_it_is_asked_for(tmp_path, capsys):
    rng = np.random.default_rng(6)
    day, night = rng.integers(5, 10, (2, 50)).astype(float)
    hours, heat = rng.uniform(4, 6, 50).round(2), rng.normal(size=50).round(3)
    costs = np.tile([-2.0, 0.0, -2.0, 0.0], (50, 1)) + heat[:, None] * [0.5, 0.0, -0.5, 0.0]
    rows = np.array([[1.0, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0]])
    needs = np.column_stack([day, night])
    taken = rv.LinearProgram(rows[:2], needs, rows[2:], hours[:, None]).solve(costs).x
    (tmp_path / "shifts.mps").write_text(SHIFTS)
    given = np.column_stack([heat, day, night, hours]).tolist()
    write(tmp_path / "contexts.csv", ["heat", "day", "sleepless", "most"], given)
    write(tmp_path / "decisions.csv", ["a", "b", "c", "d"], np.asarray(taken).tolist())
    call = ["doctor", "--problem", str(tmp_path / "shifts.mps"), *tables(tmp_path)]
    advice = findings(capsys, call, 1)["moving-limit"]["advice"]
    asked = ["--limit", "day", "--limit", "night=sleepless", "--limit", "upper:hours=most"]
    assert " ".join(asked) in advice
    assert not findings(capsys, [*call, *asked]).keys() & {"moving-limit", "infeasible"}


def knapsack_files(place, capacity, columns):
    rng = np.random.default_rng(5)
    load, room = rng.normal(size=60).round(3), rng.uniform(2, 9, 60).round(2)
    values = 5.0 + load[:, None] * rng.normal(size=4)
    taken = rv.problems.knapsack([3.0, 2.0, 4.0, 1.0], room).solve(-values).x
    given = {"load": load, "room": room, "ub1": room, "works": (rng.random(60) < 0.1).astype(float)}
    write(place / "c.csv", columns, np.column_stack([given[name] for name in columns]).tolist())
    write(place / "d.csv", ["x1", "x2", "x3", "x4"], np.asarray(taken).tolist())
    files = ["--contexts", str(place / "c.csv"), "--decisions", str(place / "d.csv")]
    return ["doctor", "--problem", f"knapsack([3.0, 2.0, 4.0, 1.0], {capacity})", *files]


def test_a_limit_that_moves_below_the_plans_is_told_though_nothing_breaks(tmp_path, capsys):
    call = knapsack_files(tmp_path, 50.0, ["load", "room"])
    found = findings(capsys, call)["moving-limit"]
    assert found["severity"] == "warning"
    assert "--limit ub1=room" in found["advice"]
    assert "moving-limit" not in findings(capsys, [*call, "--limit", "ub1=room"])


def test_a_column_that_is_mostly_0_is_not_taken_for_a_limit(tmp_path, capsys):
    """A broken path is not taken for one that ends elsewhere."""
    plan, rng = from_catalogue("grid_shortest_path(3, 3)"), np.random.default_rng(0)
    X = np.asarray(plan.problem.solve(rng.uniform(1, 2, (60, plan.problem.n_variables))).x)
    for x in X[:6]:
        x[np.flatnonzero(x)[1]] = 0.0  # a road that someone forgot
    works = (np.arange(60) % 15 == 8).astype(float)
    write(tmp_path / "contexts.csv", ["load", "works"], np.column_stack([X[:, 0], works]).tolist())
    write(tmp_path / "decisions.csv", plan.variables, X.tolist())
    call = ["doctor", "--problem", "grid_shortest_path(3, 3)", *tables(tmp_path)]
    assert "moving-limit" not in findings(capsys, call, 1)


def test_a_note_does_not_ask_for_what_was_given(tmp_path, capsys):
    call = knapsack_files(tmp_path, 8.0, ["load", "room", "ub1"])
    assert "named-like-a-row" not in findings(capsys, [*call, "--limit", "ub1=room"])


def test_a_note_on_a_row_with_two_sides_says_which_one(folder, tmp_path, capsys):
    spoiled = copied(folder, tmp_path)
    text = (spoiled / "contexts.csv").read_text()
    (spoiled / "contexts.csv").write_text(text.replace("salt_most", "salt", 1))
    found = findings(capsys, fit(spoiled, LIMITS[:3], "doctor"))
    assert "--limit upper:salt=salt" in found["named-like-a-row"]["advice"]


def test_a_limit_that_is_none_is_not_called_reached(folder, tmp_path, capsys):
    spoiled = copied(folder, tmp_path)
    for b in range(1, DAYS + 1):
        edit(spoiled / "contexts.csv", b, "salt_most", "inf")
    found = findings(capsys, fit(spoiled, LIMITS, "doctor"))
    assert "salt" not in found.get("always-reached", {"details": {"rows": []}})["details"]["rows"]


def test_other_units_may_be_those_of_the_limits(tmp_path, capsys):
    call = [*knapsack_files(tmp_path, 8.0, ["load", "room"]), "--limit", "ub1=room"]
    rows = read(tmp_path / "c.csv")
    spoiled = [[load, float(room) / 1000] for load, room in rows[1:]]
    write(tmp_path / "c.csv", rows[0], spoiled)
    found = findings(capsys, call, 1)
    assert "decisions, plan and limits are of the same time" in found["infeasible"]["advice"]
    assert "or the limits the other way round" in found["units"]["advice"]


def test_limits_that_were_not_tried_are_not_counted(tmp_path, capsys):
    given = [[b % 7, -1.0] for b in range(150)]
    write(tmp_path / "contexts.csv", ["load", "room"], given)
    write(tmp_path / "decisions.csv", ["x1", "x2"], [[b % 2, 0] for b in range(150)])
    call = ["doctor", "--problem", "knapsack([1.0, 2.0], 2.0)", *tables(tmp_path)]
    found = findings(capsys, [*call, "--limit", "ub1=room"], 1)["impossible-limits"]
    assert (
        "100 samples have limits that no decision meets (of 100 that were tried)" in found["what"]
    )


def test_costs_that_never_change_need_a_column_of_ones_and_no_warning(tmp_path, capsys):
    call = knapsack_files(tmp_path, 8.0, ["room"])
    assert main([*call, "--limit", "ub1=room"]) == 2
    assert "add one that is 1 in every row" in words(capsys)
    rows = read(tmp_path / "c.csv")
    write(tmp_path / "c.csv", ["room", "one"], [[*row, 1] for row in rows[1:]])
    assert "constant-feature" not in findings(capsys, [*call, "--limit", "ub1=room"])
