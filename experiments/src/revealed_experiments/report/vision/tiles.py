"""One sample of an album as small drawings side by side, in markup.

Every drawing is `WIDTH` units wide, however many cells it has. Pictures and costs are images of a
pixel to a pixel or to a cell; a picture is put into the page once and used again by name.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np

from ..elements import Html, join, tag
from ..numbers import fixed, short
from ..palette import Style
from .albums import Decision, Guess, Sample, agreement, extra_cost

WIDTH = 120.0
BAND = 0.8
"""Width of the band round a pair, in cells."""
SAME = 1e-9
"""A share of cost below which two decisions cost the same."""


def sample_tiles(sample: Sample, name: str, styles: dict[str, Style]) -> Html:
    """The decision seen, then for each method what it predicts and what it has learned, then truth.

    `name` is unlike that of any other sample. Of the methods, by label, only the first is shown;
    the page's buttons bring the others out.
    """
    rows, cols = sample.true_cells.shape
    frame = _Frame(rows, cols)
    known = [
        frame.image(_png(sample.picture), id_=f"{name}-seen"),
        _decided(sample, frame),
    ]
    tiles = [_tile(frame.draw("The decision observed", known), "Observed", "decision")]
    for guess in sample.guesses:
        if guess.label in styles:
            hidden = guess.label != next(iter(styles))
            look = {"data_method": styles[guess.label].slug, "hidden": hidden}
            look["style"] = f"--key: {styles[guess.label].color_variable}"
            tiles += _of_method(sample, guess, frame, name, look)
    truth = frame.image(_heat(sample.true_cells), crisp=True)
    drawn = frame.draw("True costs", [truth, _thin(sample, sample.observed, frame)])
    tiles.append(_tile(drawn, "True digits" if sample.matching else "True costs", "hidden"))
    return tag("li", *tiles, class_="sample")


def _of_method(
    sample: Sample, guess: Guess, frame: _Frame, name: str, look: dict[str, Any]
) -> list[Html]:
    again = tag("use", href=f"#{name}-seen")
    both = _differing if sample.matching else _both_paths
    predicted = frame.draw(f"Predicted by {guess.label}", [again, both(sample, guess, frame)])
    words, class_ = _verdict(sample, guess)
    tiles = [_tile(predicted, "Predicted", words, class_, **look)]
    if guess.cells is not None:
        shown = [frame.image(_heat(guess.cells), crisp=True), _thin(sample, guess.predicted, frame)]
        rank = agreement(sample, guess)
        told = f"rank corr. {fixed(rank)}" if np.isfinite(rank) else "all alike"
        drawn = frame.draw(f"Costs learned by {guess.label}", shown)
        tiles.append(_tile(drawn, "Learned costs", told, None, **look))
    return tiles


def _verdict(sample: Sample, guess: Guess) -> tuple[str, str]:
    extra = extra_cost(sample, guess.predicted)
    if extra > SAME:
        return f"✗ costs {short(100 * extra, 2)} % more", "bad"
    if _links(guess.predicted) == _links(sample.observed):
        return "✓ the same", "good"
    return "✓ another as good", "good"


def _tile(drawing: Html, title: str, words: str, class_: str | None = None, **look: Any) -> Html:
    told = tag("p", tag("b", title), " ", tag("span", words, class_=class_), class_="tile-words")
    return tag("div", drawing, told, class_="tile", **look)


class _Frame:
    """A drawing of rows x cols cells."""

    def __init__(self, rows: int, cols: int) -> None:
        self.cell = WIDTH / cols
        self.height = self.cell * rows

    def draw(self, label: str, parts: Iterable[Html]) -> Html:
        box = f"0 0 {WIDTH:g} {self.height:g}"
        return tag("svg", *parts, viewBox=box, role="img", aria_label=label, class_="map")

    def image(self, png: str, *, crisp: bool = False, id_: str | None = None) -> Html:
        return tag(
            "image",
            href=f"data:image/png;base64,{png}",
            width=f"{WIDTH:g}",
            height=f"{self.height:g}",
            preserveAspectRatio="none",
            class_="crisp" if crisp else None,
            id=id_,
        )

    def lines(self, decision: Decision, class_: str, cells_wide: float | None = None) -> Html:
        """Chains through the middles of cells, as one path; so wide, or as the style sheet says."""
        moves = ["M" + "L".join(map(self._middle, chain)) for chain in decision if chain]
        wide = None if cells_wide is None else f"stroke-width:{cells_wide * self.cell:.4g}"
        return tag("path", d="".join(moves), class_=class_, style=wide) if moves else Html("")

    def _middle(self, cell: tuple[int, int]) -> str:
        return f"{(cell[1] + 0.5) * self.cell:.4g} {(cell[0] + 0.5) * self.cell:.4g}"


def _decided(sample: Sample, frame: _Frame) -> Html:
    if sample.matching:
        return frame.lines(sample.observed, "pair", BAND)
    return join([frame.lines(sample.observed, name) for name in ("casing", "seen")])


def _thin(sample: Sample, decision: Decision, frame: _Frame) -> Html:
    """A decision over costs, where it must hide little."""
    return frame.lines(decision, "link" if sample.matching else "trace")


def _both_paths(sample: Sample, guess: Guess, frame: _Frame) -> Html:
    """The predicted path, and the observed one as dashes that show wherever the two part."""
    return join(
        [
            frame.lines(sample.observed, "casing slim"),
            frame.lines(guess.predicted, "casing"),
            frame.lines(guess.predicted, "guess"),
            frame.lines(sample.observed, "dashes"),
        ]
    )


def _differing(sample: Sample, guess: Guess, frame: _Frame) -> Html:
    """Predicted pairs; those that are not among the observed ones stand out."""
    observed = _links(sample.observed)
    right = [pair for pair in guess.predicted if _links([pair]) <= observed]
    wrong = [pair for pair in guess.predicted if not _links([pair]) <= observed]
    bands = [frame.lines(right, "pair right", BAND), frame.lines(wrong, "pair wrong", BAND)]
    return join([*bands, frame.lines(wrong, "mark")])


def _links(decision: Decision) -> set[frozenset[Any]]:
    """The steps of a decision, whichever way they are taken."""
    return {frozenset(step) for chain in decision for step in pairwise(chain)}


def _heat(cells: np.ndarray) -> str:
    """Costs in colors from dark (cheap) to bright (dear), each sample on a scale of its own."""
    return _png(heat_colors(cells))


def heat_colors(cells: np.ndarray) -> np.ndarray:
    """(r, c, 3) uint8; a few extreme cells must not flatten the rest."""
    from matplotlib import colormaps

    low, high = np.quantile(cells, [0.02, 0.98])
    scaled = np.clip((cells - low) / (high - low), 0, 1) if high > low else np.zeros(cells.shape)
    return (255 * colormaps["viridis"](scaled)[:, :, :3] + 0.5).astype(np.uint8)


def _png(pixels: np.ndarray) -> str:
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG", optimize=True)
    return base64.b64encode(buffer.getvalue()).decode()
