"""The picture on the first page: tracks that were seen, costs learned, a plan never walked.

`python docs/_tools/first_figure.py` writes docs/images/first.png and first-dark.png, and prints
what the caption says (docs/images/first.txt).
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy.ndimage import gaussian_filter

import revealed as rv

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))
from _picture import landscape, tracks

IMAGES = Path(__file__).resolve().parents[1] / "images"
DISLIKE = np.array([1.0, 5.0, 1.5, 4.0])
"""Of length, slope, forest and marsh; never shown to the learner."""
SEEN, NEW = (40, 12), (20, 36)
"""How many maps, and how many cells a side."""
LOOKS = {"first": ("#16181d", "#5d636b"), "first-dark": ("#eceff3", "#a3acb8")}
PLAN, BEST, SHORT = "#0a84ff", "#101114", "#e8590c"


@dataclass(frozen=True, eq=False)
class Scene:
    """What was seen, and one of the new maps with what was learned about it."""

    maps: np.ndarray
    """(B, side, side, 3) small maps that were walked."""
    tracks: np.ndarray
    """(B, n) the tracks there."""
    new: np.ndarray
    """(side, side, 3) a large map that nobody has walked."""
    cost: np.ndarray
    """(side, side) what entering each of its cells costs, as learned."""
    paths: tuple[np.ndarray, np.ndarray, np.ndarray]
    """Best under the true costs, planned by the learned ones, shortest."""
    excess: tuple[float, float]
    """True effort above the best on all new maps: planned, shortest."""
    repeated: int
    """New maps on which the plan is the very track a hiker would take."""


def play() -> Scene:
    """Hikers cross maps; from their tracks alone we learn what they dislike, and plan elsewhere."""
    rng = np.random.default_rng(11)
    small, large = _grid(SEEN[1]), _grid(NEW[1])
    maps = _ground(rng, *SEEN, rough=1.5)
    features = _steps(small, maps)
    tracks = small.solve(features @ DISLIKE).x
    shared = rv.fit.SharedModel(fit_intercept=False)
    model = rv.InverseRegressor(small, model=shared, noise=0, ridge=0)
    learned = model.fit(features, tracks).coef_

    new = _ground(rng, *NEW, rough=3.0)
    features = _steps(large, new)
    truth = features @ DISLIKE
    best, planned, short = (
        large.solve(features @ weights).x for weights in (DISLIKE, learned, np.eye(4)[0])
    )
    above = [float((truth * plan).sum() / (truth * best).sum() - 1) for plan in (planned, short)]
    same = (planned == best).all(axis=1)
    # Drawn is the right plan that is farthest from the shortest track.
    i = int(np.argmax(same * np.abs(best - short).sum(axis=1)))
    cost = _by_cell(large, features[i] @ learned)
    paths = (best[i], planned[i], short[i])
    return Scene(maps, tracks, new[i], cost, paths, (above[0], above[1]), int(same.sum()))


def described(scene: Scene) -> str:
    """The figures in the caption."""
    more = scene.excess[0]
    effort = f"{more:.3%}" if more >= 1e-5 else "less than 0.001%"
    return (
        f"Left: some of the {SEEN[0]} tracks that were seen, all there is to learn from. "
        "Middle: what entering each cell costs, as learned, on a map that nobody has walked. "
        "Right: the plan there (blue) on top of the track a hiker would take (black), and the "
        f"shortest one (orange). On {scene.repeated} of {NEW[0]} such maps the plan is that track, "
        f"cell by cell; plans cost {effort} more effort than the best there is, shortest "
        f"tracks {scene.excess[1]:.0%}."
    )


def draw(scene: Scene, ink: str, soft: str) -> Figure:
    """Three panels: seen, learned, planned."""
    figure = Figure(figsize=(12, 4.55), dpi=120)
    parts = figure.add_gridspec(1, 3, wspace=0.07, left=0.005, right=0.995, top=0.87, bottom=0.01)
    tiles = parts[0].subgridspec(2, 2, wspace=0.05, hspace=0.05)
    for k, tile in enumerate(tiles):
        axis = figure.add_subplot(tile)
        landscape(axis, scene.maps[k])
        tracks(axis, _grid(SEEN[1]), [(scene.tracks[k], BEST, 2.4)])
    middle, right = figure.add_subplot(parts[1]), figure.add_subplot(parts[2])
    middle.imshow(scene.cost, cmap="magma_r", interpolation="bicubic")
    tracks(middle, _grid(NEW[1]), [(scene.paths[1], "white", 2.2)])
    landscape(right, scene.new)
    looks = ((BEST, 6.0), (PLAN, 2.6), (SHORT, 2.2))
    lines = ((path, *look) for path, look in zip(scene.paths, looks, strict=True))
    tracks(right, _grid(NEW[1]), lines)
    for axis in figure.axes:
        axis.set(xticks=[], yticks=[], aspect="equal")
        axis.spines[:].set_visible(False)
    titles = (
        ("1  Seen", "decisions, in their contexts"),
        ("2  Learned", "costs that explain them"),
    )
    for k, (title, words) in enumerate((*titles, ("3  Planned", "decisions never seen"))):
        x = 0.005 + k * 0.3377
        figure.text(x, 0.957, title, color=ink, fontsize=17, fontweight="bold", va="center")
        figure.text(x, 0.895, words, color=soft, fontsize=13, va="center")
    return figure


def write(folder: Path = IMAGES) -> str:
    """Both pictures and the caption, which is returned."""
    folder.mkdir(parents=True, exist_ok=True)
    scene = play()
    for name, (ink, soft) in LOOKS.items():
        picture = draw(scene, ink, soft)
        look = {"dpi": 120, "transparent": True, "pil_kwargs": {"optimize": True}}
        picture.savefig(folder / f"{name}.png", **look)
    caption = described(scene)
    (folder / "first.txt").write_text(caption + "\n", "utf-8")
    return caption


def _grid(side: int) -> rv.LinearProgram:
    return rv.problems.grid_shortest_path(side, side, neighbors=8)


def _ground(rng: np.random.Generator, count: int, side: int, rough: float) -> np.ndarray:
    """(count, side, side, 3) height, forest and marsh, between 0 and 1."""
    noise = gaussian_filter(rng.standard_normal((count, side, side, 3)), (0, rough, rough, 0))
    maps = 1 / (1 + np.exp(-2.5 * noise / noise.std(axis=(1, 2), keepdims=True)))
    maps[..., 2] *= 1 - maps[..., 0]  # marshes lie low
    return maps


def _steps(problem: rv.LinearProgram, maps: np.ndarray) -> np.ndarray:
    """(B, n, 4) features of every step on every map."""
    tails, heads, side = problem.structure.tails, problem.structure.heads, maps.shape[1]
    at = maps.reshape(len(maps), -1, 3)
    slope = np.abs(at[:, heads, :1] - at[:, tails, :1])
    length = np.hypot(heads // side - tails // side, heads % side - tails % side)
    length = np.broadcast_to(length[:, None], slope.shape)
    return np.concatenate([length, slope, at[:, heads, 1:] * length], axis=2)


def _by_cell(problem: rv.LinearProgram, costs: np.ndarray) -> np.ndarray:
    """(side, side): the mean cost of the steps that enter a cell."""
    heads = problem.structure.heads
    mean = np.bincount(heads, costs) / np.bincount(heads)
    side = int(np.sqrt(len(mean)))
    return mean.reshape(side, side)


if __name__ == "__main__":
    print(write())
