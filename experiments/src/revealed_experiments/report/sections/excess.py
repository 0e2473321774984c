"""Excess risk over samples and over steps, beside what the corollaries promise."""

from __future__ import annotations

from typing import Any

from ..curves import plain_log_ticks
from ..drawing import Gallery, Panel, Picture, series
from ..elements import Html, join, paragraph
from ..numbers import fixed
from ..palette import Style
from ..study import Study

TITLE = "Excess risk"
FILE = "excess_risk.json"
"""What `experiments/scripts/excess_risk.py` writes."""
MEASURED = Style("excess-measured", "measured", "#0067b1", True, False)
STATED = Style("excess-stated", "as the corollary falls", "#767c84", False, True)


def build(study: Study, gallery: Gallery) -> Html | None:
    """A panel over training samples and one over steps."""
    content = study.beside(FILE)
    samples, steps = content.get("samples") or [], content.get("steps") or []
    if not samples or not steps:
        return None
    words = (
        "The corollary on samples has a factor 1/μ that is known for as many samples as features "
        "and unknown beyond, so only its slope 1/N is drawn, through the first point. That on "
        "steps has known constants: D²/2T for POCS. "
        f"Over the last steps h falls by {fixed(100 * (1 - content['rate']), 1)} % a step, the "
        "measured rate that stands where the stated one does not hold. Without a ridge the minimum "
        "of h overfits until samples far outnumber features."
    )
    slope = [samples[0]["excess"] * samples[0]["at"] / row["at"] for row in samples]
    promised = [row["promised"] for row in steps]
    panels = [
        _panel("Excess risk on fresh contexts", "training samples", samples, slope),
        _panel("h above its minimum", "steps of POCS", steps, promised),
    ]
    caption = "The paper's paths, five seeds; bars are two standard errors. Axes are logarithmic."
    picture = Picture("excess-risk", TITLE, caption, panels, [MEASURED, STATED])
    commands = [str(content.get("command", "")), *gallery.commands[1:]]
    return join([paragraph(words), Gallery(gallery.folder, commands).show(picture)])


def _panel(title: str, label: str, rows: list[dict[str, Any]], stated: list[float]) -> Panel:
    def draw(axis: Any) -> None:
        at, found = [row["at"] for row in rows], [row["excess"] for row in rows]
        errors = [min(2 * row["error"], 0.95 * row["excess"]) for row in rows]
        axis.errorbar(
            at, found, yerr=[errors, [2 * row["error"] for row in rows]], color=MEASURED.color,
            lw=MEASURED.width, elinewidth=1.0, marker="o", ms=4, zorder=5,
        )  # fmt: skip
        axis.plot(
            at, stated, color=STATED.color, lw=STATED.width, ls=STATED.dashes,
            gid=series(STATED, "line"),
        )  # fmt: skip
        axis.set_xscale("log")
        axis.set_yscale("log")
        plain_log_ticks(axis, "x")
        axis.set_xlabel(label)

    return Panel(draw, title)
