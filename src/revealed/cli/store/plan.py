"""A plan as tensors and facts, and back: every number looked at before it is used."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import InputError
from ...io.folder import Facts, Tensors, tensor
from ...io.problems import VECTORS, pack_constraints, unpack_named
from ...io.structures import pack_structure, same_rows
from ...problems.integer import IntegerProgram
from ...problems.linear import LinearProgram
from ..plans import Plan, from_catalogue


def pack_plan(plan: Plan) -> tuple[dict[str, Any], Tensors]:
    """What `unpack_plan` needs."""
    tensors = pack_constraints(plan.rows)
    structure = pack_structure(plan.rows.structure)
    if plan.cost is not None:
        tensors["problem.cost"] = np.array(plan.cost, float)
    facts = {
        "name": plan.name,
        "catalogue": plan.catalogue,
        "maximize": plan.maximize,
        "variables": list(plan.variables),
        "equalities": list(plan.equalities),
        "inequalities": list(plan.inequalities),
        "integers": list(plan.integers),
        **({"whole": True} if plan.is_whole else {}),
        "at_least": list(plan.at_least),
    }
    if structure is not None:  # for readers that do not know the catalogue
        facts, tensors = facts | structure[0], tensors | structure[1]
    return facts, tensors


def unpack_plan(facts: Facts, tensors: Tensors) -> Plan:
    """The plan, refused if its parts do not fit together."""
    names = {n: facts.words(n) for n in ("variables", "equalities", "inequalities", "integers")}
    n = len(names["variables"])
    length = {"b_eq": len(names["equalities"]), "b_ub": len(names["inequalities"])}
    for name in VECTORS:  # of all samples alike, and as many as there are names
        tensor(tensors, f"problem.{name}", (length.get(name, n),))
    problem = unpack_named(facts, tensors)
    catalogue = facts.get("catalogue", str) if facts.has("catalogue") else None
    if catalogue is not None:
        if isinstance(problem, IntegerProgram):
            raise InputError(f"{facts.where}: no problem of the catalogue has whole variables.")
        problem = _same(from_catalogue(catalogue).rows, problem, catalogue)
    cost = tensor(tensors, "problem.cost", (n,)) if "problem.cost" in tensors else None
    return Plan(
        problem,
        **names,
        name=facts.get("name", str),
        catalogue=catalogue,
        # Models saved before American spelling say "maximise".
        maximize=facts.get("maximise" if facts.has("maximise") else "maximize", bool),
        at_least=facts.whole_numbers("at_least") if facts.has("at_least") else (),
        cost=cost,
    )


def _same(built: LinearProgram, stored: LinearProgram, call: str) -> LinearProgram:
    """The problem from the catalogue, if it is the stored one."""
    alike = built.n_variables == stored.n_variables and all(
        np.array_equal(getattr(built, name), getattr(stored, name)) for name in VECTORS
    )
    if not (alike and same_rows(built.eq_rows, stored.eq_rows)) or not same_rows(
        built.ub_rows, stored.ub_rows
    ):
        raise InputError(f"The stored problem is not the one that {call!r} builds.")
    return built
