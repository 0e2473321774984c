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

if TYPE_CHECKING:
    from . import fit as fit
    from . import losses as losses
    from .fit import InverseRegressor as InverseRegressor
    from .losses import ProjectionLoss as ProjectionLoss

# Names that bring torch or scikit-learn, and the module each comes from.
_ON_FIRST_USE = {
    "losses": "losses",
    "ProjectionLoss": "losses",
    "fit": "fit",
    "InverseRegressor": "fit",
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
    "problems",
    "Solution",
    "SolveStatus",
    "OptimalitySet",
    "EntryState",
    "project",
    "Projection",
    "ProjectionStatus",
    "losses",
    "ProjectionLoss",
    "fit",
    "InverseRegressor",
    "metrics",
    "theory",
    "RevealedError",
    "InputError",
    "ShapeError",
    "InfeasibleDecisionError",
    "MissingDependencyError",
    "__version__",
]
