"""Sets of costs that multipliers explain: of plain costs, and of the parameters behind them.

    c = A_eq^T v - A_ub^T mu + s        signs of s and mu as in `OptimalitySet`

PlainCosts    c itself is what is predicted
Parameters    c is the gradient of the objective, an affine function of what is predicted (a cost
              form, a quadratic or convex problem), conditions may be missed at a price (soft), or
              cones with a corner have normals besides those of rows

Letters: B decisions, n entries, m_ub inequality rows, p parameters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._common.affine import AffineMap
from .._common.arrays import Choice
from ..errors import InfeasibleDecisionError
from ..problems.catalogue.edge_orders import in_pyepo_order
from ..problems.cones import Normals
from ..problems.linear import LinearProgram
from ..problems.protocol import Problem, SmoothProblem
from .active_set import ActiveSet, read_active_set, refuse_infeasible
from .cost_form import CostForm
from .protocol import Terms
from .qualification import qualified, warn_unqualified


@dataclass(frozen=True, eq=False)
class Conditions:
    """Which rows and bounds hold with equality at each decision, and so may carry multipliers."""

    rows: LinearProgram
    """Those of the problem or, for curved constraints, their tangents at the decisions."""
    active: ActiveSet
    row_used: np.ndarray
    """(m_ub,) whether each inequality is active for any decision of the data set."""
    n_parameters: int
    """p"""


@dataclass(frozen=True, eq=False)
class PlainCosts(Conditions):
    """Sets of costs of a LinearProgram, with nothing in between and nothing besides rows."""

    def take(self, index: Choice, problem: Any) -> PlainCosts:
        """That of the chosen decisions, whose problem is `problem`."""
        return PlainCosts(problem, self.active.take(index), self.row_used, self.n_parameters)


@dataclass(frozen=True, eq=False)
class Parameters(Conditions):
    """Sets of parameters whose gradient, up to what is soft, meets the conditions."""

    form: CostForm | None
    soft: float | None
    gradient: AffineMap | None
    """Parameters -> gradient of the objective at each decision; None where they are the same."""
    normals: Normals | None
    """Normals that no row holds, where cones have a corner; None without such cones."""
    qualified: np.ndarray
    """(B,) whether multipliers are known to explain every cost that explains the decision."""
    semidefinite_block: tuple[int, int] | None
    """Where among the problem's parameters a positive semidefinite matrix begins, and its order."""
    prepared: Any = None
    """What the projector made of the sets when they were built; None if nothing."""

    def take(self, index: Choice, problem: Problem) -> Parameters:
        """That of the chosen decisions, whose problem is `problem`."""
        return Parameters(
            rows=problem if isinstance(problem, LinearProgram) else self.rows[index],
            active=self.active.take(index),
            row_used=self.row_used,
            n_parameters=self.n_parameters,
            form=None if self.form is None else self.form[index],
            soft=self.soft,
            gradient=None if self.gradient is None else self.gradient.take(index),
            normals=None if self.normals is None else self.normals.take(index),
            qualified=self.qualified[index],
            semidefinite_block=self.semidefinite_block,
            prepared=None if self.prepared is None else self.prepared.take(index),
        )


def read_conditions(problem: SmoothProblem, X: np.ndarray, terms: Terms) -> Conditions:
    """The conditions at decisions X (B, n), which are refused where they are infeasible."""
    rows, normals = problem.tangent(X, terms.tol)
    try:
        refuse_infeasible(rows, X, terms.tol, problem.ub_rows.shape[0])
    except InfeasibleDecisionError as error:
        raise InfeasibleDecisionError(f"{error}{_hint(problem, X)}") from None
    active = read_active_set(rows, X, terms.tol)
    used = np.asarray(active.row_active.any(axis=0))
    enough = _qualified(problem, X, rows, normals, active, terms.tol)
    form, own = terms.form, problem.gradient(X)
    if form is None:
        gradient, n_parameters = own, problem.n_parameters
    else:
        gradient, n_parameters = form.map if own is None else own.after(form.map), form.n_parameters
    beyond = (form, terms.soft, gradient, normals)
    if rows is problem and all(part is None for part in beyond):
        return PlainCosts(rows, active, used, n_parameters)
    return Parameters(
        rows,
        active,
        used,
        n_parameters,
        form=form,
        soft=terms.soft,
        gradient=gradient,
        normals=normals,
        qualified=enough,
        semidefinite_block=problem.semidefinite_block,
    )


def _qualified(
    problem: SmoothProblem,
    X: np.ndarray,
    rows: LinearProgram,
    normals: Normals | None,
    active: ActiveSet,
    tol: float,
) -> np.ndarray:
    if rows is problem:  # straight all over
        return np.ones(len(X), bool)
    result = qualified(problem, X, rows, normals, active, tol)
    warn_unqualified(result)
    return result


def _hint(problem: SmoothProblem, X: np.ndarray) -> str:
    """What else may be wrong with infeasible decisions."""
    if not isinstance(problem, LinearProgram) or not in_pyepo_order(problem, X):
        return ""
    return (
        " These are paths in PyEPO's order of edges: take decisions, and costs, as "
        "theirs[:, rv.problems.pyepo_edge_order(rows, cols)]."
    )
