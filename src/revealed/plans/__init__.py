"""A planner's model with its names: variables, rows, what is minimised."""

from .catalogue import from_catalogue
from .plan import Plan
from .read import read_plan

__all__ = ["Plan", "from_catalogue", "read_plan"]
