"""Tables in many Parquet files, read part by part as one table is read.

Letters: B samples, n variables, d features, k limits.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...datasets.parquet import column_names
from ...datasets.partitions import Partitions
from ...datasets.pieces import Piece, Samples, files_of
from ...errors import InputError, PartitionError
from ...metrics.sameness import SAME
from ...optimality.infeasible import settle
from ...optimality.rounding import read_rounded
from ..doctor.feasibility import broken_constraint
from ..plans import Limit, Plan, as_limits, limits_in, refuse_missing_columns, with_limits
from ..store import FittedModel
from ..tables import FeatureMap
from ..tables.cells import word
from ..tables.decisions import LONG
from ..tables.encoder import RowEncoder, scales_of
from ..tables.parquet_file import ParquetFile
from .reading import Reading


class Some(NamedTuple):
    """A run of samples."""

    where: str
    """Their file."""
    numbers: np.ndarray
    """(b,) of their rows in it, counted from 0."""
    Z: np.ndarray
    """(b, d) encoded contexts."""
    X: np.ndarray
    """(b, n) decisions; (0, n) where none are there."""
    plan: Plan
    """That of these samples."""
    limits: np.ndarray | None
    """(b, k) as the planner writes them; None where the model has none."""
    ids: Sequence[Any] | None
    is_held: bool
    """Whether these were held out."""
    left_out: int
    """Rows beside these that cannot be used."""

    def take(self, rows: np.ndarray) -> Some:
        """The chosen samples of these."""
        parts = {name: getattr(self, name) for name in ("numbers", "Z", "X", "limits")}
        chosen = {name: part[rows] for name, part in parts.items() if part is not None}
        ids = None if self.ids is None else [self.ids[b] for b in rows]
        return self._replace(**chosen, plan=self.plan[rows], ids=ids)

    def name(self, b: int) -> str:
        """What people call sample b of these."""
        if self.ids is not None:
            return word(self.ids[b])
        return f"{self.where}, row {self.numbers[b] + 1}"


@dataclass(frozen=True, eq=False)
class Parts:
    """Contexts and decisions of a plan, in as many files as there are."""

    plan: Plan
    features: FeatureMap
    limits: tuple[Limit, ...]
    how: Reading
    data: Partitions
    unreadable: list[str] = field(default_factory=list)
    """What could not be read, as far as it was looked at."""

    @property
    def fingerprint(self) -> str:
        """What is kept with a model to know its tables again."""
        told = self.data.fingerprint
        return f"{told['sources']}{told['partitions']}"

    def runs(self, share: float = 0.0) -> Iterator[Some]:
        """All samples in order; those of a `share` of the pieces are held out."""
        held = self.data.split(share)[1] if share else None
        out = {piece for part in held.partitions for piece in part} if held else set[Piece]()
        for piece in (piece for part in self.data.partitions for piece in part):
            try:
                for some in self.data.read(piece):
                    yield self._some(self._as_meant(some), piece in out)
            except PartitionError as error:
                if self.data.bad == "refuse":
                    raise
                self.unreadable.append(str(error))

    def _as_meant(self, some: Samples) -> Samples:
        """With decisions as they were meant: rounding undone where its size is known, infeasible
        ones refused, repaired or left out."""
        if some.X is None or not len(some.Z):
            return some
        if self.how.tol != "auto":
            X = read_rounded(some.problem, some.X, self.how.tol, tol=SAME).decisions
            some = replace(some, X=X)
        assert some.X is not None
        bad = ~(np.asarray(some.problem.constraint_violation(some.X)) <= SAME)
        if not bad.any():
            return some
        if self.how.infeasible == "repair":
            return replace(some, X=settle(some.problem, some.X, SAME, "repair")[0])
        if self.how.infeasible == "skip":
            return some.take(np.flatnonzero(~bad))
        own = self._some(some.take(np.flatnonzero(bad)[:1]), False)
        raise InputError(
            f"{own.where}, row {own.numbers[0] + 1}: the decision breaks the plan: "
            f"{broken_constraint(own.plan, own.X[0])}. --infeasible skip leaves such rows out, "
            "--infeasible repair takes the nearest decision that obeys."
        )

    def _some(self, some: Samples, is_held: bool) -> Some:
        X = np.zeros((0, len(self.plan.variables))) if some.X is None else some.X
        plan, limits = self.plan, None
        if self.limits:
            plan = self.plan.with_rows(some.problem)
            limits = limits_in(self.plan, self.limits, some.problem)
        assert some.numbers is not None, "these are of files"
        where = os.path.basename(some.where.partition(", row group ")[0])
        return Some(where, some.numbers, some.Z, X, plan, limits, some.ids, is_held, some.left_out)


def open_parts(
    plan: Plan,
    features: FeatureMap,
    limits: tuple[Limit, ...],
    contexts: Path,
    decisions: Path | None,
    *,
    key: str | None,
    how: Reading,
    narrow: bool = False,
) -> Parts:
    """The files that two patterns stand for; `narrow` keeps numbers in their precision."""
    first = ParquetFile(Path(files_of(os.fspath(contexts), "contexts")[0]))
    refuse_missing_columns(first, limits)
    for limit in limits:
        first.check_kind(limit.column)
    long = None
    if decisions is not None and is_long(decisions):
        if key is None:
            raise InputError(
                "Decisions list entries one by one; name the column that says which decision is "
                "meant with --id."
            )
        long = (key, *LONG)
    data = Partitions.from_parquet(
        plan.problem,
        os.fspath(contexts),
        None if decisions is None else os.fspath(decisions),
        features=RowEncoder(features, how.skip_bad, narrow),
        variables=plan.variables,
        ids=key,
        long=long,
        constraints=OwnLimits(plan, limits) if limits else None,
        constraint_columns=tuple(dict.fromkeys(limit.column for limit in limits)),
        bad="skip" if how.skip_bad else "refuse",
    )
    return Parts(plan, features, limits, how, data)


def parts_for(
    model: FittedModel,
    contexts: Path,
    decisions: Path | None,
    how: Reading,
    asked: str | None = None,
) -> Parts:
    """Files read the way a fitted model reads them."""
    if model.learned is not None:
        raise InputError("Limits that were learned go with one table; give one file at a time.")
    first = files_of(os.fspath(contexts), "contexts")[0]
    key = asked or (model.key if model.key in column_names(first) else None)
    paths = (contexts, decisions)
    return open_parts(model.plan, model.features, model.limits, *paths, key=key, how=how)


def is_long(decisions: Path) -> bool:
    """Whether files of decisions list entries one by one."""
    there = column_names(files_of(os.fspath(decisions), "decisions")[0])
    return all(name in there for name in LONG)


def encoded(parts: Parts, features: FeatureMap, share: float) -> Iterator[Some]:
    """Runs of samples whose numbers are as the files have them, encoded by `features`."""
    mean, scale = scales_of(features)
    for some in parts.runs(share):
        yield some._replace(Z=(some.Z - mean) / scale)


@dataclass(frozen=True)
class OwnLimits:
    """Makes the constraints of rows from the columns that hold their limits."""

    plan: Plan
    limits: tuple[Limit, ...]

    def __call__(self, problem: Any, columns: dict[str, np.ndarray]) -> Any:
        def where(row: int, column: str) -> str:
            return f"row {row + 1} of these, column {column!r}"

        values = np.column_stack([columns[limit.column] for limit in self.limits]).astype(float)
        values = as_limits(self.plan, self.limits, values, where)
        return with_limits(self.plan, self.limits, values).problem
