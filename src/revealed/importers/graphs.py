"""networkx graphs as models: cheapest paths, flows and matchings, with the graph's own names.

Letters: E edges, V nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from .._common.rows import frozen
from ..errors import InputError, ShapeError
from ..optimality.cost_form import CostForm
from ..problems import shortest_path
from ..problems.linear import LinearProgram
from ..problems.structures import MatchingStructure
from .imported import ImportedModel, Names
from .raw import warn_relaxed

Edges = tuple[tuple[Any, ...], ...]
KINDS = ("path", "flow", "matching")


def from_networkx(
    graph: Any,
    *,
    kind: str = "path",
    source: Any = None,
    target: Any = None,
    weight: str = "weight",
    demand: str = "demand",
    capacity: str = "capacity",
) -> ImportedModel:
    """A problem on the edges of a networkx graph; variables are named by edges, rows by nodes.

    "path"      cheapest path from `source` to `target`: nodes, or lists of them, one for each
                instance. An undirected edge can be used both ways, at one cost: `model.form` ties
                the two, and `model.parameter_names` are the edges as the graph has them.
    "flow"      cheapest flow in a directed graph: nodes have the attribute `demand` (negative where
                flow comes from, 0 where it is missing), edges perhaps `capacity`.
    "matching"  cheapest matching of all nodes in pairs. In a bipartite graph with sides of unequal
                size every node of the smaller one is matched (of each connected part, unless nodes
                have the attribute `bipartite`). In one that is not bipartite this is
                a relaxation, with a warning.

    Parameters
    ----------
    graph : networkx graph
        Undirected without parallel edges for "matching", directed for "flow".
    kind : "path", "flow" or "matching"
        As above.
    source, target : node or list of nodes
        The ends of a path; for "path" only, both.
    weight : str
        Attribute of edges. Where every edge has it, that is the model's own cost.
    demand : str
        Attribute of nodes, for "flow": positive where flow ends. All of them must sum to 0.
    capacity : str
        Attribute of edges, for "flow": the most that flows through; no limit where it is missing.

    Returns
    -------
    ImportedModel
    """
    if not hasattr(graph, "is_directed"):
        raise InputError(f"`graph` must be a networkx graph; got {type(graph).__name__}.")
    if kind not in KINDS:
        raise InputError(f"`kind` must be one of {', '.join(KINDS)}; got {kind!r}.")
    if (kind == "path") != (source is not None and target is not None):
        raise InputError(
            '`source` and `target` are the ends of a path: give both with kind="path", and neither '
            f"with another; got kind={kind!r}, source={source!r}, target={target!r}."
        )
    if graph.number_of_edges() == 0:
        raise ShapeError("`graph` must have at least one edge; it has none.")
    if kind == "path":
        return _path(graph, source, target, weight)
    if kind == "flow":
        return _flow(graph, weight, demand, capacity)
    return _matching(graph, weight)


def _path(graph: Any, source: Any, target: Any, weight: str) -> ImportedModel:
    edges = _edge_names(graph)
    if graph.is_directed():
        problem = shortest_path(graph, source=source, target=target)
        return _model(graph, problem, edges, _weights(graph, weight), eq_names=tuple(graph.nodes))
    both = graph.to_directed()
    problem = shortest_path(both, source=source, target=target)
    arcs = _edge_names(both)
    place = {edge: k for k, edge in enumerate(edges)}
    place |= {(head, tail, *key): k for k, (tail, head, *key) in enumerate(edges)}
    tie = (np.ones(len(arcs)), (np.arange(len(arcs)), [place[arc] for arc in arcs]))
    return _model(
        graph,
        problem,
        arcs,
        _weights(both, weight),
        eq_names=tuple(graph.nodes),
        form=CostForm(sparse.csr_array(tie, shape=(len(arcs), len(edges)))),
        parameter_names=edges,
    )


def _flow(graph: Any, weight: str, demand: str, capacity: str) -> ImportedModel:
    if not graph.is_directed():
        raise InputError("A flow needs a directed graph; use `graph.to_directed()` for both ways.")
    wanted = _numbers(
        graph.nodes(data=demand, default=0.0),
        f"The attribute {demand!r} of node",
        np.isfinite,
        "a finite number, or left out for 0",
    )
    if abs(wanted.sum()) > 1e-9 * np.abs(wanted).sum():
        raise InputError(
            f"What flows in must flow out: the nodes' {demand!r} must sum to 0; got "
            f"{wanted.sum():g}. Demands are positive, supplies negative."
        )
    limits = _numbers(
        graph.edges(data=capacity, default=np.inf),
        f"The attribute {capacity!r} of edge",
        lambda value: value >= 0,
        "a number of at least 0, or left out for no limit",
    )
    tails, heads = _ends(graph)
    problem = LinearProgram(
        A_eq=_incidence([(heads, 1.0), (tails, -1.0)], len(graph)), b_eq=wanted, lb=0.0, ub=limits
    )
    names = tuple(graph.nodes)
    return _model(graph, problem, _edge_names(graph), _weights(graph, weight), eq_names=names)


def _matching(graph: Any, weight: str) -> ImportedModel:
    tails, heads = _ends(graph)
    if graph.is_directed() or graph.is_multigraph() or (tails == heads).any():
        raise InputError(
            "A matching needs an undirected graph without parallel edges and without edges from a "
            "node to itself; use `networkx.Graph(graph)` and remove the latter."
        )
    nodes, edges, cost = list(graph.nodes), _edge_names(graph), _weights(graph, weight)
    side = _sides(graph)
    if side is None:
        if len(nodes) % 2:
            raise InputError(f"Nodes can be paired only if even in number; got {len(nodes)}.")
        warn_relaxed("this graph, which is not bipartite,", np.ones(len(edges), bool), stacklevel=4)
        incidence = _incidence([(tails, 1.0), (heads, 1.0)], len(nodes))
        problem = LinearProgram(A_eq=incidence, b_eq=1.0)
        integer = np.ones(len(edges), dtype=bool)
        return _model(graph, problem, edges, cost, eq_names=tuple(nodes), integer=integer)
    left, right = (np.flatnonzero(side == k) for k in np.argsort(np.bincount(side, minlength=2)))
    problem = _bipartite(left, right, tails, heads)
    covered = [nodes[i] for i in left], [nodes[i] for i in right]
    equal = len(left) == len(right)
    eq_names = tuple(covered[0] + covered[1]) if equal else tuple(covered[0])
    ub_names = () if equal else tuple(covered[1])
    return _model(graph, problem, edges, cost, eq_names=eq_names, ub_names=ub_names)


def _bipartite(
    left: np.ndarray, right: np.ndarray, tails: np.ndarray, heads: np.ndarray
) -> LinearProgram:
    """Every node of `left` in one pair, every node of `right` in one, or at most one if more."""
    position = np.empty(len(left) + len(right), dtype=np.int64)
    position[left], position[right] = np.arange(len(left)), np.arange(len(right))
    is_left = np.isin(tails, left)
    ends = position[np.where(is_left, tails, heads)], position[np.where(is_left, heads, tails)]
    rows = [_incidence([(end, 1.0)], len(s)) for end, s in zip(ends, (left, right), strict=True)]
    structure = MatchingStructure(frozen(ends[0]), frozen(ends[1]), len(left), len(right))
    if len(left) == len(right):
        return LinearProgram(A_eq=sparse.vstack(rows), b_eq=1.0, structure=structure)
    return LinearProgram(A_eq=rows[0], b_eq=1.0, A_ub=rows[1], b_ub=1.0, structure=structure)


def _sides(graph: Any) -> np.ndarray | None:
    """(V,) 0 or 1 for each node so that edges join different ones; None if that cannot be.

    networkx keeps the sides, where they are known, in the attribute `bipartite`. Where they are
    not, each connected part has its smaller side on side 0, or the sides would be interchangeable.
    """
    from networkx import NetworkXError, connected_components
    from networkx.algorithms import bipartite

    known = [side for _, side in graph.nodes(data="bipartite")]
    if all(side in (0, 1) for side in known):
        side = np.array(known, dtype=np.int64)
        tails, heads = _ends(graph)
        if (side[tails] == side[heads]).any():
            edge = _edge_names(graph)[np.flatnonzero(side[tails] == side[heads])[0]]
            raise InputError(f"The attribute `bipartite` puts both ends of {edge!r} on one side.")
        return side
    try:
        color = bipartite.color(graph)
    except NetworkXError:
        return None
    for part in connected_components(graph):
        if 2 * sum(color[node] for node in part) < len(part):  # fewer of 1 than of 0
            color |= {node: 1 - color[node] for node in part}
    return np.array([color[node] for node in graph.nodes], dtype=np.int64)


def _model(
    graph: Any,
    problem: LinearProgram,
    edges: Edges,
    cost: np.ndarray | None,
    *,
    eq_names: Names,
    ub_names: Names = (),
    integer: np.ndarray | None = None,
    form: CostForm | None = None,
    parameter_names: Names = (),
) -> ImportedModel:
    return ImportedModel(
        problem=problem,
        source=f"the graph {graph.name!r}" if graph.name else "the graph",
        variable_names=edges,
        eq_names=eq_names,
        ub_names=ub_names,
        cost=cost,
        constant=0.0,
        maximized=False,
        integer=np.zeros(len(edges), dtype=bool) if integer is None else integer,
        form=form,
        parameter_names=parameter_names,
    )


def _edge_names(graph: Any) -> Edges:
    """(tail, head), with the key where edges may be parallel."""
    return tuple(graph.edges(keys=True) if graph.is_multigraph() else graph.edges())


def _ends(graph: Any) -> tuple[np.ndarray, np.ndarray]:
    place = {node: i for i, node in enumerate(graph.nodes)}
    pairs = np.array([(place[tail], place[head]) for tail, head in graph.edges()], dtype=np.int64)
    return pairs[:, 0], pairs[:, 1]


def _incidence(ends: list[tuple[np.ndarray, float]], n_nodes: int) -> sparse.csr_array:
    count = len(ends[0][0])
    values = np.concatenate([np.full(count, value) for _, value in ends])
    place = (np.concatenate([nodes for nodes, _ in ends]), np.tile(np.arange(count), len(ends)))
    return sparse.csr_array(sparse.coo_array((values, place), shape=(n_nodes, count)))


def _weights(graph: Any, name: str) -> np.ndarray | None:
    """(E,) the attribute of every edge, None where no edge has it."""
    found = [value for *_, value in graph.edges(data=name)]
    if all(value is None for value in found):
        return None
    what = f"The attribute {name!r} of edge"
    expected = "a number, given to all or to none"
    return _numbers(graph.edges(data=name), what, np.isfinite, expected)


def _numbers(items: Any, what: str, allowed: Callable[[float], Any], expected: str) -> np.ndarray:
    """An attribute of every node or edge, as numbers; NaN is never allowed."""
    numbers = []
    for *who, value in items:
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = np.nan
        if not allowed(number):
            label = who[0] if len(who) == 1 else tuple(who)
            raise InputError(f"{what} {label!r} must be {expected}; got {value!r}.")
        numbers.append(number)
    return np.array(numbers)
