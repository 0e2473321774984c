"""PyEPO's optimization models, so that a training loop written for PyEPO can use our losses.

    model = rv.from_pyepo(optmodel)
    loss_fn = rv.ProjectionLoss(model.problem, form=model.form)
    for x, c, w, z in loader:              # PyEPO's own loader
        loss = loss_fn(predictor(x), w)    # called like PyEPO's perturbedFenchelYoung

What the predictor says means what it means to PyEPO: costs, or values where the model maximizes,
of the entries that the model predicts; `model.form` makes costs of them. PyEPO itself is never
imported: a model can only arrive if its owner has it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from ..errors import InputError
from ..optimality.cost_form import CostForm
from .completion import Completion
from .gurobi import raw_gurobi
from .imported import ImportedModel
from .raw import RawModel, assemble

_MAXIMIZE = -1


def from_pyepo(optmodel: Any) -> ImportedModel:
    """The constraints of a PyEPO `optModel` that is built on Gurobi, OR-Tools (LP and MIP) or MPAX.

    `model.problem` has the model's variables in the order of its predicted costs; variables that
    have none come last and are filled in by `model.decisions`. Integer variables are relaxed, with
    a warning.

    Parameters
    ----------
    optmodel : PyEPO optModel
        Built on Gurobi, OR-Tools' linear solver or MPAX.

    Returns
    -------
    ImportedModel
        `model.form` makes costs of what PyEPO predicts; None where they are the same.

    Raises
    ------
    InputError
        If the model solves by an algorithm of its own, or a predicted cost belongs to several
        variables.
    """
    if not all(hasattr(optmodel, name) for name in ("num_cost", "setObj", "modelSense")):
        raise InputError(f"`optmodel` must be a PyEPO optModel; got {type(optmodel).__name__}.")
    raw, priced = _read(optmodel)
    if raw.maximized and raw.quadratic is not None:
        raw.quadratic = -raw.quadratic  # costs are turned by the form, from here on all minimize
    order = np.concatenate([priced, np.setdiff1d(np.arange(len(raw.lb)), priced)])
    raw = _reordered(raw, order)
    raw.source, raw.maximized = f"PyEPO's {type(optmodel).__name__}", False
    return _with_form(assemble(raw), optmodel, len(priced))


def _with_form(model: ImportedModel, optmodel: Any, n_priced: int) -> ImportedModel:
    """What is predicted, as PyEPO spreads it over the variables: c = +-(S w + fixed costs)."""
    n, p = model.problem.n_variables, int(optmodel.num_cost)
    index = getattr(optmodel, "c_pred_index", None)
    places = np.arange(p) if index is None else np.asarray(index, dtype=np.int64)
    fixed = np.zeros(n)
    fixed[:n_priced] = np.zeros(n_priced) if index is None else optmodel._fullCost(np.zeros(p))
    maximized = int(optmodel.modelSense) == _MAXIMIZE
    sign = -1.0 if maximized else 1.0
    S = sparse.csr_array((np.full(p, sign), (places, np.arange(p))), shape=(n, p))
    plain = not maximized and n == p and not fixed.any() and np.array_equal(places, np.arange(p))
    completion = Completion(np.arange(n_priced), sign * fixed) if n_priced < n else None
    names = tuple(model.variable_names[j] for j in places)
    return replace(
        model,
        cost=None,  # PyEPO's models are given one for each solve
        constant=np.nan,
        maximized=maximized,
        form=None if plain else CostForm(S, sign * fixed),
        parameter_names=names,
        completion=completion,
    )


def _read(optmodel: Any) -> tuple[RawModel, np.ndarray]:
    """The solver's model, and which of its columns have predicted costs, in their order."""
    inner: Any = getattr(optmodel, "_model", None)
    repeated = getattr(optmodel, "_cost_vars", None)
    if repeated and len(repeated) != optmodel.num_cost:
        raise InputError(
            f"{type(optmodel).__name__} has {optmodel.num_cost} predicted costs for "
            f"{len(repeated)} variables; only models with a cost for each can be read. Build the "
            "constraints with rv.LinearProgram and tie costs with rv.CostForm."
        )
    if hasattr(inner, "getA") and hasattr(inner, "getConstrs"):
        inner.update()
        chosen = optmodel.x.tolist() if hasattr(optmodel.x, "tolist") else optmodel.x.values()
        return raw_gurobi(inner), np.array([v.index for v in repeated or chosen], dtype=np.int64)
    if hasattr(inner, "NumVariables") and hasattr(inner, "constraints"):
        chosen = repeated or list(optmodel.x.values())
        return _raw_ortools(inner), np.array([v.index() for v in chosen], dtype=np.int64)
    if inner is None and all(hasattr(optmodel, name) for name in "AbGhlu"):
        return _raw_mpax(optmodel), np.arange(len(np.asarray(optmodel.l)))
    raise InputError(
        f"{type(optmodel).__name__} must be built on Gurobi, OR-Tools' linear solver or MPAX. "
        "If its solver can write an MPS file, use rv.read_mps on that."
    )


def _raw_ortools(solver: Any) -> RawModel:
    """A pywraplp.Solver, whose rows are read entry by entry, as that is all it offers."""
    variables, rows = solver.variables(), solver.constraints()
    entries = [[row.GetCoefficient(variable) for variable in variables] for row in rows]
    infinity = solver.infinity()
    return RawModel(
        source="the OR-Tools model",
        matrix=sparse.csr_array(np.array(entries).reshape(len(rows), len(variables))),
        row_lower=_limits([row.lb() for row in rows], infinity),
        row_upper=_limits([row.ub() for row in rows], infinity),
        lb=_limits([variable.lb() for variable in variables], infinity),
        ub=_limits([variable.ub() for variable in variables], infinity),
        variable_names=tuple(variable.name() for variable in variables),
        row_names=tuple(row.name() for row in rows),
        cost=None,
        integer=np.array([variable.integer() for variable in variables], dtype=bool),
    )


def _limits(values: list[float], infinity: float) -> np.ndarray:
    array = np.array(values, dtype=np.float64)
    return np.where(np.abs(array) >= infinity, np.copysign(np.inf, array), array)


def _raw_mpax(optmodel: Any) -> RawModel:
    """A x = b, G x >= h, l <= x <= u, and perhaps 1/2 x^T Q x."""
    A, b, G, h, l, u = (np.asarray(getattr(optmodel, name), dtype=np.float64) for name in "AbGhlu")
    n, Q = len(l), getattr(optmodel, "Q", None)
    A, G = A.reshape(-1, n), G.reshape(-1, n)
    return RawModel(
        source="the MPAX model",
        matrix=sparse.csr_array(np.vstack([A, G])),
        row_lower=np.concatenate([b.ravel(), h.ravel()]),
        row_upper=np.concatenate([b.ravel(), np.full(len(G), np.inf)]),
        lb=l,
        ub=u,
        variable_names=tuple(f"x{j}" for j in range(n)),
        row_names=tuple([f"eq{i}" for i in range(len(A))] + [f"ge{i}" for i in range(len(G))]),
        cost=None,
        quadratic=None if Q is None else sparse.csr_array(np.asarray(Q, dtype=np.float64)),
    )


def _reordered(raw: RawModel, order: np.ndarray) -> RawModel:
    def taken(array: np.ndarray | None) -> np.ndarray | None:
        return None if array is None else array[order]

    return replace(
        raw,
        matrix=raw.matrix[:, order],
        lb=raw.lb[order],
        ub=raw.ub[order],
        variable_names=tuple(raw.variable_names[j] for j in order),
        cost=taken(raw.cost),
        integer=taken(raw.integer),
        semicontinuous=taken(raw.semicontinuous),
        quadratic=None if raw.quadratic is None else raw.quadratic[order][:, order],
    )
