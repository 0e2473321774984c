"""How every method's settings were chosen, and among how many candidates."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compare import by_label, method_cell, needs_cell, row_class
from ..drawing import Gallery
from ..elements import Html, command_box, details, join, paragraph
from ..numbers import NONE
from ..study import Entry, Study, optimiser_name, part_title
from ..tables import Cell, Column, Row, SortTable, spread
from ..vision.parts import KINDS

TITLE = "Choice of settings"


def build(study: Study, gallery: Gallery) -> Html | None:
    """Rule, candidates and choice of every method, and the commands that repeat the chosen runs."""
    words = (
        "For each problem, method and optimiser, the step and options with the least mean decision "
        "loss on validation data over all seeds, when training ends. Test data and true costs have "
        "no say. A candidate that diverged or failed with any seed is out."
    )
    parts = [part for part in study.parts if study.of(part) and not part.startswith(KINDS)]
    if not parts:
        return None
    folded = [_folded(part, study.of(part)) for part in parts]
    # An ablation has one candidate for each of its rows: nothing to count.
    counted = [part for part in parts if not part.startswith(("margins", "kernels"))]
    counts = _counts(study, counted).markup() if counted else None
    return join([paragraph(words), counts, *folded])


def _counts(study: Study, parts: list[str]) -> SortTable:
    """How many candidates every method had in every part."""
    columns = [Column("method"), Column("needs true costs")]
    columns += [Column(part, True) for part in parts]
    rows = []
    shown = [entry for entry in study.entries if entry.part in parts]
    for entries in by_label(sorted(shown, key=_ours_first)):
        found = {entry.part: entry.candidates for entry in entries}
        cells: list[Cell | str] = [method_cell(entries[0]), needs_cell(entries[0])]
        cells += [Cell(str(found.get(part, NONE)), found.get(part, "")) for part in parts]
        rows.append(Row(cells, row_class(entries[0])))
    return SortTable("Candidates tried", columns, rows)


def _folded(part: str, entries: list[Entry]) -> Html:
    """What was chosen in one part, and how to repeat it."""
    columns = [Column("method"), Column("optimiser"), Column("step", True), Column("options")]
    columns += [Column("candidates", True), Column("validation decision loss", True)]
    title = f"Chosen settings: {part_title(part)}"
    table = SortTable(title, columns, [_row(entry) for entry in sorted(entries, key=_ours_first)])
    commands = [run.command for entry in entries for run in entry.runs if run.command]
    repeat = [paragraph("Repeat a run:", "note"), command_box(commands)] if commands else []
    return details(title, table.markup(), *repeat)


def _ours_first(entry: Entry) -> tuple[bool, bool]:
    return not entry.ours, entry.needs_true_costs


def _row(entry: Entry) -> Row:
    step = entry.config["step"]
    cells: list[Cell | str] = [
        method_cell(entry),
        optimiser_name(entry.runs[0]),
        Cell(f"{step:g}", float(step)) if step is not None else Cell(NONE, np.nan),
        _options(entry.config),
        Cell(str(entry.candidates), entry.candidates),
        spread(entry.final("valid", "decision_loss"), 3),
    ]
    return Row(cells, row_class(entry))


def _options(config: dict[str, Any]) -> str:
    """What method, training and model were told beyond their names."""
    told = []
    for group in ("method", "training", "model"):
        options = config.get(group)
        for name, value in options.items() if isinstance(options, dict) else ():
            if name not in ("name", "kind"):
                told.append(f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}")
    return ", ".join(told)
