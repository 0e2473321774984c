"""Sets of one kind rewritten as sets of plain costs, which is what the kernel projects onto."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..problems.linear import LinearProgram

if TYPE_CHECKING:
    from ..optimality.sets import OptimalitySet


def plain_sets(
    sets: OptimalitySet,
    problem: LinearProgram,
    decisions: np.ndarray,
    states: np.ndarray,
    **changed: Any,
) -> OptimalitySet:
    """`sets` with the rows of `problem` and these entries, and without form, metric or curves."""
    result = object.__new__(type(sets))
    result.__dict__.update(
        sets.__dict__,
        problem=problem,
        rows=problem,
        decisions=decisions,
        entry_state=np.ascontiguousarray(states),
        form=None,
        soft=None,
        gradient=None,
        normals=None,
        metric=None,
        lifted=None,
    )
    result.__dict__.update(changed)
    if problem.eq_rows.per_instance or problem.ub_rows.per_instance:
        from .cpu.analysis import analyse

        analyse(result)  # now, so that slices of these sets take their part of it along
    return result
