"""Kernel models: what a richer model than a linear one learns from the same decisions."""

from __future__ import annotations

from typing import Any

from ..compare import method_table, with_gammas
from ..curves import curves_picture
from ..drawing import Gallery
from ..elements import Html, folded_command, join, paragraph, slug, tag
from ..study import Study, part_title, ranked, shaded

TITLE = "Kernel models"
MEASURES = ("decision_loss", "estimate_loss")


def build(study: Study, gallery: Gallery) -> Html | None:
    """A table and curves for each problem."""
    parts = [part for part in study.parts_like("kernels") if study.of(part)]
    if not parts:
        return None
    told = [paragraph("The same decisions, learned by models that are not linear in the context.")]
    for part in parts:
        entries = shaded(ranked(study.of(part), "test", "decision_loss"))
        caption = f"{part_title(part)}: losses when training ends"
        table = method_table(entries, with_gammas(entries, MEASURES), caption, "decision loss test")
        name, models = slug(part), [f"{e.label}: {described(e.runs[0].model)}" for e in entries]
        curves = curves_picture(f"{name}-curves", f"By epoch, {part}", entries, MEASURES)
        told += [
            tag("h3", part_title(part), id=f"part-{name}"),
            table.markup(),
            tag("p", f"Chosen: {'; '.join(models)}.", class_="note"),
            folded_command(study.commands),
            gallery.show(curves) if curves else Html(""),
        ]
    return join(told)


def described(options: dict[str, Any]) -> str:
    """A model in words: its kind, then its options."""
    name = options.get("kind", "unknown")
    rest = [f"{key} {value}" for key, value in options.items() if key != "kind"]
    return f"{name} ({', '.join(rest)})" if rest else str(name)
