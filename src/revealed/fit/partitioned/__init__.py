"""Fits to data that do not fit into memory, or into one machine."""

from .batches import PartitionBatches as PartitionBatches
from .cluster import Cluster as Cluster
from .executors import Processes as Processes
from .executors import Threads as Threads
from .run import Run as Run
