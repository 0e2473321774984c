"""NETLIB: problems with bad scaling, redundant rows and degenerate vertices, as far as they fit a
test suite; `revealed bench netlib` runs them all. Needs a folder of .mps.gz files (see FOLDER)."""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import revealed as rv
from helpers import definition_residual, explained_move, parts_of
from revealed import EntryState
from revealed.errors import InfeasibleDecisionError, InputError

BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data" / "netlib"
FOLDER = Path(os.environ.get("REVEALED_NETLIB", BESIDE))
LARGEST = 30_000
"""Bytes of a file; what is larger is left to the benchmark."""
GOAL = 1e-6
TOL = 1e-8
FILES = sorted(path for path in FOLDER.glob("*.mps.gz") if path.stat().st_size < LARGEST)
needs_files = pytest.mark.skipif(
    not FILES, reason="No NETLIB files; name a folder of .mps.gz in REVEALED_NETLIB to run these."
)


def read(path):
    model = rv.read_mps(path)
    return model.problem, model.cost


def perturbed(cost, rng):
    """The cost with every entry moved by up to 10%, and an entry of 0 by 1% of the usual size."""
    usual = np.sqrt(np.mean(cost**2)) or 1.0
    step = np.where(cost != 0, 0.1 * np.abs(cost), 0.01 * usual)
    return cost + step * rng.uniform(-1, 1, len(cost))


def sets_of(problem, cost):
    """The set of the optimal decision, read as exactly as that decision allows."""
    answer = problem.solve(cost[None])
    assert answer.optimal.all()
    try:
        return rv.OptimalitySet(problem, answer.x, margin=0.0, tol=1e-9)
    except InfeasibleDecisionError:
        return rv.OptimalitySet(problem, answer.x, margin=0.0, tol=1e-6)


def clarabel_multipliers(p, cost):
    """(v, mu) from min 1/2 |r|^2 + <cost, r> over the moves r that no row or bound resists."""
    import clarabel

    unit = np.sqrt(np.mean(cost**2))
    identity = sparse.eye_array(len(cost), format="csr")
    ub = sparse.csr_array(p.A_ub[p.active])
    rows = [p.A_eq, identity[p.fixed], ub, -identity[p.lower], identity[p.upper]]
    A = sparse.csc_matrix(sparse.vstack([sparse.csr_array(part) for part in rows]))
    equal = len(p.A_eq) + int(p.fixed.sum())
    cones = [clarabel.ZeroConeT(equal), clarabel.NonnegativeConeT(A.shape[0] - equal)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    P = sparse.eye(len(cost), format="csc")
    zero = np.zeros(A.shape[0])
    z = clarabel.DefaultSolver(P, cost / unit, A, zero, cones, settings).solve().z
    mu = np.zeros(len(p.A_ub))
    mu[p.active] = np.maximum(np.asarray(z)[equal : equal + len(mu[p.active])], 0.0)
    return -unit * np.asarray(z)[: len(p.A_eq)], unit * mu


def objective(p, cost, v, mu):
    """Half the squared distance to the nearest cost that (v, mu) explain: a true upper bound."""
    move = explained_move(p, cost, v, mu)
    return 0.5 * float(move @ move)


@needs_files
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.split(".")[0])
def test_projections_reach_their_goal_and_claim_no_more(path):
    problem, cost = read(path)
    sets = sets_of(problem, cost)
    q = perturbed(cost, np.random.default_rng(0))
    p = parts_of(sets, 0)
    best = objective(p, q, *clarabel_multipliers(p, q))
    # Of a cost that is explained already the objective is rounding: no share is taken of that.
    allowed = GOAL * max(best, 0.5 * (1e-3 * np.linalg.norm(q)) ** 2)
    for method in ("auto", "kernel"):
        got = rv.project(q[None], sets, method=method, tol=TOL)
        v, mu = np.split(got.multipliers[0], [len(p.A_eq)])
        own = definition_residual(sets, 0, q, got.point[0], got.multipliers[0])
        assert own <= GOAL
        # Both residuals are sums of the same terms in another order: a tenth for the rounding.
        assert own <= 1.1 * TOL or not got.solved[0]
        assert objective(p, q, v, mu) <= best + allowed
        assert 0.5 * got.distance[0] ** 2 <= best + allowed


SMALL = """NAME          SMALL
* A diet of four foods, in the fixed columns of the NETLIB files.
ROWS
 N  COST
 G  ENERGY
 L  FAT
 E  MASS
 G  IRON
COLUMNS
    BREAD     COST               2.0   ENERGY             3.0
    BREAD     FAT                0.5   MASS               1.0
    CHEESE    COST               5.0   ENERGY             4.0
    CHEESE    FAT                3.0   MASS               1.0
    BEANS     COST               3.0   ENERGY             2.0
    BEANS     IRON               2.0   MASS               1.0
    WATER     COST               0.5   MASS               1.0
RHS
    RHS       ENERGY             8.0   FAT                6.0
    RHS       MASS               4.0   IRON               1.0
RANGES
    RNG       IRON               3.0
BOUNDS
 UP BND       BREAD              2.5
 MI BND       WATER
 UP BND       WATER              1.0
 FX BND       CHEESE            0.25
ENDATA
"""


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "small.mps.gz"
    path.write_bytes(gzip.compress(SMALL.encode()))
    return path


def test_a_file_becomes_a_problem_in_general_form(small):
    problem, cost = read(small)
    np.testing.assert_array_equal(cost, [2.0, 5.0, 3.0, 0.5])
    np.testing.assert_array_equal(problem.A_eq.toarray(), [[1.0, 1, 1, 1]])
    np.testing.assert_array_equal(problem.b_eq, [4.0])
    np.testing.assert_array_equal(problem.lb, [0.0, 0.25, 0.0, -np.inf])
    np.testing.assert_array_equal(problem.ub, [2.5, 0.25, np.inf, 1.0])
    rows = {(*row, b) for row, b in zip(problem.A_ub.toarray(), problem.b_ub, strict=True)}
    expected = {  # 1 <= iron <= 4 is a range, so two rows
        (-3.0, -4.0, -2.0, 0.0, -8.0),
        (0.5, 3.0, 0.0, 0.0, 6.0),
        (0.0, 0.0, -2.0, 0.0, -1.0),
        (0.0, 0.0, 2.0, 0.0, 4.0),
    }
    assert rows == expected


def test_and_the_problem_is_solved_and_projected_on(small):
    problem, cost = read(small)
    answer = problem.solve(cost[None])
    # All the water there may be, beans only for the iron, bread for the rest.
    np.testing.assert_allclose(answer.x, [[2.25, 0.25, 0.5, 1.0]], atol=1e-9)
    sets = rv.OptimalitySet(problem, answer.x, margin=0.1)
    states = [EntryState.FREE, EntryState.FIXED, EntryState.FREE, EntryState.AT_UPPER]
    assert sets.entry_state.tolist() == [states]
    assert sets.max_margin(cost[None]) == pytest.approx([0.5])
    p = rv.project([[3.0, 5.0, 2.0, 3.0]], sets)
    assert p.solved.all()
    assert sets.contains(p.point).all()


def test_what_is_not_a_file_meets_a_sentence(tmp_path):
    with pytest.raises(InputError, match="there is none"):
        rv.read_mps(tmp_path / "absent.mps.gz")
