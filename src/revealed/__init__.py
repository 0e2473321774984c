"""Contextual inverse optimization: learn the costs that decisions reveal.

    problem = rv.problems.grid_shortest_path(5, 5)   # what the decision maker may do
    sets = rv.OptimalitySet(problem, decisions)      # all costs that explain each decision
    nearest = rv.project(costs, sets)                # the closest of them to a prediction
    model = rv.InverseRegressor(problem).fit(Z, decisions)   # contexts -> costs -> decisions

Every name is loaded when it is first used, and brings what it needs: numpy, scipy and numba for
most, torch and scikit-learn for those that learn. So a command that is interrupted while these come
in ends as quietly as at any other time.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import datasets as datasets
    from . import fit as fit
    from . import importers as importers
    from . import losses as losses
    from . import metrics as metrics
    from . import plot as plot
    from . import problems as problems
    from . import theory as theory
    from .cli.doctor.python import diagnose as diagnose
    from .errors import InfeasibleDecisionError as InfeasibleDecisionError
    from .errors import InputError as InputError
    from .errors import MissingDependencyError as MissingDependencyError
    from .errors import PartitionError as PartitionError
    from .errors import RevealedError as RevealedError
    from .errors import ShapeError as ShapeError
    from .fit import ConformalDecisions as ConformalDecisions
    from .fit import InverseRegressor as InverseRegressor
    from .fit import InverseRegressorCV as InverseRegressorCV
    from .fit import Run as Run
    from .fit import load as load
    from .importers import from_cvxpy as from_cvxpy
    from .importers import from_gurobi as from_gurobi
    from .importers import from_linprog as from_linprog
    from .importers import from_milp as from_milp
    from .importers import from_networkx as from_networkx
    from .importers import from_pyepo as from_pyepo
    from .importers import read_lp as read_lp
    from .importers import read_mps as read_mps
    from .losses import ProjectionLoss as ProjectionLoss
    from .optimality.cost_form import CostForm as CostForm
    from .optimality.limit_sets import UnknownLimitSet as UnknownLimitSet
    from .optimality.mixed import MixedSets as MixedSets
    from .optimality.rounding import read_rounded as read_rounded
    from .optimality.sets import EntryState as EntryState
    from .optimality.sets import OptimalitySet as OptimalitySet
    from .problems.cones import SecondOrderCone as SecondOrderCone
    from .problems.cones import SemidefiniteCone as SemidefiniteCone
    from .problems.convex import ConvexProgram as ConvexProgram
    from .problems.integer import IntegerProgram as IntegerProgram
    from .problems.linear import LinearProgram as LinearProgram
    from .problems.oracle_problem import OracleProblem as OracleProblem
    from .problems.quadratic import QuadraticProgram as QuadraticProgram
    from .problems.solution import Solution as Solution
    from .problems.solution import SolveStatus as SolveStatus
    from .projection import Projection as Projection
    from .projection import ProjectionStatus as ProjectionStatus
    from .projection import project as project

    __version__: str

_HOMES = {
    "cli.doctor.python": ("diagnose",),
    "errors": (
        "InfeasibleDecisionError",
        "InputError",
        "MissingDependencyError",
        "PartitionError",
        "RevealedError",
        "ShapeError",
    ),
    "fit": ("ConformalDecisions", "InverseRegressor", "InverseRegressorCV", "Run", "load"),
    "importers": (
        "from_cvxpy",
        "from_gurobi",
        "from_linprog",
        "from_milp",
        "from_networkx",
        "from_pyepo",
        "read_lp",
        "read_mps",
    ),
    "losses": ("ProjectionLoss",),
    "optimality": (
        "CostForm",
        "EntryState",
        "MixedSets",
        "OptimalitySet",
        "UnknownLimitSet",
        "read_rounded",
    ),
    "problems.cones": ("SecondOrderCone", "SemidefiniteCone"),
    "problems.convex": ("ConvexProgram",),
    "problems.integer": ("IntegerProgram",),
    "problems.linear": ("LinearProgram",),
    "problems.oracle_problem": ("OracleProblem",),
    "problems.quadratic": ("QuadraticProgram",),
    "problems.solution": ("Solution", "SolveStatus"),
    "projection": ("Projection", "ProjectionStatus", "project"),
}
"""The modules that names of the front door come from."""
_ON_FIRST_USE = {name: home for home, names in _HOMES.items() for name in names}
_MODULES = {
    "datasets",
    "errors",
    "fit",
    "importers",
    "losses",
    "metrics",
    "optimality",
    "plot",
    "oracles",
    "problems",
    "projection",
    "theory",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    if name == "__version__":
        found = _version()
    elif name in _ON_FIRST_USE:
        found = getattr(import_module(f".{_ON_FIRST_USE[name]}", __name__), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found  # so that it is looked up here once only
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("revealed")
    except PackageNotFoundError:  # run straight from the source folder, never installed
        return "0+source"


# In reading order: the problem, its decisions, the costs that explain them, the nearest of those.
__all__ = [  # noqa: RUF022
    "LinearProgram",
    "QuadraticProgram",
    "ConvexProgram",
    "IntegerProgram",
    "OracleProblem",
    "SecondOrderCone",
    "SemidefiniteCone",
    "problems",
    "importers",
    "read_mps",
    "read_lp",
    "from_linprog",
    "from_milp",
    "from_networkx",
    "from_cvxpy",
    "from_gurobi",
    "from_pyepo",
    "Solution",
    "SolveStatus",
    "OptimalitySet",
    "read_rounded",
    "EntryState",
    "CostForm",
    "MixedSets",
    "UnknownLimitSet",
    "project",
    "Projection",
    "ProjectionStatus",
    "losses",
    "ProjectionLoss",
    "fit",
    "InverseRegressor",
    "InverseRegressorCV",
    "Run",
    "ConformalDecisions",
    "load",
    "diagnose",
    "metrics",
    "plot",
    "datasets",
    "theory",
    "RevealedError",
    "InputError",
    "ShapeError",
    "InfeasibleDecisionError",
    "MissingDependencyError",
    "PartitionError",
    "__version__",
]
