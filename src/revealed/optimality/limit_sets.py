"""Costs and limits together: all pairs that explain a decision, where some limits are unknown.

A pair (c, b) explains x* if no unknown limit is broken, a_k x* <= b_k, and each of them either
holds with equality, so that its multiplier may be anything from the margin up, or has the
multiplier 0. For each guess of which unknown limits are active these pairs form a convex set: a set
of costs as ever, and for the limits a_k x* = b_k or a_k x* <= b_k. So a decision has a union of 2^K
such pieces.

Letters: B decisions, n entries, K unknown limits.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .._common.arrays import as_choice, to_float64
from .._common.checks import check_number
from .._common.records import Record
from .._common.rows import frozen
from ..errors import InputError, ShapeError
from ..problems.linear import LinearProgram
from ..problems.solution import Solution
from ..problems.unknown import UnknownLimits
from .active_set import EntryState
from .kinds import PlainCosts
from .protocol import CostSet
from .sets import OptimalitySet


class UnknownLimitSet(Record, CostSet):
    """For each decision of a batch, all pairs of costs and limits under which it is optimal.

    What is projected are rows (c, b) of length n + K, limits after costs. Distances count costs as
    they are and limits by `weights_of_limits`:

        |c - q|^2 + sum_k w_k^2 (b_k - g_k)^2

    Parameters
    ----------
    problem : LinearProgram
        What it holds at the unknown limits is not looked at.
    decisions : (B, n) array
    unknown : dict
        Such as `{"ub": [2, 5]}`: rows of `A_ub`, and variables under "lower" and "upper".
    margin : float or (B,) array
    weight : float or (K,) array
        Of limits against costs, in units of the rows: a limit counts by how far the boundary of
        its constraint moves, |b_k - g_k| / |a_k|, times this. Rows in grams and in kilograms
        weigh the same. A larger weight keeps limits where they were and lets costs give way.
    tol : float
        As in `OptimalitySet`.
    """

    problem: LinearProgram
    decisions: np.ndarray
    margins: np.ndarray
    weights: np.ndarray
    unknown: UnknownLimits
    values: np.ndarray
    """(B, K) a_k x*, where each decision stands."""
    weights_of_limits: np.ndarray
    """(B, K) w_k"""
    base: OptimalitySet
    """The sets of costs where no unknown limit is active."""
    n_parameters: int

    def __init__(
        self,
        problem: LinearProgram,
        decisions: Any,
        unknown: Any,
        margin: Any = 1.0,
        *,
        weight: Any = 1.0,
        tol: float = 1e-5,
    ) -> None:
        unknown = UnknownLimits.read(unknown, problem)
        base = OptimalitySet(unknown.opened(problem), decisions, margin, tol=tol)
        X, shape = base.decisions, (len(base), len(unknown))
        sizes = np.linalg.norm(unknown.normals(problem), axis=-1)
        w = _checked_weight(weight, len(unknown)) / np.where(sizes > 0, sizes, 1.0)
        self._set(
            problem=problem,
            decisions=X,
            margins=base.margins,
            weights=base.weights,
            unknown=unknown,
            values=frozen(unknown.values(problem, X)),
            weights_of_limits=frozen(np.array(np.broadcast_to(w, shape))),
            base=base,
            n_parameters=problem.n_variables + len(unknown),
        )

    def __len__(self) -> int:
        return len(self.decisions)

    def __getitem__(self, index: Any) -> UnknownLimitSet:
        chosen = as_choice(index, len(self))
        parts = {name: getattr(self, name)[chosen] for name in _PER_INSTANCE}
        return self.replaced(problem=self.problem[chosen], base=self.base[chosen], **parts)

    def pieces(self, active: np.ndarray) -> OptimalitySet:
        """The sets of costs where exactly the limits `active` (B, K) hold with equality."""
        m, split = len(self.unknown.rows), len(self.unknown.rows) + len(self.unknown.lower)
        kind = self.base.kind
        assert isinstance(kind, PlainCosts)
        row_active, state = kind.active.row_active.copy(), kind.active.entry_state.copy()
        row_active[:, self.unknown.rows] = active[:, :m]
        for columns, flags, own in (
            (self.unknown.lower, active[:, m:split], EntryState.AT_LOWER),
            (self.unknown.upper, active[:, split:], EntryState.AT_UPPER),
        ):
            before = state[:, columns]
            met = np.where(before == EntryState.FREE, own, EntryState.FIXED)
            state[:, columns] = np.where(flags, met, before)
        used = kind.row_used.copy()
        used[self.unknown.rows] = True
        seen = kind.active._replace(row_active=row_active, entry_state=state)
        return self.base.replaced(_kind=replace(kind, active=seen, row_used=used))

    def split(self, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Costs (B, n) and limits (B, K) of rows (c, b)."""
        return pairs[:, : self.problem.n_variables], pairs[:, self.problem.n_variables :]

    def solve(self, parameters: Any, **options: Any) -> Solution:
        """Decisions under other costs and limits, rows (c, b)."""
        costs, limits = self.split(to_float64(parameters, "parameters"))
        return self.unknown.closed(self.problem, limits).solve(costs, **options)

    def __repr__(self) -> str:
        return f"UnknownLimitSet({len(self)} decisions, {len(self.unknown)} unknown limits)"


_PER_INSTANCE = ("decisions", "margins", "weights", "values", "weights_of_limits")


def _checked_weight(weight: Any, size: int) -> np.ndarray:
    array = to_float64(weight, "weight")
    if array.ndim == 0:
        check_number(weight, "weight")
    elif array.shape != (size,):
        raise ShapeError(
            f"`weight` must be one number, or one for each of the {size} unknown limits; got shape "
            f"{array.shape}."
        )
    if not (np.isfinite(array) & (array > 0)).all():
        raise InputError(f"`weight` must be finite and above 0; got {weight!r}.")
    return array
