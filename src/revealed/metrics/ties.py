"""The share of decisions that are met, where ties are shared."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._common.checks import check_whole
from ..errors import InputError
from ..optimality.sets import OptimalitySet
from ..problems.linear import LinearProgram
from ..problems.solution import SolveStatus
from .batch import Case, case_of, decide, tolerance_of
from .formulas import cost_of
from .sameness import same_decision

NOISE = 1e-6
"""Ties are broken by noise of this size, relative to the largest entry of the cost."""
CLEAR = 30.0
"""What is decided by this many times the noise counts as decided, without a draw."""


def accuracy(
    problem: LinearProgram, *, costs: Any, decisions: Any, draws: int = 100, seed: int = 0
) -> Any:
    """(B,): 1 where x(c) = x*, 0 where not, and the chance of x* where decisions tie.

    A constant cost makes many decisions optimal, and which of them a solver returns says nothing
    about the prediction. Such an instance scores the share of `draws` in which x* is the best
    decision after c has been disturbed by normal noise of a millionth of its largest entry. Noise
    comes in pairs of opposite sign, so each of two tied decisions scores 1/2 exactly; in general
    the standard error is at most 1/(2 sqrt(draws)). Where ties are endless (a circle that costs
    nothing), noise of any sign may leave no best decision; it is then given the sign that keeps
    variables at their only bound. The score depends on the instance, `draws` and `seed` alone, not
    on the batch.

    Cost: one solve each, one projection for those that match, and `draws` solves for each
    instance in which no decision wins by 30 times the noise.

    Parameters
    ----------
    problem : LinearProgram
    costs : (B, n) array or tensor
    decisions : (B, n) array or tensor, or OptimalitySet
    draws : int
        An even number.
    seed : int
        Of the noise.

    Returns
    -------
    (B,) array or tensor
    """
    case = case_of(problem, costs, decisions)
    check_whole(draws, "draws", 2)
    check_whole(seed, "seed", 0)
    if draws % 2:
        raise InputError(f"`draws` must be an even number: they come in pairs; got {draws}.")
    X, limit = decide(case), CLEAR * NOISE * _largest(case.costs)
    tol = tolerance_of(decisions)
    sets = OptimalitySet(case.problem, case.decisions, limit, tol=tol)
    matched = same_decision(X, case.decisions, tol)
    score = matched.astype(np.float64)
    gap = cost_of(case.costs, case.decisions - X)
    tied = ~matched & (gap <= limit * np.linalg.norm(X - case.decisions, axis=1))
    # A vertex that every reduced cost speaks for by the limit is the only optimum.
    hits = np.flatnonzero(matched)
    tied[hits] = ~np.asarray(sets[hits].contains(case.costs[hits], tol=1e-9))
    noise = _noise(draws, case.costs.shape[1], seed)
    for b in np.flatnonzero(tied):
        score[b] = _chance(case.take(int(b)), noise, tol)
    return case.restore(score)


def _largest(C: np.ndarray) -> np.ndarray:
    """(B,): the largest absolute entry; 1 for a cost of 0, which any noise decides."""
    largest = np.abs(C).max(axis=1, initial=0.0)
    return np.where(largest > 0, largest, 1.0)


def _noise(draws: int, n: int, seed: int) -> np.ndarray:
    half = np.random.default_rng(seed).standard_normal((draws // 2, n))
    return np.vstack([half, -half])


def _chance(one: Case, noise: np.ndarray, tol: float) -> float:
    """The share of draws in which the decision of this instance is the best."""
    problem: Any = one.problem[np.zeros(len(noise), np.int64)]
    unit = one.costs / _largest(one.costs)[:, None]
    answer = problem.solve(unit + NOISE * noise)
    if (answer.status == SolveStatus.UNBOUNDED).any():
        answer = problem.solve(unit + NOISE * _signed(problem, noise))
    # A draw under which no decision is best has chosen nothing: its NaN equals no decision.
    return float(same_decision(answer.x, one.decisions, tol).mean())


def _signed(problem: LinearProgram, noise: np.ndarray) -> np.ndarray:
    """Noise that punishes leaving a bound where the other side has none."""
    low, high = np.isfinite(problem.lb), np.isfinite(problem.ub)
    sign = np.where(low & ~high, 1.0, np.where(high & ~low, -1.0, 0.0))
    return np.where(sign == 0, noise, sign * np.abs(noise))
