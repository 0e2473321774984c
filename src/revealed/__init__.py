"""Contextual inverse optimisation: learn the costs that decisions reveal.

    problem = rv.problems.grid_shortest_path(5, 5)   # what the decision maker may do
    sets = rv.OptimalitySet(problem, decisions)      # all costs that explain each decision
    nearest = rv.project(costs, sets)                # the closest of them to a prediction

Importing this loads numpy, scipy and numba; everything else is imported where it is used.
"""

from importlib.metadata import PackageNotFoundError, version

from . import problems as problems
from .errors import InfeasibleDecisionError as InfeasibleDecisionError
from .errors import InputError as InputError
from .errors import MissingDependencyError as MissingDependencyError
from .errors import RevealedError as RevealedError
from .errors import ShapeError as ShapeError
from .optimality import EntryState as EntryState
from .optimality import OptimalitySet as OptimalitySet
from .oracle import Solution as Solution
from .oracle import SolveStatus as SolveStatus
from .problem import LinearProgram as LinearProgram
from .projection import Projection as Projection
from .projection import ProjectionStatus as ProjectionStatus
from .projection import project as project

try:
    __version__ = version("revealed")
except PackageNotFoundError:  # run straight from the source folder, never installed
    __version__ = "0+source"

# In reading order: the problem, its decisions, the costs that explain them, the nearest of those.
__all__ = [  # noqa: RUF022
    "LinearProgram",
    "problems",
    "Solution",
    "SolveStatus",
    "OptimalitySet",
    "EntryState",
    "project",
    "Projection",
    "ProjectionStatus",
    "RevealedError",
    "InputError",
    "ShapeError",
    "InfeasibleDecisionError",
    "MissingDependencyError",
    "__version__",
]
