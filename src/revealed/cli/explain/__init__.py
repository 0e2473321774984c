"""Whether to believe a fitted model: what it explains, what it misses, how far costs may move."""

from .misses import Miss, find_misses
from .room import Needed, Room, cost_ranges, needed, room_inside

__all__ = [
    "Miss",
    "Needed",
    "Room",
    "cost_ranges",
    "find_misses",
    "needed",
    "room_inside",
]
