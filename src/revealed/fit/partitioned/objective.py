"""The mean loss over partitions: questions out, sums back, added in the order of the partitions."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from ..certificate import inside_at
from ..defaults import LOOKED_AT
from ..draws import Place
from ..evaluation import DistanceLoss, Evaluator, Summary
from ..least_squares import RowFactor
from ..models import ConvexModel, CostModel
from ..objective import DualTotals, Objective
from .compact import Block, Terms
from .executors import Executor
from .messages import Answer, DualQuestion, Found, Orders, Question, Whole
from .share import bare, features_of
from .watching import Watch

SAMPLE = 20_000
"""Samples that the driver keeps, to look at one by one."""
NUMBERS = 4e6
"""Numbers of their decisions, at most."""
LEAST = 400
TENTH = 10
"""Every so many-th partition is what a fit to many begins on."""


class Loaded:
    """Partitions that workers have read, and what they found."""

    def __init__(self, executor: Executor, orders: Orders, watch: Watch | None = None) -> None:
        self.executor, self.orders, self.watch = executor, orders, watch or Watch()
        self.terms = Terms.of(orders)
        began = time.perf_counter()
        rows = orders.data.partition_sizes
        self.found: list[Found] = executor.load(orders, self.watch.begin("Reading", rows))
        self.seconds = time.perf_counter() - began
        found = self.found
        self.watch.memory = max(one.peak for one in found)
        sizes = [one.samples for one in found]
        self.total = sum(sizes)
        self.places = [Place(s, self.total) for s in np.cumsum([0, *sizes])[:-1].tolist()]
        used = np.logical_or.reduce([one.row_used for one in found])
        self.whole = Whole(used, max(one.heaviest for one in found))
        self.weight = sum(one.weight for one in found)
        self.squares = sum(one.squares for one in found)
        self.skipped = [*orders.data.skipped, *(text for one in found for text in one.skipped)]
        self.infeasible = sum(one.infeasible for one in found)
        self.repaired = sum(one.repaired for one in found)
        self.left_out = sum(one.left_out for one in found)

    def rows(self) -> RowFactor:
        """What the partitions saw of the features, weights in units of the largest."""
        total = RowFactor(self.orders.data.n_features, center=self.orders.center)
        for one in self.found:
            total.merge(one.rows)
        total.scale(1.0 / self.whole.heaviest)
        return total

    def take(self, index: np.ndarray) -> Block:
        """Chosen samples of all partitions, by increasing numbers (b,)."""
        asked = []
        for k, place in enumerate(self.places):
            own = index - place.start
            own = own[(own >= 0) & (own < self.found[k].samples)]
            if len(own):
                asked.append((k, own))
        return Block.joined(self.executor.ask("some", asked, lambda k: None))

    def sample(self) -> tuple[Any, Any]:
        """Features and sets of some samples spread over all partitions."""
        n = self.orders.data.problem.n_variables
        most = int(min(SAMPLE, max(LEAST, NUMBERS // n)))
        index = np.unique(np.linspace(0, self.total - 1, most).astype(np.int64))
        return self.features_and_sets(self.take(index))

    def looked_at(self) -> Any:
        """The sets that defaults are taken from: those that a fit in memory looks at."""
        index = np.unique(np.linspace(0, self.total - 1, LOOKED_AT).astype(np.int64))
        return self.features_and_sets(self.take(index))[1]

    def features_and_sets(self, block: Block) -> tuple[Any, Any]:
        """A block as a model and a projection take it."""
        features = features_of(block, self.orders.entries, block.size)
        return features, self.terms.frame(self.whole).sets(block)


class PartitionedObjective:
    """The mean loss over partitions that an executor holds; an `Objective`."""

    def __init__(
        self,
        loaded: Loaded,
        loss: DistanceLoss,
        held: tuple[Any, Any],
        *,
        tol: float,
        threads: int | None = None,
        chosen: Sequence[int] | None = None,
    ) -> None:
        self.loss, self.threads = loss, threads
        self.evaluations = self.projections = self.passes = 0
        self.seconds, self.processor, self.peak = 0.0, 0.0, 0
        """Spent in evaluations, by the clock and by the processors of all workers; and the most
        memory that a process that answered has had."""
        self._loaded, self._held, self._tol = loaded, held, inside_at(tol)
        everything = range(len(loaded.found))
        self._chosen = [k for k in (chosen or everything) if loaded.found[k].samples]
        self._size = sum(loaded.found[k].samples for k in self._chosen)

    def __len__(self) -> int:
        return self._size

    @property
    def n_parameters(self) -> int:
        return self._loaded.orders.data.problem.n_variables

    def __call__(self, model: CostModel, features: Any) -> Summary:
        """Evaluate, and let the model take in what moves it down: costs less gradients."""
        return self._evaluate(model, self.loss, learn=True)

    def look(self, model: CostModel, features: Any) -> Summary:
        """Evaluate a model that learns nothing from it."""
        return self._evaluate(model, self.loss, learn=False)

    def describe(self, model: CostModel, features: Any) -> Summary:
        """The plain distances."""
        return self._evaluate(model, DistanceLoss(), learn=False)

    def _evaluate(self, model: CostModel, loss: DistanceLoss, *, learn: bool) -> Summary:
        own = bare(model)
        places = self._loaded.places
        asked = [
            (k, Question(own, loss, self._loaded.whole, places[k], learn, self._tol))
            for k in self._chosen
        ]
        began = time.perf_counter()
        total = reduce(Answer.plus, self._ask("evaluate", asked))
        self.seconds += time.perf_counter() - began
        if learn:
            assert total.taken is not None, "it was to learn"
            any_model: Any = model
            any_model.collect(total.taken)
        self.peak = max(self.peak, total.peak)
        self._loaded.watch.memory = max(self._loaded.watch.memory, total.peak)
        self.processor += total.processor
        self.evaluations += 1
        return total.summary()

    def _ask(self, method: str, asked: list[tuple[int, Any]]) -> list[Any]:
        loaded = self._loaded
        self.passes += 1
        what = f"{_PASSES[method]} {self.passes}"
        sizes = {k: loaded.found[k].samples for k, _ in asked}
        answers = loaded.executor.ask(method, asked, loaded.watch.begin(what, sizes))
        self.projections += self._size * self.loss.count
        return answers

    def pace(self) -> dict[str, Any]:
        """Samples a second, and the most memory that a process has had."""
        rate = self.evaluations * self._size / max(self.seconds, 1e-9)
        return {"samples_per_second": rate, "peak_bytes": self.peak}

    def part(self, features: Any, least: int) -> tuple[Any, Objective] | None:
        """Every tenth partition of many, else the samples that the driver keeps."""
        held, sets = self._held
        if len(self._chosen) >= 2 * TENTH and self._size > 2 * TENTH * len(sets):
            some = self._chosen[TENTH // 2 :: TENTH]
            options: dict[str, Any] = {"tol": self._tol, "threads": self.threads}
            return None, PartitionedObjective(
                self._loaded, self.loss, self._held, chosen=some, **options
            )
        return held, Evaluator(sets, self.loss, cache=True, threads=self.threads)

    def in_memory(self, features: Any) -> tuple[Any, Evaluator]:
        """The samples that the driver keeps; each time anew, so that nothing of earlier looks is
        left."""
        held, sets = self._held
        return held, Evaluator(sets, self.loss, warm_start=False, threads=self.threads)

    @property
    def keeps_duals(self) -> bool:
        return False

    def dual_totals(
        self, model: ConvexModel, moved: ConvexModel, features: Any, pushes: list[np.ndarray]
    ) -> DualTotals:
        """Sums over gradients at `model`; see `bound`."""
        here, there = bare(model), bare(moved)
        loaded = self._loaded
        asked = [
            (k, DualQuestion(here, there, pushes, self.loss, loaded.whole, loaded.places[k]))
            for k in self._chosen
        ]
        return reduce(DualTotals.plus, self._ask("dual", asked))


_PASSES = {"evaluate": "Pass", "dual": "Proof"}
"""What a pass is for, as people see it."""
