"""The explorer's list of next best decisions, against all vertices there are."""

from itertools import combinations

import numpy as np
import pytest

import revealed as rv
from revealed.cli.explorer import alternatives
from revealed.cli.explorer.alternatives import next_best


@pytest.fixture(autouse=True)
def enough_time(monkeypatch):
    """What is proved must not depend on how busy the machine is."""
    monkeypatch.setattr(alternatives, "SECONDS", 120.0)


def vertices(problem):
    """All vertices of a small problem with shared constraints, by solving every square system."""
    n = problem.n_variables
    eq, ub = problem.eq_rows.matrix(0).toarray(), problem.ub_rows.matrix(0).toarray()
    G = np.vstack([ub, np.eye(n), -np.eye(n)])
    h = np.r_[problem.b_ub, problem.ub, -problem.lb]
    G, h = G[np.isfinite(h)], h[np.isfinite(h)]
    rank = np.linalg.matrix_rank(eq) if len(eq) else 0
    found = set()
    for chosen in combinations(range(len(G)), n - rank):
        A, b = np.vstack([eq, G[list(chosen)]]), np.r_[problem.b_eq, h[list(chosen)]]
        x, _, size, _ = np.linalg.lstsq(A, b, rcond=None)
        fits = np.abs(A @ x - b).max(initial=0) < 1e-8 and (G @ x <= h + 1e-8).all()
        if size == n and fits:
            found.add(tuple(np.round(x, 7) + 0.0))
    return np.array(sorted(found))


def mixture(rng):
    """Rows of both kinds, all met at one point by more limits than it needs."""
    A = rng.uniform(0.1, 1.0, (3, 5))
    corner = np.array([1.0, 0.5, 0.0, 0.0, 0.0])
    return rv.LinearProgram(A_eq=A[:1], b_eq=A[0] @ corner, A_ub=A[1:], b_ub=A[1:] @ corner, ub=1.0)


PROBLEMS = {
    "a polytope": lambda rng: rv.LinearProgram(
        A_ub=rng.uniform(0.1, 1.0, (3, 4)),
        b_ub=rng.uniform(1.0, 2.0, 3),
        ub=[1.0, 2.0, np.inf, 3.0],
    ),
    "degenerate": mixture,
    "a knapsack": lambda rng: rv.problems.knapsack(rng.uniform(1.0, 3.0, (1, 6)), [5.0]),
    "equal costs": lambda rng: rv.LinearProgram(A_eq=np.ones((1, 5)), b_eq=1.0),
}


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("seed", range(4))
def test_the_list_is_the_next_best_of_all_vertices(name, seed):
    rng = np.random.default_rng(seed)
    problem = PROBLEMS[name](rng)
    cost = np.round(rng.normal(size=problem.n_variables), 0 if name == "equal costs" else 6)
    best = problem.solve(cost[None]).x[0]
    answer = next_best(problem, cost, best, 5, np.zeros((0, len(cost))))
    assert answer.proved
    corners = vertices(problem)
    others = corners[np.abs(corners - best).max(axis=1) > 1e-6]
    extra = np.sort(others @ cost - cost @ best)[:5]
    np.testing.assert_allclose([item.extra for item in answer.found], extra, atol=1e-6)
    X = np.array([item.decision for item in answer.found])
    assert all((np.abs(corners - x).max(axis=1) < 1e-6).any() for x in X)
    assert len(np.unique(X.round(6), axis=0)) == len(X)


def test_paths_are_ranked_as_by_all_simple_paths():
    import networkx as nx

    problem = rv.problems.grid_shortest_path(4, 4)
    graph, cost = problem.structure, np.random.default_rng(3).uniform(1, 2, problem.n_variables)
    tails, heads = (np.asarray(ends).tolist() for ends in (graph.tails, graph.heads))
    net = nx.DiGraph()
    for tail, head, length in zip(tails, heads, cost, strict=True):
        net.add_edge(tail, head, length=length)
    every = nx.all_simple_paths(net, int(graph.source), int(graph.target))
    lengths = sorted(nx.path_weight(net, path, "length") for path in every)
    best = problem.solve(cost[None]).x[0]
    answer = next_best(problem, cost, best, 5, np.zeros((0, len(cost))))
    assert answer.proved
    found = [lengths[0], *(lengths[0] + item.extra for item in answer.found)]
    np.testing.assert_allclose(found, lengths[:6])


@pytest.mark.parametrize("short_of", ["PROGRAMS", "SECONDS"])
def test_a_list_that_is_not_proved_says_so_and_has_the_decisions_seen(monkeypatch, short_of):
    rng = np.random.default_rng(0)
    problem = PROBLEMS["a polytope"](rng)
    cost, corners = rng.normal(size=4), vertices(problem)
    monkeypatch.setattr(alternatives, short_of, 1 if short_of == "PROGRAMS" else 1e-9)
    best = problem.solve(cost[None]).x[0]
    answer = next_best(problem, cost, best, 3, np.vstack([corners, [9.0] * 4]))
    assert not answer.proved
    extra = np.sort(corners @ cost - cost @ best)[1:4]
    np.testing.assert_allclose([item.extra for item in answer.found], extra, atol=1e-6)
