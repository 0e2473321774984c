"""The frame of a claim: a sentence, the numbers set side by side, and the verdict they give.

A claim is open while runs are missing that it speaks of: seeds, methods, or whole parts. It holds,
or does not, where the paired differences allow a verdict: their 95% interval (Student's t) lies on
one side of what the claim asks. Else it cannot be told. A claim about several rivals does not hold
once it fails against one of them, even if others are still missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy import stats

from .numbers import mean, standard_error
from .study import Entry, Study, differences

HOLDS, FAILS, UNSURE, OPEN = "holds", "does not hold", "cannot be told", "open"
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Against:
    """Ours set beside one other, over the seeds that both have."""

    other: str
    theirs: float
    ours: float
    gaps: np.ndarray  # (seeds,) ours less theirs
    passes: bool | None
    """Whether the claim holds against this one; None where the seeds cannot tell."""
    both_sides: bool = False
    """Whether the claim asks for little difference rather than for less."""

    @property
    def behind(self) -> float:
        """How far ours is from what is asked, as a share of theirs."""
        gap = mean(self.gaps)
        return (abs(gap) if self.both_sides else gap) / max(abs(self.theirs), 1e-12)


@dataclass(frozen=True)
class Claim:
    """A sentence, the verdict on it, and what the verdict rests on."""

    sentence: str
    rule: str
    measure: str
    """What the numbers are, with their unit."""
    ours: str = ""
    against: Sequence[Against] = ()
    missing: Sequence[str] = ()
    """Why it is open, in words."""
    absent: Sequence[str] = ()
    """Whom it speaks of and of whom there are no runs: without them it cannot hold."""
    remarks: Sequence[str] = field(default=())
    whose: str = "Claims"
    """The group of claims that it belongs to on the board of verdicts."""
    topic: str = ""
    """The claim in a few words, the same on every problem; nothing for the sentence itself."""
    problem: str = ""
    """On which of them, as the heading of a column."""
    protocol: str = ""
    """What was run, in a sentence."""

    @property
    def verdict(self) -> str:
        if self.missing or not self.against:
            return OPEN
        found = [each.passes for each in self.against]
        if False in found:
            return FAILS
        if self.absent:
            return OPEN
        return UNSURE if None in found else HOLDS

    @property
    def deciding(self) -> Against | None:
        """The comparison that the verdict hangs on: of those as bad as it, the farthest behind."""
        marks = {FAILS: False, UNSURE: None, HOLDS: True}
        if self.verdict not in marks:
            return None
        alike = [each for each in self.against if each.passes is marks[self.verdict]]
        return max(alike, key=lambda each: each.behind)


def meet(
    study: Study,
    part: str,
    ours: Entry | None,
    names: Sequence[str],
    where: tuple[str, str],
    share: float,
) -> tuple[list[Against], list[str], list[str]]:
    """Ours beside each named rival; in words which seeds are missing, and which rivals."""
    if ours is None:
        return [], ["no finished run of ours"], []
    found, missing, absent = [], [], []
    for name in names:
        rivals = [e for e in study.of(part) if e.runs[0].label == name]
        absent += [] if rivals else [f"no eligible run of {name}"]
        missing += few_of(rivals, len(ours.runs))
        found += [set_beside(ours, rival, where, share) for rival in rivals]
    return found, missing, absent


def few_of(rivals: Sequence[Entry], wanted: int) -> list[str]:
    """In words, which rivals lack seeds that ours has."""
    thin = [each for each in rivals if len(each.runs) < wanted]
    return [f"{len(each.runs)} of {wanted} seeds of {each.label}" for each in thin]


def set_beside(
    ours: Entry,
    other: Entry,
    where: tuple[str, str],
    share: float,
    *,
    both_sides: bool = False,
    scale: float = 1.0,
) -> Against:
    """Passes if ours is surely below the other's plus `share` of it, or with `both_sides` surely
    within that share of it; fails if it surely is not."""
    a, b = scale * mean(ours.final(*where)), scale * mean(other.final(*where))
    gaps = scale * differences(ours, other, *where)
    low, high = interval(gaps)
    limit = share * abs(b)
    if both_sides:
        passes = decided(max(abs(low), abs(high)) <= limit, low > limit or high < -limit)
    else:
        passes = decided(high <= limit, low > limit)
    return Against(other.label, b, a, gaps, passes, both_sides)


def interval(values: np.ndarray) -> tuple[float, float]:
    """The 95% interval of the mean of values by seed; the mean itself for a single one."""
    if len(values) < 2:
        return mean(values), mean(values)
    reach = float(stats.t.ppf(0.5 + CONFIDENCE / 2, len(values) - 1)) * standard_error(values)
    return mean(values) - reach, mean(values) + reach


def decided(holds: bool, fails: bool) -> bool | None:
    """True, False, or None where neither is sure."""
    return True if holds else False if fails else None


def renamed(found: Against, name: str) -> Against:
    """The same under another name."""
    return replace(found, other=name)


def too_few(study: Study, entry: Entry | None, wanted: int) -> list[str]:
    """In words, what keeps the seeds from supporting a claim; nothing if nothing does."""
    n = len(entry.runs) if entry else 0
    told = [f"{n} of {wanted} seeds"] if 0 < n < wanted else []
    return [*told, "a quick sweep"] if study.quick else told
