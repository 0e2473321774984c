"""What the demonstration prints: four short steps, each with the figures that back it."""

from pathlib import Path

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from .pictures import draw_certificates, draw_map
from .scene import (
    MARGIN,
    N_CHECKED,
    SIDE,
    Outcome,
    Scene,
    explain,
    make_scene,
    reproduced,
)

OUTSIDE_TOL = 1e-7  # relative agreement asked of the outside solver
INDENT = 13


def tell(out: Path, seed: int) -> bool:
    """Run the demonstration, print it, draw it; True if every claim it makes held."""
    console = Console(highlight=False)
    console.width = min(console.width, 96)  # long lines are hard to read on a wide screen
    console.print("[bold]revealed[/]: which costs do these decisions reveal?\n")
    scene = make_scene(seed)
    _tell_beginning(console, scene)
    with console.status("projecting (the first run compiles the kernel: some 20 s) ..."):
        outcome = explain(scene)
    _tell_projection(console, scene, outcome)
    _tell_checks(console, scene, outcome)
    routes, projections = out / "routes.png", out / "projections.png"
    draw_map(routes, scene, outcome)
    draw_certificates(projections, scene, outcome)
    _step(console, "Pictures", f"{routes}\n{projections}")
    _step(
        console,
        "Not yet",
        "Each driver's costs were explained on their own. Learning a model that predicts costs "
        "for contexts never seen is the estimator's work, and it comes with a later release.",
    )
    return _all_held(outcome, scene)


def _tell_beginning(console: Console, scene: Scene) -> None:
    drivers, roads = scene.routes.shape
    _step(
        console,
        "1 Observe",
        f"{drivers} drivers cross a {SIDE}x{SIDE} grid of {roads} one-way roads, each by the "
        "quickest route over their own terrain. We keep the routes and hide the terrain.",
    )
    hits = reproduced(scene.guess_routes, scene.routes).sum()
    _step(
        console,
        "2 Guess",
        "An old map, right in outline and wrong in detail, gives a time for every road. "
        f"Its quickest routes are the observed ones for {hits} of the {drivers} drivers.",
    )


def _tell_projection(console: Console, scene: Scene, outcome: Outcome) -> None:
    _step(
        console,
        "3 Project",
        "Move each guess to the nearest times under which the driver's route is the quickest, "
        f"with any road off it costing at least {MARGIN:g} minute more than staying on it.",
    )
    p, count = outcome.projection, len(scene.routes)
    share = p.distance / np.linalg.norm(scene.guess, axis=1)
    facts = Table.grid(padding=(0, 3))
    facts.add_column(style="dim")
    facts.add_row("solved", f"{p.solved.sum()} of {count}")
    facts.add_row("residual", f"{p.residual.max():.0e} at worst, recomputed from the definition")
    facts.add_row(
        "steps", f"{np.median(p.iterations):.0f} at the median, {p.iterations.max()} at most"
    )
    facts.add_row("moved by", f"{share.min():.1%} to {share.max():.1%} of the guess's length")
    each = 1e6 * outcome.seconds / count
    facts.add_row("time", f"{each:.0f} µs a projection, {count} at once, code already compiled")
    console.print(Padding(facts, (0, 0, 1, INDENT), expand=False))


def _tell_checks(console: Console, scene: Scene, outcome: Outcome) -> None:
    words = "Solve the routing problem again, under the guess and under the projected costs."
    _step(console, "4 Check", words, gap=0)
    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="dim")
    table.add_column("costs")
    for heading in ("routes reproduced", "share", "roads in common"):
        table.add_column(heading, justify="right")
    for name, routes in (("guess", scene.guess_routes), ("projected", outcome.projected_routes)):
        hit = reproduced(routes, scene.routes)
        common = (routes * scene.routes).sum() / scene.routes.sum()
        table.add_row(name, f"{hit.sum()} of {len(hit)}", f"{hit.mean():.1%}", f"{common:.1%}")
    table.rows[-1].style = "bold"
    console.print(Padding(table, (0, 0, 0, INDENT), expand=False))
    _step(console, "", _nearness(outcome))


def _nearness(outcome: Outcome) -> str:
    if outcome.outside_gap is None:
        return (
            "Nearest? Not checked by an outside solver: Clarabel is not installed. "
            "`pip install 'revealed[solvers]'` brings it."
        )
    return (
        f"Nearest? Clarabel solved the same quadratic program for {N_CHECKED} of the drivers; "
        f"its answers and ours agree to {outcome.outside_gap:.0e} of their length."
    )


def _all_held(outcome: Outcome, scene: Scene) -> bool:
    """Did all that was printed as a fact come out as it should?"""
    return bool(
        outcome.projection.solved.all()
        and reproduced(outcome.projected_routes, scene.routes).all()
        and (outcome.outside_gap is None or outcome.outside_gap <= OUTSIDE_TOL)
    )


def _step(console: Console, title: str, words: str, gap: int = 1) -> None:
    row = Table.grid(padding=(0, 2))
    row.add_column(width=INDENT - 2, style="bold cyan")
    row.add_column(overflow="fold")
    row.add_row(title, Text(words))
    console.print(Padding(row, (0, 0, gap, 0), expand=False))
