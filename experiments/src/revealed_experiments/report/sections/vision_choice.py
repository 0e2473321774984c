"""How optimiser and step were chosen on pictures: finals and trials with their validation loss."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compare import method_cell, row_class
from ..drawing import Gallery
from ..elements import Html, command_box, details, join, paragraph
from ..numbers import NONE, listed, number
from ..study import Entry, Study, optimiser_name
from ..tables import Cell, Column, Row, SortTable
from ..vision.parts import short_title, shown, tasks

TITLE = "Choice of steps"


def build(study: Study, gallery: Gallery) -> Html | None:
    """What each method chose, and folded under it what it chose among."""
    entries = {part: shown(study, part) for part in tasks(study)}
    if not entries:
        return None
    told = [paragraph(_rule(study)), _chosen(entries).markup()]
    for part, found in entries.items():
        for name in ("finals", "tried"):
            by_part = study.folder.sweep.get(name)
            losses = by_part.get(part) if isinstance(by_part, dict) else None
            if isinstance(losses, dict) and losses:
                title = f"{'Finals' if name == 'finals' else 'Trials'} on {part}"
                told.append(details(title, _compared(title, found, losses).markup()))
    commands = [run.command for found in entries.values() for e in found for run in e.runs]
    if any(commands):
        told.append(details("Repeat a run", command_box(commands)))
    return join(told)


def _rule(study: Study) -> str:
    """In words, with what the sweep says of it."""
    settings = study.folder.sweep.get("settings")
    settings = settings if isinstance(settings, dict) else {}
    steps = settings.get("steps")
    steps = steps if isinstance(steps, dict) else {"": "chosen"}
    told = []
    for way, words in _ways(settings).items():
        parts = [part for part, how in steps.items() if how == way]
        if parts:
            where = "" if len(parts) == len(steps) else f"On {listed(parts)}: "
            told.append(where + (words[0].lower() + words[1:] if where else words))
    return " ".join(told)


def _ways(settings: dict[str, Any]) -> dict[str, str]:
    """What is said of steps that were chosen in the sweep, and of those that a file gave."""
    chosen = (
        "Each method chose its optimizer and step by the decision loss on validation data, which "
        "needs no true cost"
    )
    how = settings.get("choosing")
    sizes = how.get("sizes") if isinstance(how, dict) else None
    if isinstance(how, dict) and isinstance(sizes, list) and sizes:
        chosen += (
            f". Trials were shorter than the runs that count: epochs {how.get('epochs')} on the "
            f"first {sizes[0]} training samples, seeds 1"
        )
        seeds = how.get("seeds")
        if isinstance(seeds, list) and how.get("finalists"):
            chosen += (
                f". The best of them, {how['finalists']} of each method, went on to finals as long "
                f"as the runs that count, with seeds {len(seeds)}; the best in the mean of these "
                "was chosen and trained with every seed"
            )
        else:
            chosen += ", and the best was trained with every seed"
        if how.get("within"):
            chosen += (
                ". Where that was not the largest step, the next larger one joined the finals, and "
                f"so on, unless its trial was worse than {how['within']:g} times the best"
            )
    chosen += "."
    given = (
        "Optimizers and steps were not tried here but given to the sweep in a file (--steps), as "
        "another sweep had chosen them."
    )
    return {"chosen": chosen, "given": given}


def _chosen(entries: dict[str, list[Entry]]) -> SortTable:
    columns = [Column("method")]
    columns += [Column(short_title(part)) for part in entries]
    labels = dict.fromkeys(entry.label for found in entries.values() for entry in found)
    rows = []
    for label in labels:
        by_part = {part: e for part, found in entries.items() for e in found if e.label == label}
        first = next(iter(by_part.values()))
        cells: list[Cell | str] = [method_cell(first, badge=True)]
        cells += [_choice(by_part[part]) if part in by_part else NONE for part in entries]
        rows.append(Row(cells, row_class(first)))
    return SortTable("Optimizer and step of each method", columns, rows)


def _choice(entry: Entry) -> str:
    step = entry.config["step"]
    return optimiser_name(entry.runs[0]) + ("" if step is None else f", {step:g}")


def _compared(title: str, entries: list[Entry], compared: dict[str, Any]) -> SortTable:
    """Validation decision loss by optimiser and step; what was chosen in bold."""
    found = {entry.label: _losses(compared.get(entry.label)) for entry in entries}
    keys = sorted({key for losses in found.values() for key in losses}, key=lambda k: (k[0], -k[1]))
    columns = [Column("method")]
    columns += [Column(f"{step:g}", True, "", optimiser) for optimiser, step in keys]
    rows = []
    for entry in entries:
        chosen = entry.runs[0].optimiser, entry.config["step"]
        cells: list[Cell | str] = [method_cell(entry)]
        for key in keys:
            loss = found[entry.label].get(key, "")
            shown_loss = loss if isinstance(loss, str) else f"{loss:.3g}"
            value = loss if isinstance(loss, float) else np.nan
            cells.append(Cell(shown_loss or NONE, value, "best" if key == chosen else None))
        rows.append(Row(cells, row_class(entry)))
    note = "Bold: chosen. A word in place of a number says how a run ended."
    return SortTable(f"Validation decision loss: {title.lower()}", columns, rows, note)


def _losses(trials: Any) -> dict[tuple[str, float], float | str]:
    """By optimiser and step; the status of a trial that has no loss."""
    losses: dict[tuple[str, float], float | str] = {}
    for trial in trials if isinstance(trials, list) else ():
        if isinstance(trial, list) and len(trial) == 3 and np.isfinite(number(trial[1])):
            loss = number(trial[2])
            told = loss if np.isfinite(loss) else str(trial[2] or "")
            losses[str(trial[0]), float(trial[1])] = told
    return losses
