"""Shortest paths as unit flows: minimize <c, x> with A x = b, x >= 0, A the incidence matrix.

Row v of A has +1 for each edge that leaves node v and -1 for each that enters; b is +1 at the
source and -1 at the target. All rows are kept although they sum to zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ..._common.arrays import is_torch
from ..._common.checks import positive_int
from ..._common.rows import frozen
from ...errors import InputError, ShapeError
from ..linear import LinearProgram
from ..structures import PathStructure

# Steps (down, right) to a neighbor. Edges are ordered by tail node, then in this order, so the
# first two make the classic right-down grid, the first four the 4-neighbor grid.
_STEPS = ((0, 1), (1, 0), (0, -1), (-1, 0), (1, 1), (1, -1), (-1, 1), (-1, -1))


def grid_shortest_path(
    rows: int, cols: int, *, neighbors: int = 4, directed: str | None = None
) -> LinearProgram:
    """Cheapest path from the top left to the bottom right cell of a grid; one cost for each edge.

    Node r * cols + c is cell (r, c). Each cell has directed edges to its neighbors. Edges are
    ordered by the cell they leave, then right, down, left, up, and the diagonals down-right,
    down-left, up-right, up-left; `problem.structure.tails` and `.heads` list them. Other tools have
    other orders: see `edge_order`, and `pyepo_edge_order` for PyEPO's.

    Parameters
    ----------
    rows, cols : int
        Size of the grid, at least two cells.
    neighbors : 4 or 8
        Whether cells have diagonal neighbors.
    directed : "right-down", optional
        Edges to the right and down only: 40 on 5 x 5. Both ways unless given.

    Returns
    -------
    LinearProgram

    Examples
    --------
    >>> import numpy as np
    >>> import revealed as rv
    >>> problem = rv.problems.grid_shortest_path(2, 2, directed="right-down")
    >>> problem.solve(np.array([[1.0, 5.0, 1.0, 5.0]])).x
    array([[1., 0., 1., 0.]])
    """
    rows, cols = positive_int(rows, "rows"), positive_int(cols, "cols")
    if neighbors not in (4, 8):
        raise InputError(f"`neighbors` must be 4 or 8; got {neighbors!r}.")
    if directed not in (None, "right-down"):
        raise InputError(f'`directed` must be None or "right-down"; got {directed!r}.')
    if directed is not None and neighbors != 4:
        raise InputError('`directed="right-down"` has no diagonals; leave `neighbors` at 4.')
    if rows * cols < 2:
        raise InputError("A grid path needs at least two cells; got a 1 x 1 grid without edges.")
    tails, heads = _grid_edges(rows, cols, _STEPS[: 2 if directed else neighbors])
    source, target = np.int64(0), np.int64(rows * cols - 1)
    return _path_problem(tails, heads, rows * cols, source, target, grid_shape=(rows, cols))


def shortest_path(
    graph: Any, *, source: Any, target: Any, n_nodes: int | None = None
) -> LinearProgram:
    """Cheapest path through any directed graph, with a source and target shared or per instance.

    Parameters
    ----------
    graph : (E, 2) int array, list of (tail, head), or networkx.DiGraph
        Edges between nodes 0 to n_nodes - 1, one variable each. Those of a networkx graph are
        taken in the order of `graph.edges`.
    source, target : int or (B,) int array
        Nodes; for a networkx graph its own node names, or lists of them.
    n_nodes : int, optional
        The largest node number plus one unless given.

    Returns
    -------
    LinearProgram
    """
    if hasattr(graph, "is_directed"):
        edges, n_nodes, positions = _networkx_edges(graph, n_nodes)
        source, target = _named(source, positions, "source"), _named(target, positions, "target")
    else:
        edges, n_nodes = _edge_array(graph, n_nodes)
    ends = _nodes(source, n_nodes, "source"), _nodes(target, n_nodes, "target")
    if ends[0].ndim and ends[1].ndim and len(ends[0]) != len(ends[1]):
        raise ShapeError(
            f"`source` and `target` must have the same length; got {len(ends[0])} and "
            f"{len(ends[1])}. Give a single node to share it."
        )
    return _path_problem(edges[:, 0], edges[:, 1], n_nodes, *ends)


def between(problem: LinearProgram, source: Any, target: Any) -> LinearProgram:
    """The paths of `problem` between other nodes: (B,) sources and targets, one for each path."""
    structure = problem.structure
    edges = np.column_stack([structure.tails, structure.heads])
    return shortest_path(edges, source=source, target=target, n_nodes=structure.n_nodes)


def _path_problem(
    tails: np.ndarray,
    heads: np.ndarray,
    n_nodes: int,
    source: Any,
    target: Any,
    grid_shape: tuple[int, int] | None = None,
) -> LinearProgram:
    n_edges = len(tails)
    # Duplicates are summed, so a self-loop's +1 and -1 cancel, as they should.
    A = sparse.coo_array(
        (
            np.concatenate([np.ones(n_edges), -np.ones(n_edges)]),
            (np.concatenate([tails, heads]), np.tile(np.arange(n_edges), 2)),
        ),
        shape=(n_nodes, n_edges),
    )
    structure = PathStructure(
        frozen(np.array(tails, dtype=np.int64)),
        frozen(np.array(heads, dtype=np.int64)),
        n_nodes,
        frozen(np.array(source, dtype=np.int64)),
        frozen(np.array(target, dtype=np.int64)),
        topological_order(tails, heads, n_nodes),
        grid_shape,
    )
    b = _unit_flow(structure)
    return LinearProgram(A_eq=A, b_eq=b, lb=0.0, structure=structure)


def _unit_flow(structure: PathStructure) -> np.ndarray:
    """+1 at the source, -1 at the target; both at one node cancel, and the path is empty."""
    count = 1 if structure.n_instances is None else structure.n_instances
    b = np.zeros((count, structure.n_nodes))
    line = np.arange(count)
    b[line, np.broadcast_to(structure.source, count)] += 1.0
    b[line, np.broadcast_to(structure.target, count)] -= 1.0
    return b[0] if structure.n_instances is None else b


def topological_order(tails: np.ndarray, heads: np.ndarray, n_nodes: int) -> np.ndarray | None:
    """(n_nodes,) an order in which every edge goes forward, or None if the graph has a cycle."""
    by_tail = np.argsort(tails, kind="stable")
    start = np.searchsorted(tails[by_tail], np.arange(n_nodes + 1))
    successors = heads[by_tail].tolist()
    waiting = np.bincount(heads, minlength=n_nodes).tolist()
    order = [node for node in range(n_nodes) if waiting[node] == 0]
    for node in order:  # grows as it is read: nodes join once nothing that leads to them is left
        for head in successors[start[node] : start[node + 1]]:
            waiting[head] -= 1
            if waiting[head] == 0:
                order.append(head)
    return frozen(np.array(order, dtype=np.int64)) if len(order) == n_nodes else None


def _grid_edges(
    rows: int, cols: int, steps: tuple[tuple[int, int], ...]
) -> tuple[np.ndarray, np.ndarray]:
    row, col = np.divmod(np.arange(rows * cols), cols)
    down, right = np.array(steps).T
    to_row, to_col = row[:, None] + down, col[:, None] + right  # (cells, steps)
    inside = (to_row >= 0) & (to_row < rows) & (to_col >= 0) & (to_col < cols)
    tails = np.broadcast_to(np.arange(rows * cols)[:, None], inside.shape)[inside]
    return tails, (to_row * cols + to_col)[inside]


def _edge_array(graph: Any, n_nodes: int | None) -> tuple[np.ndarray, int]:
    edges = _integers(graph, "graph")
    if edges.ndim != 2 or edges.shape[1] != 2 or len(edges) == 0:
        raise ShapeError(
            "`graph` must be an (E, 2) array of edges (tail, head) with at least one edge, or a "
            f"networkx DiGraph; got shape {edges.shape}."
        )
    count = int(edges.max()) + 1 if n_nodes is None else positive_int(n_nodes, "n_nodes")
    outside = np.flatnonzero(((edges < 0) | (edges >= count)).any(axis=1))
    if outside.size:
        raise InputError(
            f"The nodes of an edge must be 0 to {count - 1}; edge {outside[0]} is "
            f"{tuple(edges[outside[0]].tolist())}. Renumber the nodes or raise `n_nodes`."
        )
    return edges, count


def _networkx_edges(graph: Any, n_nodes: int | None) -> tuple[np.ndarray, int, dict[Any, int]]:
    if not graph.is_directed():
        raise InputError("`graph` must be directed; use `graph.to_directed()` for both directions.")
    positions = {node: i for i, node in enumerate(graph.nodes)}
    if n_nodes is not None and n_nodes != len(positions):
        raise InputError(
            f"`n_nodes` is {n_nodes} but the graph has {len(positions)} nodes; leave it out."
        )
    edges = [(positions[tail], positions[head]) for tail, head in graph.edges()]
    if not edges:
        raise ShapeError("`graph` must have at least one edge; the networkx graph has none.")
    return np.array(edges, dtype=np.int64), len(positions), positions


def _named(ends: Any, positions: dict[Any, int], name: str) -> Any:
    """Numbers of networkx nodes; a list or array that is not itself a node is one per instance."""

    def number(node: Any) -> int:
        try:
            return positions[node.item() if isinstance(node, np.generic) else node]
        except (KeyError, TypeError):  # TypeError: it cannot be a node, as it has no hash
            raise InputError(f"`{name}` must be a node of the graph; got {node!r}.") from None

    ends = ends.detach().cpu().numpy() if is_torch(ends) else ends
    if isinstance(ends, list | np.ndarray) and np.ndim(ends) > 0:
        return np.array([number(node) for node in ends], dtype=np.int64)
    return number(ends)


def _nodes(ends: Any, n_nodes: int, name: str) -> np.ndarray:
    nodes = _integers(ends, name)
    if nodes.ndim > 1:
        raise ShapeError(f"`{name}` must be a node or a (B,) array; got shape {nodes.shape}.")
    outside = np.flatnonzero(np.atleast_1d((nodes < 0) | (nodes >= n_nodes)))
    if outside.size:
        raise InputError(
            f"`{name}` must be a node 0 to {n_nodes - 1}; got "
            f"{np.atleast_1d(nodes)[outside[0]]} at instance {outside[0]}."
        )
    return nodes


def _integers(value: Any, name: str) -> np.ndarray:
    try:
        array = np.asarray(value.detach().cpu() if is_torch(value) else value)
    except ValueError as error:  # rows of different lengths
        raise ShapeError(f"`{name}` must be a rectangular array of node numbers.") from error
    if array.size and array.dtype.kind not in "iu":
        raise InputError(f"`{name}` must hold integer node numbers; got dtype {array.dtype}.")
    return array.astype(np.int64)
