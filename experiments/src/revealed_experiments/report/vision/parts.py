"""The tasks of the experiment on pictures, and which methods are shown of each."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from ..elements import slug
from ..study import Entry, Study, best

_TASK = re.compile(r"(terrain|warcraft|matching) (\d+)x(\d+)")
KINDS = ("terrain", "warcraft", "matching")
"""How the names of all its parts begin, those in which settings were chosen among them."""


def tasks(study: Study) -> list[str]:
    """Parts that are a task with at least one method to show."""
    return [part for part in study.parts if _TASK.fullmatch(part) and study.of(part)]


def task_title(part: str) -> str:
    """`Terrain 12×12: shortest paths`."""
    found = _TASK.fullmatch(part)
    if found is None:
        return part
    decisions = "perfect matchings" if found[1] == "matching" else "shortest paths"
    return f"{found[1].capitalize()} {found[2]}×{found[3]}: {decisions}"


def short_title(part: str) -> str:
    """`Terrain 12×12`."""
    return task_title(part).partition(":")[0]


def shown(study: Study, part: str) -> list[Entry]:
    """One entry for each method, under its bare name, ours first.

    A method may have been tried with several optimisers, and some of the trials may be short ones
    that only chose a step. Those trained longest with the most seeds are compared; of several such
    the one that validation prefers is shown.
    """
    groups: dict[str, list[Entry]] = {}
    for entry in study.of(part):
        groups.setdefault(entry.runs[0].label, []).append(entry)
    chosen = []
    for label, entries in groups.items():
        most = max(map(_effort, entries))
        full = [entry for entry in entries if _effort(entry) == most]
        entry = best(full, "valid", "decision_loss") or full[0]
        style = replace(entry.style, slug=slug(label), label=label)
        chosen.append(replace(entry, label=label, style=style))
    return sorted(chosen, key=lambda entry: (not entry.ours, entry.needs_true_costs))


def standing_for_ours(entries: Iterable[Entry]) -> Entry | None:
    """Which form of ours claims speak of, and albums show first: validation decides."""
    return best([entry for entry in entries if entry.ours], "valid", "decision_loss")


def _effort(entry: Entry) -> tuple[int, int]:
    epochs = entry.config.get("epochs")
    return (epochs if isinstance(epochs, int) else 0), len(entry.runs)
