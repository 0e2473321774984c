"""Models written elsewhere, as problems to learn with: files, arrays, graphs, modeling languages.

Each importer returns an `ImportedModel`: the problem, its own objective, and its names. None of the
packages they read from is needed by the others.
"""

from .convex_language import from_cvxpy as from_cvxpy
from .graphs import from_networkx as from_networkx
from .gurobi import from_gurobi as from_gurobi
from .imported import ImportedModel as ImportedModel
from .imported import ModelWarning as ModelWarning
from .imported import RelaxationWarning as RelaxationWarning
from .linprog import from_linprog as from_linprog
from .linprog import from_milp as from_milp
from .lp import read_lp as read_lp
from .mps import read_mps as read_mps
from .pyepo import from_pyepo as from_pyepo
