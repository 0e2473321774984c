"""How much worse is the predicted decision than the observed one, as costs see it that are not the
true ones: the paper's Gamma, its form free of scale, and its two predecessors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..problems.linear import LinearProgram
from ..projection import project
from .batch import case_of, decide, sets_of
from .formulas import cost_of, gamma_of, length, over


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
    return case.restore(gamma_of(case, decide(case), nearest))


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
        length(case.costs), np.finfo(float).tiny
    )
    scaled = case.costs * unit[:, None]
    gamma = gamma_of(case, decide(case), project(scaled, sets).point)
    return case.restore(np.where(length(scaled) > 0, gamma, np.nan))


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
    return case.restore(cost_of(case.costs, case.decisions - decide(case)))


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
    gap = cost_of(case.costs, case.decisions - decide(case))
    return case.restore(over(gap, length(case.costs)))
