"""The answer to `problem.solve`: decisions, their cost, and how each instance ended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from .._common.words import count, tally


class SolveStatus(IntEnum):
    """How one instance ended; `sentence` says what to do about it.

    `Solution.status` holds the codes as int8: `SolveStatus(int(code)).sentence`.

    OPTIMAL, INFEASIBLE and UNBOUNDED are proved for linear and quadratic programs, whatever a
    solver says: OPTIMAL by a `constraint_violation` of at most 1e-7 and multipliers, INFEASIBLE by
    multipliers under which the constraints contradict each other, UNBOUNDED by a decision and a
    ray. All are checked in the problem's own numbers. Coefficients may be off in their last digits,
    and right-hand sides by rounding (1e-13 of the size of x): such differences prove nothing.
    """

    OPTIMAL = 0
    INFEASIBLE = 1
    UNBOUNDED = 2
    LIMIT = 3
    FAILED = 4

    @property
    def sentence(self) -> str:
        return _SENTENCES[self]


_SENTENCES = {
    SolveStatus.OPTIMAL: "A decision of minimum cost was found, and obeys every constraint.",
    SolveStatus.INFEASIBLE: "No decision obeys all constraints; look at the rows and bounds.",
    SolveStatus.UNBOUNDED: (
        "The cost falls without limit; bound the variables with negative cost, or check its sign."
    ),
    SolveStatus.LIMIT: "Stopped at `time_limit` before the optimum was reached; raise it.",
    SolveStatus.FAILED: (
        "Nothing was proved: no decision that obeys the constraints to 1e-7 and is the best, nor "
        "that there is none. Rescale variables, rows and costs to numbers near 1."
    ),
}


@dataclass(frozen=True, eq=False)
class Solution:
    """Decisions of minimum cost for a batch; numpy or torch, as the costs were."""

    x: Any
    """(B, n) decisions, NaN where the status is not OPTIMAL."""
    objective: Any
    """(B,) cost <c, x> of each decision, NaN where the status is not OPTIMAL."""
    status: Any
    """(B,) int8 codes of `SolveStatus`."""

    def __repr__(self) -> str:
        size, n = tuple(self.x.shape)
        told = tally(self.status, SolveStatus)
        return f"{type(self).__name__}({count(size, 'decision')} of {n} variables: {told})"

    @property
    def optimal(self) -> Any:
        """(B,) bool."""
        return self.status == SolveStatus.OPTIMAL

    def __len__(self) -> int:
        return len(self.status)


@dataclass(frozen=True, eq=False, repr=False)
class IntegerSolution(Solution):
    """Decisions of an integer problem, with what was found where the optimum was not proved."""

    incumbent: Any
    """(B, n) the best feasible decision found, the optimum where the status is OPTIMAL; NaN where
    none was found. It has been checked."""
    bound: Any
    """(B,) no feasible decision costs less than this, -inf where nothing is known: the objective
    where the status is OPTIMAL, else what the solver proved before it stopped."""
