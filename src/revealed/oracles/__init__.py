"""Problem and costs in, decisions out: HiGHS for any linear program, faster oracles for some."""

from .batch import solve_batch as solve_batch
from .solution import Solution as Solution
from .solution import SolveStatus as SolveStatus
