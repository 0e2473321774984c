"""The frame of a claim: a sentence, the numbers set side by side, and the verdict they give.

A claim is open while runs are missing that it speaks of: seeds, methods, or whole parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from .numbers import mean
from .study import Entry, Study, differences

HOLDS, FAILS, OPEN = "holds", "does not hold", "open"


@dataclass(frozen=True)
class Against:
    """Ours set beside one other, over the seeds that both have."""

    other: str
    theirs: float
    ours: float
    gaps: np.ndarray  # (seeds,) ours less theirs
    passes: bool


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
    remarks: Sequence[str] = field(default=())

    @property
    def verdict(self) -> str:
        if self.missing or not self.against:
            return OPEN
        return HOLDS if all(each.passes for each in self.against) else FAILS


def meet(
    study: Study,
    part: str,
    ours: Entry | None,
    names: Sequence[str],
    where: tuple[str, str],
    share: float,
) -> tuple[list[Against], list[str]]:
    """Ours beside each named rival, and in words who is missing."""
    if ours is None:
        return [], ["no finished run of ours"]
    found, missing = [], []
    for name in names:
        rivals = [e for e in study.of(part) if e.runs[0].label == name]
        missing += [] if rivals else [f"no eligible run of {name}"]
        found += [set_beside(ours, rival, where, share) for rival in rivals]
    return found, missing


def set_beside(
    ours: Entry,
    other: Entry,
    where: tuple[str, str],
    share: float,
    *,
    both_sides: bool = False,
    scale: float = 1.0,
) -> Against:
    """Passes if ours is below the other's plus `share` of it.

    A difference that the seeds cannot tell from none is no excuse: few seeds tell little.
    """
    a, b = scale * mean(ours.final(*where)), scale * mean(other.final(*where))
    gaps = scale * differences(ours, other, *where)
    over = abs(a - b) if both_sides else a - b
    return Against(other.label, b, a, gaps, bool(over <= share * abs(b)))


def renamed(found: Against, name: str) -> Against:
    """The same under another name."""
    return Against(name, found.theirs, found.ours, found.gaps, found.passes)


def too_few(study: Study, entry: Entry | None, wanted: int) -> list[str]:
    """In words, what keeps the seeds from supporting a claim; nothing if nothing does."""
    n = len(entry.runs) if entry else 0
    told = [f"{n} of {wanted} seeds"] if 0 < n < wanted else []
    return [*told, "a quick sweep"] if study.quick else told
