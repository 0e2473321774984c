"""How people speak of what is learned: of costs where a planner minimizes, of values where not."""

from __future__ import annotations

from typing import NamedTuple

from ..plans import Plan


class Words(NamedTuple):
    """The nouns and verbs of one sense."""

    cost: str
    costs: str
    best: str
    better: str
    saving: str
    moved: str
    """What a feature does to a variable."""
    endless: str
    """What the total does where there is no best decision."""


MINIMIZE = Words(
    "cost",
    "costs",
    "cheapest",
    "cheaper",
    "saving",
    "more or less expensive",
    "falls without limit",
)
MAXIMIZE = Words(
    "value", "values", "best", "better", "gain", "worth more or less", "grows without limit"
)


def words_for(plan: Plan) -> Words:
    """The words that suit a plan."""
    return MAXIMIZE if plan.maximize else MINIMIZE
