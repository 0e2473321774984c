"""Columns that a modeling language adds: their values follow from those of the user's variables.

Letters: B decisions, n columns, k columns of the user's own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import InfeasibleDecisionError
from ..problems.linear import LinearProgram
from ..problems.quadratic import QuadraticProgram

ROOMS = (0.0, 1e-8, 1e-6)
"""How far, relative to 1 + |x|, the user's columns may move meanwhile: decisions of a solver are
inexact, and held to the last digit they may fit no row."""


@dataclass(frozen=True, eq=False)
class Completion:
    """Fills in auxiliary columns by solving for them with the user's own held."""

    own: np.ndarray
    """(k,) places of the user's columns."""
    cost: np.ndarray
    """(n,) a cost that may occur; which one makes no difference to the auxiliary columns."""

    def __call__(
        self, problem: LinearProgram | QuadraticProgram, X: np.ndarray, source: str
    ) -> np.ndarray:
        """(B, n) decisions from the user's (B, k)."""
        cost = np.tile(self.cost, (len(X), 1))
        completed, rest = np.full(cost.shape, np.nan), np.arange(len(X))
        for room in ROOMS:
            if rest.size:
                completed[rest] = _held(problem, self.own, X[rest], room).solve(cost[rest]).x
                rest = np.flatnonzero(np.isnan(completed).any(axis=1))
        if rest.size:
            raise InfeasibleDecisionError(
                f"Row {rest[0]} of `decisions` must obey the constraints of {source}; with no "
                "values of the auxiliary columns does it do so."
            )
        completed[:, self.own] = X
        return completed


def _held(
    problem: LinearProgram | QuadraticProgram, own: np.ndarray, X: np.ndarray, room: float
) -> LinearProgram | QuadraticProgram:
    """The problem with the user's columns within `room` (1 + |x|) of their values."""
    lb, ub = (np.tile(bound, (len(X), 1)) for bound in (problem.lb, problem.ub))
    about = room * (1.0 + np.abs(X))
    lb[:, own], ub[:, own] = X - about, X + about
    inner = problem if isinstance(problem, LinearProgram) else problem.constraints
    parts = (inner.A_eq, inner.b_eq, inner.A_ub, inner.b_ub, lb, ub)
    if isinstance(problem, LinearProgram):
        return LinearProgram(*parts)
    return QuadraticProgram(problem.gamma, problem.Q, problem.sense, *parts)
