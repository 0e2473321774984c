"""What is claimed of the experiments, judged by their runs: each claim with rule and numbers."""

from __future__ import annotations

from ..bench.synthetic.tables import CAVE_RIVALS, COMPARABLE, NEGLIGIBLE, PAPER_RIVALS
from .numbers import fixed, listed, mean, with_error
from .study import Entry, Study, best, differences, part_words
from .verdicts import Claim, meet, renamed, set_beside, too_few
from .vision.claims import vision_claims

PAPER_SEEDS, CAVE_SEEDS = 5, 10


def judge(study: Study) -> list[Claim]:
    """Every claim that the parts in the folder can speak to."""
    claims = []
    for part in study.parts_like("paper"):
        claims += [_lower(study, part), _comparable(study, part), _alike(study, part)]
    claims += [_ahead(study, part) for part in study.parts_like("cave")]
    return claims + vision_claims(study)


def our_erm(study: Study, part: str) -> Entry | None:
    """Ours as the paper trains it (squared distance, first-order steps), by validation."""
    entries = [e for e in study.of(part) if e.ours and not e.pocs and _squared(e)]
    return best(entries, "valid", "decision_loss")


def our_pocs(study: Study, part: str) -> Entry | None:
    """Ours by alternating projections, by validation if there are several."""
    return best([e for e in study.of(part) if e.pocs], "valid", "decision_loss")


def _squared(entry: Entry) -> bool:
    return entry.method == "projection" and entry.config["method"].get("power", 2) == 2


def _lower(study: Study, part: str) -> Claim:
    ours, where = our_erm(study, part), ("test", "estimate_loss")
    against, missing = meet(study, part, ours, PAPER_RIVALS, where, 0.0)
    return Claim(
        f"On {part_words(part)} ours has lower test estimate loss than "
        f"{listed(list(PAPER_RIVALS))}.",
        "The mean over seeds is not above any of theirs, whichever optimiser trained them.",
        "mean test estimate loss",
        ours.label if ours else "",
        against,
        [*missing, *too_few(study, ours, PAPER_SEEDS)],
    )


def _comparable(study: Study, part: str) -> Claim:
    ours = our_erm(study, part)
    where = ("test", "estimate_loss")
    against, missing = meet(study, part, ours, ["SPO+"], where, COMPARABLE)
    return Claim(
        f"On {part_words(part)} ours is comparable with SPO+, which sees the true costs.",
        f"The mean over seeds is at most {COMPARABLE:.0%} above SPO+'s.",
        "mean test estimate loss",
        ours.label if ours else "",
        against,
        [*missing, *too_few(study, ours, PAPER_SEEDS)],
    )


def _alike(study: Study, part: str) -> Claim:
    erm, pocs = our_erm(study, part), our_pocs(study, part)
    against = []
    for measure in ("decision_loss", "estimate_loss"):
        if erm and pocs:
            found = set_beside(pocs, erm, ("test", measure), NEGLIGIBLE, both_sides=True)
            against.append(renamed(found, f"ERM, test {measure.replace('_', ' ')}"))
    absent = [name for name, entry in (("ERM", erm), ("POCS", pocs)) if entry is None]
    return Claim(
        f"On {part_words(part)} POCS and ERM differ negligibly.",
        f"Means over seeds differ by at most {NEGLIGIBLE:.0%}.",
        "mean test loss",
        pocs.label if pocs else "",
        against,
        [*(f"no finished run of {name}" for name in absent), *too_few(study, erm, PAPER_SEEDS)],
    )


def _ahead(study: Study, part: str) -> Claim:
    entries = [e for e in study.of(part) if not e.needs_true_costs]
    where = ("test", "relative_regret")
    ours = best([e for e in entries if e.ours], *where)
    rivals = [e for e in entries if not e.ours]
    named = [e for e in rivals if e.runs[0].label in CAVE_RIVALS]
    rival = best(named, *where)
    absent = [name for name in CAVE_RIVALS if all(e.runs[0].label != name for e in named)]
    missing = [] if ours else ["no finished run of ours"]
    missing += [f"no eligible run of {listed(absent)}"] if absent else []
    against = [set_beside(ours, rival, where, 0.0, scale=100.0)] if ours and rival else []
    return Claim(
        f"On {part_words(part)} the best of our decision-only losses is at or below the best "
        f"decision-only rival ({', '.join(CAVE_RIVALS)}) in mean relative regret.",
        "Mean test regret over seeds, ours not above theirs; the difference is taken seed by seed.",
        "mean test relative regret, %",
        ours.label if ours else "",
        against,
        [*missing, *too_few(study, ours, CAVE_SEEDS)],
        _distance_from_truth(study, part, ours),
    )


def _distance_from_truth(study: Study, part: str, ours: Entry | None) -> list[str]:
    spo = next((e for e in study.of(part) if e.method == "spo+"), None)
    if spo is None or ours is None:
        return []
    gap = 100 * differences(ours, spo, "test", "relative_regret")
    regret = 100 * mean(spo.final("test", "relative_regret"))
    return [
        f"SPO+, which sees the true costs: {fixed(regret)} %; ours less SPO+: "
        f"{with_error(gap, 2)} points."
    ]
