"""Sets of several problems: each part is projected by itself. Letters: B instances."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .._common.arrays import as_costs, is_torch, to_float64
from ..errors import ShapeError
from ..optimality.mixed import MixedSets, padded
from ..optimality.protocol import ProjectionOptions
from ..optimality.sets import OptimalitySet
from ..oracles.calls import deadline_after, seconds_until
from .project import projected
from .result import Projection, as_given

_PARALLEL = ("distance", "residual", "solved", "status", "iterations")


def project_mixed(costs: Any, sets: MixedSets, options: ProjectionOptions) -> Projection:
    """Each part projected by itself. A list comes back as a list of points, an array filled up."""
    C = padded(costs, sets)
    point = np.array(C if isinstance(costs, list | tuple) else to_float64(costs, "costs"))
    multipliers = np.zeros((len(sets), max(_n_multipliers(part) for part in sets.parts)))
    warm = _checked_warm(options.warm_start, multipliers.shape)
    deadline = deadline_after(options.time_limit)
    # Nothing was projected: empty arrays of the usual types.
    none = _nothing(sets.parts[0], replace(options, warm_start=None, time_limit=None))
    found = {name: np.empty(len(sets), getattr(none, name).dtype) for name in _PARALLEL}
    for here, part in sets.groups():
        m = _n_multipliers(part)
        start, left = None if warm is None else warm[here, :m], seconds_until(deadline)
        near = projected(
            np.ascontiguousarray(C[here, : part.n_parameters]),
            part,
            replace(options, warm_start=start, time_limit=left),
        )
        point[here, : part.n_parameters] = near.point
        multipliers[here, :m] = near.multipliers
        for name in _PARALLEL:
            found[name][here] = getattr(near, name)
    return _like(costs, Projection(point, **found, multipliers=multipliers), sets.sizes)


def _nothing(sets: OptimalitySet, options: ProjectionOptions) -> Projection:
    return projected(np.zeros((0, sets.n_parameters)), sets[:0], options)


def _n_multipliers(part: OptimalitySet) -> int:
    def count() -> int:
        return _nothing(part, ProjectionOptions()).multipliers.shape[1]

    # Of whole parts and of their slices alike; the parts stay, the slices come and go.
    return part.cached("projection.multipliers", count)


def _checked_warm(warm: Any, shape: tuple[int, int]) -> np.ndarray | None:
    warm = getattr(warm, "multipliers", warm)
    if warm is None:
        return None
    array = to_float64(warm, "warm_start")
    if array.shape != shape:
        raise ShapeError(
            "`warm_start` must be a Projection of the same sets, or its multipliers of shape "
            f"{shape}; got shape {array.shape}."
        )
    return array


def _like(costs: Any, near: Projection, sizes: np.ndarray) -> Projection:
    if isinstance(costs, list | tuple):
        points = [row[:size] for row, size in zip(near.point, sizes, strict=True)]
        return replace(near, point=points)
    if not is_torch(costs):
        return near
    restore = as_costs(costs.detach().nan_to_num(), costs.shape[1])[1]
    return as_given(near, restore)
