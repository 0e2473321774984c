"""Who holds the partitions: threads of this process, other processes, or a cluster (`cluster`).

An executor reads each partition where it will stay and puts questions to it. All of them give the
answers in the order of the partitions, and an answer does not depend on who gave it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Protocol

from ...errors import InputError
from .messages import Found, Orders
from .share import Share

ATTEMPTS = 5
"""Times that the work of a process that died is tried in all."""

Arrived = Callable[[int], None]
"""Called, in some thread, with the number of a share that has answered."""


class Executor(Protocol):
    """Holds shares, and has them answer."""

    words: str
    """What this is, for messages."""
    threads: int
    """That look at one share together."""

    @property
    def workers(self) -> int:
        """How many shares are looked at side by side."""
        ...

    @property
    def link(self) -> str:
        """Where a dashboard can be seen; empty if nowhere."""
        ...

    def load(self, orders: Orders, arrived: Arrived) -> list[Found]:
        """Read all partitions; what was found in each."""
        ...

    def ask(self, method: str, questions: Sequence[tuple[int, Any]], arrived: Arrived) -> list[Any]:
        """The answers of shares, by number, to a question each; `method` is one that
        `Share.answer` knows."""
        ...

    def close(self) -> None: ...


class Threads:
    """Shares in this process, answered by threads: kernels run without the interpreter's lock."""

    link = ""

    def __init__(self, workers: int | None = None, threads: int | None = None) -> None:
        self.workers, self.threads = workers or usual_workers(), threads or 1
        self.words = f"{self.workers * self.threads} threads"
        self._pool = ThreadPoolExecutor(self.workers, thread_name_prefix="revealed-share")
        self._shares: list[Share] = []

    def load(self, orders: Orders, arrived: Arrived) -> list[Found]:
        def read(k: int) -> Share:
            with one_thread():
                return Share(orders.only(k))

        self._shares = self._gathered(read, range(len(orders.data.partitions)), arrived)
        return [share.found for share in self._shares]

    def ask(self, method: str, questions: Sequence[tuple[int, Any]], arrived: Arrived) -> list[Any]:
        asked = dict(questions)

        def answer(k: int) -> Any:
            return answered(self._shares[k], method, asked[k], self.threads)

        return self._gathered(answer, asked, arrived)

    def _gathered(self, work: Callable[[int], Any], shares: Any, arrived: Arrived) -> list[Any]:
        """All results, in order; where one fails, those not begun are given up."""
        futures = [announced(self._pool.submit(work, k), k, arrived) for k in shares]
        try:
            return [future.result() for future in futures]
        except BaseException:
            for future in futures:
                future.cancel()
            raise

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        self._shares = []


class Processes:
    """Shares in other processes of this machine: share k is in process k modulo their number.

    A process that dies is replaced, and reads its partitions again when it is next asked.
    """

    link = ""

    def __init__(self, workers: int | None = None, threads: int | None = None) -> None:
        self.workers, self.threads = workers or usual_workers(), threads or 1
        self.words = f"{self.workers} processes{each_with(self.threads)}"
        self._pools = [_process() for _ in range(self.workers)]
        self._orders: Orders | None = None

    def load(self, orders: Orders, arrived: Arrived) -> list[Found]:
        self._orders = orders
        questions = [(k, None) for k in range(len(orders.data.partitions))]
        return self.ask("found", questions, arrived)

    def ask(self, method: str, questions: Sequence[tuple[int, Any]], arrived: Arrived) -> list[Any]:
        asked, answers, deaths = dict(questions), dict[int, Any](), 0
        tell = {*asked} if method == "found" else set[int]()
        """Shares that are read first, if their process has them not."""
        while len(answers) < len(asked):
            left = [k for k in asked if k not in answers]
            futures = {k: self._submit(k, method, asked[k], k in tell, arrived) for k in left}
            replies = {k: _reply(future) for k, future in futures.items()}
            answers |= {k: reply[0] for k, reply in replies.items() if isinstance(reply, tuple)}
            tell |= {k for k, reply in replies.items() if reply == _MISSING}
            dead = {k % self.workers for k, reply in replies.items() if reply == _DEAD}
            for lane in dead:
                self._pools[lane].shutdown(wait=False)
                self._pools[lane] = _process()
            tell |= {k for k in asked if k % self.workers in dead}
            deaths += bool(dead)
            if deaths >= ATTEMPTS:
                raise InputError(
                    f"A process that held samples died {deaths} times, probably of too little "
                    "memory: allow fewer `workers`, or less `memory` so that more is kept on disk."
                )
        return [answers[k] for k in asked]

    def _submit(
        self, k: int, method: str, question: Any, tell: bool, arrived: Arrived
    ) -> Future[Any] | None:
        """The reply to come; None where the process is dead."""
        assert self._orders is not None, "`load` comes first"
        orders = self._orders.only(k) if tell else None
        job = (self._orders.token, k, method, question, self.threads, orders)
        try:
            return announced(self._pools[k % self.workers].submit(_in_process, *job), k, arrived)
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

_MISSING, _DEAD = "missing", "dead"
"""Replies instead of an answer."""


def _in_process(
    token: str, k: int, method: str, question: Any, threads: int, orders: Orders | None
) -> Any:
    """The answer of share k in a tuple; `_MISSING` where this process has it not, nor `orders` to
    read it."""
    for other in [key for key in _HELD if key[0] != token]:
        del _HELD[other]
    if (token, k) not in _HELD:
        if orders is None:
            return _MISSING
        with one_thread():
            _HELD[token, k] = Share(orders)
    return (answered(_HELD[token, k], method, question, threads),)


def _reply(future: Future[Any] | None) -> Any:
    try:
        return _DEAD if future is None else future.result()
    except BrokenExecutor:
        return _DEAD


# --- what all have in common ----------------------------------------------------------------------


def answered(share: Share, method: str, question: Any, threads: int) -> Any:
    """The answer of a share, with linear algebra in one thread each."""
    with one_thread():
        return share.answer(method, question, threads)


def announced(future: Any, k: int, arrived: Arrived) -> Any:
    """The future, which says when the answer of share k is there."""
    future.add_done_callback(lambda _: arrived(k))
    return future


_INSIDE, _LIMIT, _LOCK = [0], list[Any](), threading.Lock()


@contextmanager
def one_thread() -> Iterator[None]:
    """Keeps linear algebra to one thread, for partitions are what runs side by side. The limit is
    the process's: the first thread that comes sets it, the last one that goes lifts it."""
    from threadpoolctl import threadpool_limits

    with _LOCK:
        if not _INSIDE[0]:
            _LIMIT.append(threadpool_limits(1, user_api="blas"))
        _INSIDE[0] += 1
    try:
        yield
    finally:
        with _LOCK:
            _INSIDE[0] -= 1
            if not _INSIDE[0]:
                _LIMIT.pop().restore_original_limits()


def usual_workers() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def each_with(threads: int) -> str:
    """How many threads each has, where it is more than one."""
    return f", {threads} threads each" if threads > 1 else ""
