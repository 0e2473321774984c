"""Fits to data that do not fit into memory, or into one machine."""

from .batches import PartitionBatches as PartitionBatches
from .executors import Cluster as Cluster
from .executors import Processes as Processes
from .executors import Run as Run
from .executors import Threads as Threads
