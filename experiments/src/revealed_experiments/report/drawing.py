"""Pictures: panels drawn by matplotlib, put into the page as markup and beside it as files.

On the page every panel is an SVG of its own, so that a narrow screen can stack them and text stays
readable; on disk a picture is one PNG and one SVG with all panels and a legend. Text stays text,
and colors become variables of the style sheet, so that the same drawing serves a dark screen.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .elements import Html, folded_command, printable, tag, words
from .palette import DARK, INK, RULE, SOFT, Style, variable

SETTINGS: dict[str, Any] = {
    "svg.fonttype": "none",  # text as text: it can be selected, searched, read aloud
    "text.parse_math": False,  # a label may contain a dollar sign
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib: the same layout everywhere
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 8,
    "axes.labelcolor": SOFT,
    "axes.titlecolor": INK,
    "axes.edgecolor": RULE,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "xtick.minor.size": 0,
    "ytick.minor.size": 0,
    "text.color": INK,
    "legend.frameon": False,
    "path.simplify_threshold": 0.25,
}
BOTTOM, TOP, RIGHT, LEGEND_WIDTH = 0.5, 0.35, 0.12, 2.45  # inches
_SERIES = re.compile(r'id="series:([a-z0-9-]+):([a-z]+)"')


@dataclass(frozen=True)
class Panel:
    """One pair of axes: `draw` puts everything on it, size in inches."""

    draw: Callable[[Any], None]
    title: str
    width: float = 4.8
    height: float = 3.0
    left: float = 0.5
    """Room for what stands to the left of the axes."""


@dataclass(frozen=True)
class Picture:
    """Panels that belong together under one caption and one legend."""

    name: str
    """Of its files, and unlike any other's."""
    title: str
    """What it shows, for those who cannot see it."""
    caption: str
    panels: Sequence[Panel]
    keys: Sequence[Style] = ()
    columns: int = 2
    """Panels in a row, where there is room."""


@dataclass(frozen=True)
class Gallery:
    """Shows pictures on the page and leaves each of them in `folder` as PNG and SVG."""

    folder: Path
    commands: Sequence[str]

    def show(self, picture: Picture) -> Html:
        """The markup of a picture; its files are written on the way."""
        with _settings(picture.name):
            drawn = [_inline(panel, picture, k) for k, panel in enumerate(picture.panels)]
            files = self.save(picture.name, lambda: _together(picture))
        caption = tag("figcaption", words(picture.caption))
        panels = tag("div", *drawn, class_="panels", data_columns=picture.columns)
        made = folded_command(self.commands, files)
        return tag("figure", _legend(picture.keys), panels, caption, made, id=picture.name)

    def save(self, name: str, drawn: Callable[[], Any]) -> str:
        """Write a figure of matplotlib, once drawn, as SVG and PNG; returns where, in words."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / name
        with _settings(name):
            figure = drawn()
            figure.savefig(f"{path}.svg", facecolor="white", metadata=_NOTHING)
            figure.savefig(f"{path}.png", facecolor="white", dpi=150)
        return f"As files: `{self.folder.name}/{name}.svg` and `.png`."


# Left out, so that the same runs give the same bytes on any day.
_NOTHING: dict[str, Any] = {"Date": None, "Creator": None, "Format": None, "Type": None}


def tidy(label: str, longest: int = 28) -> str:
    """A label that fits into a figure: one line, not too long, nothing that cannot be drawn."""
    line = " ".join(printable(label).split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def series(style: Style, what: str) -> str:
    """The mark by which the page finds what belongs to a method in a drawing."""
    return f"series:{style.slug}:{what}"


@contextmanager
def _settings(salt: str) -> Iterator[None]:
    import matplotlib

    settings: Any = {**SETTINGS, "svg.hashsalt": salt}
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        # A label may use a script that the font lacks; the browser has others.
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        yield


def _draw(panel: Panel, figure: Any, x: float, y: float) -> None:
    """Draw a panel with its lower left corner at (x, y), in inches.

    Margins are set, not found by a layout engine: that would draw everything twice, for the
    widths of a font that the page does not use.
    """
    wide, high = figure.get_size_inches()
    width, height = panel.width - panel.left - RIGHT, panel.height - BOTTOM - TOP
    place = (x + panel.left) / wide, (y + BOTTOM) / high, width / wide, height / high
    axis = figure.add_axes(place)
    panel.draw(axis)
    axis.set_title(panel.title)


def _inline(panel: Panel, picture: Picture, k: int) -> Html:
    """One panel as markup that can stand beside others on the page."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(panel.width, panel.height))
    _draw(panel, figure, 0.0, 0.0)
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata=_NOTHING)
    title = f"{picture.title}: {panel.title}"
    return Html(_for_page(buffer.getvalue(), f"{picture.name}-{k}", title))


def _for_page(svg: str, prefix: str, title: str) -> str:
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<(metadata|style)\b.*?</\1>|<!--.*?-->", "", body, flags=re.DOTALL)
    size = re.search(r'viewBox="[^"]*"', body)
    opening = tag("svg", class_="panel", role="img", aria_label=title)
    opening = str(opening).replace("></svg>", f" {size.group() if size else ''}>")
    body = re.sub(r"<svg\b[^>]*>", lambda _: opening, body, count=1)
    body = _SERIES.sub(r'class="\2" data-series="\1"', body)
    body = _own_ids(body, prefix)
    body = re.sub(r' (d|x|y|transform|points)="([^"]*)"', _rounded, body)
    body = re.sub(r'style="([^"]*)"', _themed, body)
    return re.sub(r">\s+<", "><", body)


def _own_ids(body: str, prefix: str) -> str:
    """Ids that nothing refers to go; the others get a prefix, so that drawings do not clash."""
    used = set(re.findall(r'(?:url\(#|href="#)([^")]+)', body))

    def renamed(match: re.Match[str]) -> str:
        return f' id="{prefix}-{match[1]}"' if match[1] in used else ""

    body = re.sub(r' id="([^"]*)"', renamed, body)
    body = body.replace("xlink:href=", "href=").replace('href="#', f'href="#{prefix}-')
    return body.replace("url(#", f"url(#{prefix}-")


def _rounded(match: re.Match[str]) -> str:
    """Hundredths of a point are finer than any screen, and shorter than matplotlib's millionths."""
    shorter = re.sub(r"(\.\d\d)\d+", r"\1", match[2])
    return f' {match[1]}="{shorter}"'


def _themed(match: re.Match[str]) -> str:
    """Colors as variables, and the page's own font."""
    style = re.sub(
        r"#[0-9a-f]{6}", lambda c: f"var({variable(c[0])})" if c[0] in DARK else c[0], match[1]
    )
    style = re.sub(r"font-family:[^;]*;?\s*", "", style)
    style = re.sub(
        r"font: ((?:[a-z0-9]+ )*)([\d.]+px)[^;]*", r"font-size: \2; font-weight: \1", style
    )
    return f'style="{style}"'


def _legend(keys: Sequence[Style]) -> Html | None:
    """A button for each method; pressing one brings its curves out."""
    if not keys:
        return None
    buttons = []
    for key in keys:
        look = f"--key: {key.color_variable}"
        kind = " ".join(
            name for name, is_so in (("ours", key.ours), ("dashed", key.needs_true_costs)) if is_so
        )
        swatch = tag("span", class_=f"swatch {kind}".strip(), style=look, aria_hidden="true")
        buttons.append(
            tag(
                "button",
                swatch,
                key.label,
                type="button",
                class_=f"key {kind}".strip(),
                data_series=key.slug,
                aria_pressed="false",
            )
        )
    return tag("div", *buttons, class_="legend", role="group", aria_label="Methods shown")


def _together(picture: Picture) -> Any:
    """All panels in one figure, with a legend to the right, for the files."""
    from matplotlib.figure import Figure

    panels, n = picture.panels, picture.columns
    rows = [panels[k : k + n] for k in range(0, len(panels), n)]
    heights = [max(panel.height for panel in row) for row in rows]
    width = max(sum(panel.width for panel in row) for row in rows)
    full = width + (LEGEND_WIDTH if picture.keys else 0.0)
    figure = Figure(figsize=(full, sum(heights)))
    for k, row in enumerate(rows):
        bottom, x = sum(heights[k + 1 :]), 0.0
        for panel in row:
            _draw(panel, figure, x, bottom + heights[k] - panel.height)
            x += panel.width
    if picture.keys:
        place = {"loc": "center left", "bbox_to_anchor": ((width + 0.1) / full, 0.5)}
        figure.legend(handles=[_handle(key) for key in picture.keys], **place)
    return figure


def _handle(key: Style):
    from matplotlib.lines import Line2D

    return Line2D([], [], color=key.color, lw=key.width, ls=key.dashes, label=tidy(key.label))
