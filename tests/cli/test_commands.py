"""The commands for one's own data, as a planner types them."""

import json
import re

import numpy as np
import pytest

from revealed.cli import main
from revealed.cli.store import load_model
from revealed.cli.tables import open_table, write_table
from revealed.cli.tour import copy_files
from revealed.cli.tour.make import problem as tour_problem

FIXED = ["--ridge", "0.01", "--model", "linear"]
"""For tests that do not look at what cross-validation chooses, which takes its time."""


@pytest.fixture(scope="module")
def tour(tmp_path_factory):
    """The files of the tour and a model fitted to them."""
    folder = tmp_path_factory.mktemp("tour")
    copy_files(folder)
    assert main([*fit(folder), "--out", str(folder / "model"), *FIXED]) == 0
    return folder


def tables(folder):
    return [
        "--contexts",
        str(folder / "contexts.csv"),
        "--decisions",
        str(folder / "decisions.csv"),
    ]


def fit(folder):
    return ["fit", "--problem", str(folder / "plan.mps"), *tables(folder)]


def words(captured):
    return " ".join("".join(captured.readouterr()).split())


def test_a_fit_says_what_it_read_chose_learned_and_repeats(tour, tmp_path, capsys):
    # Linear: choosing among quadratic models as well takes a minute here.
    assert main([*fit(tour), "--out", str(tmp_path / "m"), "--model", "linear"]) == 0
    told = words(capsys)
    assert "240 samples: 9 features of the context, 24 variables of plan.mps" in told
    training = load_model(tmp_path / "m").training
    assert training["choice"].startswith("Chose ")
    assert " ".join(training["choice"].split()) in told
    assert "Learned from 192 samples, 48 held out" in told
    assert "Converged" in told
    hits = int(re.search(r"Held out (\d+) of 48 decisions", told).group(1))
    assert hits >= 36  # of a linear rule with 1 in 20 decisions wrong


def test_json_holds_the_same_figures_as_the_model(tour, tmp_path, capsys):
    out = tmp_path / "m"
    assert main([*fit(tour), "--out", str(out), *FIXED, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    kept = load_model(out).training
    assert told["held"] == kept["held"]
    assert told["samples"] == 192
    assert told["converged"]
    assert 0 <= told["relative_gap"] <= 1e-6
    assert told["evaluations"] > 0
    assert 0 <= told["held"]["interval"][0] <= told["held"]["repeated_share"]


def test_predictions_are_those_of_the_loaded_model(tour, tmp_path, capsys):
    out = tmp_path / "next.parquet"
    new = tour / "next_days.csv"
    assert main(["predict", str(tour / "model"), "--contexts", str(new), "--out", str(out)]) == 0
    assert "14 decisions" in words(capsys)
    model = load_model(tour / "model")
    Z, table = model.read_contexts(open_table(new))
    written = open_table(out).read(model.plan.variables, ["day"])
    assert written.text["day"] == table.text["day"]
    expected = model.plan.problem.solve(model.costs(Z)).x
    np.testing.assert_array_equal(written.numbers, expected)
    assert (tour_problem().constraint_violation(written.numbers) < 1e-9).all()


def test_costs_can_be_written_too(tour, tmp_path):
    out = tmp_path / "costs.csv"
    new = str(tour / "next_days.csv")
    assert (
        main(["predict", str(tour / "model"), "--contexts", new, "--costs", "--out", str(out)]) == 0
    )
    model = load_model(tour / "model")
    Z, _ = model.read_contexts(open_table(new))
    np.testing.assert_array_equal(
        open_table(out).read(model.plan.variables).numbers, model.costs(Z)
    )


def test_explain_tells_held_out_misses_sensitivity_and_intervals(tour, capsys):
    day = "2026-03-03"
    code = main(["explain", str(tour / "model"), *tables(tour), "--rounds", "4", "--sample", day])
    told = words(capsys)
    assert code == 0
    for heading in ("Held out", "All rows", "Misses", "Sensitivity", "Intervals"):
        assert heading in told
    assert "of 48 decisions" in told
    assert f"Sensitivity range of every cost on {day}" in told


def test_a_sensitivity_range_ends_where_the_decision_changes(tour, capsys):
    """Just inside the range the decision is still optimal, just outside it is not."""
    from revealed.cli.explain import cost_ranges

    model = load_model(tour / "model")
    costs = model.costs(model.samples.contexts)
    decided = np.asarray(model.plan.problem.solve(costs).x)
    for found in cost_ranges(model.plan, costs[0], decided[0]):
        j = model.plan.variables.index(found.variable)
        for end, way in ((found.low, -1), (found.high, 1)):
            if not np.isfinite(end):
                continue
            for step, stays in ((-1e-4, True), (1e-3, False)):
                c = costs[0].copy()
                c[j] = end + way * step
                best = float(model.plan.problem.solve(c[None]).objective[0])
                assert (c @ decided[0] <= best + 1e-7) == stays, (found, way, step)


def test_a_miss_names_a_cheaper_decision(tour, capsys):
    code = main(["explain", str(tour / "model"), *tables(tour), "--rounds", "0", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert code == 0
    assert told["misses"]
    distances = [miss["distance"] for miss in told["misses"]]
    assert distances == sorted(distances, reverse=True)
    assert all(miss["saving"] > 0 and miss["changes"] for miss in told["misses"])
    assert told["all"]["explained"] == 240 - len(told["misses"])


def test_long_decisions_and_npz_contexts_give_the_same_model(tour, tmp_path, capsys):
    names = open_table(tour / "decisions.csv").names[1:]
    wide = open_table(tour / "decisions.csv").read(names, ["day"])
    lines = ["day,variable,value"]
    for day, row in zip(wide.text["day"], wide.numbers, strict=True):
        lines += [f"{day},{name},{x:g}" for name, x in zip(names, row, strict=True) if x]
    (tmp_path / "long.csv").write_text("\n".join(lines))
    numbers = ["fuel_price", "rain_mm", "works_bridge", "works_hill"]
    contexts = open_table(tour / "contexts.csv").read(numbers, ["day"])
    write_table(tmp_path / "c.npz", numbers, contexts.numbers, key=("day", contexts.text["day"]))
    (tmp_path / "plain.csv").write_text((tour / "contexts.csv").read_text())
    plan = str(tour / "plan.mps")
    common = ["--problem", plan, *FIXED, "--ignore"]
    first = ["fit", *common, "weekday", "--contexts", str(tmp_path / "plain.csv")]
    second = ["fit", "--problem", plan, *FIXED, "--contexts", str(tmp_path / "c.npz")]
    assert (
        main([*first, "--decisions", str(tour / "decisions.csv"), "--out", str(tmp_path / "a")])
        == 0
    )
    assert (
        main([*second, "--decisions", str(tmp_path / "long.csv"), "--out", str(tmp_path / "b")])
        == 0
    )
    a, b = load_model(tmp_path / "a"), load_model(tmp_path / "b")
    assert (a.coef == b.coef).all()


@pytest.mark.parametrize(
    "change, message",
    [
        (["--holdout", "1"], "--holdout must be at least 0 and below 1"),
        (["--margin", "-1"], "`margin` must be finite and at least 0"),
        (["--ignore", "nothing"], "contexts.csv has no column 'nothing'"),
        (["--id", "weekday"], "decisions.csv has no column 'weekday'"),
        (["--problem", "plan.xlsx"], "neither a model file"),
        (["--problem", "none.mps"], "does not exist"),
        (["--problem", "grid_shortest_path(5, 5"], "neither a model file"),
        (["--problem", "grid_shortest_path(open('x'), 5)"], "not understood"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(tour, tmp_path, capsys, change, message):
    assert main([*fit(tour), "--out", str(tmp_path / "m"), *change]) == 2
    assert message in words(capsys)
    assert not (tmp_path / "m").exists()


def test_a_broken_decision_is_placed_in_its_file(tour, tmp_path, capsys):
    rows = (tour / "decisions.csv").read_text().splitlines()
    cells = rows[3].split(",")
    cells[1] = str(float(cells[1]) + 5)
    (tmp_path / "d.csv").write_text("\n".join([*rows[:3], ",".join(cells), *rows[4:]]))
    arguments = [*fit(tour), "--decisions", str(tmp_path / "d.csv"), "--out", str(tmp_path / "m")]
    assert main(arguments) == 2
    told = words(capsys)
    assert "d.csv, line 4: the decision breaks the plan: order_market is 26, it must be 21" in told
    assert "Broken by 1 of 240 decisions" in told
    there = [*tables(tour)[:2], "--decisions", str(tmp_path / "d.csv")]
    for command in (["explain", "--rounds", "0"], ["explore", "--no-browser"]):
        assert main([command[0], str(tour / "model"), *there, *command[1:]]) == 2
        assert "d.csv, line 4: the decision breaks the plan" in words(capsys)
    assert "revealed doctor" in told


def test_a_catalogue_problem_is_fitted_without_a_model_file(tmp_path, capsys):
    call = "grid_shortest_path(3, 3, directed='right-down')"
    from revealed.cli.plans import from_catalogue

    plan = from_catalogue(call)
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((60, 2))
    X = plan.problem.solve(5 + Z @ rng.standard_normal((2, plan.problem.n_variables))).x
    write_table(tmp_path / "z.csv", ["a", "b"], Z)
    write_table(tmp_path / "x.csv", plan.variables, X)
    arguments = ["--contexts", str(tmp_path / "z.csv"), "--decisions", str(tmp_path / "x.csv")]
    out = str(tmp_path / "m")
    assert main(["fit", "--problem", call, *arguments, "--out", out, *FIXED]) == 0
    assert load_model(out).plan.catalogue == call


@pytest.mark.parametrize("noise", [1e-7, 1e-6])
def test_a_solvers_rounding_does_not_make_a_decision_another(tour, tmp_path, capsys, noise):
    file = open_table(tour / "decisions.csv")
    wide = file.read(file.names[1:], ["day"])
    shaken = wide.numbers + noise * np.random.default_rng(0).uniform(-1, 1, wide.numbers.shape)
    write_table(tmp_path / "d.csv", file.names[1:], shaken, key=("day", wide.text["day"]))
    hits = []
    for decisions in (tour / "decisions.csv", tmp_path / "d.csv"):
        arguments = [*fit(tour), "--decisions", str(decisions), "--out", str(tmp_path / "m")]
        assert main([*arguments, *FIXED, "--json"]) == 0
        hits.append(json.loads(capsys.readouterr().out)["held"]["repeated"])
    assert hits[0] == hits[1] > 20


def test_a_model_that_is_replaced_is_spoken_of(tour, tmp_path, capsys):
    arguments = [*fit(tour), "--out", str(tmp_path / "m"), *FIXED]
    assert main(arguments) == 0
    assert "in place of" not in words(capsys)
    assert main(arguments) == 0
    assert "in place of the model that was there" in words(capsys)


def test_a_file_that_is_no_model_is_never_replaced_by_one(tour, tmp_path, capsys):
    (tmp_path / "model.json").write_text('{"mine": 1}')
    (tmp_path / "taken").write_text("a file")
    for out, message in ((tmp_path, "left alone"), (tmp_path / "taken" / "m", "is a file")):
        # A missing table would be complained of next: the folder is looked at before any reading.
        assert main([*fit(tour), "--contexts", "none.csv", "--out", str(out)]) == 2
        assert message in words(capsys)
    assert (tmp_path / "model.json").read_text() == '{"mine": 1}'


def test_predictions_do_not_overwrite_their_contexts(tour, tmp_path, capsys):
    new = tmp_path / "new.csv"
    new.write_text((tour / "next_days.csv").read_text())
    predict = ["predict", str(tour / "model"), "--contexts", str(new), "--out"]
    assert main([*predict, str(new)]) == 2
    assert "is the table of contexts" in words(capsys)
    assert new.read_text() == (tour / "next_days.csv").read_text()
    assert main([*predict, str(tmp_path / "p.pdf")]) == 2
    assert "write to a .csv, .parquet, .xlsx or .npz file" in words(capsys)


def test_rows_of_other_tables_are_not_called_held_out(tour, tmp_path, capsys):
    """As many rows, but not the same: which of them are new is not known."""
    lines = (tour / "contexts.csv").read_text().splitlines()
    (tmp_path / "c.csv").write_text("\n".join([lines[0], *reversed(lines[1:])]))
    explain = ["explain", str(tour / "model"), *tables(tour), "--rounds", "0"]
    assert main(explain) == 0
    told = words(capsys)
    assert "Held out" in told
    assert "Which of these rows are new" not in told
    assert main([*explain, "--contexts", str(tmp_path / "c.csv")]) == 0
    told = words(capsys)
    assert "Held out" not in told
    assert "Which of these rows are new to the model is not known" in told


@pytest.mark.parametrize("option", ["--seed", "--max-iter", "--keep"])
def test_a_number_below_0_is_refused_where_it_means_nothing(tour, tmp_path, capsys, option):
    with pytest.raises(SystemExit) as left:
        main([*fit(tour), "--out", str(tmp_path / "m"), option, "-1"])
    assert left.value.code == 2
    assert "expected a whole number of at least 0, got '-1'" in words(capsys)


def test_effects_say_what_a_word_is_compared_with(tour, capsys):
    assert main(["explain", str(tour / "model"), *tables(tour), "--rounds", "2"]) == 0
    assert "a word in place of weekday=Fri" in words(capsys)


@pytest.mark.parametrize("columns, most", [(80, 80), (300, 100), (20, 50)])
def test_text_and_tables_fit_the_terminal(monkeypatch, capsys, columns, most):
    from revealed.cli.commands import telling

    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(columns))
    telling.tell("Read", "many words " * 40)
    print(telling.table(["name", "number", "told"], [["a", "1.5", "other words " * 20]]))
    lines = capsys.readouterr().out.splitlines()
    assert most - 12 < max(map(len, lines)) <= most
    assert lines[-1].startswith(" " * len("  name  number  "))
