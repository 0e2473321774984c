"""What a solver says of one linear program, before anyone has checked it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..problems.solution import SolveStatus


class Claim(NamedTuple):
    """A status, and what would prove it."""

    status: SolveStatus
    x: np.ndarray | None = None
    """(n,) decision, where OPTIMAL."""
    y: np.ndarray | None = None
    """(m,) multipliers of the rows, equalities first: where OPTIMAL, the derivatives of the cost by
    the right-hand sides; where INFEASIBLE, those that make the rows contradict each other."""
    ray: np.ndarray | None = None
    """(n,) direction in which the cost falls for ever, where UNBOUNDED."""


class Way(NamedTuple):
    """How to run a simplex solver."""

    dual: bool
    tol: float
    presolve: bool
    capped: bool
    """Whether to stop after `most_steps`."""


FIRST = Way(dual=False, tol=1e-9, presolve=False, capped=True)


def most_steps(m: int, n: int) -> int:
    """Simplex steps after which another way is more promising. NETLIB needs 2.3 (m + n) at most."""
    return 2000 + 10 * (m + n)
