"""Differences seed by seed: which method is surely below which, and where it cannot be said."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .claims import ESTIMATE, TODAY, our_erm
from .compare import method_cell, needs_cell, row_class
from .elements import tag
from .numbers import NONE, fixed, mean, places_for, signed, standard_error
from .study import Entry, Study, differences, part_title
from .tables import Cell, Column, Row, SortTable
from .verdicts import interval

FEWEST = 3
"""Seeds below which an interval says nothing."""
WORDS = {True: ("lower", "good"), False: ("higher", "bad"), None: ("cannot be told", "unsure")}


def paired_table(study: Study, part: str, entries: Sequence[Entry]) -> SortTable | None:
    """Our estimator today and the paper's ERM less each method, in test estimate loss."""
    today = next((e for e in entries if e.label == TODAY), None)
    standing = [("our estimator", today), ("ERM by Armijo", our_erm(study, part))]
    ours = [(name, e) for name, e in standing if e is not None and len(e.runs) >= FEWEST]
    if not ours or len(entries) < 2:
        return None
    columns = [Column("method"), Column("needs true costs"), Column("estimate loss", True)]
    for name, _ in ours:
        group = f"{name} less this"
        columns += [
            Column("difference", True, "mean of the paired differences", group),
            Column("s.e.", True, "standard error of that mean", group),
            Column("ours is", False, "by the 95% interval of the mean", group),
        ]
    places = places_for(np.array([mean(entry.final(*ESTIMATE)) for _, entry in ours]))
    rows = []
    for entry in entries:
        value = mean(entry.final(*ESTIMATE))
        cells: list[Cell | str] = [method_cell(entry), needs_cell(entry)]
        cells.append(Cell(fixed(value, places), value))
        for _, each in ours:
            cells += _difference(each, entry, places)
        rows.append(Row(cells, row_class(entry)))
    note = (
        "Test estimate loss, seed by seed. Lower or higher where the 95% interval of the mean "
        "difference (Student's t) leaves out 0."
    )
    caption = f"{part_title(part)}: paired differences over {len(ours[0][1].runs)} seeds"
    return SortTable(caption, columns, rows, note, "estimate loss")


def _difference(ours: Entry, other: Entry, places: int) -> list[Cell | str]:
    if other is ours:
        return [Cell(NONE, np.nan), Cell(NONE, np.nan), Cell(NONE, "")]
    gaps = differences(ours, other, *ESTIMATE)
    low, high = interval(gaps)
    words, class_ = WORDS[True if high < 0 else False if low > 0 else None]
    error = standard_error(gaps)
    chip = tag("span", words, class_=f"verdict {class_}")
    return [
        Cell(signed(mean(gaps), places), mean(gaps)),
        Cell(fixed(error, places), error),
        Cell(chip, words),
    ]
