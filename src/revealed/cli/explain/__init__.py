"""Whether to believe a fitted model: what it explains, what it misses, how far costs may move."""

from .misses import Miss, find_misses
from .sensitivity import Needed, SensitivityRange, cost_ranges, needed, stable_changes

__all__ = [
    "Miss",
    "Needed",
    "SensitivityRange",
    "cost_ranges",
    "find_misses",
    "needed",
    "stable_changes",
]
