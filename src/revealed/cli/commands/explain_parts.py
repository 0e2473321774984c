"""`revealed explain` on many Parquet files: the same findings, read once, part by part.

Sums are kept of all samples, and samples themselves of a few: the misses that are farthest off,
those whose sensitivity is computed, and as many as intervals may come from.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from ..._common.words import count
from ...errors import InputError
from ..explain import Miss, find_misses
from ..plans import Plan
from ..store import FittedModel
from .deciding import decide
from .judging import Verdict, judge
from .parts import Parts, Some, parts_for
from .reading import reading_for
from .telling import tell, waiting

MOST_MISSES = 1_000
"""Misses that are listed; all are counted."""
MOST_NUMBERS = 4_000_000
"""Numbers of contexts and decisions that are kept for intervals, at most."""


class Findings:
    """What was seen of a model on samples that come part by part."""

    def __init__(
        self, model: FittedModel, parts: Parts, share: float, args: argparse.Namespace, looked: int
    ) -> None:
        self.parts, self.skipped = parts, 0
        self.all, self.held = Verdict(), Verdict()
        self.misses, self.missed = list[Miss](), 0
        self.looked, self.learned, self.asked = list[Some](), list[Some](), list[Some]()
        """Samples whose sensitivity is computed; that intervals come from, none where they are too
        many; that was asked about."""
        self.explained = False
        """Whether its costs explain the sample that was asked about."""
        self.learn = 0
        """How many samples the model learned from."""
        self._model, self._share, self._args = model, share, args
        self._most, self._names = looked, dict[int, str]()
        self._room = MOST_NUMBERS

    def gather(self) -> None:
        """Go through all samples."""
        total = len(self.parts.data)
        with waiting("Explaining", total, quiet=self._args.json) as step:
            for some in self.parts.runs(self._share):
                if len(some.Z):
                    self._add(some)
                self.skipped += some.left_out
                step(self.all.samples + self.skipped)
        if not self.all.samples:
            raise InputError("There is no sample to explain.")

    def _add(self, some: Some) -> None:
        costs = self._model.costs(some.Z)
        judged = judge(self._model, some.plan, some.Z, some.X)
        self._count_misses(some, costs, np.flatnonzero(judged.solved & ~judged.as_good))
        verdict = judged.verdict()
        self.all = self.all.plus(verdict)
        if some.is_held:
            self.held = self.held.plus(verdict)
        else:
            self._keep_learned(some)
        room = self._most - sum(len(one.Z) for one in self.looked)
        if room > 0:
            self.looked.append(some.take(np.flatnonzero(judged.as_good)[:room]))
        self._find_asked(some, judged.as_good)

    def _count_misses(self, some: Some, costs: np.ndarray, rows: np.ndarray) -> None:
        """Misses among these rows; the farthest of all are kept."""
        there = some.take(rows)
        own = decide(there.plan.problem, costs[rows], quiet=True).decisions
        found = find_misses(there.plan, costs[rows], there.X, own, self._model.given)
        named = [(miss, there.name(miss.sample)) for miss in found]
        first = self.missed
        self.missed += len(found)
        for k, (miss, name) in enumerate(named):
            self._names[first + k] = name
            self.misses.append(miss._replace(sample=first + k))
        self.misses = sorted(self.misses, key=lambda miss: -miss.distance)[:MOST_MISSES]
        self._names = {miss.sample: self._names[miss.sample] for miss in self.misses}

    def _keep_learned(self, some: Some) -> None:
        self.learn += len(some.Z)
        self._room -= some.Z.size + some.X.size
        if self._room >= 0:
            self.learned.append(some)
        else:
            self.learned.clear()

    def _find_asked(self, some: Some, as_good: np.ndarray) -> None:
        name = self._args.sample
        if name is None or self.asked:
            return
        found = next((b for b in range(len(some.Z)) if some.name(b) == name), None)
        if found is not None:
            self.asked.append(some.take(np.array([found])))
            self.explained = bool(as_good[found])

    # --- what is reported, as for a table in memory -----------------------------------------------

    def sample(self, b: int) -> str:
        """The name of the sample of a miss."""
        return self._names[b]

    def tell_assumed(self) -> None:
        """Say which rows were left out."""
        if self.skipped:
            tell("Skipped", f"{count(self.skipped, 'row')} that cannot be used.")
        for text in self._unreadable:
            tell("Skipped", text)

    def plain_assumed(self) -> dict[str, Any]:
        """For JSON."""
        return {"assumed": [], "skipped": self.skipped, "unreadable": self._unreadable}

    @property
    def _unreadable(self) -> list[str]:
        return [*self.parts.data.skipped, *self.parts.unreadable]


def findings_of(args: argparse.Namespace, model: FittedModel, looked: int) -> Findings:
    """What is seen of a model on the files that the options name."""
    if model.plan.is_whole:
        raise InputError(
            "Parts are explained for decisions with fractions; give one file at a time."
        )
    how = reading_for(model.training, args)
    parts = parts_for(model, args.contexts, args.decisions, how, args.id)
    share = float(model.training.get("held_out", 0.0)) if is_same(model, parts) else 0.0
    findings = Findings(model, parts, share, args, looked)
    findings.gather()
    return findings


def is_same(model: FittedModel, parts: Parts) -> bool:
    """Whether a model was fitted on these parts."""
    return model.training.get("data") == parts.fingerprint


def joined(model: FittedModel, runs: list[Some]) -> tuple[Plan, np.ndarray, np.ndarray]:
    """The plan of several runs of samples, their contexts and decisions."""
    Z, X = (np.concatenate([getattr(some, name) for some in runs]) for name in ("Z", "X"))
    limits = [some.limits for some in runs if some.limits is not None]
    return model.plan_of(np.concatenate(limits) if limits else None), Z, X
