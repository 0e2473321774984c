"""The data of `revealed bench minimum`: the paper's paths, two plans, the tour and the demo town.

The two plans are written as a newcomer would: rows in the units that people use (kilowatt-hours,
grams, euros), so that entries of one matrix differ by a factor of a million.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from revealed.datasets import load_paper_synthetic, paper_paths
from revealed.problems.linear import LinearProgram


@dataclass(frozen=True)
class Case:
    """Decisions to learn from, and others to judge by."""

    name: str
    problem: Any
    contexts: np.ndarray
    decisions: np.ndarray
    held_problem: Any
    held_contexts: np.ndarray
    held_decisions: np.ndarray
    pocs: int
    """Iterations of POCS to compare with."""


def paper(seed: int, folder: Path | None) -> Case:
    """The paper's 5x5 paths: the authors' file, or our generator where there is no folder."""
    data = (
        paper_paths(seed=seed) if folder is None else load_paper_synthetic(folder, f"sp_seed{seed}")
    )
    train, test = data.train, data.test
    return Case(
        f"paper's path, seed {seed}", data.problem, train.contexts, train.decisions,
        data.problem, test.contexts, np.round(test.decisions), pocs=5_000,
    )  # fmt: skip


def feed(samples: int = 160, held: int = 200) -> Case:
    """A farm blends 1,000 kg of feed from ten ingredients; prices follow the market.

    Rows: mass in kilograms, protein in grams, energy in kilojoules, calcium in milligrams, and
    shares that an animal tolerates.
    """
    rng = np.random.default_rng(11)
    n = 10
    protein = rng.uniform(80.0, 450.0, n)  # grams in a kilogram
    energy = rng.uniform(9_000.0, 15_000.0, n)  # kilojoules in a kilogram
    calcium = rng.uniform(200.0, 9_000.0, n)  # milligrams in a kilogram
    rows = -np.stack([protein, energy, calcium])
    needs = -np.array([190.0e3, 12.2e6, 2.8e6])
    problem = LinearProgram(
        A_eq=np.ones((1, n)), b_eq=[1000.0], A_ub=rows, b_ub=needs, lb=0.0, ub=400.0
    )
    return _planned("feed blend", problem, rng, samples, held, level=(0.15, 0.6))


def factory(samples: int = 240, held: int = 200) -> Case:
    """A factory makes twelve goods within hours, kilowatt-hours, grams of catalyst and euros."""
    rng = np.random.default_rng(12)
    n = 12
    rows = np.stack(
        [
            rng.uniform(0.02, 0.2, n),  # hours of a machine
            rng.uniform(0.01, 0.15, n),  # hours of another
            rng.uniform(5.0, 60.0, n),  # kilowatt-hours
            rng.uniform(500.0, 9_000.0, n),  # milligrams of catalyst
            rng.uniform(20.0, 200.0, n),  # euros bound in stock
        ]
    )
    limits = rows @ np.full(n, 60.0)
    problem = LinearProgram(A_ub=rows, b_ub=limits, lb=0.0, ub=rng.uniform(80.0, 250.0, n))
    return _planned("factory plan", problem, rng, samples, held, level=(-30.0, -5.0))


def _planned(
    name: str,
    problem: LinearProgram,
    rng: np.random.Generator,
    samples: int,
    held: int,
    level: tuple[float, float],
) -> Case:
    """Decisions under costs that are linear in six features of very different scale."""
    d, n = 6, problem.n_variables
    units = 10.0 ** rng.uniform(-3, 3, d)
    contexts = rng.standard_normal((samples + held, d))
    base = rng.uniform(*level, n)
    costs = base * (1.0 + 0.25 * contexts @ rng.standard_normal((d, n)) / np.sqrt(d))
    decisions = np.asarray(problem.solve(costs).x)
    contexts = contexts * units
    return Case(
        name, problem, contexts[:samples], decisions[:samples],
        problem, contexts[samples:], decisions[samples:], pocs=5_000,
    )  # fmt: skip


def tour() -> Case:
    """The bakery's days that ship with the package; every fifth is held out."""
    from revealed.cli.tour import make

    contexts, weekdays, decisions = make.samples()
    days = np.array(weekdays)[:, None] == np.array(make.WEEKDAYS[1:])
    Z, X = np.hstack([contexts, days])[: make.DAYS], decisions[: make.DAYS]
    held, problem = np.arange(len(Z)) % 5 == 0, make.problem()
    return Case(
        "tour", problem, Z[~held], X[~held], problem, Z[held], X[held], pocs=5_000
    )  # fmt: skip


def town() -> Case:
    """The demonstration: 3,000 trips through a town, each with its own ends."""
    from revealed.cli.demo.scene import make_town, make_trips

    place = make_town(0)
    trips, others = make_trips(place, 3_000, 0), make_trips(place, 1_000, 1)
    return Case(
        "demo town", trips.problem, trips.seen.contexts, trips.seen.decisions,
        others.problem, others.seen.contexts, others.seen.decisions, pocs=600,
    )  # fmt: skip


def all_cases(folder: Path | None) -> dict[str, Callable[[], Case]]:
    """Every case by name, made when it is its turn."""
    return {
        "path 0": lambda: paper(0, folder),
        "path 1": lambda: paper(1, folder),
        "feed": feed,
        "factory": factory,
        "tour": tour,
        "town": town,
    }
