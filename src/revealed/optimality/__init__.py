"""Observed decisions -> the sets of costs that explain them.

sets            `OptimalitySet`: the sets of a batch of decisions
active_set      which bounds and rows hold with equality at a decision
cost_form       costs that come from fewer parameters
mixed           sets of different problems in one batch
infeasible      what to do with decisions that break their constraints
qualification   curved constraints: do multipliers tell every cost?
identification  which directions of cost the decisions of a data set tell
rounding        rounded decisions, and the vertices they stand for (`precision`, `vertices`)
"""

from .active_set import EntryState as EntryState
from .cost_form import CostForm as CostForm
from .identification import Identified as Identified
from .identification import identified as identified
from .mixed import MixedSets as MixedSets
from .rounding import read_rounded as read_rounded
from .sets import OptimalitySet as OptimalitySet
