"""The two pictures of the demonstration.

Blue and orange are from the Okabe-Ito palette and terrain is grey, so that all can be told apart
with any colour vision. Figures are built without pyplot: no window system, no global state.
"""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap, LogNorm
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patheffects import Normal, Stroke
from matplotlib.ticker import MaxNLocator

from .scene import SIDE, TOL, Outcome, Scene, reproduced

BLUE, ORANGE, INK, SOFT = "#0072B2", "#D55E00", "#1a1a1a", "#666666"
PALE_BLUE, PALE_ORANGE = "#66AAD1", "#E89A5F"  # the same two at 60%, for wide marks
TERRAIN = LinearSegmentedColormap.from_list("rock", ["#fcfcfb", "#e4e2de", "#c0bdb7", "#8a8780"])
FLOOR = 1e-17  # residuals below this, 0 among them, are drawn here on the logarithmic axis
LEAST_SHOWN = 0.03  # changes smaller than this share of the largest are left out of the map


def draw_map(path: Path, scene: Scene, outcome: Outcome) -> None:
    """Guess, observation and projected costs for one driver, side by side."""
    i = most_telling(scene, outcome)
    figure = _figure(11.2, 4.4)
    axes = figure.subplots(1, 3)
    costs = (scene.guess[i], scene.true_costs[i], outcome.projection.point[i])
    maps = [_by_junction(scene, c) for c in costs]
    scale = LogNorm(np.min(maps), np.max(maps))  # slowness is a factor, so the scale is in factors
    for axis, values in zip(axes, maps, strict=True):
        image = axis.imshow(values, cmap=TERRAIN, norm=scale)
    _changes(axes[2], scene, costs[2] - costs[0])
    _route(axes[0], scene, scene.guess_routes[i], ORANGE)
    _route(axes[1], scene, scene.routes[i], BLUE)
    _route(axes[2], scene, outcome.projected_routes[i], INK, width=1.8)
    _caption(axes[0], "Guess", "an old map, and the quickest route on it")
    _caption(axes[1], "Observed", "the route taken, over terrain we never see")
    _caption(axes[2], "Projected", "least change that makes this route the quickest")
    _colour_bar(figure, axes[2], image)
    _save(figure, path)


def most_telling(scene: Scene, outcome: Outcome) -> int:
    """The driver with the most winding route among those about whom the guess was wholly wrong."""
    shared = (scene.routes * scene.guess_routes).sum(axis=1)
    winding = (scene.routes * scene.length).sum(axis=1)
    return int(np.lexsort((-winding, shared))[0])


def _colour_bar(figure: Figure, axis: Axes, image) -> None:
    bar = figure.colorbar(image, cax=axis.inset_axes((1.06, 0, 0.035, 1)))
    bar.set_label("minutes per unit of distance")
    bar.set_ticks([5, 10, 20, 40], labels=["5", "10", "20", "40"])
    bar.ax.minorticks_off()
    bar.outline.set_visible(False)  # type: ignore[operator]


def _by_junction(scene: Scene, costs: np.ndarray) -> np.ndarray:
    """(k, k) mean minutes per unit of distance over the roads that touch each junction."""
    pace = np.tile(costs / scene.length, 2)
    ends = np.concatenate([scene.tail, scene.head])
    return (np.bincount(ends, pace) / np.bincount(ends)).reshape(SIDE, SIDE)


def _segments(scene: Scene, roads: np.ndarray) -> list[np.ndarray]:
    """End points of some roads, as (column, row) on the map."""
    ends = np.stack([scene.tail[roads], scene.head[roads]], axis=1)
    return list(np.stack([ends % SIDE, ends // SIDE], axis=-1).astype(float))


def _route(axis: Axes, scene: Scene, route: np.ndarray, colour: str, width: float = 3.2) -> None:
    """A route with a white edge, which stands out on light and dark terrain alike."""
    edge = Stroke(linewidth=width + 2.2, foreground="white", capstyle="round")
    lines = LineCollection(_segments(scene, np.flatnonzero(route > 0.5)), colors=colour)
    lines.set(linewidths=width, capstyle="round", zorder=3)
    if width > 2:
        lines.set_path_effects([edge, Normal()])
    axis.add_collection(lines)
    for corner in (0, SIDE - 1):
        axis.plot(corner, corner, "o", ms=9, mfc="white", mec=INK, mew=1.4, zorder=4)


def _changes(axis: Axes, scene: Scene, change: np.ndarray) -> None:
    """Roads that were made quicker or slower, the wider the more."""
    size = np.abs(change) / np.abs(change).max()
    roads = np.flatnonzero(size > LEAST_SHOWN)
    roads = roads[np.argsort(size[roads])]  # the largest on top
    lines = LineCollection(_segments(scene, roads), capstyle="round", zorder=2)
    lines.set(colors=np.where(change[roads] < 0, PALE_BLUE, PALE_ORANGE).tolist())
    lines.set(linewidths=(1.5 + 9 * size[roads]).tolist())
    axis.add_collection(lines)
    handles = [
        Line2D([], [], color=PALE_BLUE, lw=6, label="made quicker"),
        Line2D([], [], color=PALE_ORANGE, lw=6, label="made slower"),
    ]
    axis.legend(
        handles=handles, ncols=2, frameon=False, loc="upper left", bbox_to_anchor=(-0.03, 0.01)
    )


def _caption(axis: Axes, title: str, subtitle: str) -> None:
    axis.set_title(f"{title}\n", loc="left", fontweight="bold", fontsize=12)
    axis.text(0, 1.025, subtitle, transform=axis.transAxes, color=SOFT, fontsize=9.5)
    axis.set(xticks=[], yticks=[])
    axis.spines[:].set_visible(False)


def draw_certificates(path: Path, scene: Scene, outcome: Outcome) -> None:
    """How far each guess moved against how wrong it was, and the residual of each projection."""
    figure = _figure(10.4, 4.2)
    left, right = figure.subplots(1, 2)
    _draw_moves(left, scene, outcome)
    _draw_residuals(right, outcome.projection.residual)
    for axis in (left, right):
        axis.spines[["top", "right"]].set_visible(False)
    _save(figure, path)


def _draw_moves(axis: Axes, scene: Scene, outcome: Outcome) -> None:
    lost = (scene.guess * (scene.routes - scene.guess_routes)).sum(axis=1)
    hit = reproduced(scene.guess_routes, scene.routes)
    moved = outcome.projection.distance
    dots = {"lw": 0, "alpha": 0.6, "clip_on": False}
    axis.scatter(lost[~hit], moved[~hit], s=24, c=ORANGE, label="another route", **dots)
    axis.scatter(lost[hit], moved[hit], s=34, c=BLUE, marker="D", label="the observed one", **dots)
    axis.set_title("The wronger the guess, the further it moves", loc="left", fontweight="bold")
    axis.set_xlabel("by how much the guess prefers its own route (minutes)")
    axis.set_ylabel(f"distance moved (minutes, over all {len(scene.tail)} roads)")
    axis.set_xlim(left=-0.02 * lost.max())
    axis.set_ylim(bottom=0)
    axis.legend(title="the guess gave", frameon=False, loc="upper left", alignment="left")


def _draw_residuals(axis: Axes, residual: np.ndarray) -> None:
    edges = np.logspace(np.log10(FLOOR), np.log10(TOL), 37)
    axis.hist(np.maximum(residual, FLOOR), bins=edges.tolist(), color=BLUE, rwidth=0.88)
    axis.axvline(TOL, color=INK, lw=1.2, ls=(0, (4, 3)))
    axis.annotate(
        "tolerance", (TOL, 1), xytext=(-5, -4), xycoords=("data", "axes fraction"),
        textcoords="offset points", ha="right", va="top", color=INK,
    )  # fmt: skip
    axis.set_title("Every answer is certified by its residual", loc="left", fontweight="bold")
    axis.set(xscale="log", xlim=(FLOOR, 3 * TOL))
    axis.set_xlabel("relative residual, computed from the definition")
    axis.set_ylabel("projections")
    axis.yaxis.set_major_locator(MaxNLocator(6, integer=True))


def _figure(width: float, height: float) -> Figure:
    room = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.1, wspace=0.02)  # inches; share of a panel
    return Figure(figsize=(width, height), layout=room)


def _save(figure: Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=200, facecolor="white")
