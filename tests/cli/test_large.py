"""`revealed fit`, `predict` and `explain` on folders of Parquet: as on one table, part by part."""

from __future__ import annotations

import json

import numpy as np
import pytest

import revealed as rv
from revealed.cli import main

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

PROBLEM = "grid_shortest_path(3, 3, directed='right-down')"


@pytest.fixture(scope="module")
def days(tmp_path_factory):
    from revealed.cli.plans import from_catalogue

    plan = from_catalogue(PROBLEM)
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((400, 2))
    noise = 0.3 * rng.standard_normal((400, 12))
    X = np.asarray(plan.problem.solve(4.0 + Z @ rng.standard_normal((2, 12)) + noise).x)
    folder = tmp_path_factory.mktemp("days")
    for day in range(4):
        rows = slice(100 * day, 100 * day + 100)
        columns = {"trip": np.arange(400)[rows], "rain": Z[rows, 0], "hour": Z[rows, 1]}
        columns |= {name: X[rows, j] for j, name in enumerate(plan.variables)}
        columns["driver"] = ["Ann"] * 100
        pq.write_table(pa.table(columns), folder / f"day{day}.parquet", row_group_size=50)
    return folder


def run(capsys, *words: object) -> tuple[int, dict]:
    code = main([*map(str, words), "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_a_folder_is_fitted_and_predicted_part_by_part(days, tmp_path, capsys):
    pattern = str(days / "*.parquet")
    fit = ["fit", "--problem", PROBLEM, "--contexts", pattern, "--decisions", pattern]
    fit += ["--id", "trip", "--ridge", "0.01", "--memory", "4GB", "--out", tmp_path / "model"]
    code, told = run(capsys, *fit)
    assert code == 0
    assert told["converged"]
    assert told["left_out"] == []
    assert told["run"]["samples"] + told["held"]["samples"] == 400
    assert told["held"]["repeated_share"] > 0.6
    predict = ["predict", tmp_path / "model", "--contexts", pattern, "--out", tmp_path / "out"]
    code, told = run(capsys, *predict)
    assert (code, told["rows"]) == (0, 400)
    one = ["predict", tmp_path / "model", "--contexts", days / "day2.parquet"]
    run(capsys, *one, "--out", tmp_path / "one.parquet")
    alone = pq.read_table(tmp_path / "one.parquet").to_pandas()
    part = pq.read_table(tmp_path / "out" / "day2.parquet").to_pandas()
    np.testing.assert_array_equal(part.iloc[:, 1:], alone.iloc[:, 1:])


@pytest.mark.parametrize(
    "more, message",
    [
        (["--memory", "1MB"], "too little"),
        (["--memory", "much"], "like '2GB'"),
        (["--scheduler", "nowhere"], "the address of a Dask scheduler"),
        (["--model", "quadratic"], "--model linear"),
        (["--ignore", "rain", "--ignore", "hour", "--ignore", "driver"], "no column left"),
        (["--impute", "mean"], "--skip-bad such rows are left out"),
        (["--tol", "auto"], "--tol 0.005"),
        (["--date", "hour"], "expected dates written alike"),
        (["--limit", "eq1=snow"], "no column 'snow'"),
    ],
)
def test_what_does_not_go_with_parts_is_said_in_a_sentence(days, tmp_path, capsys, more, message):
    words = ["fit", "--problem", PROBLEM, "--contexts", days, "--decisions", days, "--id", "trip"]
    code = main([*map(str, words), "--out", str(tmp_path / "model"), *more])
    assert code == 2
    assert message in capsys.readouterr().err


# --- words, dates, limits -------------------------------------------------------------------------

BOXES = """\
NAME boxes
ROWS
 N cost
 L budget
 G least
COLUMNS
 a cost 1 budget 1
 a least 1
 b cost 1 budget 1
 b least 1
 c cost 1 budget 2
 c least 1
RHS
 rhs budget 2 least 1
BOUNDS
 UP bnd a 1
 UP bnd b 1
 UP bnd c 1
ENDATA
"""


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """Contexts of numbers, words, dates and limits, decisions beside them: once in one table, once
    in four files."""
    from revealed.cli.plans import read_plan

    folder = tmp_path_factory.mktemp("mixed")
    (folder / "plan.mps").write_text(BOXES)
    plan = read_plan(str(folder / "plan.mps"))
    rng = np.random.default_rng(5)
    size = 240
    rain = rng.standard_normal(size) * 7 + 30
    driver = rng.choice(["Ann", "Bo", "Cy"], size)
    dates = np.datetime64("2026-03-02") + rng.integers(0, 60, size)
    budget = rng.uniform(1.2, 3.4, size)
    likes = {"Ann": [-2.0, 0.5, 0.5], "Bo": [0.5, -2.0, 0.5], "Cy": [0.5, 0.5, -2.0]}
    weekend = (dates.astype("datetime64[D]").view(int) + 3) % 7 >= 5
    costs = np.array([likes[name] for name in driver]) + 0.1 * (rain - 30)[:, None] * [1, -1, 0]
    costs += weekend[:, None] * [0.0, -1.0, 1.0] + 0.5 * rng.standard_normal((size, 3))
    own = rv.LinearProgram(
        A_ub=plan.rows.A_ub, b_ub=np.column_stack([budget, np.full(size, -1.0)]), lb=0.0, ub=1.0
    )
    X = np.asarray(own.solve(costs).x)
    columns = {
        "trip": [f"t{k}" for k in range(size)],
        "rain": rain,
        "driver": driver.tolist(),
        "day": [str(day) for day in dates],
        "budget": budget,
        "a": X[:, 0],
        "b": X[:, 1],
        "c": X[:, 2],
    }
    whole = pa.table(columns)
    contexts = ["trip", "rain", "driver", "day", "budget"]
    pq.write_table(whole.select(contexts), folder / "contexts.parquet")
    pq.write_table(whole.select(["trip", "a", "b", "c"]), folder / "decisions.parquet")
    for name in ("contexts", "decisions"):
        (folder / name).mkdir()
        table = pq.read_table(folder / f"{name}.parquet")
        for k in range(4):
            part = table.slice(60 * k, 60)
            pq.write_table(part, folder / name / f"{k}.parquet", row_group_size=25)
    return folder


def fit_words(folder, large: bool, out) -> list:
    kind = "" if large else ".parquet"
    words = ["fit", "--problem", folder / "plan.mps", "--contexts", folder / f"contexts{kind}"]
    words += ["--decisions", folder / f"decisions{kind}", "--id", "trip", "--date", "day"]
    words += ["--limit", "budget", "--ridge", "0.02", "--noise", "0.7", "--holdout", "0"]
    words += ["--model", "linear", "--tol", "0", "--max-iter", "2000", "--out", out]
    return words + (["--gap", "1e-9", "--memory", "8GB"] if large else [])


def explain_words(folder, kind: str, model) -> list:
    words = ["explain", model, "--contexts", folder / f"contexts{kind}", "--rounds", "4"]
    return [*words, "--decisions", folder / f"decisions{kind}", "--id", "trip"]


def test_words_dates_and_limits_are_learned_from_as_in_one_table(mixed, tmp_path, capsys):
    from revealed.cli.store import load_model

    told = {}
    for large in (False, True):
        code, told[large] = run(capsys, *fit_words(mixed, large, tmp_path / f"{large}"))
        assert code == 0
    one, many = (load_model(tmp_path / f"{large}") for large in (False, True))
    assert many.features.names == one.features.names
    assert len(many.features.names) == 1 + 2 + 6 + 1
    for ours, theirs in zip(many.features.features, one.features.features, strict=True):
        assert (ours.levels, ours.style, ours.part) == (theirs.levels, theirs.style, theirs.part)
        assert ours.mean == pytest.approx(theirs.mean)
        assert ours.scale == pytest.approx(theirs.scale)
    assert many.limits == one.limits
    scale = np.abs(one.coef).max()
    np.testing.assert_allclose(many.coef, one.coef, atol=3e-4 * scale)
    assert told[True]["seen"]["repeated"] == told[False]["seen"]["repeated"]
    assert many.samples is not None
    assert many.samples.names == one.samples.names
    np.testing.assert_allclose(many.samples.limits, one.samples.limits)


def test_many_files_are_explained_as_one_table(mixed, tmp_path, capsys):
    model = tmp_path / "model"
    run(capsys, *fit_words(mixed, False, model))
    found = {}
    for kind in (".parquet", ""):
        words = [*explain_words(mixed, kind, model), "--sample", "t7"]
        code, found[kind] = run(capsys, *words)
        assert code == 0
    one, many = found[".parquet"], found[""]
    assert one.pop("same_tables")
    assert not many.pop("same_tables")
    assert many.pop("many") is None
    assert many.pop("unreadable") == []
    for name in ("assumed", "skipped"):
        assert not one.pop(name)
        assert not many.pop(name)
    assert len(one["misses"]) > 5
    assert many == approximately(one)


def approximately(found):
    """The same numbers but for rounding."""
    if isinstance(found, dict):
        return {name: approximately(value) for name, value in found.items()}
    if isinstance(found, list):
        return [approximately(value) for value in found]
    return pytest.approx(found, rel=1e-9, abs=1e-9) if isinstance(found, float) else found


def test_held_out_files_are_known_again(mixed, tmp_path, capsys):
    words = fit_words(mixed, True, tmp_path / "model")
    words[words.index("--holdout") + 1] = "0.25"
    _, fitted = run(capsys, *words)
    assert fitted["held"]["samples"] > 0
    _, found = run(capsys, *explain_words(mixed, "", tmp_path / "model"))
    assert found["same_tables"]
    assert found["held"] == fitted["held"]
    assert found["all"]["samples"] == 240
    # In one table nobody knows which rows these were, though their number is the same.
    _, found = run(capsys, *explain_words(mixed, ".parquet", tmp_path / "model"))
    assert found["held"] is None


def test_memory_does_not_grow_with_what_is_explained(mixed, tmp_path, capsys, monkeypatch):
    model = tmp_path / "model"
    run(capsys, *fit_words(mixed, True, model))
    monkeypatch.setattr("revealed.cli.commands.explain_parts.MOST_NUMBERS", 300)
    monkeypatch.setattr("revealed.cli.commands.explain_parts.MOST_MISSES", 3)
    _, found = run(capsys, *explain_words(mixed, "", model))
    assert found["many"] == 240
    assert "coefficients" not in found
    assert found["missed"] > len(found["misses"]) == 3
    assert main([*map(str, explain_words(mixed, "", model))]) == 0
    assert "240 are too many" in " ".join(capsys.readouterr().out.split())


def test_limits_of_each_row_are_kept_to_in_predictions(mixed, tmp_path, capsys):
    run(capsys, *fit_words(mixed, True, tmp_path / "model"))
    predict = ["predict", tmp_path / "model", "--contexts"]
    run(capsys, *predict, mixed / "contexts", "--out", tmp_path / "out")
    run(capsys, *predict, mixed / "contexts.parquet", "--out", tmp_path / "one.parquet")
    parts = [pq.read_table(tmp_path / "out" / f"{k}.parquet").to_pandas() for k in range(4)]
    one = pq.read_table(tmp_path / "one.parquet").to_pandas()
    values = np.concatenate([part[["a", "b", "c"]].to_numpy() for part in parts])
    np.testing.assert_array_equal(values, one[["a", "b", "c"]].to_numpy())
    budget = pq.read_table(mixed / "contexts.parquet").column("budget").to_numpy()
    assert (values @ [1.0, 1.0, 2.0] <= budget + 1e-9).all()


def test_limits_of_the_nodes_are_ends_of_paths(tmp_path, capsys):
    from revealed.cli.plans import from_catalogue

    plan = from_catalogue(PROBLEM)
    rng = np.random.default_rng(8)
    flow = np.zeros((120, 9))
    flow[np.arange(120), rng.choice([0, 1, 3], 120)] = 1.0
    flow[np.arange(120), rng.choice([5, 7, 8], 120)] = -1.0
    own = plan.with_rows(rv.LinearProgram(plan.rows.A_eq, flow, lb=0.0, ub=1.0)).problem
    Z = rng.standard_normal((120, 2))
    answer = own.solve(
        4.0 + Z @ rng.standard_normal((2, 12)) + 0.3 * rng.standard_normal((120, 12))
    )
    there = np.flatnonzero(answer.optimal)  # some ends have no path between them
    columns = {"rain": Z[there, 0], "hour": Z[there, 1]}
    columns |= {name: flow[there, k] for k, name in enumerate(plan.equalities)}
    columns |= {name: answer.x[there, j] for j, name in enumerate(plan.variables)}
    pq.write_table(pa.table(columns), tmp_path / "trips.parquet", row_group_size=30)
    pattern = tmp_path / "trips*.parquet"
    fit = ["fit", "--problem", PROBLEM, "--contexts", pattern, "--decisions", pattern]
    code, told = run(capsys, *fit, "--limit", "eq*", "--ridge", "0.01", "--out", tmp_path / "model")
    assert code == 0
    assert len(told["limits"]) == 9
    assert told["seen"]["repeated_share"] > 0.6
    run(capsys, "predict", tmp_path / "model", "--contexts", pattern, "--out", tmp_path / "out")
    paths = pq.read_table(tmp_path / "out" / "trips.parquet").to_pandas().to_numpy()
    np.testing.assert_allclose(paths @ plan.rows.A_eq.toarray().T, flow[there], atol=1e-9)


def altered(folder, tmp_path, column: str, row: int, value, name: str = "contexts"):
    """A copy of the files with another value in one cell of the third."""
    import shutil

    for part in ("contexts", "decisions", "plan.mps"):
        copy = shutil.copytree if (folder / part).is_dir() else shutil.copy
        copy(folder / part, tmp_path / part)
    file = tmp_path / name / "2.parquet"
    table = pq.read_table(file)
    cells = table.column(column).to_pylist()
    cells[row] = value
    place = table.column_names.index(column)
    pq.write_table(table.set_column(place, column, pa.array(cells)), file, row_group_size=25)
    return tmp_path


@pytest.mark.parametrize(
    "column, value, message",
    [
        ("driver", None, "2.parquet, row 31, column 'driver' is empty"),
        ("rain", None, "2.parquet, row 31, column 'rain' is empty"),
        ("day", "in May", "expected dates written alike"),
    ],
)
def test_a_cell_that_cannot_be_used_is_named(mixed, tmp_path, capsys, column, value, message):
    folder = altered(mixed, tmp_path, column, 30, value)
    assert main([*map(str, fit_words(folder, True, tmp_path / "model"))]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert "--impute" not in said
    if value is None:
        code, told = run(capsys, *fit_words(folder, True, tmp_path / "model"), "--skip-bad")
        assert code == 0
        assert told["run"]["samples"] == 239
        assert told["run"]["left_out"] == 1
        _, found = run(capsys, *explain_words(folder, "", tmp_path / "model"))
        assert found["skipped"] == 1
        assert found["all"]["samples"] == 239


def test_what_cannot_be_read_is_named_where_the_rest_is_explained(mixed, tmp_path, capsys):
    folder = altered(mixed, tmp_path, "rain", 0, 30.0)
    run(capsys, *fit_words(folder, True, tmp_path / "model"))
    file = folder / "contexts" / "1.parquet"
    group = pq.ParquetFile(file).metadata.row_group(1).column(1)
    raw = bytearray(file.read_bytes())
    at = group.data_page_offset
    raw[at : at + 40] = b"\xff" * 40
    file.write_bytes(raw)
    words = explain_words(folder, "", tmp_path / "model")
    assert main([*map(str, words)]) == 2
    assert "1.parquet, row group 1 cannot be read" in capsys.readouterr().err
    code, found = run(capsys, *words, "--skip-bad")
    assert code == 0
    assert "1.parquet, row group 1" in found["unreadable"][0]
    assert 180 <= found["all"]["samples"] < 240


def test_decisions_in_another_order_are_refused(mixed, tmp_path, capsys):
    folder = altered(mixed, tmp_path, "trip", 4, "t999", "decisions")
    assert main([*map(str, fit_words(folder, True, tmp_path / "model"))]) == 2
    assert "the decision of 't999' is where the contexts have 't124'" in capsys.readouterr().err


def test_infeasible_decisions_are_refused_skipped_or_repaired(mixed, tmp_path, capsys):
    folder = altered(mixed, tmp_path, "a", 4, 7.0, "decisions")
    words = fit_words(folder, True, tmp_path / "model")
    assert main([*map(str, words)]) == 2
    assert "2.parquet" in capsys.readouterr().err
    for policy, size in (("skip", 239), ("repair", 240)):
        code, told = run(capsys, *words, "--infeasible", policy)
        assert code == 0
        assert told["run"]["samples"] == told["seen"]["samples"] == size


def test_a_column_of_names_is_no_category(mixed, tmp_path, capsys):
    words = fit_words(mixed, True, tmp_path / "model")
    del words[words.index("--id") : words.index("--id") + 2]
    assert main([*map(str, words)]) == 2
    assert "different words; that is no category" in capsys.readouterr().err


def test_partitions_are_split_by_pieces():
    problem = rv.problems.grid_shortest_path(3, 3, directed="right-down")
    rng = np.random.default_rng(0)
    X = problem.solve(rng.random((500, 12))).x
    data = rv.datasets.Partitions.from_arrays(problem, np.arange(500.0)[:, None], X, partitions=10)
    learn, held = data.split(0.2)
    assert held is not None
    assert (len(learn), len(held)) == (400, 100)
    seen = [s.Z[:, 0] for half in (learn, held) for p in half.partitions for q in p for s in
            half.read(q)]  # fmt: skip
    np.testing.assert_array_equal(np.sort(np.concatenate(seen)), np.arange(500.0))
