"""Sets of different problems, of whatever sizes, in one batch.

Costs come as a list of vectors, or as an array (B, widest) whose rows are filled up: entries beyond
an instance's own length are not looked at and come back as they are. Each instance gets the answer
that it gets alone. Letters: B instances.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .._common.arrays import as_index, is_torch, to_float64
from ..errors import InputError, ShapeError
from ..oracles.limits import deadline_after, seconds_until
from ..projection.result import Projection
from .sets import OptimalitySet

_PARALLEL = ("distance", "residual", "solved", "status", "iterations")


class MixedSets:
    """Several OptimalitySets as one; built by `OptimalitySet.concatenate`."""

    is_plain = False
    parts: tuple[Any, ...]
    """One OptimalitySet for each problem."""
    part: np.ndarray
    """(B,) which part an instance is of."""
    place: np.ndarray
    """(B,) where in its part it is."""

    def __init__(self, parts: Any) -> None:
        parts = tuple(parts)
        bad = [type(part).__name__ for part in parts if not isinstance(part, OptimalitySet)]
        if bad or not parts:
            raise InputError(
                "`parts` must be a list of at least one OptimalitySet; got "
                f"{bad[0] if bad else 'none'}."
            )
        self.parts = parts
        self.part = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        self.place = np.concatenate([np.arange(len(part)) for part in parts])

    def __len__(self) -> int:
        return len(self.part)

    @property
    def sizes(self) -> np.ndarray:
        """(B,) how many parameters each instance has."""
        return np.array([part.n_parameters for part in self.parts])[self.part]

    @property
    def n_parameters(self) -> int:
        """The most that any instance has: the width of an array of costs."""
        return max(part.n_parameters for part in self.parts)

    @property
    def margins(self) -> np.ndarray:
        """(B,)"""
        return self._gather("margins")

    @property
    def weights(self) -> np.ndarray:
        """(B,)"""
        return self._gather("weights")

    @property
    def repaired(self) -> np.ndarray:
        """(B,)"""
        return self._gather("repaired")

    @property
    def decisions(self) -> np.ndarray:
        """(B, widest), filled up with 0."""
        width = max(part.problem.n_variables for part in self.parts)
        result = np.zeros((len(self), width))
        for here, sets in self.groups():
            result[here, : sets.problem.n_variables] = sets.decisions
        return result

    def __getitem__(self, index: Any) -> MixedSets:
        """The chosen instances, in the order chosen: an integer, slice, mask or integer array."""
        chosen = as_index(index, len(self))
        result = object.__new__(MixedSets)
        result.parts, result.part, result.place = self.parts, self.part[chosen], self.place[chosen]
        return result

    def groups(self) -> Iterator[tuple[np.ndarray, Any]]:
        """Instances of each part that there are, and their sets."""
        for k, part in enumerate(self.parts):
            here = np.flatnonzero(self.part == k)
            if here.size:
                place = self.place[here]
                whole = len(place) == len(part) and (place == np.arange(len(part))).all()
                yield here, part if whole else part[place]

    def solve(self, costs: Any, **options: Any) -> list[Any]:
        """A list of B decisions, each the best of its own problem under its own costs.

        NaN where there is none. A form's costs are worked out first.
        """
        C = padded(costs, self)
        result: list[Any] = [None] * len(self)
        for here, sets in self.groups():
            own = C[here, : sets.n_parameters]
            own = own if sets.form is None else sets.form.costs(own)
            for b, x in zip(here, sets.problem.solve(own, **options).x, strict=True):
                result[b] = x
        return result

    def __repr__(self) -> str:
        return f"MixedSets({len(self)} decisions of {len(self.parts)} problems)"

    def _gather(self, name: str) -> np.ndarray:
        result = np.empty(len(self))
        for here, sets in self.groups():
            result[here] = getattr(sets, name)
        return result


Sets = OptimalitySet | MixedSets
"""What losses and fits take: sets of one problem, or of several."""


def padded(costs: Any, sets: MixedSets, name: str = "costs") -> np.ndarray:
    """(B, widest) float64, from an array of that shape or a list of B vectors; filled with 0."""
    sizes, width = sets.sizes, sets.n_parameters
    if isinstance(costs, list | tuple):
        rows = [to_float64(row, f"{name}[{b}]") for b, row in enumerate(costs)]
        if len(rows) != len(sets):
            raise ShapeError(f"`{name}` must hold {len(sets)} vectors; got {len(rows)}.")
        for b, (row, size) in enumerate(zip(rows, sizes, strict=True)):
            if row.shape != (size,):
                raise ShapeError(f"`{name}[{b}]` must have shape ({size},); got {row.shape}.")
        filled = [np.pad(row, (0, width - len(row))) for row in rows]
        return np.array(filled).reshape(len(rows), width)
    array = np.array(to_float64(costs, name))
    if array.shape != (len(sets), width):
        raise ShapeError(
            f"`{name}` must be a list of {len(sets)} vectors or have shape ({len(sets)}, {width}), "
            f"its rows filled up to the longest; got {array.shape}."
        )
    array[np.arange(width) >= sizes[:, None]] = 0.0
    return array


def project_mixed(costs: Any, sets: MixedSets, **options: Any) -> Projection:
    """Each part projected by itself. A list comes back as a list of points, an array filled up."""
    from ..projection import project

    C = padded(costs, sets)
    point = np.array(C if isinstance(costs, list | tuple) else to_float64(costs, "costs"))
    multipliers = np.zeros((len(sets), max(_rows_of(part) for part in sets.parts)))
    warm = _checked_warm(options.pop("warm_start", None), multipliers.shape)
    deadline = deadline_after(options.pop("time_limit", None))
    # What nobody projects is empty, but has the types that projections have.
    none = project(np.zeros((0, sets.parts[0].n_parameters)), sets.parts[0][:0], **options)
    found = {name: np.empty(len(sets), getattr(none, name).dtype) for name in _PARALLEL}
    for here, part in sets.groups():
        m = _rows_of(part)
        near = project(
            np.ascontiguousarray(C[here, : part.n_parameters]),
            part,
            warm_start=None if warm is None else warm[here, :m],
            time_limit=seconds_until(deadline),
            **options,
        )
        point[here, : part.n_parameters] = near.point
        multipliers[here, :m] = near.multipliers
        for name in _PARALLEL:
            found[name][here] = getattr(near, name)
    return _like(costs, Projection(point, **found, multipliers=multipliers), sets.sizes)


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
    names = ("point", *_PARALLEL, "multipliers")
    if isinstance(costs, list | tuple):
        points = [row[:size] for row, size in zip(near.point, sizes, strict=True)]
        return Projection(points, *(getattr(near, name) for name in names[1:]))
    if not is_torch(costs):
        return near
    from .._common.arrays import as_costs
    from ..projection.result import as_given

    restore = as_costs(costs.detach().nan_to_num(), costs.shape[1])[1]
    return as_given(near, restore)


def _rows_of(sets: Any) -> int:
    base = sets.rows if sets.lifted is None else sets.lifted.rows
    return base.eq_rows.shape[0] + base.ub_rows.shape[0]
