"""A graph as the device wants it: the edges into each node, side by side.

Letters: N nodes, E edges, D slots: as many as edges enter the node that most enter, rounded up to
a power of two, or beyond 8 to a multiple of 8.
"""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from ...problems.linear import LinearProgram
from ...problems.structures import PathStructure

NO_EDGE = -1


@dataclass(frozen=True, eq=False)
class Slots:
    """Slot k of node v is an edge that enters v; unused slots hold NO_EDGE from node 0.

    The edges of a node stand in the order in which ties are broken: by their tails (in the
    topological order of an acyclic graph, else by number), those from one tail by their own number.
    """

    tail: Tensor
    """(D, N) int32."""
    edge: Tensor
    """(D, N) int32."""
    n_edges: int
    cyclic: bool

    @property
    def n_nodes(self) -> int:
        return self.tail.shape[1]

    @property
    def depth(self) -> int:
        """D"""
        return self.tail.shape[0]

    @property
    def unroll(self) -> int:
        """A power of two, at most 8, that divides the depth."""
        return min(self.depth, 8)


def slots_of(problem: LinearProgram, device: torch.device) -> Slots:
    """The slots of a path problem, built and uploaded once for each device."""
    graph: PathStructure = problem.structure
    tables = problem.cached("path-slots", lambda: _tables(graph))

    def upload() -> Slots:
        tail, edge = (torch.as_tensor(table, device=device) for table in tables)
        return Slots(tail, edge, len(graph.tails), graph.order is None)

    return problem.cached(f"path-slots-{device}", upload)


def _tables(graph: PathStructure) -> tuple[np.ndarray, np.ndarray]:
    rank = np.arange(graph.n_nodes)
    if graph.order is not None:
        rank[graph.order] = np.arange(graph.n_nodes)
    edges = np.lexsort((np.arange(len(graph.tails)), rank[graph.tails], graph.heads))
    heads = graph.heads[edges]
    slot = np.arange(len(edges)) - np.searchsorted(heads, heads)
    shape = (_depth(int(slot.max()) + 1), graph.n_nodes)
    tail, edge = np.zeros(shape, np.int32), np.full(shape, NO_EDGE, np.int32)
    tail[slot, heads] = graph.tails[edges]
    edge[slot, heads] = edges
    return tail, edge


def _depth(used: int) -> int:
    return 1 << (used - 1).bit_length() if used <= 8 else -(-used // 8) * 8


_ENDS: WeakKeyDictionary[PathStructure, dict[torch.device, tuple[Tensor, Tensor]]]
_ENDS = WeakKeyDictionary()


def ends_of(graph: PathStructure, device: torch.device) -> tuple[Tensor, Tensor]:
    """Source and target, both (1,) or both (B,) int32, uploaded once for each device."""
    kept = _ENDS.setdefault(graph, {})
    if device not in kept:
        count = graph.n_instances if graph.n_instances is not None else 1
        ends = (np.broadcast_to(end, count) for end in (graph.source, graph.target))
        source, target = (torch.tensor(end, dtype=torch.int32, device=device) for end in ends)
        kept[device] = source, target
    return kept[device]
