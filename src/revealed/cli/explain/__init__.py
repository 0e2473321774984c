"""Whether to believe a fitted model: what it explains, what it misses, how far costs may move."""

from .misses import Miss, find_misses
from .nearest import explaining, nearest_costs
from .sensitivity import Needed, SensitivityRange, cost_ranges, needed, stable_changes

__all__ = [
    "Miss",
    "Needed",
    "SensitivityRange",
    "cost_ranges",
    "explaining",
    "find_misses",
    "nearest_costs",
    "needed",
    "stable_changes",
]
