"""Seconds of an epoch on the paper's own route, CVXPY one sample at a time, beside ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..curves import plain_log_ticks
from ..drawing import Gallery, Panel, Picture, series
from ..elements import Html, folded_command, join, paragraph
from ..numbers import duration, number
from ..palette import Style
from ..study import Study
from ..tables import Cell, Column, Row, SortTable

TITLE = "Time on the paper's route"
FILE = "paper_route.json"
"""What `experiments/scripts/paper_route_epochs.py` writes."""
STYLES = {
    "ECOS": Style("route-ecos", "CVXPY + ECOS", "#9f5500", False, False),
    "OSQP": Style("route-osqp", "CVXPY + OSQP", "#3c8d2e", False, False),
    "ours": Style("route-ours", "ours", "#0067b1", True, False),
}
AXES = {"n": "costs to predict", "samples": "training samples"}


def build(study: Study, gallery: Gallery) -> Html | None:
    """Two panels, by dimension and by samples, and the table behind them."""
    content = study.beside(FILE)
    rows = content.get("rows") or []
    if not rows:
        return None
    command = [str(content.get("command", ""))]
    words = (
        "An epoch is a projection of every sample and a least-squares step. The paper's route is a "
        "CVXPY problem compiled once, its parameters filled in sample by sample, solved at the "
        "solver's default tolerance; ours ends with a residual of at most 1e-8. Processor seconds, "
        "one thread."
    )
    panels = [_panel(axis, _along(rows, axis)) for axis in AXES]
    caption = "Both axes are logarithmic. Left: 100 samples; right: 5×5 paths with 40 costs."
    picture = Picture("paper-route", TITLE, caption, panels, list(STYLES.values()))
    shown = Gallery(gallery.folder, [*command, *gallery.commands[1:]]).show(picture)
    return join([paragraph(words), shown, _table(rows).markup(), folded_command(command)])


def _along(rows: Sequence[dict[str, Any]], axis: str) -> list[dict[str, Any]]:
    """The rows that differ in this and in nothing else, from small to large."""
    other = next(name for name in AXES if name != axis)
    usual = max({row[other] for row in rows}, key=lambda v: sum(row[other] == v for row in rows))
    return sorted((row for row in rows if row[other] == usual), key=lambda row: row[axis])


def _panel(axis_name: str, rows: Sequence[dict[str, Any]]) -> Panel:
    def draw(axis: Any) -> None:
        for name, style in STYLES.items():
            axis.plot(
                [row[axis_name] for row in rows],
                [number(row.get(name)) for row in rows],
                color=style.color, lw=style.width, marker="o", ms=4, zorder=style.layer,
                gid=series(style, "line"),
            )  # fmt: skip
        axis.set_xscale("log")
        axis.set_yscale("log")
        plain_log_ticks(axis, "x")
        axis.set_xlabel(AXES[axis_name])

    return Panel(draw, f"Seconds of an epoch by {AXES[axis_name]}")


def _table(rows: Sequence[dict[str, Any]]) -> SortTable:
    columns = [Column("costs", True), Column("samples", True)]
    columns += [Column(style.label, True) for style in STYLES.values()]
    columns += [Column(f"{STYLES[name].label} over ours", True) for name in ("ECOS", "OSQP")]
    lines = []
    for row in rows:
        times = [number(row.get(name)) for name in STYLES]
        cells: list[Cell | str] = [Cell(f"{row[name]:,}", row[name]) for name in AXES]
        cells += [Cell(duration(t), t) for t in times]
        cells += [Cell(f"{t / times[-1]:,.0f}×", t / times[-1]) for t in times[:-1]]
        lines.append(Row(cells))
    return SortTable("Time of an epoch", columns, lines)
