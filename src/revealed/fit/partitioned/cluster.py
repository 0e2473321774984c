"""Shares on the workers of a Dask cluster."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Sequence
from typing import Any

from ..._common.optional import require
from ...errors import InputError
from .executors import Arrived, announced, answered, each_with, one_thread, usual_workers
from .messages import Found, Orders
from .share import Share


class Cluster:
    """Shares on the workers of a Dask cluster.

    Dask reads a partition again where its worker died, and new workers get shares once they are
    there.

    Parameters
    ----------
    scheduler : str or distributed.Client
        The scheduler's address, such as "tcp://10.0.0.1:8786", or a client of it.
    threads : int or None
        That look at one share together; None for the cores of a machine, divided by the tasks that
        its workers do side by side.
    timeout : float
        Seconds to wait for the scheduler.
    """

    def __init__(self, scheduler: Any, threads: int | None = None, timeout: float = 10.0) -> None:
        require("distributed", "A fit on a Dask cluster", "cluster")
        self._own = isinstance(scheduler, str)
        self._client: Any = _client(scheduler, timeout) if self._own else scheduler
        self._shares: list[Any] = []
        self._seen = {*self._known()}
        if not self._seen:
            raise InputError("The Dask cluster has no worker yet: start one, then fit.")
        self.threads = threads or self._cores_of_a_task()
        self.words = f"a Dask cluster of {len(self._seen)} workers{each_with(self.threads)}"

    @property
    def workers(self) -> int:
        return len(self._known())

    @property
    def link(self) -> str:
        return str(getattr(self._client, "dashboard_link", "") or "")

    def load(self, orders: Orders, arrived: Arrived) -> list[Found]:
        self._shares = [
            self._client.submit(
                _read, orders.only(k), key=f"revealed-share-{orders.token}-{k}", retries=2
            )
            for k in range(len(orders.data.partitions))
        ]
        return self.ask("found", [(k, None) for k in range(len(self._shares))], arrived)

    def ask(self, method: str, questions: Sequence[tuple[int, Any]], arrived: Arrived) -> list[Any]:
        self._welcome()
        tag = uuid.uuid4().hex[:12]
        futures = [
            self._client.submit(
                answered, self._shares[k], method, question, self.threads,
                key=f"revealed-{method}-{tag}-{k}", pure=False, retries=2,
            )
            for k, question in questions
        ]  # fmt: skip
        for future, (k, _) in zip(futures, questions, strict=True):
            announced(future, k, arrived)
        return self._client.gather(futures)

    def _welcome(self) -> None:
        """Give new workers shares of the old ones."""
        now = {*self._known()}
        if now - self._seen and self._shares:
            try:
                self._client.rebalance(self._shares)
            except Exception:  # a worker went meanwhile: Dask reads its partitions again
                pass
        self._seen = now

    def _cores_of_a_task(self) -> int:
        """The least that a task has for itself on any machine."""
        known, cores = self._known(), self._client.run(usual_workers)
        tasks = Counter[str]()
        for worker in known.values():
            tasks[worker["host"]] += worker["nthreads"]
        hosts = {name: worker["host"] for name, worker in known.items()}
        found = [cores[name] // tasks[host] for name, host in hosts.items() if name in cores]
        return max(1, min(found, default=1))

    def _known(self) -> dict[str, Any]:
        """The workers by their addresses."""
        return self._client.scheduler_info(n_workers=-1)["workers"]

    def close(self) -> None:
        self._client.cancel(self._shares, force=True)
        self._shares = []
        if self._own:
            self._client.close()


def _client(address: str, timeout: float) -> Any:
    import distributed

    try:
        return distributed.Client(address, timeout=timeout, set_as_default=False)
    except OSError as error:
        raise InputError(
            f"No Dask scheduler answers at {address!r}: {error}. Start one with `dask scheduler`, "
            "and workers with `dask worker ADDRESS`."
        ) from error


def _read(orders: Orders) -> Share:
    with one_thread():
        return Share(orders)
