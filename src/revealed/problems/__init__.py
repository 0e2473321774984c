"""A catalogue of forward problems, each a `LinearProgram` with the structure its oracle knows."""

from .knapsacks import knapsack as knapsack
from .matchings import assignment as assignment
from .matchings import grid_matching as grid_matching
from .paths import grid_shortest_path as grid_shortest_path
from .paths import shortest_path as shortest_path
