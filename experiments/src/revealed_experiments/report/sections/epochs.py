"""How long an epoch of training takes, for every method on every problem."""

from __future__ import annotations

from itertools import chain

from ..compare import by_label, method_cell, needs_cell, row_class
from ..dots import dots_panel, median_and_range
from ..drawing import Gallery, Picture
from ..elements import Html, folded_command, join, paragraph
from ..study import Entry, Study, part_title
from ..tables import Column, Row, SortTable
from ..times import fastest, ranked, time_cells
from ..vision.parts import KINDS

TITLE = "Time of an epoch"


def build(study: Study, gallery: Gallery) -> Html | None:
    """A ranking for each problem, and one table of all."""
    parts = [p for p in study.parts if not p.startswith(("margins", "kernels", *KINDS))]
    timed = ranked({part: study.of(part) for part in parts})
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


def _table(timed: dict[str, list[Entry]]) -> SortTable:
    columns = [Column("method"), Column("needs true costs")]
    for part in timed:
        columns += [Column("epoch", True, "", part)]
        columns += [Column("×\u00a0ours", True, "over the fastest of ours", part)]
    base = fastest(timed, lambda entry: entry.ours)
    rows = [
        Row(
            [method_cell(group[0]), needs_cell(group[0]), *time_cells(group, base, digits=1)],
            row_class(group[0]),
        )
        for group in by_label(chain(*timed.values()))
    ]
    first = f"{next(iter(timed))} epoch"
    return SortTable("Training time of an epoch", columns, rows, sorted_by=first)
