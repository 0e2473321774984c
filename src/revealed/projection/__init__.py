"""Costs and optimality sets -> the nearest costs that explain the decisions.

Who projects onto which kind of sets; each entry is loaded when it is first needed.
"""

from ..optimality.integer import IntegerCosts
from ..optimality.kinds import Parameters, PlainCosts
from ..optimality.limit_sets import UnknownLimitSet
from ..optimality.mixed import MixedSets
from ..optimality.protocol import PREPARATIONS, PROJECTORS, UPLOADS
from .project import project as project
from .result import Projection as Projection
from .result import ProjectionStatus as ProjectionStatus

PROJECTORS.register(PlainCosts, "revealed.projection.plain:project_plain")
PROJECTORS.register(Parameters, "revealed.projection.parametric.dispatch:project_parameters")
PROJECTORS.register(IntegerCosts, "revealed.projection.cutting_planes.project:project_integer")
PROJECTORS.register(MixedSets, "revealed.projection.mixed:project_mixed")
PROJECTORS.register(UnknownLimitSet, "revealed.projection.limit_pieces:project_pieces")

PREPARATIONS.register(Parameters, "revealed.projection.lifting:lift")
UPLOADS.register(PlainCosts, "revealed.projection.triton.sets:on_device")
