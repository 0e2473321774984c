"""Decisions of many contexts, with a progress bar, and what a time limit has left open.

Letters: B contexts, n variables.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...problems.integer import IntegerProgram
from ...problems.linear import LinearProgram
from ...problems.solution import Solution, SolveStatus
from .telling import waiting

if TYPE_CHECKING:
    from ...fit.conformal import Cone

BLOCK, WHOLE_BLOCK = 65_536, 32
"""Contexts decided at a time, between two movements of the bar; fewer where a search takes long."""


class Decided(NamedTuple):
    """Decisions, and how sure it is that they are the best."""

    decisions: np.ndarray
    """(B, n) the best that were found, NaN where none was."""
    status: np.ndarray
    """(B,) codes of SolveStatus."""
    gap: np.ndarray
    """(B,) by how much another decision may be cheaper, as a share of the sum of |c_j x_j|: 0 where
    it is proved that none is, inf where nothing is known."""

    @property
    def unproved(self) -> np.ndarray:
        """(B,) bool: a decision was found, and time ran out before it was proved to be the best."""
        found = np.isfinite(self.decisions).all(axis=1)
        return np.asarray(found & (self.status != SolveStatus.OPTIMAL))


def decide(
    problem: Any,
    costs: np.ndarray,
    *,
    quiet: bool,
    seconds: float | None = None,
    cone: Cone | None = None,
) -> Decided:
    """The best decisions under costs (B, n), in the worst case over a cone if there is one; whole
    ones within about `seconds` each."""
    whole = isinstance(problem, IntegerProgram)
    size = WHOLE_BLOCK if whole else BLOCK
    blocks = [slice(k, k + size) for k in range(0, len(costs), size)]
    parts = []
    with waiting("Deciding", len(blocks), quiet=quiet or len(blocks) <= 1) as step:
        for k, part in enumerate(blocks):
            own = problem[part] if problem.n_instances is not None else problem
            parts.append(
                _whole(own, costs[part], seconds) if whole else _plain(own, costs[part], cone)
            )
            step(k + 1)
    if not parts:
        return Decided(np.empty_like(costs), np.empty(0, np.int8), np.empty(0))
    return Decided(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def without_last_bits(decisions: np.ndarray) -> np.ndarray:
    """Decisions (B, n) to 12 figures: 754.4 where a solver's last bits make 754.4000000000001."""
    size = np.abs(decisions)
    known = np.isfinite(decisions) & (size > 0)
    places = 11 - np.floor(np.log10(size, where=known, out=np.zeros_like(size)))
    unit = 10.0 ** np.clip(places, -300, 300)
    exact = unit >= 1.0  # a negative power of ten is no number in binary
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = np.where(exact, np.round(decisions * unit) / unit, decisions)
    return np.where(known & np.isfinite(rounded), rounded, decisions)


def _plain(problem: Any, costs: np.ndarray, cone: Cone | None) -> Decided:
    answer = problem.solve(costs) if cone is None else _robust(problem, costs, cone)
    status = np.asarray(answer.status)
    return Decided(np.asarray(answer.x), status, np.where(answer.optimal, 0.0, np.inf))


def _robust(problem: LinearProgram, costs: np.ndarray, cone: Cone) -> Solution:
    from ...fit.conformal import decide as decide_robustly

    return decide_robustly(problem, costs, cone.angle)


def _settled(problem: IntegerProgram, costs: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Decisions (B, n) with the same whole entries, the others at the exact vertex that is best
    beside these: branch and bound leaves them with rounding."""
    found = X.copy()
    at = np.flatnonzero(np.isfinite(X).all(axis=1))
    if not at.size:
        return found
    rows = problem[at].relaxation
    low, high = (np.where(problem.integer, X[at], bound) for bound in (rows.lb, rows.ub))
    fixed = LinearProgram(rows.A_eq, rows.b_eq, rows.A_ub, rows.b_ub, low, high)
    answer = fixed.solve(costs[at])
    good = np.asarray(answer.optimal)
    found[at[good]] = np.asarray(answer.x)[good] + 0.0
    return found


def _whole(problem: IntegerProgram, costs: np.ndarray, seconds: float | None) -> Decided:
    threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    # The limit of a call is shared out over its instances, which the threads take in turn.
    limit = None if seconds is None else seconds * -(-len(costs) // threads)
    answer = problem.solve(costs, time_limit=limit, threads=threads)
    X, status = np.asarray(answer.incumbent), np.asarray(answer.status)
    if not problem.integer.all():
        X = _settled(problem, costs, X)
    there = np.asarray(np.isfinite(X).all(axis=1))
    own = np.where(there[:, None], X, 0.0)
    spent = np.abs(costs * own).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        gap = ((costs * own).sum(axis=1) - np.asarray(answer.bound)) / spent
    gap = np.where(there & np.isfinite(gap), np.maximum(gap, 0.0), np.inf)
    return Decided(X, status, np.where(status == SolveStatus.OPTIMAL, 0.0, gap))
