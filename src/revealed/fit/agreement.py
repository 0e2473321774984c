"""Which model and solver the settings of an estimator mean, once all of them go together."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._common.checks import check_number
from ..errors import InputError
from ..problems.protocol import check_problem
from .loss_names import power_and_delta
from .models import CostModel
from .named_models import as_model, is_regressor, refuse_own_settings
from .prediction import cost_units
from .solvers import Solver, as_solver


def checked_settings(est: Any, model: Any, Z: Any, validation: Any) -> tuple[CostModel, Solver]:
    """The model, not yet fitted, and the solver; refused in a sentence where they do not fit."""
    check_problem(est.problem)
    for name in ("noise", "ridge"):
        if getattr(est, name) != "auto":
            check_number(getattr(est, name), name, ' Or "auto".')
    power_and_delta(est.loss)
    solver = as_solver(est.solver, usual_solver(est.model))
    chosen = as_model(model, by_entry=_by_entry(Z), boosts=solver.name == "boosting")
    solver.check()
    refuse_own_settings(chosen)
    if chosen.family not in solver.families:
        raise InputError(
            f'solver={solver.name!r} does not go with this model: "lbfgs" is for models that are '
            'linear in what they learn; a module goes with "adam" and other first-order methods, '
            'a scikit-learn regressor with "boosting", both with "pocs".'
        )
    if validation is not None and not solver.validates:
        raise InputError("`validation` is for first-order solvers and boosting.")
    if cost_units(est.cost_map) is not None and chosen.family != "convex":
        raise InputError("A `cost_map` of units is for models that are linear in what they learn.")
    return chosen, solver


def usual_solver(model: Any) -> str:
    """What solver="auto" stands for."""
    if isinstance(model, str | list) or getattr(model, "family", "") == "convex":
        return "lbfgs"
    return "boosting" if is_regressor(model) else "adam"


def _by_entry(Z: Any) -> bool:
    """Whether contexts are features of each cost entry, as an array or a list of matrices."""
    if isinstance(Z, list | tuple):
        return len(Z) > 0 and np.ndim(Z[0]) == 2
    return getattr(Z, "ndim", 2) == 3
