"""Costs and optimality sets -> the nearest costs that explain the decisions."""

from .project import project as project
from .result import Projection as Projection
from .result import ProjectionStatus as ProjectionStatus
