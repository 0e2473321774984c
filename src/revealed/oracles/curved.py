"""What may be claimed of one quadratic program: nothing without proof.

    min 1/2 x^T P x + q x   subject to the rows and bounds of a linear program

A decision is optimal if it meets the first-order conditions. Infeasible is what the constraints
alone are, by multipliers that are checked (`proofs`), or as the oracle for linear programs proves
it. The objective is unbounded exactly if a ray of the constraints is flat (P r = 0) and q falls
along it: the linear program of those rays is then unbounded, which that oracle proves as well.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from ..problems.linear import LinearProgram, relative_violation
from ..problems.solution import SolveStatus
from .fallback import FEASIBLE
from .first_order import Program, gap, left_overs
from .proofs import Polyhedron, contradiction, is_bounded
from .units import even_columns, power_of_two, row_sizes

LEFT = 1e-7
"""What may be left of the first-order conditions of a decision that is called optimal."""
CONVEX = 1e-7
"""The smallest eigenvalue of the curvature may fall below 0 by this share of its largest entry, or
of what would turn the linear part round over the size of x."""
FLAT = 1e-9
"""An eigenvalue of the curvature this small, beside its largest entry, may be 0."""
GAP = 1e-10
"""How far the objective of a decision may be from the least one, as a share of its terms, where it
is not clear which rows bind (slacks and multipliers are both near 0)."""
PLAIN = 1e-6
"""Multipliers that contradict each other this clearly need no second opinion."""


class Case:
    """One program, what was tried and what is known of it."""

    def __init__(self, problem: LinearProgram, program: Program, A: Any) -> None:
        """`A` has the rows of the program as they were before they had size 1."""
        self.problem, self.program, self.P = problem, program, program.P
        self.row_sizes = row_sizes(A)
        self.seen: np.ndarray | None = None  # what a solver last called optimal
        self.kept = np.inf, program.q  # gap and x of the best that is not exact
        self.even = program.even()
        """The program in other units (`Program.even`)."""
        even, columns, _ = self.even
        least, largest = least_eigenvalue(even.P), np.abs(even.P).max(initial=0.0)
        turn = np.abs(even.q).max(initial=0.0) / even.unit  # would turn q round over the size of x
        self.is_convex = least >= -CONVEX * max(largest, turn)
        self.is_flat = least <= FLAT * largest
        if least < 0.0:  # of rounding
            shift = -least * np.eye(len(columns))
            self.even = even._replace(P=even.P + shift), *self.even[1:]
            self.program = program._replace(P=program.P + shift / columns**2)

    def unit_of(self, program: Program, columns: Any) -> float:
        """What x / columns is measured in: as large as it was found to be, if it was."""
        if self.seen is None:
            return program.unit
        return power_of_two(np.abs(self.seen / columns).max(initial=0.0))

    def optimal(self, x: np.ndarray, z: np.ndarray) -> SolveStatus:
        """Whether x and multipliers z of the rows prove each other, in either units."""
        program, columns, rows = self.even
        if not relative_violation(self.problem, x[None])[0] <= FEASIBLE:
            return SolveStatus.FAILED
        plain = left_overs(self.program, x, z)
        even = left_overs(program, x / columns, z / rows)
        if max(*plain[:2], *even[:2]) > LEFT:
            return SolveStatus.FAILED
        # Slacks and multipliers are held against the largest x and the largest slope: beside an x
        # of 1e10 in rows of its own, a slack of 1000 looks like rounding. The gap knows what both
        # together cost.
        over = gap(self.program, x, z)
        if max(plain[2], even[2], over) > LEFT:
            if over < self.kept[0]:
                self.kept = over, x
            return SolveStatus.FAILED
        return self._unless_it_falls()

    def _unless_it_falls(self) -> SolveStatus:
        """OPTIMAL, unless the objective falls without limit, but so little that it looks flat."""
        open_ended = self.is_flat and not is_bounded(self._polyhedron)
        return self._falls_for_ever if open_ended else SolveStatus.OPTIMAL

    def infeasible(self, z: np.ndarray) -> SolveStatus:
        """Whether multipliers prove it, or else the linear oracle."""
        if np.isfinite(z).all() and contradiction(self._polyhedron, self._multipliers(z)) > PLAIN:
            return SolveStatus.INFEASIBLE
        empty = self._anyone is SolveStatus.INFEASIBLE
        return SolveStatus.INFEASIBLE if empty else SolveStatus.FAILED

    def unbounded(self) -> SolveStatus:
        """Whether there is a decision, and a ray."""
        if self._anyone is SolveStatus.INFEASIBLE:
            return SolveStatus.INFEASIBLE
        falls = self.is_flat and self._falls_for_ever is SolveStatus.UNBOUNDED
        return SolveStatus.UNBOUNDED if falls else SolveStatus.FAILED

    def unanswered(self) -> tuple[SolveStatus, np.ndarray]:
        """Where no method found a decision and its active rows: the best one, if its objective
        is proved to be the least; else why there is none, as far as linear programs can tell."""
        over, x = self.kept
        if over <= GAP and self._unless_it_falls() is SolveStatus.OPTIMAL:
            return SolveStatus.OPTIMAL, x
        return self.unbounded(), np.full(self.problem.n_variables, np.nan)

    @cached_property
    def _anyone(self) -> SolveStatus:
        """OPTIMAL if there is a decision at all."""
        status = self.problem.solve(np.zeros((1, self.problem.n_variables)), threads=1).status[0]
        return SolveStatus(int(status))

    @cached_property
    def _falls_for_ever(self) -> SolveStatus:
        """UNBOUNDED if the objective falls along a flat ray; OPTIMAL if it falls along none."""
        at, P = self._polyhedron, sparse.csr_array(self.P)
        inequalities: Any = at.A[at.n_eq :]
        q = self.program.q
        if not q.any():
            return SolveStatus.OPTIMAL
        ends = np.isfinite(at.b[at.n_eq :])
        A_ub = inequalities[ends]
        A_eq: Any = sparse.vstack([P, at.A[: at.n_eq]], format="csr")
        cone = LinearProgram(
            A_eq=A_eq,
            b_eq=np.zeros(A_eq.shape[0]),
            A_ub=A_ub,
            b_ub=np.zeros(A_ub.shape[0]),
            lb=np.where(np.isfinite(at.lb), 0.0, -np.inf),
            ub=np.where(np.isfinite(at.ub), 0.0, np.inf),
        )
        found = SolveStatus(int(cone.solve(q[None], threads=1).status[0]))
        if found is SolveStatus.UNBOUNDED and self._anyone is not SolveStatus.OPTIMAL:
            return SolveStatus.FAILED
        known = (SolveStatus.UNBOUNDED, SolveStatus.OPTIMAL)
        return found if found in known else SolveStatus.FAILED

    @cached_property
    def _polyhedron(self) -> Polyhedron:
        at = Polyhedron.of(self.problem, 0)
        return at._replace(columns=even_columns(at.A))

    def _multipliers(self, z: np.ndarray) -> np.ndarray:
        """Of the rows of the problem, from those of the program's rows, which have size 1."""
        at, n_eq = self._polyhedron, self._polyhedron.n_eq
        z, n_zero = z / self.row_sizes, self.program.n_zero
        w = np.zeros(len(at.b))
        w[:n_eq] = z[:n_eq]
        binds = n_eq + np.flatnonzero(np.isfinite(at.b[n_eq:]))
        w[binds] = z[n_zero : n_zero + len(binds)]
        return w


def least_eigenvalue(P: np.ndarray) -> float:
    """Of a symmetric matrix; read off where it is diagonal."""
    diagonal = np.diagonal(P)
    if np.count_nonzero(P) == np.count_nonzero(diagonal):
        return float(diagonal.min())
    return float(np.linalg.eigvalsh(P)[0])
