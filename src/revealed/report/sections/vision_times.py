"""What an epoch on pictures costs with every method, beside plain regression where it was run."""

from __future__ import annotations

import numpy as np

from ..compare import by_label, method_cell, row_class
from ..dots import dots_panel, median_and_range
from ..drawing import Gallery, Picture
from ..elements import Html, folded_command, join, paragraph
from ..numbers import NONE, duration
from ..study import Entry, Study
from ..tables import Cell, Column, Row, SortTable
from ..vision.parts import short_title, shown, tasks

TITLE = "Time of training"
REGRESSION = "two-stage"


def build(study: Study, gallery: Gallery) -> Html | None:
    """A panel for each task, and a table with the price relative to regression."""
    timed = {part: [e for e in shown(study, part) if _median(e) > 0] for part in tasks(study)}
    timed = {part: sorted(found, key=_median) for part, found in timed.items() if found}
    if not timed:
        return None
    panels = [
        dots_panel(
            short_title(part), found, lambda e: e.epoch_seconds(), "seconds an epoch",
            summary=median_and_range, width=4.1,
        )
        for part, found in timed.items()
    ]  # fmt: skip
    caption = (
        "Training alone, without evaluation. Dot: median over epochs and seeds; ticks and line: "
        "all seeds. Open dots: needs true costs."
    )
    picture = Picture("vision-times", "Seconds an epoch", caption, panels, columns=3)
    words = (
        "Seconds of training in an epoch, the network's own part among them. Several runs may have "
        "shared the device, so these times compare methods; the price of a single step beside "
        "plain regression is measured on its own, in `benchmarks/`."
    )
    told = [paragraph(words), gallery.show(picture), _table(timed).markup()]
    return join([*told, folded_command(study.commands)])


def _median(entry: Entry) -> float:
    return float(np.median(entry.epoch_seconds()))


def _baselines(timed: dict[str, list[Entry]]) -> tuple[str, dict[str, float]]:
    """What times are divided by: regression where every task has it, else the fastest of ours."""
    plain = {
        part: min((_median(e) for e in found if e.method == REGRESSION), default=np.nan)
        for part, found in timed.items()
    }
    if np.isfinite(list(plain.values())).any():
        return "×\u00a0regression", plain
    ours = {
        part: min((_median(e) for e in found if e.ours), default=np.nan)
        for part, found in timed.items()
    }
    return "×\u00a0ours", ours


def _table(timed: dict[str, list[Entry]]) -> SortTable:
    heading, base = _baselines(timed)
    columns = [Column("method")]
    for part in timed:
        columns += [Column("epoch", True, "", short_title(part))]
        columns += [Column(heading, True, "", short_title(part))]
    rows = []
    for group in by_label(entry for found in timed.values() for entry in found):
        cells: list[Cell | str] = [method_cell(group[0], badge=True)]
        found = {entry.part: _median(entry) for entry in group}
        for part in timed:
            seconds = found.get(part, np.nan)
            ratio = seconds / base[part]
            shown_ratio = f"{ratio:.2f}" if np.isfinite(ratio) else NONE
            cells += [Cell(duration(seconds), seconds), Cell(shown_ratio, ratio)]
        rows.append(Row(cells, row_class(group[0])))
    first = f"{short_title(next(iter(timed)))} epoch"
    return SortTable("Training time of an epoch", columns, rows, sorted_by=first)
