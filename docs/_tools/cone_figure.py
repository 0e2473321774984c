"""The picture on the page of mathematics: a set of explaining costs, its margin, a projection.

`python docs/_tools/cone_figure.py` writes docs/images/cone.png and cone-dark.png. All that is drawn
is computed: the library says where the projection lies.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import revealed as rv

IMAGES = Path(__file__).resolve().parents[1] / "images"
DECISION, GUESS = np.array([0.0, 1.0]), np.array([1.0, 3.0])
ROW = np.array([1.0, 2.0])
"""What a unit of each good holds; at least 2 are asked for."""
LOOKS = {
    "cone": ("#16181d", "#5d636b", "#cfe3f5", "#8fbfe6", "#c2410c"),
    "cone-dark": ("#eceff3", "#a3acb8", "#1c3147", "#2d5a86", "#ff9d5c"),
}
RAYS = (ROW, np.array([1.0, 0.0]))
"""That span the set: the binding row, and the first entry, which is at its lower bound."""
EDGE, FAR = 4.6, 40.0


def play() -> dict[str, np.ndarray]:
    """The corner of the set at margins 0 and 1, and the projection of the guess at margin 1."""
    problem = rv.LinearProgram(A_ub=-ROW[None], b_ub=[-2.0])
    sets = rv.OptimalitySet(problem, DECISION[None], margin=1.0)
    point = rv.project(GUESS[None], sets, tol=1e-12).point[0]
    return {"corner": np.zeros(2), "kept": RAYS[0] + RAYS[1], "point": point}


def draw(found: dict[str, np.ndarray], ink: str, soft: str, pale: str, full: str, warm: str):
    """Costs in the plane: the cone, the same cone moved inwards by the margin, q and P(q)."""
    figure = Figure(figsize=(6.4, 5.4), dpi=120)
    axis = figure.add_axes((0.09, 0.1, 0.89, 0.88))
    for corner, color in ((found["corner"], pale), (found["kept"], full)):
        ends = [corner + FAR * ray for ray in RAYS]
        axis.fill(*np.transpose([corner, *ends]), color=color, lw=0)
        for end in ends:
            axis.plot(*np.transpose([corner, end]), color=soft, lw=1)
    for ray, name, where in zip(RAYS, ("(1, 2)", "(1, 0)"), ((-46, -4), (-18, 8)), strict=True):
        look = {"arrowstyle": "-|>", "color": ink, "lw": 1.6, "shrinkA": 0, "shrinkB": 0}
        axis.annotate("", ray, (0, 0), arrowprops=look)
        axis.annotate(name, ray, where, textcoords="offset points", color=ink)
    step = {"arrowstyle": "-|>", "color": warm, "lw": 2.2, "shrinkA": 4, "shrinkB": 3}
    axis.annotate("", found["point"], GUESS, arrowprops=step)
    words = {
        "q = (1, 3)": (GUESS, (-58, 10)),
        "P(q) = ({:.1f}, {:.1f})".format(*found["point"]): (found["point"], (9, -5)),
    }
    for text, (place, offset) in words.items():
        axis.plot(*place, "o", color=warm, ms=7)
        axis.annotate(text, place, offset, textcoords="offset points", color=ink, fontsize=12)
    axis.annotate("margin 0", (3.4, 0.35), color=soft, fontsize=11)
    axis.annotate("margin 1", (3.4, 3.35), color=ink, fontsize=11)
    axis.annotate("(2, 2)", found["kept"], (2, -14), textcoords="offset points", color=ink)
    axis.set(xlim=(-0.35, EDGE), ylim=(-0.35, 3.9), aspect="equal")
    axis.set(xticks=range(5), yticks=range(4))
    axis.set_xlabel("cost of the first good", color=soft)
    axis.set_ylabel("cost of the second", color=soft)
    axis.tick_params(colors=soft)
    axis.spines[:].set_visible(False)
    return figure


def write(folder: Path = IMAGES) -> None:
    """Both pictures."""
    found = play()
    for name, look in LOOKS.items():
        picture = draw(found, *look)
        picture.savefig(folder / f"{name}.png", transparent=True, pil_kwargs={"optimize": True})


if __name__ == "__main__":
    write()
