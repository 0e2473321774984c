"""Programs with whole variables as data: a linear program, and which of its variables are integer.

    x(c) = argmin <c, x>   subject to   A_eq x = b_eq,  A_ub x <= b_ub,  lb <= x <= ub,
                                        x_j whole where integer_j

Letters: B instances, n variables, m rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from .._common.arrays import Choice, as_costs, is_torch, to_float64
from .._common.records import Record
from .._common.rows import frozen
from ..errors import InputError, ShapeError
from .linear import LinearProgram, relative_violation
from .protocol import ORACLES, LinearObjective
from .solution import IntegerSolution

T = TypeVar("T")
INTEGRAL = 1e-6
"""How far from whole an entry of a solver's answer may be."""


@runtime_checkable
class IntegerStructure(Protocol):
    """What a special oracle knows of an integer program, with constraints that no row holds."""

    @property
    def n_instances(self) -> int | None: ...

    def take(self, index: Choice) -> IntegerStructure: ...

    def violation(self, X: np.ndarray) -> np.ndarray:
        """(B,): 0 where decisions (B, n) obey what the structure asks beyond rows, else above 0."""
        ...

    def tight(self, x: np.ndarray) -> np.ndarray:
        """(k, n): rows G, other than those of the program, with G y <= G x for every feasible y."""
        ...


class IntegerProgram(Record, LinearObjective):
    """A mixed-integer linear program in general form, or a batch of them, waiting for costs.

    The arguments are those of `LinearProgram`, and may differ by instance in the same way.

    Parameters
    ----------
    integer : bool or (n,) bool array
        Which variables are whole; all of them unless given. The others are continuous.
    distance : (n,) array, optional
        What a unit of each variable counts where a margin asks other decisions to cost more by
        their distance from the observed one; 1 unless given, which for 0/1 variables is the Hamming
        distance.
    structure : IntegerStructure, optional
        A special form that a faster oracle knows (see `revealed.problems`); it may hold constraints
        that no row holds, such as "the edges form one tour".
    """

    n_variables: int
    n_parameters: int
    n_instances: int | None
    relaxation: LinearProgram
    """The same rows and bounds, every variable continuous."""
    integer: np.ndarray
    """(n,) bool"""
    distance: np.ndarray
    """(n,)"""
    structure: Any
    _cache: dict[str, Any]

    def __init__(
        self,
        A_eq: Any = None,
        b_eq: Any = None,
        A_ub: Any = None,
        b_ub: Any = None,
        lb: Any = 0.0,
        ub: Any = None,
        *,
        integer: Any = True,
        distance: Any = None,
        structure: Any = None,
    ) -> None:
        relaxation = LinearProgram(A_eq, b_eq, A_ub, b_ub, lb, ub)
        if structure is not None and not isinstance(structure, IntegerStructure):
            raise InputError(
                "`structure` must have `n_instances`, `take`, `violation` and `tight`; got "
                f"{type(structure).__name__}. Leave it out for the general oracle."
            )
        n = relaxation.n_variables
        self._set(
            n_variables=n,
            n_parameters=n,
            n_instances=relaxation.n_instances,
            relaxation=relaxation,
            integer=integer_mask(integer, n),
            distance=distance_weights(distance, n),
            structure=structure,
            _cache={},
        )

    def solve(
        self,
        costs: Any,
        *,
        time_limit: float | None = None,
        gap: float = 0.0,
        threads: int | None = None,
        start: np.ndarray | None = None,
    ) -> IntegerSolution:
        """Decisions of least cost for a batch of costs, with a status for each.

        OPTIMAL is as exact as the solver: HiGHS distinguishes costs to 1e-6 of the largest.

        Parameters
        ----------
        costs : (B, n) array or tensor
        time_limit : float, optional
            Seconds for the whole call. What is left of it is shared out evenly over the instances
            that are left; those that it stops have status LIMIT.
        gap : float
            Relative to the cost: how far above the bound HiGHS may end. Where it ends within `gap`
            but not at 0, the status is LIMIT. Special oracles go to the end.
        threads : int, optional
            As many as there are processors unless given.
        start : (B, n) array, optional
            Feasible decisions that a solver may begin from.

        Returns
        -------
        IntegerSolution
            Where the status is LIMIT, `incumbent` is the best decision found so far and `bound` a
            proved lower bound.
        """
        oracle: Any = ORACLES.of(self)
        return oracle(self, costs, time_limit=time_limit, gap=gap, threads=threads, start=start)

    @classmethod
    def of(cls, relaxation: LinearProgram, integer: Any = True) -> IntegerProgram:
        """The rows and bounds of a linear program, with whole variables (`integer`, as above)."""
        result = object.__new__(cls)
        result._set(
            n_variables=relaxation.n_variables,
            n_parameters=relaxation.n_variables,
            n_instances=relaxation.n_instances,
            relaxation=relaxation,
            integer=integer_mask(integer, relaxation.n_variables),
            distance=distance_weights(None, relaxation.n_variables),
            structure=None,
            _cache={},
        )
        return result

    @property
    def shape(self) -> tuple[int, ...]:
        """(m_eq, m_ub, n)"""
        return self.relaxation.shape

    @property
    def lb(self) -> np.ndarray:
        """(n,) or (B, n)"""
        return self.relaxation.lb

    @property
    def ub(self) -> np.ndarray:
        """(n,) or (B, n)"""
        return self.relaxation.ub

    def tightened(self, decisions: Any) -> LinearProgram:
        """The relaxation of each decision, with rows that stop it from improving made tight.

        Few rows are active at a whole decision, though some leave no room: where the slack of
        `A_ub x <= b_ub` is less than what some whole variable would take by moving one unit within
        its bounds, the right-hand side becomes `A_ub x`. Sets of this program need no oracle. They
        are an approximation, neither inside the exact ones nor around them, and prove nothing.

        Parameters
        ----------
        decisions : (B, n) array or tensor

        Returns
        -------
        LinearProgram
            With right-hand sides of its own for each instance.
        """
        X, _ = as_costs(decisions, self.n_variables, "decisions")
        self.check_batch(len(X), "decisions")
        rows = self.relaxation
        b_ub = np.broadcast_to(rows.b_ub, (len(X), rows.ub_rows.shape[0])).copy()
        lb, ub = np.broadcast_to(rows.lb, X.shape), np.broadcast_to(rows.ub, X.shape)
        up, down = self.integer & (X + 1 <= ub), self.integer & (X - 1 >= lb)
        for b, x in enumerate(X):
            A = rows.ub_rows.matrix(b if rows.ub_rows.per_instance else 0).toarray()
            least = np.maximum(np.where(up[b], A, 0.0), np.where(down[b], -A, 0.0)).max(
                axis=1, initial=0.0
            )
            value = A @ x
            b_ub[b] = np.where(b_ub[b] - value < least, value, b_ub[b])
        equal = (rows.eq_rows, rows.b_eq) if rows.eq_rows.shape[0] else (None, None)
        unequal = (rows.ub_rows, b_ub) if rows.ub_rows.shape[0] else (None, None)
        return LinearProgram(*equal, *unequal, rows.lb, rows.ub)

    def constraint_violation(self, decisions: Any) -> Any:
        """(B,): the largest relative violation of a row or bound, or distance from whole, of each
        decision; what a structure asks beyond rows counts too.

        Parameters
        ----------
        decisions : (B, n) array or tensor

        Returns
        -------
        (B,) array or tensor
            0 where a decision obeys every constraint.
        """
        X, restore = as_costs(decisions, self.n_variables, "decisions")
        self.check_batch(len(X), "decisions")
        found = np.maximum(relative_violation(self.relaxation, X), self.fraction(X))
        if self.structure is not None:
            found = np.maximum(found, self.structure.violation(X))
        return restore(found)

    def fraction(self, X: np.ndarray) -> np.ndarray:
        """(B,): how far the farthest whole variable is from whole."""
        part = X[:, self.integer]
        return np.abs(part - np.round(part)).max(axis=1, initial=0.0)

    def rounded(self, X: np.ndarray) -> np.ndarray:
        """(B, n): the decisions with their whole variables rounded."""
        return np.where(self.integer, np.round(X) + 0.0, X)

    def check_batch(self, size: int, name: str) -> None:
        """Refuse a batch of the wrong length; a shared problem takes any length."""
        self.relaxation.check_batch(size, name)

    def cached(self, key: str, build: Callable[[], T]) -> T:
        """The result of `build()`, computed once and kept under `key`; slices share it, unless each
        instance has matrices of its own. Not that of the relaxation: other problems have the same.
        """
        if key not in self._cache:
            self._cache.setdefault(key, build())
        return self._cache[key]

    def __getitem__(self, index: Any) -> IntegerProgram:
        """The problem of the chosen instances: an integer, slice, mask or integer array."""
        if self.n_instances is None:
            return self
        rows = self.relaxation[index]
        own = rows.eq_rows.per_instance or rows.ub_rows.per_instance
        cache = {} if own else self._cache
        return self.replaced(relaxation=rows, n_instances=rows.n_instances, _cache=cache)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_cache": {}}

    __iter__ = None

    def __repr__(self) -> str:
        kind = "" if self.structure is None else f", {type(self.structure).__name__}"
        inner = repr(self.relaxation).partition("(")[2][:-1]
        return f"IntegerProgram({inner}, {int(self.integer.sum())} whole{kind})"


def integer_mask(integer: Any, n: int) -> np.ndarray:
    """(n,) bool, which variables are whole, from what a caller says of it."""
    mask = np.asarray(integer.detach().cpu() if is_torch(integer) else integer)
    if mask.ndim == 1 and mask.shape == (n,) and mask.dtype.kind in "iuf":
        if not np.isin(mask, (0, 1)).all():
            raise InputError(
                f"`integer` must be a mask: True or False for each of the {n} variables; got "
                f"numbers such as {mask[~np.isin(mask, (0, 1))][0]}. From positions: "
                "np.isin(np.arange(n), positions)."
            )
        mask = mask.astype(bool)
    if mask.dtype != bool or mask.shape not in ((), (n,)):
        raise ShapeError(
            f"`integer` must be True, False or a mask of shape ({n},), True where a variable is "
            f"whole; got {mask.dtype} of shape {mask.shape}."
        )
    return frozen(np.broadcast_to(mask, (n,)).copy())


def distance_weights(distance: Any, n: int) -> np.ndarray:
    """(n,) what a unit of each variable counts in a margin."""
    if distance is None:
        return frozen(np.ones(n))
    weights = to_float64(distance, "distance")
    if weights.shape != (n,) or not (np.isfinite(weights) & (weights >= 0)).all():
        raise InputError(
            f"`distance` must hold a finite number of at least 0 for each of the {n} variables; "
            f"got shape {weights.shape}{', with other numbers' if weights.shape == (n,) else ''}."
        )
    return frozen(weights.copy())
