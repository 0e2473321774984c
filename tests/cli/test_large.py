"""`revealed fit` and `predict` on folders of Parquet: the model of one table, part by part."""

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
    assert told["left_out"] == ["driver"]
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
        (["--ignore", "rain", "--ignore", "hour"], "No column of numbers is left"),
    ],
)
def test_what_does_not_go_with_parts_is_said_in_a_sentence(days, tmp_path, capsys, more, message):
    words = ["fit", "--problem", PROBLEM, "--contexts", days, "--decisions", days, "--id", "trip"]
    code = main([*map(str, words), "--out", str(tmp_path / "model"), *more])
    assert code == 2
    assert message in capsys.readouterr().err


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
