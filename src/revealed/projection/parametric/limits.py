"""Limits on parameters as one convex set with an easy projection: boxes on w and on the costs, and
positive semidefinite blocks.

    T w + t in K,      T one block of rows for each kind of limit there is

Letters: B instances, p parameters, k rows of T.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..._common.affine import AffineMap
from ..._common.conic import smat, svec
from ...optimality.sets import OptimalitySet

Project = Callable[[np.ndarray], np.ndarray]


class Limit(NamedTuple):
    """Entries `part` of w, or of its image under `map`, in a set that `onto` projects onto."""

    map: AffineMap | None
    part: slice
    width: int
    onto: Project
    """(B, k) -> (B, k)"""


class Limits:
    """All limits of a batch of sets, stacked."""

    def __init__(self, sets: OptimalitySet) -> None:
        self._p = sets.n_parameters
        self.groups = _groups(sets)
        self.width = sum(group.width for group in self.groups)
        """k"""
        self.step = 1.0 / sum(_square_norm(group.map) for group in self.groups)
        """1 / |T|^2, or less."""

    def values(self, w: np.ndarray) -> np.ndarray:
        """(B, k): T w + t."""
        images = [(w if g.map is None else g.map(w))[:, g.part] for g in self.groups]
        return np.hstack(images)

    def adjoint(self, forces: np.ndarray) -> np.ndarray:
        """(B, p): T^T forces."""
        total, start = np.zeros((len(forces), self._p)), 0
        for group in self.groups:
            n = self._p if group.map is None else group.map.rows.shape[0]
            wide = np.zeros((len(forces), n))
            wide[:, group.part] = forces[:, start : start + group.width]
            start += group.width
            total += wide if group.map is None else group.map.adjoint(wide)
        return total

    def onto(self, values: np.ndarray) -> np.ndarray:
        """(B, k): the nearest that the limits allow."""
        result, start = np.empty_like(values), 0
        for group in self.groups:
            stop = start + group.width
            result[:, start:stop] = group.onto(values[:, start:stop])
            start = stop
        return result


def is_limited(sets: OptimalitySet) -> bool:
    """Whether there is anything besides rows and signs that parameters must obey."""
    limited = sets.form is not None and sets.form.is_limited
    return limited or is_semidefinite(sets)


def is_semidefinite(sets: OptimalitySet) -> bool:
    """Whether some of the parameters must make up a positive semidefinite matrix."""
    return sets.semidefinite_block is not None


def _groups(sets: OptimalitySet) -> list[Limit]:
    groups, form = [], sets.form
    if form is not None:
        for own, low, high in (
            (None, form.lower, form.upper),
            (form.map, form.cost_lower, form.cost_upper),
        ):
            if np.isfinite(low).any() or np.isfinite(high).any():
                groups.append(Limit(own, slice(None), low.shape[-1], _box(low, high)))
    if sets.semidefinite_block is not None:
        start, order = sets.semidefinite_block
        width = order * (order + 1) // 2
        own = None if form is None else form.map
        groups.append(Limit(own, slice(start, start + width), width, onto_semidefinite))
    return groups


def _box(low: np.ndarray, high: np.ndarray) -> Project:
    return lambda values: np.clip(values, low, high)


def onto_semidefinite(vectors: np.ndarray) -> np.ndarray:
    """The nearest positive semidefinite matrices, as `svec`."""
    values, vectors_ = np.linalg.eigh(smat(vectors))
    kept = vectors_ * np.maximum(values, 0.0)[:, None, :]
    return svec(kept @ np.swapaxes(vectors_, -1, -2))


def _square_norm(own: AffineMap | None) -> float:
    """|S|^2 from above: the largest column sum times the largest row sum, of absolute values."""
    if own is None:
        return 1.0
    rows = own.rows
    sizes = np.abs(rows.data)
    by_column = np.zeros((len(sizes), rows.shape[1]))
    for line, size in zip(by_column, sizes, strict=True):
        np.add.at(line, rows.indices, size)
    by_row = np.abs(rows.magnitude.times(np.ones((len(sizes), rows.shape[1]))))
    return float((by_column.max(axis=1) * by_row.max(axis=1)).max(initial=0.0)) or 1.0
