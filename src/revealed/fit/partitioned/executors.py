"""Who holds the partitions: threads of this process, other processes, or the workers of a cluster.

An executor reads each partition where it will stay and puts questions to it. All of them give the
answers in the order of the partitions, and an answer does not depend on who gave it.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

from ..._common.checks import check_whole
from ..._common.optional import require
from ...errors import InputError
from .share import Found, Orders, Share

ATTEMPTS = 5
"""Times that the work of a process that died is tried in all."""


class Executor(Protocol):
    """Holds shares, and has them answer."""

    words: str
    """What this is, for messages."""

    @property
    def workers(self) -> int: ...

    @property
    def link(self) -> str:
        """Where a dashboard can be seen; empty if nowhere."""
        ...

    def load(self, orders: Orders) -> list[Found]:
        """Read all partitions; what was found in each."""
        ...

    def ask(self, method: str, questions: Sequence[tuple[int, Any]]) -> list[Any]:
        """The answers of shares, by number, to a question each; `method` is one of `Share`."""
        ...

    def close(self) -> None: ...


def one_thread() -> Any:
    """Keeps linear algebra to one thread: partitions are what runs side by side."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1, user_api="blas")


def usual_workers() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Threads:
    """Shares in this process, answered by threads: kernels run without the interpreter's lock."""

    link = ""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or usual_workers()
        self.words = f"{self.workers} threads"
        self._pool = ThreadPoolExecutor(self.workers, thread_name_prefix="revealed-share")
        self._shares: list[Share] = []

    def load(self, orders: Orders) -> list[Found]:
        with one_thread():
            count = len(orders.data.partitions)
            futures = [self._pool.submit(Share, orders.only(k)) for k in range(count)]
            self._shares = _results(futures)
        return [share.found for share in self._shares]

    def ask(self, method: str, questions: Sequence[tuple[int, Any]]) -> list[Any]:
        with one_thread():
            futures = [
                self._pool.submit(getattr(self._shares[k], method), copied(question))
                for k, question in questions
            ]
            return _results(futures)

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        self._shares = []


def copied(question: Any) -> Any:
    """The question with a model of its own, for a model takes in what a share tells it."""
    import copy

    if not hasattr(question, "model"):
        return question
    return question._replace(model=copy.deepcopy(question.model))


def _results(futures: list[Future[Any]]) -> list[Any]:
    """All results, in order; where one fails, those not begun are given up."""
    try:
        return [future.result() for future in futures]
    except BaseException:
        for future in futures:
            future.cancel()
        raise


class Processes:
    """Shares in other processes of this machine: share k is in process k modulo their number.

    A process that dies is replaced, and reads its partitions again when it is next asked.
    """

    link = ""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or usual_workers()
        self.words = f"{self.workers} processes"
        self._pools = [_process() for _ in range(self.workers)]
        self._orders: Orders | None = None

    def load(self, orders: Orders) -> list[Found]:
        self._orders = orders
        return self.ask("found", [(k, None) for k in range(len(orders.data.partitions))])

    def ask(self, method: str, questions: Sequence[tuple[int, Any]]) -> list[Any]:
        answers: dict[int, Any] = {}
        left, told, deaths = list(enumerate(questions)), set[int](), 0
        while left:
            futures = [(i, k, self._submit(k, method, q, k in told)) for i, (k, q) in left]
            broken = set[int]()
            for i, k, future in futures:
                try:
                    answer = None if future is None else future.result()
                except BrokenExecutor:
                    answer = None
                if answer is None:
                    broken.add(k % self.workers)
                elif answer == _MISSING:
                    told.add(k)
                else:
                    answers[i] = answer[0]
            for lane in broken:
                self._pools[lane].shutdown(wait=False)
                self._pools[lane] = _process()
                told -= {k for k in told if k % self.workers == lane}
            deaths += bool(broken)
            if deaths >= ATTEMPTS:
                raise InputError(
                    f"A process that held samples died {deaths} times, probably of too little "
                    "memory: allow fewer `workers`, or less `memory` so that more is kept on disk."
                )
            left = [one for one in left if one[0] not in answers]
        return [answers[i] for i in range(len(questions))]

    def _submit(self, k: int, method: str, question: Any, tell: bool) -> Future[Any] | None:
        """The answer to come; None where the process is dead. With `tell` the share is read first,
        if the process has it not."""
        assert self._orders is not None, "`load` comes first"
        token = self._orders.token
        orders = self._orders.only(k) if tell or method == "found" else None
        try:
            return self._pools[k % self.workers].submit(_answer, token, k, method, question, orders)
        except BrokenExecutor:
            return None

    def close(self) -> None:
        for pool in self._pools:
            pool.shutdown(wait=True)


def _process() -> Any:
    """A process that is started afresh: one forked from threads at work may hang."""
    from joblib.externals.loky import ProcessPoolExecutor

    return ProcessPoolExecutor(1, timeout=None, env=_ONE_THREAD)


_ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}

_HELD: dict[tuple[str, int], Share] = {}
"""The shares of this process, where it is a worker."""


_MISSING = "missing"


def _answer(token: str, k: int, method: str, question: Any, orders: Orders | None) -> Any:
    """The answer of share k in a tuple; `_MISSING` where this process has it not, nor `orders` to
    read it."""
    for other in [key for key in _HELD if key[0] != token]:
        del _HELD[other]
    if (token, k) not in _HELD:
        if orders is None:
            return _MISSING
        with one_thread():
            _HELD[token, k] = Share(orders)
    share = _HELD[token, k]
    return (share.found if method == "found" else getattr(share, method)(question),)


class Cluster:
    """Shares on the workers of a Dask cluster.

    Dask reads a partition again where its worker died, and new workers get shares once they are
    there.

    Parameters
    ----------
    scheduler : str or distributed.Client
        The scheduler's address, such as "tcp://10.0.0.1:8786", or a client of it.
    timeout : float
        Seconds to wait for the scheduler.
    """

    def __init__(self, scheduler: Any, timeout: float = 10.0) -> None:
        require("distributed", "A fit on a Dask cluster", "cluster")
        import distributed

        self._own = isinstance(scheduler, str)
        if self._own:
            try:
                scheduler = distributed.Client(scheduler, timeout=timeout, set_as_default=False)
            except OSError as error:
                raise InputError(
                    f"No Dask scheduler answers at {scheduler!r}: {error}. Start one with "
                    "`dask scheduler`, and workers with `dask worker ADDRESS`."
                ) from error
        self._client: Any = scheduler
        self._shares: list[Any] = []
        self._seen = self._names()
        if not self._seen:
            raise InputError("The Dask cluster has no worker yet: start one, then fit.")
        self.words = f"a Dask cluster of {len(self._seen)} workers"

    @property
    def workers(self) -> int:
        return len(self._names())

    @property
    def link(self) -> str:
        return str(getattr(self._client, "dashboard_link", "") or "")

    def load(self, orders: Orders) -> list[Found]:
        self._shares = [
            self._client.submit(
                _read, orders.only(k), key=f"revealed-share-{orders.token}-{k}", retries=2
            )
            for k in range(len(orders.data.partitions))
        ]
        return self.ask("found", [(k, None) for k in range(len(self._shares))])

    def ask(self, method: str, questions: Sequence[tuple[int, Any]]) -> list[Any]:
        self._welcome()
        tag = uuid.uuid4().hex[:12]
        futures = [
            self._client.submit(
                _on_worker, self._shares[k], method, question,
                key=f"revealed-{method}-{tag}-{k}", pure=False, retries=2,
            )
            for k, question in questions
        ]  # fmt: skip
        return self._client.gather(futures)

    def _welcome(self) -> None:
        """Give new workers shares of the old ones."""
        now = self._names()
        if now - self._seen and self._shares:
            try:
                self._client.rebalance(self._shares)
            except Exception:  # a worker went meanwhile: Dask reads its partitions again
                pass
        self._seen = now

    def _names(self) -> set[str]:
        return set(self._client.scheduler_info(n_workers=-1)["workers"])

    def close(self) -> None:
        self._client.cancel(self._shares, force=True)
        self._shares = []
        if self._own:
            self._client.close()


def _read(orders: Orders) -> Share:
    with one_thread():
        return Share(orders)


def _on_worker(share: Share, method: str, question: Any) -> Any:
    with one_thread():
        return share.found if method == "found" else getattr(share, method)(question)


@dataclass(frozen=True, kw_only=True)
class Run:
    """Where and how a fit to `Partitions` runs.

    Parameters
    ----------
    executor : "threads", "processes", str or distributed.Client
        Threads of this process, other processes of this machine, or a Dask cluster by the address
        of its scheduler or by a client.
    workers : int or None
        Threads or processes; None for every core.
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
    memory: Any = None
    scratch: Any = None
    checkpoint: Any = None
    checkpoint_every: float = 30.0

    def __post_init__(self) -> None:
        if self.workers is not None:
            check_whole(self.workers, "workers", 1)
        bytes_of(self.memory)

    def start(self) -> Executor:
        """The executor, with its workers started."""
        if isinstance(self.executor, str) and self.executor in ("threads", "processes"):
            return {"threads": Threads, "processes": Processes}[self.executor](self.workers)
        if (
            isinstance(self.executor, str)
            and "://" not in self.executor
            and ":" not in self.executor
        ):
            raise InputError(
                "`executor` must be 'threads', 'processes', the address of a Dask scheduler such "
                f"as 'tcp://10.0.0.1:8786', or a client of it; got {self.executor!r}."
            )
        return Cluster(self.executor)


_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


def bytes_of(memory: Any) -> float | None:
    """Bytes from a number, or a text such as "2GB"; None stays what it is."""
    if memory is None:
        return None
    text = str(memory).strip().upper()
    number = text.rstrip("KMGTIB ")
    try:
        value = float(number) * _UNITS[text[len(number) :].strip()]
    except (KeyError, ValueError):
        value = -1.0
    if not 0 < value < float("inf"):
        raise InputError(f"`memory` must be like '2GB' or a number of bytes; got {memory!r}.")
    return value
