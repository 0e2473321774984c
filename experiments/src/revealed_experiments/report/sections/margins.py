"""The margin ablation, beside the paper's table and a run of its authors' program."""

from __future__ import annotations

import math

import numpy as np

from ...bench.published import PAPER, PAPER_TABLE, REFERENCE_RUN
from ..curves import curves_picture
from ..drawing import Gallery
from ..elements import Html, folded_command, join, paragraph, slug, tag
from ..numbers import number
from ..study import Entry, Study, part_title, shaded
from ..tables import Cell, Column, Row, SortTable, figure, spread

TITLE = "The margin"
MEASURES = ("decision_loss", "estimate_loss")


def build(study: Study, gallery: Gallery) -> Html | None:
    """A table and curves for each problem of the ablation."""
    parts = [part for part in study.parts_like("margins") if study.of(part)]
    if not parts:
        return None
    intro = (
        f"Decision loss by margin, beside the table in {PAPER}, and beside a run of its authors' "
        "program on two other draws (mean of both). All three rest on different draws of the same "
        "generator: levels differ, the effect of the margin should not."
    )
    return join([paragraph(intro), *(_part(study, gallery, part) for part in parts)])


def _part(study: Study, gallery: Gallery, part: str) -> Html:
    entries = sorted(study.of(part), key=lambda e: -_margin(e))
    kind = "knapsack" if "knapsack" in part else "sp"
    name = slug(part)
    curves = curves_picture(f"{name}-curves", f"By epoch, {part}", shaded(entries), MEASURES)
    return join(
        [
            tag("h3", part_title(part), id=f"part-{name}"),
            _table(part, entries, kind).markup(),
            folded_command(study.commands),
            gallery.show(curves) if curves else None,
        ]
    )


def _table(part: str, entries: list[Entry], kind: str) -> SortTable:
    columns = [Column("margin", True)]
    for split in ("train", "test"):
        names = ("ours", "paper", "program")
        columns += [Column(name, True, "", f"{split} decision loss") for name in names]
    columns += [Column("ours", True, "", "test estimate loss")]
    rows = []
    for entry in entries:
        margin = _margin(entry)
        paper = PAPER_TABLE[kind].get(margin, (math.nan, math.nan))
        program = _program(kind, margin)
        cells: list[Cell | str] = [Cell(f"{margin:g}", margin)]
        for k, split in enumerate(("train", "test")):
            cells += [spread(entry.final(split, "decision_loss"))]
            cells += [figure(paper[k]), figure(program[k])]
        cells += [spread(entry.final("test", "estimate_loss"))]
        rows.append(Row(cells))
    note = "Mean ± standard deviation over seeds. Paper: its table; program: its authors' code."
    return SortTable(f"{part_title(part)}: losses when training ends", columns, rows, note)


def _program(kind: str, margin: float) -> np.ndarray:
    """Decision loss (train, test) of the authors' program, mean over its draws."""
    runs = [by for name, by in REFERENCE_RUN.items() if name.startswith(kind)]
    found = [by[margin][:2] for by in runs if margin in by]
    return np.mean(found, axis=0) if found else np.array([math.nan, math.nan])


def _margin(entry: Entry) -> float:
    return number(entry.config["method"].get("margin", 1.0))
