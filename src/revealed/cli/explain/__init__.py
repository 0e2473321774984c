"""Whether to believe a fitted model: what it explains, what it misses, how firm it is."""

from .bootstrap import Coefficients, bootstrap
from .misses import Miss, find_misses
from .room import Needed, Room, cost_ranges, needed, room_inside

__all__ = [
    "Coefficients",
    "Miss",
    "Needed",
    "Room",
    "bootstrap",
    "cost_ranges",
    "find_misses",
    "needed",
    "room_inside",
]
