"""The three pictures of the demonstration.

Blue and orange are from the Okabe-Ito palette and slowness runs from light to dark, so that all can
readable with any color vision. Figures are built without pyplot: no window system, no global
state.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap, LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patheffects import Normal, Stroke

from .scene import FEATURES, SIDE, Outcome, Town, Trips

BLUE, ORANGE, INK, SOFT = "#0072B2", "#D55E00", "#1a1a1a", "#666666"
SLOW = LinearSegmentedColormap.from_list("slow", ["#e9e8e4", "#f2cfa8", "#e08a3c", "#5a2200"])
GRAY = LinearSegmentedColormap.from_list("rock", ["#f1f0ee", "#d9d6d1", "#b3afa8", "#7d7972"])
DENSE = LinearSegmentedColormap.from_list("dense", ["#dbe9f3", "#66AAD1", "#0072B2", "#0b2e4a"])
SPREAD = Normalize(-1.2, 2.8)  # standard deviations from the mean of a map


def draw_costs(path: Path, town: Town, held_out: Trips, outcome: Outcome) -> None:
    """True and learned slowness in three contexts, and all learned costs against all true ones."""
    figure = Figure(figsize=(14.4, 7.4))
    place = {"left": 0.012, "right": 0.665, "bottom": 0.13, "top": 0.9}
    axes: Any = figure.add_gridspec(2, 3, **place, wspace=0.04, hspace=0.12).subplots()
    chosen = [_most(held_out, name) for name in FEATURES]
    for (top, bottom), i in zip(axes.T, chosen, strict=True):
        maps = [town.by_junction(costs[i]) for costs in (held_out.seen.costs, outcome.costs)]
        for axis, values in zip((top, bottom), maps, strict=True):
            _draw_field(axis, town, _standard(values))
        _caption(top, _weather(held_out, i), "true times (hidden from the learner)")
        alike = np.corrcoef(maps[0], maps[1])[0, 1]
        _caption(bottom, "", f"learned costs (correlation {alike:.2f})")
    bar = figure.colorbar(
        ScalarMappable(SPREAD, SLOW),
        cax=figure.add_axes((0.17, 0.075, 0.33, 0.02)),
        orientation="horizontal",
    )
    bar.set_label("slowness, in standard deviations of each map (decisions reveal no unit)")
    bar.outline.set_visible(False)  # type: ignore[operator]
    right, scale = (0.725, 0.21, 0.265, 0.69), (0.775, 0.075, 0.165, 0.02)
    _draw_scatter(figure.add_axes(right), figure.add_axes(scale), town, held_out, outcome)
    _save(figure, path)


def _draw_field(axis: Axes, town: Town, values: np.ndarray) -> None:
    """A number at each junction, shaded between them, with the streets on top."""
    east, south = (town.place[:, k].reshape(SIDE, SIDE) for k in (0, 1))
    field = values.reshape(SIDE, SIDE)
    axis.pcolormesh(east, south, field, cmap=SLOW, norm=SPREAD, shading="gouraud", rasterized=True)
    once = np.flatnonzero(town.tail < town.head)
    axis.add_collection(LineCollection(_segments(town, once), colors="white", lw=1.6, alpha=0.75))
    _bare(axis)


def _draw_scatter(axis: Axes, scale: Axes, town: Town, held_out: Trips, outcome: Outcome) -> None:
    true, learned = held_out.seen.costs, outcome.costs
    x, y = (town.by_junction(costs).ravel() for costs in (true, learned))
    cells = axis.hexbin(x, y, gridsize=30, cmap=DENSE, norm=LogNorm(), mincnt=1, lw=0.2)
    cut = np.quantile(x, np.linspace(0, 1, 21))
    group = np.clip(np.searchsorted(cut, x, side="right") - 1, 0, 19)
    medians = [(np.median(x[group == k]), np.median(y[group == k])) for k in range(20)]
    axis.plot(*np.transpose(medians), color=ORANGE, lw=2.4, label="median")
    alike, by_street = (
        np.corrcoef(a.ravel(), b.ravel())[0, 1] for a, b in ((x, y), (true, learned))
    )
    words = f"{len(true)} held-out contexts, correlation {alike:.2f} (by street {by_street:.2f})"
    _caption(axis, "Learned against true costs", words)
    axis.set_xlabel("true minutes, mean of the streets at a junction")
    axis.set_ylabel("learned cost of the same streets (unit: the margin)")
    axis.legend(frameon=False, loc="lower right")
    bar = axis.figure.colorbar(cells, cax=scale, orientation="horizontal")
    bar.set_label("junctions in a cell")
    bar.outline.set_visible(False)  # type: ignore[operator]
    axis.spines[["top", "right"]].set_visible(False)


def draw_routes(path: Path, town: Town, held_out: Trips, outcome: Outcome) -> None:
    """Predicted over observed routes: two telling successes, and a typical miss."""
    figure = Figure(figsize=(13.2, 5.3))
    place = {"left": 0.01, "right": 0.99, "bottom": 0.08, "top": 0.86}
    axes: Any = figure.add_gridspec(1, 3, **place, wspace=0.06).subplots()
    hit, regret = _hits(held_out, outcome)
    chosen = [*_telling(held_out, outcome, hit), _typical_miss(hit, regret)]
    for axis, i, title in zip(axes, chosen, ("Predicted", "Predicted", "Missed"), strict=True):
        pace = held_out.seen.costs[i] / town.length
        scale = LogNorm(np.quantile(pace, 0.02), pace.max())
        _draw_streets(axis, town, pace, GRAY, scale, width=4.5)
        _draw_route(axis, town, held_out.seen.decisions[i], BLUE, 8.5, edge=True)
        _draw_route(axis, town, outcome.map_routes[i], ORANGE, 3.6, dashes=True)
        _draw_route(axis, town, outcome.routes[i], INK, 1.9)
        _mark_ends(axis, town, held_out.problem.structure.source[i], "start")
        _mark_ends(axis, town, held_out.problem.structure.target[i], "end")
        extra = "" if hit[i] else f"; {regret[i]:.1%} slower than the quickest"
        _caption(axis, f"{title}: {_weather(held_out, i)}", _counts(held_out, outcome, i) + extra)
    handles = [
        Line2D([], [], color=BLUE, lw=8.5, label="the route taken"),
        Line2D([], [], color=INK, lw=1.9, label="predicted from past routes"),
        Line2D([], [], color=ORANGE, lw=3.6, ls=(0, (1.6, 1.2)), label="shortest by length"),
        Line2D([], [], color="#7d7972", lw=4.5, label="streets, the darker the slower (hidden)"),
    ]
    figure.legend(handles=handles, ncols=4, frameon=False, loc="lower center")
    _save(figure, path)


def _hits(held_out: Trips, outcome: Outcome) -> tuple[np.ndarray, np.ndarray]:
    """(B,) whether each prediction is the route taken, and its extra share of minutes."""
    taken, costs = held_out.seen.decisions, held_out.seen.costs
    hit = np.abs(outcome.routes - taken).max(axis=1) < 0.5
    best = (costs * taken).sum(axis=1)
    return hit, (costs * outcome.routes).sum(axis=1) / best - 1.0


def _telling(held_out: Trips, outcome: Outcome, hit: np.ndarray) -> list[int]:
    """The hits on which the map misled most, one in rush hour and one in the rain."""
    misled = np.abs(outcome.map_routes - held_out.seen.decisions).sum(axis=1)
    z = held_out.seen.contexts
    best = []
    for feature in (1, 0):
        others = np.delete(z, feature, axis=1).max(axis=1)
        fits = hit & (z[:, feature] > 0.5) & (others < 0.4)
        best.append(int(np.argmax(np.where(fits, misled, np.where(hit, misled / 1e3, -1.0)))))
    return best


def _typical_miss(hit: np.ndarray, regret: np.ndarray) -> int:
    """The miss of median regret; the first trip if nothing was missed."""
    misses = np.flatnonzero(~hit)
    if misses.size == 0:
        return 0
    return int(misses[np.argsort(regret[misses])[len(misses) // 2]])


def _counts(held_out: Trips, outcome: Outcome, i: int) -> str:
    taken = held_out.seen.decisions[i] > 0.5
    common = int((taken & (outcome.routes[i] > 0.5)).sum())
    by_map = int((taken & (outcome.map_routes[i] > 0.5)).sum())
    return f"{common} of {taken.sum()} streets right; by length {by_map}"


def draw_losses(path: Path, outcome: Outcome) -> None:
    """How far the loss is above its minimum, step by step, and what it means for decisions."""
    figure = _figure(11.6, 4.6)
    left, right = figure.subplots(1, 2)
    history, certificate = outcome.model.history_, outcome.model.certificate_
    least = max(certificate.lower_bound, np.finfo(float).tiny)
    above = np.maximum(history["loss"] - certificate.lower_bound, 1e-16 * least) / least
    left.plot(history["evaluations"], above, color=BLUE, lw=2.4)
    left.axhline(outcome.model.solver.tol, color=ORANGE, lw=1.6, ls=(0, (4, 2)))
    place = (history["evaluations"][0], outcome.model.solver.tol)
    _note(left, "where a fit may stop", place, ORANGE, 4)
    left.set(yscale="log")
    _caption(left, "Down to the minimum", "loss above its proved minimum, as a share of it")
    left.set_xlabel("evaluations of the loss on all trips")
    _draw_matches(right, outcome)
    for axis in (left, right):
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(which="both", color=SOFT)
    _save(figure, path)


def _draw_matches(axis: Axes, outcome: Outcome) -> None:
    """Routes of held-out trips that each of the four predicts exactly."""
    places = np.arange(len(outcome.scores))[::-1]
    for place, score in zip(places, outcome.scores, strict=True):
        axis.barh(place, score.match, color=BLUE if score.ours else SOFT, height=0.6)
        axis.text(score.match + 0.01, place, f"{score.match:.0%}", va="center", color=INK)
    names = [f"{score.name}\n(saw: {score.saw})" for score in outcome.scores]
    axis.set_yticks(places, names)
    axis.set(xlim=(0, 1.08), xticks=[])
    axis.spines["bottom"].set_visible(False)
    _caption(axis, "What it means for decisions", "held-out routes predicted exactly")


# --- parts ---------------------------------------------------------------------------------------


def _most(held_out: Trips, feature: str) -> int:
    """The held-out trip in which one condition stands out most from the others."""
    k = FEATURES.index(feature)
    z = held_out.seen.contexts
    return int(np.argmax(z[:, k] - np.delete(z, k, axis=1).sum(axis=1)))


def _weather(held_out: Trips, i: int) -> str:
    """The context of a trip in words: the hour, and whatever is notable."""
    hour = held_out.hours[i]
    rain, traffic, frost = held_out.seen.contexts[i]
    words = [f"{int(hour):02d}:{int(hour % 1 * 60):02d}"]
    levels = (("rain", rain), ("frost", frost))
    if traffic > 0.5:
        words.append("rush hour")
    for name, value in levels:
        if value > 0.2:
            words.append(f"heavy {name}" if value > 0.7 else name)
    return ", ".join(words) if len(words) > 1 else f"{words[0]}, a quiet hour"


def _standard(values: np.ndarray) -> np.ndarray:
    return (values - values.mean()) / values.std()


def _segments(town: Town, chosen: np.ndarray) -> list[np.ndarray]:
    return list(np.stack([town.place[town.tail[chosen]], town.place[town.head[chosen]]], axis=1))


def _draw_streets(axis: Axes, town: Town, values: np.ndarray, cmap, norm, width: float) -> None:
    """Every street once, colored by the mean of its two directions."""
    once = np.flatnonzero(town.tail < town.head)
    both = (values + values[town.reverse]) / 2
    lines = LineCollection(_segments(town, once), cmap=cmap, norm=norm, capstyle="round", zorder=1)
    lines.set(array=both[once], linewidths=width)
    axis.add_collection(lines)
    _bare(axis)


def _bare(axis: Axes) -> None:
    """A map: south is down, no frame, a little room at the edge."""
    axis.set_aspect("equal")
    axis.margins(0.08)
    axis.autoscale_view()
    axis.invert_yaxis()
    axis.set(xticks=[], yticks=[])
    axis.spines[:].set_visible(False)


def _draw_route(
    axis: Axes,
    town: Town,
    route: np.ndarray,
    color: str,
    width: float,
    *,
    edge: bool = False,
    dashes: bool = False,
) -> None:
    lines = LineCollection(_segments(town, np.flatnonzero(route > 0.5)), colors=color, zorder=3)
    lines.set(linewidths=width, capstyle="round")
    if dashes:
        lines.set(linestyle=(0, (1.6, 1.2)), capstyle="butt")
    if edge:
        white = Stroke(linewidth=width + 2.5, foreground="white", capstyle="round")
        lines.set_path_effects([white, Normal()])
    axis.add_collection(lines)


def _mark_ends(axis: Axes, town: Town, junction: int, words: str) -> None:
    x, y = town.place[int(junction)]
    axis.plot(x, y, "o", ms=11, mfc="white", mec=INK, mew=1.6, zorder=5)
    halo = [Stroke(linewidth=3, foreground="white"), Normal()]
    axis.annotate(
        words, (x, y), xytext=(0, 11), textcoords="offset points", ha="center", fontsize=10,
        fontweight="bold", color=INK, zorder=6, path_effects=halo,
    )  # fmt: skip


def _caption(axis: Axes, title: str, subtitle: str) -> None:
    if title:
        axis.set_title(f"{title}\n", loc="left", fontweight="bold", fontsize=12)
    axis.text(0, 1.02, subtitle, transform=axis.transAxes, color=SOFT, fontsize=9.5)


def _note(axis: Axes, words: str, place, color: str, up: float, ha: str = "left") -> None:
    axis.annotate(
        words, place, xytext=(6 if ha == "left" else -6, up), textcoords="offset points",
        ha=ha, va="bottom", color=color, fontsize=9.5,
    )  # fmt: skip


def _figure(width: float, height: float) -> Figure:
    room = ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1, wspace=0.03)  # inches; share of a panel
    return Figure(figsize=(width, height), layout=room)


def _save(figure: Figure, path: Path) -> None:
    figure.savefig(path, dpi=160, facecolor="white")
