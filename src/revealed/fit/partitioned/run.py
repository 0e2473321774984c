"""Where and how a fit to partitions runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..._common.checks import check_whole
from ...errors import InputError
from .cluster import Cluster
from .executors import Executor, Processes, Threads, usual_workers
from .memory import bytes_of


@dataclass(frozen=True, kw_only=True)
class Run:
    """Where and how a fit to `Partitions` runs.

    Parameters
    ----------
    executor : "threads", "processes", str or distributed.Client
        Threads of this process, other processes of this machine, or a Dask cluster by the address
        of its scheduler or by a client.
    workers : int or None
        Partitions that are looked at side by side, by as many threads or processes; None for every
        core.
    threads : int or None
        That look at one partition together. None for 1, or where there are fewer partitions or
        tasks of Dask's workers than cores, for their share of the cores.
    memory : str, int or None
        What a process may take in all, such as "2GB": samples beyond it are kept in files. None
        keeps all in memory.
    scratch : path or None
        Folder for these files; None for the system's.
    checkpoint : path or None
        Folder for checkpoints. A fit that finds its own there goes on from it.
    checkpoint_every : float
        Seconds between checkpoints.
    """

    executor: Any = "threads"
    workers: int | None = None
    threads: int | None = None
    memory: Any = None
    scratch: Any = None
    checkpoint: Any = None
    checkpoint_every: float = 30.0

    def __post_init__(self) -> None:
        for name in ("workers", "threads"):
            if getattr(self, name) is not None:
                check_whole(getattr(self, name), name, 1)
        bytes_of(self.memory)

    def start(self, partitions: int) -> Executor:
        """The executor for so many partitions, with its workers started."""
        if self.executor == "threads":
            cores = self.workers or usual_workers()
            return Threads(min(cores, partitions), self.threads or max(1, cores // partitions))
        if self.executor == "processes":
            return Processes(self.workers, self.threads)
        if isinstance(self.executor, str) and ":" not in self.executor:
            raise InputError(
                "`executor` must be 'threads', 'processes', the address of a Dask scheduler such "
                f"as 'tcp://10.0.0.1:8786', or a client of it; got {self.executor!r}."
            )
        return Cluster(self.executor, self.threads)
