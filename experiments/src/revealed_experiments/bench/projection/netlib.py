"""`revealed bench netlib`: hard problems, and whether what is called solved is solved.

For every problem in a folder: solve it, perturb its cost by 10%, and project that cost onto the
costs under which the solution stays optimal, at margin 0. Residuals are computed by
`bench.certificate`, which shares no code with the library; objectives are compared with those of
PIQP and Clarabel, each repaired to be exactly feasible first.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from revealed.cli.commands.options import number, whole

from ..record import surroundings, write_json

METHODS = ("auto", "kernel")
GOAL = 1e-6
"""Largest residual, and largest excess of the objective, of a projection that counts as right."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `revealed bench netlib`."""
    parser.add_argument(
        "--data", type=Path, required=True, metavar="DIR", help="folder of .mps.gz files"
    )
    parser.add_argument("--tol", type=number, default=1e-8, help="tolerance asked of ours (1e-8)")
    parser.add_argument("--time-limit", type=number, default=120.0, help="seconds a problem (120)")
    parser.add_argument("--only", metavar="TEXT", help="only problems whose name contains this")
    parser.add_argument("--seed", type=whole, default=0)
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("experiments/results/netlib.json"),
        help="JSON file to write (%(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    """Project on every problem, print the table and the counts, write the JSON.

    0 if `auto` is right everywhere, the kernel alone on all but a tenth, and no claim is false.
    """
    settings = {"tol": args.tol, "seed": args.seed, "time_limit": args.time_limit, "goal": GOAL}
    command = f"revealed bench netlib --data {args.data.name} --tol {args.tol} --seed {args.seed}"
    content = surroundings(command, settings)
    files, rows = problem_files(args.data, args.only), []
    _compile()
    for path in files:
        print(f"  {path.name}", file=sys.stderr, flush=True)
        rows.append(examine(path, args))
    content |= {"benchmark": "netlib", "rows": rows, "counts": count(rows)}
    write_json(args.out, content)
    _print(rows, content["counts"], args.out)
    counts = content["counts"]
    allowed = len(rows) * 4 // 46  # 42 of the 46 problems that this benchmark is about
    right = counts["auto right"] == len(rows) and counts["kernel right"] >= len(rows) - allowed
    return 0 if right and counts["false claims"] == 0 else 1


def problem_files(folder: Path, only: str | None = None) -> list[Path]:
    """The .mps.gz files of a folder, smallest first."""
    from revealed.errors import InputError

    files = [path for path in folder.glob("*.mps.gz") if not only or only in path.name]
    if not files:
        raise InputError(f"{folder} must hold .mps.gz files to read; none was found there.")
    return sorted(files, key=lambda path: (path.stat().st_size, path.name))


def problem_name(path: Path) -> str:
    """`25fv47` for `25fv47.mps.gz`."""
    return path.name.removesuffix(".gz").removesuffix(".mps")


def examine(path: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Everything about one problem: its size, what ours reached, what the others reached."""
    case = _case(path, args.seed)
    row: dict[str, Any] = {
        "problem": problem_name(path),
        "rows": case.m_eq + case.m_ub,
        "columns": case.n,
        "active_rows": case.m_eq + int(case.row_active.sum()),
    }
    others = {name: _other(name, case) for name in ("PIQP", "Clarabel")}
    ours = {method: _ours(case, method, args) for method in METHODS}
    best = min((entry["objective"] for entry in others.values() if entry), default=np.nan)
    # Of a cost that is explained already, the objective is rounding: no share is taken of it.
    least = 0.5 * (1e-3 * float(np.linalg.norm(case.costs[0]))) ** 2
    for entry in [*ours.values(), *others.values()]:
        if entry:
            entry["excess"] = (entry["objective"] - best) / max(best, least)
    for entry in ours.values():
        entry["right"] = bool(entry["residual"] <= GOAL and not entry["excess"] > GOAL)
        entry["false_claim"] = bool(entry["solved"] and not entry["residual"] <= args.tol)
    return row | {"ours": ours, "others": others, "best_objective": best}


def count(rows: list[dict[str, Any]]) -> dict[str, int]:
    """How often each was right, and how often anything called solved was not."""
    ours = [row["ours"] for row in rows]
    return {
        "problems": len(rows),
        "auto right": sum(entry["auto"]["right"] for entry in ours),
        "kernel right": sum(entry["kernel"]["right"] for entry in ours),
        "false claims": sum(e["false_claim"] for entry in ours for e in entry.values()),
        **{
            f"{name} within goal": sum(
                bool(row["others"][name] and row["others"][name]["excess"] <= GOAL) for row in rows
            )
            for name in ("PIQP", "Clarabel")
        },
    }


def _compile() -> None:
    """Project something small first, so that no problem is charged for compilation."""
    from .cases import cases_of, knapsack

    list(cases_of(knapsack(), batch=2))


def _case(path: Path, seed: int):
    """The problem's optimal decision and its perturbed cost as a batch of one."""
    from revealed import OptimalitySet, read_mps

    from .cases import Case, perturbed

    model = read_mps(path)
    problem, cost = model.problem, model.cost
    assert cost is not None  # an MPS file always has one
    sets = OptimalitySet(problem, problem.solve(cost[None]).x, margin=0.0)
    return Case(
        name=problem_name(path),
        regime="perturbed",
        costs=perturbed(cost, np.random.default_rng(seed), 1),
        A_eq=problem.A_eq,  # type: ignore[arg-type]
        A_ub=problem.A_ub,  # type: ignore[arg-type]
        entry_state=np.asarray(sets.entry_state),
        row_active=np.asarray(sets.row_active),
        margin=0.0,
        sets=sets,
    )


def _ours(case, method: str, args: argparse.Namespace) -> dict[str, Any]:
    from revealed import project
    from revealed.projection import ProjectionStatus

    from .certificate import objective, residual

    began = time.perf_counter()
    result = project(case.costs, case.sets, method=method, tol=args.tol, time_limit=args.time_limit)
    seconds = time.perf_counter() - began
    w = np.asarray(result.multipliers)[0]
    v, mu = w[: case.m_eq], w[case.m_eq :]
    return {
        "solved": bool(result.solved[0]),
        "status": ProjectionStatus(int(result.status[0])).name.lower().replace("_", " "),
        "steps": int(result.iterations[0]),
        "seconds": seconds,
        "residual": residual(case, 0, np.asarray(result.point)[0], v, mu),
        "claimed_residual": float(result.residual[0]),
        "objective": objective(case, 0, v, mu),
    }


def _other(name: str, case) -> dict[str, Any] | None:
    """The best objective of its forms at two tolerances; None where it is not installed.

    It is given the cost scaled to size 1. At margin 0 the set is a cone, so scaling is exact, and
    it spares these solvers the units.
    """
    from .certificate import objective, residual
    from .interior_point import ClarabelDirect, PiqpCompact, PiqpDirect
    from .rivals import missing

    if missing(name.lower()):
        return None
    unit = float(np.sqrt(np.mean(case.costs**2))) or 1.0
    scaled = replace(case, costs=case.costs / unit)
    found = []
    forms = (PiqpDirect, PiqpCompact) if name == "PIQP" else (ClarabelDirect,)
    for form, eps in product(forms, (1e-8, 1e-11)):
        rival = form(eps)
        rival.prepare(scaled)
        began = time.perf_counter()
        point = unit * rival.solve(0)
        seconds = time.perf_counter() - began
        v, mu = (unit * part for part in rival.multipliers())
        if np.isfinite(v).all() and np.isfinite(mu).all():
            entry = {"settings": rival.settings, "seconds": seconds}
            entry |= {"objective": objective(case, 0, v, mu)}
            found.append(entry | {"residual": residual(case, 0, point, v, mu)})
    return min(found, key=lambda entry: entry["objective"], default=None)


def _print(rows: list[dict[str, Any]], counts: dict[str, int], path: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title="NETLIB: cost perturbed by 10%, projected at margin 0")
    for heading in ("problem", "method", "status"):
        table.add_column(heading)
    for heading in ("rows", "columns", "active", "residual", "excess", "steps", "ms"):
        table.add_column(heading, justify="right")
    for row in rows:
        for name, entry in row["ours"].items():
            color = "green" if entry["right"] else "yellow"
            mark = "[red]FALSE CLAIM[/] " if entry["false_claim"] else ""
            table.add_row(
                row["problem"] if name == "auto" else "",
                name,
                f"{mark}[{color}]{entry['status']}[/]",
                str(row["rows"]),
                str(row["columns"]),
                str(row["active_rows"]),
                f"{entry['residual']:.1e}",
                f"{entry['excess']:+.1e}",
                str(entry["steps"]),
                f"{1e3 * entry['seconds']:.1f}",
            )
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(table)
    console.print(", ".join(f"{name}: {value}" for name, value in counts.items()))
    console.print(f"written to {path}")
