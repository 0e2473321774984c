"""gurobipy models, read through the attributes that every Gurobi model has.

gurobipy itself is never imported: a model can only arrive if its owner has it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ..errors import InputError
from .imported import ImportedModel
from .raw import RawModel, assemble

INFINITE = 1e20
"""Gurobi's own: limits of this size are none."""
BEYOND = {
    "NumQConstrs": "quadratic constraints",
    "NumSOS": "SOS constraints",
    "NumGenConstrs": "general constraints",
    "NumPWLObjVars": "piecewise linear objective terms",
}
_MAXIMIZE = -1


def from_gurobi(model: Any) -> ImportedModel:
    """The constraints, objective and names of a `gurobipy.Model`.

    A quadratic objective makes `problem` a QuadraticProgram. Integer variables are relaxed, with a
    warning.

    Parameters
    ----------
    model : gurobipy.Model
        `model.update()` is called on it.

    Returns
    -------
    ImportedModel

    Raises
    ------
    InputError
        If the model has constraints that are not linear, several objectives, or a piecewise linear
        one.
    """
    return assemble(raw_gurobi(model))


def raw_gurobi(model: Any) -> RawModel:
    """The model as plain arrays, in Gurobi's order of variables and rows."""
    if not all(hasattr(model, name) for name in ("getA", "getVars", "getConstrs")):
        raise InputError(f"`model` must be a gurobipy.Model; got {type(model).__name__}.")
    model.update()  # changes wait for this
    name = str(model.ModelName)
    source = f"the Gurobi model {name!r}" if name else "the Gurobi model"
    _refuse_beyond(model, source)
    variables, rows = model.getVars(), model.getConstrs()
    sense = np.array(model.getAttr("Sense", rows), dtype=object)
    rhs = _limits(model.getAttr("RHS", rows))
    kinds = np.array(model.getAttr("VType", variables), dtype=object)
    return RawModel(
        source=source,
        matrix=sparse.csr_array(model.getA()),
        row_lower=np.where(sense == "<", -np.inf, rhs),
        row_upper=np.where(sense == ">", np.inf, rhs),
        lb=_limits(model.getAttr("LB", variables)),
        ub=_limits(model.getAttr("UB", variables)),
        variable_names=tuple(model.getAttr("VarName", variables)),
        row_names=tuple(model.getAttr("ConstrName", rows)),
        cost=np.array(model.getAttr("Obj", variables), dtype=np.float64),
        constant=float(model.ObjCon),
        maximized=model.ModelSense == _MAXIMIZE,
        integer=np.isin(kinds, ["B", "I", "N"]),
        semicontinuous=np.isin(kinds, ["S", "N"]),
        quadratic=_quadratic(model),
    )


def _limits(values: Any) -> np.ndarray:
    array = np.array(values, dtype=np.float64)
    return np.where(np.abs(array) >= INFINITE, np.copysign(np.inf, array), array)


def _quadratic(model: Any) -> sparse.csr_array | None:
    """Q of 1/2 x^T Q x; Gurobi has x^T Q x, with each pair of variables on one side or both."""
    if not model.NumQNZs:
        return None
    half = sparse.csr_array(model.getQ())
    return sparse.csr_array(half + half.T)


def _refuse_beyond(model: Any, source: str) -> None:
    found = [words for attribute, words in BEYOND.items() if getattr(model, attribute)]
    if model.NumObj > 1:
        found.append("several objectives")
    if found:
        raise InputError(
            f"{source} has {' and '.join(found)}; only linear constraints and one linear or "
            "quadratic objective can be read. Write them as linear rows, or leave them out."
        )
