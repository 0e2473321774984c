"""How a model does on samples whose decisions are known.

Letters: B samples, n variables.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from ...errors import InputError
from ...metrics.sameness import SAME, same_decision
from ...problems.solution import SolveStatus
from ..plans import Plan
from ..store import FittedModel
from .deciding import decide

BLOCK = 65_536
"""Samples judged at a time, so that a million take no more memory than these."""
NEAR = 0.01
"""Share of a decision's amounts by which another may differ and be near it."""


class Judgment(NamedTuple):
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
    near: np.ndarray
    """Whether all differences together are at most 1% of what was decided."""
    spent: np.ndarray
    """The sum of |c_j x_j| over the entries of the observed decision: the size of its cost, which
    no canceling of costs and rewards can make small."""

    def of(self, rows: np.ndarray) -> Judgment:
        """That of some of the samples."""
        return Judgment(*(column[rows] for column in self))

    def verdict(self) -> Verdict:
        """What they add up to."""
        solved = self.solved
        return Verdict(
            samples=len(self.same),
            repeated=int(self.same.sum()),
            near=int(self.near.sum()),
            explained=int(self.as_good.sum()),
            solved=int(solved.sum()),
            excess=float(self.excess[solved].sum()),
            spent=float(self.spent[solved].sum()),
            difference=float(self.difference[solved].sum()),
        )

    def plain(self) -> dict[str, Any]:
        """The figures that are kept and printed."""
        return self.verdict().plain()


class Verdict(NamedTuple):
    """Judgments of samples added up; costs and differences are those of samples with a decision of
    minimum cost."""

    samples: int = 0
    repeated: int = 0
    near: int = 0
    explained: int = 0
    solved: int = 0
    excess: float = 0.0
    spent: float = 0.0
    difference: float = 0.0

    def plus(self, other: Verdict) -> Verdict:
        """That of both groups of samples."""
        both: list[Any] = [a + b for a, b in zip(self, other, strict=True)]
        return Verdict(*both)

    def plain(self) -> dict[str, Any]:
        """The figures that are kept and printed."""
        size, solved = self.samples, self.solved
        low, high = share_interval(self.repeated, size)
        return {
            "samples": size,
            "repeated": self.repeated,
            "repeated_share": self.repeated / size if size else None,
            "interval": [low, high],
            "near": self.near,
            "near_share": self.near / size if size else None,
            "near_within": NEAR,
            "extra_cost": max(self.excess, 0.0) / self.spent if self.spent > 0 else None,
            "explained": self.explained,
            "decision_loss": self.difference / solved if solved else None,
            "without_decision": size - solved,
        }


def relative(excess: np.ndarray, spent: np.ndarray) -> float | None:
    """All that is spent too much, as a share of all that is spent."""
    total = float(spent.sum())
    return max(float(excess.sum()), 0.0) / total if total > 0 else None


def judge(
    model: FittedModel, plan: Plan, Z: np.ndarray, decisions: np.ndarray, *, quiet: bool = True
) -> Judgment:
    """Judge a model on encoded contexts (B, d) by the decisions taken there (B, n); `plan` is that
    of these samples."""
    parts = [
        _judge(model, plan[part], Z[part], decisions[part], quiet)
        for part in (slice(k, k + BLOCK) for k in range(0, max(len(Z), 1), BLOCK))
    ]
    return Judgment(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _judge(
    model: FittedModel, plan: Plan, Z: np.ndarray, decisions: np.ndarray, quiet: bool
) -> Judgment:
    costs = model.costs(Z)
    answer = decide(plan.problem, costs, quiet=quiet)
    solved = answer.status == SolveStatus.OPTIMAL
    own = np.where(solved[:, None], answer.decisions, decisions)
    return compared(costs, own, decisions, solved)


def compared(
    costs: np.ndarray, own: np.ndarray, decisions: np.ndarray, solved: np.ndarray
) -> Judgment:
    """Decisions of a model's `own` beside those that were taken, (B, n) each."""
    gap = own - decisions
    excess = -(costs * gap).sum(axis=1)
    spent = np.abs(costs * decisions).sum(axis=1)
    same = same_decision(own, decisions)
    near = np.abs(gap).sum(axis=1) <= NEAR * np.abs(decisions).sum(axis=1)
    return Judgment(
        same=same & solved,
        as_good=(excess <= SAME * (1.0 + spent)) & solved,
        excess=excess,
        difference=(gap**2).sum(axis=1),
        solved=solved,
        near=(near | same) & solved,
        spent=spent,
    )


def split_rows(size: int, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to learn from and rows held out, both in order; the same for the same arguments."""
    if not 0 <= share < 1:
        raise InputError(f"--holdout must be at least 0 and below 1; got {share:g}.")
    held = round(share * size)
    if held >= size:
        raise InputError(f"Holding out {share:g} of {size} samples leaves none to learn from.")
    order = np.random.default_rng(seed).permutation(size)
    return np.sort(order[held:]), np.sort(order[:held])


def fingerprint(tables: Iterable[np.ndarray]) -> str:
    """A checksum of tables: the same for the same numbers in the same order of rows."""
    digest = hashlib.sha256()
    for table in tables:
        digest.update(np.ascontiguousarray(table).data)
    return digest.hexdigest()


def share_interval(hits: int, size: int) -> tuple[float, float]:
    """Wilson's 95% interval of a share."""
    if size == 0:
        return 0.0, 1.0
    from scipy.stats import binomtest  # takes a tenth of a second to load, and few commands ask

    found = binomtest(hits, size).proportion_ci(method="wilson")
    return float(found.low), float(found.high)
