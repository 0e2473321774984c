"""The benchmarks run end to end, the rivals solve the problem they are given, and the second
opinion notices a wrong point. Nothing here asserts a time."""

import argparse
import gzip
import json

import numpy as np
import pytest
from scipy import sparse

from revealed_experiments.bench.projection import command as projection
from revealed_experiments.bench.projection import netlib
from revealed_experiments.bench.projection.cases import Case, cases_of, grid, knapsack
from revealed_experiments.bench.projection.certificate import explained_point, objective, residual
from revealed_experiments.bench.projection.paper_route import PAPER
from revealed_experiments.bench.projection.rivals import DIRECT
from revealed_experiments.bench.projection.timing import accuracy, best_known

SOLVERS = {**DIRECT, **PAPER}

SMALL_MPS = """NAME SMALL
ROWS
 N COST
 L AT_MOST
 G AT_LEAST
 E EQUAL
 L RANGE
COLUMNS
 X COST 1. AT_MOST 1.
 X AT_LEAST 1. RANGE 1.
 Y COST 2. AT_MOST 1.
 Y EQUAL 1.
 Z COST -1. AT_MOST 1.
 Z EQUAL 1. RANGE -1.
RHS
 RHS AT_MOST 4. AT_LEAST 1.
 RHS EQUAL 2. RANGE 3.
RANGES
 RNG RANGE 2.5
BOUNDS
 UP BND X 4.
 FR BND Z
ENDATA
"""


@pytest.fixture(scope="module")
def mps_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mps")
    (folder / "small.mps.gz").write_bytes(gzip.compress(SMALL_MPS.encode()))
    return folder


@pytest.fixture(scope="module")
def general_case():
    """Random sets with every entry state, active and inactive rows, and dependent equalities."""
    rng = np.random.default_rng(3)
    A_eq = rng.standard_normal((3, 12))
    return Case(
        name="general",
        regime="cold",
        costs=rng.standard_normal((8, 12)),
        A_eq=sparse.csr_array(np.vstack([A_eq, A_eq[0] - A_eq[1]])),
        A_ub=sparse.csr_array(rng.standard_normal((4, 12))),
        entry_state=rng.integers(0, 4, (8, 12)).astype(np.int8),
        row_active=rng.random((8, 4)) < 0.5,
        margin=0.3,
    )


@pytest.fixture(scope="module")
def tight(general_case):
    """PIQP's solution of the general case: points and multipliers."""
    pytest.importorskip("piqp")
    from revealed_experiments.bench.projection.interior_point import PiqpDirect

    rival = PiqpDirect(1e-13)
    rival.prepare(general_case)
    return [(rival.solve(i), *rival.multipliers()) for i in range(len(general_case))]


def needs(name):
    for package in SOLVERS[name][0]:
        pytest.importorskip(package)


@pytest.mark.parametrize("name", SOLVERS)
def test_rivals_agree_on_every_kind_of_entry_and_row(name, general_case, tight):
    needs(name)
    best = np.array([point for point, _, _ in tight])
    errors = []
    for rival in SOLVERS[name][1](general_case):
        rival.prepare(general_case)
        points = np.array([rival.solve(i) for i in range(len(general_case))])
        errors.append(accuracy(points, best, general_case.costs).max())
    # ECOS minimizes a norm, so its default tolerance of 1e-8 gives the square root of that.
    assert min(errors) < (1e-3 if name == "CVXPY + ECOS as published" else 1e-5)


@pytest.mark.parametrize("name", DIRECT)
@pytest.mark.parametrize("family", [knapsack, lambda: grid(5)], ids=["knapsack", "grid"])
def test_rivals_agree_with_ours_cold_almost_and_warm(name, family):
    needs(name)
    for case in cases_of(family(), batch=4):
        best = best_known(case)
        errors = []
        for rival in DIRECT[name][1](case):
            rival.prepare(case)
            points = np.array([rival.solve(i) for i in range(len(case))])
            errors.append(accuracy(points, best, case.costs).max())
        assert min(errors) < (1e-3 if name == "Clarabel" and case.regime == "almost" else 1e-5)


def test_second_opinion_accepts_a_projection(general_case, tight):
    for i, (point, v, mu) in enumerate(tight):
        assert residual(general_case, i, point, v, mu) < 1e-6
        np.testing.assert_allclose(explained_point(general_case, i, v, mu), point, atol=1e-6)


def test_second_opinion_notices_a_corrupted_point(general_case, tight):
    for i, (point, v, mu) in enumerate(tight):
        wrong = point.copy()
        wrong[i] += 1e-3
        assert residual(general_case, i, wrong, v, mu) > 1e-5
        assert residual(general_case, i, np.full_like(point, np.nan), v, mu) == np.inf
        assert residual(general_case, i, point, v, mu - 1.0 * ~general_case.row_active[i]) > 1e-2


def test_second_opinion_notices_a_point_that_is_inside_but_not_nearest(general_case, tight):
    for i, (_, v, mu) in enumerate(tight):
        elsewhere = explained_point(general_case, i, v + 0.01, mu + 0.01)
        assert residual(general_case, i, elsewhere, v + 0.01, mu + 0.01) > 1e-5
        assert objective(general_case, i, v + 0.01, mu + 0.01) > objective(general_case, i, v, mu)


def run_command(module, *words):
    parser = argparse.ArgumentParser()
    module.add_arguments(parser)
    return module.run(parser.parse_args([str(word) for word in words]))


def test_quick_projection_benchmark_writes_what_it_measured(tmp_path, capsys):
    pytest.importorskip("rich")
    out = tmp_path / "deep" / "projection.json"
    assert run_command(projection, "--quick", "--out", out) == 0
    content = json.loads(out.read_text("utf-8"))
    assert {"command", "settings", "hardware", "versions", "rows", "targets"} <= set(content)
    assert str(tmp_path) not in json.dumps(content)
    assert {(row["case"], row["regime"]) for row in content["rows"]} == {
        (case, regime)
        for case in ("knapsack 10", "grid 5x5")
        for regime in ("cold", "almost", "near", "warm")
    }
    for row in content["rows"]:
        for entry in [*row["ours"].values(), *row["rivals"].values()]:
            assert 0 < entry["best_us"] <= entry["median_us"]
            assert {"accuracy", "n_failed", "n_timed", "setup_ms", "settings"} <= set(entry)
        assert row["ours"]["1"]["accuracy"] < 1e-6
    assert "microseconds" in capsys.readouterr().out


def test_netlib_benchmark_counts_and_writes(mps_folder, tmp_path, capsys):
    for package in ("rich", "highspy", "piqp", "clarabel"):
        pytest.importorskip(package)
    out = tmp_path / "netlib.json"
    assert run_command(netlib, "--data", mps_folder, "--out", out) == 0
    content = json.loads(out.read_text("utf-8"))
    assert content["counts"]["problems"] == content["counts"]["auto right"] == 1
    assert content["counts"]["false claims"] == 0
    (row,) = content["rows"]
    assert row["ours"]["kernel"]["residual"] <= 1e-8
    assert "false claims: 0" in capsys.readouterr().out


def test_netlib_benchmark_needs_problems(tmp_path):
    with pytest.raises(ValueError, match="none was found"):
        run_command(netlib, "--data", tmp_path)
