"""One instance about which the first run of the solver left doubts: other ways, each checked, and
at last two programs that always have an answer.

*The elastic program* lets every row be broken at a price: its multipliers are those of Farkas where
the constraints contradict each other, its decision is feasible where they do not. *The program of
rays* looks for the direction in which the cost falls fastest. What none of this proves is FAILED.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from ..problems.linear import LinearProgram, relative_violation
from ..problems.solution import SolveStatus
from .claims import Claim, Way, snapped
from .gap import DUST, duality_gap
from .proofs import Polyhedron, beyond_rounding, contradiction, is_ray
from .scaling import Scaled, scaled

FEASIBLE = 1e-7
"""Largest `constraint_violation` of a decision that may be called optimal."""
PLAIN = 1e-6
"""A contradiction this clear ends the search for a decision; a slighter one may be rounding of the
right-hand sides, with which looser tolerances may find a decision."""

UNSEEN = 1e-8
"""Costs this small beside the largest are below the tolerances of the program of rays."""

# The primal method takes a basis met again for a cycle, even if entries went from bound to bound in
# between and the cost fell, and gives up short of the optimum (status unknown). The dual goes on.
_DUAL = Way(dual=True, tol=1e-9, presolve=False, capped=True)
# Primal: it proves NETLIB's klein1 and klein3 infeasible, where the dual method gives up.
_LOOSE = Way(dual=False, tol=1e-7, presolve=True, capped=False)
_WAYS: tuple[tuple[Way, bool, str], ...] = (
    (_DUAL, False, "least"),
    (_DUAL, True, "least"),
    (_DUAL, True, "largest"),
    (_LOOSE, False, "least"),
    (_LOOSE._replace(dual=True), True, "least"),
)
_PROOF_WAYS = (_DUAL, _DUAL._replace(presolve=True, capped=False))


class Once(Protocol):
    """What is needed of a solver here."""

    def once(self, at: Polyhedron, cost: np.ndarray, seconds: float, way: Way) -> Claim: ...


class Known:
    """Constraints, and what was found out about them whatever the cost."""

    def __init__(self, problem: LinearProgram) -> None:
        at = Polyhedron.of(problem, 0)
        self.at = at._replace(columns=scaled(at, even=True, unit="own").columns)
        self.feasible: np.ndarray | None = None
        self.is_empty = False


class Doubtful:
    """One instance, whose numbers are `problem`'s only ones, and what is known of it so far."""

    def __init__(
        self,
        problem: LinearProgram,
        cost: np.ndarray,
        solver: Once,
        deadline: float,
        known: Known | None = None,
    ) -> None:
        self.problem, self.cost, self.solver, self.deadline = problem, cost, solver, deadline
        self.known = known or Known(problem)
        self.at = self.known.at
        self.contradicted = 0.0
        self.asked: set[str] = set()

    def settle(self, first: Claim) -> tuple[SolveStatus, np.ndarray | None]:
        """A status that is proved, or LIMIT or FAILED; x where OPTIMAL."""
        for claim in self._claims(first):
            if self._is_late():
                return SolveStatus.LIMIT, None
            status, x = self._checked(claim)
            if status is not SolveStatus.FAILED:
                return status, x
        if self.contradicted > 0:
            return SolveStatus.INFEASIBLE, None
        return SolveStatus.FAILED, None

    def _claims(self, first: Claim) -> Iterator[Claim]:
        yield first
        for way, even, unit in _WAYS:
            if not way.capped:  # the elastic program is solved in a fraction of the time
                yield Claim(SolveStatus.INFEASIBLE)
            yield self._run(scaled(self.at, even=even, unit=unit), self.cost, way)
        yield Claim(SolveStatus.UNBOUNDED)  # nothing worked; a ray may show why

    def _checked(self, claim: Claim) -> tuple[SolveStatus, np.ndarray | None]:
        """The claim's status if it is proved; FAILED if not (yet)."""
        failed = SolveStatus.FAILED, None
        if claim.status is SolveStatus.OPTIMAL and claim.x is not None and claim.y is not None:
            return self._optimal(claim.x, claim.y)
        if claim.status is SolveStatus.INFEASIBLE:
            self._contradict(claim.y)
            if self.contradicted <= PLAIN:
                self._ask_elastic()
            return (SolveStatus.INFEASIBLE, None) if self.contradicted > PLAIN else failed
        if claim.status is SolveStatus.UNBOUNDED and self._falls(claim.ray):
            return (SolveStatus.UNBOUNDED, None) if self._is_feasible() else self._empty_or_failed()
        return failed

    def _empty_or_failed(self) -> tuple[SolveStatus, None]:
        empty = self.contradicted > PLAIN
        return (SolveStatus.INFEASIBLE if empty else SolveStatus.FAILED), None

    # --- optimal -----------------------------------------------------------------------------

    def _optimal(self, x: np.ndarray, y: np.ndarray) -> tuple[SolveStatus, np.ndarray | None]:
        failed = SolveStatus.FAILED, None
        x = snapped(self.problem, x[None])[0]
        if not self._obeys(x):
            return failed
        gap = duality_gap(self.problem, self.cost[None], x[None], y[None])
        if not gap.closed[0]:
            return failed
        d, left = gap.d[0], gap.unsupported[0]
        size = self.at.sizes
        if np.abs(d * size)[left].max(initial=0.0) > DUST * np.abs(self.cost * size).max(
            initial=0.0
        ):
            return failed
        return self._beside_dust(x, y, d, left) if left.any() else (SolveStatus.OPTIMAL, x)

    def _beside_dust(
        self, x: np.ndarray, y: np.ndarray, d: np.ndarray, left: np.ndarray
    ) -> tuple[SolveStatus, np.ndarray | None]:
        """x is the best but for costs so small that the solver did not see them. That is harmless,
        unless they fall along a ray on which the others do not rise."""
        failed = SolveStatus.FAILED, None
        at, size = self.at, self.at.sizes
        y = np.concatenate([y[: at.n_eq], np.minimum(y[at.n_eq :], 0.0)])
        least = DUST * np.abs(self.cost * size).max()
        ends = (np.abs(y) * (abs(at.A) @ size) > least) | (np.arange(len(y)) < at.n_eq)
        holds = (np.abs(d * size) > least) & ~left
        rest = np.where(holds, 0.0, d) + at.A.T @ np.where(ends, 0.0, y)
        if np.abs(d * size)[left].min() < UNSEEN * np.abs(rest * size).max():
            return failed  # too small even among these
        r = self._steepest(rest, _face(at, ends, holds))
        if r is None:
            return SolveStatus.OPTIMAL, x
        if not beyond_rounding(at, self.cost, r).any():
            return SolveStatus.OPTIMAL, x
        return (SolveStatus.UNBOUNDED, None) if is_ray(at, self.cost, r) else failed

    def _obeys(self, x: np.ndarray) -> bool:
        return bool(relative_violation(self.problem, x[None])[0] <= FEASIBLE)

    # --- infeasible --------------------------------------------------------------------------

    def _contradict(self, w: np.ndarray | None) -> None:
        if w is not None:
            found = max(contradiction(self.at, w), contradiction(self.at, -w))
            self.contradicted = max(self.contradicted, found)

    def _is_feasible(self) -> bool:
        if self.known.feasible is None:
            self._ask_elastic()
        return self.known.feasible is not None

    def _ask_elastic(self) -> None:
        """Solve the elastic program, once."""
        if "elastic" in self.asked:
            return
        self.asked.add("elastic")
        for even, unit in ((False, "least"), (True, "least"), (True, "largest")):
            part = scaled(self.at, even=even, unit=unit)
            wide, price = _elastic(part.at)
            for way in _PROOF_WAYS:
                found = self._once(wide, price, way)
                if found.x is None or found.y is None:
                    continue
                x = part.unit * part.columns * found.x[: len(self.cost)]
                self._contradict(-part.rows * found.y)
                x = snapped(self.problem, x[None])[0]
                if self.contradicted <= PLAIN and self._obeys(x):
                    self.known.feasible = x
                if self.known.feasible is not None or self.contradicted > PLAIN:
                    return

    # --- unbounded ---------------------------------------------------------------------------

    def _falls(self, ray: np.ndarray | None) -> bool:
        """Whether there is a ray along which the cost falls, this one or another."""
        if ray is not None and is_ray(self.at, self.cost, ray):
            return True
        if "ray" in self.asked:
            return False
        self.asked.add("ray")
        found = self._steepest(self.cost, self.at)
        return found is not None and is_ray(self.at, self.cost, found)

    def _steepest(self, cost: np.ndarray, at: Polyhedron) -> np.ndarray | None:
        """The ray of these constraints, of size 1 in even columns, along which `cost` falls
        fastest; None where it falls along none."""
        cone = at._replace(
            b=np.where(np.isfinite(at.b), 0.0, at.b),
            lb=np.where(np.isfinite(at.lb), 0.0, -np.inf),
            ub=np.where(np.isfinite(at.ub), 0.0, np.inf),
        )
        part = scaled(cone, even=True, unit="own")
        lb, ub = np.maximum(part.at.lb, -1.0), np.minimum(part.at.ub, 1.0)
        part = part._replace(at=part.at._replace(lb=lb, ub=ub))
        for way in _PROOF_WAYS:
            found = self._once(part.at, part.cost(cost), way)
            if found.x is not None:
                falls = float(part.cost(cost) @ found.x) < -way.tol
                return part.columns * found.x if falls else None
        return None

    # --- shared ------------------------------------------------------------------------------

    def _run(self, part: Scaled, cost: np.ndarray, way: Way) -> Claim:
        return part.back(self._once(part.at, part.cost(cost), way), cost)

    def _once(self, at: Polyhedron, cost: np.ndarray, way: Way) -> Claim:
        """What the solver says, without numbers that are none."""
        seconds = max(self.deadline - time.monotonic(), 0.0)
        claim = self.solver.once(at, cost, seconds, way)
        broken = any(part is not None and not np.isfinite(part).all() for part in claim[1:])
        return Claim(SolveStatus.FAILED) if broken else claim

    def _is_late(self) -> bool:
        return time.monotonic() >= self.deadline


def _face(at: Polyhedron, ends: np.ndarray, holds: np.ndarray) -> Polyhedron:
    """The part of a polyhedron where rows `ends` hold with equality and entries `holds` stay."""
    order = np.argsort(~ends, kind="stable")
    return at._replace(
        A=sparse.csr_array(at.A[order]),
        b=at.b[order],
        n_eq=int(ends.sum()),
        lb=np.where(holds, 0.0, at.lb),
        ub=np.where(holds, 0.0, at.ub),
    )


def _elastic(at: Polyhedron) -> tuple[Polyhedron, np.ndarray]:
    """The program in (x, s) with A x - s <= b or A x - s + t = b, s, t >= 0, and its prices."""
    m, n, n_eq = len(at.b), len(at.lb), at.n_eq
    less = -sparse.eye_array(m, format="csr")
    more: Any = -less[:, :n_eq]
    A = sparse.csr_array(sparse.hstack([at.A, less, more], format="csr"))
    lb = np.concatenate([at.lb, np.zeros(m + n_eq)])
    ub = np.concatenate([at.ub, np.full(m + n_eq, np.inf)])
    return Polyhedron(A, at.b, n_eq, lb, ub), np.concatenate([np.zeros(n), np.ones(m + n_eq)])
