"""Samples with the decision observed, the one predicted, and the costs learned, side by side."""

from __future__ import annotations

from ..drawing import Gallery
from ..elements import Html, folded_command, join, paragraph, slug, tag
from ..palette import NEUTRAL, Style
from ..study import Study
from ..vision.albums import Album
from ..vision.parts import shown, standing_for_ours, task_title, tasks
from ..vision.poster import poster
from ..vision.tiles import sample_tiles

TITLE = "Seen, predicted, learned"
MOST = 3
"""Samples of a task; more would only make the page longer."""


def build(study: Study, gallery: Gallery) -> Html | None:
    """An album for each task, with a button for each method."""
    found = {album.part: album for album in study.folder.albums}
    told = [_album(study, gallery, found[part]) for part in tasks(study) if part in found]
    if not told:
        return None
    words = (
        "Test samples, none of which any method was trained on. Costs are dark where cheap and "
        "bright where dear, each on a scale of its own: decisions reveal no scale. With learned "
        "costs stands their rank correlation with the true ones. White dashes are the path "
        "observed, and orange pairs are not among those observed. Pick a method to see its view."
    )
    return join([paragraph(words), *told])


def _album(study: Study, gallery: Gallery, album: Album) -> Html:
    entries = [e for e in shown(study, album.part) if e.label in album.labels]
    first = standing_for_ours(entries)
    entries.sort(key=lambda entry: entry is not first)
    styles = {e.label: e.style for e in entries}
    for label in album.labels:  # not among the runs shown, but there to be seen
        styles.setdefault(label, Style(slug(label), label, NEUTRAL, False, False))
    name = f"samples-{slug(album.part)}"
    samples = [
        sample_tiles(sample, f"{name}-{k}", styles) for k, sample in enumerate(album.samples[:MOST])
    ]
    colors = {label: style.color for label, style in styles.items()}
    files = gallery.save(name, lambda: poster(album, colors, MOST))
    return tag(
        "div",
        tag("h3", task_title(album.part), id=f"album-{slug(album.part)}"),
        _picks(list(styles.values())),
        tag("ol", *samples, class_="samples"),
        folded_command(study.commands, files),
        class_="album",
    )


def _picks(styles: list[Style]) -> Html:
    buttons = []
    for k, style in enumerate(styles):
        look = f"--key: {style.color_variable}"
        kind = "ours" if style.ours else ""
        swatch = tag("span", class_="swatch dot", style=look, aria_hidden="true")
        pressed = "true" if k == 0 else "false"
        buttons.append(
            tag(
                "button",
                swatch,
                style.label,
                type="button",
                class_=f"key pick {kind}".strip(),
                style=look,
                data_method=style.slug,
                aria_pressed=pressed,
            )
        )
    return tag("div", *buttons, class_="legend", role="group", aria_label="Method shown")
