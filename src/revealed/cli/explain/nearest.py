"""The nearest costs that explain a decision, and keep to what is given of the costs.

Letters: B samples, n variables.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...optimality.sets import OptimalitySet
from ...projection import project
from ...projection.result import ProjectionStatus
from ..plans import GivenCosts


class Nearest(NamedTuple):
    """What costs would have to be."""

    costs: np.ndarray
    """(B, n) NaN where no costs explain the decision that keep to what is given."""
    distance: np.ndarray
    """(B,) inf there."""
    solved: np.ndarray
    """(B,) whether the distance is proved."""


def explaining(problem: Any, decisions: np.ndarray, given: GivenCosts | None) -> OptimalitySet:
    """The costs that explain decisions (B, n) and keep to what is given, with no margin."""
    form = None if given is None else given.form
    return OptimalitySet(problem, decisions, 0.0, form=form)


def nearest_costs(
    sets: OptimalitySet,
    costs: np.ndarray,
    given: GivenCosts | None,
    time_limit: float | None = None,
) -> Nearest:
    """Those of the sets of `explaining` that are nearest to costs (B, n)."""
    if given is None:
        found = project(costs, sets, time_limit=time_limit)
        return Nearest(*map(np.asarray, (found.point, found.distance, found.solved)))
    found = project(given.parameters(costs), sets, time_limit=time_limit)
    none = np.asarray(found.status) == ProjectionStatus.EMPTY
    point = given.form.costs(np.where(none[:, None], 0.0, found.point))
    point[none] = np.nan
    distance = np.where(none, np.inf, np.linalg.norm(point - costs, axis=1))
    return Nearest(point, distance, np.asarray(found.solved))
