"""Device, CPU kernel and slow reference side by side.

    python -m revealed_experiments.device.projection --large --netlib FOLDER

The same inputs for every device and method, so that the tests on a machine without a GPU and the
one command on a machine with one look at the same thing. Letters: B instances, n cost entries.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from revealed.cli.commands.options import number
from revealed.importers import read_mps
from revealed.optimality.sets import OptimalitySet
from revealed.problems import assignment, grid_matching, grid_shortest_path, knapsack
from revealed.problems.linear import LinearProgram
from revealed.projection import project
from revealed.projection.cpu.reference import reference_projection
from revealed.projection.triton.run import project_on_device
from revealed.projection.triton.sets import DeviceSets

from ..bench.projection.cases import perturbed
from .interpreter import fix_interpreter

AGREEMENT = 1e-7
"""Most that two answers may differ, in lengths of the move (at least 1e-3 of the cost)."""
SHORT = 1e-3
SMALL = 130
"""Cost entries up to which the slow reference is asked too."""


@dataclass(frozen=True, eq=False)
class Case:
    """Decisions of one problem, and costs that have nothing to do with them."""

    name: str
    sets: OptimalitySet
    costs: np.ndarray
    """(B, n)"""


@dataclass(frozen=True)
class Row:
    """How one case went in one regime."""

    name: str
    regime: str
    off: float
    """Largest disagreement with the CPU kernel."""
    off_reference: float | None
    """And with the slow reference, where it was asked."""
    residual: float
    solved: bool
    steps: int

    @property
    def agrees(self) -> bool:
        worst = max(self.off, self.off_reference or 0.0)
        return bool(self.solved and worst <= AGREEMENT)


# --- cases ---------------------------------------------------------------------------------------


def small_cases() -> Iterator[Case]:
    """A few of each kind; none takes the slow reference long."""
    rng = np.random.default_rng(5)
    yield _case("grid 5x5 right-down", grid_shortest_path(5, 5, directed="right-down"), rng)
    yield _case("grid 3x4, 8 neighbors", grid_shortest_path(3, 4, neighbors=8), rng)
    yield _case("grid 6x6", grid_shortest_path(6, 6), rng)
    yield _case("matching 4x4", grid_matching(4, 4), rng)
    yield _case("assignment 3 of 5", assignment(3, 5), rng)
    yield _case("knapsack", knapsack(rng.uniform(3, 8, 10), 20.0), rng, sign=-1)
    yield _case("two knapsacks", knapsack(rng.uniform(1, 6, (2, 12)), [9.0, 11.0]), rng, sign=-1)
    yield _case("random 9 + 5 rows", random_program(9, 5, 40, rng), rng)
    yield _case("random 16 + 14 rows", random_program(16, 14, 70, rng), rng)
    yield _case("random 30 + 25 rows", random_program(30, 25, 120, rng), rng)


def large_cases(batch: int = 32) -> Iterator[Case]:
    """Grids up to 30 and boards up to 12."""
    rng = np.random.default_rng(6)
    for side in (5, 8, 12, 18, 30):
        problem = grid_shortest_path(side, side, neighbors=8)
        yield _case(f"grid {side}x{side}, 8 neighbors", problem, rng, batch)
    for side in (6, 12):
        yield _case(f"matching {side}x{side}", grid_matching(side, side), rng, batch)
    yield _case("random banded", random_program(150, 40, 500, rng, band=0.06), rng, batch)


def netlib_cases(folder: Path, names: list[str], batch: int = 4) -> Iterator[Case]:
    """NETLIB problems with their own cost moved by 10%, margin 0."""
    for name in names:
        model = read_mps(folder / f"{name}.mps.gz")
        problem, cost = model.problem, model.cost
        assert cost is not None  # an MPS file always has one
        rng = np.random.default_rng(0)
        answer = problem.solve(np.repeat(cost[None], batch, axis=0))
        sets = OptimalitySet(problem, answer.x, margin=0.0, tol=1e-6)
        yield Case(name, sets, perturbed(cost, rng, batch))


def save_cases(cases: list[Case], path: Path) -> None:
    """Write cases to an .npz file, for a machine that cannot read or solve them, having no highspy.

    All of a case share one matrix.
    """
    told = {"names": np.array([case.name for case in cases])}
    for k, case in enumerate(cases):
        problem = case.sets.problem
        told |= {f"{k} {part}": getattr(problem, part) for part in ("b_eq", "b_ub", "lb", "ub")}
        told |= {f"{k} {part}": getattr(problem, part).toarray() for part in ("A_eq", "A_ub")}
        told |= {f"{k} decisions": case.sets.decisions, f"{k} costs": case.costs}
    with path.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **told)


def saved_cases(path: Path) -> Iterator[Case]:
    """What `save_cases` wrote, of NETLIB problems: margin 0."""
    parts = ("A_eq", "b_eq", "A_ub", "b_ub", "lb", "ub")
    with np.load(path) as told:
        for k, name in enumerate(told["names"].tolist()):
            problem = LinearProgram(**{part: told[f"{k} {part}"] for part in parts})
            sets = OptimalitySet(problem, told[f"{k} decisions"], margin=0.0, tol=1e-6)
            yield Case(name, sets, told[f"{k} costs"])


def random_program(
    m_eq: int, m_ub: int, n: int, rng: np.random.Generator, band: float | None = None
) -> LinearProgram:
    """A feasible program with entries in [0, 1], some inequalities tight at a known point."""

    def rows(m: int) -> np.ndarray:
        A = rng.standard_normal((m, n)) * (rng.random((m, n)) < 0.4)
        if band is not None:
            A *= np.abs(np.arange(m)[:, None] / max(m, 1) - np.arange(n) / n) < band
        return A

    A_eq, A_ub = rows(m_eq), rows(m_ub)
    x = rng.random(n) * (rng.random(n) < 0.5)
    room = 0.3 * (rng.random(m_ub) < 0.5)
    return LinearProgram(A_eq=A_eq, b_eq=A_eq @ x, A_ub=A_ub, b_ub=A_ub @ x + room, lb=0.0, ub=1.0)


def _case(
    name: str, problem: LinearProgram, rng: np.random.Generator, batch: int = 3, sign: float = 1.0
) -> Case:
    true = sign * rng.uniform(0.5, 1.5, (batch, problem.n_variables))
    sets = OptimalitySet(problem, problem.solve(true).x, margin=0.5)
    return Case(name, sets, rng.standard_normal(true.shape))


# --- comparison ----------------------------------------------------------------------------------


def examine(
    case: Case, device: str, method: str = "auto", precision: str = "float64", tol: float = 1e-8
) -> Iterator[Row]:
    """The case cold, almost right, late in training, and from the cold answer warm and far away."""
    rng = np.random.default_rng(9)
    sets = DeviceSets.upload(case.sets, device)

    def run(costs: np.ndarray, regime: str, warm_start: torch.Tensor | None = None) -> Row:
        put = torch.as_tensor(costs, device=device)
        got = project_on_device(
            put, sets, tol=tol, warm_start=warm_start, method=method, precision=precision
        )
        nonlocal answer
        answer = got
        trusted = project(costs, case.sets, tol=1e-10, method="kernel").point
        point = got.point.cpu().numpy()
        reference = None
        if costs.shape[1] <= SMALL:
            lines = [reference_projection(case.sets, q, b)[0] for b, q in enumerate(costs)]
            reference = _off(point, np.array(lines), costs, case.sets.margins)
        return Row(
            case.name,
            regime,
            _off(point, trusted, costs, case.sets.margins),
            reference,
            float(got.residual.max()),
            bool(got.solved.all()),
            int(got.iterations.max()),
        )

    answer = None
    yield run(case.costs, "cold")
    assert answer is not None
    cold = answer
    point = cold.point.cpu().numpy()
    size = np.abs(point).mean()
    off = 1e-3 * size * rng.standard_normal(point.shape)
    yield run(point + off, "almost")
    changed = off + 3e-4 * size * rng.standard_normal(point.shape)
    yield run(point + changed, "late", answer.multipliers)
    moved = case.costs * (1.0 + 1e-2 * rng.standard_normal(point.shape))
    yield run(moved, "warm", cold.multipliers)
    other = 20.0 * np.abs(rng.standard_normal(point.shape))  # on grids most entries change sides
    yield run(other, "far", cold.multipliers)


def _off(point: np.ndarray, trusted: np.ndarray, costs: np.ndarray, margins: np.ndarray) -> float:
    size = np.maximum(np.linalg.norm(costs, axis=1), margins)
    denominator = np.maximum(np.linalg.norm(trusted - costs, axis=1), SHORT * size)
    distance = np.linalg.norm(point - trusted, axis=1) / np.where(denominator > 0, denominator, 1.0)
    return float(distance.max(initial=0.0))


# --- the command ---------------------------------------------------------------------------------


def _netlib(place: Path) -> Iterator[Case]:
    if place.is_file():
        return saved_cases(place)
    names = sorted(path.name.split(".")[0] for path in place.glob("*.mps.gz"))
    return netlib_cases(place, names)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--method", default="auto", choices=("auto", "triton", "torch"))
    parser.add_argument("--precision", default="float64", choices=("float64", "float32"))
    parser.add_argument("--tol", type=number, default=1e-8, help="residual asked of the device")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--large", action="store_true", help="grids up to 30, boards up to 12 too")
    parser.add_argument("--netlib", type=Path, help="folder of .mps.gz files, or what --save wrote")
    parser.add_argument("--save", type=Path, help="write the NETLIB cases to this file and end")
    options = parser.parse_args(arguments)
    if os.environ.get("TRITON_INTERPRET") == "1" and options.device == "cpu":
        fix_interpreter()
    cases = [*small_cases(), *(large_cases() if options.large else ())]
    if options.netlib:
        netlib = list(_netlib(options.netlib))
        if options.save:
            save_cases(netlib, options.save)
            return 0
        cases += netlib
    wrong = 0
    for case in (case for case in cases if options.only in case.name):
        how = (options.device, options.method, options.precision, options.tol)
        for row in examine(case, *how):
            wrong += not row.agrees
            other = "" if row.off_reference is None else f"  reference {row.off_reference:.1e}"
            print(
                f"{'ok   ' if row.agrees else 'WRONG'} {row.name:28} {row.regime:7} CPU "
                f"{row.off:.1e}{other:20}  residual {row.residual:.1e}  steps {row.steps}",
                flush=True,
            )
    print(f"{wrong} wrong on {options.device}, {options.method}, {options.precision}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
