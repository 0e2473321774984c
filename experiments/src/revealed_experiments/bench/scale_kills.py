"""Kill fits with SIGKILL at random moments and resume them, 20 times in all: the same coefficients?

    python -m revealed_experiments.bench.scale_kills FOLDER --size 10000 --kills 20

A fit is killed a few times and then left to end, so that the measurement ends whatever its luck.
Every second fit is resumed with other numbers of threads each time.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from .record import surroundings, write_json

EACH = 5
"""Times that one fit is killed, at most."""
EARLIEST, LATEST = 0.2, 1.0
"""When it is killed, as a share of the time that a whole fit takes."""
MOST_THREADS = 3


def main() -> None:
    """Fit once undisturbed and several times with kills; print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, metavar="FILE", help="JSON file for the figures")
    args = parser.parse_args()
    about = surroundings("python -m revealed_experiments.bench.scale_kills", {})
    told = _killed(args)
    print(json.dumps(told))
    if args.out:
        write_json(args.out, {"surroundings": about} | told)
    sys.exit(0 if told["same_bits"] else 1)


def _killed(args: argparse.Namespace) -> dict[str, Any]:
    here = args.folder / "kills"
    here.mkdir(parents=True, exist_ok=True)
    rng, fits = np.random.default_rng(args.seed), list[dict[str, Any]]()
    for name in ("compiled", "whole"):  # the first one may compile kernels
        began = time.monotonic()
        subprocess.run(_command(args, here, name), check=True, **_QUIET)
        usual = time.monotonic() - began
    whole = np.load(here / "whole.npy")
    while sum(fit["kills"] for fit in fits) < args.kills and len(fits) < args.kills:
        vary = len(fits) % 2 == 1
        left = args.kills - sum(fit["kills"] for fit in fits)
        fits.append(_one_fit(args, here, len(fits), usual, rng, min(EACH, left), vary))
        again = np.load(here / f"fit{len(fits) - 1}.npy")
        fits[-1]["largest_difference"] = float(np.abs(again - whole).max())
        print(f"  {fits[-1]}", file=sys.stderr, flush=True)
    return {
        "samples": args.size,
        "seconds_of_a_fit": usual,
        "kills": sum(fit["kills"] for fit in fits),
        "kills_with_other_threads": sum(fit["kills"] for fit in fits if fit["other_threads"]),
        "with_a_checkpoint": sum(fit["with_a_checkpoint"] for fit in fits),
        "same_bits": all(fit["largest_difference"] == 0.0 for fit in fits),
        "fits": fits,
    }


def _one_fit(
    args: argparse.Namespace, here: Path, number: int, usual: float, rng: Any, most: int, vary: bool
) -> dict[str, Any]:
    """A fit that is killed up to `most` times, and goes on each time."""
    state = here / f"state{number}"
    for file in state.glob("*"):
        file.unlink()
    kills = late = 0
    while True:
        threads = rng.integers(1, MOST_THREADS + 1, 2).tolist() if vary else (2, 1)
        command = [*_command(args, here, f"fit{number}", *threads), "--checkpoint", str(state)]
        process = subprocess.Popen(command, **_QUIET)
        moment = None if kills == most else float(rng.uniform(EARLIEST, LATEST)) * usual
        try:
            process.wait(timeout=moment)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            kills += 1
            late += (state / "checkpoint.json").exists()
            continue
        if process.returncode:
            raise SystemExit(f"The fit failed: {' '.join(command)}")
        return {"kills": kills, "with_a_checkpoint": late, "other_threads": vary}


def _command(
    args: argparse.Namespace, here: Path, name: str, workers: int = 2, threads: int = 1
) -> list[str]:
    command = [sys.executable, "-m", "revealed_experiments.bench.scale_fit", str(args.folder)]
    command += [str(args.size), "--checkpoint-every", "0", "--workers", str(workers)]
    return [*command, "--threads", str(threads), "--coefficients", str(here / f"{name}.npy")]


_QUIET: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


if __name__ == "__main__":
    main()
