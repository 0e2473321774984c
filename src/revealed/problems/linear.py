"""Forward problems as data: what the decision maker may do, without the costs.

    x(c) = argmin <c, x>   subject to   A_eq x = b_eq,   A_ub x <= b_ub,   lb <= x <= ub

Letters: B instances, n variables (cost entries), m rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from scipy import sparse

from .._common.arrays import Choice, as_choice, as_costs, count_of, to_float64
from .._common.records import Record
from .._common.rows import Rows, frozen
from ..errors import InputError, ShapeError
from .protocol import LinearObjective, SmoothProblem, Tangent
from .solution import Solution

PART = 65_536
"""Instances looked at together where a pass over all would need several arrays of their size."""

T = TypeVar("T")
Matrices = sparse.csr_array | tuple[sparse.csr_array, ...]


@runtime_checkable
class Structure(Protocol):
    """What a special oracle knows of a problem; the kinds are in `revealed.problems.structures`."""

    @property
    def n_instances(self) -> int | None: ...

    def take(self, index: Choice) -> Structure: ...


@runtime_checkable
class Sliced(Protocol):
    """A kept analysis that is sliced along with its problem."""

    def take(self, index: Choice) -> Any: ...


class LinearProgram(Record, SmoothProblem, LinearObjective):
    """A linear program in general form, or a batch of them, waiting for costs.

        x(c) = argmin <c, x>   subject to   A_eq x = b_eq,   A_ub x <= b_ub,   lb <= x <= ub

    A problem never changes once built.

    Parameters
    ----------
    A_eq, A_ub : (m, n) array or sparse matrix, optional
        Rows shared by all instances. A (B, m, n) array or a sequence of B matrices gives each
        instance its own.
    b_eq, b_ub : float, (m,) or (B, m) array, optional
        Right-hand sides, shared or one row for each instance; a number serves every row.
    lb, ub : float, (n,) or (B, n) array, or None
        Bounds, shared or one row for each instance. None means no bound; the default is x >= 0.
    structure : Structure, optional
        A special form (see `revealed.problems`) that a faster oracle knows. It must describe the
        same constraints.

    Raises
    ------
    ShapeError
        If shapes do not agree, or nothing says how many variables there are.
    InputError
        If a value has no meaning, such as NaN.

    Examples
    --------
    Two items that compete for one unit, for three instances:

    >>> import numpy as np
    >>> import revealed as rv
    >>> problem = rv.LinearProgram(A_ub=[[1.0, 1.0]], b_ub=1.0)
    >>> problem.solve(np.array([[-1.0, -2.0], [-3.0, -2.0], [1.0, 1.0]])).x
    array([[0., 1.],
           [1., 0.],
           [0., 0.]])
    """

    n_variables: int
    n_instances: int | None
    """B when anything differs by instance, None when everything is shared."""
    eq_rows: Rows
    ub_rows: Rows
    b_eq: np.ndarray
    """(m_eq,), or (B, m_eq) when it differs by instance; `b_ub` likewise."""
    b_ub: np.ndarray
    lb: np.ndarray
    """(n,), or (B, n) when it differs by instance, -inf where unbounded; `ub` likewise."""
    ub: np.ndarray
    structure: Any
    """A `Structure`, or None."""
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
        structure: Any = None,
    ) -> None:
        lower = to_float64(-np.inf if lb is None else lb, "lb")
        upper = to_float64(np.inf if ub is None else ub, "ub")
        eq_rows, ub_rows = _both_rows(A_eq, A_ub, lower, upper)
        n = eq_rows.shape[1]
        parts = {
            "n_variables": n,
            "eq_rows": eq_rows,
            "ub_rows": ub_rows,
            "b_eq": _right_hand_side(b_eq, eq_rows, "b_eq"),
            "b_ub": _right_hand_side(b_ub, ub_rows, "b_ub"),
            "lb": _spread(lower, n, "lb", "variable"),
            "ub": _spread(upper, n, "ub", "variable"),
            "structure": structure,
        }
        if structure is not None and not isinstance(structure, Structure):
            raise InputError(
                "`structure` must be one of `revealed.problems.structures` or have `n_instances` "
                f"and `take`; got {type(structure).__name__}. Leave it out for the general oracle."
            )
        _refuse_bad_values(parts)
        self._set(**parts, n_instances=_count_instances(parts), _cache={})

    @cached_property
    def A_eq(self) -> Matrices:
        """Equality rows as one (m_eq, n) csr_array, or a tuple of B when they differ."""
        return _matrices(self.eq_rows)

    @cached_property
    def A_ub(self) -> Matrices:
        """Inequality rows as one (m_ub, n) csr_array, or a tuple of B when they differ."""
        return _matrices(self.ub_rows)

    def solve(
        self, costs: Any, *, time_limit: float | None = None, threads: int | None = None
    ) -> Solution:
        """Decisions of minimum cost for a batch of costs, with a status for each.

        The decision for an instance is a vertex and depends on that instance alone: not on the
        rest of the batch, its order, the number of threads or the scale of the costs.

        Path problems with costs on a GPU are solved there, unless a `time_limit` asks for a clock,
        and nothing waits for the result: costs that are not finite have status FAILED instead of
        being refused. Other problems go by the CPU, and their decisions back to the GPU.

        Parameters
        ----------
        costs : (B, n) array or tensor
        time_limit : float, optional
            Seconds for the whole call; instances not reached have status LIMIT.
        threads : int, optional
            As many as there are processors unless given.

        Returns
        -------
        Solution
            Decisions (B, n), objectives (B,) and a status for each instance.
        """
        return super().solve(costs, time_limit=time_limit, threads=threads)

    @property
    def n_parameters(self) -> int:
        """Length of what is predicted: a cost for each variable."""
        return self.n_variables

    @property
    def shape(self) -> tuple[int, ...]:
        """(m_eq, m_ub, n)"""
        return self.eq_rows.shape[0], self.ub_rows.shape[0], self.n_variables

    semidefinite_block = None

    def gradient(self, X: np.ndarray) -> None:
        """Costs -> the gradient of the objective: they are the same, which None stands for."""

    def tangent(self, X: np.ndarray, tol: float) -> Tangent:
        """The constraints as seen from decisions: for a polyhedron, from anywhere the same."""
        return Tangent(self)

    def constraint_violation(self, decisions: Any) -> Any:
        """(B,): the largest relative violation of any row or bound by each decision.

        A row is measured against |b_i| + |a_i| |x| + max_j |a_ij|, a bound against 1 + |bound|,
        so that multiplying a row by a constant changes nothing. Where the decision and all right-
        hand sides and bounds are smaller than 1, the largest of them takes the place of 1.

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
        return restore(relative_violation(self, X))

    def check_batch(self, size: int, name: str) -> None:
        """Refuse a batch of the wrong length; a shared problem takes any length."""
        if self.n_instances is not None and size != self.n_instances:
            raise ShapeError(
                f"This problem has constraints of its own for each of {self.n_instances} "
                f"instances, so `{name}` must have {self.n_instances} rows; got {size}. "
                f"Choose instances with `problem[index]`, or repeat the rows of `{name}`."
            )

    def cached(self, key: str, build: Callable[[], T]) -> T:
        """The result of `build()`, computed once and kept under `key`.

        For analyses that depend on the matrices alone: slices with the same matrices share it,
        although their right-hand sides and bounds differ. Where each instance has a matrix of its
        own, a result that has a method `take(index)` is sliced with the problem.
        """
        if key not in self._cache:
            # setdefault, so that threads which build at the same time end up with one result.
            self._cache.setdefault(key, build())
        return self._cache[key]

    def __getitem__(self, index: Any) -> LinearProgram:
        """The problem of the chosen instances: an integer, slice, mask or integer array."""
        if self.n_instances is None:
            return self
        chosen = as_choice(index, self.n_instances)
        vectors = {name: getattr(self, name) for name in ("b_eq", "b_ub", "lb", "ub")}
        shared = not (self.eq_rows.per_instance or self.ub_rows.per_instance)
        return self.replaced(
            **{k: frozen(v[chosen]) for k, v in vectors.items() if v.ndim == 2},
            n_instances=count_of(chosen),
            eq_rows=self.eq_rows.take(chosen),
            ub_rows=self.ub_rows.take(chosen),
            structure=None if self.structure is None else self.structure.take(chosen),
            _cache=self._cache if shared else _slice_cache(self._cache, chosen),
        )

    __iter__ = None  # a shared problem would otherwise be an endless sequence of itself

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_cache": {}}

    def __repr__(self) -> str:
        count = "" if self.n_instances is None else f", {self.n_instances} instances"
        kind = "" if self.structure is None else f", {type(self.structure).__name__}"
        return (
            f"LinearProgram({self.n_variables} variables, {self.eq_rows.shape[0]} equalities, "
            f"{self.ub_rows.shape[0]} inequalities{count}{kind})"
        )


def _slice_cache(cache: dict[str, Any], chosen: Choice) -> dict[str, Any]:
    return {key: kept.take(chosen) for key, kept in cache.items() if isinstance(kept, Sliced)}


def check_pairs(costs: np.ndarray, decisions: np.ndarray) -> None:
    """Refuse costs and decisions that are not as many as each other."""
    if len(costs) != len(decisions):
        raise ShapeError(
            f"`costs` and `decisions` must have one row for each instance; got {len(costs)} costs "
            f"and {len(decisions)} decisions."
        )


def relative_violation(problem: LinearProgram, X: np.ndarray) -> np.ndarray:
    """`LinearProgram.constraint_violation` of decisions (B, n) that need no checking."""
    found = np.empty(len(X))
    for part, some, x in in_parts(problem, X):
        gaps = constraint_gaps(some, x)
        found[part] = np.max([gap.max(1, initial=0.0) for gap in gaps], axis=0)
    return found


def in_parts(
    problem: LinearProgram, X: np.ndarray
) -> Iterator[tuple[slice, LinearProgram, np.ndarray]]:
    """A long batch part by part, so that what is computed on the way is never long itself: which
    rows, their problem, their decisions."""
    if len(X) <= PART:
        yield slice(None), problem, X
        return
    for start in range(0, len(X), PART):
        part = slice(start, start + PART)
        yield part, problem[part], X[part]


def constraint_gaps(problem: LinearProgram, X: np.ndarray) -> tuple[np.ndarray, ...]:
    """Relative violations of equalities, inequalities, lower and upper bounds, (B, .) each."""
    unit = unit_of(problem, X)
    with np.errstate(over="ignore", invalid="ignore"):
        eq_gap = np.abs(problem.eq_rows.times(X) - problem.b_eq)
        ub_gap = np.maximum(problem.ub_rows.times(X) - problem.b_ub, 0.0)
        gaps = (
            eq_gap / row_scale(problem.eq_rows, problem.b_eq, X, unit),
            ub_gap / row_scale(problem.ub_rows, problem.b_ub, X, unit),
            np.maximum(problem.lb - X, 0.0) / (unit + np.abs(problem.lb)),
            np.maximum(X - problem.ub, 0.0) / (unit + np.abs(problem.ub)),
        )
    # inf / inf: an entry so large that nothing can be said for it counts as a violation.
    return tuple(np.nan_to_num(gap, nan=np.inf) for gap in gaps)


def row_scale(rows: Rows, b: np.ndarray, X: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """(B, m): the size of each row's terms, |b_i| + |a_i| |x| + max_j |a_ij| unit."""
    return np.abs(b) + rows.magnitude.times(np.abs(X)) + _largest(rows) * unit


def unit_of(problem: LinearProgram, X: np.ndarray) -> np.ndarray:
    """(B, 1): what is small against this is nothing, in decisions (B, n): 1, or where they and all
    right-hand sides and bounds are smaller, the largest of those."""
    sides = [
        np.atleast_2d(np.where(np.isfinite(part), np.abs(part), 0.0))
        for part in (problem.b_eq, problem.b_ub, problem.lb, problem.ub)
    ]
    sides[0], sides[1] = sides[0] / _largest(problem.eq_rows), sides[1] / _largest(problem.ub_rows)
    data = np.array(0.0)
    for part in sides:
        data = np.maximum(data, part.max(axis=1, keepdims=True, initial=0.0))
    size = np.maximum(data, np.abs(X).max(axis=1, keepdims=True, initial=0.0))
    return np.where((data > 0) & (size < 1.0), size, 1.0)


def _largest(rows: Rows) -> np.ndarray:
    """(1 or B, m): of each row. An empty one has no scale of its own: its right-hand side is
    rounding or plainly infeasible."""
    return np.where(rows.largest > 0, rows.largest, 1.0)


def _matrices(rows: Rows) -> Matrices:
    if not rows.per_instance:
        return rows.matrix()
    return tuple(rows.matrix(i) for i in range(len(rows.data)))


def _both_rows(A_eq: Any, A_ub: Any, lower: np.ndarray, upper: np.ndarray) -> tuple[Rows, Rows]:
    """Both groups of rows; n comes from the first of A_eq, A_ub, lb, ub that has a length."""
    if A_eq is not None:
        eq_rows = Rows.build(A_eq, "A_eq")
        ub_rows = Rows.build(A_ub, "A_ub", eq_rows.shape[1])
    elif A_ub is not None:
        ub_rows = Rows.build(A_ub, "A_ub")
        eq_rows = Rows.build(None, "A_eq", ub_rows.shape[1])
    else:
        sized = [array.shape[-1] for array in (lower, upper) if array.ndim]
        if not sized:
            raise ShapeError(
                "The number of variables is unknown: give `A_eq`, `A_ub`, or bounds of length n."
            )
        eq_rows, ub_rows = Rows.build(None, "A_eq", sized[0]), Rows.build(None, "A_ub", sized[0])
    if eq_rows.shape[1] == 0:
        raise ShapeError("A LinearProgram needs at least one variable; got 0 columns.")
    return eq_rows, ub_rows


def _right_hand_side(b: Any, rows: Rows, name: str) -> np.ndarray:
    matrix = name.replace("b_", "A_")
    if b is None:
        if rows.shape[0]:
            raise ShapeError(
                f"`{matrix}` has {rows.shape[0]} rows but `{name}` is missing; give it too."
            )
        return frozen(np.zeros(0))
    if rows.shape[0] == 0 and np.ndim(b) == 0:
        raise ShapeError(f"`{name}` came without rows in `{matrix}`; give both or neither.")
    return _spread(to_float64(b, name), rows.shape[0], name, f"row of `{matrix}`")


def _spread(array: np.ndarray, size: int, name: str, unit: str) -> np.ndarray:
    """A read-only (size,) or (B, size) copy; a scalar serves every entry."""
    if array.ndim == 0:
        return frozen(np.full(size, float(array)))
    if array.ndim > 2 or array.shape[-1] != size:
        hint = f" Use `np.ravel({name})`." if array.shape == (size, 1) else ""
        raise ShapeError(
            f"`{name}` must be a scalar, ({size},) with one entry for each {unit}, or "
            f"(B, {size}) with one row for each instance; got shape {array.shape}.{hint}"
        )
    return frozen(np.array(array, dtype=np.float64, order="C"))


def _refuse_bad_values(parts: dict[str, Any]) -> None:
    refused = {  # besides NaN
        "b_eq": (np.isinf, "finite"),
        "b_ub": (np.isneginf, "finite or +inf (a row that never binds)"),
        "lb": (np.isposinf, "finite or -inf"),
        "ub": (np.isneginf, "finite or +inf"),
    }
    for name, (is_refused, expected) in refused.items():
        array = parts[name]
        bad = np.argwhere(np.isnan(array) | is_refused(array))
        if bad.size:
            raise InputError(
                f"`{name}` must be {expected}; got {array[tuple(bad[0])]} at {_place(bad[0])}."
            )


def _count_instances(parts: dict[str, Any]) -> int | None:
    """B on which all per-instance parts agree, or None; bounds that cross are refused here."""
    counts = {n: len(parts[n]) for n in ("b_eq", "b_ub", "lb", "ub") if parts[n].ndim == 2}
    for name, rows in (("A_eq", parts["eq_rows"]), ("A_ub", parts["ub_rows"])):
        if rows.per_instance:
            counts[name] = len(rows.data)
    if parts["structure"] is not None and parts["structure"].n_instances is not None:
        counts["structure"] = parts["structure"].n_instances
    if len(set(counts.values())) > 1:
        listing = ", ".join(f"`{name}` has {count}" for name, count in counts.items())
        raise ShapeError(
            f"Parts that differ by instance must agree on the number of instances; {listing}."
        )
    crossed = np.argwhere(parts["lb"] > parts["ub"])
    if crossed.size:
        place, shape = tuple(crossed[0]), np.broadcast_shapes(parts["lb"].shape, parts["ub"].shape)
        low, high = (np.broadcast_to(parts[n], shape)[place] for n in ("lb", "ub"))
        raise InputError(
            f"`lb` must not exceed `ub`; got lb = {low}, ub = {high} at {_place(crossed[0])}."
        )
    return next(iter(counts.values()), None)


def _place(position: np.ndarray) -> str:
    if len(position) == 2:
        return f"instance {position[0]}, entry {position[1]}"
    return f"entry {position[0]}"
