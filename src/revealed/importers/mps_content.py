"""What an MPS file says, before and after its conventions are applied.

Letters: n columns, m rows that are not N rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from .raw import RawModel

BOUND_KINDS = ("LO", "UP", "FX", "FR", "MI", "PL", "BV", "LI", "UI", "SC", "SI")


@dataclass
class MpsContent:
    """The sections as they were read; rows and columns by name, in order of appearance."""

    maximized: bool = False
    objective: str | None = None
    row_kind: dict[str, str] = field(default_factory=dict)
    columns: dict[str, dict[str, float]] = field(default_factory=dict)
    """Of each column, the numbers by row."""
    rhs: dict[str, float] = field(default_factory=dict)
    ranges: dict[str, float] = field(default_factory=dict)
    lower: dict[str, float] = field(default_factory=dict)
    upper: dict[str, float] = field(default_factory=dict)
    integer: set[str] = field(default_factory=set)
    semicontinuous: set[str] = field(default_factory=set)
    quadratic: dict[tuple[str, str], float] = field(default_factory=dict)
    """Entries of Q in 1/2 x^T Q x; both of a pair off the diagonal."""

    def bound(self, kind: str, column: str, value: float | None) -> str | None:
        """Enter a bound; "lower" or "upper" comes back where that was already another one."""
        if kind in ("BV", "LI", "UI", "SI"):
            self.integer.add(column)
        if kind in ("SC", "SI"):
            self.semicontinuous.add(column)
        number = np.inf if value is None else value
        lower = {"LO": number, "LI": number, "FX": number, "FR": -np.inf, "MI": -np.inf, "BV": 0.0}
        upper = {"FR": np.inf, "PL": np.inf, "BV": 1.0}
        upper |= dict.fromkeys(("UP", "UI", "FX", "SC", "SI"), number)
        for side, limits, own in (("lower", self.lower, lower), ("upper", self.upper, upper)):
            if kind in own and limits.setdefault(column, own[kind]) != own[kind]:
                return side
        return None

    def without_lower(self) -> list[str]:
        """Columns that have a negative upper bound and no lower one, so that 0 cannot be meant."""
        return [name for name, high in self.upper.items() if high < 0 and name not in self.lower]

    def raw(self, source: str) -> RawModel:
        """The model. N rows other than the objective constrain nothing and are left out."""
        rows = [name for name, kind in self.row_kind.items() if kind != "N"]
        limits = np.array([self._row_limits(row) for row in rows]).reshape(-1, 2)
        bounds = np.array([self._column_limits(name) for name in self.columns])
        objective = self.objective or ""
        return RawModel(
            source=source,
            matrix=self._matrix(rows),
            row_lower=limits[:, 0],
            row_upper=limits[:, 1],
            lb=bounds[:, 0],
            ub=bounds[:, 1],
            variable_names=tuple(self.columns),
            row_names=tuple(rows),
            cost=np.array([column.get(objective, 0.0) for column in self.columns.values()]),
            constant=0.0 - self.rhs.get(objective, 0.0),
            maximized=self.maximized,
            integer=self._mask(self.integer),
            semicontinuous=self._mask(self.semicontinuous),
            quadratic=self._quadratic(),
        )

    def _row_limits(self, row: str) -> tuple[float, float]:
        kind, b, span = self.row_kind[row], self.rhs.get(row, 0.0), self.ranges.get(row)
        if span is None:
            return (b if kind != "L" else -np.inf), (b if kind != "G" else np.inf)
        if kind == "E":  # the sign of the range says on which side of b it lies
            return min(b, b + span), max(b, b + span)
        return (b - abs(span), b) if kind == "L" else (b, b + abs(span))

    def _column_limits(self, name: str) -> tuple[float, float]:
        bounded = name in self.lower or name in self.upper
        default = np.inf if bounded or name not in self.integer else 1.0
        high = self.upper.get(name, default)
        return self.lower.get(name, -np.inf if high < 0 else 0.0), high

    def _matrix(self, rows: list[str]) -> sparse.csr_array:
        place = {name: i for i, name in enumerate(rows)}
        triples = [
            (place[row], j, value)
            for j, column in enumerate(self.columns.values())
            for row, value in column.items()
            if row in place
        ]
        i, j, values = np.array(triples).reshape(-1, 3).T
        shape = (len(rows), len(self.columns))
        indices = (i.astype(np.int64), j.astype(np.int64))
        return sparse.csr_array(sparse.coo_array((values, indices), shape=shape))

    def _quadratic(self) -> sparse.csr_array:
        place = {name: j for j, name in enumerate(self.columns)}
        pairs = [(place[a], place[b]) for a, b in self.quadratic]
        i, j = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        shape = (len(place), len(place))
        values = np.array(list(self.quadratic.values()))
        return sparse.csr_array(sparse.coo_array((values, (i, j)), shape=shape))

    def _mask(self, names: set[str]) -> np.ndarray:
        return np.array([name in names for name in self.columns], dtype=bool)
