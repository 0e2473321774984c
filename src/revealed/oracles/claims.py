"""What a solver claims about one linear program, and its decision without rounding at bounds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..problems.linear import LinearProgram, unit_of
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
    """(n,) direction in which the cost falls without limit, where UNBOUNDED."""


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


_NEAR_BOUND = 1e-9


def snapped(problem: LinearProgram, X: np.ndarray) -> np.ndarray:
    """Decisions (B, n), moved to bounds where no row minds."""
    moved = _to_bounds(problem, X)
    return np.where(_stays_feasible(problem, X, moved)[:, None], moved, X)


def _to_bounds(problem: LinearProgram, X: np.ndarray) -> np.ndarray:
    unit = unit_of(problem, X)
    for bound in (problem.lb, problem.ub):
        with np.errstate(invalid="ignore"):  # inf - inf on missing bounds: NaN, so not near
            near = np.abs(X - bound) <= _NEAR_BOUND * (unit + np.abs(bound))
        X = np.where(near & np.isfinite(bound), bound, X)
    return X


def _stays_feasible(problem: LinearProgram, X: np.ndarray, moved: np.ndarray) -> np.ndarray:
    """(B,): whether no row's gap grew by more than rounding in the terms it adds up."""
    result = np.ones(len(X), dtype=bool)
    groups = ((problem.eq_rows, problem.b_eq, np.abs), (problem.ub_rows, problem.b_ub, _excess))
    with np.errstate(over="ignore", invalid="ignore"):  # what is not a number is not feasible
        for rows, b, gap in groups:
            terms = np.abs(b) + rows.magnitude.times(np.abs(X))
            allowed = np.maximum(gap(rows.times(X) - b), _NEAR_BOUND * terms)
            result &= (gap(rows.times(moved) - b) <= allowed).all(axis=1)
    return result


def _excess(difference: np.ndarray) -> np.ndarray:
    return np.maximum(difference, 0.0)
