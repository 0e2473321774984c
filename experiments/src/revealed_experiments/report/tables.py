"""Tables that sort by click and keyboard; the sorting itself is in page.js."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from .elements import Html, join, tag, text, words
from .numbers import NONE, fixed, mean, sd


@dataclass(frozen=True)
class Column:
    """A heading; `numeric` columns stand to the right, and start with the least when sorted."""

    heading: str
    numeric: bool = False
    about: str = ""
    """What the heading means, where it is not plain: shown on hovering and read aloud."""
    group: str = ""
    """The heading above it, shared with its neighbors."""

    @property
    def key(self) -> str:
        return f"{self.group} {self.heading}".strip()


@dataclass(frozen=True)
class Cell:
    """What is shown, and what it is sorted by (the text itself if nothing is given)."""

    shown: object
    value: float | str | None = None
    class_: str | None = None


@dataclass(frozen=True)
class Row:
    """Cells, and a class that marks the row as a whole ("ours")."""

    cells: Sequence[Cell | str]
    class_: str | None = None


@dataclass(frozen=True)
class SortTable:
    """Rows under headings, with a caption above and a note below."""

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    note: str = ""
    sorted_by: str = ""
    """The heading by which the rows already stand in ascending order, if any."""

    def markup(self) -> Html:
        """The table in a box of its own that scrolls sideways where the screen is narrow."""
        head = tag("tr", *(_heading(c, c.key == self.sorted_by != "") for c in self.columns))
        top = self._groups() if any(column.group for column in self.columns) else None
        body = tag("tbody", *(_row(row, self.columns) for row in self.rows))
        table = tag("table", tag("thead", top, head), body, class_="sortable")
        box = tag("div", table, class_="scroll", tabindex=0, role="region", aria_label=self.caption)
        note = tag("p", words(self.note), class_="note") if self.note else None
        title = tag("p", words(self.caption), class_="table-title")
        return tag("div", title, box, note, class_="table")

    def _groups(self) -> Html:
        """The row of shared headings."""
        cells = []
        for name, columns in groupby(self.columns, key=lambda column: column.group):
            span = len(list(columns))
            scope = "colgroup" if name else None
            cells.append(tag("th" if name else "td", name, colspan=span, scope=scope))
        return tag("tr", *cells, class_="groups")


def _heading(column: Column, ascending: bool) -> Html:
    mark = tag("span", class_="mark", aria_hidden="true")
    button = tag("button", column.heading, mark, type="button", title=column.about or None)
    return tag(
        "th",
        button,
        scope="col",
        class_="figure-column" if column.numeric else None,
        aria_sort="ascending" if ascending else "none",
        data_kind="number" if column.numeric else "text",
    )


def _row(row: Row, columns: Sequence[Column]) -> Html:
    cells = []
    for k, (cell, column) in enumerate(zip(row.cells, columns, strict=True)):
        cell = cell if isinstance(cell, Cell) else Cell(cell)
        classes = ["figure-column"] if column.numeric else []
        classes += [cell.class_] if cell.class_ else []
        attributes = {"class_": " ".join(classes) or None, "data_value": _sort_value(cell)}
        if k == 0:
            cells.append(tag("th", text(cell.shown), scope="row", **attributes))
        else:
            cells.append(tag("td", text(cell.shown), **attributes))
    return tag("tr", *cells, class_=row.class_)


def _sort_value(cell: Cell) -> str | None:
    if isinstance(cell.value, float) and not math.isfinite(cell.value):
        return ""  # sorts last either way
    if cell.value is None:
        return None if isinstance(cell.shown, Html) or cell.shown != NONE else ""
    return f"{cell.value:.9g}" if isinstance(cell.value, float) else str(cell.value)


def spread(values, places: int = 2, class_: str | None = None) -> Cell:
    """Mean over seeds with its standard deviation behind it, sorted by the mean."""
    middle, wide = mean(values), sd(values)
    shown: object = fixed(middle, places)
    if math.isfinite(wide):
        shown = join([shown, tag("span", f" ± {fixed(wide, places)}", class_="sd")])
    return Cell(shown, middle, class_)


def figure(value: float, places: int = 2, class_: str | None = None) -> Cell:
    """One number, so many places."""
    return Cell(fixed(value, places), float(value), class_)
