"""What the demonstration prints: four short steps, each with the figures that back it."""

from __future__ import annotations

from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from .pictures import draw_costs, draw_losses, draw_routes
from .scene import (
    FEATURES,
    TOL,
    Outcome,
    Town,
    Trips,
    compile_kernels,
    learn,
    make_town,
    make_trips,
)

INDENT = 13


def tell(out: Path, seed: int, trips: int, held_out: int, iterations: int) -> bool:
    """Run the demonstration, print it, draw it; True if every claim it makes held."""
    out.mkdir(parents=True, exist_ok=True)  # first: no one should wait a minute to hear it fails
    console = Console(highlight=False)
    console.width = min(console.width, 96)  # long lines are hard to read on a wide screen
    console.print("[bold]revealed[/]: which costs do these decisions reveal?\n")
    town = make_town(seed)
    everyone = make_trips(town, trips + held_out, seed)
    train, test = everyone.part(slice(0, trips)), everyone.part(slice(trips, None))
    _tell_beginning(console, town, train, test)
    with console.status("compiling (the first run only, about half a minute) ..."):
        compile_kernels(train)
    _tell_method(console)
    outcome = learn(train, test, town, iterations=iterations, verbose=True)
    _tell_learning(console, train, outcome)
    _tell_comparison(console, test, outcome)
    pictures = {"costs.png": draw_costs, "routes.png": draw_routes}
    for name, draw in pictures.items():
        draw(out / name, town, test, outcome)
    draw_losses(out / "loss.png", outcome)
    _step(
        console,
        "Pictures",
        f"{out / 'costs.png'}   learned against true costs\n"
        f"{out / 'routes.png'}  predicted over observed routes\n"
        f"{out / 'loss.png'}    the loss on its way to the minimum, and what it is worth",
        gap=0,
    )
    return _all_held(outcome)


def _tell_beginning(console: Console, town: Town, train: Trips, test: Trips) -> None:
    _step(
        console,
        "1 Observe",
        f"{len(train):,} trips through a town of {len(town.tail)} one-way streets, each by the "
        f"quickest route under the {', '.join(FEATURES[:-1])} and {FEATURES[-1]} of its hour. We "
        "see the conditions and the route, never a travel time.",
    )


def _tell_method(console: Console) -> None:
    _step(
        console,
        "2 Learn",
        "A linear model gives every street a cost in every context. Its loss is the distance from "
        "each prediction to the nearest costs that explain the route, minimized to the end: "
        "InverseRegressor(problem, noise=0).fit(contexts, routes).",
    )


def _tell_learning(console: Console, train: Trips, outcome: Outcome) -> None:
    certificate, used = outcome.model.certificate_, outcome.model.certificate_.convergence
    facts = Table.grid(padding=(0, 3))
    facts.add_column(style="dim")
    proved = (
        f"proved to be within {certificate.relative_gap:.0e} of its minimum"
        if certificate.converged
        else "not converged"
    )
    facts.add_row("loss", f"{certificate.value:.4g}, {proved}")
    facts.add_row(
        "time",
        f"{outcome.seconds:.0f} s for {used.evaluations} evaluations of the loss",
    )
    facts.add_row(
        "projections",
        f"{used.projections:,}, {outcome.each_us:.0f} µs each; those at the end all "
        f"certified to {TOL:g}, residual {outcome.residual:.0e} at worst",
    )
    console.print(Padding(facts, (1, 0, 1, INDENT), expand=False))


def _tell_comparison(console: Console, test: Trips, outcome: Outcome) -> None:
    _step(
        console,
        "3 Compare",
        f"{len(test)} further trips, in contexts never seen. Who predicts the route?",
        gap=0,
    )
    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="dim")
    table.add_column("costs", no_wrap=True)
    table.add_column("saw", style="dim", no_wrap=True)
    for heading in ("match", "loss", "regret"):
        table.add_column(heading, justify="right")
    for score in outcome.scores:
        figures = (f"{score.match:.1%}", f"{score.loss:.2f}", f"{score.regret:.2%}")
        table.add_row(score.name, score.saw, *figures, style="bold" if score.ours else "")
    console.print(Padding(table, (0, 0, 0, INDENT), expand=False))
    _step(
        console,
        "",
        "match: the very same route, ties counted by chance. loss: |x - x*|², streets that differ. "
        "regret: minutes lost on the predicted route, as a share of the quickest. Least squares "
        "was given what is seldom known, every street's true time on every past trip.",
    )


def _all_held(outcome: Outcome) -> bool:
    """Did all that was printed as a fact come out as it should?"""
    nothing, _, learned, _ = outcome.scores
    return bool(
        outcome.model.certificate_.unsolved == 0
        and outcome.model.certificate_.converged
        and outcome.residual <= TOL
        and learned.regret < nothing.regret
        and learned.match > nothing.match
    )


def _step(console: Console, title: str, words: str, gap: int = 1) -> None:
    row = Table.grid(padding=(0, 2))
    row.add_column(width=INDENT - 2, style="bold cyan")
    row.add_column(overflow="fold")
    row.add_row(title, Text(words))
    console.print(Padding(row, (0, 0, gap, 0), expand=False))
