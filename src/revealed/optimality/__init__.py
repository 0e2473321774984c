"""Observed decisions -> the sets of costs that explain them.

protocol        what any batch of cost sets offers, and who serves which kind
sets            `OptimalitySet`: the sets of a batch of decisions
kinds           what they hold: plain costs, or parameters behind costs
integer         what they hold of whole decisions (`alternatives`: feasible decisions found so far)
active_set      which bounds and rows hold with equality at a decision
cost_form       costs that come from fewer parameters
limit_sets      sets of costs and limits together, where some limits are unknown
mixed           sets of different problems in one batch
completion      decisions seen in part, completed as the cheapest that agree
infeasible      what to do with decisions that break their constraints
qualification   curved constraints: do multipliers describe every cost?
identification  which directions of cost the decisions of a data set identify
rounding        rounded decisions, and the vertices they stand for (`precision`, `vertices`)
"""

from ..problems.integer import IntegerProgram
from ..problems.protocol import SmoothProblem
from .active_set import EntryState as EntryState
from .cost_form import CostForm as CostForm
from .identification import Identified as Identified
from .identification import identified as identified
from .kinds import read_conditions
from .limit_sets import UnknownLimitSet as UnknownLimitSet
from .mixed import MixedSets as MixedSets
from .protocol import READERS
from .protocol import CostSet as CostSet
from .rounding import read_rounded as read_rounded
from .sets import OptimalitySet as OptimalitySet

READERS.register(SmoothProblem, read_conditions)
READERS.register(IntegerProgram, "revealed.optimality.integer:read_alternatives")
