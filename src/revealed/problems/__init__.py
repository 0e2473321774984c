"""A catalogue of forward problems, each a `LinearProgram` with the structure its oracle knows."""

from .knapsacks import knapsack as knapsack
from .markov import grid_world as grid_world
from .markov import markov_decision_process as markov_decision_process
from .markov import occupancy_of as occupancy_of
from .markov import policy_of as policy_of
from .matchings import assignment as assignment
from .matchings import grid_matching as grid_matching
from .paths import grid_shortest_path as grid_shortest_path
from .paths import shortest_path as shortest_path
from .portfolio import portfolio as portfolio
from .scheduling import scheduling as scheduling
