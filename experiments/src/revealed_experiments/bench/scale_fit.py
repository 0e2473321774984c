"""One fit of `revealed bench scale`, in a process of its own: its memory is that of this fit alone.

python -m revealed_experiments.bench.scale_fit FOLDER DECISIONS --executor threads
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from .scale_data import feature_names, problem, read_days, variable_names, write_days

RIDGE = 0.01
MEMORY = "2GB"
TOL = 1e-4


def main() -> None:
    """Fit, and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("size", type=int)
    parser.add_argument("--executor", default="threads", help="memory: arrays, without partitions")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--checkpoint", type=Path)
    parser.add_argument("--checkpoint-every", type=float, default=60.0)
    parser.add_argument("--coefficients", type=Path)
    parser.add_argument("--max-iter", type=int, default=500)
    parser.add_argument("--tol", type=float, default=TOL)
    args = parser.parse_args()
    print(json.dumps(_fit(args)))


def _fit(args: argparse.Namespace) -> dict[str, Any]:
    import revealed as rv
    from revealed.fit import LBFGS

    files = write_days(args.folder, args.size)
    solver = LBFGS(tol=args.tol, max_iter=args.max_iter)
    est = rv.InverseRegressor(problem(), ridge=RIDGE, random_state=0, solver=solver, verbose=True)
    began, cpu = time.perf_counter(), time.process_time()
    if args.executor == "memory":
        est.fit(*read_days(files))
    else:
        names: dict[str, Any] = {"features": feature_names(), "variables": variable_names()}
        data = rv.datasets.Partitions.from_parquet(problem(), files, files, **names)
        run = rv.Run(
            executor=args.executor,
            workers=args.workers,
            threads=args.threads,
            memory=MEMORY,
            checkpoint=args.checkpoint,
            checkpoint_every=args.checkpoint_every,
        )
        est.fit(data, run=run)
    if args.coefficients:
        np.save(args.coefficients, np.column_stack([est.coef_, est.intercept_]))
    told: Any = est.certificate_
    return {
        "samples": args.size,
        "noise": est.loss_.noise,
        "executor": args.executor,
        "seconds": time.perf_counter() - began,
        "processor_seconds": time.process_time() - cpu,
        "evaluations": told.convergence.evaluations,
        "value": told.value,
        "relative_gap": told.relative_gap,
        "converged": told.converged,
        "unsolved": told.unsolved,
        "run": getattr(est, "partitions_report_", None),
    }


if __name__ == "__main__":
    sys.exit(main())
