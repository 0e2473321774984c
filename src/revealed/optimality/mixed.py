"""Sets of different problems, of whatever sizes, in one batch.

Costs come as a list of vectors, or as an array (B, widest) whose rows are filled up: entries beyond
an instance's own length are not looked at and come back as they are. Each instance gets the answer
that it gets alone. Letters: B instances.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from .._common.arrays import as_index, to_float64
from .._common.records import Record
from ..errors import ShapeError
from .protocol import CostSet

if TYPE_CHECKING:
    from .sets import OptimalitySet


class MixedSets(Record, CostSet):
    """Sets of different problems, of whatever sizes, in one batch; see `OptimalitySet.concatenate`.

    Costs come as a list of vectors, or as an array (B, widest) whose rows are filled up: entries
    beyond an instance's own length are not looked at.

    Parameters
    ----------
    parts : tuple of OptimalitySet
    """

    problem = None
    parts: tuple[OptimalitySet, ...]
    """One OptimalitySet for each problem."""
    part: np.ndarray
    """(B,) which part an instance is of."""
    place: np.ndarray
    """(B,) where in its part it is."""

    def __init__(self, parts: tuple[OptimalitySet, ...]) -> None:
        self._set(
            parts=parts,
            part=np.repeat(np.arange(len(parts)), [len(part) for part in parts]),
            place=np.concatenate([np.arange(len(part)) for part in parts]),
        )

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
        width = max(part.decisions.shape[1] for part in self.parts)
        result = np.zeros((len(self), width))
        for here, sets in self.groups():
            result[here, : sets.decisions.shape[1]] = sets.decisions
        return result

    def __getitem__(self, index: Any) -> MixedSets:
        """The chosen instances, in the order chosen: an integer, slice, mask or integer array."""
        chosen = as_index(index, len(self))
        return self.replaced(part=self.part[chosen], place=self.place[chosen])

    def groups(self) -> Iterator[tuple[np.ndarray, OptimalitySet]]:
        """Instances of each part that there are, and their sets."""
        for k, part in enumerate(self.parts):
            here = np.flatnonzero(self.part == k)
            if here.size:
                place = self.place[here]
                whole = len(place) == len(part) and (place == np.arange(len(part))).all()
                yield here, part if whole else part[place]

    def solve(self, parameters: Any, **options: Any) -> list[Any]:
        """The best decision of each instance's own problem under its own parameters.

        Parameters
        ----------
        parameters : list of B arrays, or (B, widest) array
        **options
            Passed on to the `solve` of each problem, such as `time_limit`.

        Returns
        -------
        list of array
            B decisions, NaN where there is none.
        """
        C = padded(parameters, self)
        result: list[Any] = [None] * len(self)
        for here, sets in self.groups():
            own = sets.solve(C[here, : sets.n_parameters], **options)
            for b, x in zip(here, own.x, strict=True):
                result[b] = x
        return result

    def __repr__(self) -> str:
        return f"MixedSets({len(self)} decisions of {len(self.parts)} problems)"

    def _gather(self, name: str) -> np.ndarray:
        result = np.empty(len(self))
        for here, sets in self.groups():
            result[here] = getattr(sets, name)
        return result


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
