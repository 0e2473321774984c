"""networkx graphs: the same optimal values as networkx's own algorithms, with the graph's names."""

from itertools import pairwise

import numpy as np
import pytest

import revealed as rv
from revealed.errors import InputError, ShapeError
from revealed.importers import RelaxationWarning

nx = pytest.importorskip("networkx")


def weighted(graph, seed=0, low=1.0):
    rng = np.random.default_rng(seed)
    for *_, data in graph.edges(data=True):
        data["weight"] = float(rng.uniform(low, 9.0))
    return graph


def roads():
    """A directed graph with cycles, whose nodes are named."""
    graph = nx.relabel_nodes(nx.gnp_random_graph(12, 0.3, seed=3, directed=True), lambda k: f"n{k}")
    return weighted(graph)


def test_paths_have_the_length_that_networkx_finds():
    graph = roads()
    model = rv.from_networkx(graph, source="n0", target="n7")
    assert model.variable_names == tuple(graph.edges)
    assert model.eq_names == tuple(graph.nodes)
    assert model.form is None
    answer = model.problem.solve(model.cost[None])
    expected = nx.shortest_path_length(graph, "n0", "n7", weight="weight")
    assert answer.objective[0] == pytest.approx(expected)
    route = nx.shortest_path(graph, "n0", "n7", weight="weight")
    used = {name for name, x in zip(model.variable_names, answer.x[0], strict=True) if x > 0.5}
    assert used == set(pairwise(route))


def test_each_instance_may_have_its_own_ends():
    graph = roads()
    model = rv.from_networkx(graph, source=["n0", "n3"], target=["n7", "n5"])
    answer = model.problem.solve(np.tile(model.cost, (2, 1)))
    for k, (tail, head) in enumerate((("n0", "n7"), ("n3", "n5"))):
        expected = nx.shortest_path_length(graph, tail, head, weight="weight")
        assert answer.objective[k] == pytest.approx(expected)


@pytest.mark.parametrize("kind", [nx.Graph, nx.MultiGraph])
def test_an_undirected_edge_has_one_cost_for_both_ways(kind):
    graph = weighted(kind(nx.gnp_random_graph(10, 0.4, seed=1)))
    if graph.is_multigraph():
        graph.add_edge(0, 9, weight=3.0)
        graph.add_edge(0, 9, weight=1.0)
    model = rv.from_networkx(graph, source=9, target=0)
    edges = tuple(graph.edges(keys=True) if graph.is_multigraph() else graph.edges)
    assert model.parameter_names == edges
    weights = np.array([[data["weight"] for *_, data in graph.edges(data=True)]])
    np.testing.assert_array_equal(model.form.costs(weights)[0], model.cost)
    answer = model.problem.solve(model.form.costs(weights))
    expected = nx.shortest_path_length(graph, 9, 0, weight="weight")
    assert answer.objective[0] == pytest.approx(expected)


def test_flows_cost_what_networkx_finds():
    graph = weighted(nx.gnp_random_graph(10, 0.5, seed=5, directed=True))
    rng = np.random.default_rng(0)
    for *_, data in graph.edges(data=True):
        data["weight"], data["capacity"] = int(data["weight"]), int(rng.integers(2, 6))
    graph.nodes[0]["demand"], graph.nodes[9]["demand"], graph.nodes[4]["demand"] = -5, 3, 2
    model = rv.from_networkx(graph, kind="flow")
    answer = model.problem.solve(model.cost[None])
    assert answer.objective[0] == pytest.approx(nx.min_cost_flow_cost(graph))


@pytest.mark.parametrize("sides", [(5, 5), (4, 6), (6, 4)])
def test_matchings_cost_what_networkx_finds(sides):
    graph = weighted(nx.complete_bipartite_graph(*sides))
    model = rv.from_networkx(graph, kind="matching")
    answer = model.problem.solve(model.cost[None])
    smaller = [
        node for node, side in graph.nodes(data="bipartite") if side == (sides[0] > sides[1])
    ]
    best = nx.bipartite.minimum_weight_full_matching(graph, smaller)
    expected = sum(graph.edges[node, best[node]]["weight"] for node in smaller)
    assert answer.objective[0] == pytest.approx(expected)
    assert set(model.eq_names) | set(model.ub_names) == set(graph.nodes)


def test_sides_are_found_where_they_are_not_told():
    graph = weighted(nx.grid_2d_graph(3, 4))
    model = rv.from_networkx(graph, kind="matching")
    x = model.problem.solve(model.cost[None]).x[0]
    pairs = [edge for edge, chosen in zip(model.variable_names, x, strict=True) if chosen > 0.5]
    assert sorted(node for pair in pairs for node in pair) == sorted(graph.nodes)


def test_a_matching_that_is_not_bipartite_is_a_relaxation():
    with pytest.warns(RelaxationWarning, match="not bipartite"):
        model = rv.from_networkx(weighted(nx.complete_graph(6)), kind="matching")
    assert model.integer.all()
    answer = model.problem.solve(model.cost[None])
    best = nx.min_weight_matching(weighted(nx.complete_graph(6)))
    whole = sum(weighted(nx.complete_graph(6)).edges[pair]["weight"] for pair in best)
    assert answer.objective[0] <= whole + 1e-9


def test_paths_are_learned_with_one_cost_for_both_ways():
    graph = weighted(nx.grid_2d_graph(3, 3))
    model = rv.from_networkx(graph, source=(0, 0), target=(2, 2))
    rng = np.random.default_rng(0)
    weights = np.array([data["weight"] for *_, data in graph.edges(data=True)])
    Z = rng.uniform(-1, 1, (40, 2))
    W = weights * (1 + 0.4 * Z @ rng.uniform(-1, 1, (2, len(weights))))
    X = model.problem.solve(model.form.costs(W)).x
    est = rv.InverseRegressor(model.problem, cost_map=model.form, threads=1).fit(Z, X)
    assert est.predict_parameters(Z).shape == W.shape
    assert est.score(Z, X) > -0.2
    assert est.history_["h"][-1] < 0.01 * est.history_["h"][0]


@pytest.mark.parametrize(
    "graph, arguments, words",
    [
        ([(0, 1)], {"source": 0, "target": 1}, "networkx graph; got list"),
        (roads(), {"source": "n0", "target": "elsewhere"}, "`target` must be a node"),
        (roads(), {"source": "n0"}, "give both"),
        (roads(), {"kind": "flow", "source": "n0", "target": "n1"}, "neither"),
        (roads(), {"kind": "tour"}, "path, flow, matching"),
        (nx.Graph(), {"kind": "matching"}, "at least one edge"),
        (nx.path_graph(3), {"kind": "flow"}, "directed"),
        (roads(), {"kind": "matching"}, "undirected"),
        (nx.complete_graph(5), {"kind": "matching"}, "even in number; got 5"),
        (nx.DiGraph([(0, 1, {"weight": 1}), (1, 2)]), {"source": 0, "target": 2}, "all or to none"),
        (
            nx.DiGraph([(0, 1, {"capacity": -1})]),
            {"kind": "flow"},
            r"\(0, 1\) must be .* at least 0",
        ),
        (nx.DiGraph([(0, 1, {"capacity": None})]), {"kind": "flow"}, "left out for no limit"),
        (nx.DiGraph([(0, 1, {"weight": "x"})]), {"source": 0, "target": 1}, "'weight' of edge"),
    ],
    ids=str,
)
def test_wrong_graphs_meet_a_sentence(graph, arguments, words):
    with pytest.raises(InputError, match=words):
        rv.from_networkx(graph, **arguments)


def test_a_flow_must_balance():
    graph = nx.DiGraph([(0, 1)])
    graph.nodes[1]["demand"] = 2
    with pytest.raises(InputError, match="must sum to 0; got 2"):
        rv.from_networkx(graph, kind="flow")


def test_sides_that_are_told_wrongly_are_refused():
    graph = nx.path_graph(4)
    nx.set_node_attributes(graph, 0, "bipartite")
    with pytest.raises(InputError, match=r"both ends of \(0, 1\) on one side"):
        rv.from_networkx(graph, kind="matching")


def test_a_graph_without_edges_is_a_shape_error():
    with pytest.raises(ShapeError):
        rv.from_networkx(nx.DiGraph(), source=0, target=1)


@pytest.mark.parametrize("middle", [0, 1], ids=["met first", "met second"])
def test_each_connected_part_has_a_smaller_side(middle):
    graph = nx.Graph([(0, 1), (1, 2)])
    second = [("b", "a"), ("b", "c")] if middle == 0 else [("a", "b"), ("b", "c")]
    graph.add_edges_from(second)
    model = rv.from_networkx(graph, kind="matching")
    assert model.eq_names == (1, "b")
    assert model.problem.solve(np.ones((1, 4))).objective[0] == 2
