"""Losses by epoch on every task, as in the paper's figures, and a table of how training ends."""

from __future__ import annotations

import numpy as np

from ...bench.vision.tables import changes_in_words, is_averaged
from ..compare import ABOUT, method_cell, row_class
from ..curves import CAPTION, NAMES, SCALES, curve_panel
from ..drawing import Gallery, Picture
from ..elements import Html, details, folded_command, join, paragraph, slug, tag
from ..numbers import mean, places_for
from ..study import Entry, Study
from ..tables import Cell, Column, Row, SortTable, spread
from ..vision.parts import short_title, shown, task_title, tasks

TITLE = "Results by task"
CURVES = ("decision_loss", "estimate_loss")
# Measure -> heading, what it means, whether the largest is best.
MEASURES = {
    "decision_loss": ("decision loss", ABOUT["decision_loss"], False),
    "estimate_loss": ("estimate loss", ABOUT["estimate_loss"], False),
    "relative_regret": ("regret, %", ABOUT["relative_regret"], False),
    "optimal": ("optimal, %", "decisions whose true cost is the least there is", True),
    "exact": ("the same, %", "decisions equal to the one observed", True),
}
SIZE = {"width": 4.1, "height": 3.0}


def build(study: Study, gallery: Gallery) -> Html | None:
    """Figures that go across all tasks, then a table for each."""
    entries = {part: shown(study, part) for part in tasks(study)}
    if not entries:
        return None
    words = (
        "A network reads the picture and gives costs; an exact solver decides under them. Decision "
        "loss compares that decision with the one observed, estimate loss prices the difference "
        "with the true costs. “Ours” never sees a cost."
    )
    told: list[Html | None] = [paragraph(words)]
    told += [_curves(gallery, entries, measure, "test") for measure in CURVES]
    training = [_curves(gallery, entries, measure, "train") for measure in CURVES]
    if any(training):
        told.append(details("The same on training data", *(p for p in training if p)))
    for part, found in entries.items():
        told += [
            tag("h3", task_title(part), id=f"part-{slug(part)}"),
            _table(part, found).markup(),
            folded_command(study.commands),
        ]
    return join(told)


def _curves(
    gallery: Gallery, entries: dict[str, list[Entry]], measure: str, split: str
) -> Html | None:
    """One panel for each task."""
    panels, styles = [], {}
    for part, found in entries.items():
        title = f"{short_title(part)}, {split} {NAMES[measure]}"
        if drawn := curve_panel(title, found, split, measure, **SIZE):
            panels.append(drawn[0])
            styles |= {style.label: style for style in drawn[1]}
    if not panels:
        return None
    words = f"{split.capitalize()} {NAMES[measure]} by epoch"
    caption = f"{words}. {CAPTION}"
    if any(is_averaged(entry.config) for found in entries.values() for entry in found):
        caption += (
            " Here pictures are seen as they are; in the tables, where training has ended, from "
            "all sides."
        )
    name = f"{split}-{slug(NAMES[measure])}"
    return gallery.show(Picture(name, words, caption, panels, list(styles.values()), columns=3))


def _table(part: str, entries: list[Entry]) -> SortTable:
    """Every measure on test data, and the decision loss on training data for how well it fits."""
    places = [("test", m) for m in MEASURES] + [("train", "decision_loss")]
    columns = [Column("method")]
    columns += [Column(MEASURES[m][0], True, MEASURES[m][1], split) for split, m in places]
    columns += [Column("seeds", True)]
    entries = sorted(entries, key=lambda e: np.nan_to_num(_final(e, *_FIRST).mean(), nan=np.inf))
    leaders = {place: _leaders(entries, *place) for place in places}
    rows = []
    for entry in entries:
        cells: list[Cell | str] = [method_cell(entry, badge=True)]
        for place in places:
            values = np.array([_final(e, *place).mean() for e in entries])
            overall, blind = leaders[place]
            class_ = "best" if entry is blind else None
            class_ = f"{class_ or ''} first".strip() if entry is overall else class_
            cells.append(spread(_final(entry, *place), _places(place[1], values), class_))
        cells.append(Cell(str(len(entry.runs)), len(entry.runs)))
        rows.append(Row(cells, row_class(entry)))
    note = (
        "Mean ± standard deviation over seeds. Bold: best of those that see no true cost; ★: best "
        "of all. Optimal counts a decision that costs the least, whichever of several it is. "
        "Training figures are of a fixed part of the training data."
    )
    for words in changes_in_words(entry.config for entry in entries):
        note += f" {words[0].upper()}{words[1:]}."
    caption = f"When training ends: {part}"
    return SortTable(caption, columns, rows, note, "test decision loss")


_FIRST = ("test", "decision_loss")


def _places(measure: str, values: np.ndarray) -> int:
    """Shares in tenths of a per cent, which is what a thousand samples can tell."""
    return 1 if measure in ("optimal", "exact") else min(places_for(values), 3)


def _final(entry: Entry, split: str, measure: str) -> np.ndarray:
    return SCALES.get(measure, 1.0) * entry.final(split, measure)


def _leaders(entries: list[Entry], split: str, measure: str) -> tuple[Entry | None, Entry | None]:
    """The best of all, and the best of those that see no true cost."""
    sign = -1.0 if MEASURES[measure][2] else 1.0
    scored = [(sign * mean(e.final(split, measure)), e) for e in entries]
    scored = sorted(((s, e) for s, e in scored if np.isfinite(s)), key=lambda pair: pair[0])
    blind = [e for _, e in scored if not e.needs_true_costs]
    return (scored[0][1] if scored else None), (blind[0] if blind else None)
