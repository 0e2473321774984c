"""How our projection grows: time with the side of a grid, memory with the size of the batch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from .cases import cases_of, grid
from .timing import enter_ours, one_round

SIDES = (12, 18, 24, 30)
BATCHES = (100, 1_000, 10_000)
MEMORY_SIDE = 12


def growth_with_side(batch: int, rounds: int) -> dict[str, Any]:
    """Microseconds a sample on one thread, cold, for each side, and the fitted exponent.

    The sides take turns: a machine that slows down half-way would bend the fit otherwise.
    """
    cold = [next(iter(cases_of(grid(side), batch))) for side in SIDES]
    entrants = [enter_ours(case, threads=1) for case in cold]
    for _ in range(rounds):
        for entrant in entrants:
            entrant.rounds_us.append(one_round(entrant))
    times = [float(np.median(entrant.rounds_us)) for entrant in entrants]
    exponent = float(np.polyfit(np.log(SIDES), np.log(times), 1)[0])
    return {"sides": list(SIDES), "us": times, "exponent": exponent}


def growth_with_batch() -> dict[str, Any]:
    """Peak memory of a fresh process that projects each batch, and bytes for each further sample.

    The peak of a process never falls again, so every batch size needs a process of its own.
    """
    peaks = [_peak_in_new_process(batch) for batch in BATCHES]
    further = np.diff(peaks) / np.diff(BATCHES)
    return {
        "grid": f"{MEMORY_SIDE}x{MEMORY_SIDE}",
        "batches": list(BATCHES),
        "peak_mib": [peak / 2**20 for peak in peaks],
        "bytes_per_further_sample": further.tolist(),
        # 1 when memory is proportional to the batch.
        "ratio_of_slopes": float(further[-1] / further[0]) if further[0] > 0 else float("inf"),
        "bytes_of_one_cost_vector": 8 * grid(MEMORY_SIDE).problem.n_variables,
    }


def _peak_in_new_process(batch: int) -> int:
    command = [sys.executable, "-m", "revealed_experiments.bench.projection.scaling", str(batch)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(json.loads(answer.stdout)["peak"])


def _peak_of(batch: int) -> int:
    """Peak resident bytes of this process after one projection of `batch` samples."""
    import resource

    from revealed import OptimalitySet, project

    family, rng = grid(MEMORY_SIDE), np.random.default_rng(0)
    few = family.problem.solve(family.draw(rng, 100)).x
    decisions = np.tile(few, (batch // len(few), 1))
    sets = OptimalitySet(family.problem, decisions, margin=family.margin)
    project(family.draw(rng, batch), sets)
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would count the process that started this one as well
        line = next(x for x in status.read_text().splitlines() if x.startswith("VmHWM"))
        return 1024 * int(line.split()[1])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


if __name__ == "__main__":
    print(json.dumps({"peak": _peak_of(int(sys.argv[1]))}))
