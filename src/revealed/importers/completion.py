"""Columns that a modelling language adds: their values follow from those of the user's variables.

Letters: B decisions, n columns, k columns of the user's own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import InfeasibleDecisionError
from ..problem import LinearProgram
from ..quadratic import QuadraticProgram


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
        lb, ub = (np.tile(bound, (len(X), 1)) for bound in (problem.lb, problem.ub))
        lb[:, self.own], ub[:, self.own] = X, X
        answer = _held(problem, lb, ub).solve(np.tile(self.cost, (len(X), 1)))
        if not answer.optimal.all():
            row = int(np.flatnonzero(~answer.optimal)[0])
            raise InfeasibleDecisionError(
                f"Row {row} of `decisions` must obey the constraints of {source}; with no values "
                "of the auxiliary columns does it do so."
            )
        completed = np.array(answer.x)
        completed[:, self.own] = X
        return completed


def _held(
    problem: LinearProgram | QuadraticProgram, lb: np.ndarray, ub: np.ndarray
) -> LinearProgram | QuadraticProgram:
    inner = problem if isinstance(problem, LinearProgram) else problem.constraints
    parts = (inner.A_eq, inner.b_eq, inner.A_ub, inner.b_ub, lb, ub)
    if isinstance(problem, LinearProgram):
        return LinearProgram(*parts)
    return QuadraticProgram(problem.gamma, problem.Q, problem.sense, *parts)
