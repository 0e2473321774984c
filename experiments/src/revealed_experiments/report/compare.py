"""Tables that set methods side by side, for the sections that do so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from .elements import join, tag
from .numbers import duration, mean, places_for
from .study import Entry
from .tables import Cell, Column, Row, SortTable, spread

GAMMAS = ("gamma", "gamma_relative")
HEADINGS = {
    "decision_loss": "decision loss",
    "estimate_loss": "estimate loss",
    "relative_regret": "regret, %",
    "gamma": "Γ",
    "gamma_relative": "Γ free of scale",
}
ABOUT = {
    "decision_loss": "|x(c) − x*|², the squared distance of decisions; needs no true cost",
    "estimate_loss": "⟨c*, x(c) − x*⟩, the cost lost by deciding under the learned costs",
    "relative_regret": "sum of costs lost over the sum of optimal costs, in per cent",
    "gamma": "the paper's suboptimality at margin 1; smaller where costs are longer",
    "gamma_relative": "the same with every cost brought to the scale of the margin",
}


def method_cell(entry: Entry, *, badge: bool = False) -> Cell:
    """A method's name with its color before it, and on request a badge if it needs true costs."""
    look = f"--key: {entry.style.color_variable}"
    kind = "swatch dot open" if entry.needs_true_costs else "swatch dot"
    parts = [tag("span", class_=kind, style=look, aria_hidden="true"), entry.label]
    if badge and entry.needs_true_costs:
        parts += [" ", tag("span", "true costs", class_="badge")]
    return Cell(join(parts), entry.label.lower())


def needs_cell(entry: Entry) -> Cell:
    """Whether a method needs true costs, in words."""
    if entry.needs_true_costs:
        return Cell(tag("span", "yes", class_="badge"), "yes")
    return Cell("no", "no")


def row_class(entry: Entry) -> str | None:
    """Marks our rows."""
    return "ours" if entry.ours else None


def by_label(entries: Iterable[Entry]) -> list[list[Entry]]:
    """The entries of each method together, in the order in which methods first come."""
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(entry.label, []).append(entry)
    return list(groups.values())


def with_gammas(entries: Iterable[Entry], measures: Sequence[str]) -> tuple[str, ...]:
    """The measures, and those forms of the paper's Gamma that the runs have."""
    entries = list(entries)
    measured = [m for m in GAMMAS if any(np.isfinite(e.final("test", m)).all() for e in entries)]
    return (*measures, *measured)


def measure_columns(measures: Sequence[str]) -> list[Column]:
    """A column on training and one on test data for each measure."""
    return [
        Column(split, True, ABOUT.get(m, ""), HEADINGS.get(m, m.replace("_", " ")))
        for m in measures
        for split in ("train", "test")
    ]


def method_table(
    entries: Sequence[Entry], measures: Sequence[str], caption: str, sorted_by: str = ""
) -> SortTable:
    """Every method's losses with spread over seeds, its time, and whether it needs true costs."""
    columns = [Column("method"), Column("needs true costs"), *measure_columns(measures)]
    columns += [Column("epoch", True, "training time of an epoch, median over seeds")]
    columns += [Column("seeds", True)]
    places = {
        (m, split): places_for(np.array([_scaled(e, split, m).mean() for e in entries]))
        for m in measures
        for split in ("train", "test")
    }
    leaders = {key: _leader(entries, *key) for key in places}
    rows = []
    for entry in entries:
        cells: list[Cell | str] = [method_cell(entry), needs_cell(entry)]
        for (m, split), n in places.items():
            class_ = "best" if entry is leaders[m, split] else None
            cells.append(spread(_scaled(entry, split, m), n, class_))
        seconds = float(np.median(entry.epoch_seconds()))
        cells += [Cell(duration(seconds), seconds), Cell(str(len(entry.runs)), len(entry.runs))]
        rows.append(Row(cells, row_class(entry)))
    note = "Mean ± standard deviation over seeds. Bold: the least of those that see no true cost."
    return SortTable(caption, columns, rows, note, sorted_by)


def _scaled(entry: Entry, split: str, measure: str) -> np.ndarray:
    return entry.final(split, measure) * (100.0 if measure == "relative_regret" else 1.0)


def _leader(entries: Sequence[Entry], measure: str, split: str) -> Entry | None:
    scored = [(mean(e.final(split, measure)), e) for e in entries if not e.needs_true_costs]
    scored = [(score, e) for score, e in scored if np.isfinite(score)]
    return min(scored, key=lambda pair: pair[0])[1] if scored else None
