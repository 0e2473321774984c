"""Paths by the device and by the CPU side by side.

    python -m revealed_experiments.device.oracles --large

The same inputs for every device and method, so that the tests on a machine without a GPU and the
one command on a machine with one look at the same thing. Letters: B instances, n cost entries.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from revealed.oracles.gpu.paths import solve_paths_on_device
from revealed.problems import grid_shortest_path, shortest_path
from revealed.problems.linear import LinearProgram
from revealed.problems.solution import SolveStatus

from .interpreter import fix_interpreter

CLOSE = 1e-9
"""Most that two objectives may differ, where the largest cost times the path's length is 1."""
FEW = 8
"""Instances that the CPU's general oracle is asked for; it is slow where highspy is absent."""


@dataclass(frozen=True, eq=False)
class Case:
    """Costs of one problem, and whether equal paths must be chosen alike."""

    name: str
    problem: LinearProgram
    costs: np.ndarray
    """(B, n)"""
    ties_agree: bool = True


@dataclass(frozen=True)
class Row:
    """How one case went."""

    name: str
    statuses: bool
    """Whether all statuses are the CPU's."""
    off: float
    """Largest difference of an objective."""
    different: int
    """Instances in which another path was chosen."""
    agrees: bool


# --- cases ---------------------------------------------------------------------------------------


def cases(batch: int = 6, sides: tuple[int, ...] = (3, 6)) -> Iterator[Case]:
    """Grids and graphs under costs of every kind."""
    rng = np.random.default_rng(3)
    for side in sides:
        shape = (side, side + 1)
        ways = {
            "right-down": grid_shortest_path(*shape, directed="right-down"),
            "4 neighbors": grid_shortest_path(*shape, neighbors=4),
            "8 neighbors": grid_shortest_path(*shape, neighbors=8),
        }
        for way, problem in ways.items():
            yield from _under_all_costs(f"grid {side}x{side + 1} {way}", problem, rng, batch)
    yield from _under_all_costs("graph", random_graph(rng, 20, 90, batch), rng, batch)
    yield from _under_all_costs("sparse graph", random_graph(rng, 30, 40, batch), rng, batch)
    yield from _under_all_costs("star", star(12), rng, batch)
    yield circles()


def random_graph(rng: np.random.Generator, n_nodes: int, n_edges: int, batch: int) -> LinearProgram:
    """Loops and parallel edges included, with ends of their own for each instance."""
    edges = rng.integers(0, n_nodes, (n_edges, 2))
    ends = rng.integers(0, n_nodes, (2, batch))
    return shortest_path(edges, source=ends[0], target=ends[1], n_nodes=n_nodes)


def star(n: int) -> LinearProgram:
    """Many ways through the middle, so that one node has more slots than are looked at at once."""
    out = [(0, k) for k in range(1, n)]
    into = [(k, n) for k in range(1, n)]
    return shortest_path([*out, *into, (n, n + 1), (n + 1, 0)], source=0, target=n + 1)


def circles() -> Case:
    """Negative costs: harmless, around a cycle, on a loop apart, and in vain."""
    edges = [(0, 1), (1, 2), (2, 1), (2, 3), (4, 4)]
    problem = shortest_path(edges, source=0, target=[3, 3, 3, 3, 4, 0])
    costs = np.ones((6, 5))
    costs[1] = [1.0, -2.0, 3.0, -1.0, 1.0]
    costs[2, 1:3] = [-2.0, 1.0]
    costs[3, 4] = -1.0
    costs[4, 1] = -3.0  # and no way to the target
    costs[5] = [1.0, 0.1, -0.1, -0.3, 0.0]  # a cycle of 0, and nothing to do
    return Case("circles", problem, costs)


def _under_all_costs(
    name: str, problem: LinearProgram, rng: np.random.Generator, batch: int
) -> Iterator[Case]:
    shape = (batch, problem.n_variables)
    acyclic = problem.structure.order is not None
    real = rng.random(shape)
    kinds = {
        "real": real,
        "whole": rng.integers(1, 4, shape),
        "whole, 0 too": rng.integers(0, 3, shape),
        "equal": np.ones(shape),
        "none": np.zeros(shape),
        "from 1e-300 to 1": 10.0 ** rng.uniform(-300, 0, shape),
        "huge": 1.7e308 * real,
        "tiny": 1e-310 * real,
        "a few negative": real - 0.05,
        "negative": rng.standard_normal(shape),
        "whole, negative too": rng.integers(-1, 9, shape),
    }
    for kind, costs in kinds.items():
        costs = costs.astype(np.float64)
        ties_agree = acyclic or bool((costs >= 0).all())
        few = slice(None) if ties_agree else slice(FEW)
        yield Case(f"{name}, {kind}", problem[few], costs[few], ties_agree)


# --- comparison ----------------------------------------------------------------------------------


def examine(case: Case, device: str, method: str = "auto", dtype: torch.dtype | None = None) -> Row:
    """The case on the device against the CPU's oracle, in the dtype of the costs given."""
    costs = torch.as_tensor(case.costs, dtype=dtype)
    trusted = case.problem.solve(costs)
    got = solve_paths_on_device(case.problem, costs.to(device), method=method)
    assert got.x.dtype == costs.dtype
    assert got.objective.dtype == costs.dtype
    status, x = got.status.cpu(), got.x.cpu()
    statuses = bool((status == trusted.status).all())
    solved = trusted.status == SolveStatus.OPTIMAL
    different = (x != trusted.x).any(1) & solved
    # Beyond the range of the dtype both are inf, and their difference means nothing.
    scale = (costs.double().abs().amax(1) * case.problem.structure.n_nodes).clamp_min(1e-300)
    gap = (got.objective.cpu().double() - trusted.objective.double()) / scale
    off = gap.abs()[solved & trusted.objective.isfinite()]
    worst = float(off.max()) if len(off) else 0.0
    close = CLOSE if costs.dtype == torch.float64 else 1e-5
    hidden = bool((x[~solved].isnan()).all())
    same = case.ties_agree and bool(different.any())
    agrees = statuses and worst <= close and hidden and not same
    return Row(case.name, statuses, worst, int(different.sum()), agrees)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--method", default="auto", choices=("auto", "triton", "torch"))
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--large", action="store_true", help="batches of 300, grids of 12 and 18")
    options = parser.parse_args(arguments)
    if os.environ.get("TRITON_INTERPRET") == "1" and options.device == "cpu":
        fix_interpreter()
    chosen = cases(300, (3, 6, 12, 18)) if options.large else cases()
    rows = [
        examine(case, options.device, options.method, dtype)
        for case in chosen
        if options.only in case.name
        for dtype in ((torch.float64, torch.float32) if "real" in case.name else (torch.float64,))
    ]
    for row in rows:
        print(
            f"{'ok   ' if row.agrees else 'WRONG'} {row.name:42} statuses "
            f"{'same' if row.statuses else 'DIFFER'}  objective {row.off:.1e}  "
            f"other paths {row.different}"
        )
    wrong = sum(not row.agrees for row in rows)
    print(f"{wrong} of {len(rows)} wrong on {options.device}, {options.method}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
