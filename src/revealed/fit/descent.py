"""One minimization by L-BFGS: steps, proofs of how near the minimum is, the record, checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..projection.distance import ROUNDED
from .bound import lower_bound
from .certificate import Certificate, Convergence
from .curvature import price_of_metric, sampled_metric
from .history import History, StopReason
from .keeping import Drawn, Keeper, Point, Standing
from .models import ConvexModel, CostModel
from .objective import Objective
from .quasi_newton import MEMORY, Metric, next_trial, two_loops

TRIALS = 20
"""Evaluations of one line search."""
FALL = 1e-4
"""Of the fall that the slope promises: what a step must reach."""
FLAT = 0.9
"""Of the slope at the start: what may be left of it at the end of a step."""
ROUNDING = 1e-10
"""Relative changes of the loss that the accuracy of projections hides."""
FIRST_METRIC, NEXT_METRIC = 10, 30
"""Evaluations after which the curvature is sampled, and sampled again, if it is cheap."""
CHEAP, SOON = 5, 4
"""Where there are so many times more samples than are looked at one by one, curvature is sampled at
once, and again after so many evaluations."""
LESS_ROUND, ENOUGH = 0.1, 0.05
"""Of the radius to which a kink is rounded: the next one, and how near its minimum to go before."""
SHARPEST = 1e-9
"""Share of the loss below which a kink is rounded no less."""
NOTHING = 1e-15
"""Share of the first loss, or of the noise squared, that is none."""
TRUSTED = 5
"""Past steps after which the fall that a direction promises is believed without a proof."""
NEARLY_FLAT = 1e-3
"""Share of a small gradient below which no step is worth trying, whatever the loss."""
IDLE, LEVEL = 20, 1e-13
"""Steps in which the loss falls by no more than this share of it: they wander where it is flat."""
STRICTER = 0.1
"""Factor on the estimated gap after a proof has shown that it was too hopeful."""


Monitor = Callable[[CostModel], dict[str, Any]]


class Descent:
    """One minimization: the best point so far, what it is known to be worth, and the record."""

    def __init__(
        self,
        model: ConvexModel,
        features: Any,
        objective: Objective,
        max_iter: int,
        tol: float,
        monitor: Monitor | None,
        keeper: Keeper | None = None,
    ) -> None:
        self.model, self.features, self.objective = model, features, objective
        self.max_iter, self.tol, self.monitor = max_iter, tol, monitor
        self.history, self.hope = History(), 1.0
        self.bound, self.rounded_bound = 0.0, 0.0  # of the loss asked for, and with its kink off
        self.curved, self.before, self.proves = True, 0, True
        self.metric: Metric | None = None
        self._begun, self._made = objective.evaluations, objective.projections
        self.asked = objective.loss
        self.eager = len(objective) > CHEAP * len(objective.in_memory(None)[1])
        if self.eager:  # proofs take several passes
            self.hope = STRICTER
        self.keeper = keeper
        self._at: Standing | None = None
        """Where a run that was stopped goes on from."""
        if keeper is None or keeper.found is None:
            here = self._first_point()
            self._start, self._first = here, here.value
        else:
            self._resume(keeper)

    def _resume(self, keeper: Keeper) -> None:
        """Be as the run was when its checkpoint was written."""
        self._at, facts = keeper.standing()
        self._start, self._first = self._at.here, facts["first"]
        self.history = History(list(facts["rows"]))
        self.hope, self.bound, self.rounded_bound = facts["hope"], facts["bound"], facts["rounded"]
        self.before = facts["projections"]
        self._begun -= facts["evaluations"]
        if self.asked.power == 1:
            self.objective.loss = replace(self.asked, power=ROUNDED, delta=facts["delta"])
        if self._at.drawn is not None:
            self._at.metric = self._metric(self._at.drawn)

    def _keep(self, at: Standing) -> None:
        if self.keeper is None or not self.keeper.due():
            return
        facts = {
            "first": self._first,
            "hope": self.hope,
            "bound": self.bound,
            "rounded": self.rounded_bound,
            "projections": self.projections,
            "evaluations": self.evaluations,
            "delta": self.objective.loss.delta,
        }
        self.keeper.keep(at, facts, self.history.rows)

    def _first_point(self) -> Point:
        if self.asked.power == 1:  # round its kink off, ever less
            size = self.objective.look(self.model, self.features).summary(0.0).mean_distance
            self._round(max(size, np.finfo(float).tiny))
        return self._measure(self.model.point)

    @property
    def evaluations(self) -> int:
        return self.objective.evaluations - self._begun

    @property
    def projections(self) -> int:
        """Of this run and of the one on a part of the samples before it."""
        return self.before + self.objective.projections - self._made

    def minimize(self, show: Callable[[dict[str, Any]], None]) -> None:
        """Step until the minimum is reached or nothing is left to try; the model ends there."""
        first = FIRST_METRIC if self.asked.is_convex else 0  # these begin near a minimum
        if self.eager:
            first = 0
        at = self._at or Standing(self._start, first if self.curved else np.inf, metric=self.metric)
        while True:
            self._keep(at)
            here = at.here
            self._record(here)
            direction = two_loops(here.gradient, at.pairs, at.metric)
            show(self.history.rows[-1] | self._expected(at, direction))
            self.history.reason = self._reason(
                here, direction, known=MEMORY if at.metric else len(at.pairs)
            )
            if self.history.reason is StopReason.CONVERGED and not self._is_sharp(here):
                self.history.reason = None
                direction = self._sharpen(at)
                here = at.here
            if self.history.reason is not None:
                break
            if self.evaluations >= at.due and at.price is None:
                self.model.move_to(here.x)
                at.price = price_of_metric(self.model, self.features, self.objective)
                at.due = first + at.price if first else 0.0
            if self.evaluations >= at.due and at.price is not None:
                self._sample_metric(at)
                direction = two_loops(here.gradient, at.pairs, at.metric)
            found = self._search(here, direction)
            if found is None and (at.pairs or at.metric):  # curvature that misleads: step as POCS
                at.pairs.clear()
                at.metric, at.drawn = None, None
                found = self._search(here, -here.gradient)
            if found is None:
                spent = self.evaluations > self.max_iter
                self.history.reason = StopReason.CAP if spent else StopReason.NO_PROGRESS
                break
            step, turn = found.x - here.x, found.gradient - here.gradient
            if step @ turn > 1e-12 * (turn @ turn):
                at.pairs.append((step, turn))
            at.here = found
        self.here = at.here
        self.model.move_to(at.here.x)

    def _expected(self, at: Standing, direction: np.ndarray) -> dict[str, float]:
        """For a progress bar: the gap that is left by what is known of the curvature, and at which
        one a proof is tried."""
        known = at.metric is not None or len(at.pairs) >= TRUSTED
        if not known or not at.here.value > 0:
            return {}
        expected = _promised(at.here, direction) / at.here.value
        return {"expected_gap": expected, "proof_at": self.hope * self.tol}

    def _sharpen(self, at: Standing) -> np.ndarray:
        """Round the kink off less, and begin again from here: the first direction."""
        self._round(LESS_ROUND * self.objective.loss.delta)
        at.here, at.metric, at.drawn = self._measure(at.here.x), None, None
        at.due = self.evaluations + (at.price or 0.0)
        at.pairs.clear()
        return -at.here.gradient

    def _sample_metric(self, at: Standing) -> None:
        assert at.price is not None, "its price comes first"
        here = at.here
        steepness = float(np.linalg.norm(here.gradient)) / np.sqrt(2.0 * here.value)
        drawn = Drawn(here.x, float(steepness), int(at.due))
        at.metric = self._metric(drawn)
        at.due = self.evaluations + (SOON if self.eager else NEXT_METRIC + 2.0 * at.price)
        if at.metric is not None:
            at.pairs.clear()
        at.drawn = None if at.metric is None else drawn

    def _metric(self, drawn: Drawn) -> Metric | None:
        self.model.move_to(drawn.x)
        options: dict[str, Any] = {"steepness": drawn.steepness, "turn": drawn.turn}
        return sampled_metric(self.model, self.features, self.objective, **options)

    def finish(self) -> None:
        """Measure the plain distances of the final model, for the certificate."""
        loss = self.asked
        value, reason = self._value_asked(self.here), self.history.reason
        assert reason is not None
        converged = reason in (StopReason.CONVERGED, StopReason.INTERPOLATED)
        if not converged and self.model.ridge > 0:
            self._prove(self.here)
            converged = value - self.bound <= self.tol * value
            if converged:
                reason = self.history.reason = StopReason.CONVERGED
        self.objective.loss = loss
        facts = Convergence(
            value=value,
            lower_bound=min(self.bound, value),
            converged=converged,
            convex=loss.is_convex,
            evaluations=self.evaluations,
            projections=self.projections,
        )
        plain = self.objective.describe(self.model, self.features)
        self.history.certificate = Certificate.of(plain, self.tol, reason, facts)

    def _round(self, delta: float) -> None:
        self.objective.loss = replace(self.asked, power=ROUNDED, delta=delta)
        self.hope, self.rounded_bound = 1.0, 0.0

    def _is_sharp(self, here: Point) -> bool:
        """Whether the loss as asked for, kinks and all, is as near its minimum as it should be."""
        if self.asked.power != 1:
            return True
        if self.objective.loss.delta < SHARPEST * here.value:
            return True
        value = self._value_asked(here)
        return value - self.bound <= self.tol * value

    def _value_asked(self, here: Point) -> float:
        """The loss as asked for; `here.value` unless its kinks were rounded."""
        if self.asked.power != 1:
            return here.value
        self.model.move_to(here.x)
        rounded, self.objective.loss = self.objective.loss, self.asked
        value = self.objective.look(self.model, self.features).h + self.model.penalty()
        self.objective.loss = rounded
        return value

    def _measure(self, x: np.ndarray) -> Point:
        self.model.move_to(x)
        done = self.objective(self.model, self.features)
        gradient, slope = self.model.gradient()
        value = done.h + self.model.penalty()
        return Point(x, value, gradient, slope, {"loss": value} | done.row())

    def _record(self, here: Point) -> None:
        row = {"iteration": len(self.history)} | here.row
        row |= {"evaluations": self.evaluations, "projections": self.projections}
        row["gradient"] = float(np.linalg.norm(here.gradient))
        row |= self.objective.pace()
        if self.bound > 0:
            row["gap"] = (here.value - self.bound) / here.value
        if self.monitor is not None:
            self.model.move_to(here.x)
            row |= self.monitor(self.model)
        self.history.append(row)

    def _reason(self, here: Point, direction: np.ndarray, known: int) -> StopReason | None:
        inside = here.row["max_relative"] <= self.tol
        if inside and not (self.objective.loss.noise or self.model.ridge):
            return StopReason.INTERPOLATED
        if self._is_minimum(here, direction, known):
            return StopReason.CONVERGED
        if self._is_idle():
            return StopReason.NO_PROGRESS
        return StopReason.CAP if self.evaluations > self.max_iter else None

    def _is_idle(self) -> bool:
        """Whether the last steps changed nothing. A kink that is rounded less changes the loss, and
        without a ridge it is the gradient that has to become small."""
        rows = self.history.rows
        if len(rows) <= IDLE or self.asked.power == 1:
            return False
        shares = {"loss": 1.0 - LEVEL} | ({} if self.model.ridge > 0 else {"gradient": 1.0})
        return all(
            min(row[name] for row in rows[-IDLE:]) >= share * min(row[name] for row in rows[:-IDLE])
            for name, share in shares.items()
        )

    def _is_minimum(self, here: Point, direction: np.ndarray, known: int) -> bool:
        """Whether the distance to the minimum is proved to be small, or without a ridge, the
        gradient is.

        A proof costs an evaluation or two; it is tried when the fall that `direction` promises is
        small enough. `known` is the number of past steps that `direction` is made from.
        """
        if here.value <= NOTHING * max(self._first, self.asked.noise**2):
            return True
        length = float(np.linalg.norm(here.gradient))
        if not (self.model.ridge > 0 and self.objective.loss.is_convex):
            small = self.tol * np.sqrt(2.0 * here.value)
            if self.objective.loss.is_convex or length <= NEARLY_FLAT * small:
                return length <= small
            # Samples that are given up have no gradient: far from a minimum it can be small too.
            flat = _promised(here, direction) <= self.tol * here.value
            return length <= small and known >= TRUSTED and flat
        # A kink that is still rounded by delta need not be approached more closely than that.
        rounded = self.objective.loss.power == ROUNDED
        allowed = max(self.tol * here.value, ENOUGH * self.objective.loss.delta * rounded)
        if _promised(here, direction) > self.hope * allowed:
            return False
        if not self.proves:
            return known >= TRUSTED
        self._prove(here)
        if here.value - self.rounded_bound <= allowed:
            return True
        self.hope *= STRICTER
        return False

    def _prove(self, here: Point) -> None:
        self.model.move_to(here.x)
        bound, sharp = lower_bound(
            self.model, self.features, self.objective, here.value, here.gradient, here.slope
        )
        self.rounded_bound = max(self.rounded_bound, bound)
        self.bound = max(self.bound, sharp)

    def _search(self, here: Point, direction: np.ndarray) -> Point | None:
        """A point along `direction` that lowers the loss and has lost most of the slope; the best
        one that lowers it where there is none such, None where nothing does."""
        slope = float(here.gradient @ direction)
        if not slope < 0:
            return None
        low, high, t = (0.0, slope), None, 1.0
        best: Point | None = None
        allowed = ROUNDING * abs(here.value)
        for _ in range(TRIALS):
            if self.evaluations > self.max_iter:
                break
            there = self._measure(here.x + t * direction)
            after = float(there.gradient @ direction)
            falls = there.value <= here.value + FALL * t * slope
            # Close to the minimum the loss changes by less than its accuracy; its slope still
            # points the way (Hager and Zhang 2005).
            falls |= there.value <= here.value + allowed and after <= (2 * FALL - 1) * slope
            if falls and (best is None or there.value <= best.value + allowed):
                best = there
            if falls and after >= FLAT * slope:
                return there
            if falls and after < 0:
                low = (t, after)
            else:
                high = (t, after)
            t = next_trial(low, high, t)
        return best


def _promised(here: Point, direction: np.ndarray) -> float:
    """By how much the loss should fall along `direction`, if its curvature is as it seems."""
    return -0.5 * float(here.gradient @ direction)
