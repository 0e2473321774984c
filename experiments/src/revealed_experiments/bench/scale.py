"""`revealed bench scale`: fit from ever larger Parquet tables, with time and memory of each fit.

Every fit is a `revealed fit` of its own in a process of its own, as a user would start it who
has chosen a ridge: what is measured is one fit, not the many of a cross-validation.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from revealed.cli.commands.options import positive

from .record import surroundings, write_json
from .tables import Table, show

PROBLEM = "grid_shortest_path(5, 5, directed='right-down')"
FEATURES = 5
RIDGE = "0.01"
BUDGET_MIB = 2048
BLOCK = 100_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `revealed bench scale`."""
    parser.add_argument(
        "--sizes",
        type=_sizes,
        default="125000,250000,500000,1000000",
        help="numbers of decisions, separated by commas",
    )
    parser.add_argument(
        "--max-iter", type=positive, default=500, metavar="N", help="evaluations of each fit (500)"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="JSON file for the figures")


def _sizes(text: str) -> list[int]:
    return [positive(word) for word in text.split(",")]


def run(args: argparse.Namespace) -> int:
    """Fit at every size; 1 if one went over the budget of memory or failed."""
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        write_decisions(Path(folder), 100)
        _fit(Path(folder), 100, 2)  # compiles the kernels, once for this machine
        for size in args.sizes:
            write_decisions(Path(folder), size)
            lines.append(_fit(Path(folder), size, args.max_iter))
            print(f"  {size:,} decisions in {lines[-1]['seconds']:.1f} s", flush=True)
    slope = _slope(
        [line["samples"] for line in lines], [line["processor_seconds"] for line in lines]
    )
    report = {
        "surroundings": surroundings("revealed bench scale", {}),
        "problem": PROBLEM,
        "budget_mib": BUDGET_MIB,
        "exponent": slope,
        "lines": lines,
    }
    show([_table(lines)])
    print(f"processor time grows with the number of decisions to the power {slope:.2f}")
    if args.out:
        write_json(args.out, report)
    return 0 if all(line["within_budget"] and not line["failed"] for line in lines) else 1


def write_decisions(folder: Path, size: int) -> None:
    """Contexts and decisions of a hidden linear rule, as Parquet files."""
    import pyarrow
    import pyarrow.parquet as parquet

    from revealed.cli.plans import from_catalogue

    plan = from_catalogue(PROBLEM)
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((FEATURES, plan.problem.n_variables))
    names = [f"z{k + 1}" for k in range(FEATURES)]
    writers: dict[str, Any] = {}
    for start in range(0, size, BLOCK):
        Z = rng.standard_normal((min(BLOCK, size - start), FEATURES))
        X = np.asarray(plan.problem.solve(6.0 + Z @ weights).x)
        for name, columns, values in (("contexts", names, Z), ("decisions", plan.variables, X)):
            block = pyarrow.table({c: values[:, j] for j, c in enumerate(columns)})
            if name not in writers:
                writers[name] = parquet.ParquetWriter(folder / f"{name}.parquet", block.schema)
            writers[name].write_table(block)
    for writer in writers.values():
        writer.close()


def _fit(folder: Path, size: int, max_iter: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "revealed", "fit", "--problem", PROBLEM, "--json"]
    command += ["--contexts", str(folder / "contexts.parquet")]
    command += ["--decisions", str(folder / "decisions.parquet")]
    command += ["--model", "linear", "--ridge", RIDGE]
    command += ["--max-iter", str(max_iter), "--out", str(folder / "model")]
    began = time.perf_counter()
    with open(folder / "said", "w+") as said:
        process = subprocess.Popen(command, stdout=said)
        _, status, used = os.wait4(process.pid, 0)  # the only wait that tells the peak memory
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - began
        said.seek(0)
        told = json.loads(said.read() or "{}")
    peak = used.ru_maxrss / 1024
    return {
        "samples": size,
        "seconds": seconds,
        "processor_seconds": used.ru_utime + used.ru_stime,
        "evaluations": told.get("evaluations"),
        "relative_gap": told.get("relative_gap"),
        "fit_seconds": told.get("seconds"),
        "peak_mib": peak,
        "within_budget": peak <= BUDGET_MIB,
        "held_out_repeated": (told.get("held") or {}).get("repeated_share"),
        "code": process.returncode,
        "converged": told.get("converged"),
        # A fit that `--max-iter` has ended says so with its code, and has not failed.
        "failed": process.returncode != 0
        and (told.get("unsolved") != 0 or told.get("converged") is not False),
    }


def _slope(sizes: list[int], seconds: list[float]) -> float:
    if len(sizes) < 2:
        return float("nan")
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def _table(lines: list[dict[str, Any]]) -> Table:
    rows = [
        [
            f"{line['samples']:,}",
            f"{line['seconds']:.1f}",
            f"{line['processor_seconds']:.1f}",
            "yes" if line["converged"] else "no",
            f"{line['peak_mib']:.0f}",
            "yes" if line["within_budget"] else "no",
        ]
        for line in lines
    ]
    headings = ["decisions", "seconds", "of the processor", "converged", "peak MiB"]
    headings.append(f"within {BUDGET_MIB} MiB")
    return Table("Fits from Parquet", headings, rows, 0)
