"""`revealed bench imports`: models from files and from CVXPY through the estimator, in small."""

import gzip
import json

import pytest

from revealed import cli
from revealed_experiments.bench.imports.command import NETLIB, has_trained

# A quick run stops after five evaluations, which is no time to converge.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

MIXTURE = """NAME MIXTURE
ROWS
 N PRICE
 E MASS
 G OIL
 L WATER
COLUMNS
 A PRICE 3 MASS 1
 A OIL 1 WATER 2
 B PRICE 2 MASS 1
 B OIL 3
 C PRICE 4 MASS 1
 C OIL 5 WATER 1
 D PRICE 2.5 MASS 1
 D WATER 0.5
RHS
 RHS MASS 10 OIL 18
 RHS WATER 9
RANGES
 RNG WATER 6
BOUNDS
 UP BND A 6
 UP BND B 5
 UP BND D 7
ENDATA
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / f"{NETLIB[0]}.mps.gz").write_bytes(gzip.compress(MIXTURE.encode()))
    return tmp_path


def run(folder, *words):
    pytest.importorskip("rich")
    out = folder / "imports.json"
    code = cli.main(["bench", "imports", "--netlib", str(folder), "--out", str(out), *words])
    return code, json.loads(out.read_text())


def test_a_file_is_learned_with_from_end_to_end(folder):
    code, content = run(folder, "--only", NETLIB[0], "--samples", "40")
    (row,) = content["rows"]
    assert code == 0
    assert has_trained(row)
    assert row["test"] < row["ignoring"]
    assert row["route"] == "read_mps"
    assert row["unsolved"] == 0
    assert all(target["holds"] for target in content["targets"])


@pytest.mark.parametrize("name", ["transport", "production", "portfolio"])
def test_cvxpy_problems_are_learned_with_from_end_to_end(folder, name):
    pytest.importorskip("cvxpy")
    code, content = run(folder, "--only", name, "--samples", "40")
    assert code == 0
    assert content["rows"][0]["route"] == "from_cvxpy"


def test_a_smoke_test_claims_nothing(folder):
    pytest.importorskip("cvxpy")
    code, content = run(folder, "--only", "diet", "--quick")
    assert code == 0
    assert content["targets"] == []


def test_a_name_that_matches_nothing_is_refused(folder, capsys):
    assert cli.main(["bench", "imports", "--only", "nothing"]) == 2
    assert "matches none of diet" in capsys.readouterr().err


def test_other_files_of_the_folder_can_be_chosen(folder, capsys):
    (folder / "mixture.mps.gz").write_bytes(gzip.compress(MIXTURE.encode()))
    _, content = run(folder, "--files", "mixture", "--quick")
    assert [row["model"] for row in content["rows"]] == ["mixture"]
    assert "--files mixture" in content["command"]
    assert cli.main(["bench", "imports", "--files", "mixture"]) != 0
    assert "--netlib DIR" in capsys.readouterr().err
