"""A problem as tensors and facts, and back: every number checked before it is used.

Linear, quadratic and integer programs are kept in full, with matrices that differ by instance and,
if linear, with the structure that their fast oracle knows. A problem made of Python functions is
not, nor are tours and other integer programs with a structure: a model of one is loaded with
`load(folder, problem=...)`.

Letters: B instances, n variables, m rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from .._common.rows import Rows, frozen
from ..errors import InputError
from ..optimality.cost_form import CostForm
from ..problems.integer import IntegerProgram
from ..problems.linear import LinearProgram
from ..problems.quadratic import QuadraticProgram
from .folder import Facts, Tensors, tensor
from .structures import pack_structure, unpack_structure

VECTORS = ("b_eq", "b_ub", "lb", "ub")


def pack_problem(problem: Any) -> tuple[dict[str, Any], Tensors]:
    """What `unpack_problem` needs: facts for JSON and tensors."""
    if type(problem) is QuadraticProgram:
        facts = {
            "kind": "quadratic",
            "gamma": problem.gamma,
            "sense": problem.sense,
            "semidefinite": problem.semidefinite,
        }
        known = {} if problem.Q is None else {"problem.Q": np.array(problem.Q)}
        return facts, pack_constraints(problem.constraints) | known
    if type(problem) is LinearProgram:
        packed = pack_structure(problem.structure)
        if packed is not None:
            facts, tensors = packed
            return {"kind": "linear", **facts}, pack_constraints(problem) | tensors
    if type(problem) is IntegerProgram and problem.structure is None:
        own = {
            "problem.integer": problem.integer.astype(np.int64),
            "problem.distance": np.array(problem.distance),
        }
        return {"kind": "integer"}, pack_constraints(problem.relaxation) | own
    return {
        "kind": "given",
        "type": type(problem).__name__,
        "n_variables": int(problem.n_variables),
        "n_parameters": int(problem.n_parameters),
    }, {}


def unpack_problem(facts: Facts, tensors: Tensors, given: Any = None) -> Any:
    """The problem, or the `given` one if it has the right number of variables."""
    kind = facts.get("kind", str)
    if given is not None:
        _check_given(given, facts, tensors)
        return given
    if kind == "given":
        raise InputError(
            f"The problem of this model, a {facts.get('type', str)[:60]}, holds Python functions "
            "or constraints that no row holds, which are not kept on disk. Build it again and give "
            "it: load(folder, problem=...)."
        )
    if kind not in ("linear", "quadratic", "integer"):
        raise InputError(
            f"{facts.where}: this version of revealed knows problems of kind 'linear', 'quadratic' "
            f"and 'integer', not {kind[:40]!r}."
        )
    constraints = unpack_constraints(tensors)
    if kind == "linear":
        return unpack_structure(facts, tensors, constraints)
    if kind == "integer":
        return _unpack_integer(tensors, constraints)
    Q = tensors.get("problem.Q")
    n = constraints.n_variables
    return QuadraticProgram(
        facts.get("gamma", float),
        None if Q is None else tensor(tensors, "problem.Q", (*(None,) * (Q.ndim - 2), n, n)),
        facts.get("sense", str),
        constraints.eq_rows if constraints.eq_rows.shape[0] else None,
        constraints.b_eq if constraints.eq_rows.shape[0] else None,
        constraints.ub_rows if constraints.ub_rows.shape[0] else None,
        constraints.b_ub if constraints.ub_rows.shape[0] else None,
        constraints.lb,
        constraints.ub,
        semidefinite=facts.get("semidefinite", bool),
    )


def unpack_named(facts: Facts, tensors: Tensors) -> LinearProgram | IntegerProgram:
    """The problem of a model with names, which says by name what is whole; a model of an earlier
    version is of the relaxation."""
    rows = unpack_structure(facts, tensors, unpack_constraints(tensors))
    if not (facts.has("whole") and facts.get("whole", bool)):
        return rows
    variables, whole = facts.words("variables"), facts.words("integers")
    unknown = set(whole) - set(variables)
    if unknown or not whole:
        raise InputError(f"{facts.where}: 'integers' must be variables, at least one.")
    return IntegerProgram.of(rows, np.isin(variables, whole))


def _unpack_integer(tensors: Tensors, rows: LinearProgram) -> IntegerProgram:
    n = rows.n_variables
    mask = tensor(tensors, "problem.integer", (n,), "i")
    return IntegerProgram(
        rows.eq_rows if rows.eq_rows.shape[0] else None,
        rows.b_eq if rows.eq_rows.shape[0] else None,
        rows.ub_rows if rows.ub_rows.shape[0] else None,
        rows.b_ub if rows.ub_rows.shape[0] else None,
        rows.lb,
        rows.ub,
        integer=mask,
        distance=tensor(tensors, "problem.distance", (n,)),
    )


def pack_constraints(problem: LinearProgram) -> Tensors:
    """Rows, right-hand sides and bounds."""
    tensors = {f"problem.{name}": np.array(getattr(problem, name)) for name in VECTORS}
    return (
        tensors
        | pack_rows("problem.eq", problem.eq_rows)
        | pack_rows("problem.ub", problem.ub_rows)
    )


def unpack_constraints(tensors: Tensors) -> LinearProgram:
    """The linear program, without its structure."""
    vectors = {name: _vector(tensors, f"problem.{name}") for name in VECTORS}
    n = vectors["lb"].shape[-1]
    return LinearProgram(
        unpack_rows(tensors, "problem.eq", vectors["b_eq"].shape[-1], n),
        vectors["b_eq"],
        unpack_rows(tensors, "problem.ub", vectors["b_ub"].shape[-1], n),
        vectors["b_ub"],
        vectors["lb"],
        vectors["ub"],
    )


def pack_rows(name: str, rows: Rows) -> Tensors:
    """A matrix, or one for each instance."""
    return {
        f"{name}.starts": np.array(rows.indptr),
        f"{name}.columns": np.array(rows.indices),
        f"{name}.values": np.array(rows.data if rows.per_instance else rows.data[0]),
    }


def unpack_rows(tensors: Tensors, name: str, m: int, n: int) -> Any:
    """The matrix (m, n), or Rows where it differs by instance."""
    starts = tensor(tensors, f"{name}.starts", (m + 1,), "i")
    columns = tensor(tensors, f"{name}.columns", (None,), "i")
    values = tensors.get(f"{name}.values", np.zeros(0))
    shape = (None, len(columns)) if values.ndim == 2 else (len(columns),)
    values = tensor(tensors, f"{name}.values", shape)
    increasing = starts[0] == 0 and starts[-1] == len(columns) and (np.diff(starts) >= 0).all()
    if not increasing or (columns.size and not 0 <= columns.min() <= columns.max() < n):
        raise InputError(
            f"The rows {name!r} of the stored problem are not a matrix of {n} columns."
        )
    if values.ndim == 1:
        return sparse.csr_array((values, columns, starts), shape=(m, n))
    owner = np.repeat(np.arange(m), np.diff(starts))
    if (np.diff(owner * n + columns) <= 0).any():
        raise InputError(f"The rows {name!r} of the stored problem name a column twice.")
    parts = (frozen(np.array(part)) for part in (starts, columns, values))
    return Rows((m, n), *parts, per_instance=True)


def _vector(tensors: Tensors, name: str) -> np.ndarray:
    """(m,), or (B, m) where it differs by instance."""
    array = tensors.get(name)
    shape = (None,) if array is None or array.ndim != 2 else (None, None)
    return tensor(tensors, name, shape)


def _check_given(given: Any, facts: Facts, tensors: Tensors) -> None:
    if facts.get("kind", str) == "given":
        n = facts.get("n_variables", int)
    else:
        n = _vector(tensors, "problem.lb").shape[-1]
    if getattr(given, "n_variables", None) != n:
        raise InputError(
            f"The model was fitted to a problem of {n} variables; `problem` has "
            f"{getattr(given, 'n_variables', 'none')}."
        )


_LIMITS = ("lower", "upper", "cost_lower", "cost_upper")


def pack_form(form: CostForm) -> Tensors:
    """Matrix, offset and limits."""
    tensors = {f"form.{name}": np.array(getattr(form, name)) for name in _LIMITS}
    tensors["form.offset"] = np.array(form.map.offset)
    return tensors | pack_rows("form.matrix", form.map.rows)


def unpack_form(tensors: Tensors) -> CostForm:
    """The form, refused if its parts do not fit together."""
    parts = {name: _array(tensors, f"form.{name}") for name in ("offset", *_LIMITS)}
    n, p = parts["offset"].shape[-1], parts["lower"].shape[-1]
    if not n * p:
        raise InputError("The stored form has no entries.")
    matrix = unpack_rows(tensors, "form.matrix", n, p)
    return CostForm(matrix, parts.pop("offset"), **parts)


def _array(tensors: Tensors, name: str) -> np.ndarray:
    array = tensors.get(name)
    shape = (None,) if array is None or array.ndim != 2 else (None, None)
    return tensor(tensors, name, shape)
