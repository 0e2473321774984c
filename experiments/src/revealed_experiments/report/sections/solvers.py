"""POCS and ERM: two ways to the same model."""

from __future__ import annotations

import numpy as np

from ..claims import our_erm, our_pocs
from ..compare import HEADINGS
from ..drawing import Gallery
from ..elements import Html, folded_command, join, paragraph
from ..numbers import duration, listed, mean, places_for, with_error
from ..study import Study, differences, optimiser_name
from ..tables import Cell, Column, Row, SortTable, spread

TITLE = "POCS and ERM"
MEASURES = ("decision_loss", "estimate_loss")


def build(study: Study, gallery: Gallery) -> Html | None:
    """Both ways' losses, and their difference seed by seed."""
    rows, steps = [], []
    for part in study.parts:
        erm, pocs = our_erm(study, part), our_pocs(study, part)
        if erm is None or pocs is None or part.startswith(("margins", "kernels")):
            continue
        steps.append(f"{optimiser_name(erm.runs[0])} on {part}")
        for split in ("train", "test"):
            for measure in MEASURES:
                a, b = pocs.final(split, measure), erm.final(split, measure)
                gap, n = differences(pocs, erm, split, measure), places_for(np.array([mean(b)]))
                words = f"{split} {HEADINGS[measure]}"
                difference = Cell(with_error(gap, n), mean(gap))
                cells = [part, words, spread(a, n), spread(b, n), difference]
                rows.append(Row(cells))
        times = [float(np.median(entry.epoch_seconds())) for entry in (pocs, erm)]
        shown = [Cell(duration(t), t) for t in times]
        rows.append(Row([part, "time of an epoch", *shown, Cell("", np.nan)]))
    if not rows:
        return None
    columns = [Column("problem"), Column("measure"), Column("POCS", True), Column("ERM", True)]
    columns += [Column("POCS less ERM ± s.e.", True, "seed by seed, with its standard error")]
    note = f"Steps of ERM, by validation: {listed(steps)}."
    table = SortTable("POCS beside ERM when training ends", columns, rows, note)
    words = (
        "Alternating projections (POCS) and first-order steps on the squared distance (ERM) seek "
        "the same model; what is left between them is how far each has come."
    )
    return join([paragraph(words), table.markup(), folded_command(study.commands)])
