"""Decisions that the learned costs do not explain, and what those costs would rather have done.

Letters: B samples, n variables.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...metrics.sameness import SAME, alike
from ..plans import GivenCosts, Plan
from .nearest import explaining, nearest_costs


class Miss(NamedTuple):
    """A decision that costs more than it need, as the learned costs see it."""

    sample: int
    distance: float
    """How far the costs are from explaining it, with no margin asked for; inf where no costs do
    that keep to what is given."""
    saving: float
    """What the cheaper alternative would save, in units of the learned cost. No share is given:
    decisions do not identify the level of costs, so a share of it would mean nothing."""
    changes: tuple[tuple[str, float, float], ...]
    """(variable, taken, cheaper), the largest difference first."""


def find_misses(
    plan: Plan,
    costs: np.ndarray,
    decisions: np.ndarray,
    alternatives: np.ndarray,
    given: GivenCosts | None = None,
) -> list[Miss]:
    """Misses among samples with costs, decisions taken and the model's own, (B, n) each; the
    farthest first. Samples without a decision of minimum cost (NaN) are left out."""
    there = np.asarray(np.isfinite(alternatives).all(axis=1))
    excess = np.einsum("ij,ij->i", costs, decisions - np.where(there[:, None], alternatives, 0.0))
    spent = np.einsum("ij,ij->i", np.abs(costs), np.abs(decisions))
    missed = np.flatnonzero(there & (excess > SAME * (1.0 + spent)))
    if not missed.size:
        return []
    sets = explaining(plan[missed].problem, decisions[missed], given)
    distance = nearest_costs(sets, costs[missed], given).distance
    found = [
        Miss(
            int(b),
            float(distance[k]),
            float(excess[b]),
            _changes(plan, decisions[b], alternatives[b]),
        )
        for k, b in enumerate(missed)
    ]
    return sorted(found, key=lambda miss: -miss.distance)


def _changes(
    plan: Plan, taken: np.ndarray, cheaper: np.ndarray
) -> tuple[tuple[str, float, float], ...]:
    gap = np.abs(cheaper - taken)
    order = np.argsort(-gap, kind="stable")
    moved = order[~alike(cheaper, taken)[order]]
    return tuple((plan.variables[j], float(taken[j]), float(cheaper[j])) for j in moved)
