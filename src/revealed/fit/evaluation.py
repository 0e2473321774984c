"""The mean loss of a model over a data set, and its gradient: predict, project, add up.

    F = mean_i  mean_k  phi(dist(f(z_i) + noise xi_ik, C_i))

`phi` is a form of the distance (squared, plain, Huber, Welsch); xi_ik are normal draws in pairs of
opposite sign, drawn once for a whole fit, so F stays convex and deterministic. Without noise there
is one term per sample, the plain distance. Letters: B samples, n cost entries, K draws.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..optimality.mixed import MixedSets
from ..optimality.protocol import CostSet as Sets
from ..projection import Projection, project
from ..projection.distance import (
    FORMS,
    ROUNDED,
    check_delta,
    check_power,
    length_of,
    value_and_gradient,
)
from ..projection.result import refuse_empty
from .bound import totals_of
from .decisions import weighed
from .draws import Draws, Place
from .least_squares import CHUNK, chunks
from .models import ConvexModel, CostModel
from .objective import DualTotals, Objective

CACHED = 2e7
"""Entries of sets that a fit keeps cut into chunks; larger ones are cut anew in every pass."""


@dataclass(frozen=True, kw_only=True)
class DistanceLoss:
    """Which function of the distance is averaged over samples.

    Parameters
    ----------
    power : 1, 2, "huber" or "welsch"
        2 for 1/2 distance^2, 1 for the distance, "huber" between, "welsch" bounded (not convex).
    delta : float
        Where "huber" and "welsch" bend.
    noise : float
        Standard deviation of the draws added to a prediction; 0 for the plain distance.
    draws : int
        For each sample, an even number; of no meaning without noise.
    seed : int
        Of the draws.
    """

    power: int | str = 2
    delta: float = 1.0
    noise: float = 0.0
    draws: int = 8
    seed: int = 0

    def __post_init__(self) -> None:
        if self.power != ROUNDED:
            check_power(self.power)
        check_delta(self.delta)

    @classmethod
    def read(cls, training: Mapping[str, Any]) -> DistanceLoss:
        """The loss in the training facts of a stored model.

        The squared distance for those of the first days, which knew no other; later ones called
        the Welsch loss "bounded".
        """
        names = {"noise": "noise", "power": "power", "delta": "delta", "draws": "draws"}
        names["loss_seed"] = "seed"
        own: dict[str, Any] = {to: training[k] for k, to in names.items() if k in training}
        if own.get("power") == "bounded":
            own["power"] = "welsch"
        return cls(**own)

    @property
    def count(self) -> int:
        """Projections for each sample."""
        return self.draws if self.noise else 1

    @property
    def is_convex(self) -> bool:
        return FORMS[self.power].is_convex

    @property
    def sharp(self) -> DistanceLoss:
        """The loss that this one is a rounded form of, if it is."""
        return replace(self, power=1) if self.power == ROUNDED else self

    @property
    def longest_gradient(self) -> float:
        """In the costs of a sample; the conjugate of the loss is infinite beyond."""
        return FORMS[self.power].longest_gradient(self.delta)

    @property
    def conjugate_square(self) -> float:
        """The factor of |y|^2 in the conjugate."""
        return FORMS[self.power].conjugate_square(self.delta)


@dataclass(frozen=True, kw_only=True)
class Summary:
    """How far the costs of a model were from the sets, all samples together."""

    samples: int
    h: float
    """The mean loss, samples counted by their weights."""
    squared: float
    """The same of 1/2 distance^2, whatever the loss."""
    mean_distance: float
    max_distance: float
    max_relative: float
    sum_of_squares: float
    """Of distances, every sample counted once."""
    inside: int
    """Samples within the relative tolerance asked for."""
    unsolved: int
    trivial: bool
    projection_seconds: float
    fit_seconds: float

    def row(self) -> dict[str, Any]:
        """The columns of a History that come from a pass."""
        return {
            "h": self.h,
            "mean_distance": self.mean_distance,
            "max_distance": self.max_distance,
            "max_relative": self.max_relative,
            "unsolved": self.unsolved,
            "projection_seconds": self.projection_seconds,
            "fit_seconds": self.fit_seconds,
        }

    def summary(self, tol: float) -> Summary:
        """Itself: it was counted with a tolerance already."""
        return self


@dataclass(frozen=True)
class Evaluation:
    """How far the costs of a model were from the sets, sample by sample."""

    distance: np.ndarray
    """(B,)"""
    relative: np.ndarray
    """(B,) distance over the length of the cost or, where that is more, the margin."""
    unsolved: int
    """Projections that missed their tolerance."""
    trivial: bool
    """Whether every predicted cost is 0 and so is the margin: such costs explain anything."""
    projection_seconds: float
    fit_seconds: float
    weights: np.ndarray
    """(B,) what each sample counts."""
    h: float
    """The mean loss, samples counted by their weights: of 1/2 distance^2 unless another form of the
    distance was asked for."""

    def row(self) -> dict[str, Any]:
        """The columns of a History that come from a pass."""
        return self.summary(0.0).row()

    def summary(self, tol: float) -> Summary:
        """What is left of it once samples are added up; those within a relative `tol` are
        counted."""
        return Summary(
            samples=len(self.distance),
            h=self.h,
            squared=0.5 * float(np.average(self.distance**2, weights=self.weights)),
            mean_distance=float(self.distance.mean()),
            max_distance=float(self.distance.max()),
            max_relative=float(self.relative.max()),
            sum_of_squares=float((self.distance**2).sum()),
            inside=int((self.relative <= tol).sum()),
            unsolved=self.unsolved,
            trivial=self.trivial,
            projection_seconds=self.projection_seconds,
            fit_seconds=self.fit_seconds,
        )


class Measured(NamedTuple):
    """The losses of some costs, sample by sample, averaged over draws."""

    distance: np.ndarray
    """(B,)"""
    solved: np.ndarray
    """(B,) whether every projection was exact to its tolerance."""
    value: np.ndarray
    """(B,)"""
    gradient: np.ndarray
    """(B, n)"""
    curvature: np.ndarray
    """(B,) averaged over directions."""


class Tally:
    """Gathers an Evaluation batch by batch."""

    def __init__(self, weights: np.ndarray | None = None) -> None:
        self._started = time.perf_counter()
        self._known = weights
        """What each sample counts, where it is known before; else gathered too."""
        self._distance: list[np.ndarray] = []
        self._size: list[np.ndarray] = []
        self._weights: list[np.ndarray] = []
        self._total, self._counted = 0.0, 0.0
        self._unsolved = 0
        self.projecting = 0.0
        """Seconds spent in projections; every caller of `project` adds to it."""

    def add(self, near: Any, size: Any, weights: Any, value: Any = None) -> None:
        """Count a batch: a Projection, the length of each cost or its margin if that is more, what
        each sample counts, and its loss (1/2 distance^2 unless given).

        A size of 0 is that of a cost of 0 with no margin.
        """
        self._distance.append(near.distance)
        self._size.append(size)
        if self._known is None:
            self._weights.append(weights)
        self._total += float(weights @ (0.5 * near.distance**2 if value is None else value))
        self._counted += float(weights.sum())
        if not near.solved.all():
            self._unsolved += int(np.sum(~near.solved))

    def result(self) -> Evaluation:
        """The batches in the order in which they came."""
        distance, size = _joined(self._distance), _joined(self._size)
        # A cost of 0 has no size of its own; where it does not explain its decision (no linear
        # program's, but a quadratic one's) the distance itself is what is left to go by.
        relative = np.divide(distance, size, out=distance.copy(), where=size > 0)
        rest = self.seconds()["fit_seconds"]
        return Evaluation(
            distance=distance,
            relative=relative,
            unsolved=self._unsolved,
            trivial=not (size.any() or distance.any()),
            projection_seconds=self.projecting,
            fit_seconds=rest,
            weights=_joined(self._weights) if self._known is None else self._known,
            h=self._total / self._counted,
        )

    def seconds(self) -> dict[str, float]:
        """Time so far: in projections, or whatever else the loss asks of a solver, and beside."""
        rest = time.perf_counter() - self._started - self.projecting
        return {"projection_seconds": self.projecting, "fit_seconds": rest}


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    """The parts as one array, which takes their place: two copies of it would add up."""
    parts[:] = [np.concatenate(parts)]
    return parts[0]


class Evaluator:
    """The mean loss of models on one data set; call it with a model and its features.

    Multipliers of the last projections are kept (`warm_start`), so that the next evaluation starts
    from them: one number for each row of the problem, sample and draw. `place` is where the samples
    stand in a larger data set, whose draws of noise they then have, `chunk` how many of them and
    their draws are looked at together.
    """

    def __init__(
        self,
        sets: Sets,
        loss: DistanceLoss | None = None,
        *,
        warm_start: bool = True,
        cache: bool = False,
        threads: int | None = None,
        place: Place | None = None,
        chunk: int = CHUNK,
    ) -> None:
        self.sets, self.loss = sets, loss or DistanceLoss()
        self.evaluations, self.projections = 0, 0
        self._warm_start, self.threads = warm_start, threads
        self._parts = chunks(len(sets), max(1, chunk // self.loss.count))
        self._multipliers: list[np.ndarray | None] = [None] * len(self._parts)
        entries = len(sets) * sets.n_parameters * self.loss.count
        self._cache: dict[int, Any] | None = {} if cache and entries <= CACHED else None
        self._draws = self._draw(place) if self.loss.noise else None

    def __len__(self) -> int:
        return len(self.sets)

    @property
    def n_parameters(self) -> int:
        return self.sets.n_parameters

    def __call__(self, model: CostModel, features: Any) -> Evaluation:
        """Evaluate, and let the model take in what moves it down: costs less gradients."""
        return self._pass(model, features, learn=True)

    def look(self, model: CostModel, features: Any) -> Evaluation:
        """Evaluate a model that learns nothing from it."""
        return self._pass(model, features, learn=False)

    def describe(self, model: CostModel, features: Any) -> Evaluation:
        """The plain distances of a model that is not changed any more. Without noise these are the
        projections of the last evaluation, or nearly."""
        if not self.loss.noise:
            return self.look(model, features)
        plain = Evaluator(self.sets, warm_start=False, threads=self.threads)
        return plain.look(model, features)

    def pace(self) -> dict[str, Any]:
        return {}

    def part(self, features: Any, least: int) -> tuple[Any, Objective] | None:
        sets, size = self.sets, max(least, len(self.sets) // 10)
        if len(sets) < 4 * size:
            return None
        rng = np.random.default_rng(self.loss.seed)
        some = np.sort(rng.choice(len(sets), size, replace=False))
        return features[some], Evaluator(sets[some], self.loss, cache=True, threads=self.threads)

    def on(self, index: np.ndarray) -> Evaluator:
        """That of the chosen samples, with nothing kept from this one."""
        return Evaluator(self.sets[index], self.loss, threads=self.threads)

    def in_memory(self, features: Any) -> tuple[Any, Evaluator]:
        return features, self

    @property
    def keeps_duals(self) -> bool:
        return len(self.sets) * self.sets.n_parameters * self.loss.count <= CACHED

    def dual_totals(
        self, model: ConvexModel, moved: ConvexModel, features: Any, pushes: list[np.ndarray]
    ) -> DualTotals:
        parts = self.dual_parts(model, features)
        return totals_of(model, moved, parts, pushes, self.loss)

    def _pass(self, model: CostModel, features: Any, *, learn: bool) -> Evaluation:
        tally = Tally(self.sets.weights)
        for k, part in enumerate(self._parts):
            costs, own = model.cost(features[part]), self._of(k)
            before = time.perf_counter()
            near, value, gradient = self._each(costs, k)
            tally.projecting += time.perf_counter() - before
            weights = own.weights[: len(costs)]
            size = length_of(costs, own.margins[: len(costs)])
            tally.add(near, size, weights, value)
            if learn:
                move = gradient if (weights == 1.0).all() else weights[:, None] * gradient
                model.add(features[part], costs, costs - move, float(weights.sum()))
        self.evaluations += 1
        self.projections += len(self.sets) * self.loss.count
        return tally.result()

    def each(self, costs: np.ndarray) -> np.ndarray:
        """(B,) the losses of costs (B, n), sample by sample."""
        parts = [self._each(costs[part], k)[1] for k, part in enumerate(self._parts)]
        return np.concatenate(parts)

    def weighed(self, weights: np.ndarray) -> Evaluator:
        """The same loss with samples that count by `weights` (B,) too: the same draws, and a start
        from the same projections."""
        other = Evaluator(
            weighed(self.sets, weights),
            self.loss,
            warm_start=self._warm_start,
            cache=self._cache is not None,
            threads=self.threads,
        )
        other._multipliers = list(self._multipliers)
        return other

    def sample(
        self, model: CostModel, features: Any, index: np.ndarray, draw: np.ndarray
    ) -> tuple[np.ndarray, Any, Projection]:
        """Some samples, each with one of its draws: costs (b, n), their sets, their projections."""
        costs, own = self.costs(model, features, index, draw), self.sets[index]
        self.projections += len(index)
        start = self._last_multipliers(index, draw)
        return costs, own, project(costs, own, warm_start=start, threads=self.threads)

    def costs(
        self, model: CostModel, features: Any, index: np.ndarray, draw: np.ndarray
    ) -> np.ndarray:
        """(b, n) of some samples, each with one of its draws."""
        costs = model.cost(features)
        if self._draws is None:
            return costs
        half = self.loss.draws // 2
        sign = np.where(draw < half, 1.0, -1.0)[:, None]
        return costs + sign * self._draws.some(draw % half, index)

    def _last_multipliers(self, index: np.ndarray, draw: np.ndarray) -> np.ndarray | None:
        """(b, m) those of some samples, each with one of its draws; None before there are any."""
        if any(part is None for part in self._multipliers):
            return None
        found = np.empty((len(index), self._multipliers[0].shape[1]))  # pyright: ignore
        chunk = index // self._parts[0].stop
        for k in np.unique(chunk):
            mine, part = chunk == k, self._parts[k]
            place = draw[mine] * (part.stop - part.start) + index[mine] - part.start
            found[mine] = self._multipliers[k][place]  # pyright: ignore
        return found

    def dual_parts(self, model: ConvexModel, features: Any) -> Any:
        """Chunk by chunk at the model's costs, for a bound on the minimum: features, weights (b,),
        and of every draw its gradient y (K, b, n) and <y, noise + offset - projection> (K, b)."""
        for k, part in enumerate(self._parts):
            costs, own = model.cost(features[part]), self._of(k)
            Q = self._noisy(costs, k)
            near = self._project(Q, own, k)
            size = length_of(Q, own.margins)
            _, y = value_and_gradient(Q, near, size, self.loss.power, self.loss.delta)
            shape = (self.loss.count, len(costs), costs.shape[1])
            y = y.reshape(shape)
            free = costs - model.offset(features[part])
            along = (y * ((Q - near.point).reshape(shape) - free)).sum(axis=2)
            yield features[part], own.weights[: len(costs)], y, along

    def measure(self, costs: np.ndarray) -> Measured:
        """The losses of costs (B, n), sample by sample, with their gradients and mean curvatures.

        The mean curvature comes from the draws: by Stein's identity, that of the averaged loss is
        the mean of <gradient, noise> over that of |noise|^2. It is 1 without noise, the largest
        that there is.
        """
        parts = [self._measured(costs[part], k) for k, part in enumerate(self._parts)]
        return Measured(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))

    def _measured(self, costs: np.ndarray, k: int) -> Measured:
        near, value, gradient, every = self._each_draw(costs, k)
        curvature = np.ones(len(costs))
        if self._draws is not None:
            half = self._draws.of(self._parts[k])
            noise = np.concatenate([half, -half])
            along = np.einsum("kbn,kbn->b", every, noise)
            curvature = along / np.einsum("kbn,kbn->b", noise, noise)
        return Measured(near.distance, near.solved, value, gradient, curvature)

    def _each(self, costs: np.ndarray, k: int) -> tuple[Projection, np.ndarray, np.ndarray]:
        """Projections, losses (b,) and gradients (b, n) of a chunk, averaged over draws."""
        return self._each_draw(costs, k)[:3]

    def _each_draw(
        self, costs: np.ndarray, k: int
    ) -> tuple[Projection, np.ndarray, np.ndarray, np.ndarray]:
        """What `_each` gives, and the gradients (K, b, n) of every draw."""
        Q, own = self._noisy(costs, k), self._of(k)
        near = self._project(Q, own, k)
        size = length_of(Q, own.margins)
        value, gradient = value_and_gradient(Q, near, size, self.loss.power, self.loss.delta)
        if self._draws is None:
            return near, value, gradient, gradient[None]
        shape = (self.loss.count, len(costs))
        mean = {name: getattr(near, name).reshape(shape) for name in ("distance", "solved")}
        near = replace(near, distance=mean["distance"].mean(0), solved=mean["solved"].all(0))
        gradient = gradient.reshape(*shape, -1)
        return near, value.reshape(shape).mean(0), gradient.mean(0), gradient

    def _project(self, Q: np.ndarray, own: Sets, k: int) -> Projection:
        near = project(Q, own, warm_start=self._multipliers[k], threads=self.threads)
        refuse_empty(near)
        if self._warm_start:
            self._multipliers[k] = near.multipliers
        return near

    def _noisy(self, costs: np.ndarray, k: int) -> np.ndarray:
        """(K b, n): the costs of a chunk with every draw, draw after draw."""
        if self._draws is None:
            return costs
        noise = self._draws.of(self._parts[k])
        return np.concatenate([costs + noise, costs - noise]).reshape(-1, costs.shape[1])

    def _draw(self, place: Place | None) -> Draws:
        """The draws of the samples; the sets of several problems have them in memory."""
        loss, n = self.loss, self.sets.n_parameters
        draws = Draws(
            noise=loss.noise,
            pairs=loss.draws // 2,
            seed=loss.seed,
            size=len(self.sets),
            n=n,
            place=place,
        )
        if isinstance(self.sets, MixedSets):  # entries that an instance does not have stay 0
            draws.half = draws.of(slice(0, len(self.sets)))
            draws.half[:, np.arange(n) >= self.sets.sizes[:, None]] = 0.0
        return draws

    def _of(self, k: int) -> Any:
        """The sets of a chunk, once for every draw."""
        if self._cache is not None and k in self._cache:
            return self._cache[k]
        part = self._parts[k]
        chosen = np.tile(np.arange(part.start, part.stop), self.loss.count)
        own = self.sets[chosen] if self.loss.noise else self.sets[part]
        if self._cache is not None:
            self._cache[k] = own
        return own
