"""The projection problems on which everyone is timed: one family, one regime, one batch.

Letters: B batch, n cost entries, m rows. Four regimes of predictions `q`:
- cold: random costs that have nothing to do with the decisions (training begins like this);
- almost: a point of the set moved by 0.1% of its length (training ends like this);
- near: the costs behind the decisions moved by 1%, margin 0.01: most entries lie well inside their
  limits, and which ones bind is all there is to find (Newton alone takes dozens of steps here);
- warm: the cold costs moved by 1%, with the solution of the unmoved ones at hand (the next epoch).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from revealed.errors import InputError

REGIMES = ("cold", "almost", "near", "warm")
NEAR_MARGIN = 0.01
"""Margin of the `near` regime, for costs of size about 1."""
# 56, 223 and 643 rows, about three times more each time, and bounded when the cost is perturbed.
NETLIB_NAMES = ("adlittle", "e226", "bnl1")


@dataclass(frozen=True, eq=False)
class Case:
    """A batch of projections as plain arrays, which is all that a rival solver needs."""

    name: str
    regime: str
    costs: np.ndarray
    """(B, n): the predictions to project."""
    A_eq: sparse.csr_array
    A_ub: sparse.csr_array
    entry_state: np.ndarray
    """(B, n) codes of `EntryState`."""
    row_active: np.ndarray
    """(B, m_ub) bool."""
    margin: float
    previous: np.ndarray | None = None
    """(B, n): in the warm regime, the costs whose projections are known already."""
    sets: Any = None
    """The `OptimalitySet` of the same decisions, for our own projection."""

    def __len__(self) -> int:
        return len(self.costs)

    @property
    def n(self) -> int:
        """Cost entries."""
        return self.costs.shape[1]

    @property
    def m_eq(self) -> int:
        """Equality rows."""
        return _n_rows(self.A_eq)

    @property
    def m_ub(self) -> int:
        """Inequality rows, active or not."""
        return _n_rows(self.A_ub)

    def head(self, count: int) -> Case:
        """The first `count` instances."""
        return replace(
            self,
            costs=self.costs[:count],
            entry_state=self.entry_state[:count],
            row_active=self.row_active[:count],
            previous=None if self.previous is None else self.previous[:count],
            sets=None if self.sets is None else self.sets[np.arange(min(count, len(self)))],
        )


@dataclass(frozen=True)
class Family:
    """A forward problem and a way to draw costs for it."""

    name: str
    problem: Any
    draw: Callable[[np.random.Generator, int], np.ndarray]
    """(rng, B) -> (B, n) costs of size about 1."""
    margin: float = 1.0


def grid(side: int) -> Family:
    """Shortest paths on a square grid; 5x5 is the paper's right-down one, the rest 8-neighbor."""
    from revealed.problems import grid_shortest_path

    if side == 5:
        problem = grid_shortest_path(side, side, directed="right-down")
    else:
        problem = grid_shortest_path(side, side, neighbors=8)
    return Family(f"grid {side}x{side}", problem, _uniform(problem.n_variables))


def knapsack() -> Family:
    """Ten divisible items of weight 3 to 8 and room for 20, as in the paper's appendix."""
    from revealed.problems import knapsack as build

    weights = np.random.default_rng(0).uniform(3.0, 8.0, 10)
    draw = _uniform(10)
    return Family("knapsack 10", build(weights, 20.0), lambda rng, size: -draw(rng, size))


def matching() -> Family:
    """Perfect matchings of a 12x12 grid."""
    from revealed.problems import grid_matching

    problem = grid_matching(12, 12)
    return Family("matching 12x12", problem, _uniform(problem.n_variables))


def netlib(path: Path) -> Family:
    """A NETLIB problem with its own cost, scaled to size 1 and perturbed by 10% for each draw."""
    from revealed.importers import read_mps

    from .netlib import problem_name

    model = read_mps(path)
    assert model.cost is not None  # an MPS file always has one
    cost = model.cost / max(float(np.sqrt(np.mean(model.cost**2))), 1e-300)
    return Family(
        problem_name(path), model.problem, lambda rng, size: perturbed(cost, rng, size), margin=0.0
    )


def perturbed(cost: np.ndarray, rng: np.random.Generator, size: int) -> np.ndarray:
    """(size, n): each entry of `cost` moved by up to 10%, an entry of 0 by up to 1% of the rms.

    Without the small absolute part a zero cost would stay zero and never be tested.
    """
    noise = rng.uniform(-1.0, 1.0, (size, len(cost)))
    rms = float(np.sqrt(np.mean(cost**2)))
    step = np.where(cost != 0, 0.1 * np.abs(cost), 0.01 * (rms or 1.0))
    return cost + step * noise


def standard_families(
    netlib_folder: Path | None, *, quick: bool = False, only: str | None = None
) -> list[Family]:
    """The families of the table, smallest first; `only` keeps those whose name contains it."""
    if quick:
        families = [knapsack(), grid(5)]
    else:
        families = [knapsack(), grid(5), matching(), grid(12), grid(18), grid(30)]
        if netlib_folder is not None:
            families += [netlib(_netlib_file(netlib_folder, name)) for name in NETLIB_NAMES]
    chosen = [family for family in families if only is None or only in family.name]
    if not chosen:
        names = ", ".join(family.name for family in families)
        raise InputError(f"`--only {only}` matches none of the problems: {names}.")
    return chosen


def cases_of(family: Family, batch: int, seed: int = 0) -> Iterator[Case]:
    """The four regimes of one family, on the same decisions."""
    from revealed import OptimalitySet, project

    rng = np.random.default_rng(seed)
    decisions, behind = _decisions(family, batch, rng)
    sets = OptimalitySet(family.problem, decisions, margin=family.margin)
    costs = family.draw(rng, batch)
    inside = project(costs, sets).point
    cold = Case(
        name=family.name,
        regime="cold",
        costs=costs,
        A_eq=sparse.csr_array(family.problem.A_eq),
        A_ub=sparse.csr_array(family.problem.A_ub),
        entry_state=np.asarray(sets.entry_state),
        row_active=np.asarray(sets.row_active),
        margin=family.margin,
        sets=sets,
    )
    yield cold
    yield replace(cold, regime="almost", costs=_moved(inside, 1e-3, rng))
    slight = min(family.margin, NEAR_MARGIN)
    yield replace(
        cold,
        regime="near",
        costs=_moved(behind, 1e-2, rng),
        margin=slight,
        sets=OptimalitySet(family.problem, decisions, margin=slight),
    )
    yield replace(cold, regime="warm", costs=_moved(costs, 1e-2, rng), previous=costs)


def _n_rows(A: Any) -> int:
    return A.shape[0]


def _uniform(n: int) -> Callable[[np.random.Generator, int], np.ndarray]:
    return lambda rng, size: rng.uniform(0.0, 2.0, (size, n))


def _moved(points: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    noise = rng.standard_normal(points.shape)
    length = np.linalg.norm(points, axis=1) / np.linalg.norm(noise, axis=1)
    return points + share * length[:, None] * noise


def _decisions(
    family: Family, batch: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """(batch, n) optimal decisions and the costs behind them; unbounded draws are drawn again."""
    found: list[np.ndarray] = []
    behind: list[np.ndarray] = []
    for _ in range(20):
        costs = family.draw(rng, batch - len(found))
        solution = family.problem.solve(costs)
        found.extend(solution.x[solution.optimal])
        behind.extend(costs[solution.optimal])
        if len(found) == batch:
            return np.array(found), np.array(behind)
    raise RuntimeError(f"{family.name}: costs with a finite optimum are too rare to draw {batch}.")


def _netlib_file(folder: Path, name: str) -> Path:
    path = folder / f"{name}.mps.gz"
    if not path.is_file():
        raise InputError(
            f"The NETLIB folder must hold {name}.mps.gz; {folder} does not. "
            "Leave out --netlib to time the other problems only."
        )
    return path
