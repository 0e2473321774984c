"""What differs from the paper; what is not in the table is as published."""

from __future__ import annotations

from collections.abc import Sequence

from ...bench.published import MARGINS
from ...bench.synthetic.experiments import PAPER_SEEDS, PAPER_SIZES, PARTS, SMOOTHING, STEPS
from ..drawing import Gallery
from ..elements import Html, join, paragraph
from ..study import Study
from ..tables import Cell, Column, Row, SortTable

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


def _protocol() -> list[tuple[str, str]]:
    """What is run on the paper's own problems, with the settings as the sweep has them."""
    steps, smoothing = (_values(each) for each in (STEPS, SMOOTHING))
    sizes = " / ".join(map(str, PAPER_SIZES))
    part = next(each for each in PARTS if each.name == "paper path")
    return [
        ("paths", "5×5 grid, right-down, 40 costs of degree 4 without noise"),
        ("knapsack", "standard form: costs of 10 items, the budget's slack and 10 caps predicted"),
        ("budget", "uniform from the largest weight to the sum less a share of the largest"),
        ("decision loss", "over all entries, slacks among them"),
        ("samples", f"{sizes} to train, validate and test; {len(PAPER_SEEDS)} seeds"),
        ("model", "linear, no intercept beside the feature that is always 1, random start"),
        ("training", f"{part.epochs} epochs of the full batch"),
        ("ERM", f"Armijo as claimed; SGD, Adam, AdaGrad with steps {steps} as rows of their own"),
        ("rivals", "Adam with the same steps; MOM with Armijo too"),
        ("smoothing", f"of BB and QPTL searched jointly with the step: {smoothing}"),
        ("MOM", "basis of the true costs as claimed; basis from decisions as a row of its own"),
        ("margins", f"{_values(MARGINS)}, by POCS"),
        ("kernels", "linear, polynomial, Gaussian"),
        ("choice", "least mean decision loss on validation data; test data have no say"),
    ]


def _values(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)


BESIDE = (
    "Rows that the paper does not have stand beside it under their own names and in no claim of "
    "its: losses of others, our estimator today, the general form, CaVE's yardstick. Fresh seeds "
    "repeat the chosen settings, so that verdicts rest on more than five draws."
)


def build(study: Study, gallery: Gallery) -> Html | None:
    """What was run and how it departs: nowhere on synthetic data, in a few points on pictures."""
    experiment = study.folder.sweep.get("experiment")
    if experiment == "synthetic":
        rows = [
            Row([what, Cell(protocol, class_="words"), "none"]) for what, protocol in _protocol()
        ]
        heads = [Column("what"), Column("protocol"), Column("departure")]
        return join([SortTable("Protocol of appendix C", heads, rows).markup(), paragraph(BESIDE)])
    if experiment != "vision":
        return None
    columns = [Column("what"), Column("paper"), Column("here")]
    rows = [Row([what, *(Cell(each, class_="words") for each in both)]) for what, *both in PICTURES]
    table = SortTable("Departures", columns, rows)
    words = (
        "What was asked of the runs that are not here (the original maps, the paper's network) is "
        "open, not decided."
    )
    return join([table.markup(), paragraph(words)])
