"""How long an epoch of training takes, for every method on every problem."""

from __future__ import annotations

from itertools import chain

import numpy as np

from ..compare import by_label, method_cell, needs_cell, row_class
from ..dots import dots_panel, median_and_range
from ..drawing import Gallery, Picture
from ..elements import Html, folded_command, join, paragraph
from ..numbers import NONE, duration
from ..study import Entry, Study, part_title
from ..tables import Cell, Column, Row, SortTable
from ..vision.parts import KINDS

TITLE = "Time of an epoch"


def build(study: Study, gallery: Gallery) -> Html | None:
    """A ranking for each problem, and one table of all."""
    parts = [p for p in study.parts if not p.startswith(("margins", "kernels", *KINDS))]
    timed = {part: [e for e in study.of(part) if _median(e) > 0] for part in parts}
    timed = {part: sorted(entries, key=_median) for part, entries in timed.items() if entries}
    if not timed:
        return None
    panels = [
        dots_panel(
            part_title(part),
            entries,
            lambda e: 1e3 * e.epoch_seconds(),
            "milliseconds",
            summary=median_and_range,
            log=True,
        )
        for part, entries in timed.items()
    ]
    caption = (
        "Training alone, without evaluation. Dot: median over seeds; ticks and line: all seeds. "
        "Open dots: needs true costs."
    )
    picture = Picture("epoch-times", "Training time of an epoch", caption, panels)
    words = (
        "Median over epochs and seeds, one thread each. Runs of a sweep share the machine, so "
        "these times compare methods; `revealed bench epochs` times them one by one."
    )
    told = [paragraph(words), gallery.show(picture), _table(timed).markup()]
    return join([*told, folded_command(study.commands)])


def _median(entry: Entry) -> float:
    return float(np.median(entry.epoch_seconds()))


def _table(timed: dict[str, list[Entry]]) -> SortTable:
    columns = [Column("method"), Column("needs true costs")]
    for part in timed:
        columns += [Column("epoch", True, "", part)]
        columns += [Column("×\u00a0ours", True, "over the fastest of ours", part)]
    fastest = {
        part: min((_median(e) for e in entries if e.ours), default=np.nan)
        for part, entries in timed.items()
    }
    rows = []
    for group in by_label(chain(*timed.values())):
        cells: list[Cell | str] = [method_cell(group[0]), needs_cell(group[0])]
        found = {entry.part: _median(entry) for entry in group}
        for part in timed:
            seconds = found.get(part, np.nan)
            ratio = seconds / fastest[part]
            shown = f"{ratio:.1f}" if np.isfinite(ratio) else NONE
            cells += [Cell(duration(seconds), seconds), Cell(shown, ratio)]
        rows.append(Row(cells, row_class(group[0])))
    first = f"{next(iter(timed))} epoch"
    return SortTable("Training time of an epoch", columns, rows, sorted_by=first)
