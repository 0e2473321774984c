"""CVXPY problems whose objective is linear in a parameter: that parameter is what is learned.

CVXPY itself compiles the problem to the standard data of a linear or quadratic program, in which
the parameter enters the cost as c = S w + c0. S is read off by compiling at one unit step after
another, and which compiled columns are the user's variables by the same trick with an added term
h @ variables; so nothing but `get_problem_data` is relied on.

Letters: n compiled columns, p entries of the parameter, k entries of the user's variables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from .._common.optional import require
from ..errors import InputError
from ..optimality.cost_form import CostForm
from .compiled import Compiled, read_compiled
from .completion import Completion
from .imported import ImportedModel
from .raw import assemble

SOURCE = "the CVXPY problem"
_SIGNS = {"nonneg": 1.0, "pos": 1.0, "nonpos": -1.0, "neg": -1.0}
"""What a parameter may be declared as: each entry still moves by itself."""


def from_cvxpy(problem: Any, cost_parameter: Any) -> ImportedModel:
    """The constraints of a CVXPY problem, ready to learn the value of a parameter in its objective.

    What is predicted, w, is the parameter's entries in CVXPY's order (by columns), and means what
    it means in the objective: values where that is to be maximized. `model.form` holds
    c = S w + c0, and a sign that the parameter is declared with as a limit; it is None where w is a
    cost for each column and no more is known.

    Columns are named by variable and place, as "x[2]". CVXPY may add auxiliary ones, for which
    `model.decisions` finds the values that belong to those of the user's variables.

    Parameters
    ----------
    problem : cvxpy.Problem
        A linear program, perhaps with integers, or a quadratic one without. All parameters but
        `cost_parameter` must have values.
    cost_parameter : cvxpy.Parameter or list of these
        What the objective is linear in, as `c` in `Minimize(c @ x + norm1(x))`.

    Returns
    -------
    ImportedModel
        With `parameter_names`, the entries of the parameter.
    """
    require("cvxpy", "from_cvxpy", "importers")
    import cvxpy

    wanted = list(cost_parameter) if isinstance(cost_parameter, Sequence) else [cost_parameter]
    _check(cvxpy, problem, wanted)
    with _kept_values(wanted) as value:
        return _import(_Probe(cvxpy, problem, wanted), value)


class _Probe:
    """A problem with h @ variables added to what it minimizes, to be compiled at any (w, h)."""

    def __init__(self, cvxpy: Any, problem: Any, wanted: list[Any]) -> None:
        self.wanted, self.variables = wanted, problem.variables()
        self.maximized = isinstance(problem.objective, cvxpy.Maximize)
        flat = [cvxpy.vec(variable, order="F") for variable in self.variables]
        self.handle = cvxpy.Parameter(sum(variable.size for variable in self.variables))
        sign = -1.0 if self.maximized else 1.0
        objective = sign * problem.objective.expr + self.handle @ cvxpy.hstack(flat)
        self.problem = cvxpy.Problem(cvxpy.Minimize(objective), problem.constraints)
        self.steps = np.concatenate([np.full(p.size, _sign(p) or 1.0) for p in wanted])
        """(p,): a value that each entry may have, as may 0."""
        self.solver = self._solver(cvxpy)

    def at(self, w: np.ndarray, h: np.ndarray | None = None) -> Compiled:
        """What CVXPY compiles with the parameter at w (p,)."""
        start = 0
        for parameter in self.wanted:
            part = w[start : start + parameter.size]
            parameter.value = part.reshape(parameter.shape, order="F")
            start += parameter.size
        self.handle.value = np.zeros(self.handle.size) if h is None else h
        return read_compiled(self.problem.get_problem_data(self.solver)[0])

    def _solver(self, cvxpy: Any) -> str:
        """SciPy's form is of linear programs, integer ones too; Clarabel's of the others."""
        for self.solver in (cvxpy.SCIPY, cvxpy.CLARABEL):
            try:
                self.at(self.steps)
            except cvxpy.error.SolverError:
                continue
            return self.solver
        raise InputError(
            "`problem` must be a linear program, perhaps with integers, or a quadratic one "
            "without; it is neither."
        )


def _import(probe: _Probe, value: np.ndarray | None) -> ImportedModel:
    base = probe.at(np.zeros(len(probe.steps)))
    S = _columns(base.cost, [probe.at(w).cost for w in np.diag(probe.steps)]) / probe.steps
    _refuse_other_ways(probe, base, S)
    units = np.eye(probe.handle.size)
    U = _columns(base.cost, [probe.at(np.zeros(len(probe.steps)), h).cost for h in units])
    order = _order(S, U, base.cost)
    S, U, base = S[order], U[order], base.taken(order)
    own = U.any(axis=1)
    names = _column_names(U, [name for variable in probe.variables for name in _entries(variable)])
    model = assemble(base.raw(SOURCE, names, None if value is None else S @ value + base.cost))
    likely = S @ probe.steps + base.cost
    parameter_names = [name for parameter in probe.wanted for name in _entries(parameter)]
    return replace(
        model,
        maximized=probe.maximized,
        constant=np.nan,  # CVXPY keeps it to itself
        form=_form(probe, S, base.cost),
        parameter_names=tuple(parameter_names),
        completion=None if own.all() else Completion(np.flatnonzero(own), likely),
    )


def _columns(base: np.ndarray, moved: list[np.ndarray]) -> np.ndarray:
    """(n, .): by how much each step moved the cost, without the rounding of a difference."""
    change = np.stack(moved, axis=1) - base[:, None]
    return np.where(np.abs(change) <= 1e-13 * np.abs(base[:, None]), 0.0, change)


def _order(S: np.ndarray, U: np.ndarray, c0: np.ndarray) -> np.ndarray:
    """Columns as their costs are in the parameter, if each has one there; else as the variables
    are, auxiliary columns last."""
    if S.shape[0] == S.shape[1] and not c0.any() and _is_permutation(np.abs(S)):
        return np.argmax(np.abs(S), axis=0)
    first = np.where(U.any(axis=1), np.argmax(U != 0, axis=1), U.shape[1])
    return np.argsort(first, kind="stable")


def _is_permutation(S: np.ndarray) -> bool:
    return bool(
        np.isin(S, (0, 1)).all() and (S.sum(axis=0) == 1).all() and (S.sum(axis=1) == 1).all()
    )


def _form(probe: _Probe, S: np.ndarray, c0: np.ndarray) -> CostForm | None:
    signs = np.concatenate([np.full(p.size, _sign(p)) for p in probe.wanted])
    if not signs.any() and not c0.any() and np.array_equal(S, np.eye(len(S))):
        return None
    lower, upper = np.where(signs > 0, 0.0, -np.inf), np.where(signs < 0, 0.0, np.inf)
    return CostForm(sparse.csr_array(S), c0, lower=lower, upper=upper)


def _column_names(U: np.ndarray, entries: list[str]) -> tuple[str, ...]:
    names, count = [], 0
    for row in U:
        if row.any():
            names.append(entries[int(np.argmax(row != 0))])
        else:
            names.append(f"auxiliary {count}")
            count += 1
    return tuple(names)


def _entries(array: Any) -> list[str]:
    """A name for every entry of a variable or parameter, by columns: x, x[2], x[0,1]."""
    if not array.shape:
        return [array.name()]
    places = [np.unravel_index(k, array.shape, order="F") for k in range(array.size)]
    return [f"{array.name()}[{','.join(str(i) for i in place)}]" for place in places]


@contextmanager
def _kept_values(parameters: list[Any]) -> Iterator[np.ndarray | None]:
    """The values (p,) that the parameters have, None if one has none; they get them back after."""
    values = [parameter.value for parameter in parameters]
    known = all(value is not None for value in values)
    try:
        yield np.concatenate([np.ravel(v, order="F") for v in values]) if known else None
    finally:
        for parameter, value in zip(parameters, values, strict=True):
            parameter.value = value


# --- checks --------------------------------------------------------------------------------------


def _check(cvxpy: Any, problem: Any, wanted: list[Any]) -> None:
    if not isinstance(problem, cvxpy.Problem):
        raise InputError(f"`problem` must be a cvxpy.Problem; got {type(problem).__name__}.")
    known = {parameter.id for parameter in problem.parameters()}
    for parameter in wanted:
        if not isinstance(parameter, cvxpy.Parameter) or parameter.id not in known:
            raise InputError(
                "`cost_parameter` must be a cvxpy.Parameter of the problem, or a list of them; got "
                f"{str(parameter)[:60]}. The problem has: "
                f"{', '.join(p.name() for p in problem.parameters()) or 'none'}."
            )
        _sign(parameter)
    own = {parameter.id for parameter in wanted}
    for number, constraint in enumerate(problem.constraints):
        if own & {parameter.id for parameter in constraint.parameters()}:
            raise InputError(
                "`cost_parameter` must be in the objective alone; it is in constraint "
                f"{number} too: {str(constraint)[:80]}. What is learned are costs."
            )
    unset = [p.name() for p in problem.parameters() if p.id not in own and p.value is None]
    if unset:
        raise InputError(f"All other parameters must have values; {unset[0]} has none.")
    if not problem.is_dcp():
        raise InputError("`problem` must be convex by CVXPY's rules (DCP); it is not.")
    if not problem.is_dcp(dpp=True):
        raise InputError(
            "The objective must be linear in its parameters by CVXPY's rules (DPP), such as "
            "`c @ x`; it is not. A product of parameters, say, can be a parameter of its own."
        )


def _sign(parameter: Any) -> float:
    """The sign that a parameter is declared with, 0 for none."""
    declared = {
        name for name, on in parameter.attributes.items() if on is not False and on is not None
    }
    other = declared - set(_SIGNS)
    if other:
        raise InputError(
            "`cost_parameter` must be plain, or declared nonneg or nonpos; "
            f"{parameter.name()} is declared {', '.join(sorted(other))}."
        )
    return next((_SIGNS[name] for name in declared), 0.0)


def _refuse_other_ways(probe: _Probe, base: Compiled, S: np.ndarray) -> None:
    """Anything but the cost may not move with the parameter, and the cost only in proportion."""
    w = probe.steps * np.random.default_rng(0).uniform(0.5, 2.0, len(probe.steps))
    there = probe.at(w)
    size = 1.0 + np.abs(S) @ np.abs(w) + np.abs(base.cost)
    if not there.has_curvature_of(base):
        raise InputError(
            "The objective must be linear in `cost_parameter`; here it multiplies a quadratic term "
            "such as sum_squares, whose curvature moves with it. An unknown curvature is for "
            "rv.QuadraticProgram with Q=None, or for rv.ConvexProgram."
        )
    if not there.has_rows_of(base) or (np.abs(there.cost - base.cost - S @ w) > 1e-9 * size).any():
        raise InputError(
            "The objective must be linear in `cost_parameter`; here it is inside a function such "
            "as abs, max, a norm or a square, whose compiled constraints move with it. Where the "
            "gradient in the variables is affine in it all the same, rv.ConvexProgram will do."
        )
