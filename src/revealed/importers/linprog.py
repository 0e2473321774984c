"""The arguments of scipy.optimize.linprog, and of milp, as a model.

Letters: n variables, m rows.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from scipy import sparse

from .._common.arrays import to_float64
from ..errors import InputError, ShapeError
from ..problems.linear import LinearProgram
from .imported import ImportedModel
from .raw import RawModel, assemble, warn_relaxed, with_zero


def from_linprog(
    c: Any = None,
    A_ub: Any = None,
    b_ub: Any = None,
    A_eq: Any = None,
    b_eq: Any = None,
    bounds: Any = (0, None),
    method: Any = None,
    callback: Any = None,
    options: Any = None,
    x0: Any = None,
    integrality: Any = None,
    *,
    names: Any = None,
) -> ImportedModel:
    """The model that `scipy.optimize.linprog` would solve with the same arguments.

    Integer variables are relaxed, with a warning.

    Parameters
    ----------
    c : (n,) array, optional
        The model's own cost; it may be left out, since it is what will be learned.
    A_ub, A_eq : (m, n) or (B, m, n) matrices, optional
        Dense or scipy.sparse; (B, m, n) where they differ by instance, as in `LinearProgram`.
    b_ub, b_eq : (m,) or (B, m) arrays, optional
        Right-hand sides.
    bounds : pair, (n, 2) pairs or scipy.optimize.Bounds
        Variables are at least 0 unless it says otherwise; None in a pair means no limit.
    method, callback, options, x0
        How to solve, not what: left out.
    integrality : int or (n,) array, optional
        0 for a real variable, 1 for an integer one, 2 and 3 for one that may also be 0 (see scipy).
    names : sequence of n names, optional
        Of the variables, which are x0, x1, ... otherwise.

    Returns
    -------
    ImportedModel

    Examples
    --------
    >>> import revealed as rv
    >>> model = rv.from_linprog(A_ub=[[3, 2]], b_ub=[6], bounds=(0, 1), names=["tea", "rice"])
    >>> model.variable_names
    ('tea', 'rice')
    """
    cost = None if c is None else _vector(c, "c")
    n = _count_variables(cost, A_ub, A_eq, bounds)
    _check_columns(n, A_ub=A_ub, A_eq=A_eq)
    kinds = np.zeros(n, dtype=np.int64) if integrality is None else _kinds(integrality, n)
    lb, ub = with_zero(*_limits(bounds, n), kinds >= 2)
    problem = LinearProgram(A_eq, _side(b_eq, A_eq), A_ub, _side(b_ub, A_ub), lb, ub)
    integer = kinds % 2 == 1
    warn_relaxed("the linear program", integer, kinds >= 2, stacklevel=3)
    return ImportedModel(
        problem=problem,
        source="the linear program",
        variable_names=_names(names, n),
        eq_names=tuple(f"eq{i}" for i in range(problem.eq_rows.shape[0])),
        ub_names=tuple(f"ub{i}" for i in range(problem.ub_rows.shape[0])),
        cost=cost,
        constant=0.0,
        maximized=False,
        integer=integer,
    )


def from_milp(
    c: Any,
    *,
    integrality: Any = None,
    bounds: Any = None,
    constraints: Any = None,
    options: Any = None,
    names: Any = None,
) -> ImportedModel:
    """The model that `scipy.optimize.milp` would solve with the same arguments.

    `model.problem` is the relaxation, with a warning; `model.integer_problem` keeps whole variables
    whole.

    Parameters
    ----------
    c : (n,) array
        The model's own cost.
    integrality : int or (n,) array, optional
        0 for a real variable, 1 for an integer one, 2 and 3 for one that may also be 0 (see scipy).
    bounds : scipy.optimize.Bounds, pair or (n, 2) pairs, optional
        Variables are at least 0 unless it says otherwise.
    constraints : scipy.optimize.LinearConstraint, tuple (A, lb, ub), or several of these
        The rows lb <= A x <= ub.
    options
        How to solve, not what: left out.
    names : sequence of n names, optional
        Of the variables, which are x0, x1, ... otherwise.

    Returns
    -------
    ImportedModel
    """
    cost = _vector(c, "c")
    n = len(cost)
    kinds = np.zeros(n, dtype=np.int64) if integrality is None else _kinds(integrality, n)
    lb, ub = _limits((0, None) if bounds is None else bounds, n)
    parts = [_row_limits(part, k, n) for k, part in enumerate(_listed(constraints))]
    matrices, lower, upper = zip(*parts, strict=True) if parts else ([], [], [])
    m = sum(len(part) for part in lower)
    return assemble(
        RawModel(
            source="the integer program",
            matrix=sparse.csr_array(sparse.vstack(matrices)) if m else sparse.csr_array((0, n)),
            row_lower=np.concatenate([*lower, np.zeros(0)]),
            row_upper=np.concatenate([*upper, np.zeros(0)]),
            lb=lb,
            ub=ub,
            variable_names=_names(names, n),
            row_names=tuple(f"row{i}" for i in range(m)),
            cost=cost,
            integer=kinds % 2 == 1,
            semicontinuous=kinds >= 2,
        )
    )


def _listed(constraints: Any) -> list[Any]:
    """One constraint, or several, as a list."""
    if constraints is None:
        return []
    alone = hasattr(constraints, "A") or (
        isinstance(constraints, tuple)
        and len(constraints) == 3
        and not any(hasattr(part, "A") or isinstance(part, tuple) for part in constraints)
    )
    return [constraints] if alone else list(constraints)


def _row_limits(part: Any, k: int, n: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """A matrix (m, n) and both sides (m,) of its rows."""
    given = (part.A, part.lb, part.ub) if hasattr(part, "A") else tuple(part)
    if len(given) != 3:
        raise InputError(
            f"Constraint {k} must be a LinearConstraint or a tuple (A, lb, ub); got {len(given)} "
            "parts. Give -inf or inf for a side without a limit."
        )
    A: Any = sparse.csr_array(given[0] if sparse.issparse(given[0]) else np.atleast_2d(given[0]))
    _check_columns(n, **{f"A of constraint {k}": A})
    low, high = (np.broadcast_to(np.asarray(side, float), A.shape[:1]) for side in given[1:])
    return A, low, high


def _vector(value: Any, name: str) -> np.ndarray:
    array = to_float64(value, name)
    array = array.ravel() if max(array.shape, default=0) == array.size else array  # as scipy does
    if array.ndim != 1 or not len(array):
        raise ShapeError(f"`{name}` must be (n,), one for each variable; got shape {array.shape}.")
    if not np.isfinite(array).all():
        bad = np.flatnonzero(~np.isfinite(array))[0]
        raise InputError(f"`{name}` must be finite; got {array[bad]} at entry {bad}.")
    return array


def _count_variables(cost: np.ndarray | None, A_ub: Any, A_eq: Any, bounds: Any) -> int:
    if cost is not None:
        return len(cost)
    for A in (A_ub, A_eq):
        if A is not None:
            return _shape(A)[-1]
    if hasattr(bounds, "lb") and hasattr(bounds, "ub"):
        pairs = np.broadcast_shapes(np.shape(bounds.lb), np.shape(bounds.ub))
    else:
        pairs = np.shape(_pairs(bounds))[:-1]
    if not pairs:
        raise ShapeError(
            "The number of variables is unknown: give `c`, `A_ub`, `A_eq`, or bounds for each."
        )
    return pairs[0]


def _shape(A: Any) -> tuple[int, ...]:
    return tuple(A.shape) if hasattr(A, "shape") else np.shape(A)


def _check_columns(n: int, **matrices: Any) -> None:
    for name, A in matrices.items():
        columns = _shape(A)[-1:] if A is not None else (n,)
        if columns and columns[0] != n:
            raise ShapeError(
                f"`{name}` must have a column for each of the {n} variables, as many as `c` or the "
                f"matrix before it has; got {columns[0]}."
            )


def _side(b: Any, A: Any) -> Any:
    """Right-hand sides with a column (m, 1) laid flat, as scipy lays it."""
    shape = np.shape(b)
    column = len(shape) == 2 and shape[1] == 1 and shape[0] > 1
    return np.ravel(b) if column and A is not None and _shape(A)[-2:-1] == shape[:1] else b


def _limits(bounds: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
    """(n,) lower and (n,) upper limits from any form that scipy takes."""
    if hasattr(bounds, "lb") and hasattr(bounds, "ub"):
        pairs = np.stack(np.broadcast_arrays(bounds.lb, bounds.ub), axis=-1)
    else:
        pairs = _pairs(bounds)
    if pairs.size == 0:
        pairs = np.array([0.0, np.inf])
    if pairs.shape not in ((2,), (1, 2), (n, 2)):
        hint = " Transpose it: `bounds.T`." if pairs.shape == (2, n) else ""
        raise ShapeError(
            f"`bounds` must be one pair (low, high) for all variables, or {n} pairs; got shape "
            f"{pairs.shape}.{hint}"
        )
    low, high = np.broadcast_to(pairs, (n, 2)).astype(np.float64).T
    return np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)


def _pairs(bounds: Any) -> np.ndarray:
    try:
        return np.array(() if bounds is None else bounds, dtype=np.float64)  # None becomes NaN
    except (TypeError, ValueError):
        raise InputError(
            "`bounds` must be pairs (low, high) of numbers, with None for no limit; "
            f"got {str(bounds)[:80]}."
        ) from None


def _kinds(integrality: Any, n: int) -> np.ndarray:
    kinds = np.asarray(integrality)
    if kinds.shape not in ((), (n,)) or not np.isin(kinds, (0, 1, 2, 3)).all():
        raise InputError(f"`integrality` must be 0, 1, 2 or 3, or {n} of these; got {kinds}.")
    return np.broadcast_to(kinds, n).astype(np.int64)


def _names(names: Any, n: int) -> tuple[Hashable, ...]:
    chosen = tuple(f"x{j}" for j in range(n)) if names is None else tuple(names)
    if len(chosen) != n or len(set(chosen)) != n:
        raise InputError(
            f"`names` must be {n} different names, one for each variable; got {len(chosen)}, of "
            f"which {len(set(chosen))} are different."
        )
    return chosen
