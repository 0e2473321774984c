"""Data sets: contexts, the decisions taken in them, and for made-up data the true costs."""

from .dataset import DataSet as DataSet
from .dataset import Split as Split
from .energy import load_energy as load_energy
from .energy import synthetic_energy as synthetic_energy
from .paper import PAPER_NAMES as PAPER_NAMES
from .paper import load_paper_synthetic as load_paper_synthetic
from .partitions import Partitions as Partitions
from .prices import load_sp500 as load_sp500
from .prices import portfolio_periods as portfolio_periods
from .prices import synthetic_prices as synthetic_prices
from .routes import load_road_network as load_road_network
from .routes import load_routes as load_routes
from .synthetic import general_knapsacks as general_knapsacks
from .synthetic import noisy_knapsacks as noisy_knapsacks
from .synthetic import noisy_paths as noisy_paths
from .synthetic import paper_knapsacks as paper_knapsacks
from .synthetic import paper_paths as paper_paths

__all__ = [
    "PAPER_NAMES",
    "DataSet",
    "Partitions",
    "Split",
    "general_knapsacks",
    "load_energy",
    "load_paper_synthetic",
    "load_road_network",
    "load_routes",
    "load_sp500",
    "noisy_knapsacks",
    "noisy_paths",
    "paper_knapsacks",
    "paper_paths",
    "portfolio_periods",
    "synthetic_energy",
    "synthetic_prices",
]
