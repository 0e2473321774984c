"""Equalities far beyond their rank: fewer of them do the work, all of them are certified."""

import cvxpy as cp
import numpy as np
import pytest
from second_opinion import Explained

import revealed as rv
from helpers import assert_agrees, definition_residual, parts_of, predictions
from revealed.projection import plain
from revealed.projection.cpu import analysis, dependent
from revealed.projection.cpu.analysis import analyze
from revealed.projection.result import ProjectionStatus

KINDS = ("copies", "scaled", "sums", "mixed", "few columns", "wide")


def rows_of(kind, rng):
    """(m, n) of a rank far below m."""
    m, n, rank = {"few columns": (90, 12, 12), "wide": (60, 80, 20)}.get(kind, (120, 40, 25))
    base = rng.standard_normal((rank, n))
    copies = np.vstack([base, base[rng.integers(rank, size=m - rank)]])
    sums = np.vstack([base, rng.integers(-2, 3, (m - rank, rank)) @ base])
    size = 10.0 ** rng.uniform(-5, 5, (m, 1))
    if kind == "copies":
        return copies
    if kind == "scaled":
        return copies * size * rng.choice([-1.0, 1.0], (m, 1))
    if kind == "mixed":  # and rows of zeros among them
        halves = np.where(rng.random((m, 1)) < 0.5, copies, sums) * size
        return rng.permutation(halves) * (np.arange(m) % 10 > 0)[:, None]
    return rng.permutation(sums)


def redundant_sets(kind, B=3, margin=1.0, seed=0, inequalities=True):
    """Decisions with entries in every state, and inequalities of which some bind and some never."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    A = rows_of(kind, rng)
    n = A.shape[1]
    X = rng.choice([0.0, 1.0, 0.5], (B, n), p=[0.4, 0.2, 0.4])
    extra = {}
    if inequalities:
        A_ub = rng.standard_normal((4, n))
        spare = np.where(rng.random((B, 4)) < 0.5, 0.0, 1.0)
        spare[:, 2] = 1.0  # binds for nobody, so that it is left out too
        extra = {"A_ub": A_ub, "b_ub": X @ A_ub.T + spare}
    problem = rv.LinearProgram(A, X @ A.T, ub=1.0, **extra)
    return rv.OptimalitySet(problem, X, margin)


def by_cvxpy(sets, b, cost):
    p = parts_of(sets, b)
    lengths = np.linalg.norm(p.A_eq, axis=1)
    rows = p.A_eq / np.where(lengths > 0, lengths, 1.0)[:, None]  # multiples are free anyway
    w = cp.Variable(len(cost))
    asked = Explained(w, w - rows.T @ cp.Variable(len(rows)), p.margin)
    for row in p.A_ub[p.active]:
        asked.binding(row)
    return asked.bounds(sets.decisions[b], np.zeros(len(cost)), np.ones(len(cost))).nearest(cost)


@pytest.mark.parametrize("prediction", ["random", "almost"])
@pytest.mark.parametrize("kind", KINDS)
def test_answers_agree_with_cvxpy(kind, prediction):
    sets = redundant_sets(kind)
    costs = predictions(prediction, sets, np.random.default_rng(1))
    near = rv.project(costs, sets, method="kernel")
    basis = analyze(sets).whole.basis
    m = len(basis.kept)
    assert basis.kept.sum() == np.linalg.matrix_rank(sets.problem.A_eq.toarray())
    assert (near.status == ProjectionStatus.SOLVED).all()
    assert near.multipliers.shape == (len(sets), m + 4)
    assert not near.multipliers[:, :m][:, ~basis.kept].any()
    for b, cost in enumerate(costs):
        seen = definition_residual(sets, b, cost, near.point[b], near.multipliers[b])
        assert max(seen, near.residual[b]) <= 1e-8
        assert_agrees(near.point[b], by_cvxpy(sets, b, cost), cost, 1.0, f"{kind}, {b}")


@pytest.mark.parametrize("kind", KINDS)
def test_answers_are_those_of_the_rows_kept(kind):
    sets = redundant_sets(kind, B=9, inequalities=False)
    costs = predictions("random", sets, np.random.default_rng(2))
    kept = analyze(sets).whole.basis.kept
    problem = sets.problem
    fewer = rv.LinearProgram(problem.A_eq.toarray()[kept], problem.b_eq[:, kept], ub=1.0)
    other = rv.project(costs, rv.OptimalitySet(fewer, sets.decisions))
    near = rv.project(costs, sets)
    np.testing.assert_allclose(near.point, other.point, rtol=0, atol=1e-9)
    alone = [rv.project(costs[[b]], sets[[b]]).point[0] for b in range(9)]
    np.testing.assert_allclose(near.point, alone, rtol=0, atol=1e-9)
    assert analyze(sets[:2]) is analyze(sets)


def test_multipliers_of_all_rows_are_a_warm_start():
    sets = redundant_sets("mixed")
    costs = predictions("random", sets, np.random.default_rng(3))
    asked = rv.project(costs, sets, method="clarabel")
    basis = analyze(sets).whole.basis
    m = len(basis.kept)
    assert asked.multipliers[:, :m][:, ~basis.kept].any()  # shown as the solver gave them
    assert asked.residual.max() <= 1e-6

    folded = asked.multipliers.copy()
    basis.fold(folded)
    A = sets.problem.A_eq.toarray()
    np.testing.assert_allclose(folded[:, :m] @ A, asked.multipliers[:, :m] @ A, rtol=0, atol=1e-9)

    cold = rv.project(costs, sets, method="kernel")
    warm = rv.project(costs, sets, method="kernel", warm_start=asked)
    assert warm.solved.all()
    assert (warm.iterations <= cold.iterations).all()
    assert not warm.multipliers[:, :m][:, ~basis.kept].any()
    np.testing.assert_allclose(warm.point, cold.point, rtol=0, atol=1e-7)


def test_what_the_kernel_leaves_is_handed_on_and_polished(monkeypatch):
    sets = redundant_sets("sums")
    costs = predictions("random", sets, np.random.default_rng(4))
    expected = rv.project(costs, sets)
    monkeypatch.setattr(plain, "run_kernel", lambda *given, **options: False)
    near = rv.project(costs, sets)
    assert near.solved.all()
    np.testing.assert_allclose(near.point, expected.point, rtol=0, atol=1e-7)


def test_a_row_left_out_wrongly_is_not_called_solved(monkeypatch):
    sets = redundant_sets("sums")
    costs = predictions("random", sets, np.random.default_rng(5))

    def one_too_few(columns):
        basis = dependent.find_basis(columns)
        kept, shares = basis.kept.copy(), basis.shares
        kept[np.flatnonzero(kept)[-1]] = False
        padded = np.zeros((len(kept) - kept.sum(), kept.sum()))
        padded[: len(shares)] = shares[:, :-1]
        return basis._replace(kept=kept, shares=padded)

    monkeypatch.setattr(analysis, "find_basis", one_too_few)
    near = rv.project(costs, sets, method="kernel")
    assert not near.solved.any()
    assert near.residual.min() > 1e-4


def test_other_rows_are_left_as_they_are():
    rng = np.random.default_rng(6)
    tall = rv.problems.shortest_path([(i, i + 1) for i in range(99)], source=0, target=99)
    close = rng.standard_normal((30, 40))
    close = np.vstack([close, close + 1e-9 * rng.standard_normal((30, 40))])
    untouched = {
        "independent": rng.standard_normal((50, 60)),
        "one row too many": np.vstack([close[:30], close[:2].sum(axis=0)]),
        "independent, just": close,
        "few": np.ones((8, 5)),
        "more nodes than edges": tall.A_eq,
        "a grid": rv.problems.grid_shortest_path(6, 6).A_eq,
    }
    for name, A in untouched.items():
        x = rng.random((1, A.shape[1]))
        sets = rv.OptimalitySet(rv.LinearProgram(A, (A @ x[0]).ravel()), x)
        assert analyze(sets).whole is None, name
