"""What all pictures here share: colors for any color vision, captions, and where they are saved.

Pictures go to `out/examples`, or to the folder that REVEALED_PICTURES names.
"""

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LightSource, TwoSlopeNorm

BLUE, ORANGE, GREEN, INK, SOFT, PALE = (
    "#0067b1", "#d55e00", "#3c8d2e", "#1c1e21", "#5d636b", "#e3e6ea",
)  # fmt: skip
plt.rcParams.update(
    {
        "font.size": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": SOFT,
        "axes.labelcolor": INK,
        "xtick.color": SOFT,
        "ytick.color": SOFT,
        "text.color": INK,
        "legend.frameon": False,
        "image.interpolation": "nearest",
        "figure.facecolor": "white",
        "savefig.dpi": 160,
    }
)


def caption(axis, title: str, subtitle: str = "") -> None:
    """A bold title with a quieter line below it, both flush left."""
    axis.set_title(f"{title}\n" if subtitle else title, loc="left", fontweight="bold", fontsize=11)
    axis.text(0, 1.02, subtitle, transform=axis.transAxes, color=SOFT, fontsize=9)


def bars(axis, values: dict[str, float], ours: str, form: str = "{:.1%}") -> None:
    """Named bars from the first at the top, ours in blue, each with its number at the end."""
    names = list(values)
    colors = [BLUE if name == ours else "#a9b0b8" for name in names]
    drawn = axis.barh(range(len(names)), list(values.values()), color=colors, height=0.62)
    axis.bar_label(drawn, [form.format(v) for v in values.values()], padding=4, color=INK)
    axis.set(yticks=range(len(names)), yticklabels=names, xticks=[])
    axis.tick_params(axis="y", length=0, labelcolor=INK)
    axis.spines["bottom"].set_visible(False)
    axis.margins(x=0.18)
    axis.invert_yaxis()


def paired(axis, names, theirs, ours) -> None:
    """For each name a black bar, theirs, above a blue one, ours."""
    place = np.arange(len(names))
    axis.barh(place - 0.17, theirs, 0.3, color=INK)
    axis.barh(place + 0.17, ours, 0.3, color=BLUE)
    axis.axvline(0, color=SOFT, lw=0.8)
    axis.set(yticks=place, yticklabels=names)
    axis.tick_params(axis="y", length=0, labelcolor=INK)
    axis.spines["left"].set_visible(False)
    axis.invert_yaxis()


def gantt(axis, problem, tasks, plans) -> None:
    """Tasks with their windows, and the runs of two schedules, one above the other.

    A paler bar is a start that the relaxation takes in part.
    """
    row = -np.argsort(np.lexsort((tasks.latest, tasks.earliest)))
    axis.barh(row, (tasks.latest - tasks.earliest) / 2, 0.86, tasks.earliest / 2, color=PALE)
    for (plan, color), shift in zip(plans, (0.2, -0.2), strict=True):
        for k in np.flatnonzero(plan > 0.02):
            task, start = problem.structure.task[k], problem.structure.start[k] / 2
            look = {"color": color, "alpha": min(plan[k], 1.0)}
            axis.barh(row[task] + shift, tasks.duration[task] / 2, 0.36, start, **look)
    axis.set(xlim=(0, 24), xticks=range(0, 25, 4), xlabel="hour", ylabel="task", yticks=[])


def policy_map(axis, values, walls, moves):
    """A number for each free cell of a grid as its color, and a move (down, right) as an arrow."""
    shown = np.ma.array(values, mask=walls)
    picture = axis.imshow(shown, cmap="PuOr_r", norm=TwoSlopeNorm(0, -3, 3))
    axis.set_facecolor(INK)
    row, col = np.nonzero(~walls)
    down, right = moves[row, col].T
    goes = (down != 0) | (right != 0)
    arrow = {"pivot": "mid", "scale": 16, "width": 0.011, "color": INK}
    axis.quiver(col[goes], row[goes], right[goes], -down[goes], **arrow)
    axis.plot(col[~goes], row[~goes], "o", color=INK, ms=6)
    bare(axis)
    return picture


def landscape(axis, ground) -> None:
    """A map (side, side, 3) of height, forest and marsh as shaded relief."""
    height, forest, marsh = np.moveaxis(ground, 2, 0)
    color = np.array([0.93, 0.90, 0.80]) + height[..., None] * [0.02, -0.06, -0.14]
    for share, tint in ((forest, [0.42, 0.62, 0.36]), (2.2 * marsh, [0.45, 0.63, 0.76])):
        cover = np.clip(1.5 * share - 0.45, 0, 0.85)[..., None]
        color = (1 - cover) * color + cover * np.array(tint)
    relief = LightSource(315, 40).shade_rgb(color, height, vert_exag=9, blend_mode="soft")
    axis.imshow(np.clip(relief, 0, 1), interpolation="bicubic")


def shortfalls(axis, missing, marks) -> None:
    """Shares missed, many for each name, as dots on a logarithmic scale; marks are named levels."""
    rng = np.random.default_rng(0)
    for place, values in enumerate(missing.values()):
        across = place + rng.uniform(-0.18, 0.18, len(values))
        look = {"color": BLUE, "ms": 4.5, "alpha": 0.45, "mew": 0}
        axis.plot(across, np.maximum(values, 1e-6), "o", **look)
    for words, level in marks.items():
        axis.axhline(level, color=ORANGE, lw=1.2)
        place = (len(missing) - 0.8, level)
        axis.annotate(words, place, xytext=(0, 4), textcoords="offset points", ha="right")
    ticks = {1e-6: "0", 1e-4: "0.01%", 1e-2: "1%", 1.0: "100%"}
    axis.set(yscale="log", ylim=(5e-7, 4), xticks=range(len(missing)), xticklabels=list(missing))
    axis.set(yticks=list(ticks), yticklabels=list(ticks.values()))
    axis.minorticks_off()


def tracks(axis, problem, lines) -> None:
    """Paths (n,) on a grid, each with its color and width."""
    cols = problem.structure.grid_shape[1]
    for path, color, width in lines:
        used = path > 0.5
        ends = np.stack([problem.structure.tails[used], problem.structure.heads[used]])
        axis.plot(ends % cols, ends // cols, color=color, lw=width, solid_capstyle="round")


def bare(axis) -> None:
    """A map: no frame, no ticks, equal sides."""
    axis.set(xticks=[], yticks=[], aspect="equal")
    axis.spines[:].set_visible(False)


def save(figure, name: str) -> None:
    """Write the picture, and say where it is."""
    folder = Path(os.environ.get("REVEALED_PICTURES", "out/examples"))
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / f"{name}.png")
    print(f"picture: {folder / name}.png")
