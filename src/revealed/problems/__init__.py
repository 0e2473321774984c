"""A catalogue of forward problems, and the words in which their decisions are spoken of.

Each problem is a `LinearProgram`, with the structure its oracle knows, or a `QuadraticProgram`.
"""

from .edge_orders import edge_order as edge_order
from .edge_orders import pyepo_edge_order as pyepo_edge_order
from .edge_orders import pyepo_edges as pyepo_edges
from .knapsacks import knapsack as knapsack
from .markov import grid_world as grid_world
from .markov import markov_decision_process as markov_decision_process
from .markov import occupancy_of as occupancy_of
from .markov import policy_of as policy_of
from .matchings import assignment as assignment
from .matchings import grid_matching as grid_matching
from .paths import grid_shortest_path as grid_shortest_path
from .paths import shortest_path as shortest_path
from .portfolios import portfolio as portfolio
from .schedules import energy_per_start as energy_per_start
from .schedules import integer_schedules as integer_schedules
from .schedules import scheduling as scheduling
from .schedules import start_times as start_times
