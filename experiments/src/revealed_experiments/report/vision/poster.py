"""All samples and methods of an album in one figure, for the files beside the page."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..drawing import tidy
from ..palette import INK, SOFT
from .albums import Album, Decision, Sample, extra_cost
from .tiles import SAME, heat_colors

SIDE, GAP, ROW_GAP, TOP = 1.5, 0.06, 0.24, 0.32  # inches


def poster(album: Album, colors: dict[str, str], most: int) -> Any:
    """A row for each of the first `most` samples: seen, true, and a column for each method."""
    from matplotlib.figure import Figure

    samples, labels = album.samples[:most], [n for n in album.labels if n in colors]
    columns = ["Observed", "True digits" if samples[0].matching else "True costs", *labels]
    size = (len(columns) * (SIDE + GAP), TOP + len(samples) * (SIDE + ROW_GAP))
    figure = Figure(figsize=size)
    for row, sample in enumerate(samples):
        _row(figure, row, sample, columns)
    for k, name in enumerate(columns):
        x = (k * (SIDE + GAP) + SIDE / 2) / size[0]
        words = {"fontsize": 9, "fontweight": "bold", "ha": "center", "va": "top"}
        figure.text(x, 1 - 0.08 / size[1], tidy(name, 18), color=colors.get(name, INK), **words)
    return figure


def _row(figure: Any, row: int, sample: Sample, columns: list[str]) -> None:
    guesses = {guess.label: guess for guess in sample.guesses}
    for k, name in enumerate(columns):
        axis = figure.add_axes(_place(figure, row, k))
        axis.set_axis_off()
        if k == 0:
            _show(axis, sample, sample.picture, sample.observed)
        elif k == 1:
            _show(axis, sample, heat_colors(sample.true_cells), sample.observed)
        elif guess := guesses.get(name):
            picture = sample.picture if guess.cells is None else heat_colors(guess.cells)
            _show(axis, sample, picture, guess.predicted)
            extra = extra_cost(sample, guess.predicted)
            words = f"+{100 * extra:.2g} %" if extra > SAME else "optimal"
            axis.text(0.5, -0.03, words, fontsize=7, color=SOFT, transform=axis.transAxes,
                      ha="center", va="top")  # fmt: skip


def _place(figure: Any, row: int, column: int) -> tuple[float, float, float, float]:
    wide, high = figure.get_size_inches()
    y = high - TOP - SIDE - row * (SIDE + ROW_GAP)
    return column * (SIDE + GAP) / wide, y / high, SIDE / wide, SIDE / high


def _show(axis: Any, sample: Sample, pixels: np.ndarray, decision: Decision) -> None:
    from matplotlib.collections import LineCollection

    rows, cols = sample.true_cells.shape
    axis.imshow(pixels, extent=(0, cols, rows, 0), interpolation="nearest")
    lines = [np.array(chain, dtype=float)[:, ::-1] + 0.5 for chain in decision if chain]
    if sample.matching and pixels is sample.picture:  # bands, through which digits can be read
        width = 60 * SIDE / cols
        layers = [{"colors": "#0067b1", "linewidths": width, "alpha": 0.22}]
    else:
        layers = [
            {"colors": "#14171b", "linewidths": 2.6},
            {"colors": "#ffffff", "linewidths": 1.3},
        ]
    for look in layers:
        axis.add_collection(LineCollection(lines, capstyle="round", joinstyle="round", **look))
    axis.set_xlim(0, cols)
    axis.set_ylim(rows, 0)
