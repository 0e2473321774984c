"""What a worker does with a partition: read it once, then answer what the driver asks.

An answer follows from the partition and the question alone: nothing is kept from one question to
the next. So it does not matter who answers, nor whether a partition was rebuilt in between: sums
are the same to the last bit. (Starts from earlier projections, which would have to be kept, save 5
to 25% on 5x5 paths.) Nor does it matter how many threads answer: samples are looked at in stretches
of a fixed length, whose sums are added in their order. Letters: B samples, n cost entries.
"""

from __future__ import annotations

import copy
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from ...optimality.sets import OptimalitySet
from ..bound import totals_of
from ..contexts import Common
from ..draws import Place
from ..evaluation import Evaluator
from ..least_squares import CHUNK
from ..objective import DualTotals
from .compact import Block, Terms
from .memory import peak_bytes
from .messages import Answer, DualQuestion, Orders, Question, Whole
from .reading import read

TOGETHER = 2_000_000
"""Numbers of costs that a thread looks at together, at most."""
STRETCH = 4
"""Times as many samples as are looked at together: what a thread adds up before it takes more."""


class Stretch(NamedTuple):
    """Samples of one block that are added up together."""

    block: int
    part: slice
    start: int
    """Number of the first in its partition."""


class Share:
    """One partition in compact form: the only one of its `orders`."""

    def __init__(self, orders: Orders) -> None:
        self._entries, self._terms = orders.entries, Terms.of(orders)
        self._shelf, self.found = read(orders)

    def __sizeof__(self) -> int:
        return self._shelf.in_memory + 10_000

    def answer(self, method: str, question: Any, threads: int = 1) -> Any:
        """What the named method says, with so many threads where it can use them."""
        if method == "found":
            return self.found
        if method == "some":
            return self.some(question)
        return {"evaluate": self.evaluate, "dual": self.dual}[method](question, threads)

    def evaluate(self, question: Question, threads: int = 1) -> Answer:
        """Distances, and what moves the model down."""
        own = _Copies(question.model)

        def look(stretch: Stretch) -> Answer:
            began, spent = time.perf_counter(), time.thread_time()
            model, (features, evaluator) = own.model, self._evaluator(question, stretch)
            done = (evaluator if question.learn else evaluator.look)(model, features)
            return Answer.of(
                done,
                question.tol,
                taken=model.taken() if question.learn else None,
                seconds=time.perf_counter() - began,
                processor=time.thread_time() - spent,
                peak=peak_bytes(),
            )

        return self._added(look, threads)

    def dual(self, question: DualQuestion, threads: int = 1) -> DualTotals:
        """Sums that prove a bound on the minimum."""
        model, moved = question.model, question.moved

        def look(stretch: Stretch) -> DualTotals:
            features, evaluator = self._evaluator(question, stretch)
            parts = evaluator.dual_parts(model, features)
            return totals_of(model, moved, parts, question.pushes, question.loss)

        return self._added(look, threads)

    def some(self, index: np.ndarray) -> Block:
        """Samples by their numbers in the partition, in increasing order."""
        found, start = [], 0
        for k, size in enumerate(self._shelf.sizes):
            here = index[(index >= start) & (index < start + size)] - start
            start += size
            if len(here):
                found.append(self._shelf[k].take(here))
        return Block.joined(found)

    @property
    def block_sizes(self) -> list[int]:
        """Samples of each block."""
        return self._shelf.sizes

    def blocks(self, whole: Whole) -> Iterator[tuple[Block, OptimalitySet]]:
        """Block by block, with the sets of its samples."""
        frame = self._terms.frame(whole)
        for k in range(len(self._shelf)):
            block = self._shelf[k]
            yield block, frame.sets(block)

    def _added(self, look: Callable[[Stretch], Any], threads: int) -> Any:
        """The sums of all stretches in their order."""
        total = None
        for one in in_order(look, self._stretches(), threads):
            total = one if total is None else total.plus(one)
        assert total is not None, "shares without samples are not asked"
        return total

    def _stretches(self) -> Iterator[Stretch]:
        start, length = 0, STRETCH * chunk_of(self._terms.problem.n_variables)
        for k, size in enumerate(self._shelf.sizes):
            for first in range(0, size, length):
                part = slice(first, min(first + length, size))
                yield Stretch(k, part, start + first)
            start += size

    def _evaluator(
        self, question: Question | DualQuestion, stretch: Stretch
    ) -> tuple[Any, Evaluator]:
        """What a model is asked with, and the evaluator."""
        place, frame = question.place, self._terms.frame(question.whole)
        block = self._shelf[stretch.block].take(stretch.part)
        return features_of(block, self._entries, place.total), Evaluator(
            frame.sets(block),
            question.loss,
            warm_start=False,
            threads=1,
            place=Place(place.start + stretch.start, place.total),
            chunk=chunk_of(frame.problem.n_variables),
        )


class _Copies:
    """A model of its own for each thread, for a model takes in what it is told."""

    def __init__(self, model: Any) -> None:
        self._model, self._own = model, threading.local()

    @property
    def model(self) -> Any:
        if not hasattr(self._own, "model"):
            self._own.model = bare(self._model)
        return self._own.model


def bare(model: Any) -> Any:
    """A copy that has taken nothing in."""
    other = copy.deepcopy(model)
    other.taken()
    return other


def in_order(work: Callable[[Any], Any], items: Iterable[Any], threads: int) -> Iterator[Any]:
    """What `work` makes of each item, in their order; few results wait for those before them."""
    if threads == 1:
        yield from map(work, items)
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="revealed-stretch") as pool:
        ahead: deque[Future[Any]] = deque()
        for item in items:
            ahead.append(pool.submit(work, item))
            if len(ahead) > 2 * threads:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


def chunk_of(n: int) -> int:
    """Samples of n entries that are looked at together."""
    return max(1, min(CHUNK, TOGETHER // n))


def features_of(block: Block, entries: np.ndarray | None, total: int) -> Any:
    """What a model is asked with: contexts, or features of entries that all samples have."""
    if entries is not None:
        return Common(entries, block.size, total)
    return np.asarray(block.Z, dtype=np.float64)
