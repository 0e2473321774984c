"""What a projection returns: points, and for each the proof or the reason why there is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

import numpy as np

from .._common.arrays import loaded_torch, to_float64
from ..errors import InputError


class ProjectionStatus(IntEnum):
    """How the projection of one instance ended."""

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
    "stopped early, failed, or returned a decision that costs more than one known to be feasible. "
    "`lower_bound` holds all the same. Allow more time, or check the oracle.",
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

    @property
    def lower_bound(self) -> Any:
        """(B,) the set is at least this far away: `distance` where solved, else 0."""
        return self.distance * self.solved

    @property
    def relaxed(self) -> Projection:
        """What losses take: this, or the nearest point of a larger set where only that is known."""
        return self


@dataclass(frozen=True)
class IntegerProjection(Projection):
    """Onto sets of whole decisions: `point` is the nearest cost known to be in the set, and
    `outer`, which is nearer, explains the decision against all alternatives found so far. They are
    the same where `solved`: the oracle then proved that no alternative is left out."""

    outer: Any
    """(B, n)"""
    bound: Any
    """(B,) the distance of `outer`, proved by its multipliers: no point of the set is nearer."""
    calls: Any
    """(B,) of the oracle."""

    @property
    def lower_bound(self) -> Any:
        return self.bound

    @property
    def relaxed(self) -> Projection:
        """The projection onto the outer set; its distance is convex in the costs, and at most the
        distance from the set."""
        return replace(self, point=self.outer, distance=self.bound)


def as_given(p: Projection, restore: Callable[[np.ndarray], Any]) -> Projection:
    """A projection in float64 in the caller's own kind and dtype, judged as it arrives there:
    `solved` only where the point has survived the cast."""
    if restore(p.point) is p.point:  # numpy in, numpy out
        return p
    cast = type(p)(*(restore(getattr(p, name)) for name in type(p).__dataclass_fields__))
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
            f"Sample {empty[0]} of the batch cannot be learnt from ({empty.size} of "
            f"{len(projection.status)} cannot). {ProjectionStatus.EMPTY.sentence}"
        )
