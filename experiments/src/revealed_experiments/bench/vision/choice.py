"""Which optimiser and step each method of `revealed bench vision` learns with.

DIR/choice/runs/    the trials that finalists come from
DIR/earlier/        full runs of finalists that were not chosen
DIR/chosen.json     {part: {label: {"optimiser", "step"}}}
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

from revealed.errors import InputError

from ..sweeps.runs import UNFINISHED, Run, write_whole
from .parts import OPTIMISERS, Pick, Picks, Shortlist

CHOSEN = "chosen.json"
ByLabel = Mapping[str, Mapping[str, Any]]
"""Something for each part and label."""


def shortlist(trials: Iterable[Run], finalists: int) -> dict[str, dict[str, list[Pick]]]:
    """For each part and label the candidates whose validation decisions are best, best first.

    A method that has not tried all of its candidates yet has no finalists.
    """
    found: dict[str, dict[str, list[Pick]]] = defaultdict(dict)
    for (part, label), candidates in _candidates(trials).items():
        losses = {each: _losses(runs) for each, runs in candidates.items()}
        sound = [each for each, loss in losses.items() if math.isfinite(loss[0])]
        best = sorted(sound, key=lambda each: (*losses[each], each.step))
        found[part][label] = best[:finalists]
    return dict(found)


def pick(runs: Iterable[Run], finalists: Shortlist) -> dict[str, dict[str, Pick]]:
    """Of the finalists of each part and label the one whose validation decisions are best, in the
    mean over seeds; the first where all of them have failed with some seed.

    A method of which finalists are still to be run chooses nothing.
    """
    ranked = shortlist(runs, 1)
    return {
        part: {
            label: (ranked[part][label] or candidates)[0]
            for label, candidates in by_label.items()
            if candidates and label in ranked.get(part, {})
        }
        for part, by_label in finalists.items()
    }


def larger(
    finalists: Shortlist, trials: Iterable[Run], runs: Iterable[Run], within: float
) -> dict[str, dict[str, list[Pick]]]:
    """The finalists, and for each method whose next larger step was not among them that one too.

    Next to the best of its `runs` in full, with the same optimiser; none whose trial came out worse
    than `within` times the best, and none for a method of which finalists are still to be run.
    """
    short = {name: _by_pick(own) for name, own in _candidates(trials).items()}
    best = shortlist(runs, 1)
    found: dict[str, dict[str, list[Pick]]] = defaultdict(dict)
    for part, by_label in finalists.items():
        for label, own in by_label.items():
            found[part][label] = list(own)
            for at in best.get(part, {}).get(label, ()):
                losses = short[part, label]
                above = [p for p in losses if p.optimiser == at.optimiser and p.step > at.step]
                following = min(above, key=lambda p: p.step, default=at)
                if following not in own and losses[following] <= within * min(losses.values()):
                    found[part][label].append(following)
    return dict(found)


def _by_pick(candidates: Mapping[Pick, list[Run]]) -> dict[Pick, float]:
    """The validation decision loss of each."""
    return {each: _losses(runs)[0] for each, runs in candidates.items()}


def tried(runs: Iterable[Run]) -> dict[str, dict[str, list[Any]]]:
    """For each part and label what was tried: [optimiser, step, validation decision loss], the mean
    over seeds; for the loss a word where there is none."""
    found: dict[str, dict[str, list[Any]]] = defaultdict(dict)
    for (part, label), candidates in _candidates(runs).items():
        found[part][label] = [
            [each.optimiser, each.step, _told(own)] for each, own in candidates.items()
        ]
    return dict(found)


def _candidates(runs: Iterable[Run]) -> dict[tuple[str, str], dict[Pick, list[Run]]]:
    """Runs by part and label and by what they were done with; none of a method of which some have
    not ended."""
    found: dict[tuple[str, str], dict[Pick, list[Run]]] = defaultdict(lambda: defaultdict(list))
    waiting = set()
    for run in runs:
        config = run["config"]
        name = config["part"], config["label"]
        found[name][Pick(config["optimiser"], config["step"])].append(run)
        if run["status"] == UNFINISHED:
            waiting.add(name)
    return {name: candidates for name, candidates in found.items() if name not in waiting}


def _losses(runs: list[Run]) -> tuple[float, float]:
    """The mean decision loss on validation data, and on train data for a tie; infinite if a run
    has none."""
    if not all(run["final"] for run in runs):
        return math.inf, math.inf
    valid, train = (
        fmean(run["final"][split]["decision_loss"] for run in runs) for split in ("valid", "train")
    )
    return valid, train


def _told(runs: list[Run]) -> float | str:
    failed = [run["status"] for run in runs if not run["final"]]
    return failed[0] if failed else _losses(runs)[0]


def joined(known: ByLabel, new: ByLabel) -> dict[str, dict[str, Any]]:
    """What is said of each part and label: the new, and the known where there is nothing new."""
    return {part: {**known.get(part, {}), **new.get(part, {})} for part in {**known, **new}}


def read_picks(path: Path) -> dict[str, dict[str, Pick]]:
    """The choices in a file that `write_picks` wrote, or a person."""
    try:
        content = json.loads(path.read_text("utf-8"))
        picks = {
            part: {label: Pick(**entry) for label, entry in by_label.items()}
            for part, by_label in content.items()
        }
    except (ValueError, TypeError, AttributeError) as error:
        raise InputError(
            f"{path.name} must say for each part and method which optimiser and step to take, as "
            '{"terrain 12x12": {"Ours": {"optimiser": "adam", "step": 0.001}}}; ' + f"{error}."
        ) from error
    for part, by_label in picks.items():
        for label, each in by_label.items():
            if each.optimiser not in OPTIMISERS or not _is_step(each.step):
                raise InputError(
                    f"{path.name} must name one of {', '.join(OPTIMISERS)} and a step above 0 for "
                    f"{label} on {part}; got {each.optimiser} and {each.step}."
                )
    return picks


def _is_step(step: Any) -> bool:
    return isinstance(step, int | float) and not isinstance(step, bool) and 0 < step < math.inf


def write_picks(folder: Path, picks: Picks) -> None:
    """Write `chosen.json`, keeping what it says of parts and methods that were not asked for."""
    path = folder / CHOSEN
    known = read_picks(path) if path.is_file() else {}
    content = {
        part: {label: {"optimiser": p.optimiser, "step": p.step} for label, p in by_label.items()}
        for part, by_label in joined(known, picks).items()
    }
    write_whole(path, json.dumps(content, indent=1) + "\n")
