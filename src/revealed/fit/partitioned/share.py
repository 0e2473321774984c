"""What a worker does with a partition: read it once, then answer what the driver asks.

An answer follows from the partition and the question alone: nothing is kept from one question to
the next. So it does not matter who answers, nor whether a partition was rebuilt in between: sums
are the same to the last bit. (Starts from earlier projections, which would have to be kept, save 5
to 25% on 5x5 paths.) Letters: B samples, n cost entries, d features.
"""

from __future__ import annotations

import resource
import time
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from ...datasets.partitions import Partitions
from ...datasets.pieces import Piece
from ...errors import InputError, PartitionError
from ...optimality.kinds import PlainCosts
from ...optimality.sets import OptimalitySet
from ...problems.linear import LinearProgram
from ..bound import totals_of
from ..contexts import Common, refuse_bad_numbers
from ..draws import Place
from ..evaluation import DistanceLoss, Evaluator, Summary
from ..least_squares import CHUNK, RowFactor, chunks
from ..observed import TOLERANCE, observed
from .compact import ROWS, Block, Frame, Shelf


@dataclass(frozen=True)
class Orders:
    """How partitions are to be read."""

    data: Partitions
    margin: float
    infeasible: str
    decision_tol: Any
    center: bool
    """Whether the model has an intercept."""
    budget: float
    """Bytes of a share that stay in memory."""
    scratch: str | None
    token: str
    """Tells this fit from others that the same workers serve."""
    entries: np.ndarray | None = None
    """(n, p) features of the entries, for a model of these instead of contexts."""

    def only(self, k: int) -> Orders:
        """Those for partition k, to be sent to who reads it."""
        return replace(self, data=self.data.only(k))


@dataclass
class Found:
    """What a share has found in its partition."""

    samples: int
    rows: RowFactor
    row_used: np.ndarray
    heaviest: float
    weight: float
    squares: float
    """Of weights."""
    in_memory: int
    on_disk: int
    infeasible: int = 0
    """Decisions left out because they break their constraints."""
    skipped: list[str] = field(default_factory=list)
    seconds: float = 0.0
    peak: int = 0
    """Bytes: the most memory that the process has had."""


class Whole(NamedTuple):
    """What the partitions of a data set have in common, known once all are read."""

    row_used: np.ndarray
    """(m_ub,) whether each inequality binds anywhere."""
    heaviest: float
    """The largest weight, in units of which samples count."""


class Question(NamedTuple):
    """What is asked about a model: how far its costs are from the sets."""

    model: Any
    loss: DistanceLoss
    whole: Whole
    place: Place
    learn: bool
    tol: float
    """Relative distance up to which samples are counted as inside."""


class DualQuestion(NamedTuple):
    """What is asked for a bound on the minimum, see `bound.totals_of`."""

    model: Any
    moved: Any
    pushes: list[np.ndarray]
    loss: DistanceLoss
    whole: Whole
    place: Place


class Answer(NamedTuple):
    """Sums over a partition."""

    taken: tuple[np.ndarray, ...] | None
    """What the model took in."""
    value: float
    weight: float
    squared: float
    distance: float
    squares: float
    max_distance: float
    max_relative: float
    samples: int
    inside: int
    unsolved: int
    trivial: bool
    projecting: float
    seconds: float
    processor: float
    """Seconds of the processor."""
    peak: int

    def plus(self, other: Answer) -> Answer:
        """Those of both partitions."""
        taken = None
        if self.taken is not None and other.taken is not None:
            taken = tuple(a + b for a, b in zip(self.taken, other.taken, strict=True))
        both: list[Any] = [a + b for a, b in zip(self[1:], other[1:], strict=True)]
        result = Answer(taken, *both)
        return result._replace(
            max_distance=max(self.max_distance, other.max_distance),
            max_relative=max(self.max_relative, other.max_relative),
            trivial=self.trivial and other.trivial,
            peak=max(self.peak, other.peak),
        )

    def summary(self) -> Summary:
        """What solvers read."""
        return Summary(
            samples=self.samples,
            h=self.value / self.weight,
            squared=self.squared / self.weight,
            mean_distance=self.distance / self.samples,
            max_distance=self.max_distance,
            max_relative=self.max_relative,
            sum_of_squares=self.squares,
            inside=self.inside,
            unsolved=self.unsolved,
            trivial=self.trivial,
            projection_seconds=self.projecting,
            fit_seconds=self.seconds - self.projecting,
        )


_KNOWN: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
"""Problems by the token of their fit: what is computed of one serves all shares of a process."""


@dataclass(frozen=True)
class Terms:
    """What makes sets of compact samples."""

    problem: Any
    """Without what differs from sample to sample."""
    margin: float
    tol: float
    token: str

    @classmethod
    def of(cls, orders: Orders) -> Terms:
        problem = _KNOWN.setdefault(orders.token, alike(orders.data.problem))
        return cls(problem, orders.margin, TOLERANCE, orders.token)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__dict__["problem"] = _KNOWN.setdefault(self.token, state["problem"])

    def frame(self, whole: Whole) -> Frame:
        """What blocks need to become sets."""
        return Frame(self.problem, self.margin, self.tol, whole.row_used, whole.heaviest)


def alike(problem: Any) -> Any:
    """One problem with the matrices of `problem`, which all its instances must share: sets of plain
    costs need nothing else of it."""
    if not isinstance(problem, LinearProgram):
        raise InputError(
            f"Partitions are for decisions of a LinearProgram; got {type(problem).__name__}. Fit "
            "others in memory."
        )
    if problem.eq_rows.per_instance or problem.ub_rows.per_instance:
        raise InputError(
            "Partitions are for problems whose matrices are the same in every instance."
        )
    if problem.n_instances is None:
        return problem
    parts = {name: getattr(problem, name) for name in ("b_eq", "b_ub", "lb", "ub")}
    one = {name: part[0] if part.ndim == 2 else part for name, part in parts.items()}
    return LinearProgram(
        problem.eq_rows, one["b_eq"], problem.ub_rows, one["b_ub"], one["lb"], one["ub"]
    )


class Share:
    """One partition in compact form: the only one of its `orders`."""

    def __init__(self, orders: Orders) -> None:
        began = time.perf_counter()
        self._entries, self._terms = orders.entries, Terms.of(orders)
        self._shelf = Shelf(orders.budget, orders.scratch)
        n_features = orders.data.n_features
        self.found = Found(
            samples=0,
            rows=RowFactor(n_features, center=orders.center),
            row_used=np.zeros(orders.data.problem.shape[1], bool),
            heaviest=0.0,
            weight=0.0,
            squares=0.0,
            in_memory=0,
            on_disk=0,
        )
        for piece in orders.data.partitions[0]:
            self._read(orders, piece)
        self.found.in_memory, self.found.on_disk = self._shelf.in_memory, self._shelf.on_disk
        self.found.seconds = time.perf_counter() - began
        self.found.peak = peak_bytes()

    def __sizeof__(self) -> int:
        return self._shelf.in_memory + 10_000

    # --- reading ---------------------------------------------------------------------------------

    def _read(self, orders: Orders, piece: Piece) -> None:
        blocks: list[Block] = []
        try:
            for some in orders.data.read(piece):
                block = self._compact(orders, some)
                if block is not None:
                    blocks.append(block)
        except PartitionError as error:
            if orders.data.bad == "refuse":
                raise
            self.found.skipped.append(str(error))
            return
        rows, start = 0, 0
        most = min(ROWS, NUMBERS // orders.data.problem.n_variables)
        for k, block in enumerate(blocks):
            rows += block.size
            if rows >= most or k == len(blocks) - 1:
                self._keep(Block.joined(blocks[start : k + 1]))
                rows, start = 0, k + 1

    def _compact(self, orders: Orders, some: Any) -> Block | None:
        if some.X is None:
            raise InputError(f"{some.where}: there are no decisions to learn from.")
        Z, weights = some.Z, some.weights
        try:
            refuse_bad_numbers(Z)
            policy = {"infeasible": orders.infeasible, "decision_tol": orders.decision_tol}
            seen = observed(some.problem, some.X, len(Z), margin=orders.margin, **policy)
            sets = seen.sets
            if sets is None or not isinstance(sets, OptimalitySet):
                sets = OptimalitySet(some.problem, some.X, orders.margin)
        except InputError as error:
            raise type(error)(f"{some.where}: {error}") from error
        if not isinstance(sets.kind, PlainCosts):
            raise InputError(
                "Partitions are for plain costs of a LinearProgram; fit other problems in memory."
            )
        if seen.kept is not None:
            self.found.infeasible += len(Z) - len(seen.kept)
            Z = Z[seen.kept]
            weights = None if weights is None else weights[seen.kept]
        if weights is not None:
            bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
            if bad.size:
                raise InputError(
                    f"{some.where}: weights must be finite and at least 0; got {weights[bad[0]]}."
                )
            there = np.flatnonzero(weights)
            if len(there) < len(weights):  # a weight of 0 is as if the sample were not there
                Z, sets, weights = Z[there], sets[there], weights[there]
        return Block.of(sets, Z, weights) if len(Z) else None

    def _keep(self, block: Block) -> None:
        found = self.found
        counts = block.counts()
        for part in chunks(block.size):
            rows = np.asarray(block.Z[part], dtype=np.float64)
            found.rows.add(rows, counts[part] if len(block.weights) else None)
        m_ub = len(found.row_used)
        found.row_used |= np.unpackbits(np.bitwise_or.reduce(block.active), count=m_ub).astype(bool)
        found.samples += block.size
        found.heaviest = max(found.heaviest, float(counts.max()))
        found.weight += float(counts.sum())
        found.squares += float((counts**2).sum())
        self._shelf.add(block)

    # --- answering -------------------------------------------------------------------------------

    def evaluate(self, question: Question) -> Answer:
        """Distances, and what moves the model down."""
        model, loss = question.model, question.loss
        began, spent = time.perf_counter(), time.thread_time()
        total: Answer | None = None
        for features, evaluator in self._evaluators(loss, question.whole, question.place):
            ask = evaluator if question.learn else evaluator.look
            done = ask(model, features)
            told = done.summary(question.tol)
            weight = float(done.weights.sum())
            one = Answer(
                taken=None,
                value=told.h * weight,
                weight=weight,
                squared=told.squared * weight,
                distance=told.mean_distance * told.samples,
                squares=told.sum_of_squares,
                max_distance=told.max_distance,
                max_relative=told.max_relative,
                samples=told.samples,
                inside=told.inside,
                unsolved=told.unsolved,
                trivial=told.trivial,
                projecting=told.projection_seconds,
                seconds=0.0,
                processor=0.0,
                peak=peak_bytes(),
            )
            total = one if total is None else total.plus(one)
        if total is None:  # every row was skipped
            nothing: list[Any] = [*(0.0,) * 7, *(0,) * 3, True, 0.0, 0.0, 0.0, peak_bytes()]
            total = Answer(None, *nothing)
        taken = model.taken() if question.learn else None
        seconds, processor = time.perf_counter() - began, time.thread_time() - spent
        return total._replace(taken=taken, seconds=seconds, processor=processor)

    def dual(self, question: DualQuestion) -> Any:
        """Sums that prove a bound on the minimum; None for a partition without samples."""
        total = None
        for features, evaluator in self._evaluators(*question[3:]):
            parts = evaluator.dual_parts(question.model, features)
            one = totals_of(question.model, question.moved, parts, question.pushes, question.loss)
            total = one if total is None else total.plus(one)
        return total

    def some(self, index: np.ndarray) -> Block:
        """Samples by their numbers in the partition, in increasing order."""
        found, start = [], 0
        for k in range(len(self._shelf)):
            block = self._shelf[k]
            here = index[(index >= start) & (index < start + block.size)] - start
            start += block.size
            if len(here):
                found.append(block.take(here))
        return Block.joined(found)

    @property
    def block_sizes(self) -> list[int]:
        """Samples of each block."""
        return [self._shelf[k].size for k in range(len(self._shelf))]

    def blocks(self, whole: Whole) -> Iterator[tuple[Block, OptimalitySet]]:
        """Block by block, with the sets of its samples."""
        frame = self._terms.frame(whole)
        for k in range(len(self._shelf)):
            block = self._shelf[k]
            yield block, frame.sets(block)

    def _evaluators(self, loss: DistanceLoss, whole: Whole, place: Place) -> Any:
        start, frame = place.start, self._terms.frame(whole)
        chunk = chunk_of(frame.problem.n_variables)
        for k in range(len(self._shelf)):
            block = self._shelf[k]
            own = Place(start, place.total)
            yield (
                features_of(block, self._entries, place.total),
                Evaluator(
                    frame.sets(block), loss, warm_start=False, threads=1, place=own, chunk=chunk
                ),
            )
            start += block.size


NUMBERS, TOGETHER = 20_000_000, 2_000_000
"""Numbers of decisions in a block, and of costs that are looked at together, at most."""


def chunk_of(n: int) -> int:
    """Samples of n entries that are looked at together."""
    return max(1, min(CHUNK, TOGETHER // n))


def features_of(block: Block, entries: np.ndarray | None, total: int) -> Any:
    """What a model is asked with: contexts, or features of entries that all samples have."""
    if entries is not None:
        return Common(entries, block.size, total)
    return np.asarray(block.Z, dtype=np.float64)


def peak_bytes() -> int:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def current_bytes() -> int:
    """The memory that this process has now; the most it has had where the system does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except OSError:
        return peak_bytes()
