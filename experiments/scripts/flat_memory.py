"""Memory of a process that projects a million times: it must not grow.

    python experiments/scripts/flat_memory.py   a million, on a 5x5 grid and a knapsack
    python experiments/scripts/flat_memory.py --projections 100000 --batch 10

Every batch has new decisions, so new sets; every tenth has a new problem too, so that whatever the
library keeps of a problem must go with it. Prints resident memory at every tenth of the way, and
ends with 1 if the last tenths need more than the second by `--allowed`.
"""

import argparse
import gc
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import revealed as rv
from revealed.cli.commands.options import number, positive, whole

MEBI = 2**20
PROBLEMS: list[Callable[[], rv.LinearProgram]] = [
    lambda: rv.problems.grid_shortest_path(5, 5),
    lambda: rv.problems.knapsack(np.arange(1.0, 13.0)[None], [30.0]),
]


def resident() -> float:
    """MiB of this process that are in memory now; the largest so far where that is not known."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * resource.getpagesize() / MEBI
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / MEBI


def project_many(total: int, batch: int, seed: int) -> list[float]:
    """Memory at every tenth of `total` projections."""
    rng, problems, seen, done, unsolved = np.random.default_rng(seed), [], [], 0, 0
    began = time.perf_counter()
    for k in range(total // batch):
        if k % 10 == 0:
            problems = [make() for make in PROBLEMS]
        problem = problems[k % len(problems)]
        n = problem.n_variables
        sign = 1.0 if problem.eq_rows.shape[0] else -1.0  # a knapsack is filled for its values
        X = problem.solve(sign * rng.uniform(1, 2, (batch, n))).x
        near = rv.project(sign * rng.uniform(1, 2, (batch, n)), rv.OptimalitySet(problem, X))
        unsolved += int((~np.asarray(near.solved)).sum())
        done += batch
        if done * 10 // total > len(seen):
            gc.collect()
            seen.append(resident())
            spent = time.perf_counter() - began
            print(f"{done:>10,} projections {seen[-1]:8.1f} MiB {spent:7.1f} s", flush=True)
    print(f"{unsolved} of {done:,} not solved")
    return seen


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--projections", type=positive, default=1_000_000)
    parser.add_argument("--batch", type=positive, default=100)
    parser.add_argument("--seed", type=whole, default=0)
    parser.add_argument("--allowed", type=number, default=8.0, help="MiB (8)")
    args = parser.parse_args()
    seen = project_many(args.projections, args.batch, args.seed)
    growth = max(seen[-3:]) - seen[1]
    print(f"{growth:+.1f} MiB from the second tenth to the last ones")
    return int(growth > args.allowed)


if __name__ == "__main__":
    sys.exit(main())
