"""Predicted costs and observed decisions -> a number to train on; every loss is called alike."""

from ._projection import ProjectionLoss as ProjectionLoss
from ._projection import UnsolvedProjectionWarning as UnsolvedProjectionWarning
from ._projection import projection_loss as projection_loss
