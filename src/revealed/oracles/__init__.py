"""Problem and costs in, decisions out: who solves which kind of problem, and which structure.

Each entry is loaded when it is first needed. HiGHS serves any linear program, faster oracles some.
"""

from ..problems.convex import ConvexProgram
from ..problems.integer import IntegerProgram
from ..problems.linear import LinearProgram
from ..problems.oracle_problem import OracleProblem
from ..problems.protocol import ORACLES, REPAIRS
from ..problems.quadratic import QuadraticProgram
from ..problems.structures import (
    BinaryKnapsackStructure,
    KnapsackStructure,
    MatchingStructure,
    PathStructure,
    RoutingStructure,
    StandardKnapsackStructure,
    TourStructure,
)
from .integer import INTEGER_SOLVERS
from .special import DEVICE_ORACLES, SPECIAL_ORACLES

ORACLES.register(LinearProgram, "revealed.oracles.batch:solve_batch")
ORACLES.register(QuadraticProgram, "revealed.oracles.quadratic:solve_quadratic")
ORACLES.register(ConvexProgram, "revealed.oracles.convex:solve_convex")
ORACLES.register(IntegerProgram, "revealed.oracles.integer:solve_integer")
ORACLES.register(OracleProblem, "revealed.oracles.callables:solve_by_oracle")

REPAIRS.register(LinearProgram, "revealed.oracles.quadratic:nearest_feasible")
REPAIRS.register(ConvexProgram, "revealed.oracles.convex:nearest_feasible")

SPECIAL_ORACLES.register(PathStructure, "revealed.oracles.paths:solve_paths")
SPECIAL_ORACLES.register(KnapsackStructure, "revealed.oracles.knapsack:solve_knapsacks")
SPECIAL_ORACLES.register(
    StandardKnapsackStructure, "revealed.oracles.knapsack:solve_standard_knapsacks"
)
SPECIAL_ORACLES.register(MatchingStructure, "revealed.oracles.matching:solve_matchings")

DEVICE_ORACLES.register(PathStructure, "revealed.oracles.gpu.paths:solve_paths_on_device")

INTEGER_SOLVERS.register(
    BinaryKnapsackStructure, "revealed.oracles.binary_knapsack:solve_binary_knapsacks"
)
INTEGER_SOLVERS.register(TourStructure, "revealed.oracles.tours:solve_tours")
INTEGER_SOLVERS.register(RoutingStructure, "revealed.oracles.routes:solve_routes")
