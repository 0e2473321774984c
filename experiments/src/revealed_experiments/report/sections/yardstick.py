"""Noisy paths as in CaVE's tables: regret beside the published figures, seed by seed."""

from __future__ import annotations

import re

import numpy as np

from ...bench.published import CAVE, CAVE_REGRET
from ..compare import method_cell, needs_cell, row_class
from ..curves import curves_picture
from ..dots import dots_panel, mean_and_errors
from ..drawing import Gallery, Picture, tidy
from ..elements import Html, folded_command, join, paragraph, slug, tag
from ..numbers import NONE, fixed, mean, signed, standard_error
from ..study import Entry, Study, best, differences, part_title, ranked
from ..tables import Cell, Column, Row, SortTable, figure, spread

TITLE = "Beside CaVE's tables"
WHERE = ("test", "relative_regret")
# Our method name -> theirs.
PUBLISHED = {
    "two-stage": "two-stage (true costs)",
    "spo+": "SPO+ (true costs)",
    "pfyl": "PFYL",
    "cave": "CaVE exact",
    "cave+": "CaVE+",
    "nce": "NCE",
}


def build(study: Study, gallery: Gallery) -> Html | None:
    """A table, a ranking with seed-by-seed differences, and curves for each degree."""
    parts = [part for part in study.parts_like("cave") if study.of(part)]
    if not parts:
        return None
    intro = (
        "Shortest paths on the 5×5 grid under costs with 50 % noise. Differences are taken seed by "
        "seed against the best of our losses that see decisions only: data sets differ more than "
        f"methods do. Published: {CAVE}; their draws are not ours, so they are a hint, not a rival."
    )
    return join([paragraph(intro), *(_part(study, gallery, part) for part in parts)])


def _part(study: Study, gallery: Gallery, part: str) -> Html:
    entries, name = ranked(study.of(part), *WHERE), slug(part)
    ours = best([e for e in entries if e.ours and not e.needs_true_costs], *WHERE)
    measures = ("decision_loss", "relative_regret")
    curves = curves_picture(f"{name}-curves", f"By epoch, {part}", entries, measures)
    return join(
        [
            tag("h3", part_title(part), id=f"part-{name}"),
            gallery.show(_picture(name, part, entries, ours)),
            _table(part, entries, ours).markup(),
            folded_command(study.commands),
            gallery.show(curves) if curves else None,
        ]
    )


def _picture(name: str, part: str, entries: list[Entry], ours: Entry | None) -> Picture:
    regret = dots_panel(
        "Test relative regret, %", entries, lambda e: 100 * e.final(*WHERE), "lower is better",
        log=False,
    )  # fmt: skip
    caption = "Left: dot, mean over seeds; line, one standard deviation; ticks, seeds."
    panels = [regret]
    others = [entry for entry in entries if entry is not ours]
    if ours and others:
        panels.append(
            dots_panel(
                tidy(f"{ours.label} less others, points", 40),
                others,
                lambda e: 100 * differences(ours, e, *WHERE),
                "left of the line: ours has less regret",
                summary=mean_and_errors,
                zero_line=True,
            )
        )
        caption += " Right: differences seed by seed; line, two standard errors of their mean."
    caption += " Open dots: needs true costs."
    return Picture(f"{name}-regret", f"Relative regret, {part}", caption, panels)


def _table(part: str, entries: list[Entry], ours: Entry | None) -> SortTable:
    published = _published(part)
    columns = [
        Column("method"),
        Column("needs true costs"),
        Column("regret, %", True, "mean ± standard deviation over seeds"),
        Column("published, %", True, CAVE),
        Column("ours less this, points", True, "mean over seeds of the paired difference"),
        Column("s.e.", True, "standard error of that mean"),
        Column("seeds ours is lower", True),
    ]
    rows = []
    for entry in entries:
        cells: list[Cell | str] = [
            method_cell(entry),
            needs_cell(entry),
            spread(100 * entry.final(*WHERE)),
            figure(published.get(PUBLISHED.get(entry.method, ""), np.nan)),
            *_paired(ours, entry),
        ]
        rows.append(Row(cells, row_class(entry)))
    words = "No run of ours has finished."
    if ours:
        words = (
            f"“Ours” in the differences is “{ours.label}”, of our losses the one of least regret."
        )
    caption = f"{part_title(part)}: relative regret on test data"
    return SortTable(caption, columns, rows, words, "regret, %")


def _paired(ours: Entry | None, other: Entry) -> list[Cell | str]:
    if ours is None or other is ours:
        return [Cell(NONE, np.nan)] * 3
    gap = 100 * differences(ours, other, *WHERE)
    lower = int((gap < 0).sum())
    return [
        Cell(signed(mean(gap)), mean(gap)),
        Cell(fixed(standard_error(gap)), standard_error(gap)),
        Cell(f"{lower} of {len(gap)}", float(lower)),
    ]


def _published(part: str) -> dict[str, float]:
    degree = re.search(r"\d+", part)
    return CAVE_REGRET.get(int(degree.group()), {}) if degree else {}
