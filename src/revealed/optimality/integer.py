"""Sets of costs under which no other whole decision is cheaper.

    C = { c : <c, x - x*> >= margin d(x) for every feasible x }

    d(x) = sum_j w_j |x_j - x*_j|  over the entries j at a bound at x*

On these entries d is linear, d(x) = <g, x - x*> with g_j = w_j at the lower and -w_j at the upper
bound; for 0/1 variables and w = 1 it is the Hamming distance. So C = margin g + K with the cone
K = { c : <c, x - x*> >= 0 }, and is never empty: margin g itself explains the decision. Where x* is
in the middle of other decisions, K holds nothing but costs that are indifferent between them.
Letters: B decisions, n variables.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .._common.arrays import Choice
from ..errors import InfeasibleDecisionError, InputError
from ..problems.integer import IntegerProgram
from ..problems.protocol import Problem
from .alternatives import Alternatives, alternatives_of
from .protocol import Terms


@dataclass(frozen=True, eq=False)
class IntegerCosts:
    """Sets of costs of an IntegerProgram or OracleProblem."""

    problem: IntegerProgram
    observed: np.ndarray
    """(B, n) the decisions, their whole entries rounded."""
    direction: np.ndarray
    """(B, n) g"""
    least: np.ndarray
    """(B,) no other decision has a smaller d; 0 where some may have d = 0."""
    number: np.ndarray
    """(B,) of each decision among `alternatives`, which keep its cuts."""
    group: np.ndarray
    """(B,) of each decision: which others have the same constraints."""
    alternatives: Alternatives
    """Kept with the problem: what one projection has found serves the next ones."""
    known_only: bool = False
    """Whether the sets are those of the cuts known now: larger, and projected onto without asking
    an oracle."""

    @property
    def n_parameters(self) -> int:
        return self.problem.n_parameters

    def take(self, index: Choice, problem: Problem) -> IntegerCosts:
        """That of the chosen decisions, whose problem is `problem`."""
        return replace(
            self,
            problem=problem,
            observed=self.observed[index],
            direction=self.direction[index],
            least=self.least[index],
            number=self.number[index],
            group=self.group[index],
        )

    def report(self) -> str:
        """What is known of the sets, in words."""
        own = np.unique(self.number)
        held = sum(len(self.alternatives.cuts[s]) for s in own)
        points = sum(len(self.alternatives.points[g]) for g in np.unique(self.group))
        text = (
            f"{len(self.number)} whole decisions, {len(own)} of them distinct; {points} feasible "
            f"decisions are known, of which {held / max(len(own), 1):.1f} for each distinct one "
            "have cut off costs."
        )
        inner = np.flatnonzero(self.least == 0)
        if inner.size:
            text += (
                f" {inner.size} decisions (first: {inner[0]}) have entries between their bounds; "
                "the margin does not count these."
            )
        return text


def read_alternatives(problem: IntegerProgram, X: np.ndarray, terms: Terms) -> IntegerCosts:
    """The sets of decisions X (B, n), which are refused unless whole and feasible."""
    if terms.form is not None or terms.soft is not None:
        raise InputError(
            "`form` and `soft` are for linear, quadratic and convex programs; sets of whole "
            "decisions are of plain costs, and never empty. Leave them out."
        )
    _refuse(problem, X, terms.tol)
    observed = np.ascontiguousarray(problem.rounded(X))
    direction, least = _distance(problem, observed, terms.tol)
    alternatives = alternatives_of(problem)
    number, group = alternatives.enter(problem, observed)
    return IntegerCosts(
        problem=problem,
        observed=observed,
        direction=direction,
        least=least,
        number=number,
        group=group,
        alternatives=alternatives,
    )


def _refuse(problem: IntegerProgram, X: np.ndarray, tol: float) -> None:
    fraction = problem.fraction(X)
    bad = np.flatnonzero(fraction > tol)
    if bad.size:
        b = bad[0]
        off = np.abs(X[b] - np.round(X[b])) * problem.integer
        raise InfeasibleDecisionError(
            f"Decision {b} is not whole: entry {int(off.argmax())} is {X[b, off.argmax()]:.6g} "
            f"({bad.size} of {len(X)} decisions have such entries). Give whole decisions, or learn "
            "from the relaxation, `problem.relaxation`, if fractions are meant."
        )
    violation = np.asarray(problem.constraint_violation(problem.rounded(X)))
    bad = np.flatnonzero(~(violation <= tol))
    if bad.size:
        raise InfeasibleDecisionError(
            f"Decision {bad[0]} breaks its constraints by {violation[bad[0]]:.3g}, relative to "
            f"their size ({bad.size} of {len(X)} decisions do). Check rows, bounds and "
            "right-hand sides, or the decision."
        )


def _distance(problem: IntegerProgram, X: np.ndarray, tol: float) -> tuple[np.ndarray, np.ndarray]:
    """g (B, n) of the distance from decisions X, and its least value (B,) at other decisions."""
    lb, ub = np.broadcast_to(problem.lb, X.shape), np.broadcast_to(problem.ub, X.shape)
    open_ = lb < ub
    at_lower = open_ & (X - lb <= tol * (1.0 + np.abs(np.where(np.isfinite(lb), lb, 0.0))))
    at_upper = open_ & (ub - X <= tol * (1.0 + np.abs(np.where(np.isfinite(ub), ub, 0.0))))
    direction = problem.distance * (at_lower.astype(float) - (at_upper & ~at_lower))
    # Whole entries at a bound move by one or more; others may move without any distance.
    counted = ~open_ | ((at_lower | at_upper) & problem.integer)
    smallest = np.where(open_, problem.distance, np.inf).min(axis=1, initial=np.inf)
    least = np.where(counted.all(axis=1), smallest, 0.0)
    return direction, np.where(np.isfinite(least), least, 1.0)
