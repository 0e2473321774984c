"""What is claimed of the experiments, judged by their runs: each claim with rule and numbers.

The paper's claims are judged as it states them: ERM is Armijo's line search, MOM has the true
basis. Where a part with many fresh seeds exists, it decides and the paper's five are a remark.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import stats

from ..bench.synthetic.experiments import MORE_SEEDS, RIVALS_ON_PAPER, seeds_part
from ..bench.synthetic.tables import CAVE_RIVALS, COMPARABLE, NEGLIGIBLE, PAPER_RIVALS
from .numbers import fixed, listed, mean, with_error
from .study import Entry, Study, best, differences, part_words
from .verdicts import (
    Against,
    Claim,
    decided,
    few_of,
    interval,
    meet,
    renamed,
    set_beside,
    too_few,
)
from .vision.claims import vision_claims

PAPER_SEEDS, CAVE_SEEDS = 5, 10
ESTIMATE = ("test", "estimate_loss")
TODAY = "our estimator today"
FOLLOWS = 0.8
"""Rank correlation from which one measure is said to follow another."""
GAMMAS = {"gamma": "Γ at margin 1", "gamma_relative": "Γ free of scale"}
THEIRS, OURS_TO_SHOW, YARDSTICK = "The paper claims", "We ask of ours", "On CaVE's yardstick"
PROBLEMS = {"path": "Paths", "knapsack": "Knapsack"}


def judge(study: Study) -> list[Claim]:
    """Every claim that the parts in the folder can speak to."""
    claims = []
    for part in study.parts_like("paper"):
        judged = _decisive(study, part)
        for build in (_lower, _comparable, _alike, _follows, _today, _today_with_truth):
            claim = build(study, judged)
            if claim is not None:
                problem = PROBLEMS.get(part.removeprefix("paper "), part)
                told = _protocol(study, judged)
                claims.append(replace(claim, problem=problem, protocol=told))
    for part in study.parts_like("cave"):
        problem = part.removeprefix("cave ").capitalize()
        told = _protocol(study, part)
        claims.append(replace(_ahead(study, part), problem=problem, protocol=told))
    return claims + vision_claims(study)


def _protocol(study: Study, part: str) -> str:
    """What was run, from the runs' own configurations."""
    entry = next(iter(study.of(part)), None)
    if entry is None:
        return ""
    config, n = entry.config, max(len(e.runs) for e in study.of(part))
    data = config.get("data")
    sizes = (data.get("sizes") if isinstance(data, dict) else None) or []
    kind = "fresh seeds" if part.startswith("seeds") else "seeds"
    where = " on the paper's five seeds" if part.startswith("seeds") else ""
    told = [f"{n} {kind}"]
    if sizes:
        told.append(f"{' / '.join(f'{s:,}' for s in sizes)} samples to train, validate and test")
    told.append(f"{config.get('epochs')} epochs in batches of {config.get('batch_size')}")
    told += [f"settings by validation decision loss{where}"]
    return f"{'; '.join(told)}."


def our_erm(study: Study, part: str) -> Entry | None:
    """Ours as the claims of the paper name it: the squared distance by Armijo's line search."""
    return next((e for e in study.of(part) if _squared(e) and _by(e, "armijo")), None)


def our_pocs(study: Study, part: str) -> Entry | None:
    """Ours by alternating projections, by validation if there are several."""
    return best([e for e in study.of(part) if e.pocs], "valid", "decision_loss")


def _squared(entry: Entry) -> bool:
    return entry.method == "projection" and entry.config["method"].get("power", 2) == 2


def _by(entry: Entry, optimizer: str) -> bool:
    return entry.runs[0].optimiser == optimizer


def _decisive(study: Study, part: str) -> str:
    """The part with many seeds if it has runs, else the part itself."""
    more = seeds_part(part.removeprefix("paper "))
    return more if study.of(more) else part


def _seeds(part: str) -> int:
    return len(MORE_SEEDS) if part.startswith("seeds") else PAPER_SEEDS


def _five(study: Study, part: str, ours: str, others: list[str]) -> list[str]:
    """What the paper's five seeds say, where other seeds decide."""
    if not part.startswith("seeds"):
        return []
    of_paper = study.of(f"paper {part.removeprefix('seeds ')}")
    told = [
        f"{entry.label} {fixed(mean(entry.final(*ESTIMATE)))}"
        for entry in of_paper
        if entry.label == ours or entry.runs[0].label in others
    ]
    return [f"On the paper's five seeds: {listed(told)}."] if told else []


def _lower(study: Study, part: str) -> Claim:
    ours = our_erm(study, part)
    against, missing, absent = meet(study, part, ours, PAPER_RIVALS, ESTIMATE, 0.0)
    return Claim(
        f"On {part_words(part)} ERM by Armijo has lower test estimate loss than "
        f"{listed(list(PAPER_RIVALS))}.",
        "Paired differences are surely below 0 for each, whichever optimizer trained it.",
        "mean test estimate loss",
        ours.label if ours else "",
        against,
        [*missing, *too_few(study, ours, _seeds(part))],
        absent,
        _five(study, part, ours.label if ours else "", list(PAPER_RIVALS)),
        whose=THEIRS,
        topic=f"ERM has lower estimate loss than {listed(list(PAPER_RIVALS))}",
    )


def _comparable(study: Study, part: str) -> Claim:
    ours = our_erm(study, part)
    against, missing, absent = meet(study, part, ours, ["SPO+"], ESTIMATE, COMPARABLE)
    return Claim(
        f"On {part_words(part)} ERM by Armijo is comparable with SPO+, which sees the true costs.",
        f"Paired differences are surely at most {COMPARABLE:.0%} of SPO+'s mean.",
        "mean test estimate loss",
        ours.label if ours else "",
        against,
        [*missing, *too_few(study, ours, _seeds(part))],
        absent,
        _five(study, part, ours.label if ours else "", ["SPO+"]),
        whose=THEIRS,
        topic="ERM is comparable with SPO+, which sees the true costs",
    )


def _alike(study: Study, part: str) -> Claim:
    erm, pocs = our_erm(study, part), our_pocs(study, part)
    against = []
    for measure in ("decision_loss", "estimate_loss"):
        if erm and pocs:
            found = set_beside(pocs, erm, ("test", measure), NEGLIGIBLE, both_sides=True)
            against.append(renamed(found, f"ERM by Armijo, test {measure.replace('_', ' ')}"))
    absent = [name for name, entry in (("ERM", erm), ("POCS", pocs)) if entry is None]
    few = few_of([pocs], len(erm.runs)) if erm and pocs else []
    return Claim(
        f"On {part_words(part)} POCS and ERM by Armijo differ negligibly.",
        f"Paired differences are surely within {NEGLIGIBLE:.0%} of ERM's mean.",
        "mean test loss",
        pocs.label if pocs else "",
        against,
        [
            *(f"no finished run of {name}" for name in absent),
            *few,
            *too_few(study, erm, _seeds(part)),
        ],
        whose=THEIRS,
        topic="POCS and ERM differ negligibly",
    )


def _follows(study: Study, part: str) -> Claim | None:
    """The paper's footnote: Gamma behaves as the estimate loss does."""
    entries = [e for e in study.of(part) if np.isfinite(mean(e.final("test", "gamma")))]
    if len(entries) < 3:
        return None
    against = [_rank_correlation(entries, measure) for measure in GAMMAS]
    few = few_of(entries, max(len(entry.runs) for entry in entries))
    return Claim(
        f"On {part_words(part)} Γ follows the estimate loss over methods (the paper's footnote).",
        f"The rank correlation over methods, seed by seed, is surely at least {FOLLOWS:g}. The "
        "verdict is on Γ as the paper defines it; its form free of scale stands beside it.",
        "rank correlation with the test estimate loss",
        "mean over seeds",
        against[:1],
        [*few, *too_few(study, max(entries, key=lambda e: len(e.runs)), _seeds(part))],
        remarks=[f"{GAMMAS['gamma_relative']}: {fixed(against[1].ours)}."],
        whose=THEIRS,
        topic="Γ follows the estimate loss over methods",
    )


def _rank_correlation(entries: list[Entry], measure: str) -> Against:
    common = set.intersection(*(set(e.seeds) for e in entries))
    found = []
    for seed in sorted(common):
        runs = [next(run for run in e.runs if run.seed == seed) for e in entries]
        ranks = [
            stats.rankdata([run.final("test", name) for run in runs])
            for name in (measure, ESTIMATE[1])
        ]
        found.append(float(np.corrcoef(*ranks)[0, 1]))
    values = np.array(found)
    low, high = interval(values)
    passes = decided(low >= FOLLOWS, high < FOLLOWS)
    told = f"the least that counts, for {GAMMAS[measure]}"
    return Against(told, FOLLOWS, mean(values), values - FOLLOWS, passes)


def _today(study: Study, part: str) -> Claim | None:
    """What this project asks of its own estimator; no claim of the paper."""
    ours = _our_estimator(study, part)
    if ours is None:
        return None
    rivals = [e for e in study.of(part) if not e.ours and not e.needs_true_costs]
    there = {e.runs[0].label for e in rivals}
    lost = [m.label for m in RIVALS_ON_PAPER if m.label not in there]
    absent = [f"no eligible run of {listed(list(dict.fromkeys(lost)))}"] if lost else []
    return Claim(
        f"Ours, not the paper's: on {part_words(part)} our estimator of today is at or below every "
        "rival that sees decisions only.",
        "Paired differences are surely at most 0.",
        "mean test estimate loss",
        ours.label,
        [set_beside(ours, e, ESTIMATE, 0.0) for e in rivals],
        [*few_of(rivals, len(ours.runs)), *too_few(study, ours, _seeds(part))],
        absent,
        whose=OURS_TO_SHOW,
        topic="Our estimator today is at or below every rival that sees decisions only",
    )


def _today_with_truth(study: Study, part: str) -> Claim | None:
    """The same beside SPO+, which needs what nobody has here: true costs."""
    ours = _our_estimator(study, part)
    if ours is None:
        return None
    against, missing, absent = meet(study, part, ours, ["SPO+"], ESTIMATE, COMPARABLE)
    return Claim(
        f"Ours, not the paper's: on {part_words(part)} our estimator of today is level with SPO+, "
        "which sees the true costs, or better.",
        f"Paired differences are surely at most {COMPARABLE:.0%} of SPO+'s mean.",
        "mean test estimate loss",
        ours.label,
        against,
        [*missing, *too_few(study, ours, _seeds(part))],
        absent,
        whose=OURS_TO_SHOW,
        topic="Our estimator today is level with SPO+, which sees the true costs, or better",
    )


def _our_estimator(study: Study, part: str) -> Entry | None:
    return next((e for e in study.of(part) if e.label == TODAY), None)


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
    missing += few_of(named, len(ours.runs)) if ours else []
    against = [set_beside(ours, rival, where, 0.0, scale=100.0)] if ours and rival else []
    return Claim(
        f"On {part_words(part)} the best of our decision-only losses is at or below the best "
        f"decision-only rival ({', '.join(CAVE_RIVALS)}) in mean relative regret.",
        "Paired differences in test regret, seed by seed, are surely at most 0.",
        "mean test relative regret, %",
        ours.label if ours else "",
        against,
        [*missing, *too_few(study, ours, CAVE_SEEDS)],
        remarks=_distance_from_truth(study, part, ours),
        whose=YARDSTICK,
        topic="The best of our losses is at or below the best rival that sees decisions only",
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
