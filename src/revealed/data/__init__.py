"""Data sets: contexts, the decisions taken in them, and for made-up data the true costs."""

from .dataset import DataSet as DataSet
from .dataset import Split as Split
from .paper import PAPER_NAMES as PAPER_NAMES
from .paper import load_paper_synthetic as load_paper_synthetic
from .synthetic import noisy_paths as noisy_paths
from .synthetic import paper_knapsacks as paper_knapsacks
from .synthetic import paper_paths as paper_paths

__all__ = [
    "PAPER_NAMES",
    "DataSet",
    "Split",
    "load_paper_synthetic",
    "noisy_paths",
    "paper_knapsacks",
    "paper_paths",
]
