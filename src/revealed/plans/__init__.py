"""A planner's model with its names: variables, rows, what is minimised."""

from .catalogue import from_catalogue
from .limits import PARTS, Limit, find_limits, read_limits, with_limits
from .plan import Plan
from .read import read_plan

__all__ = [
    "PARTS",
    "Limit",
    "Plan",
    "find_limits",
    "from_catalogue",
    "read_limits",
    "read_plan",
    "with_limits",
]
