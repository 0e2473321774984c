"""What a projection returns: points, and for each the proof or the reason why there is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, replace
from enum import IntEnum
from typing import Any

import numpy as np

from .._common.arrays import is_torch, loaded_torch, to_float64
from .._common.words import count, tally
from ..errors import InputError


class ProjectionStatus(IntEnum):
    """How the projection of one instance ended; `sentence` says what to do about it.

    `Projection.status` holds the codes as int8: `ProjectionStatus(int(code)).sentence`.
    """

    SOLVED = 0
    INACCURATE = 1
    MAX_ITER = 2
    TIME_LIMIT = 3
    EMPTY = 4
    OUT_OF_RANGE = 5
    UNQUALIFIED = 6
    UNPROVED = 7

    @property
    def sentence(self) -> str:
        """What the status means and what can be done about it."""
        return _SENTENCES[self]


_SENTENCES = {
    ProjectionStatus.SOLVED: "The residual, computed from the definition, is within `tol`.",
    ProjectionStatus.INACCURATE: "Every method ended with a residual above `tol`; the point "
    "explains the decision but may not be the nearest. Loosen `tol`, or look at the scaling of the "
    "constraints.",
    ProjectionStatus.MAX_ITER: "Stopped at `max_iter` with a residual above `tol`; raise "
    "`max_iter` or loosen `tol`.",
    ProjectionStatus.TIME_LIMIT: "Stopped at `time_limit` with a residual above `tol`; allow more "
    "time.",
    ProjectionStatus.EMPTY: "No parameters of this form, within its limits, explain the decision: "
    "there is nothing to project onto. Widen the limits, leave the sample out, or build the sets "
    "with soft=100, which counts the miss instead.",
    ProjectionStatus.OUT_OF_RANGE: "The answer does not fit into the dtype of the costs: entries "
    "are infinite or have lost all their digits. Give the costs as float64, or in other units.",
    ProjectionStatus.UNQUALIFIED: "Curved constraints may leave no interior around the decision "
    "(Slater's condition was not established). The point is the nearest cost that multipliers "
    "explain, but other costs, even nearer ones, may explain the decision too. Check that "
    "constraints do not merely touch each other.",
    ProjectionStatus.UNPROVED: "The oracle did not prove that no other decision is cheaper: it "
    "stopped early, failed, found the cost to fall without limit, or returned a decision that "
    "costs more than one known to be feasible. `lower_bound` still holds. Allow more time, bound "
    "the variables, or check the oracle.",
}


@dataclass(frozen=True)
class Projection:
    """The nearest costs that explain the decisions. Arrays are of the caller's kind: numpy, or
    torch on its device."""

    point: Any
    """(B, n) the projected costs; always inside the set, nearest to the extent that `residual`
    says."""
    distance: Any
    """(B,) Euclidean distance from the given costs."""
    residual: Any
    """(B,) relative, 0 at the exact answer, computed from the definition (see
    `revealed.projection.cpu.certificate`)."""
    solved: Any
    """(B,) bool: residual <= tol, and the answer fits into the dtype of the costs."""
    status: Any
    """(B,) int8 codes of ProjectionStatus."""
    iterations: Any
    """(B,) steps of all methods together."""
    multipliers: Any
    """(B, m_eq + m_ub) v of the equalities, then mu >= 0 of the inequalities; pass the whole
    projection as `warm_start` to the next one."""
    bound: Any = None
    """(B,) a proved lower bound on the distance, from projectors that have one where the projection
    is not exact; read `lower_bound`."""

    def __repr__(self) -> str:
        size, n = tuple(self.point.shape)
        told = tally(self.status, ProjectionStatus)
        far = f", distance {float(self.distance.mean()):.3g} on average" if size else ""
        return f"{type(self).__name__}({count(size, 'cost')} of {n} entries: {told}{far})"

    @property
    def lower_bound(self) -> Any:
        """(B,) what the distance from the set is at least: `distance` where the projection is exact
        or the set proved to be empty, elsewhere what the projector proved, or 0."""
        if self.bound is not None:
            return self.bound
        known = (self.status == ProjectionStatus.SOLVED) | (self.status == ProjectionStatus.EMPTY)
        if is_torch(self.distance):
            return self.distance.masked_fill(~known, 0.0)
        return np.where(known, self.distance, 0.0)

    def each(self, function: Callable[[Any], Any]) -> Projection:
        """The same projection with `function` applied to every array.

        Parameters
        ----------
        function : callable
            Takes an array and returns its replacement. Parts that are None stay None.

        Returns
        -------
        Projection
        """
        parts = (getattr(self, name) for name in self.__dataclass_fields__)
        return type(self)(*(None if part is None else function(part) for part in parts))

    @property
    def relaxed(self) -> Projection:
        """What losses take: this, or the nearest point of a larger set where only that is known."""
        return self


@dataclass(frozen=True, repr=False)
class IntegerProjection(Projection):
    """Onto sets of whole decisions: `point` is the nearest cost known to be in the set, and
    `outer`, which is nearer, explains the decision against all alternatives found so far. They are
    the same where `solved`: the oracle then proved that no alternative is left out."""

    outer: Any = None
    """(B, n) at the distance `lower_bound`."""
    calls: Any = None
    """(B,) of the oracle."""

    @property
    def relaxed(self) -> Projection:
        """The projection onto the outer set; its distance is convex in the costs, and at most the
        distance from the set."""
        return replace(self, point=self.outer, distance=self.bound)


ARRAYS = tuple(field.name for field in fields(Projection) if field.default is MISSING)
"""The arrays that every projection has; those with a default some projectors leave out."""


def as_given(p: Projection, restore: Callable[[np.ndarray], Any]) -> Projection:
    """A projection in float64 in the caller's own kind and dtype, judged as it arrives there:
    `solved` only where the point has survived the cast."""
    if restore(p.point) is p.point:  # numpy in, numpy out
        return p
    cast = p.each(restore)
    if _dtype_of(cast.point) == "float64":
        return cast
    after, distance = (to_float64(a, "point") for a in (cast.point, cast.distance))
    rounding = float(loaded_torch().finfo(cast.point.dtype).eps)
    size = np.sqrt(np.nansum(p.point**2, axis=1))
    with np.errstate(invalid="ignore"):
        off = np.sqrt(np.nansum((after - p.point) ** 2, axis=1))
    fits = (off <= rounding * size) & np.isfinite(distance)
    lost = p.solved & ~fits
    status = np.where(lost, ProjectionStatus.OUT_OF_RANGE, p.status).astype(p.status.dtype)
    return replace(cast, solved=restore(p.solved & fits), status=restore(status))


def _dtype_of(array: Any) -> str:
    return str(array.dtype).rpartition(".")[2]


def refuse_empty(projection: Projection) -> None:
    """Name the first sample that nothing explains: its distance is not a number to learn from."""
    empty = np.flatnonzero(np.asarray(projection.status) == ProjectionStatus.EMPTY)
    if empty.size:
        raise InputError(
            f"Sample {empty[0]} of the batch cannot be learned from ({empty.size} of "
            f"{len(projection.status)} cannot). {ProjectionStatus.EMPTY.sentence}"
        )
