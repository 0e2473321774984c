"""How a model does on samples whose decisions are known.

Letters: B samples, n variables.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..explain.likeness import SAME, alike
from ..plans import Plan
from ..store import FittedModel
from .holdout import share_interval

BLOCK = 65_536
"""Samples judged at a time, so that a million take no more memory than these."""


class Judgement(NamedTuple):
    """What a model's own decisions are like beside those that were taken; (B,) each."""

    same: np.ndarray
    """Whether the decision was repeated, entry by entry."""
    as_good: np.ndarray
    """Whether the observed decision costs no more than the model's own, under the model's costs."""
    excess: np.ndarray
    """What the observed decision costs above the model's own, under the model's costs."""
    difference: np.ndarray
    """|x - x*|^2"""
    solved: np.ndarray
    """Whether there is a decision of minimum cost at all."""

    def of(self, rows: np.ndarray) -> Judgement:
        """That of some of the samples."""
        return Judgement(*(column[rows] for column in self))

    def plain(self) -> dict[str, Any]:
        """The figures that are kept and printed."""
        size, hits = len(self.same), int(self.same.sum())
        low, high = share_interval(hits, size)
        solved = self.solved
        return {
            "samples": size,
            "repeated": hits,
            "repeated_share": hits / size if size else None,
            "interval": [low, high],
            "explained": int(self.as_good.sum()),
            "decision_loss": float(self.difference[solved].mean()) if solved.any() else None,
            "without_decision": int((~solved).sum()),
        }


def judge(model: FittedModel, plan: Plan, Z: np.ndarray, decisions: np.ndarray) -> Judgement:
    """Judge a model on encoded contexts (B, d) by the decisions taken there (B, n); `plan` is that
    of these samples."""
    parts = [
        _judge(model, plan[part], Z[part], decisions[part])
        for part in (slice(k, k + BLOCK) for k in range(0, max(len(Z), 1), BLOCK))
    ]
    return Judgement(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _judge(model: FittedModel, plan: Plan, Z: np.ndarray, decisions: np.ndarray) -> Judgement:
    costs = model.costs(Z)
    answer = plan.problem.solve(costs)
    solved = np.asarray(answer.optimal)
    own = np.where(solved[:, None], np.asarray(answer.x), decisions)
    gap = own - decisions
    excess = -(costs * gap).sum(axis=1)
    scale = 1.0 + np.abs(costs * decisions).sum(axis=1)
    return Judgement(
        same=alike(own, decisions).all(axis=1) & solved,
        as_good=(excess <= SAME * scale) & solved,
        excess=excess,
        difference=(gap**2).sum(axis=1),
        solved=solved,
    )
