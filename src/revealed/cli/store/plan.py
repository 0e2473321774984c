"""A plan as tensors and facts, and back: every number looked at before it is used."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ..._common.rows import Rows
from ...errors import InputError
from ...problems.linear import LinearProgram
from ..plans import Plan, from_catalogue
from .folder import Facts, Tensors, tensor

VECTORS = ("b_eq", "b_ub", "lb", "ub")


def pack_plan(plan: Plan) -> tuple[dict[str, Any], Tensors]:
    """What `unpack_plan` needs."""
    problem = plan.problem
    tensors = {f"problem.{name}": np.array(getattr(problem, name)) for name in VECTORS}
    for name, rows in (("eq", problem.eq_rows), ("ub", problem.ub_rows)):
        tensors |= {
            f"problem.{name}.starts": np.array(rows.indptr),
            f"problem.{name}.columns": np.array(rows.indices),
            f"problem.{name}.values": np.array(rows.data[0]),
        }
    if plan.cost is not None:
        tensors["problem.cost"] = np.array(plan.cost, float)
    facts = {
        "name": plan.name,
        "catalogue": plan.catalogue,
        "maximise": plan.maximise,
        "variables": list(plan.variables),
        "equalities": list(plan.equalities),
        "inequalities": list(plan.inequalities),
        "integers": list(plan.integers),
        "at_least": list(plan.at_least),
    }
    return facts, tensors


def unpack_plan(facts: Facts, tensors: Tensors) -> Plan:
    """The plan, refused if its parts do not fit together."""
    names = {n: facts.words(n) for n in ("variables", "equalities", "inequalities", "integers")}
    n = len(names["variables"])
    sizes = {"eq": len(names["equalities"]), "ub": len(names["inequalities"])}
    length = {"b_eq": sizes["eq"], "b_ub": sizes["ub"], "lb": n, "ub": n}
    vectors = {name: tensor(tensors, f"problem.{name}", (length[name],)) for name in VECTORS}
    rows = {name: _matrix(tensors, name, m, n) for name, m in sizes.items()}
    problem = LinearProgram(
        rows["eq"], vectors["b_eq"], rows["ub"], vectors["b_ub"], vectors["lb"], vectors["ub"]
    )
    catalogue = facts.get("catalogue", str) if facts.has("catalogue") else None
    if catalogue is not None:
        problem = _same(from_catalogue(catalogue).problem, problem, catalogue)
    cost = tensor(tensors, "problem.cost", (n,)) if "problem.cost" in tensors else None
    return Plan(
        problem,
        **names,
        name=facts.get("name", str),
        catalogue=catalogue,
        maximise=facts.get("maximise", bool),
        at_least=facts.whole_numbers("at_least") if facts.has("at_least") else (),
        cost=cost,
    )


def _matrix(tensors: Tensors, name: str, m: int, n: int) -> sparse.csr_array:
    starts = tensor(tensors, f"problem.{name}.starts", (m + 1,), "i")
    columns = tensor(tensors, f"problem.{name}.columns", (None,), "i")
    values = tensor(tensors, f"problem.{name}.values", (len(columns),))
    increasing = starts[0] == 0 and starts[-1] == len(columns) and (np.diff(starts) >= 0).all()
    if not increasing or (columns.size and not 0 <= columns.min() <= columns.max() < n):
        raise InputError(
            f"The rows {name!r} of the stored problem are not a matrix of {n} columns."
        )
    return sparse.csr_array((values, columns, starts), shape=(m, n))


def _same(built: LinearProgram, stored: LinearProgram, call: str) -> LinearProgram:
    """The problem from the catalogue, if it is the stored one."""
    alike = built.n_variables == stored.n_variables and all(
        np.array_equal(getattr(built, name), getattr(stored, name)) for name in VECTORS
    )
    if not (alike and _same_rows(built.eq_rows, stored.eq_rows)) or not _same_rows(
        built.ub_rows, stored.ub_rows
    ):
        raise InputError(f"The stored problem is not the one that {call!r} builds.")
    return built


def _same_rows(one: Rows, other: Rows) -> bool:
    return one.shape == other.shape and all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("indptr", "indices", "data")
    )
