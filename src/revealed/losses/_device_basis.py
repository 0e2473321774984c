"""Bases of all decisions of a data set on a device, found there and kept there.

The rule is that of `_basis.bases_of`, followed by a whole block of decisions at a time. Letters: D
decisions uploaded, B of them in a batch, m rows (equalities first), n entries.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..optimality import EntryState
from ..projection.gpu import DeviceSets
from ._basis import ARTIFICIAL, BOTH, LOWER, NONE, NOTHING, UPPER, Bases
from ._dense import dense_rows

BLOCK = 1 << 27
"""Numbers in the tables of the decisions that are eliminated at a time, 1 GiB."""


_KEPT = "_bases"
"""Where a table of sets keeps the bases of its decisions: they live as long as it does."""


def bases_on_device(sets: DeviceSets) -> Bases:
    """The bases of the decisions chosen by `sets`; after the first call nothing is read back.

    Inverses of whole numbers, as networks have them, are kept in a byte each: those of 10,000
    paths on an 18x18 grid then take 1 GB instead of 8.
    """
    kept = sets.table.__dict__.get(_KEPT)
    if kept is None:
        kept = sets.table.__dict__[_KEPT] = _all_bases(sets)
    if sets.index is not None:
        kept = Bases(*(part[sets.index] for part in kept))
    return kept._replace(inverse=kept.inverse.double())


def _all_bases(sets: DeviceSets) -> Bases:
    whole = DeviceSets(sets.table)
    rows = dense_rows(sets.table.host.problem, sets.device)
    m, n = rows.shape[1:]
    size = max(1, BLOCK // (m * (n + m)))
    parts = []
    for start in range(0, len(whole), size):
        block = slice(start, start + size)
        states, active, _ = whole[block].lines()
        own = rows if len(rows) == 1 else rows[block]
        parts.append(_compact(_bases(own, _states(states, active, m))))
    joined = [torch.cat(part) for part in zip(*parts, strict=True)]  # bytes give way to numbers
    return Bases(*joined)


def _compact(bases: Bases) -> Bases:
    small = bases.inverse.to(torch.int8)
    exact = bool((small == bases.inverse).all())
    return bases._replace(inverse=small) if exact else bases


def _states(states: Tensor, active: Tensor, m: int) -> Tensor:
    """(D, n + m): the state of every column; a slack is at its lower bound where its row binds."""
    equalities = torch.full_like(states[:, :1], ARTIFICIAL).expand(-1, m - active.shape[1])
    slacks = torch.where(active > 0, int(EntryState.AT_LOWER), int(EntryState.FREE)).to(states)
    return torch.cat([states, equalities, slacks], dim=1)


def _bases(rows: Tensor, state: Tensor) -> Bases:
    """Gauss-Jordan elimination of [A, I] for each decision; what becomes of I is the inverse."""
    D, (m, n) = len(state), rows.shape[1:]
    largest = rows.abs().amax(2, keepdim=True)
    size = 1.0 / largest.where(largest > 0, 1.0)
    logical = torch.diag_embed(size[:, :, 0])
    table = torch.cat([rows * size, logical], dim=2).expand(D, m, n + m).clone()
    rank = _ranks(state)
    columns = torch.empty(D, m, dtype=torch.int64, device=state.device)
    for i in range(m):
        j = columns[:, i] = _pivot(table[:, i], rank, n + i)
        pivot_row = table[:, i] / table[:, i].gather(1, j[:, None])
        others = table.gather(2, j[:, None, None].expand(-1, m, 1))
        others[:, i] = 0.0
        table.baddbmm_(others, pivot_row[:, None], alpha=-1.0)
        table[:, i] = pivot_row
    return Bases(columns, table[:, :, n:].contiguous(), _sides(state, columns))


def _ranks(state: Tensor) -> Tensor:
    """(D, n + m): free columns before those at a bound, those before fixed ones; inf for none."""
    rank = torch.ones(state.shape, dtype=torch.float64, device=state.device)
    for code, place in ((EntryState.FREE, 0.0), (EntryState.FIXED, 2.0), (ARTIFICIAL, torch.inf)):
        rank[state == int(code)] = place
    return rank


def _pivot(row: Tensor, rank: Tensor, logical: int) -> Tensor:
    """(D,): the first column of lowest rank with the largest entry, the logical if all are 0."""
    rank = rank.where(row.abs() > NOTHING, torch.inf)
    lowest = rank.amin(1, keepdim=True)
    ratio = (1.0 / row.abs()).where(rank == lowest, torch.inf)
    best = (ratio == ratio.amin(1, keepdim=True)) & lowest.isfinite()
    place = torch.arange(row.shape[1], device=row.device)
    first = place.where(best, row.shape[1]).amin(1)
    return first.where(lowest[:, 0].isfinite(), logical)


def _sides(state: Tensor, columns: Tensor) -> Tensor:
    side = torch.zeros_like(state)
    for code, what in (
        (EntryState.AT_LOWER, LOWER),
        (EntryState.AT_UPPER, UPPER),
        (EntryState.FREE, BOTH),  # left out of a basis: the decision is not a vertex
    ):
        side[state == int(code)] = what
    return side.scatter_(1, columns, NONE)
