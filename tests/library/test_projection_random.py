"""500 random linear programs in general form, built so that degeneracy is real: integer data,
redundant and degenerate rows, fixed, free and one-sided entries, ties."""

from functools import cache

import numpy as np
import pytest

import revealed as rv
from helpers import (
    MARGINS,
    PREDICTIONS,
    assert_agrees,
    definition_residual,
    every_trusted_point,
    predictions,
    rounding,
)
from revealed import EntryState

COUNT = 500
CHUNK = 25
INF = np.inf


def random_program(rng):
    """A feasible LP with small integer data around a point x, and a cost; perhaps unbounded."""
    n = int(rng.integers(3, 15))
    x = rng.integers(-3, 4, n).astype(float)
    kind = rng.choice(5, n, p=[0.45, 0.2, 0.1, 0.1, 0.15])
    below, above = (np.where(rng.random(n) < 0.5, 0.0, rng.integers(1, 4, n)) for _ in range(2))
    above = np.where((kind == 1) & (below + above == 0), 2.0, above)
    # 0: lower bound only, 1: both, 2: fixed, 3: none, 4: upper bound only
    lb = np.select([kind == 3, kind == 4, kind == 2], [-INF, -INF, x], x - below)
    ub = np.select([kind == 3, kind == 0, kind == 2], [INF, INF, x], x + above)
    A_eq, A_ub = (
        random_rows(rng, n, int(rng.integers(0, 5))),
        random_rows(rng, n, int(rng.integers(0, 6))),
    )
    b_ub = A_ub @ x + rng.choice([0, 0, 1, 3], len(A_ub))
    b_ub[rng.random(len(b_ub)) < 0.05] = INF
    cost = rng.integers(-2, 4, n).astype(float)
    if rng.random() < 0.7:  # a cost that the point itself minimizes, so that free entries can be
        s = rng.integers(0, 3, n) * np.where(x == lb, 1.0, np.where(x == ub, -1.0, 0.0))
        mu = rng.integers(0, 3, len(A_ub)) * (A_ub @ x == b_ub)
        cost = A_eq.T @ rng.integers(-2, 3, len(A_eq)) - A_ub.T @ mu + s
    problem = rv.LinearProgram(A_eq=A_eq, b_eq=A_eq @ x, A_ub=A_ub, b_ub=b_ub, lb=lb, ub=ub)
    return problem, cost


def random_rows(rng, n, m):
    """(m, n) sparse integers; now and then a row of zeros, a copy, a multiple or a sum of rows."""
    A = rng.integers(-2, 3, (m, n)) * (rng.random((m, n)) < 0.5)
    for i in range(1, m):
        match rng.integers(0, 12):
            case 0:
                A[i] = 0
            case 1:
                A[i] = A[i - 1]
            case 2:
                A[i] = -3 * A[i - 1]
            case 3:
                A[i] = A[:i].sum(axis=0)
    return A.astype(float)


@cache
def instance(seed):
    """Sets of one random LP's decision, one for each kind of prediction, and those predictions."""
    rng = np.random.default_rng(seed)
    while True:
        problem, cost = random_program(rng)
        solution = problem.solve(cost[None])
        if solution.optimal[0]:
            break
    margin = MARGINS[seed % len(MARGINS)]
    decisions = np.repeat(solution.x, len(PREDICTIONS), axis=0)
    sets = rv.OptimalitySet(problem, decisions, margin)
    costs = np.vstack([predictions(kind, sets[:1], rng) for kind in PREDICTIONS])
    return sets, costs


def own_states(problem, x):
    """Entry states read by ourselves: the data are small integers, so there is no doubt."""
    below, above = np.abs(x - problem.lb) < 1e-7, np.abs(problem.ub - x) < 1e-7
    at_bound = np.where(below, EntryState.AT_LOWER, EntryState.AT_UPPER)
    states = np.where(below | above, at_bound, EntryState.FREE)
    return np.where(problem.lb == problem.ub, EntryState.FIXED, states)


in_chunks = pytest.mark.parametrize("first", range(0, COUNT, CHUNK))


@in_chunks
def test_kernel_reference_and_direct_solvers_agree(first):
    for seed in range(first, first + CHUNK):
        sets, costs = instance(seed)
        p = rv.project(costs, sets, method="kernel")
        assert p.solved.all(), f"seed {seed}: residuals {p.residual}"
        for b, kind in enumerate(PREDICTIONS):
            for name, point in every_trusted_point(sets, b, costs[b]).items():
                what = f"seed {seed}, {kind}, {name}"
                assert_agrees(p.point[b], point, costs[b], sets.margins[b], what)


@in_chunks
def test_the_decision_is_read_right_and_optimal_under_the_projected_cost(first):
    for seed in range(first, first + CHUNK):
        sets, costs = instance(seed)
        states = own_states(sets.problem, sets.decisions)
        np.testing.assert_array_equal(sets.entry_state, states, err_msg=f"seed {seed}")
        point = rv.project(costs, sets).point
        answer = sets.problem.solve(point)
        assert answer.optimal.all(), f"seed {seed}: {answer.status}"
        own = (point * sets.decisions).sum(axis=1)
        size = np.abs(point).max(axis=1) * (1 + np.abs(sets.decisions).sum(axis=1))
        assert (own - answer.objective <= 1e-7 * size).all(), f"seed {seed}"


def test_every_instance_is_solved_and_no_claim_is_false(record_property):
    handed_on = 0
    for seed in range(COUNT):
        sets, costs = instance(seed)
        kernel, p = (rv.project(costs, sets, method=method) for method in ("kernel", "auto"))
        handed_on += int((~kernel.solved).sum())
        assert p.solved.all(), f"seed {seed}: residuals {p.residual}"
        for b in range(len(sets)):
            own = definition_residual(sets, b, costs[b], p.point[b], p.multipliers[b])
            noise = rounding(sets, b, costs[b], p.multipliers[b])
            assert own <= 1e-8 + noise, f"seed {seed}, instance {b}"
    record_property("handed on to the fallback", f"{handed_on} of {COUNT * len(PREDICTIONS)}")
    assert handed_on <= COUNT // 100  # the kernel is general, not lucky


def test_the_draws_hold_what_they_promise():
    states, active, dependent, degenerate = np.zeros(4, int), np.zeros(2, int), 0, 0
    for seed in range(COUNT):
        sets, _ = instance(seed)
        states += np.bincount(own_states(sets.problem, sets.decisions)[0], minlength=4)
        active += np.bincount(sets.row_active[0].astype(int), minlength=2)
        A = np.vstack(
            [sets.problem.A_eq.toarray(), sets.problem.A_ub.toarray()[sets.row_active[0]]]
        )
        dependent += np.linalg.matrix_rank(A) < len(A) if len(A) else 0
        # Degenerate: more tight constraints than entries.
        tight = (sets.entry_state[0] != EntryState.FREE).sum() + len(A)
        degenerate += tight > A.shape[1]
    assert (states >= 200).all()
    assert (active >= 200).all()
    assert dependent >= 50
    assert degenerate >= 100
