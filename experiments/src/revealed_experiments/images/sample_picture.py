"""A picture of samples: what was seen, and on top what was decided there.

Needs matplotlib. Figures are built without pyplot: no window system, no global state.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from revealed._common.checks import positive_int
from revealed.errors import InputError, MissingDependencyError
from revealed.problems.linear import LinearProgram

from .image_set import ImageSet


def draw_samples(
    data: ImageSet,
    path: str | os.PathLike[str],
    *,
    split: str = "train",
    count: int = 12,
    columns: int = 4,
) -> Path:
    """Draw the first `count` samples of a split with their paths or matchings into a picture file.

    The file's ending says the format (.png, .svg, .pdf). Folders on the way to it are made.
    """
    if split not in ("train", "valid", "test"):
        raise InputError(f"`split` must be train, valid or test; got {split!r}.")
    samples = getattr(data, split).head(positive_int(count, "count"))
    if len(samples) == 0:
        raise InputError(f"There is nothing to draw: the {split} split of {data.name!r} is empty.")
    columns = min(positive_int(columns, "columns"), len(samples))
    rows = -(-len(samples) // columns)
    figure = _figure((2.6 * columns, 2.6 * rows))
    for k, image in enumerate(samples.images):
        axis = figure.add_axes(_place(k, rows, columns))
        show_image(axis, image)
        show_decision(axis, data.problem, samples.decisions[k], image.shape[:2])
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, dpi=150, facecolor="white")
    return target


def show_image(axis: Any, image: np.ndarray) -> None:
    """A picture (H, W, C) uint8 that fills an axis of matplotlib, with one unit to a pixel."""
    height, width, channels = image.shape
    extent = (0, width, height, 0)
    shown = image[:, :, 0] if channels == 1 else image
    axis.imshow(shown, cmap="gray_r", vmin=0, vmax=255, extent=extent, interpolation="nearest")
    axis.set_xlim(0, width)
    axis.set_ylim(height, 0)
    axis.set_axis_off()


def show_decision(
    axis: Any,
    problem: LinearProgram,
    decision: np.ndarray,
    pixels: tuple[int, int],
    *,
    color: str | None = None,
) -> None:
    """Draw a path as a line, or a matching as bands round its pairs, over a picture of so many
    pixels down and across."""
    graph = problem.structure
    if getattr(graph, "grid_shape", None) is None:
        raise InputError("Only decisions on a grid can be drawn over a picture.")
    rows, cols = graph.grid_shape
    scale = np.array([pixels[1] / cols, pixels[0] / rows])
    chosen = np.flatnonzero(decision > 0.5)
    ends = [_middle(nodes[chosen], cols) * scale for nodes in (graph.tails, graph.heads)]
    if hasattr(graph, "source"):
        marks = _middle(np.array([graph.source, graph.target]), cols) * scale
        _draw_path(axis, np.stack(ends, axis=1), marks, color or "#ffffff")
    else:
        _draw_pairs(axis, np.stack(ends, axis=1), cols, color or "#0072B2")


def _draw_path(axis: Any, steps: np.ndarray, marks: np.ndarray, color: str) -> None:
    from matplotlib.collections import LineCollection
    from matplotlib.patheffects import Normal, Stroke

    line = LineCollection(list(steps), colors=color, linewidths=2.2, capstyle="round")
    line.set_path_effects([Stroke(linewidth=4.4, foreground="#1a1a1acc"), Normal()])
    axis.add_collection(line)
    axis.scatter(*marks.T, s=30, c=color, edgecolors="#1a1a1a", linewidths=1.2, zorder=3)


def _draw_pairs(axis: Any, pairs: np.ndarray, cols: int, color: str) -> None:
    from matplotlib.collections import LineCollection

    inches = axis.figure.get_figwidth() * axis.get_position().width
    band = 0.82 * 72 * inches / cols  # points: a little less than a cell
    style = {"linewidths": band, "capstyle": "round", "alpha": 0.2}
    axis.add_collection(LineCollection(list(pairs), colors=color, **style))


def _middle(nodes: np.ndarray, cols: int) -> np.ndarray:
    """(k, 2) the middle of each cell, right and down, in cells."""
    return np.stack([nodes % cols + 0.5, nodes // cols + 0.5], axis=1)


def _place(k: int, rows: int, columns: int) -> tuple[float, float, float, float]:
    row, column = divmod(k, columns)
    gap = 0.02
    wide, high = 1 / columns, 1 / rows
    return (
        column * wide + gap * wide,
        1 - (row + 1) * high + gap * high,
        wide * (1 - 2 * gap),
        high * (1 - 2 * gap),
    )


def _figure(size: tuple[float, float]) -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependencyError(
            "Pictures of samples are drawn with matplotlib, which is not installed: "
            "`pip install 'revealed[plot]'`."
        ) from error
    return Figure(figsize=size)
