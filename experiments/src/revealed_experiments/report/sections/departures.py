"""What differs from the paper; what is not in the table is as published."""

from __future__ import annotations

from ..drawing import Gallery
from ..elements import Html, join, paragraph
from ..study import Study
from ..tables import Column, Row, SortTable

TITLE = "Departures from the paper"
PICTURES = (
    ("pictures", "Warcraft maps", "terrain drawn by us; `--warcraft DIR` reads the original"),
    ("digits", "MNIST, 28 pixels", "scikit-learn's, 12 pixels; `--digits mnist` takes MNIST"),
    ("ties", "pictures as they are", "only pictures with one best decision; `--ties` lets all in"),
    ("network", "ResNet-18, edge costs", "truncated, cell costs; `--published` is the paper's"),
    ("augmentation", "none", "views and shifts where a sweep says so; none with `--published`"),
    ("steps", "constant", "falling in a line to 0; constant with `--published`"),
    ("MOM", "basis of the true costs", "basis from decisions alone"),
)
NONE = (
    "None on the paper's own problems: data, model, start, methods, optimizers, steps, smoothing "
    "and epochs are those of appendix C. Rows that the paper has not (losses of others, our "
    "estimator today, the general form, CaVE's yardstick, fresh seeds) stand beside it under their "
    "own names."
)


def build(study: Study, gallery: Gallery) -> Html | None:
    """The table for pictures, and the sentence that there is none for synthetic data."""
    experiment = study.folder.sweep.get("experiment")
    if experiment == "synthetic":
        return paragraph(NONE)
    if experiment != "vision":
        return None
    columns = [Column("what"), Column("paper"), Column("here")]
    table = SortTable("Departures", columns, [Row(row) for row in PICTURES])
    words = (
        "What was asked of the runs that are not here (the original maps, the paper's network) is "
        "open, not decided."
    )
    return join([table.markup(), paragraph(words)])
