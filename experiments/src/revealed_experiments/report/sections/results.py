"""Every method on every problem: a ranking, a table and the curves of training."""

from __future__ import annotations

from ..compare import HEADINGS, method_table, with_gammas
from ..curves import curves_picture
from ..dots import dots_panel
from ..drawing import Gallery, Picture
from ..elements import Html, folded_command, join, slug, tag
from ..paired import paired_table
from ..study import Entry, Study, one_for_each_label, part_title, ranked
from ..vision.parts import KINDS

TITLE = "Results by problem"
MEASURES = ("decision_loss", "estimate_loss")
ELSEWHERE = ("margins", "kernels", "cave", *KINDS)
"""Parts with a section of their own."""
FRESH = "Fresh seeds with the settings chosen on the paper's five; verdicts rest on these."
ABOUT = {
    "paper path": "Shortest paths on the right-down 5×5 grid, after the paper's appendix C.",
    "paper knapsack": "Fractional knapsacks in the paper's standard form: 21 costs are predicted, "
    "of items and of slacks, and slacks count in the decision loss.",
    "seeds path": FRESH,
    "seeds knapsack": FRESH,
    "general knapsack": "Ours, not the paper's: the same values with no slack to predict.",
}


def build(study: Study, gallery: Gallery) -> Html | None:
    """All parts that no other section tells of, those of experiments yet unknown among them."""
    parts = [part for part in study.parts if not part.startswith(ELSEWHERE)]
    told = [_part(study, gallery, part) for part in parts if study.of(part)]
    return join(told) if told else None


def _part(study: Study, gallery: Gallery, part: str) -> Html:
    entries = ranked(study.of(part), "test", "estimate_loss")
    name = slug(part)
    caption = f"{part_title(part)}: losses when training ends"
    table = method_table(entries, with_gammas(entries, MEASURES), caption, "estimate loss test")
    paired = paired_table(study, part, entries)
    drawn = one_for_each_label(entries)
    curves = curves_picture(f"{name}-curves", f"Losses by epoch, {part}", drawn, MEASURES)
    return join(
        [
            tag("h3", part_title(part), id=f"part-{name}"),
            tag("p", ABOUT[part]) if part in ABOUT else None,
            gallery.show(ranking(f"{name}-ranking", part, entries, MEASURES[::-1])),
            table.markup(),
            folded_command(study.commands),
            *([paired.markup(), folded_command(study.commands)] if paired else []),
            gallery.show(curves) if curves else None,
        ]
    )


def ranking(name: str, part: str, entries: list[Entry], measures: tuple[str, ...]) -> Picture:
    """A dot for each method, a panel for each measure on test data; all in one order."""
    panels = []
    for measure in measures:
        scale = 100.0 if measure == "relative_regret" else 1.0
        words = HEADINGS.get(measure, measure.replace("_", " "))
        panels.append(
            dots_panel(
                f"Test {words}",
                entries,
                lambda entry, m=measure, s=scale: s * entry.final("test", m),
                "lower is better",
            )
        )
    caption = (
        "Dot: mean over seeds; line: one standard deviation to either side; ticks: seeds. "
        "Open dots: needs true costs."
    )
    return Picture(name, f"Methods ranked on {part}", caption, panels)
