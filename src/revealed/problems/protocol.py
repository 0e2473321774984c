"""What a forward problem offers, and all that the rest of the library relies on.

    Problem           decisions of minimum cost, and whether a decision is feasible
    LinearObjective   what is predicted is a cost for each variable, and a decision costs <c, x>
    SmoothProblem     decisions that multipliers explain: an objective and constraints with
                      gradients

A new kind of problem is a class with these members and a registered oracle. Subclass the protocol
to have what is written out here; a class that only has the members serves as well. Letters: B
instances, n variables, p parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np

from .._common.affine import AffineMap
from .._common.arrays import as_costs
from .._common.registry import Registry
from .._common.rows import Rows
from ..errors import InputError, ShapeError
from .cones import Normals
from .solution import Solution

if TYPE_CHECKING:
    from .linear import LinearProgram


@runtime_checkable
class Problem(Protocol):
    """What a decision maker may do, waiting for costs; one problem or a batch of them.

    A problem never changes once built. Its parameters are what is predicted: a cost for each
    variable, unless the kind of problem says otherwise.
    """

    n_variables: int
    """n, the length of a decision."""
    n_parameters: int
    """p, the length of what is predicted."""
    n_instances: int | None
    """B where anything differs by instance, None where all instances are alike."""

    @property
    def shape(self) -> tuple[int, ...]:
        """What two problems must have in common for decisions of one to be decisions of the other:
        (m_eq, m_ub, n) for problems of rows."""
        return (self.n_variables,)

    def solve(
        self, costs: Any, *, time_limit: float | None = None, threads: int | None = None
    ) -> Solution:
        """Decisions of minimum cost, by the oracle that is registered for this kind of problem.

        Parameters
        ----------
        costs : (B, p) array or tensor
        time_limit : float, optional
            Seconds for the whole call; instances not reached have status LIMIT.
        threads : int, optional
            As many as there are processors unless given.

        Returns
        -------
        Solution
            Decisions (B, n), objectives (B,) and a status for each instance.
        """
        return ORACLES.of(self)(self, costs, time_limit=time_limit, threads=threads)

    def repair(self, decisions: Any) -> Any:
        """The nearest feasible decisions.

        Parameters
        ----------
        decisions : (B, n) array or tensor

        Returns
        -------
        (B, n) array or tensor
            NaN where there is none.
        """
        X, restore = as_costs(decisions, self.n_variables, "decisions")
        self.check_batch(len(X), "decisions")
        return restore(REPAIRS.of(self)(self, X))

    def constraint_violation(self, decisions: Any) -> Any:
        """(B,): the largest relative violation of any constraint by each decision.

        Parameters
        ----------
        decisions : (B, n) array or tensor

        Returns
        -------
        (B,) array or tensor
        """
        ...

    def check_batch(self, size: int, name: str) -> None:
        """Refuse a batch of the wrong length; a problem without instances takes any length."""
        ...

    def __getitem__(self, index: Any) -> Self:
        """The problem of the chosen instances: an integer, slice, mask or integer array."""
        ...


@runtime_checkable
class LinearObjective(Problem, Protocol):
    """A problem in which what is predicted is a cost for each variable, and a decision x costs
    <c, x>: what regret, accuracy and losses that only ask an oracle need to know."""

    costs_are_linear: bool = True


class Tangent(NamedTuple):
    """A problem's constraints as seen from feasible decisions."""

    rows: LinearProgram
    """Rows and bounds whose normals, where they are active, explain a decision."""
    normals: Normals | None = None
    """Normals beyond those of rows, where cones have a corner."""


@runtime_checkable
class SmoothProblem(Problem, Protocol):
    """A problem whose decisions are explained by first-order conditions.

    The gradient of its objective is affine in the parameters, and its constraints are rows, bounds
    and whatever has tangents; `OptimalitySet` reads its sets from these.
    """

    eq_rows: Rows
    ub_rows: Rows
    """Of the rows that are the same at every decision; tangents come after them."""
    semidefinite_block: tuple[int, int] | None
    """Where among the parameters a positive semidefinite matrix begins, and its order."""

    def gradient(self, X: np.ndarray) -> AffineMap | None:
        """Parameters -> the gradient of the objective at decisions X (B, n); None where the
        parameters are the gradient."""
        ...

    def tangent(self, X: np.ndarray, tol: float) -> Tangent:
        """The constraints as seen from decisions X (B, n), active within `tol`."""
        ...

    def is_strictly_inside(self, x: np.ndarray, tol: float) -> bool:
        """Whether a decision x (n,), feasible for rows and bounds, obeys every curved constraint
        with more than `tol` to spare."""
        return True


Oracle = Callable[..., Solution]
"""(problem, costs, *, time_limit, threads) -> Solution"""
Repair = Callable[[Any, np.ndarray], np.ndarray]
"""(problem, X (B, n)) -> the nearest feasible decisions (B, n), NaN where there is none."""

ORACLES: Registry[Oracle] = Registry("oracle", home="revealed.oracles")
REPAIRS: Registry[Repair] = Registry("repair of infeasible decisions", home="revealed.oracles")


def check_problem(problem: Any) -> None:
    """Refuse what is not a problem."""
    if not isinstance(problem, Problem):
        raise InputError(
            f"`problem` must be a LinearProgram; got {type(problem).__name__}. Build one with "
            "rv.LinearProgram(...) or from rv.problems; a QuadraticProgram or a ConvexProgram "
            "will do too, and so will any class with the members of revealed.problems.Problem."
        )


def check_same_shape(given: Problem, expected: Problem) -> None:
    """Refuse sets of a problem with other variables or rows than `expected`."""
    if given.shape != expected.shape:
        raise ShapeError(f"The sets are of another problem: {given!r} instead of {expected!r}.")
