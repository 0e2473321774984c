"""The picture on the page of whole decisions: an outer, the exact and an inner set of costs.

`python docs/_tools/whole_figure.py` writes docs/images/whole.png and whole-dark.png. All that is
drawn is computed: the library says where the projections lie and what the solver has answered.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

import revealed as rv

IMAGES = Path(__file__).resolve().parents[1] / "images"
DECISION, GUESS = np.array([0.0, 4.0]), np.array([-2.0, -0.2])
ROW, LIMIT, MOST = np.array([3.0, 2.0]), 9.5, 4.0
LOOKS = {
    "whole": ("#16181d", "#5d636b", "#e3eefa", "#b5d3ef", "#6ea8dc", "#c2410c"),
    "whole-dark": ("#eceff3", "#a3acb8", "#16293d", "#234a6f", "#3f7fb8", "#ff9d5c"),
}
FAR = 40.0


class Found(NamedTuple):
    """What the library says of the guess."""

    first: np.ndarray
    """The alternative that the solver names when it is asked about the guess."""
    outer: np.ndarray
    """The nearest cost after that one question; `exact` after all, `inner` by active rows alone."""
    exact: np.ndarray
    inner: np.ndarray
    calls: int


def play() -> Found:
    """Project the guess by one question, by as many as it takes, and onto the inner set."""
    problem = rv.IntegerProgram(A_ub=ROW[None], b_ub=LIMIT, ub=MOST)
    first = problem.solve(GUESS[None]).x[0]
    sets = rv.OptimalitySet(problem, DECISION[None], margin=0.0)
    early = rv.project(GUESS[None], sets, max_iter=1)
    near = rv.project(GUESS[None], sets)
    rows = rv.OptimalitySet(problem.relaxation, DECISION[None], margin=0.0)
    inner = rv.project(GUESS[None], rows).point[0]
    assert near.solved.all()
    assert early.lower_bound[0] < near.distance[0] < np.linalg.norm(inner - GUESS)
    calls = int(early.calls[0] + near.calls[0])
    return Found(first, early.outer[0], near.point[0], inner, calls)


def points() -> np.ndarray:
    """(N, 2) all whole decisions."""
    grid = np.stack(np.meshgrid(np.arange(5.0), np.arange(5.0)), axis=-1).reshape(-1, 2)
    return grid[grid @ ROW <= LIMIT]


def draw_decisions(axis, found: Found, ink: str, soft: str, pale: str, warm: str) -> None:
    """The plan: whole decisions, and what fractions would add."""
    corners = [(0, 0), (0, MOST), ((LIMIT - 2 * MOST) / 3, MOST), (LIMIT / 3, 0)]
    axis.fill(*np.transpose(corners), color=pale, lw=0)
    axis.plot(*points().T, "o", color=soft, ms=6)
    axis.plot(*DECISION, "o", color=warm, ms=10)
    axis.plot(*found.first, "o", color=ink, ms=9)
    words = {"x*, decided": (DECISION, (10, 7)), "answer to q": (found.first, (8, 6))}
    for text, (place, offset) in words.items():
        axis.annotate(text, place, offset, textcoords="offset points", color=ink, fontsize=11)
    axis.set(xlim=(-0.4, 4.4), ylim=(-0.4, 4.6), aspect="equal", xticks=range(5), yticks=range(5))
    axis.set_title("decisions", color=ink, fontsize=12)


def draw_costs(axis, found: Found, ink: str, fills: tuple[str, str, str], warm: str) -> None:
    """The sets of costs, each inside the one before, and the nearest cost of each."""
    steps = points() - DECISION
    grid = np.linspace(-2.6, 1.4, 801)
    costs = np.stack(np.meshgrid(grid, np.linspace(-2.6, 1.0, 721)), axis=-1)
    exact = (costs @ steps.T >= 0).all(axis=-1)
    outer = costs @ (found.first - DECISION) >= 0
    inner = (costs[..., 0] >= 0) & (costs[..., 1] <= 0)
    for inside, color in zip((outer, exact, inner), fills, strict=True):
        axis.contourf(grid, np.linspace(-2.6, 1.0, 721), inside, [0.5, 1.5], colors=[color])
    steps_look = {"arrowstyle": "-|>", "color": warm, "lw": 1.8, "shrinkA": 3, "shrinkB": 2}
    for place in (found.outer, found.exact, found.inner):
        axis.annotate("", place, GUESS, arrowprops=steps_look)
    axis.plot(*GUESS, "o", color=warm, ms=8)
    axis.annotate("q", GUESS, (-4, 9), textcoords="offset points", color=ink, fontsize=13)
    for name, place, offset in (
        ("outer", found.outer, (-40, -16)),
        ("exact", found.exact, (-6, -22)),
        ("inner", found.inner, (7, -3)),
    ):
        distance = np.linalg.norm(place - GUESS)
        text = f"{name}: {distance:.2f}"
        axis.annotate(text, place, offset, textcoords="offset points", color=ink, fontsize=11)
    for text, place in (
        ("all costs that\nexplain x*", (-1.45, -2.35)),
        ("active rows\nand bounds", (0.3, -1.6)),
    ):
        axis.annotate(text, place, color=ink, fontsize=11)
    look = {"arrowstyle": "-", "color": ink, "lw": 0.8}
    axis.annotate(
        "after one question", (0.75, 0.28), (-1.05, 0.55), color=ink, fontsize=11, arrowprops=look
    )
    axis.set(xlim=(-2.6, 1.4), ylim=(-2.6, 1.0), aspect="equal", xticks=(-2, -1, 0, 1))
    axis.set_yticks((-2, -1, 0, 1))
    axis.set_title("costs", color=ink, fontsize=12)


def draw(found: Found, ink: str, soft: str, pale: str, middle: str, full: str, warm: str) -> Figure:
    """Both planes side by side."""
    figure = Figure(figsize=(9.2, 4.5), dpi=120)
    left, right = (
        figure.add_axes((0.05, 0.12, 0.4, 0.78)),
        figure.add_axes((0.52, 0.12, 0.47, 0.78)),
    )
    draw_decisions(left, found, ink, soft, pale, warm)
    draw_costs(right, found, ink, (pale, middle, full), warm)
    names = (("amount of the first", "of the second"), ("cost of the first", "of the second"))
    for axis, (first, second) in zip((left, right), names, strict=True):
        axis.set_xlabel(first, color=soft)
        axis.set_ylabel(second, color=soft)
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
