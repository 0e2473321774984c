"""How good are predicted costs? One number for each instance, smaller is better unless said.

    decision_loss                  |x(c) - x*|^2                  always
    exact                          is x(c) = x*, as ties fall?    always; larger is better
    in_set                         does c explain x*?             always; larger is better
    accuracy                       the same as exact, ties shared always; larger is better
    suboptimality                  <P(c)/|P(c)|, x(c) - x*>       always: the paper's Gamma
    relative_suboptimality         Gamma of c at the margin's scale    always: free of scale
    suboptimality_loss             <c, x* - x(c)>                 always: its first predecessor
    normalized_suboptimality_loss  <c/|c|, x* - x(c)>             always: its second predecessor
    estimate_loss                  <c*, x(c) - x*>                needs the true costs c*
    relative_regret                its sum over that of <c*, x*>  needs c*; one number in all
    optimal                        is x(c) as good as x*?         needs c*; larger is better

x(c) is the decision of minimum predicted cost, x* the observed one, P(c) the nearest cost that
explains x*. Costs and decisions are (B, n), numpy or torch, and so is the answer; decisions may
be an `OptimalitySet` or `DeviceSets`, whose own constraints are then used. A predicted cost for
which no optimal decision exists is refused by name: there is nothing to measure.

The first three are for any problem, with its parameters as costs; the others measure by
<c, x> and refuse what is not a `LinearProgram`.

For costs on a GPU everything that needs no projection is measured there, and only whether there is
a decision, or a single number, is read back.

Letters: B instances, n cost entries.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._common.checks import check_whole
from .._common.device import is_cuda
from ..errors import InputError
from ..optimality.sets import OptimalitySet
from ..problems.linear import LinearProgram
from ..problems.protocol import Problem
from ..problems.solution import SolveStatus
from ..projection import project
from .batch import (
    Case,
    case_of,
    decide,
    on_host,
    sets_of,
    solve,
    tolerance_of,
    true_case_of,
    truth_beside,
)
from .sameness import TIE, same_decision

OPTIMAL = 1e-4
"""Relative: how far above the optimum true decisions may cost; those of an interior-point solver
do by 1e-6."""
NOISE = 1e-6
"""Ties are broken by noise of this size, relative to the largest entry of the cost."""
CLEAR = 30.0
"""What is decided by this many times the noise counts as decided, without a draw."""
BLANK = 1e-8
"""A projected cost below this share of the predicted one has no direction left."""


def decision_loss(problem: Problem, *, costs: Any, decisions: Any) -> Any:
    """(B,): |x(c) - x*|^2. For 0/1 decisions, the number of entries that differ.

    Parameters
    ----------
    problem : Problem
        Of any kind.
    costs : (B, p) array or tensor
        Predicted costs, or parameters of the problem.
    decisions : (B, n) array or tensor, or OptimalitySet
        Observed decisions.

    Returns
    -------
    (B,) array or tensor
    """
    case = case_of(problem, costs, decisions, stay=True, linear=False)
    return case.restore(_squared_difference(decide(case), case.decisions))


def estimate_loss(
    problem: LinearProgram, *, costs: Any, decisions: Any = None, true_costs: Any
) -> Any:
    """(B,): <c*, x(c) - x*>, what acting on the prediction costs in truth (the SPO loss, regret).

    Parameters
    ----------
    problem : LinearProgram
    costs : (B, n) array or tensor
        Predicted costs.
    decisions : (B, n) array or tensor, or OptimalitySet, optional
        Should be optimal under `true_costs`; None solves for them. Where they are not, a
        prediction that does better shows as a negative number.
    true_costs : (B, n) array or tensor

    Returns
    -------
    (B,) array or tensor
    """
    case, truth = true_case_of(problem, costs, decisions, true_costs)
    return case.restore(_cost_of(truth, decide(case) - case.decisions))


def relative_regret(
    problem: LinearProgram, *, costs: Any, decisions: Any = None, true_costs: Any
) -> float:
    """One number: the sum of `estimate_loss` over the sum of |<c*, x*>|, as in the literature.

    Parameters
    ----------
    problem : LinearProgram
    costs : (B, n) array or tensor
        Predicted costs.
    decisions : (B, n) array or tensor, or OptimalitySet, optional
        None solves for them.
    true_costs : (B, n) array or tensor

    Returns
    -------
    float

    Raises
    ------
    InputError
        If `decisions` are not optimal under `true_costs` (observed with noise, say): a share of
        the optimum would mean nothing. Also if all optimal values are 0.
    """
    case, truth = true_case_of(problem, costs, decisions, true_costs)
    return _share_of_optimum(case, truth, _cost_of(truth, decide(case) - case.decisions))


def optimal(problem: LinearProgram, *, costs: Any, decisions: Any = None, true_costs: Any) -> Any:
    """(B,): 1 where x(c) costs no more than x* in truth (to a millionth), else 0.

    The mean is the share of decisions that lose nothing, whether or not they are the observed ones:
    of several that are best any will do. Arguments are those of `estimate_loss`.

    Parameters
    ----------
    problem : LinearProgram
    costs, decisions, true_costs : (B, n) arrays or tensors

    Returns
    -------
    (B,) array or tensor
    """
    case, truth = true_case_of(problem, costs, decisions, true_costs)
    regret = _cost_of(truth, decide(case) - case.decisions)
    terms = _cost_of(abs(truth), abs(case.decisions))
    return case.restore(1.0 * (regret <= TIE * terms))


def exact(problem: Problem, *, costs: Any, decisions: Any) -> Any:
    """(B,): 1 where the oracle's x(c) is x*, else 0; where decisions tie that is luck.

    Plain and quick. `accuracy` gives each of several tied decisions its chance. Arguments are those
    of `decision_loss`.

    Parameters
    ----------
    problem : Problem
    costs : (B, p) array or tensor
    decisions : (B, n) array or tensor, or OptimalitySet

    Returns
    -------
    (B,) array or tensor
    """
    case = case_of(problem, costs, decisions, stay=True, linear=False)
    return case.restore(1.0 * same_decision(decide(case), case.decisions, tolerance_of(decisions)))


def suboptimality(
    problem: LinearProgram, *, costs: Any, decisions: Any, margin: float | None = 1.0
) -> Any:
    """(B,): Gamma = <P(c)/|P(c)|, x(c) - x*>: how much worse x(c) is than x* under the nearest
    cost that explains x*, taken at length 1.

    Never negative, and 0 exactly if x(c) is as good as x* under that cost. Unlike its
    predecessors it cannot be made small by small costs or by costs near a tie. It does not change
    when costs and margin are measured in another unit, and for decisions in [0, 1] its mean is at
    most sqrt(2 n h) / delta (see `revealed.theory.gamma_bound`).

    It does change with the scale of c alone: at a fixed margin, longer costs with the same
    decisions have a smaller Gamma, for |P(c)| grows and the margin with it does not. A model whose
    costs are long can so be ranked before one whose decisions are better. To compare models, use
    `relative_suboptimality`.

    Parameters
    ----------
    problem : LinearProgram
    costs : (B, n) array or tensor
        Predicted costs.
    decisions : (B, n) array or tensor, or OptimalitySet
        Observed decisions.
    margin : float or None
        Must be that of the sets if decisions are an OptimalitySet; None takes theirs. With margin
        0 the projection of a cost that is wrong enough is 0 and has no direction.

    Returns
    -------
    (B,) array or tensor
        NaN where the projection is 0.
    """
    case = case_of(problem, costs, decisions)
    nearest = project(case.costs, sets_of(case, decisions, margin)).point
    return case.restore(_gamma(case, decide(case), nearest))


def relative_suboptimality(problem: LinearProgram, *, costs: Any, decisions: Any) -> Any:
    """(B,): Gamma of the prediction brought to the scale of the margin.

        <p/|p|, x(c) - x*>,   p = P(c |P(0)| / |c|)

    The cost keeps its direction and takes the length of the shortest cost that explains the
    decision with the margin, so neither the scale of c nor the margin matters: what is measured is
    how much worse x(c) is under the explaining cost nearest in direction. Two projections each.

    Parameters
    ----------
    problem : LinearProgram
    costs : (B, n) array or tensor
        Predicted costs.
    decisions : (B, n) array or tensor, or OptimalitySet
        Observed decisions.

    Returns
    -------
    (B,) array or tensor
        Never negative, and 0 where x(c) = x*. NaN where c is 0, or where the decision is at no
        bound, so that a cost of 0 explains it.
    """
    case = case_of(problem, costs, decisions)
    sets = sets_of(case, case.decisions, 1.0)
    unit = project(np.zeros_like(case.costs), sets).distance / np.maximum(
        _length(case.costs), np.finfo(float).tiny
    )
    scaled = case.costs * unit[:, None]
    gamma = _gamma(case, decide(case), project(scaled, sets).point)
    return case.restore(np.where(_length(scaled) > 0, gamma, np.nan))


def suboptimality_loss(problem: LinearProgram, *, costs: Any, decisions: Any) -> Any:
    """(B,): <c, x* - x(c)>, how much the observed decision costs above the predicted optimum.

    The suboptimality loss of inverse optimization (Mohajerin Esfahani, Shafieezadeh-Abadeh,
    Hanasusanto and Kuhn, 2018; for linear programs it is the absolute duality gap of Chan, Lee
    and Terekhov, 2019). It is measured in the unit of the prediction: half of c has half of it,
    and c = 0 makes it 0 for every decision. Gamma fixes that.

    Parameters
    ----------
    problem : LinearProgram
    costs : (B, n) array or tensor
    decisions : (B, n) array or tensor, or OptimalitySet

    Returns
    -------
    (B,) array or tensor
    """
    case = case_of(problem, costs, decisions, stay=True)
    return case.restore(_cost_of(case.costs, case.decisions - decide(case)))


def normalized_suboptimality_loss(problem: LinearProgram, *, costs: Any, decisions: Any) -> Any:
    """(B,): <c/|c|, x* - x(c)>, the suboptimality loss of the prediction at length 1.

    Free of the scale of c, and NaN at c = 0. Still measured by the prediction itself: near a tie
    it is close to 0 however wrong the decision. Gamma asks a cost that explains x* instead.

    Parameters
    ----------
    problem : LinearProgram
    costs : (B, n) array or tensor
    decisions : (B, n) array or tensor, or OptimalitySet

    Returns
    -------
    (B,) array or tensor
    """
    case = case_of(problem, costs, decisions, stay=True)
    gap = _cost_of(case.costs, case.decisions - decide(case))
    return case.restore(_over(gap, _length(case.costs)))


def in_set(
    problem: Problem,
    *,
    costs: Any,
    decisions: Any,
    margin: float | None = 1.0,
    tol: float = 1e-8,
) -> Any:
    """(B,): 1 where the cost explains the decision with the margin, else 0.

    The mean is the share inside. Nothing is solved, one projection each.

    Parameters
    ----------
    problem : Problem
        Of any kind.
    costs : (B, p) array or tensor
        Predicted costs, or parameters of the problem.
    decisions : (B, n) array or tensor, or OptimalitySet
    margin : float or None
        Must be that of the sets if decisions are an OptimalitySet; None takes theirs.
    tol : float
        The distance from the set, relative to |c|, that counts as none.

    Returns
    -------
    (B,) array or tensor
    """
    case = case_of(problem, costs, decisions, linear=False)
    inside = np.asarray(sets_of(case, decisions, margin).contains(case.costs, tol=tol))
    return case.restore(inside.astype(np.float64))


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
    gap = _cost_of(case.costs, case.decisions - X)
    tied = ~matched & (gap <= limit * np.linalg.norm(X - case.decisions, axis=1))
    # A vertex that every reduced cost speaks for by the limit is the only optimum.
    hits = np.flatnonzero(matched)
    tied[hits] = ~np.asarray(sets[hits].contains(case.costs[hits], tol=1e-9))
    noise = _noise(draws, case.costs.shape[1], seed)
    for b in np.flatnonzero(tied):
        score[b] = _chance(case.take(int(b)), noise, tol)
    return case.restore(score)


def summary(
    problem: LinearProgram,
    *,
    costs: Any,
    decisions: Any,
    true_costs: Any = None,
    margin: float | None = 1.0,
) -> dict[str, float]:
    """Means over the batch by name, from one solve and one projection.

    Parameters
    ----------
    problem : LinearProgram
    costs : (B, n) array or tensor
    decisions : (B, n) array or tensor, or OptimalitySet
    true_costs : (B, n) array or tensor, optional
    margin : float or None
        As for `suboptimality`.

    Returns
    -------
    dict of float
        `decision_loss`, `suboptimality` and its two predecessors, `h` (1/2 dist^2), `in_set`; with
        true costs also `estimate_loss` and `relative_regret`. NaN for an empty batch.
    """
    case = case_of(problem, costs, decisions)
    X, sets = decide(case), sets_of(case, decisions, margin)
    p = project(case.costs, sets)
    length = np.linalg.norm(case.costs, axis=1)
    gap = _cost_of(case.costs, case.decisions - X)
    each = {
        "decision_loss": _squared_difference(X, case.decisions),
        "suboptimality": _gamma(case, X, p.point),
        "suboptimality_loss": gap,
        "normalized_suboptimality_loss": _over(gap, length),
        "h": 0.5 * p.distance**2,
        "in_set": p.solved & (p.distance <= 1e-8 * np.maximum(length, sets.margins)),
    }
    means = {name: _mean(values) for name, values in each.items()}
    if true_costs is not None:
        truth = truth_beside(case.costs, true_costs)
        regret = _cost_of(truth, X - case.decisions)
        means["estimate_loss"] = _mean(regret)
        means["relative_regret"] = _share_of_optimum(case, truth, regret) if len(X) else np.nan
    return means


# --- formulas, on arrays and on tensors ----------------------------------------------------------


def _squared_difference(X: Any, Y: Any) -> Any:
    return ((X - Y) ** 2).sum(1)


def _cost_of(C: Any, X: Any) -> Any:
    return (C * X).sum(1)


def _length(C: Any) -> Any:
    return (C * C).sum(1) ** 0.5


def _over(value: Any, length: Any) -> Any:
    """value / length, NaN where the length is 0."""
    if is_cuda(value):
        return value / length.where(length > 0, np.nan)
    return np.divide(value, length, out=np.full(len(value), np.nan), where=length > 0)


def _mean(values: np.ndarray) -> float:
    return float(np.mean(values)) if len(values) else np.nan


def _gamma(case: Case, X: np.ndarray, nearest: np.ndarray) -> np.ndarray:
    length = np.linalg.norm(nearest, axis=1)
    length[length <= BLANK * np.linalg.norm(case.costs, axis=1)] = 0.0
    return _over(_cost_of(nearest, X - case.decisions), length)


def _share_of_optimum(case: Case, truth: Any, regret: Any) -> float:
    """Sum of regrets over sum of optimal values, once the decisions have proved optimal."""
    value = _cost_of(truth, case.decisions)
    best = _cost_of(truth, solve(case.problem, truth, "true"))
    above = value - best > OPTIMAL * _cost_of(abs(truth), abs(case.decisions))
    if bool(above.any()):
        value, best, bad = on_host(value), on_host(best), np.flatnonzero(on_host(above))
        raise InputError(
            f"Decision {bad[0]} costs {value[bad[0]]:.6g} under its true cost, where "
            f"{best[bad[0]]:.6g} is possible ({len(bad)} of {len(value)} decisions are not "
            "optimal). Regret is relative to the optimum: use decisions=None to solve for it."
        )
    total = float(abs(value).sum())
    if not total > 0:
        raise InputError(
            "Relative regret needs optimal values other than 0 to be relative to; all "
            f"{len(value)} are 0. Use `estimate_loss`."
        )
    return float(regret.sum()) / total


# --- ties ----------------------------------------------------------------------------------------


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
