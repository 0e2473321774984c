"""Whether to believe a fitted model: what it explains, what it misses, how firm it is."""

from .bootstrap import Coefficients, bootstrap
from .misses import Miss, find_misses
from .room import Room, cost_ranges, room_inside

__all__ = [
    "Coefficients",
    "Miss",
    "Room",
    "bootstrap",
    "cost_ranges",
    "find_misses",
    "room_inside",
]
