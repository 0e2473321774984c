"""A planner's model with its names: variables, rows, what is minimized."""

from .catalogue import from_catalogue
from .given import COLUMNS, GivenCosts, find_costs, plain_given
from .limits import (
    Limit,
    as_limits,
    empty_limits,
    find_limits,
    find_unknown,
    limit_names,
    limits_in,
    planned,
    read_limits,
    refuse_limits,
    refuse_missing_columns,
    turned,
    unknown_of,
    with_limits,
)
from .plan import Plan
from .read import read_plan

__all__ = [
    "COLUMNS",
    "GivenCosts",
    "Limit",
    "Plan",
    "as_limits",
    "empty_limits",
    "find_costs",
    "find_limits",
    "find_unknown",
    "from_catalogue",
    "limit_names",
    "limits_in",
    "plain_given",
    "planned",
    "read_limits",
    "read_plan",
    "refuse_limits",
    "refuse_missing_columns",
    "turned",
    "unknown_of",
    "with_limits",
]
