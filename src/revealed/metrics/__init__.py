"""How good predicted costs are, judged by the decisions they lead to."""

from .measures import decision_loss as decision_loss
from .measures import estimate_loss as estimate_loss
from .measures import exact as exact
from .measures import in_set as in_set
from .measures import optimal as optimal
from .measures import relative_regret as relative_regret
from .measures import summary as summary
from .sameness import alike as alike
from .sameness import same_decision as same_decision
from .suboptimality import normalized_suboptimality_loss as normalized_suboptimality_loss
from .suboptimality import relative_suboptimality as relative_suboptimality
from .suboptimality import suboptimality as suboptimality
from .suboptimality import suboptimality_loss as suboptimality_loss
from .ties import accuracy as accuracy

__all__ = [
    "accuracy",
    "alike",
    "decision_loss",
    "estimate_loss",
    "exact",
    "in_set",
    "normalized_suboptimality_loss",
    "optimal",
    "relative_regret",
    "relative_suboptimality",
    "same_decision",
    "suboptimality",
    "suboptimality_loss",
    "summary",
]
