"""Any model with linear rows as plain arrays, `row_lower <= A x <= row_upper`, then as a problem.

What every importer ends with: one place decides how rows become equalities and inequalities, what
is said of integer variables, and how a fault is named in the model's own words.

Letters: n variables, m rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..errors import InputError
from ..problems.linear import LinearProgram
from ..problems.quadratic import QuadraticProgram
from .imported import ImportedModel, RelaxationWarning


@dataclass(kw_only=True)
class RawModel:
    """A model in the words of its source; the objective keeps the sense it was written in."""

    source: str
    """What to call it in messages: a file name, "the Gurobi model 'diet'"."""
    matrix: sparse.csr_array
    """(m, n)"""
    row_lower: np.ndarray
    """(m,), -inf where there is none; `row_upper` likewise."""
    row_upper: np.ndarray
    lb: np.ndarray
    """(n,), -inf where there is none; `ub` likewise."""
    ub: np.ndarray
    variable_names: tuple[Hashable, ...]
    row_names: tuple[Hashable, ...]
    cost: np.ndarray | None
    """(n,) coefficients of the objective, None where the source has none."""
    constant: float = 0.0
    maximized: bool = False
    integer: np.ndarray | None = None
    """(n,) bool."""
    semicontinuous: np.ndarray | None = None
    """(n,) bool: 0, or between the bounds."""
    quadratic: sparse.csr_array | None = None
    """(n, n) symmetric Q of a term 1/2 x^T Q x in the objective."""


def assemble(model: RawModel) -> ImportedModel:
    """The problem in general form, with names, its objective as a cost to be minimized.

    A row `l <= a x <= u` becomes an equality where l = u, `a x <= u` where u is finite and
    `-a x <= -l` where l is finite: a range gives two inequalities. A row without either limit
    constrains nothing and is left out. Integer variables are relaxed, with a warning.
    """
    _refuse_crossed(model)
    warn_relaxed(model.source, model.integer, model.semicontinuous, stacklevel=4)
    lower, upper = model.row_lower, model.row_upper
    equal = lower == upper
    above, below = ~equal & np.isfinite(upper), ~equal & np.isfinite(lower)
    A, sign = model.matrix, -1.0 if model.maximized else 1.0
    lb, ub = with_zero(model.lb, model.ub, model.semicontinuous)
    constraints = {
        "A_eq": A[equal],
        "b_eq": upper[equal],
        "A_ub": sparse.vstack([A[above], -A[below]], format="csr"),
        "b_ub": np.concatenate([upper[above], -lower[below]]),
        "lb": lb,
        "ub": ub,
    }
    problem = _problem(model, sign, constraints)
    n = problem.n_variables
    return ImportedModel(
        problem=problem,
        source=model.source,
        cost=None if model.cost is None else sign * model.cost,
        constant=model.constant,
        maximized=model.maximized,
        variable_names=model.variable_names,
        eq_names=_chosen(model.row_names, equal),
        ub_names=_chosen(model.row_names, above) + _chosen(model.row_names, below),
        at_least=np.repeat([False, True], [above.sum(), below.sum()]),
        integer=np.zeros(n, dtype=bool) if model.integer is None else model.integer,
    )


def _problem(
    model: RawModel, sign: float, constraints: dict[str, Any]
) -> LinearProgram | QuadraticProgram:
    if model.quadratic is None or not model.quadratic.nnz:
        return LinearProgram(**constraints)
    try:
        return QuadraticProgram(Q=sign * model.quadratic, sense="min", **constraints)
    except InputError as fault:  # such as an objective that is not convex
        raise InputError(f"{model.source}: {fault}") from None


def warn_relaxed(
    source: str,
    integer: np.ndarray | None,
    semicontinuous: np.ndarray | None = None,
    *,
    stacklevel: int,
) -> None:
    """Say what is lost, and what still holds, where a model has variables that may not be real."""
    counts = [
        f"{int(mask.sum())} of {len(mask)} variables must be {what}"
        for mask, what in ((integer, "whole numbers"), (semicontinuous, "0 or above a threshold"))
        if mask is not None and mask.any()
    ]
    if not counts:
        return
    warnings.warn(
        f"In {source} {' and '.join(counts)}; it is read as its linear relaxation. Costs that "
        "explain a decision there explain it in the whole model too, but some that explain it only "
        "among whole numbers are missed, and decisions predicted by the relaxation may be "
        "fractional. `integer_problem` of the model keeps its variables whole.",
        RelaxationWarning,
        stacklevel=stacklevel,
    )


def with_zero(
    lb: np.ndarray, ub: np.ndarray, semicontinuous: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Bounds that let 0 in where it is allowed beside the interval: the smallest over both."""
    if semicontinuous is None:
        return lb, ub
    return (
        np.where(semicontinuous, np.minimum(lb, 0.0), lb),
        np.where(semicontinuous, np.maximum(ub, 0.0), ub),
    )


def _chosen(names: tuple[Hashable, ...], mask: np.ndarray) -> tuple[Hashable, ...]:
    return tuple(names[i] for i in np.flatnonzero(mask))


def _refuse_crossed(model: RawModel) -> None:
    """Name the variable or row whose limits leave nothing, or are no limits at all."""
    if not model.variable_names:
        raise InputError(f"{model.source} has no variables; a problem needs at least one.")
    groups = (
        ("variable", model.variable_names, model.lb, model.ub),
        ("row", model.row_names, model.row_lower, model.row_upper),
    )
    for what, names, lower, upper in groups:
        bad = np.flatnonzero(~(lower <= upper) | (lower == np.inf) | (upper == -np.inf))
        if bad.size:
            i = bad[0]
            raise InputError(
                f"{model.source}: {what} {names[i]!r} must have a lower limit of at most its "
                f"upper one, and a number between; got {lower[i]:g} and {upper[i]:g}."
            )
