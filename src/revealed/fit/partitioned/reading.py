"""A partition from its files or arrays into compact form, with what the driver must know of it."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from ...datasets.pieces import Piece, Samples
from ...errors import InputError, PartitionError
from ...optimality.kinds import PlainCosts
from ...optimality.sets import OptimalitySet
from ..contexts import refuse_bad_numbers
from ..least_squares import RowFactor, chunks
from ..observed import TOLERANCE, observed
from .compact import ROWS, Block, Shelf
from .memory import peak_bytes
from .messages import Found, Orders

NUMBERS = 20_000_000
"""Numbers of the decisions of a block, at most."""


def read(orders: Orders) -> tuple[Shelf, Found]:
    """The samples of the only partition of `orders`, and what was found there."""
    reader = _Reader(orders)
    for piece in orders.data.partitions[0]:
        reader.add(piece)
    return reader.shelf, reader.result()


class _Reader:
    def __init__(self, orders: Orders) -> None:
        self._began, self._orders = time.perf_counter(), orders
        self.shelf = Shelf(orders.budget, orders.scratch)
        self._found = Found(
            samples=0,
            rows=RowFactor(orders.data.n_features, center=orders.center),
            row_used=np.zeros(orders.data.problem.shape[1], bool),
            heaviest=0.0,
            weight=0.0,
            squares=0.0,
            in_memory=0,
            on_disk=0,
        )

    def result(self) -> Found:
        found = self._found
        found.in_memory, found.on_disk = self.shelf.in_memory, self.shelf.on_disk
        found.seconds, found.peak = time.perf_counter() - self._began, peak_bytes()
        return found

    def add(self, piece: Piece) -> None:
        """Read a piece; one that cannot be read is refused, or noted and left out as a whole."""
        data, blocks = self._orders.data, list[Block]()
        try:
            for some in data.read(piece):
                block = self._compact(some)
                if block is not None:
                    blocks.append(block)
        except PartitionError as error:
            if data.bad == "refuse":
                raise
            self._found.skipped.append(str(error))
            return
        rows, start = 0, 0
        most = min(ROWS, NUMBERS // data.problem.n_variables)
        for k, block in enumerate(blocks):
            rows += block.size
            if rows >= most or k == len(blocks) - 1:
                self._keep(Block.joined(blocks[start : k + 1]))
                rows, start = 0, k + 1

    def _compact(self, some: Samples) -> Block | None:
        """The samples that count, as a block; None where there are none."""
        if some.X is None:
            raise InputError(f"{some.where}: there are no decisions to learn from.")
        self._found.left_out += some.left_out
        if not len(some.Z):
            return None
        if self._is_hopeless(some):
            self._found.infeasible += len(some.Z)
            return None
        Z, weights = some.Z, _checked_weights(some)
        sets, kept = self._sets(some)
        self._found.repaired += int(np.count_nonzero(sets.repaired))
        if kept is not None:
            self._found.infeasible += len(Z) - len(kept)
            Z, weights = Z[kept], None if weights is None else weights[kept]
        if weights is not None and not weights.all():  # as if samples of weight 0 were not there
            there = np.flatnonzero(weights)
            Z, sets, weights = Z[there], sets[there], weights[there]
        return Block.of(sets, Z, weights) if len(Z) else None

    def _is_hopeless(self, some: Samples) -> bool:
        """Whether every decision breaks its constraints, where such ones are left out."""
        if self._orders.infeasible != "skip" or self._orders.decision_tol != 0:
            return False
        return bool((np.asarray(some.problem.constraint_violation(some.X)) > TOLERANCE).all())

    def _sets(self, some: Samples) -> tuple[OptimalitySet, np.ndarray | None]:
        """The sets of the decisions, and the numbers of those kept; None where all are."""
        orders, size = self._orders, len(some.Z)
        policy = {"infeasible": orders.infeasible, "decision_tol": orders.decision_tol}
        try:
            refuse_bad_numbers(some.Z)
            seen = observed(some.problem, some.X, size, margin=orders.margin, **policy)
            sets = seen.sets
            if not isinstance(sets, OptimalitySet):
                sets = OptimalitySet(some.problem, some.X, orders.margin)
        except InputError as error:
            raise type(error)(f"{some.where}: {error}") from error
        if not isinstance(sets.kind, PlainCosts):
            raise InputError(
                "Partitions are for plain costs of a LinearProgram; fit other problems in memory."
            )
        return sets, seen.kept

    def _keep(self, block: Block) -> None:
        found = self._found
        counts = block.counts()
        for part in chunks(block.size):
            rows = np.asarray(block.Z[part], dtype=np.float64)
            found.rows.add(rows, counts[part] if len(block.weights) else None)
        m_ub = len(found.row_used)
        found.row_used |= np.unpackbits(np.bitwise_or.reduce(block.active), count=m_ub).astype(bool)
        found.samples += block.size
        found.heaviest = max(found.heaviest, float(counts.max()))
        found.weight += float(counts.sum())
        found.squares += float((counts**2).sum())
        self.shelf.add(block)


def _checked_weights(some: Samples) -> Any:
    weights = some.weights
    if weights is None:
        return None
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if bad.size:
        raise InputError(
            f"{some.where}: weights must be finite and at least 0; got {weights[bad[0]]}."
        )
    return weights
