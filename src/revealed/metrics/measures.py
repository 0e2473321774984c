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

from ..errors import InputError
from ..problems.linear import LinearProgram
from ..problems.protocol import Problem
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
from .formulas import cost_of, gamma_of, over, squared_difference
from .sameness import TIE, same_decision

OPTIMAL = 1e-4
"""Relative: how far above the optimum true decisions may cost; those of an interior-point solver
do by 1e-6."""


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
    return case.restore(squared_difference(decide(case), case.decisions))


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
    return case.restore(cost_of(truth, decide(case) - case.decisions))


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
    return _share_of_optimum(case, truth, cost_of(truth, decide(case) - case.decisions))


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
    regret = cost_of(truth, decide(case) - case.decisions)
    terms = cost_of(abs(truth), abs(case.decisions))
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
    gap = cost_of(case.costs, case.decisions - X)
    each = {
        "decision_loss": squared_difference(X, case.decisions),
        "suboptimality": gamma_of(case, X, p.point),
        "suboptimality_loss": gap,
        "normalized_suboptimality_loss": over(gap, length),
        "h": 0.5 * p.distance**2,
        "in_set": p.solved & (p.distance <= 1e-8 * np.maximum(length, sets.margins)),
    }
    means = {name: _mean(values) for name, values in each.items()}
    if true_costs is not None:
        truth = truth_beside(case.costs, true_costs)
        regret = cost_of(truth, X - case.decisions)
        means["estimate_loss"] = _mean(regret)
        means["relative_regret"] = _share_of_optimum(case, truth, regret) if len(X) else np.nan
    return means


def _mean(values: np.ndarray) -> float:
    return float(np.mean(values)) if len(values) else np.nan


def _share_of_optimum(case: Case, truth: Any, regret: Any) -> float:
    """Sum of regrets over sum of optimal values, once the decisions have proved optimal."""
    value = cost_of(truth, case.decisions)
    best = cost_of(truth, solve(case.problem, truth, "true"))
    above = value - best > OPTIMAL * cost_of(abs(truth), abs(case.decisions))
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
