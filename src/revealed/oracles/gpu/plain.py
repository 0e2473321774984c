"""Shortest paths for a batch by min-plus relaxation in plain torch, on any device.

What the kernel does, step by step and with the same numbers, for machines without Triton and as a
second opinion of it. It looks whether it is done, so on a GPU it waits for each round.

Letters: B instances, N nodes, E edges, D slots of a node.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ...problems.solution import Solution, SolveStatus
from .slots import NO_EDGE, Slots

SLACK = 1e-11
"""With negative costs around cycles, what a step must gain, where the largest cost is about 1: more
than rounding, so that a cycle which costs nothing does not count as negative."""
FAR = 1 << 30
"""A level that no node has."""


@dataclass(frozen=True)
class _Reached:
    """How far the nodes are from the source."""

    distance: Tensor  # (B, N)
    tails: Tensor  # (B, D, N): how far the tail of each slot is
    tight: Tensor  # (B, D, N) bool: whether a slot leads to its node as cheaply as any
    negative: Tensor  # (B,) bool: whether costs below 0 may lead back to a node


def solve_by_torch(costs: Tensor, slots: Slots, source: Tensor, target: Tensor) -> Solution:
    """Decisions for costs (B, E); source and target are (1,) or (B,)."""
    B = len(costs)
    source, target = (end.long().expand(B) for end in (source, target))
    C = costs.double()
    finite = C.isfinite().all(1)
    C = C.where(finite[:, None], 0.0)
    exponent = exponent_of(C.abs().amax(1))
    scaled = times_power(C, -exponent[:, None])
    negative = (C < 0).any(1) & slots.cyclic
    cost = _by_slot(scaled, slots)
    slack = (SLACK * negative)[:, None]
    circles = negative & _relax(torch.zeros(B, slots.n_nodes).to(cost), cost, slots, slack)[1]
    start = torch.full((B, slots.n_nodes), torch.inf).to(cost)
    start.scatter_(1, source[:, None], 0.0)
    distance, unsettled = _relax(start, cost, slots, slack)
    tails = distance[:, slots.tail.long()]
    tight = (tails + cost <= distance[:, None]) & distance.isfinite()[:, None]
    reached = _Reached(distance, tails, tight, negative)
    via = _best_slot(reached, _levels(reached, slots, source), slots)
    x, arrived = _walk(via, slots, source, target)
    status = torch.full((B,), int(SolveStatus.OPTIMAL), dtype=torch.int8, device=C.device)
    no_path = distance.gather(1, target[:, None])[:, 0].isinf()
    for where, code in (
        (~arrived, SolveStatus.FAILED),
        (circles | unsettled, SolveStatus.UNBOUNDED),
        (no_path, SolveStatus.INFEASIBLE),
        (~finite, SolveStatus.FAILED),
    ):
        status[where] = int(code)
    x[status != SolveStatus.OPTIMAL] = torch.nan
    value = times_power((scaled * x).sum(1), exponent)
    return Solution(x.to(costs.dtype), value.to(costs.dtype), status)


def exponent_of(largest: Tensor) -> Tensor:
    """(B,) int64 e with largest in [2^(e-1), 2^e), for what is below 2^-1022 too."""
    return ((largest.view(torch.int64) >> 52) & 0x7FF) - 1022


def times_power(values: Tensor, exponent: Tensor) -> Tensor:
    """values * 2^exponent, by two halves of which neither overflows."""
    half = exponent >> 1
    first, second = (((e + 1023) << 52).view(torch.float64) for e in (half, exponent - half))
    return values * first * second


def _by_slot(scaled: Tensor, slots: Slots) -> Tensor:
    """(B, D, N): the cost of the edge in each slot, inf where there is none."""
    cost = scaled[:, slots.edge.long().clamp_min(0)]
    return cost.where(slots.edge != NO_EDGE, torch.inf)


def _relax(distance: Tensor, cost: Tensor, slots: Slots, slack: Tensor) -> tuple[Tensor, Tensor]:
    """Distances (B, N) that no edge improves, and (B,) whether they could still be improved.

    Without a negative cycle one round fewer than there are nodes is enough.
    """
    tail = slots.tail.long()
    better = torch.zeros_like(distance, dtype=torch.bool)
    for _ in range(slots.n_nodes):
        reach = (distance[:, tail] + cost).amin(1)
        better = reach < distance - slack
        if not bool(better.any()):
            break
        distance = reach.where(better, distance)
    return distance, better.any(1)


def _levels(reached: _Reached, slots: Slots, source: Tensor) -> Tensor:
    """(B, N): steps since the last one that led away from the source.

    With negative costs around cycles every step counts. Going back by levels and distances then
    never comes to the same node twice.
    """
    distance, tight = reached.distance, reached.tight
    onward = tight & (reached.tails < distance[:, None]) & ~reached.negative[:, None, None]
    level = torch.where(onward.any(1), 0, FAR)
    level.scatter_(1, source[:, None], 0)
    if not slots.cyclic:
        return level
    for _ in range(slots.n_nodes):
        after = torch.where(tight, level[:, slots.tail.long()] + 1, FAR).amin(1)
        if not bool((after < level).any()):
            break
        level = level.minimum(after)
    return level


def _best_slot(reached: _Reached, level: Tensor, slots: Slots) -> Tensor:
    """(B, N): the slot by which each node is entered, D where there is none."""
    best = reached.tight
    if slots.cyclic:
        near = torch.where(reached.negative[:, None, None], 0.0, reached.tails)
        for key in (near, level[:, slots.tail.long()].double()):
            key = key.where(best, torch.inf)
            best = best & (key == key.amin(1, keepdim=True))
    places = torch.arange(slots.depth, device=best.device)[:, None]
    return torch.where(best, places, slots.depth).amin(1)


def _walk(via: Tensor, slots: Slots, source: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """(B, E) with 1 on the edges of each path, and (B,) whether the source was reached."""
    B = len(via)
    x = torch.zeros(B, slots.n_edges + 1, dtype=torch.float64, device=via.device)
    node = target
    for _ in range(slots.n_nodes):
        slot = via.gather(1, node[:, None])[:, 0]
        going = (node != source) & (slot < slots.depth)
        if not bool(going.any()):
            break
        slot = slot.clamp_max(slots.depth - 1)
        edge = slots.edge[slot, node].long().where(going, slots.n_edges)  # beyond the last: dropped
        x.scatter_(1, edge[:, None], 1.0)
        node = slots.tail[slot, node].long().where(going, node)
    return x[:, :-1].contiguous(), node == source
