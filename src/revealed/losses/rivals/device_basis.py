"""Bases of all decisions of a data set on a device, found there and kept there.

The rule is that of `_basis.bases_of`, followed by a whole block of decisions at a time. Only the
inverse is kept, the table is not: of its m x (n + m) numbers a pivot needs one row and one column.
Letters: D decisions uploaded, B of them in a batch, m rows (equalities first), n entries, k places
in the fullest column of [A, I].
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ...optimality.sets import EntryState
from ...projection.triton import DeviceSets
from .basis import ARTIFICIAL, BOTH, LOWER, NONE, NOTHING, UPPER, Bases
from .standard_form import dense_rows

BLOCK = 1 << 27
"""Numbers that the decisions worked on at a time take, most of them in inverses: 1 GiB."""
LINES = 8
"""Lines of n + m numbers that a pivot needs besides the inverse."""
FEW = 4
"""Columns of at most so many entries are gone through entry by entry, fuller ones multiplied."""
RANK = 2.0**200
"""A column costs this many times one of the rank before; a power of 2, so that nothing rounds."""


def bases_on_device(sets: DeviceSets) -> Bases:
    """The bases of the decisions chosen by `sets`; after the first call nothing is read back.

    Inverses of whole numbers, as networks have them, are kept in a byte each: those of 10,000
    paths on an 18x18 grid then take 1 GB instead of 8.
    """
    kept = sets.table.cached("bases", lambda: _all_bases(sets))
    if sets.index is not None:
        kept = Bases(*(part[sets.index] for part in kept))
    return kept._replace(inverse=kept.inverse.double())


def _all_bases(sets: DeviceSets) -> Bases:
    whole = DeviceSets(sets.table)
    rows = dense_rows(sets.table.host.rows, sets.device)
    m, n = rows.shape[1:]
    places = _places(rows)
    copied = m * (n + m) if len(rows) > 1 else 0  # the columns of each decision's own matrix
    size = max(1, BLOCK // (m * m + LINES * (n + m) + copied))
    parts = []
    for start in range(0, len(whole), size):
        block = slice(start, start + size)
        states, active, _ = whole[block].lines()
        own = rows if len(rows) == 1 else rows[block]
        parts.append(_compact(_bases(_Columns.of(own, places), _states(states, active, m))))
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


def _places(rows: Tensor) -> Tensor | None:
    """(k, n + m): the rows in which some instance has an entry, for each column of [A, I].

    Short columns are filled up with rows where they are 0. None where a column has more than a few.
    """
    filled = (rows != 0).any(0)
    filled = torch.cat([filled, torch.eye(len(filled), dtype=torch.bool, device=rows.device)], 1)
    most = int(filled.sum(0).amax())
    if most > FEW:
        return None
    return filled.to(torch.int8).argsort(dim=0, descending=True, stable=True)[:most]


class _Columns(NamedTuple):
    """The columns of [A, I], shared by all D decisions or of each."""

    values: Tensor
    """(1 or D, k, n + m): the entries at `places`; (1 or D, m, n + m), all, if that is None."""
    places: Tensor | None
    scale: Tensor
    """(1 or D, m): makes the largest entry of each row 1."""

    @classmethod
    def of(cls, rows: Tensor, places: Tensor | None) -> _Columns:
        largest = rows.abs().amax(2)
        logicals = torch.eye(rows.shape[1], dtype=rows.dtype, device=rows.device)
        values = torch.cat([rows, logicals.expand(len(rows), -1, -1)], dim=2)
        if places is not None:
            values = values.gather(1, places.expand(len(rows), -1, -1))
        return cls(values, places, 1.0 / largest.where(largest > 0, 1.0))

    def times(self, line: Tensor) -> Tensor:
        """(D, n + m): a line (D, m) of the inverses times [A, I]."""
        values, places = self.values, self.places
        if places is None:
            shared = values[0] if len(values) == 1 else values  # one product for all is faster
            return torch.matmul(line[:, None], shared)[:, 0]
        total = line[:, places[0]] * values[:, 0]
        for place, value in zip(places[1:], values.unbind(1)[1:], strict=True):
            total.addcmul_(line[:, place], value)
        return total

    def seen_by(self, inverse: Tensor, j: Tensor) -> Tensor:
        """(D, m, 1): the inverses (D, m, m) times column j (D,) of each decision."""
        D, m = inverse.shape[:2]
        values = self.values.expand(D, -1, -1)
        values = values.gather(2, j[:, None, None].expand(-1, values.shape[1], 1))
        if self.places is not None:
            inverse = inverse.gather(2, self.places[:, j].T[:, None].expand(-1, m, -1))
        return torch.bmm(inverse, values)


def _bases(matrix: _Columns, state: Tensor) -> Bases:
    """Gauss-Jordan elimination of [A, I] for each decision; what becomes of I is the inverse."""
    D, m = len(state), matrix.scale.shape[1]
    n = state.shape[1] - m
    inverse = torch.diag_embed(matrix.scale).expand(D, m, m).clone()
    price = _prices(state)
    columns = torch.empty(D, m, dtype=torch.int64, device=state.device)
    for i in range(m):
        row = matrix.times(inverse[:, i])
        j = columns[:, i] = _pivot(row, price, n + i)
        pivot_row = inverse[:, i] / row.gather(1, j[:, None])
        others = matrix.seen_by(inverse, j)
        others[:, i] = 0.0
        begun = i + 1  # the logicals of later rows are where they were
        inverse[:, :, :begun].addcmul_(others, pivot_row[:, None, :begun], value=-1.0)
        inverse[:, i] = pivot_row
    return Bases(columns, inverse, _sides(state, columns))


def _prices(state: Tensor) -> Tensor:
    """(D, n + m): free columns before those at a bound, those before fixed ones; inf for none."""
    price = torch.full(state.shape, RANK, dtype=torch.float64, device=state.device)
    for code, own in (
        (EntryState.FREE, 1.0),
        (EntryState.FIXED, RANK * RANK),
        (ARTIFICIAL, torch.inf),
    ):
        price.masked_fill_(state == int(code), own)
    return price


def _pivot(row: Tensor, price: Tensor, logical: int) -> Tensor:
    """(D,): the first column of lowest rank with the largest entry, the logical if all are 0."""
    ratio = price / torch.nn.functional.hardshrink(row, NOTHING).abs_()  # inf where it is nothing
    first = ratio.argmin(1, keepdim=True)  # of equal ones the first, as documented
    return first.where(ratio.gather(1, first).isfinite(), logical)[:, 0]


def _sides(state: Tensor, columns: Tensor) -> Tensor:
    side = torch.zeros_like(state)
    for code, what in (
        (EntryState.AT_LOWER, LOWER),
        (EntryState.AT_UPPER, UPPER),
        (EntryState.FREE, BOTH),  # left out of a basis: the decision is not a vertex
    ):
        side[state == int(code)] = what
    return side.scatter_(1, columns, NONE)
