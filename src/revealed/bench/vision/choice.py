"""Which optimiser and step each method of `revealed bench vision` learns with.

DIR/choice/runs/    the runs among which was chosen
DIR/chosen.json     {part: {label: {"optimiser", "step"}}}
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..sweeps.choose import Chosen, chosen
from ..sweeps.runs import UNFINISHED, Run, write_whole
from .parts import OPTIMISERS, Pick, Picks

CHOSEN = "chosen.json"


def pick(runs: Iterable[Run]) -> dict[str, dict[str, Pick]]:
    """For each part and label the candidate whose validation decisions are best.

    A method that has not tried all of its candidates yet chooses nothing.
    """
    runs = list(runs)
    waiting = {_name(run) for run in runs if run["status"] == UNFINISHED}
    best: dict[tuple[str, str], Chosen] = {}
    for choice in chosen(run for run in runs if _name(run) not in waiting):
        name = choice.part, choice.label
        if name not in best or _rank(choice) < _rank(best[name]):
            best[name] = choice
    picks: dict[str, dict[str, Pick]] = defaultdict(dict)
    for (part, label), choice in best.items():
        picks[part][label] = Pick(choice.optimiser, choice.config["step"])
    return dict(picks)


def _rank(choice: Chosen) -> tuple[float, float]:
    return tuple(float(choice.final(split, "decision_loss").mean()) for split in ("valid", "train"))  # type: ignore[return-value]


def _name(run: Run) -> tuple[str, str]:
    return run["config"]["part"], run["config"]["label"]


def tried(runs: Iterable[Run]) -> dict[str, dict[str, list[Any]]]:
    """For each part and label what was tried: [optimiser, step, validation decision loss]."""
    found: dict[str, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        part, label = _name(run)
        loss = run["final"]["valid"]["decision_loss"] if run["final"] else run["status"]
        found[part][label].append([run["config"]["optimiser"], run["config"]["step"], loss])
    return {part: dict(by_label) for part, by_label in found.items()}


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
    for part, by_label in picks.items():
        known[part] = known.get(part, {}) | dict(by_label)
    content = {
        part: {label: {"optimiser": p.optimiser, "step": p.step} for label, p in by_label.items()}
        for part, by_label in known.items()
    }
    write_whole(path, json.dumps(content, indent=1) + "\n")
