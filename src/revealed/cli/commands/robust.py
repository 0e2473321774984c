"""Conformal cones of a stored model: calibrated when it is fitted, on the samples held out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError
from ...optimality.lines import LARGEST
from ...problems.linear import LinearProgram
from ..store import FittedModel
from .dossier import Dossier

if TYPE_CHECKING:
    from ...fit.conformal import Cone

MOST = 10_000
"""Angles kept with a model: the quantile of more is no different."""


def angles_of(model: FittedModel, dossier: Dossier, held: np.ndarray, seed: int) -> list[float]:
    """Angles in degrees, ascending, between predicted costs and those that explain the decisions
    of the samples held out; inf at 90° or more. Empty where they cannot be had."""
    from ...fit.conformal import explanation_angles

    rows = np.random.default_rng(seed).permutation(held)[:MOST]
    problem = dossier.plans[rows].problem
    if not isinstance(problem, LinearProgram) or problem.n_variables > LARGEST or not rows.size:
        return []
    found = explanation_angles(
        problem, model.costs(dossier.contexts[rows]), dossier.decisions[rows]
    )
    return np.sort(np.degrees(found)).tolist()


def cone_of(model: FittedModel, level: float) -> Cone:
    """The cone of that level; refused if nothing was held out, or if it rules nothing out."""
    from ...fit.conformal import conformal_cone

    if model.plan.is_whole:
        raise InputError("--robust is for decisions with fractions; this plan asks for whole ones.")
    kept = stored_angles(model)
    if kept is None:
        raise InputError(
            "--robust needs angles of samples held out, which this model does not have. Fit it "
            f"again with --holdout 0.2 and at most {LARGEST:,} variables."
        )
    cone = conformal_cone(kept, level)
    if cone.is_vacuous:
        raise InputError(f"There is no robust decision. {cone.statement}")
    return cone


def stored_angles(model: FittedModel) -> np.ndarray | None:
    """(B,) angles of the samples that were held out, in radians; None where the model has none."""
    angles = model.training.get("angles")
    if not isinstance(angles, list) or not angles:
        return None
    if not all(angle is None or type(angle) in (int, float) for angle in angles):
        raise InputError("The model's angles must be numbers; the folder was changed by hand.")
    return np.radians([np.inf if angle is None else angle for angle in angles])


def plain_cone(cone: Cone) -> dict[str, Any]:
    """For JSON."""
    return {
        "level": cone.level,
        "angle": float(np.degrees(cone.angle)),
        "calibration_samples": cone.size,
        "statement": cone.statement,
    }
