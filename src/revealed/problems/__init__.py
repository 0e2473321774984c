"""A catalogue of forward problems, and the words in which their decisions are spoken of.

Each problem is a `LinearProgram`, with the structure its oracle knows, a `QuadraticProgram`, or an
`IntegerProgram` where decisions are whole.
`Problem` is what any kind of problem offers.
"""

from .catalogue.covers import facility_location as facility_location
from .catalogue.covers import set_cover as set_cover
from .catalogue.covers import shift_scheduling as shift_scheduling
from .catalogue.edge_orders import edge_order as edge_order
from .catalogue.edge_orders import pyepo_edge_order as pyepo_edge_order
from .catalogue.edge_orders import pyepo_edges as pyepo_edges
from .catalogue.knapsacks import binary_knapsack as binary_knapsack
from .catalogue.knapsacks import knapsack as knapsack
from .catalogue.knapsacks import standard_form_knapsack as standard_form_knapsack
from .catalogue.markov import grid_world as grid_world
from .catalogue.markov import markov_decision_process as markov_decision_process
from .catalogue.markov import occupancy_of as occupancy_of
from .catalogue.markov import policy_of as policy_of
from .catalogue.markov import sampled_behavior as sampled_behavior
from .catalogue.matchings import assignment as assignment
from .catalogue.matchings import grid_matching as grid_matching
from .catalogue.paths import grid_shortest_path as grid_shortest_path
from .catalogue.paths import shortest_path as shortest_path
from .catalogue.portfolios import portfolio as portfolio
from .catalogue.routes import routes_of as routes_of
from .catalogue.routes import vehicle_routing as vehicle_routing
from .catalogue.schedules import energy_per_start as energy_per_start
from .catalogue.schedules import integer_schedules as integer_schedules
from .catalogue.schedules import scheduling as scheduling
from .catalogue.schedules import start_times as start_times
from .catalogue.tours import tour_of as tour_of
from .catalogue.tours import traveling_salesman as traveling_salesman
from .protocol import Problem as Problem
