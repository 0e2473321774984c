"""Kill a fit with SIGKILL at random moments and resume it, 20 times: the same coefficients?

python -m revealed_experiments.bench.scale_kills FOLDER --size 20000 --kills 20
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np


def main() -> None:
    """Fit once undisturbed and once with kills; print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", type=int, default=20_000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    here = args.folder / "kills"
    here.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "revealed_experiments.bench.scale_fit", str(args.folder)]
    command += [str(args.size), "--checkpoint-every", "0"]
    began = time.monotonic()
    whole = [*command, "--coefficients", str(here / "whole.npy")]
    subprocess.run(whole, check=True, stdout=subprocess.DEVNULL)
    usual = time.monotonic() - began
    again = [*command, "--coefficients", str(here / "again.npy")]
    again += ["--checkpoint", str(here / "checkpoint")]
    rng, kills, ended, late = np.random.default_rng(args.seed), 0, 0, 0
    while True:
        process = subprocess.Popen(again, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if kills >= args.kills:
            process.wait()
            break
        try:
            process.wait(timeout=float(rng.uniform(0.2, 1.0)) * usual)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            kills += 1
            late += (here / "checkpoint" / "checkpoint.json").exists()
            continue
        ended += 1  # it was done before it was to be killed: begin again
        for file in (here / "checkpoint").glob("*"):
            file.unlink()
    one, other = np.load(here / "whole.npy"), np.load(here / "again.npy")
    same = bool((one == other).all())
    told = {"samples": args.size, "kills": kills, "with_a_checkpoint": late}
    told |= {"fits_that_ended_first": ended, "same_bits": same}
    told["largest_difference"] = float(np.abs(one - other).max())
    print(json.dumps(told))
    sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()
