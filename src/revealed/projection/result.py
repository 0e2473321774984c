"""What a projection returns: points, and for each the proof or the reason why there is none."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from ..errors import InputError


class ProjectionStatus(IntEnum):
    """How the projection of one instance ended."""

    SOLVED = 0
    INACCURATE = 1
    MAX_ITER = 2
    TIME_LIMIT = 3
    EMPTY = 4

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
    `revealed.projection.certificate`)."""
    solved: Any
    """(B,) bool: residual <= tol."""
    status: Any
    """(B,) int8 codes of ProjectionStatus."""
    iterations: Any
    """(B,) steps of all methods together."""
    multipliers: Any
    """(B, m_eq + m_ub) v of the equalities, then mu >= 0 of the inequalities; pass the whole
    projection as `warm_start` to the next one."""


def refuse_empty(projection: Projection) -> None:
    """Name the first sample that nothing explains: its distance is not a number to learn from."""
    empty = np.flatnonzero(np.asarray(projection.status) == ProjectionStatus.EMPTY)
    if empty.size:
        raise InputError(
            f"Sample {empty[0]} of the batch cannot be learnt from ({empty.size} of "
            f"{len(projection.status)} cannot). {ProjectionStatus.EMPTY.sentence}"
        )
