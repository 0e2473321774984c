"""What the demonstration prints: four short steps, each with the figures that back it."""

from __future__ import annotations

import sys
from pathlib import Path

from ..._common.optional import installed
from ..commands.telling import table
from ..commands.telling import tell as step
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

INDENT = 12
PICTURES = (
    ("costs.png", "learned against true costs"),
    ("routes.png", "predicted over observed routes"),
    ("loss.png", "the loss on its way to the minimum, and what it is worth"),
)


def tell(out: Path, seed: int, trips: int, held_out: int, iterations: int) -> bool:
    """Run the demonstration, print it, draw it; True if every claim it makes held."""
    out.mkdir(parents=True, exist_ok=True)  # first: no one should wait a minute to hear it fails
    print("revealed: which costs do these decisions reveal?\n")
    town = make_town(seed)
    everyone = make_trips(town, trips + held_out, seed)
    train, test = everyone.part(slice(0, trips)), everyone.part(slice(trips, None))
    _tell_beginning(town, train)
    if sys.stderr.isatty():
        print("Compiling; the first run only, about half a minute.", file=sys.stderr)
    compile_kernels(train)
    _tell_method()
    outcome = learn(train, test, town, iterations=iterations, verbose=True)
    _tell_learning(outcome)
    _tell_comparison(test, outcome)
    _draw(out, town, test, outcome)
    return _all_held(outcome)


def _tell_beginning(town: Town, train: Trips) -> None:
    step(
        "1 Observe",
        f"{len(train):,} trips through a town of {len(town.tail)} one-way streets, each by the "
        f"quickest route under the {', '.join(FEATURES[:-1])} and {FEATURES[-1]} of its hour. We "
        "see the conditions and the route, never a travel time.",
    )
    print()


def _tell_method() -> None:
    step(
        "2 Learn",
        "A linear model gives every street a cost in every context. Its loss is the distance from "
        "each prediction to the nearest costs that explain the route, minimized until it "
        "converges: "
        "InverseRegressor(problem, noise=0).fit(contexts, routes).",
    )


def _tell_learning(outcome: Outcome) -> None:
    certificate, used = outcome.model.certificate_, outcome.model.certificate_.convergence
    proved = (
        f"proved to be within {certificate.relative_gap:.0e} of its minimum"
        if certificate.converged
        else "not converged"
    )
    step("", f"Loss: {certificate.value:.4g}, {proved}.")
    step("", f"Time: {outcome.seconds:.0f} s for {used.evaluations} evaluations of the loss.")
    step(
        "",
        f"Projections: {used.projections:,}, {outcome.each_us:.0f} µs each; those at the end all "
        f"certified to {TOL:g}, residual {outcome.residual:.0e} at worst.",
    )
    print()


def _tell_comparison(test: Trips, outcome: Outcome) -> None:
    step(
        "3 Compare",
        f"{len(test)} further trips, in contexts never seen. Which method predicts the route?",
    )
    rows = [
        [score.name, score.saw, f"{score.match:.1%}", f"{score.loss:.2f}", f"{score.regret:.2%}"]
        for score in outcome.scores
    ]
    print(table(["costs", "saw", "match", "loss", "regret"], rows, INDENT))
    step(
        "",
        "match: exactly the same route; ties count by chance. loss: |x - x*|², streets that "
        "differ. regret: minutes lost on the predicted route, as a share of the quickest. Least "
        "squares sees what is rarely known: the true time of every street on every past trip.",
    )
    print()


def _draw(out: Path, town: Town, test: Trips, outcome: Outcome) -> None:
    if not installed("matplotlib"):
        step(
            "4 Pictures",
            "none: they need matplotlib, which `pip install 'revealed[plot]'` installs.",
        )
        return
    from .pictures import draw_costs, draw_losses, draw_routes

    draw_costs(out / "costs.png", town, test, outcome)
    draw_routes(out / "routes.png", town, test, outcome)
    draw_losses(out / "loss.png", outcome)
    step("4 Pictures", f"in {out}:")
    print(table(["", ""], PICTURES, INDENT).split("\n", 1)[1])


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
