"""What is claimed of learning from pictures: the least losses, and how many paths are optimal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from revealed._common.words import count

from ...bench.vision.tables import PUBLISHED_ON, REGRET, SHARE_OPTIMAL
from ..numbers import listed, mean
from ..study import Entry, Study
from ..verdicts import Against, Claim, decided, interval, set_beside, too_few
from .parts import shown, standing_for_ours, tasks

SEEDS, SAMPLES = 5, 10_000
OPTIMAL, MOST_REGRET = 100 * SHARE_OPTIMAL, 100 * REGRET
RIVALS = ("ST", "MOM", "BB", "SPO+", "PFYL")
SEE_TRUE_COSTS = ("SPO+",)


def vision_claims(study: Study) -> list[Claim]:
    """Two claims for each task, and two more for the main one."""
    claims = []
    for part in tasks(study):
        entries = shown(study, part)
        ours = standing_for_ours(entries)
        thin = [*too_few(study, ours, SEEDS), *_too_small(ours)]
        claims += [_decisions(part, entries, ours, thin), _estimates(part, entries, ours, thin)]
        if part == PUBLISHED_ON:
            claims += [_optimal(ours, thin), _regret(ours, thin)]
    return claims


def _decisions(part: str, entries: list[Entry], ours: Entry | None, thin: list[str]) -> Claim:
    against, missing = _beside(entries, ours, RIVALS, "decision_loss")
    return Claim(
        f"On {part} ours has the lowest test decision loss of all methods.",
        "Paired differences are surely at most 0 for all, those that see true costs too. "
        "Which of ours stands for ours is decided on validation data.",
        "mean test decision loss",
        ours.label if ours else "",
        against,
        [*missing, *thin],
    )


def _estimates(part: str, entries: list[Entry], ours: Entry | None, thin: list[str]) -> Claim:
    names = [name for name in RIVALS if name not in SEE_TRUE_COSTS]
    blind = [e for e in entries if not e.needs_true_costs]
    against, missing = _beside(blind, ours, names, "estimate_loss")
    return Claim(
        f"On {part} ours has the lowest test estimate loss of the methods that see no true cost.",
        "Paired differences are surely at most 0 for each of theirs.",
        "mean test estimate loss",
        ours.label if ours else "",
        against,
        [*missing, *thin],
    )


def _optimal(ours: Entry | None, thin: list[str]) -> Claim:
    return Claim(
        f"On {PUBLISHED_ON} at least {OPTIMAL:g} % of our test paths are optimal.",
        "A path counts if its true cost is the least there is; the mean over seeds decides.",
        "share of test paths that are optimal, %",
        ours.label if ours else "",
        _bound(ours, "optimal", f"at least {OPTIMAL:g} %", OPTIMAL, at_least=True),
        thin,
    )


def _regret(ours: Entry | None, thin: list[str]) -> Claim:
    return Claim(
        f"On {PUBLISHED_ON} our relative regret is at most {MOST_REGRET:g} %.",
        "The bound is the best published for decisions alone, on the original maps (PFYL).",
        "mean test relative regret, %",
        ours.label if ours else "",
        _bound(ours, "relative_regret", f"at most {MOST_REGRET:g} %", MOST_REGRET, at_least=False),
        thin,
    )


def _beside(
    entries: list[Entry], ours: Entry | None, names: Sequence[str], measure: str
) -> tuple[list[Against], list[str]]:
    """Ours beside every method that is not, and in words which of the named ones are missing."""
    rivals = [e for e in entries if not e.ours and np.isfinite(mean(e.final("test", measure)))]
    absent = [name for name in names if all(e.label != name for e in rivals)]
    missing = [f"no eligible run of {listed(absent)}"] if absent else []
    few = [e.label for e in rivals if len(e.runs) < SEEDS]
    missing += [f"fewer than {SEEDS} seeds of {listed(few)}"] if few else []
    if ours is None:
        return [], ["no finished run of ours", *missing]
    return [set_beside(ours, rival, ("test", measure), 0.0) for rival in rivals], missing


def _bound(
    ours: Entry | None, measure: str, words: str, bound: float, *, at_least: bool
) -> list[Against]:
    """Ours beside a fixed number."""
    if ours is None or not np.isfinite(found := 100.0 * ours.final("test", measure)).all():
        return []
    middle = mean(found)
    low, high = interval(found - bound)
    above, below = low >= 0, high <= 0
    passes = decided(above, high < 0) if at_least else decided(below, low > 0)
    return [Against(words, bound, middle, found - bound, passes)]


def _too_small(ours: Entry | None) -> list[str]:
    data = ours.config.get("data") if ours else None
    sizes = data.get("sizes") if isinstance(data, dict) else None
    if not isinstance(sizes, list) or not sizes or not isinstance(sizes[0], int):
        return []
    few = f"{sizes[0]:,} of {count(SAMPLES, 'training sample')}"
    return [few] if sizes[0] < SAMPLES else []
