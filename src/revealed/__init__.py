"""Contextual inverse optimisation: learn the costs that decisions reveal.

    problem = rv.problems.grid_shortest_path(5, 5)   # what the decision maker may do
    sets = rv.OptimalitySet(problem, decisions)      # all costs that explain each decision
    nearest = rv.project(costs, sets)                # the closest of them to a prediction
    model = rv.InverseRegressor(problem).fit(Z, decisions)   # contexts -> costs -> decisions

Importing this loads numpy, scipy and numba; torch and scikit-learn come with the first name that
needs them, everything else where it is used.
"""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from . import metrics as metrics
from . import problems as problems
from . import theory as theory
from .cones import SecondOrderCone as SecondOrderCone
from .cones import SemidefiniteCone as SemidefiniteCone
from .convex import ConvexProgram as ConvexProgram
from .errors import InfeasibleDecisionError as InfeasibleDecisionError
from .errors import InputError as InputError
from .errors import MissingDependencyError as MissingDependencyError
from .errors import RevealedError as RevealedError
from .errors import ShapeError as ShapeError
from .forms import CostForm as CostForm
from .mixed import MixedSets as MixedSets
from .optimality import EntryState as EntryState
from .optimality import OptimalitySet as OptimalitySet
from .oracle import Solution as Solution
from .oracle import SolveStatus as SolveStatus
from .problem import LinearProgram as LinearProgram
from .projection import Projection as Projection
from .projection import ProjectionStatus as ProjectionStatus
from .projection import project as project
from .quadratic import QuadraticProgram as QuadraticProgram

if TYPE_CHECKING:
    from . import fit as fit
    from . import importers as importers
    from . import losses as losses
    from . import vision as vision
    from .fit import InverseRegressor as InverseRegressor
    from .importers import from_cvxpy as from_cvxpy
    from .importers import from_gurobi as from_gurobi
    from .importers import from_linprog as from_linprog
    from .importers import from_networkx as from_networkx
    from .importers import from_pyepo as from_pyepo
    from .importers import read_mps as read_mps
    from .losses import ProjectionLoss as ProjectionLoss

# Names that are not needed by everyone, some of which bring torch or scikit-learn, and the module
# each comes from.
_ON_FIRST_USE = {
    "losses": "losses",
    "ProjectionLoss": "losses",
    "fit": "fit",
    "InverseRegressor": "fit",
    "importers": "importers",
    "read_mps": "importers",
    "from_linprog": "importers",
    "from_networkx": "importers",
    "from_cvxpy": "importers",
    "from_gurobi": "importers",
    "from_pyepo": "importers",
    "vision": "vision",
}


def __getattr__(name: str) -> Any:
    if name not in _ON_FIRST_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = _ON_FIRST_USE[name]
    module = import_module(f".{home}", __name__)
    return module if name == home else getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_ON_FIRST_USE})


try:
    __version__ = version("revealed")
except PackageNotFoundError:  # run straight from the source folder, never installed
    __version__ = "0+source"

# In reading order: the problem, its decisions, the costs that explain them, the nearest of those.
__all__ = [  # noqa: RUF022
    "LinearProgram",
    "QuadraticProgram",
    "ConvexProgram",
    "SecondOrderCone",
    "SemidefiniteCone",
    "problems",
    "importers",
    "read_mps",
    "from_linprog",
    "from_networkx",
    "from_cvxpy",
    "from_gurobi",
    "from_pyepo",
    "Solution",
    "SolveStatus",
    "OptimalitySet",
    "EntryState",
    "CostForm",
    "MixedSets",
    "project",
    "Projection",
    "ProjectionStatus",
    "losses",
    "ProjectionLoss",
    "fit",
    "InverseRegressor",
    "vision",
    "metrics",
    "theory",
    "RevealedError",
    "InputError",
    "ShapeError",
    "InfeasibleDecisionError",
    "MissingDependencyError",
    "__version__",
]
