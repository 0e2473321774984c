"""What an epoch on pictures costs with every method, beside plain regression where it was run."""

from __future__ import annotations

from itertools import chain

import numpy as np

from ..compare import by_label, method_cell, row_class
from ..dots import dots_panel, median_and_range
from ..drawing import Gallery, Picture
from ..elements import Html, folded_command, join, paragraph
from ..study import Entry, Study
from ..tables import Column, Row, SortTable
from ..times import fastest, ranked, time_cells
from ..vision.parts import short_title, shown, tasks

TITLE = "Time of training"
REGRESSION = "two-stage"


def build(study: Study, gallery: Gallery) -> Html | None:
    """A panel for each task, and a table with the price relative to regression."""
    timed = ranked({part: shown(study, part) for part in tasks(study)})
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
        "plain regression is measured on its own, in `experiments/`."
    )
    told = [paragraph(words), gallery.show(picture), _table(timed).markup()]
    return join([*told, folded_command(study.commands)])


def _baselines(timed: dict[str, list[Entry]]) -> tuple[str, dict[str, float]]:
    """What times are divided by: regression where every task has it, else the fastest of ours."""
    plain = fastest(timed, lambda entry: entry.method == REGRESSION)
    if np.isfinite(list(plain.values())).any():
        return "×\u00a0regression", plain
    return "×\u00a0ours", fastest(timed, lambda entry: entry.ours)


def _table(timed: dict[str, list[Entry]]) -> SortTable:
    heading, base = _baselines(timed)
    columns = [Column("method")]
    for part in timed:
        columns += [Column("epoch", True, "", short_title(part))]
        columns += [Column(heading, True, "", short_title(part))]
    rows = [
        Row(
            [method_cell(group[0], badge=True), *time_cells(group, base, digits=2)],
            row_class(group[0]),
        )
        for group in by_label(chain(*timed.values()))
    ]
    first = f"{short_title(next(iter(timed)))} epoch"
    return SortTable("Training time of an epoch", columns, rows, sorted_by=first)
