"""Learning from a stream: Newton steps for a few new samples each, and second looks at recent ones.

The loss is that of a fit. What is past is one quadratic function (`past`), so the time of an update
does not grow with the number of samples seen. A second look at some recent samples, at the model as
it is now, takes away most of what was lost by looking at each of them with an earlier model.
"""

from __future__ import annotations

import time
import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..optimality.protocol import CostSet as Sets
from ..optimality.sets import OptimalitySet
from ..projection.distance import length_of
from .certificate import Certificate
from .contexts import Common, Ragged, check_data
from .decisions import counting
from .evaluation import Evaluator, Measured, Tally
from .history import History, StopReason
from .past import Past, Recent, recentered

if TYPE_CHECKING:
    from .solvers import Job

AGAIN = 8
"""Recent samples that are looked at again, for each new one."""
AT_ONCE = 0.2
"""Second looks of one step, as a share of all samples before."""
LOOKED = ("costs", "gradients", "curvatures")
SHARE = 0.1
"""New samples of one step, as a share of all before."""
MOST = 2048
"""New samples of one step."""
HELD = 5_000_000
"""Numbers of new samples that are held until a call ends, about."""
FORGOTTEN = 0.05
"""Share of the largest weight below which a sample is not looked at again."""
FLATTEST = 0.05
"""Curvature of a sample, at least: one that is well explained has none, and must not be free to
move either. With 0.03 to 0.1 results were alike, with 0 they were useless."""
SINGULAR = 1e-12


@dataclass(frozen=True)
class Streaming:
    """How a stream is learned from."""

    forgetting: float = 1.0
    """What a sample counts by after each later one, as a factor."""
    recent: int = 100
    """Samples that are kept to be looked at again."""


def learn(model: Any, Z: Any, sets: Sets, job: Job, how: Streaming, tol: float) -> History:
    """Update `model` in place by contexts `Z` (B, ...) and the sets of the decisions there, one
    after the other."""
    check_data(len(Z), sets)
    Z, sets, _ = counting(Z, sets)
    stream = _Stream(model, Z, sets, job, how)
    tally = Tally()
    for part in stream.parts():
        stream.take(part, tally)
    stream.end(tally)
    done = tally.result()
    history = History([{"iteration": 0, "loss": done.h + model.penalty()} | done.row()])
    history.reason = StopReason.ONE_PASS
    history.certificate = Certificate.of(done, tol, history.reason)
    return history


class _Stream:
    """The new samples of one call, and what is known of those before. Letters: B new samples, b of
    them in one step, and k recent ones looked at again."""

    def __init__(self, model: Any, Z: Any, sets: Sets, job: Job, how: Streaming) -> None:
        self.model, self.job, self.how = model, job, how
        self.Z = np.tile(Z.rows, (len(Z), 1, 1)) if isinstance(Z, Common) else Z
        self.sets: Any = sets
        self.weights = job.unit * np.asarray(sets.weights)
        self.matrix = _fingerprint(self.Z, sets) if how.recent else None
        self.told = 0
        """Samples from which on they are new to the one who asked."""
        self.moments: np.ndarray | None = None
        """(q, q) of the features that a fit has seen, until it is known how curved its loss is."""
        self._start_anew()
        past = model.linear.past
        self.past: Past = self._after_fit(isinstance(Z, Common)) if past is None else past
        self.before = self.past.weight
        self.held = how.recent + min(len(self.Z), MOST, HELD // sets.n_parameters)
        self._prepare()

    def parts(self) -> list[slice]:
        """Few samples while little is known, more later."""
        found, start, known = [], 0, self.before
        while start < len(self.Z):
            size = min(max(1, int(SHARE * known)), MOST, len(self.Z) - start)
            found.append(slice(start, start + size))
            known = known * self.how.forgetting**size + size
            start += size
        return found

    def take(self, part: slice, tally: Tally) -> None:
        """Learn from some new samples, with second looks at others."""
        past, b = self.past, part.stop - part.start
        past.fade(self.how.forgetting**b)
        weights = self.weights[part] * self._fading(b)
        past.weight += float(weights.sum())
        past.looked += b
        again, new = self._drawn(min(AGAIN * b, self._at_once())), None
        Z, sets = self.Z[part], self.sets[part]
        if self.matrix is not None:
            new = Recent.of(Z, sets, weights)
            if again.size:
                both = new.then(past.recent.take(again))  # pyright: ignore
                Z, sets, weights = both.Z, both.sets(sets), both.weights
        looked = self._learn(Z, sets, weights, again, tally)
        self._count(part, looked, tally)
        if new is not None:
            self._keep(replace(new, **{name: looked[name][:b] for name in LOOKED}))

    def end(self, tally: Tally) -> None:
        """Look again at all samples at hand where many came, and leave with the model what it has
        learned besides its weights."""
        past = self.past
        if len(self.Z) > 1 and past.recent is not None:
            order = self._drawn(len(past.recent))
            for some in np.array_split(order, -(-len(order) // self._at_once())):
                old = past.recent.take(some)
                self._learn(old.Z, old.sets(self.sets), old.weights, some, tally)
        if past.recent is not None:
            past.recent = past.recent.take(slice(-self.how.recent, None))
        self.model.linear.past = past

    # --- before the first step -------------------------------------------------------------------

    def _start_anew(self) -> None:
        """Where a model makes its features from data, let it make them anew whenever there are
        twice as many, as long as all samples are at hand."""
        model, past = self.model, self.model.linear.past
        if past is None or past.recent is None or not model.makes_features:
            return
        recent, twice = past.recent, len(past.recent) + len(self.Z) >= 2 * past.prepared
        if past.prepared > len(recent) or past.looked > len(recent) or not twice:
            return
        if self.matrix != past.matrix or not recent.fits(self.Z, self.sets):
            return
        before = recent.weights / self._fading(len(recent))
        self.told = len(recent)
        everything = recent.then(Recent.of(self.Z, self.sets, self.weights))
        self.Z, self.sets = everything.Z, everything.sets(self.sets)
        self.weights = np.concatenate([before, self.weights])
        model.start_anew()

    def _after_fit(self, common: bool) -> Past:
        """What is known before the first update: nothing, or what a fit has left."""
        linear = self.model.linear
        if linear._rows is None:
            return Past(np.zeros(0), np.zeros((0, 0)), np.zeros((0, 0)), 0.0)
        if common:  # a fit counts features that all samples share once
            linear.forget_share(self.job.seen / linear.samples)
        rows, d = linear.rows, len(linear.rows.mean)
        slope = -linear.penalties * linear.coef  # at the minimum both add up to 0
        moments = rows.product(np.eye(d))
        if linear.fit_intercept:
            slope = np.column_stack([slope, np.zeros(len(slope))])
            moments = np.block([[moments, np.zeros((d, 1))], [np.zeros((1, d)), rows.count]])
        self.moments = moments
        past = Past(rows.mean, np.zeros_like(moments), slope, linear.samples)
        past.prepared = past.looked = max(1, round(linear.samples))
        return past

    def _prepare(self) -> None:
        """Look at the new features; what is past counts for less."""
        model, past, share = self.model, self.past, self.how.forgetting ** len(self.Z)
        weights = self.weights * self._fading(len(self.Z))
        if past.weight:
            model.linear.forget_share(share)
        if self.job.prior is not None:
            model.ridge = self.job.prior / (past.weight * share + float(weights.sum()))
        n = self.sets.n_parameters
        model.prepare(self.Z, n, more=bool(past.weight), weights=weights)
        linear = model.linear
        if not past.weight:
            q = linear.coef.shape[1] + linear.fit_intercept
            past.center = linear.rows.mean
            past.curvature, past.slope = np.zeros((q, q)), np.zeros((len(linear.coef), q))
            past.prepared = len(self.Z)
        if self.moments is not None:
            self.moments = recentered(self.moments, past.center - linear.rows.mean)
        past.recenter(linear.rows.mean)
        if past.matrix != self.matrix or (
            past.recent is not None and not past.recent.fits(self.Z, self.sets)
        ):
            past.recent = None
        past.matrix = self.matrix

    # --- one step --------------------------------------------------------------------------------

    def _fading(self, size: int) -> np.ndarray:
        """What samples count after those that come later."""
        return self.how.forgetting ** np.arange(size - 1.0, -1.0, -1.0)

    def _at_once(self) -> int:
        """Second looks in one step: with more, steps along curved directions go too far."""
        return max(1, int(AT_ONCE * self.past.weight))

    def _drawn(self, count: int) -> np.ndarray:
        """Numbers of `count` recent samples that are not all but forgotten, or of all of these."""
        if self.past.recent is None:
            return np.zeros(0, np.int64)
        weights = self.past.recent.weights
        rng = np.random.default_rng([self.job.loss.seed, self.past.turn, 1])
        return rng.permutation(np.flatnonzero(weights >= FORGOTTEN * weights.max()))[:count]

    def _learn(
        self, Z: Any, sets: Any, weights: np.ndarray, again: np.ndarray, tally: Tally
    ) -> dict[str, np.ndarray]:
        """Look at samples, the last ones of which are those recent ones with the numbers `again`,
        and move to the minimum of what is then known. Returns what was seen."""
        past, b = self.past, len(weights) - len(again)
        features = self.model.mapped(Z)
        costs = self.model.cost(features)
        seen = self._look(costs, sets, tally)
        curvatures = np.clip(seen.curvature, FLATTEST, 1.0)
        if self.moments is not None:  # the samples of the fit are as curved as these
            past.curvature, self.moments = curvatures.mean() * self.moments, None
        gradients, added = seen.gradient.copy(), curvatures.copy()
        looked = {"costs": costs, "gradients": seen.gradient, "curvatures": curvatures}
        if again.size:
            assert past.recent is not None, "`again` are numbers of its samples"
            old = past.recent.take(again)
            gradients[b:] -= old.gradients
            gradients[b:] -= old.curvatures[:, None] * (costs[b:] - old.costs)
            added[b:] -= old.curvatures
            past.recent = past.recent.seen(again, **{k: v[b:] for k, v in looked.items()})
        self._add(features, costs, gradients, added, weights)
        self._move()
        return looked | seen._asdict()

    def _look(self, costs: np.ndarray, sets: Sets, tally: Tally) -> Measured:
        """The losses at these costs, under draws that were not seen before."""
        before = time.perf_counter()
        seeds = np.random.SeedSequence([self.job.loss.seed, self.past.turn])
        loss = replace(self.job.loss, seed=int(seeds.generate_state(1)[0]))
        self.past.turn += 1
        found = Evaluator(sets, loss, warm_start=False, threads=self.job.threads).measure(costs)
        tally.projecting += time.perf_counter() - before
        return found

    def _count(self, part: slice, looked: dict[str, np.ndarray], tally: Tally) -> None:
        """Note how far new samples were from their sets; those before `told` are known."""
        some = slice(max(0, self.told - part.start), part.stop - part.start)
        if some.start < some.stop:
            size = length_of(looked["costs"][some], np.asarray(self.sets.margins)[part][some])
            own = Measured(*(looked[name][some] for name in Measured._fields))
            tally.add(own, size, self.weights[part][some], own.value)

    def _add(
        self,
        features: Any,
        costs: np.ndarray,
        gradients: np.ndarray,
        curvatures: np.ndarray,
        weights: np.ndarray,
    ) -> None:
        """Add gradients (b + k, n) and curvatures (b + k,) at these costs to what is past."""
        model, past = self.model, self.past
        model.add(features, costs, costs - weights[:, None] * gradients)
        pull, lift, _ = model.linear.taken()
        rows, counts = model.weighted_rows(features, weights * curvatures)
        rows, slope = rows - past.center, np.outer(lift, past.center) - pull
        if model.linear.fit_intercept:
            rows = np.column_stack([rows, np.ones(len(rows))])
            slope = np.column_stack([slope, -lift])
        past.curvature = past.curvature + (rows * counts[:, None]).T @ rows
        past.slope = past.slope + slope

    def _move(self) -> None:
        """Take the weights to the minimum of what is past and the penalty."""
        linear, past = self.model.linear, self.past
        d = linear.coef.shape[1]
        slope, total = past.slope.copy(), past.curvature.copy()
        slope[:, :d] += linear.penalties * linear.coef
        total[np.arange(d), np.arange(d)] += linear.penalties
        step = -solved(total, slope)
        linear.coef += step[:, :d]
        if linear.fit_intercept:
            linear.intercept += step[:, d] - step[:, :d] @ past.center
        past.move(step)

    def _keep(self, new: Recent) -> None:
        recent = self.past.recent
        new = new if recent is None else recent.then(new)
        self.past.recent = new.take(slice(-self.held, None))


def solved(matrix: np.ndarray, lines: np.ndarray) -> np.ndarray:
    """(r, q) lines times the inverse of a positive semidefinite (q, q) matrix; 0 in directions in
    which it is singular."""
    size = np.sqrt(np.diag(matrix))
    unit = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0)
    scaled = unit[:, None] * matrix * unit
    scaled[np.diag_indices(len(scaled))] = 1.0
    values, vectors = np.linalg.eigh(scaled)
    kept = values > SINGULAR * len(values) * values[-1]
    half = vectors[:, kept] / np.sqrt(values[kept])
    return (lines * unit @ half) @ half.T * unit


def _fingerprint(Z: Any, sets: Any) -> int | None:
    """A number that tells one matrix of constraints from another; None for samples that cannot be
    kept for a second look."""
    plain = isinstance(sets, OptimalitySet) and sets.is_plain and not isinstance(Z, Ragged)
    if not plain:
        return None
    both = (sets.rows.eq_rows, sets.rows.ub_rows)
    if any(rows.per_instance for rows in both):
        return None
    found = 0
    for rows in both:
        for array in (rows.indptr, rows.indices, rows.data):
            found = zlib.crc32(array.tobytes(), found)
    return found
