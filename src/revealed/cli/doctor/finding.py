"""A finding, and what the checks look at to make one.

Letters: B samples, n variables, d features.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np

from ..plans import Plan

SHOWN = 5
"""Rows that a sentence names before it counts the rest."""


class Severity(StrEnum):
    """What a finding means for a fit."""

    ERROR = "error"
    """`revealed fit` will refuse, or what it learns will be wrong."""
    WARNING = "warning"
    """It will learn, but less or worse than it could."""
    NOTE = "note"
    """Good to know."""


@dataclass(frozen=True)
class Finding:
    """One thing that was seen, where, and what to do about it."""

    severity: Severity
    code: str
    """Short and stable, for scripts: "infeasible", "conflict"."""
    what: str
    """One or two sentences."""
    advice: str
    samples: tuple[str, ...] = ()
    """Names of the samples concerned, the clearest first."""
    details: dict[str, Any] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "severity": str(self.severity),
            "code": self.code,
            "what": self.what,
            "advice": self.advice,
            "samples": list(self.samples),
            **({"details": self.details} if self.details else {}),
        }


@dataclass(frozen=True, eq=False)
class Case:
    """What there is to look at; row b of every array is sample b."""

    plan: Plan
    """Of these samples: shared, or with limits of its own for each."""
    features: np.ndarray
    """(B, d) numbers as they came, categories as 0 and 1."""
    feature_names: tuple[str, ...]
    decisions: np.ndarray
    """(B, n)"""
    samples: Sequence[str]
    """(B,) what people call each sample."""
    tol: float = 1e-5
    """How far a decision may be from its constraints and bounds to count as at them."""

    words: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Of every category among the features its words; each but the first has a feature of its
    own."""
    columns: dict[str, str] = field(default_factory=dict)
    """Of every feature that is not a column of the table itself the column that it is read from: of
    `Weekday=Mon` it is `Weekday`."""
    dates: frozenset[str] = frozenset()
    """Columns of dates whose parts are features."""
    limits: np.ndarray | None = None
    """(B, k) numbers of the plan that every sample has its own of; None where there are none."""

    limited: frozenset[tuple[str, int]] = frozenset()
    """Vector of the problem and entry of each of them."""

    @property
    def given(self) -> np.ndarray:
        """(B, d + k) all that was known before a decision."""
        return self.features if self.limits is None else np.hstack([self.features, self.limits])

    @property
    def choice(self) -> np.ndarray:
        """(n,) variables whose bounds leave a choice, on some day at least."""
        problem = self.plan.rows
        return np.asarray((np.atleast_2d(problem.ub) > problem.lb).any(axis=0))

    def word_counts(self) -> dict[str, dict[str, int]]:
        """Of every category how many rows have which word."""
        shown = {}
        for name, words in self.words.items():
            place = {feature: k for k, feature in enumerate(self.feature_names)}
            counts = {w: int(self.features[:, place[f"{name}={w}"]].sum()) for w in words[1:]}
            shown[name] = {words[0]: len(self.features) - sum(counts.values()), **counts}
        return shown

    def column(self, feature: str) -> str:
        """The column of the table that a feature is read from."""
        return self.columns.get(feature, feature)

    def ignoring(self, features: Sequence[str]) -> str:
        """The options that leave the columns of features out; empty where these are parts of dates,
        which no option leaves out alone."""
        columns = [
            name for name in dict.fromkeys(map(self.column, features)) if name not in self.dates
        ]
        return " ".join(f"--ignore {shlex.quote(name)}" for name in columns)

    def named(self, rows: np.ndarray) -> tuple[str, ...]:
        """What the samples in these rows are called."""
        return tuple(self.samples[int(b)] for b in rows)


def some(names: Sequence[str]) -> str:
    """`a, b, c and 12 more`."""
    shown = ", ".join(names[:SHOWN])
    return shown if len(names) <= SHOWN else f"{shown} and {len(names) - SHOWN:,} more"
