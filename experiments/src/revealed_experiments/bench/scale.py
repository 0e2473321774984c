"""`revealed bench scale`: fit from ever larger Parquet tables, with time and memory of each fit.

Every fit is in a process of its own, to a relative gap of 1e-4, under a budget of 2 GB. Where the
data fit into memory as they are, their fit without partitions is compared. A fit that is stopped
goes on from its checkpoint when the command is given again, with the same --folder.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from revealed.cli.commands.options import positive

from .record import surroundings, write_json
from .scale_data import PROBLEM, write_days
from .scale_fit import MEMORY, RIDGE, TOL
from .tables import Table, show

BUDGET_MIB = 2e9 / 2**20
SERIOUS = 1_000
"""Decisions from which on times are worth something."""
TIGHT = 1e-9
"""Relative gap to which fits are compared."""
IN_MEMORY = 1_000_000
"""Decisions up to which the fit without partitions is compared."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `revealed bench scale`."""
    parser.add_argument(
        "--sizes",
        type=_sizes,
        default="10000,100000,1000000,10000000",
        help="numbers of decisions, separated by commas",
    )
    parser.add_argument(
        "--max-iter", type=positive, default=500, metavar="N", help="evaluations of each fit (500)"
    )
    parser.add_argument(
        "--folder",
        type=Path,
        metavar="DIR",
        help="where data, coefficients and checkpoints are kept, to go on from (none)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="JSON file for the figures; those of other sizes that are there are kept",
    )


def _sizes(text: str) -> list[int]:
    return [positive(word) for word in text.split(",")]


def run(args: argparse.Namespace) -> int:
    """Fit at every size; 1 if one went over the budget of memory or failed."""
    with tempfile.TemporaryDirectory() as spare:
        folder = args.folder or Path(spare)
        lines = {line["samples"]: line for line in _content(args.out).get("lines", [])}
        if max(args.sizes) >= SERIOUS:
            write_days(folder, 100)
            _fit(folder, 100, 2, "threads")  # compiles the kernels, once for this machine
        for size in args.sizes:
            write_days(folder, size)
            line = _fit(folder, size, args.max_iter, "threads")
            if size <= IN_MEMORY and not line["failed"]:
                line |= _compared(folder, size, args.max_iter)
            lines[size] = line
            print(f"  {size:,} decisions in {line['seconds']:.1f} s", flush=True)
            report = _content(args.out) | _report([lines[key] for key in sorted(lines)])
            if args.out:
                write_json(args.out, report)
    show([table_of(report["lines"])])
    done = [lines[size] for size in args.sizes]
    return 0 if all(line["within_budget"] and not line["failed"] for line in done) else 1


def _content(out: Path | None) -> dict[str, Any]:
    """What is in the file of figures so far."""
    if out is None or not out.exists():
        return {}
    return json.loads(out.read_text())


def _report(lines: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "surroundings": surroundings("revealed bench scale", {}),
        "problem": PROBLEM,
        "ridge": RIDGE,
        "tol": TOL,
        "memory": MEMORY,
        "budget_mib": BUDGET_MIB,
        "lines": lines,
    }


def _place(folder: Path, size: int, executor: str) -> Path:
    return folder / f"{executor}{size}.npy"


def _fit(folder: Path, size: int, max_iter: int, executor: str, tol: float = TOL) -> dict[str, Any]:
    command = [sys.executable, "-m", "revealed_experiments.bench.scale_fit", str(folder)]
    command += [str(size), "--executor", executor, "--max-iter", str(max_iter)]
    command += ["--coefficients", str(_place(folder, size, executor)), "--tol", str(tol)]
    if executor != "memory" and tol == TOL:
        command += ["--checkpoint", str(folder / f"checkpoint{size}")]
    with open(folder / "said", "w+") as said:
        process = subprocess.Popen(command, stdout=said)
        _, status, used = os.wait4(process.pid, 0)  # the only wait that tells the peak memory
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        told = json.loads(said.read() or "{}")
    peak = used.ru_maxrss / 1024
    return {"samples": size, "seconds": None} | told | {
        "peak_mib": peak,
        "within_budget": peak <= BUDGET_MIB,
        "failed": process.returncode != 0 or told.get("unsolved") != 0,
    }  # fmt: skip


def _compared(folder: Path, size: int, max_iter: int) -> dict[str, Any]:
    """Fits with and without partitions, both much nearer the minimum.

    Coefficients are then apart by about the root of the gap. Intercepts are not penalized, and
    those of links that are hardly used change the loss by next to nothing.
    """
    told = {n: _fit(folder, size, max_iter, n, TIGHT) for n in ("threads", "memory")}
    if any(line["failed"] for line in told.values()):
        return {}
    ours, theirs = (np.load(_place(folder, size, name)) for name in told)
    names = ("seconds", "peak_mib", "value", "relative_gap", "noise")
    return {
        "tight": {name: {key: line[key] for key in names} for name, line in told.items()},
        "difference": _apart(ours[:, :-1], theirs[:, :-1]),
        "difference_of_intercepts": _apart(ours[:, -1], theirs[:, -1]),
    }


def _apart(ours: np.ndarray, theirs: np.ndarray) -> float:
    return float(np.linalg.norm(ours - theirs) / np.linalg.norm(theirs))


def table_of(lines: list[dict[str, Any]]) -> Table:
    """A row for each size."""
    rows = []
    for line in lines:
        run = line["run"]
        rows.append(
            [
                f"{line['samples']:,}",
                f"{line['seconds']:,.0f}",
                f"{line['evaluations']}",
                f"{run['evaluation_processor_seconds']:.3g}",
                f"{line['relative_gap']:.1e}" if line["converged"] else "not reached",
                f"{line['peak_mib']:.0f}",
                f"{line['difference']:.0e}" if "difference" in line else "",
            ]
        )
    headings = ["decisions", "seconds", "evaluations", "processor seconds each", "relative gap"]
    return Table("Fits from Parquet", [*headings, "peak MiB", "from in-memory"], rows, 0)
