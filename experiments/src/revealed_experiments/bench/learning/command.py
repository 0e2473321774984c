"""`revealed bench learning`: how fast learning is, and how it grows.

Four experiments: POCS against the same loop through CVXPY and ECOS; growth from 1,000 to 100,000
samples; what warm starts save; and what several model updates for each projection are worth.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from revealed.cli.commands.options import positive

from ..record import surroundings, write_json
from ..tables import Table, show, show_targets, target

MEMORY_LIMIT_MIB = 2048


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `revealed bench learning`."""
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="folder with the paper's sp_seed0.npz (else paths of our own generator)",
    )
    parser.add_argument("--iterations", type=positive, default=150, help="of POCS (150)")
    parser.add_argument("--rounds", type=positive, default=3, help="times that both are timed (3)")
    parser.add_argument("--quick", action="store_true", help="smoke test: tiny sizes, no claims")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("experiments/results/learning.json"),
        help="JSON file to write (%(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    """Measure, print the tables, write the JSON; 1 if a target was missed."""
    from ..projection.rivals import missing
    from . import runs

    quick = args.quick
    iterations, rounds = (5, 1) if quick else (args.iterations, args.rounds)
    content = surroundings(_command(args), {"iterations": iterations, "rounds": rounds})
    content |= {"benchmark": "learning", "notes": []}
    absent = [package for package in ("cvxpy", "ecos") if missing(package)]
    if absent:
        content["notes"].append(f"No usual loop: {' and '.join(absent)} not installed.")
    else:
        _say("POCS against the usual loop")
        data = _paths(args.data)
        content["usual_loop"] = runs.against_usual_loop(
            data, iterations, min(iterations, 2 if quick else 10), rounds
        )
    _say("growth with the number of samples")
    sizes = (50, 100) if quick else (1_000, 10_000, 100_000)
    content["growth"] = runs.growth(sizes, 3 if quick else 12)
    _say("warm starts")
    content["warm_start"] = [
        runs.warm_start_gain(side, samples, 3 if quick else 60)
        for side, samples in (((5, 20),) if quick else ((5, 1_000), (12, 200)))
    ]
    _say("updates for each projection")
    seeds = (42,) if quick else (42, 43, 44)
    choices = (1, 2) if quick else (1, 2, 5, 10)
    size, epochs = (40, 2) if quick else (1_000, 10)
    content["inner_steps"] = runs.inner_step_tradeoff(size, epochs, choices, seeds)
    # A smoke test is too short to support a claim about speed.
    content["targets"] = [] if quick else _targets(content)
    write_json(args.out, content)
    show(_tables(content))
    show_targets(content["targets"])
    print(f"written to {args.out}")
    return 0 if all(t["holds"] for t in content["targets"]) else 1


def _paths(folder: Path | None):
    from revealed.datasets import load_paper_synthetic, paper_paths

    return paper_paths(seed=0) if folder is None else load_paper_synthetic(folder, "sp_seed0")


def _targets(content: dict[str, Any]) -> list[dict[str, Any]]:
    found = []
    if usual := content.get("usual_loop"):
        ratio = usual["ratio"]["all"]
        found.append(target("times faster than CVXPY + ECOS", ratio, 100, at_least=True))
    last = content["growth"]["rows"][-1]
    count = f"{last['samples']:,} samples"
    share = last["least_squares_s"] / (last["projection_s"] + last["least_squares_s"])
    found.append(target(f"{count}: share of least squares in an iteration", share, 0.5))
    found.append(target(f"{count}: peak memory in MiB", last["peak_mib"], MEMORY_LIMIT_MIB))
    exponent = content["growth"]["exponent"]
    found.append(target("exponent of time in the number of samples", exponent, 1.1))
    unsolved = sum(row["unsolved"] for row in content["growth"]["rows"])
    return [*found, target("projections not certified", unsolved, 0)]


def _tables(content: dict[str, Any]) -> list[Table]:
    tables = []
    if usual := content.get("usual_loop"):
        tables.append(_usual_table(usual))
    return [*tables, _growth_table(content["growth"]), *_other_tables(content)]


def _usual_table(usual: dict[str, Any]) -> Table:
    rows = [
        [f"ours, threads: {threads}", f"{usual['ours_s'][threads]:.3f}", f"{ratio:.0f}"]
        for threads, ratio in usual["ratio"].items()
    ]
    rows.append(["CVXPY + ECOS", f"{usual['usual_s_scaled']:.1f}", "1"])
    note = (
        f"CVXPY + ECOS: the first {usual['usual_iterations_timed']} iterations, scaled to "
        f"{usual['iterations']}; its h differs from ours by {usual['relative_gap_in_h']:.1e} of it."
    )
    title = f"{usual['iterations']} POCS iterations on {usual['data']}"
    return Table(title, ["loop", "seconds", "times faster"], rows, 1, note)


def _growth_table(growth: dict[str, Any]) -> Table:
    rows = [
        [
            f"{row['samples']:,}",
            f"{1e3 * row['projection_s']:.2f}",
            f"{1e3 * row['least_squares_s']:.2f}",
            f"{1e6 * (row['projection_s'] + row['least_squares_s']) / row['samples']:.2f}",
            f"{row['peak_mib']:.0f}",
        ]
        for row in growth["rows"]
    ]
    headings = ["samples", "projection, ms", "least squares, ms", "us a sample", "peak MiB"]
    note = f"time grows with exponent {growth['exponent']:.3f} in the number of samples"
    return Table("One POCS iteration, path 5x5", headings, rows, 0, note)


def _other_tables(content: dict[str, Any]) -> list[Table]:
    warm = [
        [
            f"{row['data']}, {row['samples']} samples",
            *(f"{row[start]['steps']:.2f}" for start in ("cold", "warm")),
            *(f"{row[start]['us']:.1f}" for start in ("cold", "warm")),
            f"{row['times_fewer_steps']:.2f}",
            f"{row['times_faster']:.2f}",
        ]
        for row in content["warm_start"]
    ]
    inner = [
        [
            str(row["inner_steps"]),
            f"{1e3 * row['seconds_an_epoch']:.1f}",
            f"{row['h_in_second_epoch']:.4f}",
            f"{row['h']:.4f}",
            f"{row['test_regret']:.2%}",
        ]
        for row in content["inner_steps"]
    ]
    headings = ["data", "steps, cold", "warm", "us, cold", "warm", "times fewer", "times faster"]
    epochs = content["inner_steps"][0]["epochs"]
    return [
        Table("Warm starts: one projection within a POCS run", headings, warm),
        Table(
            f"Updates for each projection: Adam, {epochs} epochs",
            ["updates", "ms an epoch", "h in the second epoch", "h at the end", "test regret"],
            inner,
        ),
    ]


def _command(args: argparse.Namespace) -> str:
    """The command as typed, without the folders of this machine."""
    words = ["revealed bench learning"]
    if args.data is not None:
        words.append(f"--data {args.data.name}")
    words.append(f"--iterations {args.iterations} --rounds {args.rounds}")
    return " ".join([*words, "--quick"] if args.quick else words)


def _say(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)
